//! Every kind of key: where passphrases come from, identity files of all kinds, rekey, keygen.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use crate::support::{
    Place, Plugin, assert_exit, installed, pattern, stderr, stdout, wattlock, with_input,
};

/// As `wattlock protect`, with a cheap key derivation where there is one.
fn protect(args: &[&OsStr]) -> Output {
    wattlock().args(["protect", "--work-factor=10"]).args(args).output().unwrap()
}

fn ssh_keygen(place: &Place, kind: &str, name: &str, passphrase: &str) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", kind, "-b", "2048", "-N", passphrase, "-f"])
        .arg(place.path(name))
        .output()
        .unwrap();
    assert!(made.status.success(), "{}", stderr(&made));
}

#[test]
fn a_passphrase_from_a_file_a_descriptor_or_the_environment() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let secret = place.write("passphrase", b"correct horse\nsecond line\n");
    let sealed = place.path("d/f.wlk");
    let from_file = [OsStr::new("--passphrase-file"), secret.as_os_str()];
    assert_exit(&protect(&[&from_file[..], &[file.as_os_str()]].concat()), 0);
    let shown = wattlock().arg("inspect").arg(&sealed).output().unwrap();
    assert!(stdout(&shown).contains("passphrase (scrypt, 2^10)"));

    let open = |command: &mut Command| command.args(["-o-"]).arg(&sealed).output().unwrap();
    let by_environment = open(
        wattlock().args(["unprotect", "--passphrase-env=SECRET"]).env("SECRET", "correct horse"),
    );
    assert_exit(&by_environment, 0);
    assert_eq!(by_environment.stdout, b"text");
    let by_descriptor = Command::new("sh")
        .args(["-c", "exec \"$0\" unprotect --passphrase-fd 7 -o- \"$1\" 7< \"$2\""])
        .args([Path::new(env!("CARGO_BIN_EXE_wattlock")), &sealed, &secret])
        .output()
        .unwrap();
    assert_exit(&by_descriptor, 0);
    assert_eq!(by_descriptor.stdout, b"text");

    let wrong =
        open(wattlock().args(["unprotect", "--passphrase-env=SECRET"]).env("SECRET", "wrong"));
    assert_exit(&wrong, 3);
    assert!(stderr(&wrong).contains("the passphrase is wrong"));
    assert!(!stderr(&wrong).contains("correct horse"));
    let unset = open(wattlock().args(["unprotect", "--passphrase-env=NOT_SET"]));
    assert_exit(&unset, 2);
    let empty = place.write("empty", b"\n");
    let from_empty = [OsStr::new("-f"), OsStr::new("--passphrase-file"), empty.as_os_str()];
    assert_exit(&protect(&[&from_empty[..], &[file.as_os_str()]].concat()), 2);
    // Without a terminal it cannot ask; the error says what to do instead.
    let asked = wattlock().args(["unprotect", "-p"]).arg(&sealed).output().unwrap();
    assert_exit(&asked, 2);
    assert!(stderr(&asked).contains("--passphrase-file"), "{}", stderr(&asked));
    // An identity where a passphrase is needed, and the other way round.
    let key = place.open("unprotect", &[sealed.as_os_str(), OsStr::new("-o-")]);
    assert_exit(&key, 3);
    let said = stderr(&key);
    assert!(said.contains("this container needs a passphrase\n  use -p"), "{said}");
}

#[test]
fn a_passphrase_stands_alone() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let made = wattlock()
        .args(["protect", "-r", &place.recipient, "--passphrase-env=S"])
        .env("S", "secret")
        .arg(&file)
        .output()
        .unwrap();
    assert_exit(&made, 2);
    let said = stderr(&made);
    assert!(said.contains("a passphrase cannot be combined with -r, -R or -i"), "{said}");
    assert_eq!(place.names(), ["f"]);
}

