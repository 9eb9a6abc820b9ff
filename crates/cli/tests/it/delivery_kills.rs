//! Kills and lost readers where nobody acknowledges what is delivered: what may be lost or doubled is what the tables in
//! `docs/streams.md` say.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::Child;
use std::thread;

use wattlock_testing::wait_until;

use crate::following::{following, lines, seal, stop, unix, wait_for_segments};
use crate::support::stream::{Gateway, segments, stream};
use crate::support::{Place, assert_exit, wattlock};

/// Lines in the folder that is delivered: some megabytes, so that a position is noted several times.
const LINES: usize = 300_000;

/// The most that may be delivered twice: a position is noted after a megabyte, with the record that completes it.
const DOUBLED: usize = (1 << 20) + (256 << 10);

/// Reads until so many bytes have come, or all.
fn read_some(from: &mut impl Read, bytes: usize) -> Vec<u8> {
    let mut read = Vec::new();
    from.take(bytes as u64).read_to_end(&mut read).unwrap();
    read
}

/// Kills a follower that has delivered a part, and returns the rest of what it had written.
fn kill(mut follower: Child, from: &mut impl Read) -> Vec<u8> {
    follower.kill().unwrap();
    follower.wait().unwrap();
    read_some(from, usize::MAX)
}

/// Seals all lines into the folder.
fn seal_all(place: &Place) {
    seal(place, &lines(0, LINES), &["--rotate-size", "100K"]);
}

/// Waits until all of the folder was delivered, and stops the follower.
fn finish(place: &Place, follower: Child) {
    wait_for_segments(place, segments(&place.path("logs")).len());
    assert_exit(&stop(follower), 0);
}

/// The same, while what it writes is read.
fn read_to_the_end(
    place: &Place,
    follower: Child,
    mut from: impl Read + Send + 'static,
) -> Vec<u8> {
    let reader = thread::spawn(move || read_some(&mut from, usize::MAX));
    finish(place, follower);
    reader.join().unwrap()
}

/// Where in the lines of the folder what a run delivered begins and ends, without a line that was cut at its end.
fn place_of(delivered: &[u8]) -> (usize, usize) {
    let all = lines(0, LINES);
    let end = delivered.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
    let first = delivered[..end].split_inclusive(|byte| *byte == b'\n').next().unwrap();
    let number: usize = String::from_utf8_lossy(&first[b"line ".len()..]).trim().parse().unwrap();
    let start = lines(0, number).len();
    assert!(all[start..].starts_with(&delivered[..end]), "from line {number} on they differ");
    (start, start + end)
}

/// Checks runs one after the other: nothing between them is missing but `lost` bytes at most, and no more than [`DOUBLED`] came
/// twice.
fn check(runs: &[Vec<u8>], lost: usize) {
    let mut reached = 0;
    for run in runs.iter().filter(|run| !run.is_empty()) {
        let (start, end) = place_of(run);
        assert!(start <= reached + lost, "{} bytes are missing", start - reached);
        assert!(start + DOUBLED >= reached, "{} bytes came twice", reached - start);
        reached = reached.max(end);
    }
    assert_eq!(reached, lines(0, LINES).len(), "the end is missing");
}

#[test]
fn a_killed_follower_loses_nothing_on_its_standard_output() {
    let place = Place::new();
    seal_all(&place);
    let mut runs = Vec::new();
    for bytes in [1, 1_500_000, 1_200_000] {
        let mut follower = following(&place, &[]);
        let mut output = follower.stdout.take().unwrap();
        // It waits for the pipe from then on.
        let mut run = read_some(&mut output, bytes);
        run.extend(kill(follower, &mut output));
        runs.push(run);
    }
    let mut last = following(&place, &[]);
    let output = last.stdout.take().unwrap();
    runs.push(read_to_the_end(&place, last, output));
    check(&runs, 0);
}

