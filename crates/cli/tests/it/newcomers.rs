//! What people try first: other names of commands, no key at all, a name for a key, a look before the run.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Output};

use crate::support::{Place, Plugin, assert_exit, installed, names, stderr, stdout, wattlock};

/// `wattlock ARGS…` in `place`, with the keys in its folder `config`.
fn run(place: &Place, args: &[&str]) -> Output {
    command(place).args(args).output().unwrap()
}

fn command(place: &Place) -> Command {
    let mut command = wattlock();
    command.current_dir(place.path("")).env("XDG_CONFIG_HOME", place.path("config"));
    command
}

#[test]
fn encrypt_and_decrypt_are_commands() {
    let place = Place::new();
    place.write("f", b"text");
    assert_exit(&run(&place, &["encrypt", "-i", "key.txt", "f"]), 0);
    fs::remove_file(place.path("f")).unwrap();
    assert_exit(&run(&place, &["decrypt", "-i", "key.txt", "f.wlk"]), 0);
    assert_eq!(fs::read(place.path("f")).unwrap(), b"text");
    for (args, use_instead) in [
        (&["-d", "-i", "key.txt", "f.wlk"][..], "decrypt -i key.txt f.wlk"),
        (&["seal", "-p", "f"], "encrypt -p f"),
        (&["f.wlk"], "decrypt f.wlk"),
        (&["f"], "encrypt f"),
        (&["protect", "-d", "f.wlk"], "decrypt f.wlk"),
    ] {
        let refused = run(&place, args);
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.ends_with(&format!("use: wattlock {use_instead}\n")), "{said}");
    }
}

/// `keygen` on a terminal writes the user's identity, once; commands without a key use it.
#[test]
fn without_a_key_the_users_own_is_used() {
    let place = Place::new();
    let on_terminal = || {
        let program = env!("CARGO_BIN_EXE_wattlock");
        let mut script = Command::new("script");
        script.args(["-qec", &format!("{program} keygen"), "/dev/null"]);
        script.env("XDG_CONFIG_HOME", place.path("config")).output().unwrap()
    };
    place.write("f", b"text");
    let none = run(&place, &["encrypt", "f"]);
    assert_exit(&none, 2);
    assert!(stderr(&none).contains("wattlock keygen"), "{}", stderr(&none));
    if !installed("script") {
        return;
    }
    let made = on_terminal();
    assert!(stdout(&made).contains("Public key: age1"), "{}", stdout(&made));
    assert!(!stdout(&made).contains("AGE-SECRET-KEY"), "{}", stdout(&made));
    let identity = place.path("config/wattlock/identity.txt");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&identity), 0o600);
    assert_eq!(mode(identity.parent().unwrap()), 0o700);
    let text = fs::read(&identity).unwrap();
    let again = on_terminal();
    assert!(stdout(&again).contains("never overwritten"), "{}", stdout(&again));
    assert_eq!(fs::read(&identity).unwrap(), text);

    assert_exit(&run(&place, &["encrypt", "f"]), 0);
    for args in [&["verify", "f.wlk"][..], &["decrypt", "-f", "f.wlk"]] {
        assert_exit(&run(&place, args), 0);
    }
    // A key that is named is the only one.
    assert_exit(&run(&place, &["verify", "-i", "key.txt", "f.wlk"]), 3);
    assert_exit(&run(&place, &["encrypt", "-f", "-r", &place.recipient, "f"]), 0);
    assert_exit(&run(&place, &["verify", "f.wlk"]), 3);
    // Without a terminal, the new identity goes to standard output, as ever.
    let printed = run(&place, &["keygen"]);
    assert!(stdout(&printed).contains("AGE-SECRET-KEY-"));
}

#[test]
fn a_service_finds_its_credential() {
    let place = Place::new();
    place.container("f", b"text");
    fs::create_dir(place.path("credentials")).unwrap();
    fs::copy(place.path("key.txt"), place.path("credentials/wattlock-identity")).unwrap();
    let verified = command(&place)
        .args(["verify", "d/f.wlk"])
        .env("CREDENTIALS_DIRECTORY", place.path("credentials"))
        .output()
        .unwrap();
    assert_exit(&verified, 0);
    assert_exit(&run(&place, &["verify", "d/f.wlk"]), 2);
}

