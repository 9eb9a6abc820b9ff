//! Files of keys as people have them, with lines that this program cannot use; and the limits of what
//! a container may cost before it is known to be for a key.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use wattlock_testing::{has_program, wait_until};

use crate::support::{Place, assert_exit, stderr, stdout, wattlock, with_input};

/// The identity of age's own test vectors.
const POST_QUANTUM: &str =
    "AGE-SECRET-KEY-PQ-1HZLGZUPT4ETPKDEV8HSGFDCYZ4E522W0A7PU2LHT8EH9W6YLNC3SW78XKG";

/// An identity file with the identity of `key.txt`, and a post-quantum one on line 3.
fn mixed_text(place: &Place) -> String {
    let own = fs::read_to_string(place.path("key.txt")).unwrap();
    let own = own.lines().last().unwrap();
    format!("# both kinds\r\n\n{POST_QUANTUM}\n  {own}  \n")
}

fn unprotect(key: &Path, sealed: &Path) -> Output {
    wattlock().args(["unprotect", "-o-", "-i"]).args([key, sealed]).output().unwrap()
}

#[test]
fn an_identity_file_with_both_kinds_opens_both_kinds() {
    let place = Place::new();
    let classic = place.container("f", b"text");
    let mixed = place.write("mixed", mixed_text(&place).as_bytes());
    let pq = place.write("pq.txt", POST_QUANTUM.as_bytes());
    let file = place.write("d/g", b"text");
    assert_exit(&wattlock().args(["protect", "-i"]).args([&pq, &file]).output().unwrap(), 0);
    let hybrid = place.path("d/g.wlk");
    for (key, sealed, code) in
        [(&mixed, &classic, 0), (&mixed, &hybrid, 0), (&pq, &hybrid, 0), (&pq, &classic, 3)]
    {
        let opened = unprotect(key, sealed);
        assert_exit(&opened, code);
        assert_eq!(opened.stdout == b"text", code == 0);
    }
    let shown = stdout(&wattlock().args(["keygen", "-y"]).arg(&mixed).output().unwrap());
    let recipients: Vec<&str> = shown.lines().collect();
    assert!(recipients[0].starts_with("age1pq1") && recipients[0].len() == 1959, "{shown}");
    assert_eq!(recipients[1..], [&*place.recipient]);
    // A file for both would be no safer than the classic one.
    let before = place.names();
    for args in
        [vec!["-i", mixed.to_str().unwrap()], vec!["-r", recipients[0], "-r", recipients[1]]]
    {
        let made = wattlock().args(["protect", "-f"]).args(args).arg(&file).output().unwrap();
        assert_exit(&made, 2);
        let said = stderr(&made);
        assert!(said.contains("post-quantum recipients cannot be combined"), "{said}");
        assert!(!said.contains(recipients[0]), "{said}");
    }
    assert_eq!(place.names(), before);
    // A mistyped line is named, and not repeated.
    let typo = place.write("typo", POST_QUANTUM.replace("W78XKG", "W78XKQ").as_bytes());
    let opened = unprotect(&typo, &hybrid);
    assert_exit(&opened, 2);
    assert!(stderr(&opened).contains("line 1") && !stderr(&opened).contains("HZLG"));
}

#[test]
fn post_quantum_keys_are_made_shown_and_counted() {
    let place = Place::new();
    let key = place.path("pq.txt");
    let made = wattlock().args(["keygen", "--pq", "-o"]).arg(&key).output().unwrap();
    assert_exit(&made, 0);
    let text = fs::read_to_string(&key).unwrap();
    assert_eq!(text.lines().last().unwrap().len(), 77);
    let recipient = stderr(&made).trim().strip_prefix("Public key: ").unwrap().to_owned();
    assert!(text.contains(&format!("# public key: {recipient}\n")));
    for (format, suffix) in [("wattlock", "wlk"), ("age", "age")] {
        let file = place.write("d/f", &crate::support::pattern(200_000));
        let args = ["protect", "--format", format, "-r", &recipient, "--replace"];
        assert_exit(&wattlock().args(args).arg(&file).output().unwrap(), 0);
        let sealed = place.path(format!("d/f.{suffix}"));
        let shown = stdout(&wattlock().arg("inspect").arg(&sealed).output().unwrap());
        assert!(shown.contains("post-quantum age key (mlkem768x25519)"), "{shown}");
        let json = stdout(&wattlock().args(["inspect", "--json"]).arg(&sealed).output().unwrap());
        assert!(json.contains("\"post_quantum\": true"), "{json}");
        assert!(unprotect(&key, &sealed).stdout == crate::support::pattern(200_000));
        let refused = unprotect(&place.path("key.txt"), &sealed);
        assert_exit(&refused, 3);
        assert!(stderr(&refused).contains("a post-quantum age key"), "{}", stderr(&refused));
    }
    // As many as a header holds, and one more: refused before anything is written.
    let file = place.write("d/f", b"text");
    for (count, code) in [(673, 0), (674, 2)] {
        place.write("many", (recipient.clone() + "\n").repeat(count).as_bytes());
        let many = place.path("many");
        let args = ["protect", "-f", "-R", many.to_str().unwrap()];
        let made = wattlock().args(args).arg(&file).output().unwrap();
        assert_exit(&made, code);
        if code != 0 {
            assert!(stderr(&made).contains("673 post-quantum recipients"), "{}", stderr(&made));
        } else {
            assert_eq!(unprotect(&key, &place.path("d/f.wlk")).stdout, b"text");
            fs::remove_file(place.path("d/f.wlk")).unwrap();
        }
    }
    assert_eq!(place.names(), ["f", "f.age"]);
    assert_exit(&wattlock().args(["keygen", "--pq", "-y", "x"]).output().unwrap(), 2);
}

