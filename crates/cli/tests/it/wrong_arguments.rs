//! What is said of arguments that make no sense: the flag or the file, once, and what to give instead.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::Output;

use crate::support::{Place, assert_exit, stderr, stdout, wattlock};

/// `wattlock ARGS…` in `place`.
fn run(place: &Place, args: &[&str]) -> Output {
    wattlock().args(args).current_dir(place.path("")).output().unwrap()
}

/// What `wattlock ARGS…` says when it ends with `code`.
fn says(place: &Place, code: i32, args: &[&str]) -> String {
    let ended = run(place, args);
    assert_exit(&ended, code);
    stderr(&ended)
}

#[test]
fn a_private_key_in_the_place_of_a_file() {
    let place = Place::new();
    place.container("f", b"text");
    let secret = fs::read_to_string(place.path("key.txt")).unwrap();
    let key = secret.lines().last().unwrap();
    let save = "was given a private key; save the key in a file, and give that file";
    for (args, said) in [
        (&["unprotect", "-o-", "d/f.wlk", "-i", key][..], format!("-i {save}")),
        (&["inspect", "d/f.wlk", "-i", key], format!("-i {save}")),
        (&["protect", "-o-", "key.txt", "-i", key], format!("-i {save}")),
        (&["stream", "--open", "-i", key], format!("-i {save}")),
        (&["keygen", "-y", key], format!("-y {save}")),
        (
            &["protect", "-o-", "key.txt", "-R", key],
            "-R was given a private key; it takes a file of public keys".to_owned(),
        ),
    ] {
        assert_eq!(says(&place, 2, args), format!("wattlock: {said}\n"));
    }
}

#[test]
fn what_is_missing_is_named_once() {
    let place = Place::new();
    let to = place.recipient.clone();
    for (args, said) in [
        (&["verify", "-i", "key.txt", "nofile.wlk"][..], "nofile.wlk: no such file"),
        (&["inspect", "nofile.wlk"], "nofile.wlk: no such file"),
        (&["protect", "-i", "key.txt", "nofile"], "nofile: no such file"),
        (&["rekey", "-i", "key.txt", "-r", &to, "nofile"], "nofile: no such file"),
        (&["verify", "-i", "nokey", "f"], "nokey: no such identity file"),
        (&["keygen", "-y", "nokey"], "nokey: no such identity file"),
        (&["protect", "-R", "nofile", "f"], "nofile: no such recipients file"),
        (&["keygen", "-o", "no/key.txt"], "cannot create no/key.txt: no such directory"),
        (
            &["measure", "--prometheus", "no/x", "--", "true"],
            "cannot write no/x: no such directory",
        ),
    ] {
        assert_eq!(says(&place, 1, args), format!("wattlock: {said}\n"));
    }
}

#[test]
fn a_directory_in_the_place_of_a_file() {
    let place = Place::new();
    let to = place.recipient.clone();
    fs::create_dir(place.path("photos")).unwrap();
    place.container("f", b"text");
    let output =
        "the output photos is a directory; use -o with a file name in it, such as -o photos";
    let rekey = ["rekey", "-i", "key.txt", "-r", &to];
    let containers = "photos is a directory; name the containers in it";
    for (args, said) in [
        (&["keygen", "-o", "photos"][..], format!("{output}/key.txt")),
        (&[&rekey[..], &["d/f.wlk", "-o", "photos"]].concat(), format!("d/f.wlk: {output}/f.wlk")),
        (&[&rekey[..], &["photos"]].concat(), containers.to_owned()),
        (&["inspect", "photos"], containers.to_owned()),
        (
            &["protect", "-i", "key.txt", "key.txt", "--out-dir", "key.txt"],
            "--out-dir takes a directory, and key.txt is none".to_owned(),
        ),
        (
            &["protect", "-i", "key.txt", "/dev/null"],
            "/dev/null is a device or a pipe\n  name its output with -o".to_owned(),
        ),
    ] {
        assert_eq!(says(&place, 2, args), format!("wattlock: {said}\n"));
    }
    assert_exit(&run(&place, &["protect", "-i", "key.txt", "/dev/null", "-o", "empty.wlk"]), 0);
}

#[test]
fn flags_that_do_not_go_together_are_named() {
    let place = Place::new();
    let protect = ["protect", "-i", "key.txt"];
    for (args, said) in [
        (
            &["--recursive", "d", "-oout"][..],
            "--recursive cannot be used with -o; use --out-dir DIR",
        ),
        (&["--resume", "f", "-oout"], "--resume cannot be used with -o; use --out-dir DIR"),
        (
            &["--replace", "-oout"],
            "--replace requires FILE arguments; it cannot be used with standard input",
        ),
        (
            &["--replace", "key.txt", "-o/dev/null"],
            "--replace requires a file to replace the original with; use -o FILE or --out-dir DIR",
        ),
    ] {
        let args = [&protect[..], args].concat();
        assert_eq!(says(&place, 2, &args), format!("wattlock: {said}\n"));
    }
    let verify = ["verify", "-i", "key.txt", "f"];
    let one = "use only one of -p, --passphrase-file, --passphrase-fd and --passphrase-env";
    let no_value = "takes no value: other users would see the passphrase; use";
    for (args, said) in [
        (&["--passphrase-env=hunter2", "--passphrase-file=hunter2"][..], one.to_owned()),
        (&["-p", "--passphrase-fd=3"], one.to_owned()),
        (&["--passphrase=hunter2"], format!("--passphrase {no_value} --passphrase-file")),
        (&["--passphrase-file"], "--passphrase-file requires one value".to_owned()),
    ] {
        let args = [&verify[..], args].concat();
        assert_eq!(says(&place, 2, &args), format!("error: {said}\n"));
    }
    let said = says(&place, 2, &["rekey", "--new-passphrase=hunter2", "f"]);
    assert_eq!(said, format!("error: --new-passphrase {no_value} --new-passphrase-file\n"));
    let alone = "a passphrase cannot be combined with -r, -R or -i; use one or the other";
    assert_eq!(says(&place, 2, &[&protect[..], &["-p"]].concat()), format!("wattlock: {alone}\n"));
}

