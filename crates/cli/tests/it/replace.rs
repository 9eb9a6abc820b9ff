//! `--replace` and what a file has besides its bytes: other names, ACLs, extended attributes, setuid.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

use wattlock_testing::{has_program, rust_library, skip};

use crate::support::fuse::Mounted;
use crate::support::{Place, assert_exit, names, pattern, stderr, stdout, wattlock};

/// A GPU whose keystream is wrong in the same way when it seals and when it opens: it would read back
/// what it wrote without noticing. The CPU does notice, before the original goes.
#[test]
fn what_a_gpu_made_is_read_back_by_the_cpu() {
    let place = Place::new();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../gpu/tests/it/cuda/fake.rs");
    let library = place.path("libcuda.so.1");
    fs::copy(rust_library("cuda_fake", &source, folder), &library).unwrap();
    // Longer chunks than in the test that a device has to pass before it is used.
    place.write("faults", b"bent 8000\n");
    let plain = pattern(1 << 20);
    let with_gpu = |command: &str, file: &Path| {
        let mut program = wattlock();
        program.env("WATTLOCK_LIBCUDA", &library).env("WATTLOCK_CACHE", place.path("cache"));
        program.args([command, "--replace", "--device=cuda", "-i"]).arg(place.path("key.txt"));
        program.arg(file).output().unwrap()
    };
    let file = place.write("d/f", &plain);
    let made = with_gpu("protect", &file);
    let done = made.status.success();
    assert!(done || stderr(&made).contains("does not match"), "{}", stderr(&made));
    // Either the original, or a container that the CPU opens to the same.
    assert_eq!(place.names(), [if done { "f.wlk" } else { "f" }], "{}", stderr(&made));
    if done {
        assert_exit(&place.open("unprotect", &[place.path("d/f.wlk")]), 0);
    }
    assert!(fs::read(&file).unwrap() == plain);
    // The other way: a sound container, which the device opens to something else.
    let _ = fs::remove_file(place.path("d/f.wlk"));
    fs::remove_file(&file).unwrap();
    let sealed = place.container("f", &plain);
    let opened = with_gpu("unprotect", &sealed);
    let done = opened.status.success();
    assert_eq!(place.names(), [if done { "f" } else { "f.wlk" }], "{}", stderr(&opened));
    if !done {
        assert!(stderr(&opened).contains("does not match"), "{}", stderr(&opened));
        assert_exit(&place.open("unprotect", &[&sealed]), 0);
    }
    assert!(fs::read(place.path("d/f")).unwrap() == plain);
}

fn replace(place: &Place, file: &Path) -> Output {
    place.protect(&["--replace".as_ref(), file.as_os_str()])
}

fn put_back(place: &Place, sealed: &Path) -> Output {
    place.open("unprotect", &["--replace".as_ref(), sealed.as_os_str()])
}

/// What `program` prints of `file`.
fn shown(program: &str, args: &[&str], file: &Path) -> String {
    let ran = Command::new(program).args(args).arg(file).output().unwrap();
    assert!(ran.status.success(), "{program}: {}", stderr(&ran));
    stdout(&ran)
}

/// Runs `program`; true if it could do what it was asked for.
fn could(program: &str, args: &[&str], file: &Path) -> bool {
    Command::new(program).args(args).arg(file).output().unwrap().status.success()
}

fn acl(file: &Path) -> String {
    shown("getfacl", &["--omit-header", "--absolute-names", "--numeric"], file)
}

/// True if the tools are here and the file system of `file` has ACLs and extended attributes.
fn has_attributes(file: &Path) -> bool {
    if !has_program("setfacl") || !has_program("setfattr") {
        return false;
    }
    let here = could("setfattr", &["-n", "user.probe", "-v", "1"], file)
        && could("setfacl", &["-m", "u:12345:r"], file);
    if !here {
        skip("xattr", "the folder of temporary files has no ACLs or extended attributes");
        return false;
    }
    could("setfattr", &["-x", "user.probe"], file) && could("setfacl", &["-b"], file)
}

#[test]
fn a_hard_link_is_refused_and_named() {
    let place = Place::new();
    let (linked, other) = (place.write("d/linked", b"secret"), place.write("d/other", b"text"));
    fs::hard_link(&linked, place.path("second-name")).unwrap();
    let args = ["--replace".as_ref(), linked.as_os_str(), other.as_os_str()];
    let made = place.protect(&args);
    assert_exit(&made, 1);
    let said = stderr(&made);
    assert!(said.contains("d/linked") && said.contains("2 hard links"), "{said}");
    // The other file is done; of this one nothing was made and nothing removed.
    assert_eq!(place.names(), ["linked", "other.wlk"]);
    // A container may have two names: the other one keeps no plaintext.
    let sealed = place.path("d/other.wlk");
    fs::hard_link(&sealed, place.path("backup.wlk")).unwrap();
    assert_exit(&put_back(&place, &sealed), 0);
    assert_eq!(fs::read(&other).unwrap(), b"text");
}

#[test]
fn setuid_setgid_and_sticky_bits_are_refused_and_named() {
    let place = Place::new();
    for mode in [0o4755, 0o2755, 0o1644] {
        let file = place.write("d/program", b"#!/bin/sh\n");
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let made = replace(&place, &file);
        assert_exit(&made, 1);
        let said = stderr(&made);
        assert!(said.contains("d/program") && said.contains(&format!("{mode:04o}")), "{said}");
        assert_eq!(place.names(), ["program"]);
    }
    let sealed = place.container("f", b"text");
    fs::set_permissions(&sealed, fs::Permissions::from_mode(0o4755)).unwrap();
    assert_exit(&put_back(&place, &sealed), 1);
    assert_eq!(place.names(), ["f.wlk", "program"]);
}

