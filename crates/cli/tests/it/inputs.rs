//! Inputs and outputs as the world has them: missing, forbidden, full, there already, links,
//! pipes. Each fails with a clear error and loses nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{
    Place, assert_exit, install, is_root, names, pattern, signal, stderr, stopped_in_the_middle,
    wattlock,
};

#[test]
fn an_output_that_exists_is_kept_unless_forced() {
    let place = Place::new();
    let file = place.write("d/f", b"new");
    let sealed = place.write("d/f.wlk", b"old");
    let made = place.protect(&[&file]);
    assert_exit(&made, 1);
    assert!(stderr(&made).contains("exists already") && stderr(&made).contains("--force"));
    assert_eq!(fs::read(&sealed).unwrap(), b"old");
    assert_exit(&place.protect(&[OsStr::new("--force"), file.as_os_str()]), 0);
    fs::write(&file, b"precious").unwrap();
    assert_exit(&place.open("unprotect", &[&sealed]), 1);
    assert_eq!(fs::read(&file).unwrap(), b"precious");
    assert_exit(&place.open("unprotect", &[OsStr::new("-f"), sealed.as_os_str()]), 0);
    assert_eq!(fs::read(&file).unwrap(), b"new");
    assert_eq!(place.names(), ["f", "f.wlk"]);
}

#[test]
fn the_output_is_never_the_input() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let link = place.path("d/link");
    symlink(&file, &link).unwrap();
    for output in [&file, &link] {
        let args = [OsStr::new("-f"), file.as_os_str(), OsStr::new("-o"), output.as_os_str()];
        assert_exit(&place.protect(&args), 2);
        assert_eq!(fs::read(&file).unwrap(), b"text");
    }
}

#[test]
fn a_forced_output_replaces_a_link_not_what_it_points_to() {
    let place = Place::new();
    let (file, elsewhere) = (place.write("d/f", b"text"), place.write("elsewhere", b"precious"));
    symlink(&elsewhere, place.path("d/f.wlk")).unwrap();
    assert_exit(&place.protect(&[&file]), 1);
    assert_exit(&place.protect(&[OsStr::new("-f"), file.as_os_str()]), 0);
    assert_eq!(fs::read(&elsewhere).unwrap(), b"precious");
    assert!(!fs::symlink_metadata(place.path("d/f.wlk")).unwrap().is_symlink());
}

#[test]
fn directories_links_and_pipes() {
    let place = Place::new();
    let directory = place.path("d");
    let made = place.protect(&[&directory]);
    assert_exit(&made, 2);
    assert!(stderr(&made).contains("--recursive"));
    // A link named on the command line is followed; its container goes into the link's folder.
    let file = place.write("elsewhere", b"text");
    let link = place.path("d/link");
    symlink(&file, &link).unwrap();
    assert_exit(&place.protect(&[&link]), 0);
    assert_exit(&place.protect(&[OsStr::new("--replace"), OsStr::new("-f"), link.as_os_str()]), 2);
    assert!(link.exists() && file.exists());
    symlink("nowhere", place.path("d/dangling")).unwrap();
    assert_exit(&place.protect(&[place.path("d/dangling")]), 1);
    // A FIFO is a stream.
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let writer =
        Command::new("sh").args(["-c", "echo through the pipe > \"$0\""]).arg(&fifo).spawn();
    let out = place.path("d/out.wlk");
    let made = place.protect(&[fifo.as_os_str(), OsStr::new("-o"), out.as_os_str()]);
    assert_exit(&made, 0);
    writer.unwrap().wait().unwrap();
    let opened = place.open("unprotect", &[out.as_os_str(), OsStr::new("-o-")]);
    assert_eq!(opened.stdout, b"through the pipe\n");
    // So is a file that says it is empty, and is not.
    let made = place.protect(&["/proc/self/status", "-o-"]);
    assert_exit(&made, 0);
    assert!(made.stdout.len() > 1000);
}

