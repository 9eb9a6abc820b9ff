//! Two outputs of one run that are one file: the second is refused, and no original is lost.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::Path;
use std::process::Output;

use crate::support::fuse::Mounted;
use crate::support::{Place, assert_exit, stderr, wattlock};

/// `wattlock COMMAND -f ARGS…` in the folder of the place.
fn forced(place: &Place, command: &str, args: &[&str]) -> Output {
    let mut run = wattlock();
    let key = if command == "protect" { ["-r", &place.recipient] } else { ["-i", "key.txt"] };
    run.arg(command).arg("-f").args(key).args(args).current_dir(place.path("")).output().unwrap()
}

/// A container of `text` at `path`, without the plain file.
fn sealed(place: &Place, path: &str, text: &str) {
    place.write("plain", text.as_bytes());
    let format = if path.ends_with(".age") { "--format=age" } else { "--format=wattlock" };
    let path = place.path(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let made = ["-f".as_ref(), "-o".as_ref(), path.as_os_str(), format.as_ref(), "plain".as_ref()];
    let mut protect = wattlock();
    protect.args(["protect", "-r", &place.recipient]).args(made).current_dir(place.path(""));
    assert_exit(&protect.output().unwrap(), 0);
}

/// What is left of `texts`: as plain files, and in containers that are there.
fn left(place: &Place, plain: &[&str], containers: &[&str]) -> Vec<String> {
    let mut left: Vec<String> =
        plain.iter().filter_map(|file| fs::read_to_string(place.path(file)).ok()).collect();
    for container in containers.iter().map(|path| place.path(path)).filter(|path| path.exists()) {
        let opened = place.open("unprotect", &["-o-".as_ref(), container.as_os_str()]);
        assert_exit(&opened, 0);
        left.push(String::from_utf8(opened.stdout).unwrap());
    }
    left.sort();
    left.dedup();
    left
}

/// One of the two tasks was refused, for what it is.
fn assert_one_refused(ran: &Output) {
    assert_exit(ran, 1);
    let said = stderr(ran);
    assert!(said.contains("which this run wrote"), "{said}");
}

#[test]
fn two_spellings_of_one_output_lose_nothing() {
    for replace in [&[][..], &["--replace"]] {
        let place = Place::new();
        sealed(&place, "d/a.wlk", "one");
        sealed(&place, "d/a.age", "two");
        let args = [replace, &["d/a.wlk", "./d/a.age"]].concat();
        assert_one_refused(&forced(&place, "unprotect", &args));
        assert_eq!(left(&place, &["d/a"], &["d/a.wlk", "d/a.age"]), ["one", "two"]);
        // The output that was there is not what counts: it may be replaced, and once only.
        fs::write(place.path("d/a"), "old").unwrap();
        sealed(&place, "d/a.wlk", "one");
        sealed(&place, "d/a.age", "two");
        assert_one_refused(&forced(&place, "unprotect", &args));
        assert_eq!(left(&place, &["d/a"], &["d/a.wlk", "d/a.age"]), ["one", "two"]);
    }
}

/// The outputs become durable and named group by group.
#[test]
fn an_output_of_an_earlier_group_is_not_replaced() {
    let place = Place::new();
    sealed(&place, "d/a.wlk", "one");
    sealed(&place, "d/a.age", "two");
    let others: Vec<String> = (0..300).map(|number| format!("d/other-{number}.wlk")).collect();
    let one = fs::read(place.path("d/a.wlk")).unwrap();
    for other in &others {
        fs::write(place.path(other), &one).unwrap();
    }
    let others = others.iter().map(String::as_str);
    let args: Vec<&str> = ["--replace", "--threads=1", "d/a.wlk"]
        .into_iter()
        .chain(others)
        .chain(["./d/a.age"])
        .collect();
    assert_one_refused(&forced(&place, "unprotect", &args));
    assert_eq!(left(&place, &["d/a"], &["d/a.wlk", "d/a.age"]), ["one", "two"]);
    assert_eq!(place.names().iter().filter(|name| name.starts_with("other-")).count(), 300);
}

/// As with names in other cases on a file system that folds them: the folder has two addresses, with
/// other devices and inodes, and only what stood at the name before tells the outputs apart.
#[test]
fn one_folder_under_two_addresses_loses_nothing() {
    for replace in [&[][..], &["--replace"]] {
        let place = Place::new();
        let Some(_mounted) = Mounted::new(&place, &[]) else { return };
        for existing in [false, true] {
            sealed(&place, "beneath/a.wlk", "one");
            sealed(&place, "beneath/a.age", "two");
            if existing {
                fs::write(place.path("beneath/a"), "old").unwrap();
            }
            let args = [replace, &["beneath/a.wlk", "fuse/a.age"]].concat();
            let ran = forced(&place, "unprotect", &args);
            assert_exit(&ran, 1);
            assert_eq!(
                left(&place, &["beneath/a"], &["beneath/a.wlk", "beneath/a.age"]),
                ["one", "two"]
            );
            fs::remove_file(place.path("beneath/a")).unwrap();
        }
    }
}

#[test]
fn two_originals_for_one_container_lose_nothing() {
    let place = Place::new();
    for (folder, text) in [("one", "first"), ("two", "second")] {
        fs::create_dir(place.path(folder)).unwrap();
        place.write(format!("{folder}/f"), text.as_bytes());
    }
    fs::create_dir(place.path("out")).unwrap();
    fs::create_dir(place.path("out/one")).unwrap();
    std::os::unix::fs::symlink("one", place.path("out/two")).unwrap();
    let args = ["--replace", "--recursive", "--out-dir", "out", "one", "two"];
    assert_exit(&forced(&place, "protect", &args), 1);
    let texts = left(&place, &["one/f", "two/f"], &["out/one/f.wlk"]);
    assert_eq!(texts, ["first", "second"]);
}

/// An input that would be overwritten by another output is refused, by whatever name it has.
#[test]
fn an_input_under_another_name_is_not_overwritten() {
    let place = Place::new();
    place.write("d/a", b"plain");
    sealed(&place, "d/a.wlk", "sealed");
    assert_exit(&forced(&place, "protect", &["d/a", "./d/a.wlk"]), 2);
    assert_eq!(left(&place, &["d/a"], &["d/a.wlk"]), ["plain", "sealed"]);
    fs::rename(place.path("d/a.wlk"), place.path("d/inner")).unwrap();
    let inner = place.path("d/inner");
    assert_exit(
        &place.protect(&["-o".as_ref(), place.path("d/b.wlk.wlk").as_os_str(), inner.as_os_str()]),
        0,
    );
    sealed(&place, "d/b.wlk", "other");
    assert_exit(&forced(&place, "unprotect", &["--replace", "d/b.wlk.wlk", "./d/b.wlk"]), 2);
    assert!(Path::new(&place.path("d/b.wlk.wlk")).exists());
    assert_eq!(left(&place, &[], &["d/b.wlk"]), ["other"]);
}

/// The signature of an output that stays is not lost to the one that is refused.
#[test]
fn a_refused_output_takes_no_signature_along() {
    if !crate::support::installed("ssh-keygen") {
        return;
    }
    let place = Place::new();
    let mut keygen = std::process::Command::new("ssh-keygen");
    keygen.args(["-q", "-N", "", "-t", "ed25519", "-f"]).arg(place.path("id"));
    assert!(keygen.status().unwrap().success());
    let Some(_mounted) = Mounted::new(&place, &[]) else { return };
    place.write("beneath/f", b"first");
    let args = ["--sign", "id", "--replace", "beneath/f", "fuse/f"];
    let ran = forced(&place, "protect", &args);
    assert_exit(&ran, 1);
    let signed = place.path("beneath/f.wlk.sig");
    assert!(signed.exists() == place.path("beneath/f.wlk").exists(), "{}", stderr(&ran));
    assert_eq!(left(&place, &["beneath/f"], &["beneath/f.wlk"]), ["first"]);
}