#[test]
fn a_reader_of_standard_output_that_goes_away_loses_what_the_pipe_held() {
    let place = Place::new();
    seal_all(&place);
    let mut first = following(&place, &[]);
    let mut output = first.stdout.take().unwrap();
    let read = read_some(&mut output, 1_500_000);
    drop(output);
    let ended = first.wait_with_output().unwrap();
    assert!(!ended.status.success());
    let mut last = following(&place, &[]);
    let output = last.stdout.take().unwrap();
    // A line may have been read in part.
    check(&[read, read_to_the_end(&place, last, output)], (64 << 10) + 100);
}

#[test]
fn a_killed_follower_loses_nothing_on_its_way_to_a_peer_that_acknowledges_nothing() {
    let place = Place::new();
    seal_all(&place);
    let listener = UnixListener::bind(place.path("peer.sock")).unwrap();
    let to = unix(&place.path("peer.sock"));
    let mut runs = Vec::new();
    for bytes in [1, 1_500_000] {
        let follower = following(&place, &["-q", "--connect", &to]);
        let mut peer = listener.accept().unwrap().0;
        let mut run = read_some(&mut peer, bytes);
        run.extend(kill(follower, &mut peer));
        runs.push(run);
    }
    let last = following(&place, &["-q", "--connect", &to]);
    let peer = listener.accept().unwrap().0;
    runs.push(read_to_the_end(&place, last, peer));
    check(&runs, 0);
}

#[test]
fn a_killed_follower_goes_on_in_the_next_file_and_loses_nothing() {
    let place = Place::new();
    seal_all(&place);
    let out = place.path("out").display().to_string();
    let mut first = following(&place, &["-o", &out]);
    wait_until("something is in the file", || {
        fs::metadata(place.path("out")).is_ok_and(|file| file.len() > 1_200_000)
    });
    first.kill().unwrap();
    first.wait().unwrap();
    let second = following(&place, &["-o", &out]);
    finish(&place, second);
    check(&["out", "out.000001"].map(|name| fs::read(place.path(name)).unwrap_or_default()), 0);
}

/// A gateway that has no folder seals what a sender writes, and another opens it; the first is killed.
#[test]
fn a_killed_gateway_without_a_folder_loses_what_it_had_and_no_more() {
    let place = Place::new();
    let at = |name: &str| unix(&place.path(name));
    let sink = UnixListener::bind(place.path("sink.sock")).unwrap();
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt"));
    let opening = Gateway::start_with(command.args([
        "--listen",
        &at("link.sock"),
        "--connect",
        &at("sink.sock"),
    ]));
    let sealing = || {
        let mut command = stream(&place);
        command.args(["--framing", "ndjson", "--listen", &at("in.sock")]);
        Gateway::start_with(command.args(["--connect", &at("link.sock")]))
    };
    let mut first = sealing();
    let mut sender = UnixStream::connect(place.path("in.sock")).unwrap();
    let sending = thread::spawn(move || {
        // Fails once the gateway is gone.
        let _ = sender.write_all(&lines(0, LINES));
        // It does not end its connection.
        sender
    });
    let mut delivered = sink.accept().unwrap().0;
    let mut run = read_some(&mut delivered, 100_000);
    first.signal("-KILL");
    first.wait_for_exit();
    let _sender = sending.join().unwrap();
    // The connection ends with the stream that it came from.
    delivered.read_to_end(&mut run).unwrap();
    // Whole lines from the first on, and nothing else.
    assert_eq!(run.last(), Some(&b'\n'));
    assert_eq!(place_of(&run).0, 0);
    let second = sealing();
    UnixStream::connect(place.path("in.sock")).unwrap().write_all(b"after\n").unwrap();
    let mut delivered = sink.accept().unwrap().0;
    assert_eq!(read_some(&mut delivered, 6), b"after\n");
    assert_exit(&second.stop(), 0);
    // It reports the stream that was cut.
    let _ = opening.stop();
}
