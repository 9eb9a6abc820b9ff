//! Files that others change, or put another file in the place of, while the program works on them.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use wattlock_testing::wait_until;

use crate::support::{Place, Plugin, assert_exit, can_trace, installed, pattern, stderr, wattlock};

/// Writes one byte and sets the time of the last change back: length and time are as before.
fn change_unseen(path: &Path, at: u64) {
    let file = fs::File::options().write(true).open(path).unwrap();
    let modified = file.metadata().unwrap().modified().unwrap();
    file.write_all_at(b"!", at).unwrap();
    file.set_modified(modified).unwrap();
}

/// The same in a shell, for the file `$1`.
const CHANGE_UNSEEN: &str = "change() {
    touch -r \"$1\" time; printf '!' | dd of=\"$1\" conv=notrunc status=none; touch -r time \"$1\"
}";

#[test]
fn a_torn_read_of_a_stream_is_an_error() {
    let place = Place::new();
    let len = 8 << 20;
    let file = place.write("d/f", &pattern(len));
    for format in ["wattlock", "age"] {
        let mut child = wattlock()
            .args(["protect", "--format", format, "-r", &place.recipient, "-o-"])
            .arg(&file)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stdout = child.stdout.take().unwrap();
        // The header comes when the file is open; then the pipe is full, until it is read.
        stdout.read_exact(&mut [0; 100]).unwrap();
        change_unseen(&file, len as u64 - 1);
        std::io::copy(&mut stdout, &mut std::io::sink()).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_exit(&output, 1);
        assert!(stderr(&output).contains("changed meanwhile"), "{}", stderr(&output));
    }
}

/// `protect`, while whose recipient is asked the shell command runs in the place's folder.
fn protect_and(place: &Place, meanwhile: &str, words: &[&str]) -> Output {
    let plugin = Plugin::new(place);
    let mut protect = plugin.wattlock_and(meanwhile);
    protect.args(["protect", "--threads=1", "-r", &plugin.recipient]).args(words);
    protect.current_dir(place.path("")).output().unwrap()
}

#[test]
fn a_torn_read_leaves_no_output_and_removes_nothing() {
    if !installed("python3") {
        return;
    }
    for words in [&["d/f"][..], &["--replace", "d/f"], &["-fo", "d/f.wlk", "d/f"]] {
        let place = Place::new();
        let file = place.write("d/f", &pattern(1 << 20));
        let made = protect_and(&place, &format!("{CHANGE_UNSEEN}; change d/f"), words);
        assert_exit(&made, 1);
        assert!(stderr(&made).contains("changed meanwhile"), "{words:?}: {}", stderr(&made));
        assert_eq!(place.names(), ["f"], "{words:?}");
        assert!(fs::read(&file).unwrap().starts_with(b"!"));
    }
}

#[test]
fn a_torn_read_in_a_tree_is_that_file_s_error() {
    if !installed("python3") {
        return;
    }
    for words in [&["--recursive", "d"][..], &["--recursive", "--replace", "d"]] {
        let place = Place::new();
        for name in ["a", "b"] {
            place.write(format!("d/{name}"), &pattern(1 << 10));
        }
        let made = protect_and(&place, &format!("{CHANGE_UNSEEN}; change d/a"), words);
        assert_exit(&made, 1);
        assert!(stderr(&made).contains("d/a changed meanwhile"), "{}", stderr(&made));
        let left = place.names();
        assert!(left.contains(&"a".into()) && left.contains(&"b.wlk".into()), "{left:?}");
        assert!(!left.contains(&"a.wlk".into()), "{left:?}");
    }
}

/// A file that is empty when it is opened is read to its end, wherever that is by then.
#[test]
fn an_empty_file_that_grows_is_an_error() {
    if !installed("python3") {
        return;
    }
    let place = Place::new();
    place.write("d/log", b"");
    let made = protect_and(&place, "echo line >> d/log", &["--replace", "d/log"]);
    assert_exit(&made, 1);
    assert_eq!(place.names(), ["log"]);
}

/// Containers of the same length with different payloads, for the plugin and for the place's key.
fn containers(place: &Place, recipients: &[&str], count: usize) -> Vec<PathBuf> {
    let container = |number: usize| {
        let plain = place.write("plain", &pattern(100 + number));
        let sealed = place.path(format!("d/{number}.wlk"));
        let mut protect = wattlock();
        protect.arg("protect").args(recipients.iter().flat_map(|recipient| ["-r", *recipient]));
        assert_exit(&protect.arg("-o").args([&sealed, &plain]).output().unwrap(), 0);
        sealed
    };
    (0..count).map(container).collect()
}

