//! `wattlock stream` whose peers, backends and disks fail for a while: nothing ends but what failed,
//! nothing accepted is lost without a count, nothing comes twice.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Output;
use std::thread;

use crate::support::disk::SmallDisk;
use crate::support::stream::{Gateway, json_summary, open, opened, sealed, stream, units};
use crate::support::{Place, assert_exit, pattern, stderr, wattlock, with_input};

/// A gateway that opens what comes to `listen`.
fn opening(place: &Place, listen: &str, output: &[&str]) -> Gateway {
    let mut command = wattlock();
    command.args(["stream", "--json", "--open", "--listen", listen, "-i"]);
    Gateway::start_with(command.arg(place.path("key.txt")).args(output))
}

/// A gateway that seals what comes to the socket `in` and sends it to `peer`.
fn sealing(place: &Place, framing: &str, peer: &str) -> Gateway {
    let listen = unix(&place.path("in"));
    let args = ["--json", "--listen", &listen, "--framing", framing, "--connect", peer];
    Gateway::start(place, &args)
}

fn unix(path: &Path) -> String {
    format!("unix:{}", path.display())
}

/// A message that is sealed by itself: two do not fit into one unit.
fn message(number: u32) -> Vec<u8> {
    let mut message = number.to_be_bytes().to_vec();
    message.resize(40_000, number as u8);
    [&(message.len() as u32).to_be_bytes()[..], &message].concat()
}

/// The numbers of messages, each of which has to be whole.
fn numbers(mut bytes: &[u8]) -> Vec<u32> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        let number = u32::from_be_bytes(bytes[4..8].try_into().unwrap());
        assert_eq!(bytes[..40_004], message(number), "message {number} is torn");
        bytes = &bytes[40_004..];
        numbers.push(number);
    }
    numbers
}

/// Sends `messages` of `message`, one after the other.
fn send(to: &mut UnixStream, messages: std::ops::Range<u32>) {
    messages.for_each(|number| to.write_all(&message(number)).unwrap());
}

#[test]
fn a_peer_that_is_killed_and_comes_back_gets_all_that_was_not_sent_to_it() {
    let place = Place::new();
    let (link, out) = (unix(&place.path("link")), place.path("out"));
    let output = ["-o", out.to_str().unwrap()];
    let first = opening(&place, &link, &output);
    let gateway = sealing(&place, "length", &link);
    let mut sender = UnixStream::connect(place.path("in")).unwrap();
    send(&mut sender, 0..50);
    first.wait_until("messages", |_| first.value("wattlock_stream_messages_total") >= 50.0);
    first.signal("-KILL");
    first.end();
    // The first of these finds out that the peer is gone.
    send(&mut sender, 50..300);
    gateway.wait_for("wattlock_stream_output_waiting 1");
    let second = opening(&place, &link, &output);
    send(&mut sender, 300..400);
    drop(sender);
    gateway.wait_for("wattlock_stream_messages_total 400");
    gateway.wait_for("wattlock_stream_connections_open 0");
    let sealed = gateway.stop();
    second.wait_for("wattlock_stream_connections_open 0");
    let received = second.stop();
    assert_exit(&received, 0);
    assert!(stderr(&received).contains("began in an earlier"), "{}", stderr(&received));

    // Each start of the receiver writes a file of its own.
    let files = [&out, &place.path("out.000001")].map(|path| numbers(&fs::read(path).unwrap()));
    assert!(files.iter().all(|file| file.is_sorted()));
    let all: BTreeSet<u32> = files.iter().flatten().copied().collect();
    assert_eq!(all.len(), files[0].len() + files[1].len(), "something came twice");
    let lost = (0..400).filter(|number| !all.contains(number)).count() as u64;
    let summary = json_summary(&sealed);
    let maybe_lost = summary["units_maybe_lost"].as_u64().unwrap();
    assert!(lost <= maybe_lost && maybe_lost >= 50, "{lost} of {maybe_lost}");
    assert!((300..400).all(|number| all.contains(&number)));
    assert_eq!(summary["peer_failures"], 1);
    // What may be lost is no success.
    assert_exit(&sealed, 1);
}

