//! `wattlock stream` among slow, broken and hostile peers, full disks and signals.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::thread;

use crate::support::stream::{Gateway, open, opened, sealed, stream, units};
use crate::support::{Place, assert_exit, pattern, stderr, stdout, wattlock, with_input};
use wattlock_testing::{wait_for, wait_until};

#[test]
fn no_change_of_a_sealed_stream_makes_it_release_forged_data() {
    let place = Place::new();
    let bytes = pattern(200_000);
    let units_of = |stream: Vec<u8>| units(&stream);
    let whole = units_of(sealed(&place, &["--max-message", "50000"], &bytes));
    let other = units_of(sealed(&place, &["--max-message", "50000"], &bytes));
    assert!(whole.len() >= 7, "{}", whole.len());
    let mut flipped = whole.clone();
    flipped[3][20] ^= 1;
    let mut repeated = whole.clone();
    repeated.insert(4, whole[3].clone());
    let mut swapped = whole.clone();
    swapped.swap(3, 4);
    let mut spliced = whole.clone();
    spliced[3] = other[3].clone();
    let mut missing = whole.clone();
    missing.remove(3);
    let mut empty = whole.clone();
    empty[3] = [&[0; 4][..], &whole[3][4..12]].concat();
    let mut long = whole.clone();
    long[3][..4].copy_from_slice(&(1u32 << 30).to_be_bytes());
    let cut = whole[..whole.len() - 1].to_vec();
    let mut torn = whole[..5].to_vec();
    torn[4].truncate(100);
    let garbage = vec![whole[0].clone(), pattern(5000)];
    for (what, changed) in [
        ("flipped", flipped),
        ("repeated", repeated),
        ("swapped", swapped),
        ("spliced", spliced),
        ("missing", missing),
        ("of no length", empty),
        ("too long", long),
        ("cut between frames", cut),
        ("cut in a frame", torn),
        ("garbage", garbage),
        ("no stream at all", vec![pattern(1000)]),
        ("nothing", Vec::new()),
    ] {
        let output = open(&place, &changed.concat());
        assert_exit(&output, 3);
        assert!(bytes.starts_with(&output.stdout), "{what}");
        assert!(output.stdout.len() <= bytes.len(), "{what}");
    }
}

#[test]
fn an_input_that_ends_in_the_middle_of_a_message_is_reported_on_both_sides() {
    let place = Place::new();
    let bytes = b"\0\0\0\x02ab\0\0\0\x09short";
    let made = with_input(stream(&place).args(["--framing", "length"]), bytes);
    assert_exit(&made, 1);
    let output = open(&place, &made.stdout);
    assert_exit(&output, 1);
    assert_eq!(output.stdout, b"\0\0\0\x02ab");
}

#[test]
fn a_message_above_the_limit_is_refused_and_what_came_before_it_is_not() {
    let place = Place::new();
    for (framing, bytes, kept) in [
        ("length", b"\0\0\0\x02ab\0\0\x10\0".to_vec(), b"\0\0\0\x02ab".to_vec()),
        ("ndjson", [&b"ab\n"[..], &[b'x'; 5000]].concat(), b"ab\n".to_vec()),
    ] {
        let limits = ["--framing", framing, "--max-message", "1K"];
        let made = with_input(stream(&place).args(limits), &bytes);
        assert_exit(&made, 1);
        assert!(stderr(&made).contains("limit of 1024"), "{}", stderr(&made));
        let output = open(&place, &made.stdout);
        assert_exit(&output, 1);
        assert_eq!(output.stdout, kept);
    }
}