#[test]
fn acls_and_extended_attributes_come_back() {
    let place = Place::new();
    let file = place.write("d/f", &pattern(100_000));
    if !has_attributes(&file) {
        return;
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(could("setfacl", &["-m", "u:12345:rw,g:54321:r"], &file));
    assert!(could("setfattr", &["-n", "user.origin", "-v", "https://example.org/"], &file));
    let origin = |file: &Path| {
        let args = ["--absolute-names", "--only-values", "-n", "user.origin"];
        assert_eq!(shown("getfattr", &args, file), "https://example.org/");
    };
    let before = acl(&file);
    assert!(before.contains("user:12345:rw-"), "{before}");
    for _ in 0..2 {
        assert_exit(&replace(&place, &file), 0);
        let sealed = place.path("d/f.wlk");
        assert_eq!(acl(&sealed), before);
        origin(&sealed);
        let to = ["-r".as_ref(), place.recipient.as_ref(), sealed.as_os_str()];
        assert_exit(&place.open("rekey", &to), 0);
        assert_eq!(acl(&sealed), before);
        origin(&sealed);
        assert_exit(&put_back(&place, &sealed), 0);
        assert_eq!(place.names(), ["f"]);
        assert_eq!(acl(&file), before);
        origin(&file);
        assert!(fs::read(&file).unwrap() == pattern(100_000));
    }
}

/// Under an ACL, the group bits of the mode are its mask's, not the owning group's.
#[test]
fn a_copy_without_the_acl_does_not_let_the_group_in() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    if !has_attributes(&file) {
        return;
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    assert!(could("setfacl", &["-m", "u:12345:rw"], &file));
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&file), 0o660);
    for format in ["wattlock", "age"] {
        let (sealed, out) = (place.path(format), place.path(format!("{format}.out")));
        let args = [format!("--format={format}").into(), "-o".into(), sealed.clone().into()];
        assert_exit(&place.protect(&[&args[..], &[file.clone().into_os_string()]].concat()), 0);
        assert_exit(
            &place.open("unprotect", &["-o".as_ref(), out.as_os_str(), sealed.as_os_str()]),
            0,
        );
        assert_eq!((mode(&sealed), mode(&out)), (0o600, 0o600), "{format}");
    }
}

/// With --resume, the container was made before: what it lacks would go with the original.
#[test]
fn a_kept_container_replaces_only_an_original_without_more() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    if !has_attributes(&file) {
        return;
    }
    let key = place.path("key.txt");
    assert_exit(&place.protect(&["-i".as_ref(), key.as_os_str(), file.as_os_str()]), 0);
    let resume = || {
        let args = ["--replace".as_ref(), "--resume".as_ref(), "-i".as_ref(), key.as_os_str()];
        place.protect(&[&args[..], &[file.as_os_str()]].concat())
    };
    assert!(could("setfattr", &["-n", "user.origin", "-v", "here"], &file));
    let refused = resume();
    assert_exit(&refused, 1);
    assert!(stderr(&refused).contains("user.origin"), "{}", stderr(&refused));
    assert!(could("setfattr", &["-x", "user.origin"], &file));
    fs::hard_link(&file, place.path("second-name")).unwrap();
    assert_exit(&resume(), 1);
    assert_eq!(place.names(), ["f", "f.wlk"]);
    fs::remove_file(place.path("second-name")).unwrap();
    assert_exit(&resume(), 0);
    assert_eq!(place.names(), ["f.wlk"]);
}

/// A folder may give new files an ACL; a file that has none does not get one by being replaced.
#[test]
fn an_acl_of_the_folder_lets_no_other_user_in() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    if !has_attributes(&file) {
        return;
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    assert!(could("setfacl", &["-d", "-m", "u:12345:rw"], &place.path("d")));
    let before = acl(&file);
    assert!(!before.contains("12345"), "{before}");
    assert_exit(&replace(&place, &file), 0);
    assert_eq!(acl(&place.path("d/f.wlk")), before);
    assert_exit(&put_back(&place, &place.path("d/f.wlk")), 0);
    assert_eq!(acl(&file), before);
}

/// What the target's file system cannot keep is not dropped: the original stays.
#[test]
fn attributes_that_cannot_be_copied_keep_the_original() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    if !has_attributes(&file) {
        return;
    }
    let Some(mounted) = Mounted::new(&place, &["--xattr-none"]) else { return };
    assert!(could("setfattr", &["-n", "user.origin", "-v", "here"], &file));
    let plain = place.write("d/plain", b"no attributes");
    let folder = mounted.folder();
    let made = place.protect(&[
        "--replace".as_ref(),
        "--out-dir".as_ref(),
        folder.as_os_str(),
        file.as_os_str(),
        plain.as_os_str(),
    ]);
    assert_exit(&made, 1);
    let said = stderr(&made);
    assert!(said.contains("user.origin") && said.contains("d/f"), "{said}");
    assert!(said.contains("leave out --replace"), "{said}");
    assert_eq!((place.names(), names(folder)), (vec!["f".into()], vec!["plain.wlk".to_owned()]));
}
