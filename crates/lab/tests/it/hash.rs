//! `wattlock-lab hash`: the digests of OpenSSL, in the form of sha3sum, and their check.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Command;

use wattlock_engine::crypto::{KeccakKernel, ShaKernel};
use wattlock_testing::{Place, assert_exit, has_program, pattern, stderr, stdout, with_input};

use crate::lab;

#[test]
fn many_files_have_the_digests_of_openssl() {
    if !has_program("openssl") {
        return;
    }
    let place = Place::new();
    let lengths = [0, 1, 135, 136, 137, 271, 272, 139_263, 139_264, 139_265, 1_000_003];
    let files: Vec<_> = (0..23)
        .map(|index| {
            place.write(format!("d/{index:02}"), &pattern(lengths[index % 11] + index / 11))
        })
        .collect();
    for (alg, more) in [
        ("-sha3-256", &[][..]),
        ("-sha3-256", &["--threads", "1"]),
        ("-sha3-256", &["--kernel", "keccak-soft"]),
        ("-sha256", &["--alg", "sha256"]),
        ("-sha256", &["--alg", "sha256", "--threads", "1"]),
        ("-sha256", &["--alg", "sha256", "--kernel", "sha-rustcrypto"]),
    ] {
        let hashed = lab().arg("hash").args(more).args(&files).output().unwrap();
        assert_exit(&hashed, 0);
        let mut theirs = Command::new("openssl");
        theirs.args(["dgst", alg, "-r"]).args(&files);
        let expected: Vec<String> = stdout(&theirs.output().unwrap())
            .lines()
            .map(|line| line.replace(" *", "  "))
            .collect();
        assert_eq!(stdout(&hashed).lines().collect::<Vec<_>>(), expected, "{more:?}");
    }
}

#[test]
fn trees_have_their_published_digests_and_threads_do_not_show() {
    let digest = |alg: &str, more: &[&str], input: &[u8]| {
        let hashed = with_input(lab().args(["hash", "--alg", alg]).args(more), input);
        assert_exit(&hashed, 0);
        stdout(&hashed).trim_end_matches("  -\n").to_owned()
    };
    // RFC 9861, section 5: no message.
    assert_eq!(
        digest("kt128", &[], b""),
        "1ac2d450fc3b4205d19da7bfca1b37513c0803577ac7167f06fe2ce1f0ef39e5"
    );
    let message = pattern((20 << 20) + 5);
    for alg in ["kt128", "parallelhash256"] {
        let one = digest(alg, &["--threads", "1", "--kernel", "keccak-soft"], &message);
        assert_eq!(one.len(), 64);
        assert_eq!(digest(alg, &["--threads", "3"], &message), one);
    }
    let blocks = |size| digest("parallelhash256", &["--block-size", size], &message);
    assert_ne!(blocks("8"), blocks("8192"), "the block size is a part of the digest");
}

#[test]
fn a_list_is_checked() {
    let place = Place::new();
    let names = ["plain", "two words", "new\nline", "back\\slash"];
    for name in names {
        place.write(format!("d/{name}"), name.as_bytes());
    }
    let directory = place.path("d");
    let run =
        |args: &[&str]| lab().current_dir(&directory).arg("hash").args(args).output().unwrap();
    let list = run(&names);
    assert_exit(&list, 0);
    std::fs::write(directory.join("list"), &list.stdout).unwrap();
    let checked = run(&["--check", "list"]);
    assert_exit(&checked, 0);
    assert_eq!(stdout(&checked).matches(": OK").count(), 4, "{}", stdout(&checked));
    assert_eq!(stdout(&run(&["--check", "--quiet", "list"])), "");

    place.write("d/plain", b"changed");
    std::fs::remove_file(directory.join("two words")).unwrap();
    let checked = run(&["--check", "list"]);
    assert_exit(&checked, 1);
    assert!(stdout(&checked).contains("plain: FAILED\n"));
    assert!(stdout(&checked).contains("two words: FAILED open or read"));
    assert!(stderr(&checked).contains("1 computed digest did NOT match"));
    assert!(!stderr(&checked).contains("another --alg"), "others matched");
    let with_another = run(&["--alg", "sha256", "--check", "list"]);
    assert_exit(&with_another, 1);
    let hint = "no digest matched: were they made with another --alg?";
    assert!(stderr(&with_another).contains(hint), "{}", stderr(&with_another));

    let with_nonsense = [&list.stdout[..], b"nonsense\n"].concat();
    place.write("d/plain", b"plain");
    place.write("d/two words", b"two words");
    place.write("d/list", &with_nonsense);
    let checked = run(&["--check", "list"]);
    assert_exit(&checked, 1);
    assert!(stderr(&checked).contains("skipped 1 line without a digest"));
    assert_exit(&run(&["--alg", "kt128", "--block-size", "8", "plain"]), 2);
    place.write("d/list", b"this is no list\n");
    assert_exit(&run(&["--check", "list"]), 1);
    assert_exit(&run(&["missing", "plain"]), 1);
    assert!(stdout(&run(&["missing", "plain"])).ends_with("  plain\n"));
    assert_exit(&run(&["."]), 1);
    assert_exit(&run(&["--alg", "md5", "plain"]), 2);
    assert_exit(&run(&["--alg", "parallelhash256", "--block-size", "0", "plain"]), 2);
    assert_exit(&run(&["--kernel", "keccak-abacus", "plain"]), 2);
    let refused = run(&["--alg", "sha256", "--kernel", "keccak-soft", "plain"]);
    assert_exit(&refused, 2);
    let why = "sha256 cannot use the kernel keccak-soft; the kernels are sha-rustcrypto";
    assert!(stderr(&refused).contains(why), "{}", stderr(&refused));
    assert_exit(&run(&["-", "-"]), 2);
}

#[test]
fn the_help_names_the_kernels() {
    let help = stdout(&lab().args(["hash", "--help"]).output().unwrap());
    for name in KeccakKernel::NAMES.iter().chain(&ShaKernel::NAMES) {
        assert!(help.contains(name), "{name}: {help}");
    }
}
