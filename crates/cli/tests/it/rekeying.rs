//! `rekey`: of trees, with a new data key, with a summary.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Output;

use wattlock_file::{Input, data_key};

use crate::support::{Place, assert_exit, pattern, stderr, stdout, wattlock};

fn rekey(place: &Place, args: &[&str]) -> Output {
    let mut command = wattlock();
    command.current_dir(place.path("")).args(["rekey", "-i", "key.txt"]).args(args);
    command.output().unwrap()
}

fn verify(place: &Place, key: &str, file: &Path) -> i32 {
    let mut command = wattlock();
    command.current_dir(place.path("")).args(["verify", "-i", key]).arg(file);
    command.output().unwrap().status.code().unwrap()
}

/// The data key of a container, as hexadecimal digits.
fn key_of(place: &Place, key: &str, file: &Path) -> String {
    let text = fs::read_to_string(place.path(key)).unwrap();
    let line = text.lines().find(|line| line.starts_with("AGE-SECRET-KEY-")).unwrap();
    let identity: wattlock_file::NativeIdentity = line.parse().unwrap();
    let identities = wattlock_file::Identities::new(vec![identity.into()]);
    let (key, _) = data_key(&Input::Path(file.to_owned()), &identities).unwrap();
    key.expose().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn reseal_changes_the_key_and_rekey_says_that_it_does_not() {
    let place = Place::new();
    let new = place.keygen("new.txt");
    for len in [0, 1, 16_383, 16_384, 3 << 20] {
        let file = place.container("f", &pattern(len));
        let old_key = key_of(&place, "key.txt", &file);
        let made = rekey(&place, &["-r", &new, "d/f.wlk", "-o", "plain-rekey.wlk"]);
        assert_exit(&made, 0);
        assert!(stderr(&made).contains("removed recipient"), "{}", stderr(&made));
        assert_eq!(key_of(&place, "new.txt", &place.path("plain-rekey.wlk")), old_key);

        let made = rekey(&place, &["-r", &new, "--reseal", "d/f.wlk"]);
        assert_exit(&made, 0);
        assert!(!stderr(&made).contains("removed recipient"), "{}", stderr(&made));
        assert_ne!(key_of(&place, "new.txt", &file), old_key);
        assert_eq!((verify(&place, "key.txt", &file), verify(&place, "new.txt", &file)), (3, 0));
        let args = ["unprotect", "-i", "new.txt", "-o", "out", "d/f.wlk"];
        let opened = wattlock().current_dir(place.path("")).args(args).output().unwrap();
        assert_exit(&opened, 0);
        assert!(fs::read(place.path("out")).unwrap() == pattern(len), "{len}");
        for made in ["out", "plain-rekey.wlk", "d/f.wlk"] {
            fs::remove_file(place.path(made)).unwrap();
        }
    }
}

#[test]
fn a_resealed_container_keeps_its_format_and_what_is_sealed_in_it() {
    let place = Place::new();
    let file = place.write("f", &pattern(200_000));
    for (format, suffix) in [("wattlock", "wlk"), ("age", "age")] {
        assert_exit(
            &place.protect(
                &["--format", format, "f"]
                    .map(|a| if a == "f" { file.to_str().unwrap() } else { a }),
            ),
            0,
        );
        let sealed = format!("f.{suffix}");
        let before = fs::read(place.path(&sealed)).unwrap();
        let recipient = place.recipient.clone();
        assert_exit(&rekey(&place, &["-r", &recipient, "--reseal", &sealed]), 0);
        let after = fs::read(place.path(&sealed)).unwrap();
        let first_line = |bytes: &[u8]| bytes.split(|&b| b == b'\n').next().unwrap().to_vec();
        assert_eq!(first_line(&before), first_line(&after));
        // Nothing of the payload is as it was.
        let tail = |bytes: &[u8]| bytes[bytes.len() - 100_000..].to_vec();
        assert_ne!(tail(&before)[..1000], tail(&after)[..1000]);
        let shown = place.open("inspect", &[place.path(&sealed)]);
        assert_eq!(
            stdout(&shown).contains("name      f") || stdout(&shown).contains("name"),
            suffix == "wlk"
        );
        assert_exit(&place.open("unprotect", &[Path::new("-f"), &place.path(&sealed)]), 0);
        assert!(fs::read(&file).unwrap() == pattern(200_000));
    }
}

#[test]
fn damage_stops_a_reseal_and_leaves_the_container() {
    let place = Place::new();
    let file = place.container("f", &pattern(100_000));
    let mut bytes = fs::read(&file).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&file, &bytes).unwrap();
    let recipient = place.recipient.clone();
    assert_exit(&rekey(&place, &["-r", &recipient, "--reseal", "d/f.wlk"]), 3);
    assert!(fs::read(&file).unwrap() == bytes);
    assert_eq!(place.names(), ["f.wlk"]);
}

#[test]
fn a_tree_gets_new_recipients() {
    let place = Place::new();
    let new = place.keygen("new.txt");
    fs::create_dir_all(place.path("tree/sub")).unwrap();
    for name in ["tree/a", "tree/sub/b"] {
        let file = place.write(name, b"text");
        assert_exit(&place.protect(&[file.to_str().unwrap(), "--replace"]), 0);
    }
    place.write("tree/notes", b"not a container");
    let made = rekey(&place, &["-r", &new, "--recursive", "--json", "tree"]);
    assert_exit(&made, 0);
    let json: serde_json::Value = serde_json::from_str(&stdout(&made)).unwrap();
    assert_eq!(json["command"], "rekey");
    assert_eq!(json["files"].as_array().unwrap().len(), 2);
    assert_eq!(json["skipped"][0]["input"], "tree/notes");
    for name in ["tree/a.wlk", "tree/sub/b.wlk"] {
        assert_eq!(verify(&place, "new.txt", Path::new(name)), 0);
        assert_eq!(verify(&place, "key.txt", Path::new(name)), 3);
    }
    // The old key opens none of them now.
    assert_exit(&rekey(&place, &["-r", &new, "--recursive", "tree"]), 3);
    fs::create_dir(place.path("empty")).unwrap();
    assert_exit(&rekey(&place, &["-r", &new, "--recursive", "empty"]), 1);
    assert_exit(&rekey(&place, &["-r", &new, "tree"]), 2);
}

/// The other link would keep the old recipients.
#[test]
fn a_container_with_two_links_is_refused_and_named() {
    let place = Place::new();
    let new = place.keygen("new.txt");
    let file = place.container("f", b"text");
    fs::hard_link(&file, place.path("second-name")).unwrap();
    let before = fs::read(&file).unwrap();
    for reseal in [&[][..], &["--reseal"]] {
        let made = rekey(&place, &[&["-r", &new, "d/f.wlk"], reseal].concat());
        assert_exit(&made, 1);
        assert!(stderr(&made).contains("d/f.wlk: it has 2 hard links"), "{}", stderr(&made));
        assert!(fs::read(&file).unwrap() == before);
    }
    // Another file is made of it all the same.
    assert_exit(&rekey(&place, &["-r", &new, "-o", "new.wlk", "d/f.wlk"]), 0);
    fs::remove_file(place.path("second-name")).unwrap();
    assert_exit(&rekey(&place, &["-r", &new, "d/f.wlk"]), 0);
    assert_eq!(verify(&place, "new.txt", &file), 0);
}
