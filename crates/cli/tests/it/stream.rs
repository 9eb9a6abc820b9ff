//! `wattlock stream`: what went in comes out, through every way in and out.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::{HashMap, HashSet};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::net::UnixStream;
use std::process::Output;
use std::thread;

use crate::support::stream::{Gateway, json_summary, open, opened, sealed, stream};
use crate::support::{Place, assert_exit, pattern, stderr, wattlock, with_input};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

#[test]
fn what_is_sealed_opens_to_the_same_bytes_in_every_framing() {
    let place = Place::new();
    let lines = b"{\"a\":1}\n\n{\"b\":\"\xff\"}\nthe last without a newline".to_vec();
    let lengths = b"\0\0\0\x05hello\0\0\0\0\0\0\0\x01x".to_vec();
    for (framing, bytes) in [
        ("raw", Vec::new()),
        ("raw", pattern(3 << 20)),
        ("ndjson", lines),
        ("ndjson", b"many short lines\n".repeat(100_000)),
        ("length", lengths),
    ] {
        let stream = sealed(&place, &["--framing", framing], &bytes);
        assert_eq!(opened(&place, &stream), bytes, "{framing}, {} bytes", bytes.len());
        if bytes.len() > 20 {
            let found = stream.windows(16).any(|window| window == &bytes[..16]);
            assert!(!found, "nothing is in clear");
        }
    }
}

#[test]
fn a_key_file_opens_what_it_sealed_and_another_does_not() {
    let place = Place::new();
    let raw = place.write("raw", &[7; 32]);
    let hex = place.write("hex", "07".repeat(32).as_bytes());
    let other = place.write("other", &[8; 32]);
    let short = place.write("short", &[8; 31]);
    let with = |key: &std::path::Path, open: &[&str], input: &[u8]| -> Output {
        with_input(wattlock().arg("stream").args(open).arg("--key-file").arg(key), input)
    };
    let made = with(&raw, &[], b"a secret");
    assert_exit(&made, 0);
    assert_eq!(with(&hex, &["--open"], &made.stdout).stdout, b"a secret");
    let refused = with(&other, &["--open"], &made.stdout);
    assert_exit(&refused, 3);
    assert!(refused.stdout.is_empty());
    assert_exit(&with(&short, &[], b""), 2);
    // The wrong kind of key is an error.
    let identity = place.path("key.txt");
    let refused =
        with_input(wattlock().args(["stream", "--open", "-i"]).arg(identity), &made.stdout);
    assert_exit(&refused, 3);
    assert!(stderr(&refused).contains("--key-file"), "{}", stderr(&refused));
}

#[test]
fn verify_takes_a_key_file_for_sealed_streams_alone() {
    let place = Place::new();
    for (name, byte) in [("key", 7), ("other", 8)] {
        place.write(name, &[byte; 32]);
    }
    let seal = |args: &[&str], output: &str| {
        let mut command = wattlock();
        command.current_dir(place.path("")).args(["stream", "-o", output]).args(args);
        assert_exit(&with_input(&mut command, b"a secret"), 0);
    };
    seal(&["--key-file", "key"], "f.wls");
    seal(&["--key-file", "key"], "logs/");
    seal(&["-r", &place.recipient], "for-recipients.wls");
    seal(&["-r", &place.recipient], "for-recipients/");
    place.container("f", b"a container");
    let verify = |code: i32, args: &[&str]| {
        let mut command = wattlock();
        let output = command.current_dir(place.path("")).arg("verify").args(args).output().unwrap();
        assert_exit(&output, code);
        stderr(&output)
    };
    verify(0, &["--key-file", "key", "f.wls", "logs", "logs/000001.wls"]);
    for path in ["f.wls", "logs", "logs/000001.wls"] {
        verify(3, &["--key-file", "other", path]);
        let said = verify(3, &["-i", "key.txt", path]);
        assert!(said.contains("--key-file"), "{said}");
    }
    let said = verify(3, &["--key-file", "key", "for-recipients.wls"]);
    assert!(said.contains("-i or -p"), "{said}");
    verify(3, &["--key-file", "key", "for-recipients"]);
    for path in ["f.wls", "logs/000001.wls"] {
        let mut bytes = std::fs::read(place.path(path)).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(place.path(path), bytes).unwrap();
        verify(3, &["--key-file", "key", path]);
    }
    let said = verify(2, &["--key-file", "key", "logs", "d/f.wlk"]);
    assert!(said.contains("d/f.wlk is no sealed stream"), "{said}");
    for args in [
        &["--key-file", "key"][..],
        &["--key-file", "key.txt", "f.wls"],
        &["--key-file", "key", "-i", "key.txt", "f.wls"],
        &["--key-file", "key", "--signer", "signers", "f.wls"],
        &["--key-file", "key", "--shard", "1/2", "f.wls"],
        &["--key-file", "key", "--recursive", "logs"],
    ] {
        verify(2, args);
    }
}

