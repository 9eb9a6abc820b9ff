//! A standard output in which data would be lost without an error.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::Stdio;

use wattlock_testing::{
    Place, assert_exit, assert_output_refused, stderr, stdout, with_closed_output,
};

use crate::lab;

/// Ways of the program to write data to standard output, with standard input from `d/f`.
const WRITERS: [&[&str]; 4] = [
    &["cipher", "--alg=aes-128-ctr", "--key", RAW_KEY, "--iv", RAW_KEY],
    &["hash"],
    &["sefps", "protect", "--cipher=aes-128-ecb", "--key-file=key"],
    // The summary is data, and the container is not made before there is a place for it.
    &["sefps", "protect", "--cipher=aes-128-ecb", "--key-file=key", "-f", "--json", "d/f"],
];

const RAW_KEY: &str = "00112233445566778899aabbccddeeff";

fn place() -> Place {
    let place = Place::new();
    place.write("d/f", b"text");
    place.write("key", &[7; 16]);
    place
}

#[test]
fn data_for_a_closed_standard_output_is_refused() {
    let place = place();
    for words in WRITERS {
        let mut closed = with_closed_output(Path::new(env!("CARGO_BIN_EXE_wattlock-lab")));
        let closed = closed.args(words).current_dir(place.path(""));
        let input = File::open(place.path("d/f")).unwrap();
        assert_output_refused(&closed.stdin(input).output().unwrap(), words);
    }
    // Nothing was made before it was refused.
    assert_eq!(place.names(), ["f"]);
}

/// As in the tests of `wattlock`.
#[test]
fn dev_null_is_refused_if_it_may_stand_for_a_closed_output() {
    let place = place();
    let null = || File::options().read(true).write(true).open("/dev/null").unwrap();
    for words in WRITERS {
        let run = |output: Stdio| {
            let input = File::open(place.path("d/f")).unwrap();
            let mut command = lab();
            command.args(words).current_dir(place.path("")).stdin(input).stdout(output);
            command.output().unwrap()
        };
        assert_output_refused(&run(null().into()), words);
        assert_exit(&run(Stdio::null()), 0);
    }
    // What puts its data elsewhere needs no standard output.
    let mut sefps = lab();
    sefps.args(WRITERS[2]).args(["--force", "d/f"]).current_dir(place.path(""));
    let made = sefps.stdout(null()).output().unwrap();
    assert_exit(&made, 0);
    assert_eq!(stdout(&made), "");
    assert_eq!(place.names(), ["f", "f.sefps"]);
}

/// As in the tests of `wattlock`.
#[test]
fn a_reader_that_goes_away_ends_the_program_quietly() {
    let place = place();
    let help: &[&str] = &["help", "cipher"];
    for words in WRITERS.into_iter().chain([help]) {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = lab();
        command.args(words).current_dir(place.path("")).stdout(writer).stderr(Stdio::piped());
        command.stdin(File::open(place.path("d/f")).unwrap());
        let ran = command.spawn().unwrap().wait_with_output().unwrap();
        assert_eq!(ran.status.signal(), Some(13), "{words:?}: {} {}", ran.status, stderr(&ran));
    }
}
