//! Many outputs are made durable and named together: what the program asks of the kernel, in which
//! order.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::Command;

use wattlock_testing::skip;

use crate::support::{Place, assert_exit, can_trace, names, wattlock};

/// A system call: its name and arguments, and the numbers of the lines of its start and its end.
struct Call {
    name: String,
    args: String,
    start: usize,
    end: usize,
}

/// The calls in a trace of several threads, in the order of their ends.
fn calls(trace: &str) -> Vec<Call> {
    let mut open: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut calls = Vec::new();
    for (index, line) in trace.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        let (start, text) = if let Some((begun, _)) = rest.split_once(" <unfinished ...>") {
            open.insert(thread, (index, begun));
            continue;
        } else if rest.starts_with("<... ") {
            let Some(begun) = open.remove(thread) else { continue };
            begun
        } else {
            (index, rest)
        };
        let Some((name, args)) = text.split_once('(') else { continue };
        calls.push(Call { name: name.into(), args: args.into(), start, end: index });
    }
    calls
}

/// What the program did.
#[derive(Default)]
struct Seen {
    links: usize,
    removals: usize,
}

/// Checks that each file gets its name after its bytes were synced, and that each original is removed
/// after the folder of its output was.
fn check(trace: &str) -> Seen {
    let mut seen = Seen::default();
    let mut written: HashMap<&str, usize> = HashMap::new();
    let mut links: HashMap<String, usize> = HashMap::new();
    let calls = calls(trace);
    let syncs: Vec<&Call> = calls.iter().filter(|call| call.name.ends_with("sync")).collect();
    let file_systems: Vec<&Call> = calls.iter().filter(|call| call.name == "syncfs").collect();
    // A descriptor is `5</its/path>`.
    let synced = |is_it: &dyn Fn(&str) -> bool, after: usize, before: usize| {
        let its = syncs.iter().filter(|call| is_it(call.args.trim_end_matches(')')));
        its.chain(&file_systems).any(|call| call.start > after && call.end < before)
    };
    for call in &calls {
        let descriptor = call.args.split(['<', ',', ')']).next().unwrap();
        match call.name.as_str() {
            "pwrite64" | "pwritev" | "fchmod" | "utimensat" => {
                written.insert(descriptor, call.end);
            }
            "linkat" => {
                seen.links += 1;
                let file = match call.args.split_once("/proc/self/fd/") {
                    Some((_, number)) => number.split('"').next().unwrap(),
                    None => descriptor,
                };
                let is_file = |of: &str| of.split('<').next() == Some(file);
                let durable = synced(&is_file, written[file], call.start);
                assert!(durable, "line {}: linkat({}", call.start, call.args);
                links.insert(last_path(&call.args), call.end);
            }
            "unlinkat" if !call.args.contains("AT_REMOVEDIR") => {
                seen.removals += 1;
                let original = &*last_path(&call.args);
                let sealed = format!("{original}.wlk");
                let output = original.strip_suffix(".wlk").unwrap_or(&sealed);
                let folder = Path::new(output).parent().unwrap().to_str().unwrap();
                let is_folder = |of: &str| of.contains(&format!("<{folder}>"));
                let durable = synced(&is_folder, links[output], call.start);
                assert!(durable, "line {}: unlinkat({}", call.start, call.args);
            }
            _ => {}
        }
    }
    seen
}

/// The path that a call names last, as `7</its/folder>, "name"`.
fn last_path(args: &str) -> String {
    let (before, name) = args.rsplit_once('"').unwrap().0.rsplit_once('"').unwrap();
    let folder = before.rsplit_once('<').unwrap().1.split_once('>').unwrap().0;
    format!("{folder}/{name}")
}

/// Runs the program under strace with a limit of open files, and returns the trace.
fn traced(place: &Place, open_files: u32, command: &str, args: &[&OsStr]) -> Option<String> {
    if !can_trace() {
        return None;
    }
    let trace = place.path("trace");
    let limit = format!("ulimit -n {open_files}; exec \"$@\"");
    let calls = "trace=pwrite64,pwritev,fchmod,utimensat,fsync,syncfs,linkat,unlinkat";
    let ran = Command::new("sh")
        .args(["-c", &limit, "sh", "strace", "-f", "-y", "-e", calls, "-o"])
        .arg(&trace)
        .arg(wattlock().get_program())
        .arg(command)
        .args(args)
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    Some(fs::read_to_string(trace).unwrap())
}