#[test]
fn a_passphrase_typed_on_a_terminal() {
    if !installed("tmux") {
        return;
    }
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let socket = place.path("tmux");
    let tmux =
        |args: &[&str]| Command::new("tmux").arg("-S").arg(&socket).args(args).output().unwrap();
    let program = env!("CARGO_BIN_EXE_wattlock");
    let sealed = place.path("d/f.wlk");
    let line = format!(
        "{program} protect -p --work-factor 10 {}; {program} unprotect -p -o {} {}; sleep 100",
        file.display(),
        place.path("d/again").display(),
        sealed.display(),
    );
    tmux(&["new-session", "-d", "-x", "200", "-y", "50", &line]);
    let screen = || stdout(&tmux(&["capture-pane", "-p"]));
    let wait_for = |what: &str| {
        wattlock_testing::wait_until(what, || screen().contains(what));
    };
    // The prompt is on the screen before the terminal stops to echo.
    let terminal = stdout(&tmux(&["display-message", "-p", "#{pane_tty}"])).trim().to_owned();
    let is_silent = || {
        let settings = Command::new("stty").args(["-F", &terminal, "-a"]).output().unwrap();
        stdout(&settings).split_whitespace().any(|setting| setting == "-echo")
    };
    let answer = |prompt: &str, times: usize| {
        wattlock_testing::wait_until(prompt, || {
            screen().matches(prompt).count() == times && is_silent()
        });
        tmux(&["send-keys", "typed secret", "Enter"]);
    };
    answer("Passphrase (leave empty to generate one):", 1);
    answer("Once more:", 1);
    wait_for("f.wlk: done");
    answer("Passphrase:", 1);
    wait_for("again: done");
    assert!(!screen().contains("typed secret"), "a passphrase is not echoed");
    tmux(&["kill-server"]);
    assert_eq!(fs::read(place.path("d/again")).unwrap(), b"text");
}

#[test]
fn ssh_keys() {
    if !installed("ssh-keygen") {
        return;
    }
    let place = Place::new();
    let file = place.write("d/f", &pattern(100_000));
    for kind in ["ed25519", "rsa"] {
        ssh_keygen(&place, kind, kind, "");
        let recipients = place.path(format!("{kind}.pub"));
        let args = [OsStr::new("-fR"), recipients.as_os_str(), file.as_os_str()];
        assert_exit(&protect(&args), 0);
        let opened = wattlock()
            .args(["unprotect", "-o-", "-i"])
            .arg(place.path(kind))
            .arg(place.path("d/f.wlk"))
            .output()
            .unwrap();
        assert_exit(&opened, 0);
        assert!(opened.stdout == pattern(100_000));
        // The public key itself, as it is given on the command line.
        let line = fs::read_to_string(&recipients).unwrap();
        let args = [OsStr::new("-fr"), OsStr::new(line.trim()), file.as_os_str()];
        assert_exit(&protect(&args), 0);
    }
}

#[test]
fn many_recipients_each_open_it() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let others = ["one.txt", "two.txt"].map(|name| (name, place.keygen(name)));
    let list = place.write("list", format!("# people\n\n{}\n", others[0].1).as_bytes());
    let args = [OsStr::new("-R"), list.as_os_str(), OsStr::new("-r"), OsStr::new(&others[1].1)];
    assert_exit(&place.protect(&[&args[..], &[file.as_os_str()]].concat()), 0);
    for name in ["key.txt", "one.txt", "two.txt"] {
        let opened = wattlock()
            .args(["unprotect", "-o-", "-i"])
            .arg(place.path(name))
            .arg(place.path("d/f.wlk"))
            .output()
            .unwrap();
        assert_exit(&opened, 0);
    }
    let args = [OsStr::new("-R"), OsStr::new("/nonexistent"), file.as_os_str()];
    assert_exit(&protect(&args), 1);
}

#[test]
fn an_identity_file_names_its_own_recipient() {
    let place = Place::new();
    let (file, key) = (place.write("d/f", b"text"), place.path("key.txt"));
    assert_exit(&protect(&[OsStr::new("-i"), key.as_os_str(), file.as_os_str()]), 0);
    assert_exit(&place.open("verify", &[place.path("d/f.wlk")]), 0);
}