#[test]
fn a_recipient_has_a_name() {
    let place = Place::new();
    place.write("f", b"text");
    fs::create_dir_all(place.path("config/wattlock/recipients")).unwrap();
    let other = place.keygen("other.txt");
    let team = format!("# the team\n{}\n{other}\n", place.recipient);
    place.write("config/wattlock/recipients/team", team.as_bytes());
    assert_exit(&run(&place, &["encrypt", "-r", "@team", "f"]), 0);
    for key in ["key.txt", "other.txt"] {
        assert_exit(&run(&place, &["verify", "-i", key, "f.wlk"]), 0);
    }
    let unknown = run(&place, &["encrypt", "-r", "@alice", "f"]);
    assert_exit(&unknown, 2);
    let said = stderr(&unknown);
    assert!(said.contains("no recipient is named @alice") && said.contains("@team"), "{said}");
    let key = fs::read_to_string(place.path("key.txt")).unwrap();
    let key = key.lines().last().unwrap();
    for args in [
        ["-r", &format!("@{key}")],
        ["-r", &key[4..]],
        ["--identity-command", key],
        ["-i", &key[1..]],
        ["-d", "--passphrase=hunter2"],
    ] {
        let refused = run(&place, &[&["encrypt"], &args[..], &["f"]].concat());
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(!said.contains(&key[20..]) && !said.contains("hunter2"), "{said}");
    }
    for evil in ["@../key.txt", "@", "@.hidden", "@a/b"] {
        assert_exit(&run(&place, &["encrypt", "-r", evil, "f"]), 2);
    }
}

#[test]
fn an_identity_comes_from_a_command() {
    let place = Place::new();
    place.container("f", b"text");
    let log = "echo run >>runs; ";
    let identity = format!("{log}cat key.txt");
    fs::create_dir(place.path("tree")).unwrap();
    for name in ["a", "b", "c"] {
        place.write(format!("tree/{name}"), name.as_bytes());
    }
    let args = ["encrypt", "--identity-command", &identity, "--recursive", "tree"];
    assert_exit(&run(&place, &args), 0);
    let args = ["verify", "--identity-command", &identity, "--recursive", "tree", "d/f.wlk"];
    assert_exit(&run(&place, &args), 0);
    assert_eq!(fs::read_to_string(place.path("runs")).unwrap(), "run\nrun\n");
    for (command, said) in [
        ("exit 7", "exit status: 7"),
        ("echo AGE-SECRET-KEY-1NONSENSE", "line 1 is no identity"),
        ("yes", "longer than 16 MiB"),
        ("true", "the command printed no identity"),
    ] {
        let failed = run(&place, &["verify", "--identity-command", command, "d/f.wlk"]);
        assert!(!failed.status.success());
        let text = stderr(&failed);
        assert!(text.contains("--identity-command") && text.contains(said), "{text}");
        assert!(!text.contains("NONSENSE"), "{text}");
    }
}

/// A plugin may ask its user to touch a token: once a run.
#[test]
fn a_plugin_is_called_once_a_run() {
    let place = Place::new();
    let plugin = Plugin::new(&place);
    fs::create_dir(place.path("tree")).unwrap();
    for index in 0..20 {
        place.write(format!("tree/{index}"), b"text");
    }
    let calls = place.path("calls");
    let log = format!("echo call >>{}", calls.display());
    let mut protect = plugin.wattlock_and(&log);
    protect.args(["protect", "-r", &plugin.recipient, "--replace", "--recursive"]);
    assert_exit(&protect.arg(place.path("tree")).output().unwrap(), 0);
    assert_eq!(fs::read_to_string(&calls).unwrap(), "call\n");
    let mut unprotect = plugin.wattlock_and(&log);
    unprotect.args(["unprotect", "--recursive", "-i"]).arg(&plugin.identity);
    assert_exit(&unprotect.arg(place.path("tree")).output().unwrap(), 0);
    assert_eq!(fs::read_to_string(&calls).unwrap(), "call\ncall\n");
}

#[test]
fn a_new_identity_has_a_passphrase() {
    let place = Place::new();
    place.write("secret", b"correct horse\n");
    let made = run(&place, &["keygen", "--passphrase-file", "secret", "-o", "locked.txt"]);
    assert_exit(&made, 0);
    let said = stderr(&made);
    let recipient = said.trim().strip_prefix("Public key: ").unwrap();
    let text = fs::read_to_string(place.path("locked.txt")).unwrap();
    assert!(text.starts_with("-----BEGIN AGE ENCRYPTED FILE-----\n"), "{text}");
    // It is a container itself.
    let args = ["decrypt", "--passphrase-file", "secret", "locked.txt", "-o", "open.txt"];
    assert_exit(&run(&place, &args), 0);
    place.write("f", b"text");
    assert_exit(&run(&place, &["encrypt", "-r", recipient, "f"]), 0);
    assert_exit(&run(&place, &["verify", "-i", "open.txt", "f.wlk"]), 0);
}