#[test]
fn a_peer_that_goes_away_twice_within_one_window_breaks_no_stream() {
    let place = Place::new();
    let link = place.path("link");
    let listener = UnixListener::bind(&link).unwrap();
    let gateway = sealing(&place, "length", &unix(&link));
    let mut received = Vec::new();
    let mut sender = UnixStream::connect(place.path("in")).unwrap();
    let mut other = UnixStream::connect(place.path("in")).unwrap();
    let sending = thread::spawn(move || {
        for number in (0..300).step_by(2) {
            sender.write_all(&message(number)).unwrap();
            other.write_all(&message(number + 1)).unwrap();
        }
    });
    // Both times it reads a little and leaves the rest, which is a reset.
    for take in [1_000_000, 700_001] {
        let (mut stream, _) = listener.accept().unwrap();
        let mut bytes = vec![0; take];
        stream.read_exact(&mut bytes).unwrap();
        received.push(bytes);
    }
    let (mut stream, _) = listener.accept().unwrap();
    let rest = thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        bytes
    });
    sending.join().unwrap();
    gateway.wait_for("wattlock_stream_messages_total 300");
    gateway.wait_for("wattlock_stream_connections_open 0");
    let summary = json_summary(&gateway.stop());
    received.push(rest.join().unwrap());

    // No two streams have a key in common: each begins with a salt of its own.
    let headers: BTreeSet<_> = received.iter().map(|bytes| bytes[..500].to_vec()).collect();
    assert_eq!(headers.len(), 3);
    let mut all = Vec::new();
    for (number, bytes) in received.iter().enumerate() {
        let output = open(&place, bytes);
        // The last is whole.
        assert_exit(&output, if number == 2 { 0 } else { 3 });
        let taken = numbers(&output.stdout);
        for lane in 0..2 {
            let of_lane = taken.iter().filter(|number| *number % 2 == lane);
            assert!(of_lane.is_sorted(), "messages of a connection keep their order");
        }
        all.extend(taken);
    }
    let distinct: BTreeSet<u32> = all.iter().copied().collect();
    assert_eq!(distinct.len(), all.len(), "something came twice");
    let lost = 300 - all.len() as u64;
    let maybe_lost = summary["units_maybe_lost"].as_u64().unwrap();
    assert!(lost <= maybe_lost && maybe_lost < 300, "{lost} of {maybe_lost}");
    assert_eq!(summary["peer_failures"], 2);
    assert_eq!(summary["units_undelivered"], 0);
}

#[test]
fn what_follows_a_broken_link_goes_into_a_new_file() {
    let place = Place::new();
    let out = place.path("out");
    let receiver = opening(&place, "tcp:127.0.0.1:0", &["-o", out.to_str().unwrap()]);
    let whole = sealed(&place, &[], b"before the cut");
    let mut link = TcpStream::connect(receiver.address().trim_start_matches("tcp:")).unwrap();
    link.write_all(&whole[..whole.len() - 1]).unwrap();
    drop(link);
    receiver.wait_for("wattlock_stream_connections_open 0");
    let sent = with_input(stream(&place).args(["--connect", &receiver.address()]), b"after it");
    assert_exit(&sent, 0);
    receiver.wait_for("wattlock_stream_connections_total 2");
    receiver.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&receiver.stop(), 3);
    assert_eq!(fs::read(&out).unwrap(), b"before the cut");
    assert_eq!(fs::read(place.path("out.000001")).unwrap(), b"after it");
}

#[test]
fn a_backend_that_refuses_or_resets_ends_only_its_own_connection() {
    let place = Place::new();
    let backend = place.path("backend");
    let link = unix(&place.path("link"));
    let receiver = opening(&place, &link, &["--connect", &unix(&backend)]);
    let gateway = sealing(&place, "ndjson", &link);
    let connect = || UnixStream::connect(place.path("in")).unwrap();
    let (mut first, mut second) = (connect(), connect());
    first.write_all(b"first 1\n").unwrap();
    second.write_all(b"second 1\n").unwrap();
    // The backend does not listen yet, and the receiver retries.
    receiver.wait_for("wattlock_stream_output_waiting 1");
    let listener = UnixListener::bind(&backend).unwrap();
    let accept = || {
        let mut lines = BufReader::new(listener.accept().unwrap().0);
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        (line, lines)
    };
    let mut accepted = [accept(), accept()];
    accepted.sort_by(|one, other| one.0.cmp(&other.0));
    let [(one, reset), (two, mut kept)] = accepted;
    assert_eq!((one.as_str(), two.as_str()), ("first 1\n", "second 1\n"));
    // What a backend closes with unread bytes is a reset.
    first.write_all(b"first 2\n").unwrap();
    receiver.wait_for("wattlock_stream_messages_total 3");
    receiver.wait_for("wattlock_stream_kept_units 0");
    drop(reset);
    let mut line = String::new();
    // The connection that was reset is replaced once there is something for it.
    first.write_all(b"first 3\n").unwrap();
    receiver.wait_until("a reset", |text| text.contains("peer_failures_total 1"));
    let (number, mut again) = accept();
    assert_eq!(number, "first 3\n");
    second.write_all(b"second 2\n").unwrap();
    kept.read_line(&mut line).unwrap();
    assert_eq!(line, "second 2\n");
    drop((first, second));
    line.clear();
    assert_eq!(again.read_line(&mut line).unwrap() + kept.read_line(&mut line).unwrap(), 0);
    gateway.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&gateway.stop(), 0);
    receiver.wait_for("wattlock_stream_connections_open 0");
    let received = receiver.stop();
    let summary = json_summary(&received);
    // "first 1" and "first 2" went over the connection that was reset.
    assert_eq!(summary["units_maybe_lost"], 2, "{}", stderr(&received));
    assert_eq!((&summary["units_undelivered"], &summary["units_dropped"]), (&0.into(), &0.into()));
    assert_exit(&received, 1);
}

