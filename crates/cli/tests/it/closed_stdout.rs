//! A standard output in which data would be lost without an error.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Place, assert_exit, pattern, stderr, stdout, wattlock, with_input};
use wattlock_testing::{assert_output_refused, wattlock_path, with_closed_output};

/// Every way of the program to write data to standard output, with standard input from a file.
fn writers(place: &Place) -> Vec<Vec<OsString>> {
    let (key, file) = (place.path("key.txt"), place.write("d/f", b"text"));
    let sealed = place.container("sealed", b"text");
    let stream = place.path("d/stream");
    let sealing = ["stream", "-r", &place.recipient];
    let made = with_input(wattlock().args(sealing).arg("-o").arg(&stream), b"message\n");
    assert_exit(&made, 0);
    let protect = ["protect", "-r", &place.recipient];
    let words = |start: &[&str], rest: &[&Path]| -> Vec<OsString> {
        let start = start.iter().map(OsString::from);
        start.chain(rest.iter().map(|path| path.as_os_str().to_owned())).collect()
    };
    vec![
        words(&protect, &[]),
        words(&[&protect[..], &["-o-"]].concat(), &[&file]),
        words(&[&protect[..], &["-o", "/dev/stdout"]].concat(), &[&file]),
        words(&["unprotect", "-o-", "-i"], &[&key, &sealed]),
        words(&sealing, &[]),
        words(&["stream", "--open", "-i"], &[&key, &folder(place)]),
        words(&["keygen"], &[]),
    ]
}

/// A folder of segments with one message.
fn folder(place: &Place) -> PathBuf {
    let folder = place.path("folder");
    let output = format!("{}/", folder.display());
    let made = ["stream", "-r", &place.recipient, "-o", &output];
    assert_exit(&with_input(wattlock().args(made), b"message\n"), 0);
    folder
}

fn input(place: &Place, words: &[OsString]) -> File {
    let opens = words.iter().any(|word| word == "--open");
    File::open(place.path(if opens { "d/stream" } else { "d/f" })).unwrap()
}

#[test]
fn data_for_a_closed_standard_output_is_refused() {
    let place = Place::new();
    for words in writers(&place) {
        let mut closed = with_closed_output(&wattlock_path());
        let ran = closed.args(&words).stdin(input(&place, &words)).output().unwrap();
        assert_output_refused(&ran, &words);
    }
    // Nothing was made before it was refused.
    assert_eq!(place.names(), ["f", "sealed.wlk", "stream"]);
}

/// Python's `subprocess.DEVNULL` is opened for reading and writing, as is what the runtime puts in the
/// place of a closed descriptor; the shell's `>/dev/null` is for writing.
#[test]
fn dev_null_is_refused_if_it_may_stand_for_a_closed_output() {
    let place = Place::new();
    let null = || File::options().read(true).write(true).open("/dev/null").unwrap();
    for words in writers(&place) {
        let mut command = wattlock();
        let ran =
            command.args(&words).stdin(input(&place, &words)).stdout(null()).output().unwrap();
        assert_output_refused(&ran, &words);
        let mut command = wattlock();
        let ran = command.args(&words).stdin(input(&place, &words)).stdout(Stdio::null()).output();
        assert_exit(&ran.unwrap(), 0);
    }
    // What puts its data elsewhere needs no standard output.
    let (out, file) = (place.path("out"), place.path("d/f"));
    for args in [&["-o".as_ref(), out.as_os_str()][..], &["-o".as_ref(), "/dev/null".as_ref()], &[]]
    {
        let mut command = wattlock();
        command.args(["protect", "--force", "-r", &place.recipient]).args(args).arg(&file);
        assert_exit(&command.stdout(null()).output().unwrap(), 0);
    }
    assert!(fs::read(out).unwrap().starts_with(b"wattlock/v1"));
    let mut verify = wattlock();
    verify.args(["verify", "-i"]).arg(place.path("key.txt")).arg(place.path("d/f.wlk"));
    let verified = verify.stdout(null()).output().unwrap();
    assert_exit(&verified, 0);
    assert_eq!(stdout(&verified), "");
}

