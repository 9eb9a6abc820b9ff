//! File systems that can do less: no nameless files, no rename without replacing, no hard links, no
//! lists of attributes. So are mounts of rclone, and memory sticks over FUSE.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::{Command, Output};

use wattlock_testing::{has_program, skip};

use crate::support::fuse::Mounted;
use crate::support::{Place, assert_exit, names, stderr, wattlock};

/// Runs `wattlock ARGS…` with the system calls of `faults` failing, as strace's `inject` says it.
fn faulty(place: &Place, faults: &[&str], args: &[&str]) -> Output {
    let mut strace = Command::new("strace");
    strace.args(["-fqq", "-o", "/dev/null", "-e", "trace=linkat,renameat2,flistxattr"]);
    strace.args(faults.iter().flat_map(|fault| ["-e".to_owned(), format!("inject={fault}")]));
    strace.arg(wattlock().get_program()).args(args).current_dir(place.path("")).output().unwrap()
}

/// A place with a FUSE file system at `fuse`, if strace can be used, too.
fn place() -> Option<(Place, Mounted)> {
    if !has_program("strace") {
        return None;
    }
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output().unwrap();
    if !traced.status.success() {
        skip("ptrace", stderr(&traced));
        return None;
    }
    let place = Place::new();
    let mounted = Mounted::new(&place, &[])?;
    Some((place, mounted))
}

#[test]
fn outputs_appear_where_nothing_links() {
    let Some((place, mounted)) = place() else { return };
    let folder = mounted.folder();
    for faults in [
        &["renameat2:error=EINVAL", "linkat:error=EIO"][..],
        &["renameat2:error=EINVAL", "linkat:error=EPERM", "flistxattr:error=EIO"],
        &["renameat2:error=EIO", "linkat:error=EINVAL", "flistxattr:error=EOPNOTSUPP"],
    ] {
        fs::write(folder.join("f"), "text").unwrap();
        let run = |args: &[&str]| faulty(&place, faults, args);
        let recipient = &*place.recipient;
        assert_exit(&run(&["protect", "-r", recipient, "fuse/f"]), 0);
        assert_eq!(names(folder), ["f", "f.wlk"], "{faults:?}");
        // What is there is neither replaced nor removed.
        let before = fs::read(folder.join("f.wlk")).unwrap();
        assert_exit(&run(&["protect", "-r", recipient, "fuse/f"]), 1);
        assert!(fs::read(folder.join("f.wlk")).unwrap() == before);
        assert_exit(&run(&["protect", "-f", "--replace", "-r", recipient, "fuse/f"]), 0);
        assert_eq!(names(folder), ["f.wlk"], "{faults:?}");
        assert_exit(&run(&["rekey", "-r", recipient, "-i", "key.txt", "fuse/f.wlk"]), 0);
        assert_exit(&run(&["unprotect", "--replace", "-i", "key.txt", "fuse/f.wlk"]), 0);
        assert_eq!(names(folder), ["f"], "{faults:?}");
        assert_eq!(fs::read_to_string(folder.join("f")).unwrap(), "text");
    }
}

/// Another file takes the name while the program looks for a way: it stays.
#[test]
fn a_name_that_is_taken_meanwhile_is_not_replaced() {
    let Some((place, mounted)) = place() else { return };
    place.write("f", b"text");
    let taken = ["renameat2:error=EINVAL", "linkat:error=EEXIST"];
    let ran =
        faulty(&place, &taken, &["protect", "-r", &place.recipient, "--out-dir", "fuse", "f"]);
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("exists already"), "{}", stderr(&ran));
    assert!(names(mounted.folder()).is_empty());
}
