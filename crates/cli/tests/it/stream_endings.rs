//! How `wattlock stream` ends: what senders had written is read and delivered, or counted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::{ChildStdin, Stdio};
use std::thread::{self, JoinHandle};

use rustix::io::ioctl_fionread;
use wattlock_testing::wait_until;

use crate::support::stream::{Gateway, json_summary, open, opened, stream};
use crate::support::{Place, assert_exit, signal, stderr};

const LINE: usize = 1000;

/// A gateway whose standard output is not read, and senders that have written all that they could.
/// Returns how many bytes they have, and threads that finish their last lines.
fn blocked(place: &Place, drain: &str) -> (Gateway, u64, Vec<JoinHandle<TcpStream>>) {
    let args = ["--framing", "ndjson", "--max-message", "64K", "--window", "1M", "--json"];
    let args = [&args[..], &["--listen", "tcp:127.0.0.1:0", "--drain", drain]].concat();
    let gateway = Gateway::start(place, &args);
    let address = gateway.address();
    let (mut written, mut finish) = (0, Vec::new());
    for sender in 0..4u8 {
        let mut stream = TcpStream::connect(address.trim_start_matches("tcp:")).unwrap();
        let mut line = vec![b'a' + sender; LINE];
        line[LINE - 1] = b'\n';
        stream.set_nonblocking(true).unwrap();
        let mut sent = 0;
        loop {
            match stream.write(&line[sent % LINE..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    // With a full window nothing moves any more.
                    let [waits, in_flight] = ["buffered", "in_flight"]
                        .map(|what| gateway.value(&format!("wattlock_stream_{what}_bytes")));
                    if waits + in_flight > 900_000.0 {
                        break;
                    }
                }
                Err(error) => panic!("{error}"),
            }
        }
        stream.set_nonblocking(false).unwrap();
        written += sent.next_multiple_of(LINE) as u64;
        finish.push(thread::spawn(move || {
            // It may be too late for this: then the gateway has to say so.
            let _ = stream.write_all(&line[sent % LINE..][..(LINE - sent % LINE) % LINE]);
            stream
        }));
    }
    (gateway, written, finish)
}

#[test]
fn at_sigterm_what_senders_had_written_is_read_to_the_last_line() {
    let place = Place::new();
    let (gateway, written, finish) = blocked(&place, "60");
    // From now on its output is read.
    let output = gateway.stop();
    let _open: Vec<_> = finish.into_iter().map(|thread| thread.join().unwrap()).collect();
    assert_exit(&output, 0);
    let lines = opened(&place, &output.stdout);
    assert_eq!(lines.len() as u64, written);
    let summary = json_summary(&output);
    assert_eq!(summary["in_bytes"], written);
    assert_eq!((&summary["bytes_unread"], &summary["units_undelivered"]), (&0.into(), &0.into()));
}

#[test]
fn at_sigterm_what_could_not_be_read_in_time_is_counted() {
    let place = Place::new();
    let (mut gateway, written, finish) = blocked(&place, "1");
    gateway.signal("-TERM");
    gateway.wait_for_exit();
    let output = gateway.end();
    drop(finish);
    assert_exit(&output, 1);
    let summary = json_summary(&output);
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert!(number("bytes_unread") > 0 && number("units_undelivered") > 0, "{summary}");
    assert!(number("in_bytes") + number("bytes_unread") <= written, "{summary}");
    assert!(stderr(&output).contains("were not read"), "{}", stderr(&output));
}

#[test]
fn a_stream_has_its_last_frame_when_time_is_up_or_a_second_signal_comes() {
    for (drain, signals) in [("0", 1), ("1", 1), ("60", 2)] {
        let place = Place::new();
        let (socket, file) = (place.path("s"), place.path("out"));
        let listen = format!("unix:{}", socket.display());
        let args = ["--framing", "ndjson", "--listen", &listen, "--drain", drain, "-o"];
        let gateway = Gateway::start(&place, &[&args[..], &[file.to_str().unwrap()]].concat());
        let mut sender = UnixStream::connect(&socket).unwrap();
        sender.write_all(b"one\nhalf").unwrap();
        gateway.wait_for("wattlock_stream_messages_total 1");
        gateway.signal("-TERM");
        if signals == 2 {
            // The first was heard.
            wait_until("no sender can connect any more", || !socket.exists());
            gateway.signal("-TERM");
        }
        let output = gateway.end();
        assert_eq!(output.status.code(), Some(i32::from(signals == 2)), "{}", stderr(&output));
        // A line was cut, which is not a stream that was.
        let opened = open(&place, &fs::read(&file).unwrap());
        assert_exit(&opened, 1);
        assert!(opened.stdout.starts_with(b"one\n"), "{}", stderr(&opened));
        drop(sender);
    }
}