/// age 1.3 and newer have these keys, too.
#[test]
fn age_opens_post_quantum_files_and_makes_them() {
    let place = Place::new();
    let age = std::env::var("AGE").unwrap_or_else(|_| "age".to_owned());
    let version = Command::new(&age).arg("--version").output();
    let version = version.map_or_else(|_| String::new(), |said| stdout(&said));
    let mut numbers =
        version.trim().trim_start_matches('v').split('.').map(|n| n.parse().unwrap_or(0));
    if (numbers.next(), numbers.next()) < (Some(1), Some(3)) {
        return wattlock_testing::skip(
            "age-1.3",
            format_args!("age {} has no such keys", version.trim()),
        );
    }
    let key = place.path("pq.txt");
    let made = wattlock().args(["keygen", "--pq", "-o"]).arg(&key).output().unwrap();
    let recipient = stderr(&made).trim().strip_prefix("Public key: ").unwrap().to_owned();
    let other = stdout(&wattlock().args(["keygen", "--pq"]).output().unwrap());
    let other =
        other.lines().find_map(|line| line.strip_prefix("# public key: ")).unwrap().to_owned();
    for recipients in [vec!["-r", &recipient], vec!["-r", &other, "-r", &recipient]] {
        let file = place.write("d/f", &crate::support::pattern(200_000));
        let args = ["protect", "-f", "--format=age"];
        assert_exit(&wattlock().args(args).args(&recipients).arg(&file).output().unwrap(), 0);
        let ours = place.path("d/f.age");
        let opened = Command::new(&age).args(["-d", "-i"]).args([&key, &ours]).output().unwrap();
        assert!(opened.stdout == crate::support::pattern(200_000), "{}", stderr(&opened));
        let theirs = place.path("d/theirs.age");
        let made = Command::new(&age).args(&recipients).arg("-o").args([&theirs, &file]).output();
        assert!(made.unwrap().status.success());
        assert!(unprotect(&key, &theirs).stdout == crate::support::pattern(200_000));
    }
}

#[test]
fn a_protected_identity_file_holds_both_kinds() {
    if !has_program("tmux") {
        return;
    }
    let place = Place::new();
    let sealed = place.container("f", b"text");
    let mut command = wattlock();
    command.args(["protect", "--format=age", "--work-factor=10", "--passphrase-env=S"]);
    let made = with_input(command.env("S", "secret"), mixed_text(&place).as_bytes());
    assert_exit(&made, 0);
    let key = place.write("protected.age", &made.stdout);
    let (socket, out) = (place.path("tmux"), place.path("out"));
    let tmux =
        |args: &[&str]| Command::new("tmux").arg("-S").arg(&socket).args(args).output().unwrap();
    let program = env!("CARGO_BIN_EXE_wattlock");
    let paths = [&out, &key, &sealed].map(|path| path.display().to_string());
    let [out_path, key, sealed] = &paths;
    let line = format!("{program} unprotect -o {out_path} -i {key} {sealed}; echo ended; cat");
    tmux(&["new-session", "-d", "-x", "200", "-y", "50", &line]);
    let screen = || stdout(&tmux(&["capture-pane", "-p"]));
    wait_until("it asks", || screen().contains("Passphrase of the identity file"));
    tmux(&["send-keys", "secret", "Enter"]);
    wait_until("it ends", || screen().contains("ended"));
    let said = screen();
    tmux(&["kill-server"]);
    assert_eq!(fs::read(out).unwrap(), b"text", "{said}");
}