#[test]
fn a_connection_that_is_cut_is_reported_and_the_others_go_on() {
    let place = Place::new();
    let socket = place.path("s");
    let file = place.path("out");
    let listen = format!("unix:{}", socket.display());
    let args = ["--listen", &listen, "--framing", "length", "-o", file.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    let mut good = UnixStream::connect(&socket).unwrap();
    good.write_all(b"\0\0\0\x01a").unwrap();
    let mut cut = UnixStream::connect(&socket).unwrap();
    cut.write_all(b"\0\0\0\x01b\0\0\0\x05xy").unwrap();
    drop(cut);
    gateway.wait_for("wattlock_stream_connections_cut_total 1");
    let mut long = UnixStream::connect(&socket).unwrap();
    long.write_all(b"\xff\xff\xff\xff").unwrap();
    gateway.wait_for("wattlock_stream_connections_cut_total 2");
    good.write_all(b"\0\0\0\x01c").unwrap();
    drop(good);
    gateway.wait_for("wattlock_stream_connections_open 0");
    let output = gateway.stop();
    assert_exit(&output, 0);
    assert!(stderr(&output).contains("in the middle of a message"), "{}", stderr(&output));
    let output = open(&place, &fs::read(file).unwrap());
    // The peers of two were cut, and that is authentic.
    assert_exit(&output, 1);
    let mut marks: Vec<u8> = output.stdout.iter().copied().filter(u8::is_ascii_lowercase).collect();
    marks.sort_unstable();
    assert_eq!(marks, b"abc");
}

#[test]
fn senders_that_never_finish_a_message_block_no_others_and_are_ended() {
    let place = Place::new();
    let socket = place.path("s");
    let listen = format!("unix:{}", socket.display());
    let args = ["--framing", "length", "--idle-timeout", "20", "--max-message", "1M"];
    let file = place.path("out");
    let gateway = Gateway::start_with(
        stream(&place).args(args).args(["--window", "4M", "--listen", &listen, "-o"]).arg(&file),
    );
    // Together they promise far more than the window, and send a little of it.
    let mut slow: Vec<_> = (0..400)
        .map(|_| {
            let mut stream = UnixStream::connect(&socket).unwrap();
            stream.write_all(&(1u32 << 20).to_be_bytes()).unwrap();
            stream.write_all(&[7; 10_000]).unwrap();
            stream
        })
        .collect();
    gateway.wait_for("wattlock_stream_connections_open 400");
    let mut quick = UnixStream::connect(&socket).unwrap();
    for _ in 0..1000 {
        quick.write_all(b"\0\0\0\x04ping").unwrap();
    }
    gateway.wait_for("wattlock_stream_messages_total 1000");
    wait_for(|| {
        // Those that were ended take no more.
        slow.retain_mut(|stream| stream.write_all(b"x").is_ok());
        quick.write_all(b"\0\0\0\x04ping").unwrap();
        let all = gateway.value("wattlock_stream_connections_cut_total") >= 400.0;
        if all { Ok(()) } else { Err(gateway.metrics()) }
    });
    assert!(gateway.peak_memory() < 200 << 20, "{}", gateway.peak_memory());
    drop(quick);
    assert_exit(&gateway.stop(), 0);
}

#[test]
fn a_stalled_consumer_stops_the_producer_and_costs_no_memory() {
    let place = Place::new();
    let mut child = stream(&place)
        .args(["--window", "32M"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let pushed = std::sync::atomic::AtomicU64::new(0);
    let total = 300 << 20;
    thread::scope(|scope| {
        let pushed = &pushed;
        scope.spawn(move || {
            let piece = vec![9; 1 << 20];
            for _ in 0..total >> 20 {
                stdin.write_all(&piece).unwrap();
                pushed.fetch_add(1 << 20, std::sync::atomic::Ordering::SeqCst);
            }
        });
        // It goes on until the window and the pipes are full, and then not.
        let now = || pushed.load(std::sync::atomic::Ordering::SeqCst);
        let (mut last, mut looks) = (0, 0);
        wait_until("nothing more is taken in", || {
            let pushed = now();
            looks = if pushed == last && pushed > 0 { looks + 1 } else { 0 };
            last = pushed;
            looks == 100
        });
        assert!(now() < 64 << 20, "{} bytes were taken in", now());
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        let kib: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
        assert!(kib < 192 << 10, "{kib} KiB");
        // Nothing is lost: the rest comes as soon as the output is read.
        let mut out = Vec::new();
        child.stdout.take().unwrap().read_to_end(&mut out).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(opened(&place, &out).len(), total);
    });
}

#[test]
fn sinks_that_close_in_the_middle() {
    let place = Place::new();
    // A pipe whose reader goes away.
    let mut child = stream(&place)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut stdin = child.stdin.take().unwrap();
    let sender = thread::spawn(move || {
        let piece = pattern(1 << 20);
        while stdin.write_all(&piece).is_ok() {}
    });
    let output = child.wait_with_output().unwrap();
    sender.join().unwrap();
    // As in `cat log | head`: no failure.
    assert_eq!((output.status.signal(), &*stderr(&output)), (Some(13), ""));

    // A peer that resets.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("tcp:{}", listener.local_addr().unwrap());
    let peer = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        // What is left unread makes it a reset.
        stream.read_exact(&mut [0; 1000]).unwrap();
    });
    let args = ["--retry", "0", "--connect", &address];
    let output = with_input(stream(&place).args(args), &pattern(40 << 20));
    peer.join().unwrap();
    assert_exit(&output, 1);
    assert!(stderr(&output).contains("not delivered"), "{}", stderr(&output));
}

#[test]
fn at_sigterm_everything_that_was_taken_in_is_delivered() {
    let place = Place::new();
    let socket = place.path("s");
    let file = place.path("out");
    let listen = format!("unix:{}", socket.display());
    let args = ["--listen", &listen, "--framing", "ndjson", "-o", file.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    let stop = std::sync::atomic::AtomicBool::new(false);
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut stream = UnixStream::connect(&socket).unwrap();
                let lines = b"a line of text\n".repeat(100);
                while !stop.load(std::sync::atomic::Ordering::SeqCst) {
                    if stream.write_all(&lines).is_err() {
                        break;
                    }
                }
            });
        }
        gateway.wait_until("messages", |text| {
            let line = text.lines().find_map(|l| l.strip_prefix("wattlock_stream_messages_total "));
            line.is_some_and(|count| count.parse::<f64>().unwrap() > 10_000.0)
        });
        let output = gateway.stop();
        stop.store(true, std::sync::atomic::Ordering::SeqCst);
        assert_exit(&output, 0);
    });
    let output = open(&place, &fs::read(&file).unwrap());
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let whole = output.stdout.split_inclusive(|byte| *byte == b'\n');
    assert!(whole.clone().count() > 10_000);
    assert!(whole.into_iter().all(|line| line == b"a line of text\n"));
}