#[test]
fn identity_files_that_are_none() {
    let place = Place::new();
    let sealed = place.container("f", b"text");
    for (name, bytes) in [("garbage", &[0xff; 1000][..]), ("empty", b""), ("prose", b"no key\n")] {
        let key = place.write(name, bytes);
        let opened = wattlock().args(["unprotect", "-i"]).arg(&key).arg(&sealed).output().unwrap();
        assert!(matches!(opened.status.code(), Some(1..=3)), "{name}: {}", stderr(&opened));
        assert!(!stderr(&opened).is_empty() && !stderr(&opened).contains("panicked"));
    }
    let opened = wattlock().args(["unprotect", "-i/nonexistent"]).arg(&sealed).output().unwrap();
    assert_exit(&opened, 1);
    assert!(stderr(&opened).contains("/nonexistent"));
}

#[test]
fn keygen_keeps_the_key_to_its_owner_and_overwrites_nothing() {
    let place = Place::new();
    let key = place.path("key.txt");
    assert_eq!(fs::metadata(&key).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&key).unwrap();
    let again = wattlock().args(["keygen", "-o"]).arg(&key).output().unwrap();
    assert_exit(&again, 1);
    assert_eq!(fs::read(&key).unwrap(), before);
    assert!(place.recipient.starts_with("age1"));
}

#[test]
fn rekey_changes_the_recipients_and_not_the_payload() {
    let place = Place::new();
    let new = place.keygen("new.txt");
    let file = place.write("d/f", &pattern(500_000));
    for format in ["wattlock", "age"] {
        let sealed = place.path("d/sealed");
        let args = ["-f", "--format", format].map(OsStr::new);
        let to = [file.as_os_str(), OsStr::new("-o"), sealed.as_os_str()];
        assert_exit(&place.protect(&[&args[..], &to].concat()), 0);
        let before = fs::read(&sealed).unwrap();
        let rekey = |key: &str, args: &[&OsStr]| {
            let mut command = wattlock();
            command.args(["rekey", "-i"]).arg(place.path(key)).args(args).arg(&sealed);
            command.output().unwrap()
        };
        assert_exit(&rekey("new.txt", &[OsStr::new("-r"), OsStr::new(&new)]), 3);
        assert!(fs::read(&sealed).unwrap() == before, "a wrong key changes nothing");
        assert_exit(&rekey("key.txt", &[]), 2);
        assert_exit(&rekey("key.txt", &[OsStr::new("-r"), OsStr::new(&new)]), 0);
        let after = fs::read(&sealed).unwrap();
        assert!(before[before.len() - 500_000..] == after[after.len() - 500_000..]);
        assert_exit(&place.open("verify", &[&sealed]), 3);
        let opened = wattlock()
            .args(["unprotect", "-o-", "-i"])
            .arg(place.path("new.txt"))
            .arg(&sealed)
            .output()
            .unwrap();
        assert_exit(&opened, 0);
        assert!(opened.stdout == pattern(500_000));
        // To a passphrase; the sealed metadata is still there.
        let secret = place.write("secret", b"a new passphrase\n");
        let args = [OsStr::new("--new-passphrase-file"), secret.as_os_str()];
        let args = [&args[..], &[OsStr::new("--work-factor=10")]].concat();
        assert_exit(&rekey("new.txt", &args), 0);
        let shown = wattlock()
            .args(["inspect", "--passphrase-file"])
            .args([&secret, &sealed])
            .output()
            .unwrap();
        assert_exit(&shown, 0);
        assert_eq!(stdout(&shown).contains("name        f"), format == "wattlock");
        assert_eq!(place.names(), ["f", "sealed"]);
    }
}

#[test]
fn plugins_wrap_and_unwrap() {
    if !installed("python3") {
        return;
    }
    let place = Place::new();
    let plugin = Plugin::new(&place);
    let file = place.write("d/f", &pattern(100_000));
    for format in ["wattlock", "age"] {
        let sealed = place.path(format!("d/f.{format}"));
        let made = plugin
            .wattlock()
            .args(["protect", "--format", format, "-r", &plugin.recipient, "-o"])
            .args([&sealed, &file])
            .output()
            .unwrap();
        assert_exit(&made, 0);
        let shown = wattlock().arg("inspect").arg(&sealed).output().unwrap();
        assert!(stdout(&shown).contains("recipients  wattlocktest"));
        let mut open = plugin.wattlock();
        open.args(["unprotect", "-o-", "-i"]).args([&plugin.identity, &sealed]);
        let opened = open.output().unwrap();
        assert_exit(&opened, 0);
        assert!(opened.stdout == pattern(100_000));
    }
    if installed("age") {
        let sealed = place.path("d/f.age");
        let mut age = Command::new("age");
        age.args(["-d", "-i"]).args([&plugin.identity, &sealed]).env("PATH", plugin.path());
        let opened = age.output().unwrap();
        assert!(opened.stdout == pattern(100_000), "{}", stderr(&opened));
    }
}

