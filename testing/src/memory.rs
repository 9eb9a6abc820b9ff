//! What must not leave a program's memory: core files, and the memory as others may read it.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};

use rustix::process::{Pid, Resource, Rlimit, prlimit};

use crate::place::names;
use crate::programs::signal;
use crate::skips::skip;

/// Starts `command` with `input` on its standard input, which stays open. When this returns, the
/// program has read all but the last 64 KiB of it, and waits for more.
///
/// # Panics
/// If it cannot be started, or ends before.
#[track_caller]
pub fn waiting_for_input(command: &mut Command, input: &[u8]) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::null());
    let mut child = command.spawn().expect("the program can be started");
    let written = child.stdin.as_mut().expect("it has a pipe").write_all(input);
    written.expect("the program reads its input");
    child
}

/// Asserts that the program `command`, once it has read `input`, is under a limit of 0 for core
/// files, and writes none even where somebody raises that limit.
///
/// # Panics
/// If it does.
#[track_caller]
pub fn assert_leaves_no_core_file(command: &mut Command, input: &[u8]) {
    let folder = tempfile::tempdir().expect("a folder can be made");
    if !aborted_with_limit(Command::new("sleep").arg("600").current_dir(&folder).spawn()) {
        skip("core files", "this machine writes none");
        return;
    }
    for name in names(folder.path()) {
        fs::remove_file(folder.path().join(name)).expect("its core file can be removed");
    }
    let child = waiting_for_input(command.current_dir(&folder), input);
    let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).expect("it runs");
    let core = limits.lines().find(|line| line.starts_with("Max core file size"));
    assert_eq!(core.and_then(|core| core.split_whitespace().nth(4)), Some("0"), "{command:?}");
    assert!(!aborted_with_limit(Ok(child)), "{command:?} wrote a core file");
    assert_eq!(names(folder.path()), [""; 0], "{command:?}");
}

/// True if a program that is ended by SIGQUIT, with its limit of core files raised, dumped core.
#[track_caller]
fn aborted_with_limit(child: std::io::Result<Child>) -> bool {
    let mut child = child.expect("the program can be started");
    let unlimited = Rlimit { current: None, maximum: None };
    // Where this user may not, no core file is written, which is found out first.
    let _ = prlimit(Pid::from_raw(child.id() as i32), Resource::Core, unlimited);
    signal(&child, "-QUIT");
    let status: ExitStatus = child.wait().expect("it can be waited for");
    assert_eq!(status.signal(), Some(3), "{status}");
    status.core_dumped()
}

/// Which of `texts`, each one line, are in the writable memory of the process `child`; `None` if this
/// process may not read it.
///
/// # Panics
/// If the process is gone, or `grep` is missing.
pub fn found_in_memory(child: &Child, texts: &[&str]) -> Option<BTreeSet<String>> {
    let id = child.id();
    let maps = fs::read_to_string(format!("/proc/{id}/maps")).ok()?;
    let memory = File::open(format!("/proc/{id}/mem")).ok()?;
    assert!(!maps.is_empty(), "the process is gone");
    let mut grep = Command::new("grep");
    grep.arg("-aoF").env("LC_ALL", "C");
    for text in texts {
        grep.args(["-e", text]);
    }
    // Searches as an optimised program does, which a test is not.
    let mut grep =
        grep.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("grep is there");
    let mut to_grep = grep.stdin.take().expect("it has a pipe");
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let range = words.next().and_then(|range| range.split_once('-'));
        let (start, end) = range.expect("a line of maps begins with a range");
        let number = |digits| u64::from_str_radix(digits, 16).expect("it is a hexadecimal number");
        let (start, end) = (number(start), number(end));
        if !words.next().is_some_and(|rights| rights.starts_with("rw")) {
            continue;
        }
        // What cannot be read is a device's.
        let mut region = vec![0; (end - start) as usize];
        if memory.read_exact_at(&mut region, start).is_ok() {
            to_grep.write_all(&region).expect("grep reads all");
        }
    }
    drop(to_grep);
    let found = grep.wait_with_output().expect("it can be waited for").stdout;
    Some(String::from_utf8_lossy(&found).lines().map(str::to_owned).collect())
}