#[test]
fn keys_of_a_list_that_cannot_be_used_are_skipped_and_named() {
    if !has_program("ssh-keygen") {
        return;
    }
    let place = Place::new();
    let file = place.write("d/f", b"text");
    for (kind, bits) in [("ecdsa", "256"), ("ed25519", "256"), ("rsa", "1024")] {
        let mut keygen = Command::new("ssh-keygen");
        keygen.args(["-q", "-t", kind, "-b", bits, "-N", "", "-f"]).arg(place.path(kind));
        assert!(keygen.status().unwrap().success());
    }
    let key = |kind: &str| fs::read_to_string(place.path(format!("{kind}.pub"))).unwrap();
    let (ecdsa, ed25519, rsa) = (key("ecdsa"), key("ed25519"), key("rsa"));
    let list = place.write("list", format!("# people\n{ecdsa}{ed25519}\r\n{rsa}").as_bytes());
    let protect = |args: &[&OsStr]| wattlock().args(["protect", "-f"]).args(args).output().unwrap();
    let made = protect(&["-R".as_ref(), list.as_os_str(), file.as_os_str()]);
    assert_exit(&made, 0);
    let said = stderr(&made);
    assert!(said.contains("line 2: skipped an SSH key of type ecdsa-sha2-nistp256"), "{said}");
    assert!(said.contains("line 5: skipped an RSA key of fewer than 2048 bits"), "{said}");
    let opened = unprotect(&place.path("ed25519"), &place.path("d/f.wlk"));
    assert_eq!(opened.stdout, b"text", "{}", stderr(&opened));
    // Alone they are not enough, and one given by itself is an error.
    let alone = place.write("alone", format!("# people\n{ecdsa}{rsa}").as_bytes());
    let made = protect(&["-R".as_ref(), alone.as_os_str(), file.as_os_str()]);
    assert_exit(&made, 2);
    let said = stderr(&made);
    let why = "holds no recipient that can be used: line 2 is an SSH key of type ecdsa-sha2-nistp256, \
               which is not supported, and so with 1 more";
    assert!(said.contains(why), "{said}");
    let made = protect(&["-r".as_ref(), rsa.trim().as_ref(), file.as_os_str()]);
    assert_exit(&made, 2);
    assert!(
        stderr(&made).contains("it is an RSA key of fewer than 2048 bits"),
        "{}",
        stderr(&made)
    );
    let made = protect(&["-r".as_ref(), ecdsa.trim().as_ref(), file.as_os_str()]);
    assert_exit(&made, 2);
    assert!(stderr(&made).contains("type ecdsa-sha2-nistp256, which is not"), "{}", stderr(&made));
    // What is no key at all is named by its line, and not repeated.
    let list = place.write("list", format!("{ed25519}my secret note\n").as_bytes());
    let made = protect(&["-R".as_ref(), list.as_os_str(), file.as_os_str()]);
    assert_exit(&made, 2);
    let said = stderr(&made);
    assert!(said.contains("line 2") && !said.contains("secret note"), "{said}");
}