#[test]
fn only_recipients_open_a_stream() {
    let place = Place::new();
    place.keygen("other.txt");
    let made = sealed(&place, &[], b"for one");
    let refused =
        with_input(wattlock().args(["stream", "--open", "-i"]).arg(place.path("other.txt")), &made);
    assert_exit(&refused, 3);
    assert!(refused.stdout.is_empty());
}

#[test]
fn connections_over_a_unix_socket_all_arrive_and_leave_over_connections_of_their_own() {
    let place = Place::new();
    let socket = place.path("in.sock");
    let file = place.path("out.wls");
    let listen = format!("unix:{}", socket.display());
    let args = ["--listen", &listen, "--framing", "ndjson", "-o", file.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    let text =
        |user: usize| (0..50).map(|line| format!("user {user} line {line}\n")).collect::<String>();
    thread::scope(|scope| {
        for user in 0..20 {
            let socket = &socket;
            scope.spawn(move || {
                let mut stream = UnixStream::connect(socket).unwrap();
                for line in text(user).split_inclusive('\n') {
                    stream.write_all(line.as_bytes()).unwrap();
                }
            });
        }
    });
    gateway.wait_for("wattlock_stream_messages_total 1000");
    gateway.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&gateway.stop(), 0);
    assert!(!socket.exists());

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let connect = format!("tcp:{}", listener.local_addr().unwrap());
    let collected = thread::spawn(move || {
        let texts = (0..20).map(|_| {
            let mut text = String::new();
            listener.accept().unwrap().0.read_to_string(&mut text).unwrap();
            text
        });
        texts.collect::<Vec<_>>()
    });
    let args = ["--open", "-i", place.path("key.txt").to_str().unwrap(), "--connect", &connect]
        .map(str::to_owned);
    let output = with_input(wattlock().arg("stream").args(args), &std::fs::read(&file).unwrap());
    assert_exit(&output, 0);
    let mut collected = collected.join().unwrap();
    collected.sort();
    let mut expected: Vec<_> = (0..20).map(text).collect();
    expected.sort();
    assert_eq!(collected, expected);
}

#[test]
fn a_thousand_connections_at_once_take_little_memory_and_lose_nothing() {
    many_connections(1000, 64 << 20);
}

#[test]
#[ignore = "takes 20,000 open files; run it by hand"]
fn ten_thousand_connections_at_once_take_little_memory_and_lose_nothing() {
    many_connections(10_000, 96 << 20);
}

fn many_connections(users: usize, most_memory: u64) {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    let place = Place::new();
    let socket = place.path("in.sock");
    let listen = format!("unix:{}", socket.display());
    let file = place.path("out.wls");
    let args = ["--listen", &listen, "--framing", "length", "-o", file.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    let mut streams: Vec<_> = (0..users).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    gateway.wait_for(&format!("wattlock_stream_connections_open {users}"));
    for (user, stream) in streams.iter_mut().enumerate() {
        let message = format!("message of {user}");
        stream.write_all(&(message.len() as u32).to_be_bytes()).unwrap();
        stream.write_all(message.as_bytes()).unwrap();
        // And the beginning of one that does not come whole.
        stream.write_all(b"\0\0\x10\0beginning").unwrap();
    }
    gateway.wait_for(&format!("wattlock_stream_messages_total {users}"));
    let peak = gateway.peak_memory();
    println!("{users} connections: {} MiB at most", peak >> 20);
    assert!(peak < most_memory, "{peak} bytes");
    drop(streams);
    gateway.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&gateway.stop(), 0);
    let output = crate::support::stream::open(&place, &std::fs::read(&file).unwrap());
    // All of them were cut, and reported.
    assert_exit(&output, 1);
    let found = String::from_utf8_lossy(&output.stdout).matches("message of ").count();
    assert_eq!(found, users);
}