#[test]
fn of_several_links_one_that_is_stuck_keeps_no_other_from_its_end() {
    let place = Place::new();
    let peer = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = format!("tcp:{}", peer.local_addr().unwrap());
    let args = ["--framing", "ndjson", "--max-message", "512K", "--window", "1M", "--drain", "1"];
    let args = [&args[..], &["--listen", "tcp:127.0.0.1:0", "--connect", &to]].concat();
    let gateway = Gateway::start(&place, &[&args[..], &["--readers", "2"]].concat());
    // The first is never read.
    let _stuck = peer.accept().unwrap();
    let (mut healthy, _) = peer.accept().unwrap();
    let address = gateway.address();
    let address = address.trim_start_matches("tcp:");
    // Each reader has one of these.
    let [mut fills, mut sends] = [(); 2].map(|()| TcpStream::connect(address).unwrap());
    sends.write_all(b"arrives\n").unwrap();
    drop(sends);
    gateway.wait_for("wattlock_stream_messages_total 1");
    gateway.wait_for("wattlock_stream_connections_open 1");
    let filled = thread::spawn(move || {
        // Three of them fit into the window, and the fourth waits.
        let line = [&[b'x'; (256 << 10) - 1][..], b"\n"].concat();
        while fills.write_all(&line).is_ok() {}
    });
    wait_until("the window is full", || {
        let waits = ["buffered", "in_flight"]
            .map(|what| gateway.value(&format!("wattlock_stream_{what}_bytes")));
        waits.iter().sum::<f64>() >= f64::from(3 << 18)
    });
    gateway.signal("-TERM");
    let mut stream = Vec::new();
    healthy.read_to_end(&mut stream).unwrap();
    let ended = gateway.end();
    assert_exit(&ended, 1);
    assert!(stderr(&ended).contains("not delivered"), "{}", stderr(&ended));
    assert_exit(&open(&place, &stream), 0);
    assert_eq!(opened(&place, &stream), b"arrives\n");
    filled.join().unwrap();
}

/// Lines of `len` bytes, each of which is another.
fn lines(count: usize, len: usize) -> Vec<u8> {
    (0..count)
        .flat_map(|number| format!("{number:0width$}\n", width = len - 1).into_bytes())
        .collect()
}

/// A gateway that was asked to stop. Its standard output has not been read so far, and its standard
/// input is a pipe that stays open and still holds `last`. Returns that pipe, and all that was
/// written to it.
fn stopped_on_pipe(place: &Place, drain: &str, last: &[u8]) -> (Gateway, ChildStdin, Vec<u8>) {
    let args = ["--framing", "ndjson", "--max-message", "64K", "--window", "128K", "--json"];
    let args = [&args[..], &["--drain", drain]].concat();
    let (gateway, mut pipe) = Gateway::start_on_pipe(place, &args);
    // One goes out, three fill the window, and the fifth waits for room: nothing moves any more.
    let first = lines(5, LONG);
    pipe.write_all(&first).unwrap();
    gateway.wait_for("wattlock_stream_messages_total 4");
    wait_until("the fifth line is read", || ioctl_fionread(&pipe).unwrap() == 0);
    pipe.write_all(last).unwrap();
    gateway.signal("-TERM");
    gateway.wait_until("the end of the metrics", str::is_empty);
    assert_eq!(ioctl_fionread(&pipe).unwrap(), last.len() as u64);
    (gateway, pipe, [&first, last].concat())
}

/// A line that is sealed by itself, and of which a pipe holds one.
const LONG: usize = 40_000;

#[test]
fn at_sigterm_what_a_pipe_holds_is_read_to_the_last_line() {
    let place = Place::new();
    let (gateway, _open, written) = stopped_on_pipe(&place, "60", &lines(60, LINE));
    // From now on its output is read.
    let output = gateway.end();
    assert_exit(&output, 0);
    assert!(opened(&place, &output.stdout) == written);
    let summary = json_summary(&output);
    assert_eq!(summary["in_bytes"], written.len());
    for lost in ["bytes_unread", "bytes_incomplete", "units_undelivered"] {
        assert_eq!(summary[lost], 0, "{lost}");
    }
}

#[test]
fn at_sigterm_a_line_that_is_being_written_to_a_pipe_is_waited_for() {
    let place = Place::new();
    let last = lines(60, LINE);
    let (begun, rest) = last.split_at(last.len() - LINE / 2);
    let (mut gateway, mut pipe, written) = stopped_on_pipe(&place, "60", begun);
    let mut stdout = gateway.take_output();
    // All whole lines have gone out, so the pipe was read to its end, and nothing is left to do.
    let mut sealed = vec![0; written.len() - LINE / 2];
    stdout.read_exact(&mut sealed).unwrap();
    pipe.write_all(rest).unwrap();
    stdout.read_to_end(&mut sealed).unwrap();
    let output = gateway.end();
    assert_exit(&output, 0);
    assert!(opened(&place, &sealed) == [&written, rest].concat());
    let summary = json_summary(&output);
    assert_eq!((&summary["bytes_unread"], &summary["bytes_incomplete"]), (&0.into(), &0.into()));
}

#[test]
fn at_sigterm_what_a_pipe_still_holds_when_time_is_up_is_counted() {
    let place = Place::new();
    let (mut gateway, _open, written) = stopped_on_pipe(&place, "1", &lines(60, LINE));
    gateway.wait_for_exit();
    let output = gateway.end();
    assert_exit(&output, 1);
    let summary = json_summary(&output);
    let number = |name: &str| summary[name].as_u64().unwrap();
    assert_eq!(number("bytes_unread"), (LONG + 60 * LINE) as u64, "{summary}");
    assert_eq!(number("in_bytes") + number("bytes_unread"), written.len() as u64, "{summary}");
    assert!(number("units_undelivered") > 0, "{summary}");
    assert!(stderr(&output).contains("were not read"), "{}", stderr(&output));
}

#[test]
fn a_signal_after_a_failure_is_not_called_the_second() {
    let place = Place::new();
    let mut command = stream(&place);
    command.args(["--framing", "ndjson", "--max-message", "1K", "--drain", "100"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // More than the pipe takes, and then a line that is too long.
    let mut input = child.stdin.take().unwrap();
    input.write_all(&b"a line of forty bytes or so, with its end\n".repeat(5000)).unwrap();
    input.write_all(&[b'x'; 5000]).unwrap();
    drop(input);
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("standard input: "), "{line}");
    signal(&child, "-TERM");
    line.clear();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("stopped by a signal; "), "{line}");
    // A reader that went away would end it by SIGPIPE.
    std::io::copy(&mut child.stdout.take().unwrap(), &mut std::io::sink()).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
}