/// Text as editors of Windows save it.
fn in_utf16(text: &str) -> Vec<u8> {
    ['\u{feff}']
        .into_iter()
        .chain(text.chars())
        .flat_map(|c| {
            let mut units = [0; 2];
            c.encode_utf16(&mut units)
                .iter()
                .flat_map(|unit| unit.to_le_bytes())
                .collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn byte_order_marks_are_ignored_and_utf16_is_said() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let key = fs::read_to_string(place.path("key.txt")).unwrap();
    let secret = key.lines().last().unwrap();
    let of_key: &[&str] = &["protect", "-f", "-R"];
    let of_word: &[&str] = &["protect", "-f", "--work-factor=10", "--passphrase-file"];
    let opened: &[&str] = &["verify", "-i"];
    let opened_word: &[&str] = &["verify", "--passphrase-file"];
    let sealed = place.path("d/f.wlk");
    // Sealed with a mark, opened with and without.
    for (text, ways) in [
        (place.recipient.as_str(), &[(of_key, &file)][..]),
        (secret, &[(opened, &sealed)]),
        ("a word\r\n", &[(of_word, &file), (opened_word, &sealed)]),
    ] {
        let plain = place.write("plain", text.as_bytes());
        let marked = place.write("marked", format!("\u{feff}{text}").as_bytes());
        let wide = place.write("wide", &in_utf16(text));
        for (words, file) in ways {
            let run = |key: &Path| wattlock().args(*words).args([key, file]).output().unwrap();
            assert_exit(&run(&marked), 0);
            let refused = run(&wide);
            assert_exit(&refused, 2);
            let said = stderr(&refused);
            assert!(said.contains("UTF-16; save it as UTF-8"), "{said}");
            assert!(!said.contains(secret) && !said.contains("word\r"), "{said}");
            if words[0] == "verify" {
                assert_exit(&run(&plain), 0);
            }
        }
    }
}

/// No terminal to ask on: neither key can be used, and neither passphrase is wrong.
#[test]
fn protected_keys_that_nobody_opens_are_wrong_usage() {
    if !has_program("ssh-keygen") || !has_program("setsid") {
        return;
    }
    let place = Place::new();
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-a", "1", "-N", "secret", "-f"]).arg(place.path("ssh"));
    assert!(keygen.status().unwrap().success());
    let file = place.write("d/f", b"text");
    let mut protect = wattlock();
    protect.args(["protect", "-r", &place.recipient, "-R"]).arg(place.path("ssh.pub")).arg(&file);
    assert_exit(&protect.output().unwrap(), 0);
    let verify = |keys: &[&str]| {
        let mut verify = Command::new("setsid");
        verify.arg("--wait").arg(wattlock().get_program()).arg("verify");
        for key in keys {
            verify.arg("-i").arg(place.path(key));
        }
        verify.arg(place.path("d/f.wlk")).output().unwrap()
    };
    let mut protect = wattlock();
    protect.args(["protect", "--format=age", "--work-factor=10", "--passphrase-env=S"]);
    let text = fs::read(place.path("key.txt")).unwrap();
    let made = with_input(protect.env("S", "secret"), &text);
    place.write("identity.age", &made.stdout);
    for key in ["ssh", "identity.age"] {
        let refused = verify(&[key]);
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains("passphrase") && said.contains("is needed"), "{said}");
        assert!(said.contains(key), "{said}");
    }
    assert_exit(&verify(&["ssh", "key.txt"]), 0);
}

/// A recipient of age's post-quantum type: 1,216 bytes in Bech32.
fn post_quantum_recipient() -> String {
    const CHARACTERS: &[u8; 32] = b"qpzry9x8gf2tvdw0s3jn54khce6mua7l";
    let name = b"age1pq";
    let mut values: Vec<u32> = name.iter().map(|byte| u32::from(byte >> 5)).collect();
    values.push(0);
    values.extend(name.iter().map(|byte| u32::from(byte & 31)));
    // All zero: 1,216 bytes are 1,946 characters of five bits.
    values.extend([0; 1946 + 6]);
    let checksum = values.iter().fold(1_u32, |state, value| {
        let generators = [0x3b6a_57b2, 0x2650_8e6d, 0x1ea1_19fa, 0x3d42_33dd, 0x2a14_62b3_u32];
        let next = (state & 0x01ff_ffff) << 5 ^ value;
        let taken = generators.iter().enumerate().filter(|(bit, _)| state >> (25 + bit) & 1 == 1);
        taken.fold(next, |next, (_, generator)| next ^ generator)
    }) ^ 1;
    let checksum =
        (0..6).map(|n| char::from(CHARACTERS[(checksum >> (5 * (5 - n)) & 31) as usize]));
    format!("age1pq1{}{}", "q".repeat(1946), checksum.collect::<String>())
}

#[test]
fn a_rejected_recipient_is_not_repeated_in_full() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    // Its X25519 half is zero, which age refuses, too.
    let good = post_quantum_recipient();
    assert_eq!(good.len(), 1959);
    let typo = good.clone() + "q";
    let empty = place.path("nothing");
    fs::create_dir(&empty).unwrap();
    for recipient in [&good, &typo] {
        let mut command = wattlock();
        command.env("PATH", &empty).args(["protect", "-r", recipient]).arg(&file);
        let made = command.output().unwrap();
        assert_exit(&made, 2);
        let said = stderr(&made);
        assert!(said.contains("it starts like a post-quantum recipient"), "{said}");
        assert!(said.contains("age1pq1qqqqqqqqq…"), "{said}");
        assert!(said.contains(&recipient[recipient.len() - 6..]) && said.len() < 400, "{said}");
    }
    assert_eq!(place.names(), ["f"]);
}

