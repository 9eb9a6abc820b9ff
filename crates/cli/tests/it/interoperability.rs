//! With the real programs: age of Debian, and Python's `cryptography`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{
    Place, assert_exit, installed, pattern, stderr, stdout, wattlock, with_input,
};
use wattlock_testing::wait_for;

/// Lengths around the chunks of both formats.
const LENGTHS: [usize; 8] = [0, 1, 65535, 65536, 65537, 131_072, 1_000_000, 3 << 20];

fn age(args: &[&OsStr]) -> std::process::Output {
    Command::new("age").args(args).output().unwrap()
}

#[test]
fn age_opens_ours_and_we_open_ages() {
    if !installed("age") || !installed("ssh-keygen") {
        return;
    }
    let place = Place::new();
    let mut keys = vec![(place.path("key.txt"), place.recipient.clone())];
    for kind in ["ed25519", "rsa"] {
        let path = place.path(kind);
        let made = Command::new("ssh-keygen")
            .args(["-q", "-t", kind, "-N", "", "-f"])
            .arg(&path)
            .output()
            .unwrap();
        assert!(made.status.success());
        let public = fs::read_to_string(path.with_extension("pub")).unwrap();
        keys.push((path, public.trim().to_owned()));
    }
    for (identity, recipient) in &keys {
        for len in LENGTHS {
            let plain = place.write("d/f", &pattern(len));
            let (ours, theirs) = (place.path("ours.age"), place.path("theirs.age"));
            let made = wattlock()
                .args(["protect", "-f", "--format=age", "-r", recipient, "-o"])
                .args([&ours, &plain])
                .output()
                .unwrap();
            assert_exit(&made, 0);
            let i = [OsStr::new("-i"), identity.as_os_str()];
            let opened = age(&[&[OsStr::new("-d")], &i[..], &[ours.as_os_str()]].concat());
            assert!(opened.status.success(), "{len} bytes: {}", stderr(&opened));
            assert!(opened.stdout == pattern(len), "{len} bytes of ours");

            for armor in [&[][..], &[OsStr::new("-a")]] {
                let to = [OsStr::new("-r"), OsStr::new(recipient), OsStr::new("-o")];
                let files = [theirs.as_os_str(), plain.as_os_str()];
                let made = age(&[armor, &to, &files].concat());
                assert!(made.status.success(), "{}", stderr(&made));
                let opened = wattlock()
                    .args(["unprotect", "-o-", "-i"])
                    .args([identity, &theirs])
                    .output()
                    .unwrap();
                assert_exit(&opened, 0);
                assert!(opened.stdout == pattern(len), "{len} bytes of theirs");
            }
        }
    }
}

#[test]
fn age_takes_a_recipient_and_an_identity_that_we_made() {
    if !installed("age-keygen") {
        return;
    }
    let place = Place::new();
    let shown = Command::new("age-keygen").arg("-y").arg(place.path("key.txt")).output().unwrap();
    assert_eq!(stdout(&shown).trim(), place.recipient);
}

#[test]
fn passphrases_both_ways_on_a_terminal() {
    if !installed("age") || !installed("tmux") {
        return;
    }
    let place = Place::new();
    let plain = place.write("d/f", &pattern(100_000));
    let ours = place.path("ours.age");
    let made = wattlock()
        .args(["protect", "--format=age", "--work-factor=12", "--passphrase-env=S", "-o"])
        .args([&ours, &plain])
        .env("S", "correct horse")
        .output()
        .unwrap();
    assert_exit(&made, 0);
    let socket = place.path("tmux");
    let tmux =
        |args: &[&str]| Command::new("tmux").arg("-S").arg(&socket).args(args).output().unwrap();
    let (opened, theirs) = (place.path("opened"), place.path("theirs.age"));
    let line = format!(
        "age -d -o {} {}; age -p -o {} {}; sleep 100",
        opened.display(),
        ours.display(),
        theirs.display(),
        plain.display(),
    );
    // age asks on the terminal and takes a passphrase from nowhere else.
    tmux(&["new-session", "-d", "-x", "200", "-y", "50", &line]);
    let mut answered = String::new();
    let screen = wait_for(|| {
        let screen = stdout(&tmux(&["capture-pane", "-p"]));
        let prompt = screen.trim_end().lines().last().unwrap_or_default().to_owned();
        if prompt.contains("passphrase") && prompt.ends_with(':') && prompt != answered {
            tmux(&["send-keys", "correct horse", "Enter"]);
            answered = prompt;
        }
        let made = fs::metadata(&theirs).is_ok_and(|theirs| theirs.len() > 100_000);
        if made { Ok(screen) } else { Err(format!("age has not finished:\n{screen}")) }
    });
    tmux(&["kill-server"]);
    assert!(fs::read(&opened).is_ok_and(|bytes| bytes == pattern(100_000)), "{screen}");
    let back = wattlock()
        .args(["unprotect", "-o-", "--passphrase-env=S"])
        .arg(&theirs)
        .env("S", "correct horse")
        .output()
        .unwrap();
    assert_exit(&back, 0);
    assert!(back.stdout == pattern(100_000));
}

/// A Python that has `cryptography` 50 or newer, or `None` with the reason said.
fn python() -> Option<PathBuf> {
    let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../.venv/bin/python3");
    let python = if own.exists() { own } else { PathBuf::from("python3") };
    let has = Command::new(&python).args(["-c", "import cryptography.cobblestone"]).output();
    if has.is_ok_and(|output| output.status.success()) {
        return Some(python);
    }
    wattlock_testing::skip("python-cryptography", "no Python has cryptography 50 or newer");
    None
}