#[test]
fn metrics_tell_what_was_done_and_keep_the_classes_of_joules_apart() {
    let place = Place::new();
    let file = place.path("out.wls");
    let args = ["--listen", "tcp:127.0.0.1:0", "--framing", "ndjson", "-o", file.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    let address = gateway.address();
    let mut peer = std::net::TcpStream::connect(address.trim_start_matches("tcp:")).unwrap();
    peer.write_all(b"one\ntwo\n").unwrap();
    gateway.wait_for("wattlock_stream_messages_total 2");
    gateway.wait_for("wattlock_stream_in_bytes_total 8");
    gateway.wait_for("wattlock_stream_connections_open 1");
    gateway.wait_for("wattlock_stream_window_bytes 33554432");
    gateway.wait_until("delays", |text| {
        let count =
            text.lines().find_map(|l| l.strip_prefix("wattlock_stream_delay_seconds_count "));
        count.is_some_and(|count| count != "0")
    });
    let text = gateway.metrics();
    assert!(text.starts_with("HTTP/1.1 200 OK"), "{text}");
    check_exposition(&text);
    let open = gateway.metrics_as("application/openmetrics-text;version=1.0.0,text/plain;q=0.5");
    assert!(open.contains("content-type: application/openmetrics-text; version=1.0.0"), "{open}");
    assert!(open.ends_with("# EOF\n") && open.contains("# TYPE wattlock_stream_messages counter"));
    assert!(text.contains("wattlock_stream_delay_seconds_bucket{le=\"+Inf\"} "), "{text}");
    let classes = ["measured", "integrated", "attributed", "modelled"];
    let found: Vec<_> =
        classes.iter().filter(|class| text.contains(&format!("wattlock_{class}_stream"))).collect();
    assert!(found.len() <= 1, "{found:?}");
    drop(peer);
    assert_exit(&gateway.stop(), 0);
}

/// Checks a response in Prometheus' classic form: every sample is of a family that has a help and a
/// type, a counter's name ends in `_total`, no other's does, and no sample comes twice.
fn check_exposition(response: &str) {
    let (head, text) = response.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.contains("content-type: text/plain; version=0.0.4"), "{head}");
    let (mut helped, mut types, mut samples) = (HashSet::new(), HashMap::new(), HashSet::new());
    for line in text.lines() {
        if let Some(described) = line.strip_prefix("# HELP ") {
            let (name, help) = described.split_once(' ').expect("a name and a help");
            assert!(!help.is_empty() && helped.insert(name), "{line}");
        } else if let Some(typed) = line.strip_prefix("# TYPE ") {
            let (name, kind) = typed.split_once(' ').expect("a name and a type");
            assert!(types.insert(name, kind).is_none(), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').expect("a sample and a value");
            let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
            assert!(value.is_finite() && samples.insert(sample), "{line}");
            let name = sample.split('{').next().unwrap_or_default();
            let parts = ["_bucket", "_sum", "_count"];
            let family = parts.iter().find_map(|part| name.strip_suffix(part)).unwrap_or(name);
            let kind = types.get(family).unwrap_or_else(|| panic!("no type: {line}"));
            assert!(helped.contains(family), "no help: {line}");
            assert_eq!(*kind == "histogram", family != name, "{line}");
        }
    }
    assert!(samples.len() > 20, "{text}");
}

#[test]
fn sealed_streams_arrive_over_tcp_and_are_opened_there() {
    let place = Place::new();
    let file = place.path("out");
    let identity = place.path("key.txt");
    let receiver = Gateway::start_with(
        wattlock()
            .args(["stream", "--open", "--listen", "tcp:127.0.0.1:0", "-i"])
            .arg(identity)
            .arg("-o")
            .arg(&file),
    );
    let bytes = pattern(5 << 20);
    let connect = receiver.address();
    let sent = with_input(stream(&place).args(["--connect", &connect]), &bytes);
    assert_exit(&sent, 0);
    receiver.wait_for(&format!("wattlock_stream_out_bytes_total {}", bytes.len()));
    assert_exit(&receiver.stop(), 0);
    assert_eq!(std::fs::read(file).unwrap(), bytes);
}

#[test]
fn files_are_rotated_and_open_together_and_one_by_one() {
    let place = Place::new();
    let bytes = pattern(4 << 20);
    let path = place.path("d/log.wls");
    let made = with_input(stream(&place).args(["--rotate-size", "1M", "-o"]).arg(&path), &bytes);
    assert_exit(&made, 0);
    let names = place.names();
    assert!(names.len() >= 3, "{names:?}");
    assert_eq!(names[0], "log.wls.000001");
    let files: Vec<_> =
        names.iter().map(|name| std::fs::read(place.path("d").join(name)).unwrap()).collect();
    assert_eq!(opened(&place, &files.concat()), bytes);
    let parts: Vec<_> = files.iter().map(|file| opened(&place, file)).collect();
    assert_eq!(parts.concat(), bytes);
    // Not all of them: the end may be missing, which is reported; the middle may not.
    let beginning = open(&place, &files[..2].concat());
    assert_exit(&beginning, 0);
    assert!(stderr(&beginning).contains("may go on in another file"));
    assert!(bytes.starts_with(&beginning.stdout) && beginning.stdout.len() < bytes.len());
    for wrong in [[&files[..1], &files[2..]].concat(), [&files[..2], &files[..2]].concat()] {
        let output = open(&place, &wrong.concat());
        assert_exit(&output, 3);
        assert!(bytes.starts_with(&output.stdout));
    }
    // A second run goes on with free numbers, and touches nothing.
    let again = with_input(stream(&place).args(["--rotate-size", "1M", "-o"]).arg(&path), b"more");
    assert_exit(&again, 0);
    assert_eq!(place.names().len(), names.len() + 1);
}

#[test]
fn no_sender_writes_into_the_lines_of_others() {
    let place = Place::new();
    let socket = place.path("s");
    let file = place.path("out");
    let listen = format!("unix:{}", socket.display());
    let args = ["--listen", &listen, "--framing", "ndjson", "-o", file.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    for (number, text) in [(1, "{\"user\":\"mallory\",\"text\":\""), (2, "{\"user\":\"alice\"}\n")]
    {
        let mut sender = UnixStream::connect(&socket).unwrap();
        sender.write_all(text.as_bytes()).unwrap();
        drop(sender);
        gateway.wait_for(&format!("wattlock_stream_connections_total {number}"));
        gateway.wait_for("wattlock_stream_connections_open 0");
    }
    assert_exit(&gateway.stop(), 0);
    let output = open(&place, &std::fs::read(&file).unwrap());
    let lines = String::from_utf8(output.stdout).unwrap();
    assert!(lines.lines().any(|line| line == "{\"user\":\"alice\"}"), "{lines}");
}

#[test]
fn an_output_that_exists_is_not_replaced_unless_asked() {
    let place = Place::new();
    let path = place.write("d/there", b"old");
    let stream_of = sealed(&place, &[], b"opened");
    let open = || {
        let mut command = wattlock();
        command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg("-o").arg(&path);
        command
    };
    assert_exit(&with_input(&mut open(), &stream_of), 1);
    assert_exit(&with_input(stream(&place).arg("-o").arg(&path), b"new"), 0);
    assert_eq!(std::fs::read(&path).unwrap(), b"old");
    assert_exit(&with_input(open().arg("-f"), &stream_of), 0);
    assert_eq!(std::fs::read(&path).unwrap(), b"opened");
    assert_exit(&with_input(stream(&place).arg("-f").arg("-o").arg(&path), b"new"), 0);
    assert_eq!(opened(&place, &std::fs::read(&path).unwrap()), b"new");
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    let place = Place::new();
    let output = place.path("a.wls").display().to_string();
    for args in [
        &["--window", "1M"][..],
        &["--metrics", "0.0.0.0:0"],
        &["--retry", "soon"],
        &["--rotate-size", "1M"],
        &["--listen", "nowhere"],
        &["--listen", "tcp:127.0.0.1:99999"],
        &["--open"],
        &["--idle-timeout", "3"],
        &["--readers", "2"],
        &["--readers", "0", "--listen", "tcp:127.0.0.1:0", "--connect", "tcp:127.0.0.1:1"],
        &["--readers", "2", "--listen", "tcp:127.0.0.1:0", "-o", &output],
        &["--readers", "2", "--open", &output, "--connect", "tcp:127.0.0.1:1"],
    ] {
        assert_exit(&with_input(stream(&place).args(args), b""), 2);
    }
    assert_exit(&with_input(wattlock().arg("stream"), b""), 2);
}

#[test]
fn a_longer_message_brings_its_window_with_it() {
    let place = Place::new();
    let message = vec![b'm'; 33 << 20];
    let text = [&(message.len() as u32).to_be_bytes()[..], &message].concat();
    let args = ["--framing", "length", "--max-message", "64M"];
    let sealed = sealed(&place, &args, &text);
    let mut open = wattlock();
    open.args(["stream", "--open", "--max-message", "64M", "-i"]).arg(place.path("key.txt"));
    let opened = with_input(&mut open, &sealed);
    assert_exit(&opened, 0);
    assert!(opened.stdout == text);
    // A window that was asked for is what it is.
    let refused = with_input(stream(&place).args(args).args(["--window", "32M"]), b"");
    assert_exit(&refused, 2);
}

#[test]
fn who_names_an_input_is_told_how_to_seal_it_and_how_to_open_it() {
    let place = Place::new();
    place.write("m.log", b"a line\n");
    let refused = stream(&place).arg("m.log").current_dir(place.path("")).output().unwrap();
    assert_exit(&refused, 2);
    let said = stderr(&refused);
    assert!(said.contains("wattlock stream -r RECIPIENT < m.log > m.log.wls"), "{said}");
    assert!(said.contains("wattlock stream --open -i IDENTITY m.log"), "{said}");
}

#[test]
fn two_gateways_hand_on_every_connection_on_one_thread_with_workers_and_with_several_readers() {
    // Short lines, lines of which each is a unit, and some that are longer than what is read at once.
    let text = |sender: usize| {
        let lens = [20, 1000, 70_000, 92_000, 3, 600_000];
        let lines = (0..40).map(|line| (line, lens[(line + sender) % lens.len()]));
        lines
            .map(|(line, len)| format!("{sender} {line} {}\n", "x".repeat(len)))
            .collect::<String>()
    };
    // The thread that reads also seals, others do, and there are three that read.
    let ways = [
        (&["--threads", "2"][..], 1),
        (&["--threads", "4", "--policy", "race-to-idle"], 1),
        (&["--readers", "3"], 3),
    ];
    for (way, links) in ways {
        let place = Place::new();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let backend = format!("tcp:{}", listener.local_addr().unwrap());
        let backends = thread::spawn(move || {
            let connections: Vec<_> = (0..SENDERS).map(|_| listener.accept().unwrap().0).collect();
            let read = connections.into_iter().map(|mut connection| {
                thread::spawn(move || {
                    let mut text = String::new();
                    connection.read_to_string(&mut text).unwrap();
                    text
                })
            });
            let read: Vec<_> = read.collect();
            read.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        let opening = Gateway::start_with(
            wattlock()
                .args(["stream", "--open", "--listen", "tcp:127.0.0.1:0", "--json"])
                .args(way)
                .args(["--connect", &backend, "-i"])
                .arg(place.path("key.txt")),
        );
        let args = ["--listen", "tcp:127.0.0.1:0", "--framing", "ndjson", "--json", "--connect"];
        let gateway = Gateway::start(&place, &[&args[..], &[&*opening.address()], way].concat());
        let address = gateway.address();
        thread::scope(|scope| {
            for sender in 0..SENDERS {
                let address = address.trim_start_matches("tcp:");
                scope.spawn(move || {
                    let mut stream = std::net::TcpStream::connect(address).unwrap();
                    stream.write_all(text(sender).as_bytes()).unwrap();
                });
            }
        });
        let mut came = backends.join().unwrap();
        came.sort_by_key(|text| text.split(' ').next().unwrap().parse::<usize>().unwrap());
        for (sender, came) in came.iter().enumerate() {
            assert!(*came == text(sender), "{way:?}, sender {sender}");
        }
        for (gateway, connections) in [(gateway, SENDERS), (opening, links)] {
            let ended = gateway.stop();
            assert_exit(&ended, 0);
            let json = json_summary(&ended);
            assert_eq!(json["connections"], connections, "{way:?}");
            let all: usize = (0..SENDERS).map(|sender| text(sender).len()).sum();
            let bytes = if connections == SENDERS { "in_bytes" } else { "out_bytes" };
            assert_eq!(json[bytes], all, "{way:?}");
        }
    }
    const SENDERS: usize = 6;
}