#[test]
fn containers_of_both_formats_in_one_folder_are_verified() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    assert_exit(&place.protect(&[&file]), 0);
    assert_exit(&place.protect(&[OsStr::new("--format=age"), file.as_os_str()]), 0);
    fs::remove_file(&file).unwrap();
    let tree = [OsStr::new("--recursive").to_owned(), place.path("d").into()];
    assert_exit(&place.open("verify", &tree), 0);
    let both = ["f.wlk", "f.age"].map(|name| place.path("d").join(name));
    assert_exit(&place.open("verify", &both), 0);
    let mut damaged = fs::read(&both[1]).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::write(&both[1], damaged).unwrap();
    let verified = place.open("verify", &tree);
    assert_exit(&verified, 3);
    assert!(stderr(&verified).contains("f.age") && !stderr(&verified).contains("f.wlk"));
    // Both would become one file, so opening both is still refused.
    assert_exit(&place.open("unprotect", &both), 2);
}

#[test]
fn writers_stop_at_1024_recipients_and_readers_unless_told_otherwise() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let list = |count: usize| {
        place.write(
            format!("list-{count}"),
            format!("{}\n", place.recipient).repeat(count).as_bytes(),
        )
    };
    let protect = |count: usize| {
        let mut command = wattlock();
        command.args(["protect", "-f", "-R"]).args([&list(count), &file]);
        command.output().unwrap()
    };
    let refused = protect(1025);
    assert_exit(&refused, 2);
    assert!(stderr(&refused).contains("1025 recipients are too many"), "{}", stderr(&refused));
    assert_eq!(place.names(), ["f"]);
    assert_exit(&protect(1024), 0);
    let sealed = place.path("d/f.wlk");
    assert_exit(&place.open("verify", &[&sealed]), 0);
    // Nothing is tried before the number is known to be too large: the MAC of this one is wrong.
    let text = fs::read(&sealed).unwrap();
    let end = text.windows(4).position(|four| four == b"\n=> ").unwrap() + 1;
    let stanzas = &text[b"wattlock/v1\n".len()..end];
    let many = [b"wattlock/v1\n", &stanzas.repeat(9)[..], &text[end..]].concat();
    let many = place.write("d/many.wlk", &many);
    for command in ["unprotect", "verify", "inspect"] {
        let refused = place.open(command, &[&many]);
        assert_exit(&refused, 1);
        let said = stderr(&refused);
        assert!(said.contains("is for 9216 recipients, and the limit is 1024"), "{said}");
        assert!(said.contains("--max-recipients 9216"), "{said}");
    }
    let tried = place.open("verify", &[OsStr::new("--max-recipients=9216"), many.as_os_str()]);
    assert_exit(&tried, 3);
    assert!(stderr(&tried).contains("the header is not authentic"), "{}", stderr(&tried));
    let low = [OsStr::new("--max-recipients=1023"), sealed.as_os_str()];
    assert_exit(&place.open("verify", &low), 1);
}

#[test]
fn a_work_factor_above_the_limit_is_refused_at_once() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let run = |args: &[&OsStr]| {
        let mut command = wattlock();
        command.env("S", "secret").args(args).arg("--passphrase-env=S");
        command.output().unwrap()
    };
    for format in ["--format=age", "--format=wattlock"] {
        let sealed = place.path("d/sealed");
        let args = ["protect", "--work-factor=10", "-f", format, "-o"].map(OsStr::new);
        assert_exit(&run(&[&args[..], &[sealed.as_os_str(), file.as_os_str()]].concat()), 0);
        let verify = |limit: &str| run(&["verify".as_ref(), limit.as_ref(), sealed.as_os_str()]);
        assert_exit(&verify("--max-work-factor=10"), 0);
        let refused = verify("--max-work-factor=9");
        assert_exit(&refused, 1);
        let said = stderr(&refused);
        assert!(said.contains("work factor 10") && said.contains("--max-work-factor"), "{said}");
        // 8 GiB would be needed to find out that this one is forged.
        let bytes = fs::read(&sealed).unwrap();
        let at = bytes.windows(4).position(|four| four == b" 10\n").unwrap();
        let forged = [&bytes[..at], b" 23\n", &bytes[at + 4..]].concat();
        fs::write(&sealed, forged).unwrap();
        let refused = run(&["verify".as_ref(), sealed.as_os_str()]);
        assert_exit(&refused, 1);
        assert!(stderr(&refused).contains("work factor 23"), "{}", stderr(&refused));
    }
}
