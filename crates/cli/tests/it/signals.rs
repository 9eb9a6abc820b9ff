//! Programs that are ended in the middle, and two at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{
    Place, SPARSE_LEN, assert_exit, installed, pattern, signal, stderr, stdout,
    stopped_in_the_middle, wattlock,
};

/// A `protect` of a stream that has taken a few megabytes and waits for more.
fn in_the_middle_of_a_stream(place: &Place, output: &Path) -> (Child, std::process::ChildStdin) {
    let mut child = wattlock()
        .args(["protect", "-r", &place.recipient, "-o"])
        .arg(output)
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than the pipe and the program's buffers hold: when this returns, it has written.
    stdin.write_all(&pattern(20 << 20)).unwrap();
    (child, stdin)
}

#[test]
fn an_interrupt_leaves_nothing() {
    for (name, number) in [("-INT", 2), ("-TERM", 15), ("-HUP", 1)] {
        let place = Place::new();
        let (child, stdin) = in_the_middle_of_a_stream(&place, &place.path("d/out"));
        signal(&child, name);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(number), "{}", stderr(&output));
        assert!(place.names().is_empty(), "{name}: {:?}", place.names());
        drop(stdin);
    }
}

/// A shell goes on with its loop after Ctrl-C, unless the program in it was ended by SIGINT.
#[test]
fn ctrl_c_ends_the_loop_of_a_shell() {
    if !installed("bash") {
        return;
    }
    let place = Place::new();
    let script = r#"for f in a b c; do "$0" protect -r "$1" -o "$2"; echo "went on"; done"#;
    let mut shell = Command::new("bash")
        .args(["-c", script])
        .args([env!("CARGO_BIN_EXE_wattlock"), &place.recipient])
        .arg(place.path("d/out"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut stdin = shell.stdin.take().unwrap();
    // More than the pipe and the program's buffers hold.
    stdin.write_all(&pattern(20 << 20)).unwrap();
    // As a terminal does, to all of the foreground.
    let group = format!("-{}", shell.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let output = shell.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "");
    assert_eq!(output.status.signal(), Some(2), "{}", output.status);
    assert!(place.names().is_empty(), "{:?}", place.names());
    drop(stdin);
}

/// The same where it is the command that `wattlock measure` runs that ends.
#[test]
fn ctrl_c_ends_the_loop_of_a_shell_that_measures() {
    if !installed("bash") {
        return;
    }
    let script =
        r#"for f in a b; do "$0" measure -- sh -c 'echo on; exec sleep 600'; echo off; done"#;
    let mut shell = Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_wattlock")])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut on = [0; 3];
    shell.stdout.as_mut().unwrap().read_exact(&mut on).unwrap();
    let group = format!("-{}", shell.id());
    assert!(Command::new("kill").args(["-INT", "--", &group]).status().unwrap().success());
    let output = shell.wait_with_output().unwrap();
    assert_eq!(stdout(&output), "", "{}", stderr(&output));
    assert_eq!(output.status.signal(), Some(2), "{}", output.status);
    assert_ne!(stderr(&output), "", "the report comes all the same");
}

/// The first process of a container gets no signal that it sends itself.
#[test]
fn the_first_process_of_a_container_exits_at_a_signal() {
    let place = Place::new();
    let ran = Command::new("unshare")
        .args(if crate::support::is_root() { &["-pf"][..] } else { &["-rpf"] })
        .args(["--kill-child", env!("CARGO_BIN_EXE_wattlock"), "protect", "-r", &place.recipient])
        .arg("-o")
        .arg(place.path("d/out"))
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut unshare = ran.unwrap();
    let mut stdin = unshare.stdin.take().unwrap();
    if stdin.write_all(&pattern(20 << 20)).is_err() {
        wattlock_testing::skip("unshare", stderr(&unshare.wait_with_output().unwrap()));
        return;
    }
    let id = unshare.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
    assert!(Command::new("kill").args(["-TERM", children.trim()]).status().unwrap().success());
    let output = unshare.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(143), "{}", stderr(&output));
    assert!(place.names().is_empty(), "{:?}", place.names());
    drop(stdin);
}

#[test]
fn an_interrupted_replace_keeps_the_original() {
    let place = Place::new();
    for name in ["-INT", "-KILL"] {
        let file = place.path("d/big");
        let Some(mut child) = stopped_in_the_middle(&place, &["--replace"], &file) else { return };
        signal(&child, name);
        signal(&child, "-CONT");
        let status = child.wait().unwrap();
        assert!(matches!(status.signal(), Some(2 | 9)), "{status}");
        assert_eq!(place.names(), ["big"], "{name}");
        assert_eq!(fs::metadata(&file).unwrap().len(), SPARSE_LEN);
    }
}

#[test]
fn after_a_kill_the_next_run_cleans_up() {
    let place = Place::new();
    let (mut child, stdin) = in_the_middle_of_a_stream(&place, &place.path("d/out"));
    signal(&child, "-KILL");
    child.wait().unwrap();
    drop(stdin);
    assert!(place.names().is_empty(), "a nameless file goes with its process");
    // Where a file system has no nameless files, a named one stays behind, until the next run.
    place.write("d/.wattlock-99999999-0123456789abcdef.tmp", b"left by a killed run");
    let file = place.write("d/f", b"text");
    assert_exit(&place.protect(&[&file]), 0);
    assert_eq!(place.names(), ["f", "f.wlk"]);
}

#[test]
fn two_runs_on_one_target() {
    let place = Place::new();
    let out = place.path("d/out.wlk");
    let (first, first_stdin) = in_the_middle_of_a_stream(&place, &out);
    let (second, second_stdin) = in_the_middle_of_a_stream(&place, &out);
    drop(first_stdin);
    assert_exit(&first.wait_with_output().unwrap(), 0);
    let made = fs::read(&out).unwrap();
    drop(second_stdin);
    let second = second.wait_with_output().unwrap();
    assert_exit(&second, 1);
    assert!(stderr(&second).contains("exists already"));
    assert!(fs::read(&out).unwrap() == made, "what the first run made is untouched");
    assert_eq!(place.names(), ["out.wlk"]);
    let opened = place.open("unprotect", &[out.as_os_str(), OsStr::new("-o-")]);
    assert!(opened.stdout == pattern(20 << 20));
}

#[test]
fn an_unread_standard_error_is_no_panic() {
    let place = Place::new();
    let full = || fs::File::options().write(true).open("/dev/full").unwrap();
    let missing = wattlock().args(["verify", "-p"]).stderr(full()).status().unwrap();
    assert_eq!(missing.code(), Some(2));
    let sealed = place.container("f", b"text");
    fs::write(&sealed, &fs::read(&sealed).unwrap()[..50]).unwrap();
    let mut verify = wattlock();
    verify.args(["verify", "-i"]).arg(place.path("key.txt")).arg(&sealed);
    assert_eq!(verify.stderr(full()).status().unwrap().code(), Some(3));
}

/// Without /proc a nameless file could not get a name, so the program takes the other way: that of
/// file systems which have no nameless files.
#[test]
fn temporary_names_where_there_are_no_nameless_files() {
    let place = Place::new();
    place.write("d/f", &pattern(1_000_000));
    // `timeout` ends a run that waits for more input; what then lies in the directory is counted.
    let script = "
        mount -t tmpfs tmpfs /proc || exit 77
        cd \"$1\" || exit 1
        program=$2 recipient=$3
        protect() { \"$program\" protect -q -r \"$recipient\" \"$@\" 2> /dev/null; echo $?; }
        count() { ls -A | grep -c '^.wattlock-'; }
        protect f; protect f; protect -f f; count
        sleep 2 | timeout -s INT 1 \"$program\" protect -q -r \"$recipient\" -o out; count
        sleep 2 | timeout -s KILL 1 \"$program\" protect -q -r \"$recipient\" -o out; count
        protect -f f; count
    ";
    let ran = Command::new("unshare")
        .args(if crate::support::is_root() { &["-m"][..] } else { &["-rm"] })
        .args(["sh", "-c", script, "sh"])
        .args([place.path("d").as_os_str(), OsStr::new(env!("CARGO_BIN_EXE_wattlock"))])
        .arg(&place.recipient)
        .output()
        .unwrap();
    if ran.status.code() == Some(77) {
        wattlock_testing::skip("mount", stderr(&ran));
        return;
    }
    // Made, there already, replaced, none left; none after an interrupt; one after a kill, which
    // the next run removes.
    let said: Vec<String> = stdout(&ran).split_whitespace().map(str::to_owned).collect();
    assert_eq!(said, ["0", "1", "0", "0", "0", "1", "0", "0"], "{}", stderr(&ran));
    assert_eq!(place.names(), ["f", "f.wlk"]);
    assert_exit(&place.open("verify", &[place.path("d/f.wlk")]), 0);
}