#[test]
fn an_application_that_does_not_read_stops_only_its_own_connection() {
    let place = Place::new();
    let backend = place.path("backend");
    let listener = UnixListener::bind(&backend).unwrap();
    let link = unix(&place.path("link"));
    let connect = unix(&backend);
    let receiver = opening(&place, &link, &["--connect", &connect, "--peer-timeout", "1"]);
    let gateway = sealing(&place, "ndjson", &link);
    let mut stuck = UnixStream::connect(place.path("in")).unwrap();
    stuck.write_all(b"stuck\n").unwrap();
    let does_not_read = listener.accept().unwrap();
    let mut quick = UnixStream::connect(place.path("in")).unwrap();
    quick.write_all(b"quick 0\n").unwrap();
    let mut reads = BufReader::new(listener.accept().unwrap().0);
    let sender = thread::spawn(move || {
        // More than everything between them holds.
        (0..1000).for_each(|_| stuck.write_all(&[&[b'x'; 100_000][..], b"\n"].concat()).unwrap());
    });
    receiver.wait_until("drops", |_| receiver.value("wattlock_stream_units_dropped_total") > 0.0);
    let mut line = String::new();
    for number in 0..100 {
        quick.write_all(format!("quick {}\n", number + 1).as_bytes()).unwrap();
        line.clear();
        reads.read_line(&mut line).unwrap();
        assert_eq!(line, format!("quick {number}\n"));
    }
    sender.join().unwrap();
    assert!(receiver.peak_memory() < 200 << 20, "{}", receiver.peak_memory());
    drop((quick, does_not_read));
    gateway.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&gateway.stop(), 0);
    let received = receiver.stop();
    assert_exit(&received, 1);
    assert!(stderr(&received).contains("it accepted nothing for 1 s"), "{}", stderr(&received));
}

#[test]
fn a_full_disk_holds_senders_back_and_loses_nothing() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(place.path("small")) else { return };
    let file = disk.path().join("out");
    let listen = unix(&place.path("in"));
    let args = ["--json", "--listen", &listen, "--framing", "length", "-o", file.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    let mut sender = UnixStream::connect(place.path("in")).unwrap();
    let sending = thread::spawn(move || send(&mut sender, 0..200));
    gateway.wait_for("wattlock_stream_output_waiting 1");
    // What is there is whole frames: a kill now would tear none.
    let written = fs::read(&file).unwrap();
    assert_eq!(units(&written).concat(), written);
    let so_far = open(&place, &written);
    assert_exit(&so_far, 3);
    assert!(stderr(&so_far).contains("its last frame is missing"), "{}", stderr(&so_far));
    assert!(numbers(&so_far.stdout).len() > 10);
    disk.grow();
    sending.join().unwrap();
    gateway.wait_for("wattlock_stream_messages_total 200");
    gateway.wait_for("wattlock_stream_connections_open 0");
    let output = gateway.stop();
    assert_exit(&output, 0);
    let summary = json_summary(&output);
    assert_eq!((&summary["units_undelivered"], &summary["output_waits"]), (&0.into(), &1.into()));
    let said = stderr(&output);
    assert_eq!(said.matches("No space left").count(), 1, "{said}");
    assert!(said.contains(&format!("cannot write to {}", file.display())), "{said}");
    assert!(numbers(&opened(&place, &fs::read(&file).unwrap())).into_iter().eq(0..200));
}