#[test]
fn what_may_not_be_read_or_written() {
    let place = Place::new();
    let file = place.write("d/secret", b"text");
    let forbidden = place.path("forbidden");
    fs::create_dir(&forbidden).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o000)).unwrap();
    fs::set_permissions(&forbidden, fs::Permissions::from_mode(0o555)).unwrap();
    let program = place.path("program");
    install(env!("CARGO_BIN_EXE_wattlock"), &program);
    let unprivileged = |args: &[&OsStr]| {
        let mut command = Command::new(&program);
        if is_root() {
            command.uid(65534).gid(65534);
        }
        command.stdin(Stdio::null()).args(["protect", "-r", &place.recipient]).args(args);
        command.output().unwrap()
    };
    let made: Output = unprivileged(&[file.as_os_str(), OsStr::new("-o-")]);
    assert_exit(&made, 1);
    assert!(stderr(&made).contains("secret") && stderr(&made).contains("ermission"));
    let readable = place.write("readable", b"text");
    fs::set_permissions(&readable, fs::Permissions::from_mode(0o644)).unwrap();
    let made =
        unprivileged(&[readable.as_os_str(), OsStr::new("--out-dir"), forbidden.as_os_str()]);
    assert_exit(&made, 1);
    assert!(stderr(&made).contains("forbidden"), "{}", stderr(&made));
    assert!(names(&forbidden).is_empty());
    assert_exit(&unprivileged(&[OsStr::new("/nonexistent/file")]), 1);
    let missing = OsStr::new("/nonexistent/out");
    assert_exit(&unprivileged(&[readable.as_os_str(), OsStr::new("-o"), missing]), 1);
}

#[test]
fn a_full_disk_leaves_nothing() {
    let place = Place::new();
    let file = place.write("f", &pattern(3 << 20));
    let small = place.path("small");
    fs::create_dir(&small).unwrap();
    // In a namespace of its own, which ends with the script.
    let script = "mount -t tmpfs -o size=1m tmpfs \"$1\" || exit 77
        \"$2\" protect -r \"$3\" \"$4\" --out-dir \"$1\"; echo \"exit $?\"; ls -A \"$1\" | wc -l
        \"$2\" protect -r \"$3\" - -o \"$1/out\" < /dev/zero; echo \"exit $?\"; ls -A \"$1\" | wc -l";
    let ran = Command::new("unshare")
        .args(if is_root() { &["-m"][..] } else { &["-rm"] })
        .args(["sh", "-c", script, "sh"])
        .args([small.as_os_str(), OsStr::new(env!("CARGO_BIN_EXE_wattlock"))])
        .args([OsStr::new(&place.recipient), file.as_os_str()])
        .output()
        .unwrap();
    if !ran.status.success() {
        wattlock_testing::skip("mount", stderr(&ran));
        return;
    }
    let said: Vec<String> =
        crate::support::stdout(&ran).split_whitespace().map(str::to_owned).collect();
    assert_eq!(said, ["exit", "1", "0", "exit", "1", "0"], "{}", stderr(&ran));
    assert!(stderr(&ran).contains("No space left") && stderr(&ran).contains("free some space"));
}

#[test]
fn a_file_that_changes_while_it_is_read_is_not_taken_for_a_whole() {
    let place = Place::new();
    let file = place.path("d/log");
    let Some(child) = stopped_in_the_middle(&place, &[], &file) else { return };
    // Once it reads the file, the file grows.
    use std::io::Write;
    fs::File::options().append(true).open(&file).unwrap().write_all(b"one more line").unwrap();
    signal(&child, "-CONT");
    let output = child.wait_with_output().unwrap();
    assert_exit(&output, 1);
    assert!(stderr(&output).contains("changed meanwhile"), "{}", stderr(&output));
    assert_eq!(place.names(), ["log"]);
}

#[test]
fn flags_that_make_no_sense_are_refused_before_anything_happens() {
    let place = Place::new();
    let (a, b) = (place.write("d/a", b"a"), place.write("d/b", b"b"));
    let (a, b) = (a.to_str().unwrap(), b.to_str().unwrap());
    let dir = place.path("out");
    let dir = dir.to_str().unwrap();
    for args in [
        &[a, b, "-o", "x"][..],
        &["-", a],
        &[a, "-o", "x", "--out-dir", dir],
        &["--out-dir", dir, "-"],
        &[a, "--replace", "-o-"],
        &[a, "--threads", "0"],
        &[a, "--threads", "99999999"],
        &[a, "--format", "zip"],
        &[a, a, "--out-dir", dir],
        &[a, "-p", "--passphrase-env", "X"],
        &[a, "-r", "age1nonsense"],
    ] {
        assert_exit(&place.protect(args), 2);
    }
    assert_exit(&wattlock().args(["protect", a]).output().unwrap(), 2);
    assert_exit(&wattlock().args(["unprotect", a]).output().unwrap(), 2);
    for range in ["9..1", "x..y", "5", "..99999999999999999999"] {
        assert_exit(&place.open("unprotect", &[a, "--range", range]), 2);
    }
    assert_eq!(place.names(), ["a", "b"]);
    assert!(!place.path("out").exists());
}