#[test]
fn at_sigterm_a_sink_that_takes_nothing_is_waited_for_no_longer_than_was_said() {
    let place = Place::new();
    let mut child = stream(&place)
        .args(["--drain", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // More than the pipe holds: some of it has to be in the window.
    stdin.write_all(&pattern(2 << 20)).unwrap();
    let stdout = child.stdout.take().unwrap();
    assert!(
        Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success()
    );
    let output = child.wait_with_output().unwrap();
    drop((stdin, stdout));
    assert_exit(&output, 1);
    assert!(stderr(&output).contains("not delivered"), "{}", stderr(&output));
}

#[test]
fn after_sigkill_the_whole_frames_of_a_file_open_and_the_torn_tail_is_reported() {
    let place = Place::new();
    let file = place.path("out");
    let mut child = stream(&place).arg("-o").arg(&file).stdin(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = pattern(8 << 20);
    stdin.write_all(&bytes).unwrap();
    let written = || fs::metadata(&file).map_or(0, |status| status.len());
    wattlock_testing::wait_until("a part is written", || written() >= 1 << 20);
    child.kill().unwrap();
    child.wait().unwrap();
    drop(stdin);
    let written = fs::read(&file).unwrap();
    for torn in [&written[..], &written[..written.len() - 7]] {
        let output = open(&place, torn);
        assert_exit(&output, 3);
        assert!(output.stdout.len() > 500_000, "{}", output.stdout.len());
        assert!(bytes.starts_with(&output.stdout));
    }
}

#[test]
fn garbage_at_a_port_that_opens_does_no_harm() {
    let place = Place::new();
    let file = place.path("out");
    let receiver = Gateway::start_with(
        wattlock()
            .args(["stream", "--open", "--listen", "tcp:127.0.0.1:0", "-i"])
            .arg(place.path("key.txt"))
            .arg("-o")
            .arg(&file),
    );
    let address = receiver.address();
    let port = address.trim_start_matches("tcp:");
    for garbage in [&b"GET / HTTP/1.1\r\n\r\n"[..], b"wattlock-stream/v1\n\xff\xff\xff\xff", b""] {
        let mut stream = TcpStream::connect(port).unwrap();
        stream.write_all(garbage).unwrap();
    }
    receiver.wait_until("three connections", |text| {
        text.lines().any(|line| line == "wattlock_stream_connections_open 0")
            && text.lines().any(|line| line == "wattlock_stream_connections_total 3")
    });
    let sent = with_input(stream(&place).args(["--connect", &address]), b"authentic");
    assert_exit(&sent, 0);
    receiver.wait_for("wattlock_stream_out_bytes_total 9");
    let output = receiver.stop();
    assert_exit(&output, 3);
    assert_eq!(fs::read(&file).unwrap(), b"authentic");
    assert!(stdout(&output).is_empty());
}