#[test]
fn a_disk_that_stays_full_is_a_failure_that_names_the_file() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(place.path("small")) else { return };
    let file = disk.path().join("out");
    let bytes = pattern(8 << 20);
    let output = with_input(stream(&place).args(["--retry", "0", "-o"]).arg(&file), &bytes);
    let written = fs::read(&file).unwrap();
    assert_exit(&output, 1);
    let said = stderr(&output);
    assert!(said.contains("No space") && said.contains(file.to_str().unwrap()), "{said}");
    assert_eq!(units(&written).concat(), written);
    let output = open(&place, &written);
    assert_exit(&output, 3);
    assert!(bytes.starts_with(&output.stdout));
}

/// What fits into the memory of the output is written only at the end, when nothing more comes in.
#[test]
fn a_short_stream_ends_when_its_output_stays_full() {
    let place = Place::new();
    let sealed = sealed(&place, &[], b"one\ntwo\n");
    for (open, input) in [(false, &b"one\ntwo\n"[..]), (true, &sealed)] {
        let mut command = wattlock();
        command.args(["stream", "--retry", "1", "-o", "/dev/full", "-i"]);
        command.arg(place.path("key.txt")).args(open.then_some("--open"));
        let ended = with_input(&mut command, input);
        assert_exit(&ended, 1);
        assert!(stderr(&ended).contains("No space left"), "{}", stderr(&ended));
    }
}

#[test]
fn force_replaces_no_file_that_is_being_written() {
    let place = Place::new();
    let (listen, out) = (unix(&place.path("in")), place.path("out"));
    let gateway = Gateway::start(&place, &["--listen", &listen, "-o", out.to_str().unwrap()]);
    let mut sender = UnixStream::connect(place.path("in")).unwrap();
    sender.write_all(b"one").unwrap();
    let second = with_input(stream(&place).args(["-f", "-o"]).arg(&out), b"another");
    assert_exit(&second, 1);
    assert!(stderr(&second).contains("another process is writing to it"), "{}", stderr(&second));
    sender.write_all(b" and two").unwrap();
    drop(sender);
    gateway.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&gateway.stop(), 0);
    assert_eq!(opened(&place, &fs::read(&out).unwrap()), b"one and two");
    // It can be replaced once it is not written any more.
    assert_exit(&with_input(stream(&place).args(["-f", "-o"]).arg(&out), b"another"), 0);
    assert_eq!(opened(&place, &fs::read(&out).unwrap()), b"another");
}

/// A wrong key, no stream, a part of its header, an address that is none.
#[test]
fn an_output_of_which_nothing_comes_is_as_it_was() {
    let place = Place::new();
    let sealed_to_us = sealed(&place, &[], b"message");
    let other = ["keygen", "-o", "other.txt"];
    assert_exit(&wattlock().current_dir(place.path("")).args(other).output().unwrap(), 0);
    let (file, other, key) = (place.path("out"), place.path("other.txt"), place.path("key.txt"));
    let open = |key: &Path, input: &[u8], force: bool| {
        let mut command = wattlock();
        command.args(["stream", "--open", "-i"]).arg(key).args(force.then_some("-f"));
        with_input(command.arg("-o").arg(&file), input)
    };
    for before in [None, Some(b"precious")] {
        let is_as_before = || match before {
            Some(bytes) => fs::read(&file).unwrap() == bytes,
            None => !file.exists(),
        };
        if let Some(bytes) = before {
            fs::write(&file, bytes).unwrap();
        }
        let force = before.is_some();
        assert_exit(&open(&other, &sealed_to_us, force), 3);
        assert!(is_as_before());
        assert_exit(&open(&key, b"root:x:0:0:root:/root:/bin/sh", force), 3);
        assert!(is_as_before());
        assert_exit(&open(&key, &sealed_to_us[..40], force), 3);
        assert!(is_as_before());
        let mut command = stream(&place);
        command.args(force.then_some("-f")).args(["--listen", "unix:/no/such/folder/socket", "-o"]);
        assert_exit(&command.arg(&file).output().unwrap(), 1);
        assert!(is_as_before());
    }
    // A stream without messages is something.
    assert_exit(&open(&key, &sealed(&place, &[], b""), true), 0);
    assert_eq!(fs::read(&file).unwrap(), b"");
}