/// 70 files in two folders, all below `tree`.
fn tree(place: &Place) {
    for folder in ["tree/even", "tree/odd"] {
        fs::create_dir_all(place.path(folder)).unwrap();
    }
    for index in 0..70_usize {
        let folder = if index % 2 == 0 { "tree/even" } else { "tree/odd" };
        place.write(format!("{folder}/{index}"), &vec![index as u8; index * 1000]);
    }
}

#[test]
fn names_come_after_data_and_originals_go_after_names() {
    let place = Place::new();
    tree(&place);
    let (top, key) = (place.path("tree").canonicalize().unwrap(), place.path("key.txt"));
    if in_memory(&top) {
        return skip("disk", "the tests are on a file system in memory, which is not synced");
    }
    let to = [OsStr::new("-r"), OsStr::new(&place.recipient), OsStr::new("--replace")];
    // Groups of eight, and one that is not full.
    let args = [&to[..], &[OsStr::new("--recursive"), top.as_os_str()]].concat();
    let Some(trace) = traced(&place, 160, "protect", &args) else { return };
    let sealed = check(&trace);
    assert_eq!((sealed.links, sealed.removals), (70, 70));
    let all: Vec<String> = names(&top.join("odd"));
    assert!(all.len() == 35 && all.iter().all(|name| name.ends_with(".wlk")), "{all:?}");

    // One group, in place again.
    let args =
        [OsStr::new("-i"), key.as_os_str(), to[2], OsStr::new("--recursive"), top.as_os_str()];
    let opened = check(&traced(&place, 4096, "unprotect", &args).unwrap());
    assert_eq!((opened.links, opened.removals), (70, 70));
    for index in 0..70_usize {
        let folder = if index % 2 == 0 { "even" } else { "odd" };
        let bytes = fs::read(top.join(folder).join(index.to_string())).unwrap();
        assert!(bytes == vec![index as u8; index * 1000], "{index}");
    }
}

/// However many threads there are, no more files are open than may be.
#[test]
fn few_open_files_are_enough() {
    let place = Place::new();
    tree(&place);
    let top = place.path("tree");
    let program = wattlock().get_program().to_owned();
    let run = |command: &str, args: &[&str]| {
        let script = "ulimit -n 100; exec \"$@\"";
        let mut shell = Command::new("sh");
        shell.args(["-c", script, "sh"]).arg(&program).arg(command);
        shell.args(["--threads=8", "--replace", "--recursive"]).args(args).arg(&top);
        shell.env("XDG_CONFIG_HOME", "/nonexistent").output().unwrap()
    };
    let key = place.path("key.txt");
    for _ in 0..3 {
        assert_exit(&run("protect", &["-r", &place.recipient]), 0);
        assert_exit(&run("unprotect", &["-i", key.to_str().unwrap()]), 0);
    }
    assert_eq!(names(&top.join("odd")).len(), 35);
}

/// A file that cannot be done costs the others of its group nothing.
#[test]
fn an_error_in_a_group_is_that_files_own() {
    let place = Place::new();
    tree(&place);
    let top = place.path("tree");
    let recursive = [OsStr::new("--recursive"), top.as_os_str()];
    fs::create_dir(place.path("tree/odd/7.wlk")).unwrap();
    let made = place.protect(&recursive);
    assert_exit(&made, 2);
    assert_eq!(names(&top.join("even")).len(), 70);
    assert_eq!(names(&top.join("odd")).len(), 70);
    assert!(top.join("odd/7.wlk").is_dir());
}

fn in_memory(path: &Path) -> bool {
    const TMPFS: i64 = 0x0102_1994;
    rustix::fs::statfs(path).is_ok_and(|status| status.f_type == TMPFS)
}