/// A report may be thrown away, as by a program that looks at the exit code only.
#[test]
fn reports_need_no_standard_output() {
    let place = Place::new();
    let (file, sealed) = (place.write("f", b"text"), place.container("sealed", b"text"));
    let (file, sealed) = (file.to_str().unwrap(), sealed.to_str().unwrap());
    let key = place.path("key.txt");
    let key = key.to_str().unwrap();
    let out = place.path("json.wlk");
    for words in [
        &["protect", "--json", "-i", key, "-o", out.to_str().unwrap(), file][..],
        &["protect", "-n", "-i", key, file],
        &["verify", "--json", "-i", key, sealed],
        &["inspect", sealed],
        &["measure", "--json", "--", "true"],
        &["measure", "--", "true"],
        &["doctor"],
        &["completions", "bash"],
    ] {
        let null = File::options().read(true).write(true).open("/dev/null").unwrap();
        let mut command = wattlock();
        let ran = command.args(words).stdin(Stdio::null()).stdout(null).output().unwrap();
        assert_exit(&ran, 0);
    }
    assert!(out.exists());
}

/// A closed standard input would be sealed as an empty file.
#[test]
fn a_closed_standard_input_is_refused() {
    let place = Place::new();
    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$0\" \"$@\" <&-"]).arg(wattlock_path());
    let ran = closed.args(["protect", "-r", &place.recipient]).output().unwrap();
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("cannot read standard input: it is closed"), "{ran:?}");
    assert_eq!(ran.stdout, b"");
    let mut command = wattlock();
    let empty = command.args(["protect", "-r", &place.recipient]).stdin(Stdio::null()).output();
    assert_exit(&empty.unwrap(), 0);
}

/// `wattlock … | head` ends as `cat … | head` does: quietly, by SIGPIPE. That is neither a failure
/// nor what is said of an input that was tampered with.
#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let place = Place::new();
    let (key, big) = (place.path("key.txt"), place.container("big", &pattern(20 << 20)));
    let damaged = place.container("damaged", &pattern(1 << 20));
    let mut bytes = fs::read(&damaged).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&damaged, bytes).unwrap();
    let more = [
        vec!["help".into(), "stream".into()],
        vec!["--help".into()],
        vec!["unprotect".into(), "-o-".into(), "-i".into(), key.clone().into(), big.into()],
        vec!["unprotect".into(), "-o-".into(), "-i".into(), key.into(), damaged.into()],
    ];
    for words in writers(&place).into_iter().chain(more) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = wattlock();
        command.args(&words).stdin(input(&place, &words)).stdout(writer);
        let ran = command.stderr(Stdio::piped()).spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(ran.status.signal(), Some(13), "{words:?}: {} {}", ran.status, stderr(&ran));
        assert_eq!(stderr(&ran), "", "{words:?}");
    }
}

/// The same of a pipe with a name. What was to be written where no one can write is a failure, and
/// does not look as if the container were damaged.
#[test]
fn an_output_that_cannot_be_written_is_not_called_tampered() {
    let place = Place::new();
    let sealed = place.container("big", &pattern(20 << 20));
    let fifo = place.path("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().unwrap().success());
    let open = |output: &Path| {
        let mut command = wattlock();
        command.args(["unprotect", "-i"]).arg(place.path("key.txt")).arg("-o").arg(output);
        command.arg(&sealed).stderr(Stdio::piped()).spawn().unwrap()
    };
    let child = open(&fifo);
    let mut start = [0; 100];
    File::open(&fifo).unwrap().read_exact(&mut start).unwrap();
    let ran = child.wait_with_output().unwrap();
    assert_eq!(ran.status.signal(), Some(13), "{} {}", ran.status, stderr(&ran));
    assert_eq!(stderr(&ran), "");

    let ran = open(Path::new("/dev/full")).wait_with_output().unwrap();
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("No space left on device"), "{}", stderr(&ran));
}