#[test]
fn rekey_leaves_a_newer_container_in_its_place() {
    if !installed("python3") {
        return;
    }
    for (meanwhile, code) in [
        ("mv d/new d/f", 1),
        ("cp d/new new; mv new d/f; mv d/new d/f", 1),
        ("cat d/new > d/f", 1),
        ("mv d/f d/old; mv d/new d/f", 1),
        ("true", 0),
    ] {
        let place = Place::new();
        let plugin = Plugin::new(&place);
        let plain = place.write("plain", &pattern(1000));
        let (old, new) = (place.path("d/f"), place.path("d/new"));
        let mut protect = plugin.wattlock();
        protect.args(["protect", "-r", &plugin.recipient, "-o"]).args([&old, &plain]);
        assert_exit(&protect.output().unwrap(), 0);
        assert_exit(&place.protect(&[plain.as_os_str(), OsStr::new("-o"), new.as_os_str()]), 0);
        let newer = fs::read(&new).unwrap();
        for force in [&[][..], &["--force"]] {
            let rekey = |meanwhile: &str| {
                let mut rekey = plugin.wattlock_and(meanwhile);
                rekey.args(["rekey", "-r", &place.recipient, "-i"]).arg(&plugin.identity);
                rekey.args(force).arg("d/f").current_dir(place.path("")).output().unwrap()
            };
            fs::copy(&old, place.path("kept")).unwrap();
            fs::write(&new, &newer).unwrap();
            let made = rekey(meanwhile);
            assert_exit(&made, code);
            if code == 1 {
                assert!(stderr(&made).contains("d/f changed meanwhile"), "{}", stderr(&made));
                assert!(fs::read(&old).unwrap() == newer, "{meanwhile} {force:?}");
            } else {
                assert_exit(&place.open("verify", &[&old]), 0);
            }
            assert!(!place.names().iter().any(|name| name.starts_with(".wattlock")));
            fs::rename(place.path("kept"), &old).unwrap();
        }
    }
}

/// Whenever the newer container comes: it is there in the end, with old recipients or with new.
#[test]
fn rekey_and_a_rename_at_any_time() {
    let place = Place::new();
    let all = containers(&place, &[&place.recipient], 40);
    let target = place.path("d/f");
    let tail = |path: &Path| fs::read(path).unwrap().split_off(300);
    for (round, pair) in all.chunks(2).enumerate() {
        fs::rename(&pair[0], &target).unwrap();
        let newest = tail(&pair[1]);
        let mut rekey = wattlock();
        rekey.args(["rekey", "-r", &place.recipient, "-i"]).arg(place.path("key.txt")).arg(&target);
        let mut child = rekey.stderr(Stdio::null()).spawn().unwrap();
        // Later in each round: starting another program takes time.
        for _ in 0..round / 2 {
            Command::new("true").status().unwrap();
        }
        fs::rename(&pair[1], &target).unwrap();
        child.wait().unwrap();
        let end = fs::read(&target).unwrap();
        assert!(end.ends_with(&newest[newest.len() - 100..]), "round {round}");
        assert_eq!(place.names().iter().filter(|name| name.starts_with('.')).count(), 0);
    }
}

/// Killed when the two files have changed places: the newer container has only its temporary name.
#[test]
fn rekey_killed_in_the_exchange_loses_no_newer_container() {
    if !can_trace() {
        return;
    }
    let place = Place::new();
    let all = containers(&place, &[&place.recipient], 3);
    let newer = fs::read(&all[1]).unwrap();
    // It stops once its file has a name, and once more after the exchange.
    let mut strace = Command::new("strace");
    strace.args(["-fqq", "-e", "trace=linkat,renameat2", "-o"]).arg(place.path("trace"));
    strace.args(["-e", "inject=linkat:signal=STOP", "-e", "inject=renameat2:signal=STOP"]);
    strace.arg(wattlock().get_program()).args(["rekey", "-r", &place.recipient, "-i"]);
    let mut rekey = strace.arg(place.path("key.txt")).arg(&all[0]).spawn().unwrap();
    let own = || place.names().into_iter().find(|name| name.starts_with(".wattlock-"));
    wait_until("its file has a name", || own().is_some());
    let process = own().unwrap().split('-').nth(1).unwrap().parse().unwrap();
    let process = Pid::from_raw(process).unwrap();
    fs::rename(&all[1], &all[0]).unwrap();
    kill_process(process, Signal::CONT).unwrap();
    wait_until("they have changed places", || fs::read(&all[0]).unwrap() != newer);
    kill_process(process, Signal::KILL).unwrap();
    rekey.wait().unwrap();
    let has_newer = || {
        let mut files = place.names().into_iter().map(|name| fs::read(place.path("d").join(name)));
        files.any(|bytes| bytes.unwrap() == newer)
    };
    assert!(has_newer());
    // The next run removes what it takes for abandoned.
    let plain = place.path("plain");
    let out = place.path("d/next.wlk");
    assert_exit(&place.protect(&[plain.as_os_str(), OsStr::new("-o"), out.as_os_str()]), 0);
    assert!(has_newer(), "{:?}", place.names());
}
