//! Keys stay in the memory of the program: no core file, no other process of the user, no copies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::str::from_utf8;

use wattlock_testing::{
    assert_leaves_no_core_file, found_in_memory, pattern, wait_until, waiting_for_input,
    wattlock_path,
};

use crate::support::{Place, assert_exit, is_root, stdout, wattlock, with_input};

/// Every way to give the program a key where it then waits for input, with more of that input than
/// a pipe holds.
fn with_keys(place: &Place) -> Vec<(Command, Vec<u8>)> {
    let command = |words: &[&str], paths: &[&Path]| {
        let mut command = wattlock();
        command.args(words).args(paths);
        command
    };
    let (identity, shared) = (place.path("key.txt"), place.write("shared", KEY_TEXT));
    let passphrase = place.write("passphrase", b"a passphrase of this test\n");
    let lines = b"one line of many\n".repeat(20_000);
    let sealed = |words: &[&str], key: &Path| {
        let output = with_input(&mut command(words, &[key]), &lines);
        assert_exit(&output, 0);
        output.stdout
    };
    let container = sealed(&["protect", "-i"], &identity);
    let stream = sealed(&["stream", "--key-file"], &shared);
    vec![
        (command(&["protect", "-i"], &[&identity]), pattern(1 << 20)),
        (
            command(&["protect", "--work-factor=10", "--passphrase-file"], &[&passphrase]),
            pattern(1 << 20),
        ),
        (command(&["unprotect", "-i"], &[&identity]), container),
        (command(&["stream", "-i"], &[&identity]), lines.clone()),
        (command(&["stream", "--key-file"], &[&shared]), lines.clone()),
        (command(&["stream", "--open", "--key-file"], &[&shared]), stream),
    ]
}

const KEY_TEXT: &[u8] = b"8f3d0c5be1a2947660f7d8c1b2a39e4855aa66bb77cc88dd99ee00ff11223344";

#[test]
fn no_program_that_has_a_key_leaves_a_core_file() {
    let place = Place::new();
    for (mut command, input) in with_keys(&place) {
        assert_leaves_no_core_file(&mut command, &input);
    }
}

/// The text of a key, which is read once, is wiped when the key is made.
#[test]
fn the_text_of_a_key_is_not_left_in_memory() {
    let place = Place::new();
    let identity = fs::read_to_string(place.path("key.txt")).unwrap();
    let (identity, shared) = (identity.lines().last().unwrap(), from_utf8(KEY_TEXT).unwrap());
    for (mut command, input) in with_keys(&place) {
        let mut child = waiting_for_input(&mut command, &input);
        // The name of its key's file is an argument, and is found.
        let argument = command.get_args().last().unwrap().to_str().unwrap();
        // A passphrase is kept for as long as something may be sealed with it.
        match found_in_memory(&child, &[argument, identity, shared]) {
            Some(found) => assert_eq!(found, BTreeSet::from([argument.to_owned()]), "{command:?}"),
            None => wattlock_testing::skip("root", "another process's memory cannot be read"),
        }
        drop(child.stdin.take());
        child.wait().unwrap();
    }
}

/// As ssh-agent and gpg-agent do, so that one program of a user cannot take the keys of another.
#[test]
fn other_processes_of_the_user_cannot_read_the_memory() {
    let place = Place::new();
    let key = place.write("shared", KEY_TEXT);
    let as_user = |program: &Path| {
        if !is_root() {
            return Command::new(program);
        }
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups"]).arg(program);
        command
    };
    fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
    let mut stream = as_user(&wattlock_path());
    stream.args(["stream", "--key-file"]).arg(&key);
    let mut child = waiting_for_input(&mut stream, &b"one line of many\n".repeat(20_000));
    let look = |process: u32| {
        let maps = format!("/proc/{process}/maps");
        as_user(Path::new("cat")).arg(maps).output().unwrap().status.success()
    };
    let mut sleep = as_user(Path::new("sleep")).arg("600").spawn().unwrap();
    // A process of its own it can read, as soon as that is its own.
    wait_until("a process can be read", || look(sleep.id()));
    sleep.kill().unwrap();
    sleep.wait().unwrap();
    assert!(!look(child.id()));
    drop(child.stdin.take());
    assert!(child.wait().unwrap().success());
}

/// Without a core file of its own, the program changes nothing for the command that it measures.
#[test]
fn a_measured_command_keeps_its_limit_of_core_files() {
    let limit = |program: &str| {
        let script = format!("ulimit -S -c 100; {program} sh -c 'ulimit -S -c'");
        let ran = Command::new("sh").args(["-c", &script]).output().unwrap();
        stdout(&ran).trim().to_owned()
    };
    assert_eq!(limit(""), "100");
    assert_eq!(limit(&format!("{} measure", wattlock_path().display())), "100");
}

/// Files of a process that is not dumpable belong to root; its own descriptors are its own still,
/// by which outputs get their names.
#[test]
fn an_ordinary_user_can_protect_and_open() {
    if !is_root() {
        return;
    }
    let place = Place::new();
    let folder = place.path("d");
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    let script = "
        set -e
        cd \"$1\"; wattlock=$2
        $wattlock keygen -o key 2> /dev/null
        echo text > f
        $wattlock protect -i key f; rm f
        $wattlock unprotect -i key f.wlk; cat f
        cat f | $wattlock protect -i key | $wattlock unprotect -i key -o g; cat g
        echo word > passphrase
        $wattlock protect --work-factor=10 --passphrase-fd 3 -o h.wlk f 3< passphrase
        $wattlock verify --passphrase-file passphrase h.wlk
        $wattlock unprotect -i key -o /dev/fd/4 f.wlk 4> i; cat i
        echo line | $wattlock stream -i key | $wattlock stream --open -i key
        echo line | $wattlock stream -i key -o log/ && $wattlock stream --open -i key log/
        rm f.wlk; $wattlock protect --replace -i key f; ls -A
    ";
    let mut command = Command::new("setpriv");
    command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "sh", "-c", script, "sh"]);
    let ran = command.arg(&folder).arg(wattlock_path()).output().unwrap();
    assert_exit(&ran, 0);
    let words = stdout(&ran);
    let words: Vec<&str> = words.split_whitespace().collect();
    let names = ["f.wlk", "g", "h.wlk", "i", "key", "log", "passphrase"];
    assert_eq!(words, [&["text", "text", "text", "line", "line"][..], &names].concat());
}