#[test]
fn a_plugin_that_is_not_installed_is_named() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/plugin.py");
    let keys = stdout(&Command::new("python3").arg(script).arg("--keys").output().unwrap());
    let recipient = keys.lines().next().unwrap_or_default();
    let made = protect(&[OsStr::new("-r"), OsStr::new(recipient), file.as_os_str()]);
    assert_exit(&made, 2);
    assert!(stderr(&made).contains("age-plugin-wattlocktest"), "{}", stderr(&made));
    assert_eq!(place.names(), ["f"]);
}

#[test]
fn a_protected_identity_of_age_opens_on_a_terminal_only() {
    let place = Place::new();
    let sealed = place.container("f", b"text");
    let identity = fs::read(place.path("key.txt")).unwrap();
    let mut command = wattlock();
    command.args(["protect", "--format=age", "--work-factor=10", "--passphrase-env=S"]);
    let protected = with_input(command.env("S", "secret"), &identity);
    assert_exit(&protected, 0);
    let key = place.write("protected.age", &protected.stdout);
    let opened = wattlock().args(["unprotect", "-i"]).arg(&key).arg(&sealed).output().unwrap();
    assert!(matches!(opened.status.code(), Some(1..=3)), "{}", stderr(&opened));
    assert_eq!(place.names(), ["f.wlk"]);
}

#[test]
fn a_secret_in_the_wrong_place_is_not_repeated() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let secret = fs::read_to_string(place.path("key.txt")).unwrap();
    let key = secret.lines().last().unwrap();
    let text = "-----BEGIN OPENSSH PRIVATE KEY-----\nc2VjcmV0\n";
    for args in [
        &["-r", key][..],
        &["-r", text],
        &["-i", key],
        &["-R", key],
        &["--passphrase-env", "hunter2secret"],
        &["--passphrase-fd", "hunter2secret"],
        &["--passphrase-file", "hunter2secret"],
        &["--passphrase=hunter2secret"],
    ] {
        for command in ["protect", "unprotect"] {
            let made =
                wattlock().arg(command).args(args).arg("--json").arg(&file).output().unwrap();
            assert!(!made.status.success(), "{args:?}");
            let said = stderr(&made) + &stdout(&made);
            for secret in [key, "c2VjcmV0", "hunter2secret"] {
                assert!(!said.contains(secret), "{args:?}: {said}");
            }
        }
    }
}

#[test]
fn a_header_that_asks_for_too_much_work_is_refused() {
    let place = Place::new();
    let stanza = "-> scrypt AAAAAAAAAAAAAAAAAAAAAA 30\n\
                  AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";
    let mac = "--- AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\n";
    let hostile = place.write("d/f.wlk", format!("wattlock/v1\n{stanza}{mac}").as_bytes());
    let secret = place.write("secret", b"secret\n");
    let opened = wattlock()
        .args(["unprotect", "--passphrase-file"])
        .args([&secret, &hostile])
        .output()
        .unwrap();
    assert_exit(&opened, 1);
    assert!(
        stderr(&opened).contains("the work factor 30 of its passphrase"),
        "{}",
        stderr(&opened)
    );
}

#[test]
fn rekey_follows_a_link_to_the_container() {
    let place = Place::new();
    let sealed = place.container("f", b"text");
    let link = place.path("link");
    std::os::unix::fs::symlink(&sealed, &link).unwrap();
    let new = place.keygen("new.txt");
    let made = place.open("rekey", &[OsStr::new("-r"), OsStr::new(&new), link.as_os_str()]);
    assert_exit(&made, 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_exit(&place.open("verify", &[&sealed]), 3);
}