#[test]
fn a_dry_run_shows_and_does_nothing() {
    let place = Place::new();
    for name in ["tree/a", "tree/b.tmp", "tree/cache/c", "tree/sub/d"] {
        fs::create_dir_all(place.path(name).parent().unwrap()).unwrap();
        place.write(name, b"text");
    }
    let exclude = ["--exclude", "*.tmp", "--exclude", "cache/"];
    let args = [
        &["encrypt", "-n", "-i", "key.txt", "--recursive", "tree", "--out-dir", "safe"][..],
        &exclude,
    ]
    .concat();
    let shown = run(&place, &args);
    assert_exit(&shown, 0);
    let text = stdout(&shown);
    assert!(text.contains("tree/a → safe/tree/a.wlk\n"), "{text}");
    assert!(text.contains("tree/b.tmp: skipped: it matches --exclude"), "{text}");
    assert!(text.contains("2 files") && !text.contains("tree/cache/c"), "{text}");
    assert!(!place.path("safe").exists());

    let args = [&["encrypt", "-v", "-i", "key.txt", "--recursive", "tree"][..], &exclude].concat();
    let made = run(&place, &args);
    assert_exit(&made, 0);
    assert!(stderr(&made).contains("done: tree/sub/d → tree/sub/d.wlk\n"), "{}", stderr(&made));
    assert_eq!(names(&place.path("tree")), ["a", "a.wlk", "b.tmp", "cache", "sub"]);
    assert_eq!(names(&place.path("tree/cache")), ["c"]);

    let shown = run(&place, &["decrypt", "--dry-run", "-i", "key.txt", "tree/a.wlk"]);
    assert_exit(&shown, 1);
    assert!(stderr(&shown).contains("tree/a exists already"), "{shown:?}");
    assert!(stdout(&shown).starts_with("0 files"), "{shown:?}");
    let shown =
        run(&place, &["decrypt", "--dry-run", "--json", "-f", "-i", "key.txt", "tree/a.wlk"]);
    assert_exit(&shown, 0);
    let json: serde_json::Value = serde_json::from_str(&stdout(&shown)).unwrap();
    assert_eq!(json["files"][0]["output"], "tree/a");
    let wrong = ["encrypt", "-n", "-i", "key.txt", "--exclude", "[", "--recursive", "tree"];
    assert_exit(&run(&place, &wrong), 2);
    // Without a key, the run fails, and so does what shows it.
    for command in ["encrypt", "decrypt"] {
        let shown = run(&place, &[command, "-n", "--recursive", "tree"]);
        assert_exit(&shown, 2);
        assert!(stderr(&shown).contains("use -"), "{}", stderr(&shown));
        assert_eq!(stdout(&shown), "");
    }
}

/// As in a Dockerfile: what `keygen` prints is in a log then, and no other command finds it.
#[test]
fn keygen_without_a_terminal_says_where_the_identity_went() {
    let place = Place::new();
    place.write("f", b"text");
    let own = place.path("config/wattlock/identity.txt");
    let advice = format!("`wattlock keygen -o {}`", own.display());
    for words in [&["protect", "f"][..], &["unprotect", "f"]] {
        let none = run(&place, words);
        assert_exit(&none, 2);
        assert!(stderr(&none).contains(&advice), "{}", stderr(&none));
    }
    let printed = run(&place, &["keygen"]);
    assert_exit(&printed, 0);
    assert!(stdout(&printed).contains("AGE-SECRET-KEY-1"));
    let said = stderr(&printed);
    assert!(said.contains("the identity (private key) went to standard output"), "{said}");
    assert!(said.contains(&advice) && !said.contains("AGE-SECRET-KEY-1"), "{said}");

    // What it advises works, where there is no folder yet.
    assert_exit(&run(&place, &["keygen", "-o", own.to_str().unwrap()]), 0);
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&own), mode(own.parent().unwrap())), (0o600, 0o700));
    assert_exit(&run(&place, &["protect", "f"]), 0);
}

#[test]
fn keygen_warns_of_a_file_that_others_can_read() {
    let place = Place::new();
    for (mode, warns) in [(0o644, true), (0o640, true), (0o600, false)] {
        let path = place.write("key", b"");
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let mut keygen = command(&place);
        let made = keygen.arg("keygen").stdout(file).stderr(std::process::Stdio::piped());
        let made = made.spawn().unwrap().wait_with_output().unwrap();
        assert_exit(&made, 0);
        let said = stderr(&made);
        assert_eq!(said.contains(&format!("mode of the output is {mode:03o}")), warns, "{said}");
        assert_eq!(said.contains("warning"), warns, "{said}");
    }
}
