//! What is left behind on a file system without nameless files, as FUSE's are.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use wattlock_testing::wait_until;

use crate::support::fuse::Mounted;
use crate::support::{Place, assert_exit, names, pattern, stderr, wattlock};

/// A `protect` of standard input to `output`, which has written something and waits for more.
fn half_done(place: &Place, output: &Path) -> Child {
    let mut child = wattlock()
        .args(["protect", "-r", &place.recipient, "-", "-o"])
        .arg(output)
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.as_mut().unwrap().write_all(&pattern(100_000)).unwrap();
    child
}

fn temporaries(folder: &Path) -> Vec<String> {
    let is_temporary = |name: &String| name.starts_with(".wattlock-") && name.ends_with(".tmp");
    names(folder).into_iter().filter(is_temporary).collect()
}

#[test]
fn on_fuse_outputs_are_whole_or_not_there() {
    let place = Place::new();
    let Some(mounted) = Mounted::new(&place, &[]) else { return };
    let folder = mounted.folder();
    let file = folder.join("f");
    fs::write(&file, pattern(300_000)).unwrap();
    let replace = |path: &Path| [OsStr::new("--replace").to_owned(), path.into()];
    assert_exit(&place.protect(&replace(&file)), 0);
    assert_eq!(names(folder), ["f.wlk"]);
    assert_exit(&place.open("unprotect", &[folder.join("f.wlk")]), 0);
    assert!(fs::read(&file).unwrap() == pattern(300_000));
    // An output that is there is kept, or replaced whole.
    assert_exit(&place.protect(&[&file]), 1);
    assert_exit(&place.protect(&[OsStr::new("-f"), file.as_os_str()]), 0);
    let mut damaged = fs::read(folder.join("f.wlk")).unwrap();
    damaged[200_000] ^= 1;
    fs::write(folder.join("f.wlk"), damaged).unwrap();
    fs::remove_file(&file).unwrap();
    assert_exit(&place.open("unprotect", &[folder.join("f.wlk")]), 3);
    assert_eq!(names(folder), ["f.wlk"]);
    // A signal that can be caught leaves nothing.
    let mut child = half_done(&place, &folder.join("out"));
    wait_until("there is a temporary file", || temporaries(folder).len() == 1);
    // Waiting closes its standard input, unless that is held: it would end by itself.
    let input = child.stdin.take();
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().signal(), Some(15));
    drop(input);
    assert_eq!(names(folder), ["f.wlk"]);
}

#[test]
fn on_fuse_the_next_run_removes_what_a_killed_one_left() {
    let place = Place::new();
    let Some(mounted) = Mounted::new(&place, &[]) else { return };
    let folder = mounted.folder();
    let mut killed = half_done(&place, &folder.join("killed"));
    wait_until("the first has a temporary file", || temporaries(folder).len() == 1);
    killed.kill().unwrap();
    killed.wait().unwrap();
    assert_eq!(temporaries(folder).len(), 1, "{:?}", names(folder));
    // A tree is protected without the leavings.
    fs::write(folder.join("f"), b"text").unwrap();
    let out = place.path("out");
    let args = ["--recursive".as_ref(), "--out-dir".as_ref(), out.as_os_str(), folder.as_os_str()];
    let made = place.protect(&args);
    assert_exit(&made, 0);
    assert!(
        stderr(&made).contains("skipped 1 unfinished output of another run: that run removes it"),
        "{}",
        stderr(&made)
    );
    assert_eq!(names(&out.join("fuse")), ["f.wlk"]);
    // The next run that writes there removes them, and leaves alone what another is writing.
    let mut alive = half_done(&place, &folder.join("alive"));
    wait_until("only the second has one", || {
        let number = alive.id().to_string();
        matches!(&temporaries(folder)[..], [name] if name.contains(&number))
    });
    assert_exit(&place.protect(&[folder.join("f")]), 0);
    assert_eq!(temporaries(folder).len(), 1, "{:?}", names(folder));
    drop(alive.stdin.take());
    assert!(alive.wait().unwrap().success());
    assert_eq!(names(folder), ["alive", "f", "f.wlk"]);
    assert_exit(&place.open("verify", &[folder.join("alive")]), 0);
}