#[test]
fn a_restart_with_the_same_output_goes_on_in_the_next_file() {
    let place = Place::new();
    let path = place.path("d/log.wls");
    let run =
        |text: &str| -> Output { with_input(stream(&place).arg("-o").arg(&path), text.as_bytes()) };
    assert_exit(&run("one"), 0);
    let second = run("two");
    assert_exit(&second, 0);
    assert!(stderr(&second).contains("log.wls.000001"), "{}", stderr(&second));
    assert_exit(&run("three"), 0);
    assert_eq!(place.names(), ["log.wls", "log.wls.000001", "log.wls.000002"]);
    // A number that was used is not used again while a later one is there.
    fs::remove_file(place.path("d/log.wls.000001")).unwrap();
    assert_exit(&run("four"), 0);
    assert_eq!(place.names(), ["log.wls", "log.wls.000002", "log.wls.000003"]);
    for (name, text) in
        [("log.wls", "one"), ("log.wls.000002", "three"), ("log.wls.000003", "four")]
    {
        let file = fs::read(place.path("d").join(name)).unwrap();
        assert_eq!(opened(&place, &file), text.as_bytes());
    }
}

#[test]
fn an_output_that_is_the_input_is_refused() {
    let place = Place::new();
    let file = place.write("d/data", b"one\ntwo\n");
    let link = place.path("d/link");
    fs::hard_link(&file, &link).unwrap();
    for output in [&file, &link] {
        let input = fs::File::open(&file).unwrap();
        let made = stream(&place).args(["-f", "-o"]).arg(output).stdin(input).output().unwrap();
        assert_exit(&made, 2);
        assert!(stderr(&made).contains("is the input"), "{}", stderr(&made));
        assert_eq!(fs::read(&file).unwrap(), b"one\ntwo\n");
    }
}

#[test]
fn an_output_that_is_appended_to_the_input_is_refused() {
    let place = Place::new();
    let file = place.write("d/data", b"one\ntwo\n");
    let input = fs::File::open(&file).unwrap();
    let output = fs::File::options().append(true).open(&file).unwrap();
    let made = stream(&place).stdin(input).stdout(output).output().unwrap();
    assert_exit(&made, 2);
    assert!(stderr(&made).contains("appended to the input"), "{}", stderr(&made));
    assert_eq!(fs::read(&file).unwrap(), b"one\ntwo\n");
}

#[test]
fn a_peer_that_is_not_there_at_the_start_is_waited_for() {
    let place = Place::new();
    let (peer, out) = (unix(&place.path("peer")), place.path("out"));
    let gateway = sealing(&place, "ndjson", &peer);
    gateway.wait_for("wattlock_stream_output_waiting 1");
    let mut sender = UnixStream::connect(place.path("in")).unwrap();
    sender.write_all(b"before the peer\n").unwrap();
    gateway.wait_for("wattlock_stream_messages_total 1");
    let receiver = opening(&place, &peer, &["-o", out.to_str().unwrap()]);
    receiver.wait_for("wattlock_stream_out_bytes_total 16");
    gateway.wait_for("wattlock_stream_output_waiting 0");
    drop(sender);
    let output = gateway.stop();
    assert_exit(&output, 0);
    let said = stderr(&output);
    let counted = json_summary(&output)["peer_failures"].as_u64();
    assert_eq!(counted, Some(0), "there was no connection to lose");
    assert!(said.contains("retrying") && said.contains("again"), "{said}");
    assert_exit(&receiver.stop(), 0);
    assert_eq!(fs::read(out).unwrap(), b"before the peer\n");
    // Nothing waits for ever in a pipe, and nothing for what waiting does not mend.
    let nowhere = unix(&place.path("nowhere"));
    let mut command = stream(&place);
    assert_exit(&with_input(command.args(["--retry", "0", "--connect", &nowhere]), b"a"), 1);
}

#[test]
fn a_disk_that_is_full_at_the_start_is_waited_for() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(place.path("small")) else { return };
    let mut filler = fs::File::create(disk.path().join("filler")).unwrap();
    while filler.write_all(&[0; 4096]).is_ok() {}
    let mut command = stream(&place);
    command.args(["--framing", "ndjson", "-o"]).arg(disk.path().join("logs/"));
    command.stdin(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"a line\n").unwrap();
    let mut said = BufReader::new(child.stderr.take().unwrap());
    let mut first = String::new();
    said.read_line(&mut first).unwrap();
    assert!(first.contains("No space left on device") && first.contains("retrying"), "{first}");
    disk.grow();
    let mut rest = String::new();
    said.read_to_string(&mut rest).unwrap();
    assert!(child.wait().unwrap().success(), "{rest}");
    assert!(rest.contains("again"), "{rest}");
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt"));
    let output = command.arg(disk.path().join("logs")).output().unwrap();
    assert_exit(&output, 0);
    assert_eq!(output.stdout, b"a line\n");
}
