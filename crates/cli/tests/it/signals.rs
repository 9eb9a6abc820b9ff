//! Programs that are ended in the middle, and two at once.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use crate::support::{
    Place, SPARSE_LEN, assert_exit, pattern, signal, stderr, stopped_in_the_middle, wattlock,
};

/// A `protect` of a stream that has taken a few megabytes and waits for more.
fn in_the_middle_of_a_stream(place: &Place, output: &Path) -> (Child, std::process::ChildStdin) {
    in_the_middle_with(&["-r", &place.recipient], output)
}

fn in_the_middle_with(args: &[&str], output: &Path) -> (Child, std::process::ChildStdin) {
    let mut child = wattlock()
        .arg("protect")
        .args(args)
        .arg("-o")
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
        assert_eq!(output.status.code(), Some(128 + number), "{}", stderr(&output));
        assert!(place.names().is_empty(), "{name}: {:?}", place.names());
        drop(stdin);
    }
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
        assert!(status.code() == Some(130) || status.signal() == Some(9), "{status}");
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
fn a_reader_that_goes_away_is_an_error_not_a_panic() {
    let place = Place::new();
    let sealed = place.container("f", &pattern(20 << 20));
    let mut child = wattlock()
        .args(["unprotect", "-o-", "-i"])
        .arg(place.path("key.txt"))
        .arg(sealed)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(matches!(output.status.code(), Some(1 | 3)), "{:?}", output.status);
    assert!(stderr(&output).contains("Broken pipe"), "{}", stderr(&output));
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
    let said: Vec<String> =
        crate::support::stdout(&ran).split_whitespace().map(str::to_owned).collect();
    assert_eq!(said, ["0", "1", "0", "0", "0", "1", "0", "0"], "{}", stderr(&ran));
    assert_eq!(place.names(), ["f", "f.wlk"]);
    assert_exit(&place.open("verify", &[place.path("d/f.wlk")]), 0);
}