#[test]
fn python_opens_our_payload_given_its_data_key() {
    let Some(python) = python() else { return };
    let place = Place::new();
    let script = "
import sys
from cryptography.cobblestone import Cobblestone256Decryptor, Cobblestone256Encryptor
key, context, offset = bytes.fromhex(sys.argv[1]), sys.argv[2].encode(), int(sys.argv[3])
container = open(sys.argv[4], 'rb').read()
d = Cobblestone256Decryptor(key, context)
plain = d.update(container[offset:]) + d.finalize()
sys.stdout.buffer.write(plain)
# And back: the same header, with a payload that Python sealed.
e = Cobblestone256Encryptor(key, context)
open(sys.argv[5], 'wb').write(container[:offset] + e.update(plain) + e.finalize())
";
    for len in [0, 1, 16383, 16384, 16385, 100_000, 2 << 20] {
        let plain = pattern(len);
        let sealed = place.container("f", &plain);
        let (key, offset) = data_key(&place, &sealed);
        let by_python = place.path("d/by_python.wlk");
        let opened = Command::new(&python)
            .args(["-c", script, &key, "wattlock/v1 payload", &offset])
            .args([&sealed, &by_python])
            .output()
            .unwrap();
        assert!(opened.status.success(), "{len} bytes: {}", stderr(&opened));
        assert!(opened.stdout == plain, "{len} bytes opened by Python");
        let back = place.open("unprotect", &[by_python.as_os_str(), OsStr::new("-o-")]);
        assert_exit(&back, 0);
        assert!(back.stdout == plain, "{len} bytes sealed by Python");
        fs::remove_file(sealed).unwrap();
    }
}

/// What the example `data_key` prints; the program itself does not hand it out.
fn data_key(place: &Place, sealed: &Path) -> (String, String) {
    use wattlock_file::{Identities, IdentityFile, Input, NoPrompt, data_key};
    let text = fs::read(place.path("key.txt")).unwrap();
    let identity = IdentityFile::parse(&text, "key.txt", std::sync::Arc::new(NoPrompt), 22);
    let identities = Identities::new(identity.unwrap().into_identities().unwrap());
    let (key, offset) = data_key(&Input::Path(sealed.to_owned()), &identities).unwrap();
    let hex = key.expose().iter().map(|byte| format!("{byte:02x}")).collect();
    (hex, offset.to_string())
}

#[test]
fn a_container_of_age_is_detected_under_any_name() {
    if !installed("age") {
        return;
    }
    let place = Place::new();
    let sealed = place.path("d/no-suffix");
    let made =
        with_input(Command::new("age").args(["-r", &place.recipient, "-o"]).arg(&sealed), b"text");
    assert!(made.status.success());
    assert_exit(&place.open("verify", &[&sealed]), 0);
    let shown = wattlock().arg("inspect").arg(&sealed).output().unwrap();
    assert!(stdout(&shown).contains("age v1"));
    // The output's name follows neither from its name nor from sealed metadata.
    assert_exit(&place.open("unprotect", &[&sealed]), 2);
    assert_exit(&place.open("unprotect", &[sealed.as_os_str(), OsStr::new("-o-")]), 0);
}

/// Armor goes both ways, to files and pipes, and is read back before an original is removed.
#[test]
fn armor_is_read_by_age_and_by_wattlock() {
    let place = Place::new();
    for len in [0, 1, 65_536, 200_000] {
        let file = place.write("f", &pattern(len));
        let args = ["--armor", "--format", "age", "--replace"].map(OsStr::new);
        assert_exit(&place.protect(&[&args[..], &[file.as_os_str()]].concat()), 0);
        let sealed = place.path("f.age");
        let text = fs::read_to_string(&sealed).unwrap();
        assert!(text.starts_with("-----BEGIN AGE ENCRYPTED FILE-----\n"), "{text}");
        assert!(text.ends_with("-----END AGE ENCRYPTED FILE-----\n"), "{text}");
        assert!(text.lines().all(|line| line.len() <= 64));
        let opened = place.open("unprotect", &[sealed.as_os_str(), "-o-".as_ref()]);
        assert!(opened.stdout == pattern(len));
        if installed("age") {
            let mut age = Command::new("age");
            let opened = age.arg("-d").arg("-i").arg(place.path("key.txt")).arg(&sealed).output();
            assert!(opened.unwrap().stdout == pattern(len));
        }
        fs::remove_file(sealed).unwrap();
        let mut protect = wattlock();
        protect.args(["protect", "-a", "--format=age", "-r", &place.recipient]);
        let made = with_input(&mut protect, &pattern(len));
        assert!(made.stdout.starts_with(b"-----BEGIN AGE"));
        let mut unprotect = wattlock();
        unprotect.arg("unprotect").arg("-i").arg(place.path("key.txt"));
        assert!(with_input(&mut unprotect, &made.stdout).stdout == pattern(len));
    }
    let file = place.write("f", b"text");
    let refused = place.protect(&[OsStr::new("--armor"), file.as_os_str()]);
    assert_exit(&refused, 2);
    assert!(stderr(&refused).contains("--format age"), "{}", stderr(&refused));
}