#[test]
fn outputs_of_a_run_replace_neither_each_other_nor_inputs() {
    let place = Place::new();
    // Two containers that seal one name.
    for (folder, text) in [("a", "first"), ("b", "second")] {
        fs::create_dir(place.path(folder)).unwrap();
        let file = place.write(Path::new(folder).join("r.txt"), text.as_bytes());
        let sealed = place.path(format!("d/{folder}.wlk"));
        assert_exit(&place.protect(&[OsStr::new("-o"), sealed.as_os_str(), file.as_os_str()]), 0);
    }
    let (first, second) = (place.path("d/a.wlk"), place.path("d/b.wlk"));
    let run = [OsStr::new("-Nf"), OsStr::new("--replace"), first.as_os_str(), second.as_os_str()];
    let opened = place.open("unprotect", &run);
    assert_exit(&opened, 1);
    assert!(stderr(&opened).contains("another output or input"), "{}", stderr(&opened));
    // One of them is open, and the other still a container.
    let left = place.names();
    assert!(left == ["a.wlk", "r.txt"] || left == ["b.wlk", "r.txt"], "{left:?}");
    // An output that would be an input.
    fs::remove_dir_all(place.path("d")).unwrap();
    fs::create_dir(place.path("d")).unwrap();
    place.write("d/f", b"one");
    place.write("d/f.wlk", b"two");
    let made = place.protect(&[
        OsStr::new("-f"),
        OsStr::new("--replace"),
        OsStr::new("--recursive"),
        place.path("d").as_os_str(),
    ]);
    assert_exit(&made, 2);
    assert_eq!(fs::read(place.path("d/f.wlk")).unwrap(), b"two");
    assert_eq!(place.names(), ["f", "f.wlk"]);
}

#[test]
fn an_identity_of_the_run_is_not_replaced() {
    let place = Place::new();
    let key = place.path("d/key.txt");
    fs::rename(place.path("key.txt"), &key).unwrap();
    place.write("d/f", b"text");
    symlink(&key, place.path("link")).unwrap();
    for identity in [&key, &place.path("link")] {
        let made = wattlock()
            .args(["protect", "--recursive", "--replace", "-i"])
            .arg(identity)
            .arg(place.path("d"))
            .output()
            .unwrap();
        assert_exit(&made, 2);
        assert!(stderr(&made).contains("an identity of this run"), "{}", stderr(&made));
        assert_eq!(place.names(), ["f", "key.txt"]);
    }
}

#[test]
fn devices_and_pipes_are_written_to_and_never_replaced() {
    let place = Place::new();
    let file = place.write("d/f", b"text");
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let reader = Command::new("cat").arg(&fifo).stdout(Stdio::piped()).spawn().unwrap();
    let made = place.protect(&[OsStr::new("-fo"), fifo.as_os_str(), file.as_os_str()]);
    assert_exit(&made, 0);
    assert!(reader.wait_with_output().unwrap().stdout.starts_with(b"wattlock/v1"));
    assert!(!fs::metadata(&fifo).unwrap().is_file());
    // By a link, so that a mistake here does not cost this machine its /dev/null.
    let link = place.path("null");
    symlink("/dev/null", &link).unwrap();
    assert_exit(&place.protect(&[OsStr::new("-fo"), link.as_os_str(), file.as_os_str()]), 0);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    let made = place.protect(&[OsStr::new("-o/dev/stdout"), file.as_os_str()]);
    assert!(made.stdout.starts_with(b"wattlock/v1"));
    // As the output of a batch, whose names are derived.
    let device = place.path("d/f.wlk");
    assert!(Command::new("mkfifo").arg(&device).status().unwrap().success());
    assert_exit(&place.protect(&[OsStr::new("-f"), file.as_os_str()]), 2);
    assert!(!fs::metadata(&device).unwrap().is_file());
}

#[test]
fn a_file_put_in_the_place_of_the_original_is_not_removed() {
    let place = Place::new();
    let file = place.path("d/f");
    let Some(child) = stopped_in_the_middle(&place, &["--replace"], &file) else { return };
    // As an editor saves: another file, renamed over the name.
    let new = place.write("new", b"new text");
    fs::rename(new, &file).unwrap();
    signal(&child, "-CONT");
    let output = child.wait_with_output().unwrap();
    assert_exit(&output, 1);
    assert_eq!(fs::read(&file).unwrap(), b"new text");
}

#[test]
fn what_an_error_says_cannot_drive_a_terminal() {
    let place = Place::new();
    let made = place.protect(&["d/\u{1b}[31mred\nwattlock: fake"]);
    assert_exit(&made, 1);
    assert!(!stderr(&made).contains('\u{1b}') && stderr(&made).contains("\\u{1b}"));
    assert!(!stderr(&made).contains("\nwattlock: fake"));
}