#[test]
fn a_source_of_a_passphrase_is_named_and_its_value_is_not() {
    let place = Place::new();
    place.write("latin", b"caf\xe9\nsecond\n");
    place.write("utf8", b"caf\xc3\xa9\r\nsecond \xff\n");
    place.write("f", b"text");
    for (flag, code, said) in [
        ("--passphrase-file=hunter2", 1, "--passphrase-file: no such file"),
        ("--passphrase-fd=77", 1, "--passphrase-fd: descriptor 77 is not open"),
        ("--passphrase-fd=27182818", 1, "--passphrase-fd: the descriptor is not open"),
        ("--passphrase-file=latin", 2, "--passphrase-file: the first line is not UTF-8"),
        ("--passphrase-env=NOT_SET", 2, "--passphrase-env: the variable is not set"),
    ] {
        assert_eq!(says(&place, code, &["protect", flag, "f"]), format!("wattlock: {said}\n"));
    }
    let protect = ["protect", "--work-factor=10", "--passphrase-file=utf8", "f"];
    assert_exit(&run(&place, &protect), 0);
    let mut verify = wattlock();
    verify.args(["verify", "--passphrase-env=S", "f.wlk"]).env("S", "café");
    assert_exit(&verify.current_dir(place.path("")).output().unwrap(), 0);
}

#[test]
fn sizes_and_addresses_are_told_their_form() {
    let place = Place::new();
    for (flag, value, said) in [
        (
            "--window",
            "10X",
            "\"10X\" is not a size: use bytes, or a suffix K, M, G or T (K and KiB are 1024)",
        ),
        ("--window", "0", "the size must be at least 1"),
        (
            "--metrics",
            "localhost:9107",
            "\"localhost:9107\" is not IP:PORT, such as 127.0.0.1:9100",
        ),
    ] {
        let refused = says(&place, 2, &["stream", flag, value]);
        assert!(refused.contains(said), "{refused}");
    }
}

#[test]
fn what_keygen_cannot_show_the_recipient_of() {
    let place = Place::new();
    place.write("pub.txt", place.recipient.as_bytes());
    place.write("big", &[0xff; 1000]);
    place.write("empty", b"# nothing\n");
    let files = [
        ("pub.txt", "pub.txt holds a public key already"),
        ("big", "big holds no age or SSH identity"),
        ("empty", "empty holds no identity"),
    ];
    if crate::support::installed("ssh-keygen") {
        for (kind, name) in [("ed25519", "sshk"), ("ecdsa", "ecdsak")] {
            let mut keygen = std::process::Command::new("ssh-keygen");
            keygen.args(["-q", "-t", kind, "-N", "", "-f"]).arg(place.path(name));
            assert!(keygen.status().unwrap().success());
        }
        let shown = run(&place, &["keygen", "-y", "sshk"]);
        let public = fs::read_to_string(place.path("sshk.pub")).unwrap();
        assert!(public.starts_with(stdout(&shown).trim()), "{}", stdout(&shown));
        let said = says(&place, 2, &["verify", "-i", "ecdsak", "f"]);
        assert!(said.contains("SSH keys of type ecdsa-sha2-nistp256 are not supported"), "{said}");
    }
    for (file, said) in files {
        assert_eq!(says(&place, 2, &["keygen", "-y", file]), format!("wattlock: {said}\n"));
    }
}

#[test]
fn a_full_device_is_named() {
    let place = Place::new();
    place.write("f", b"text");
    let said = says(&place, 1, &["protect", "-i", "key.txt", "f", "-o", "/dev/full"]);
    assert_eq!(
        said,
        "wattlock: f: cannot write /dev/full: No space left on device\n  \
         free some space, or choose another output\n"
    );
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    assert_exit(&wattlock().arg("--help").stdout(full()).output().unwrap(), 1);
}

/// The summary has the exit code that the program ends with.
#[test]
fn a_folder_without_containers_fails_in_json_too() {
    let place = Place::new();
    place.write("d/a", b"text");
    for command in ["unprotect", "verify"] {
        let ended = run(&place, &[command, "-i", "key.txt", "--recursive", "--json", "d"]);
        assert_exit(&ended, 1);
        let summary: serde_json::Value = serde_json::from_slice(&ended.stdout).unwrap();
        assert_eq!(summary["exit_code"], 1);
    }
}
