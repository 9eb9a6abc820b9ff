//! `wattlock stream` with many small messages: what it keeps for each of them besides its bytes is bounded, too, and given
//! back.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use wattlock_testing::wait_until;

use crate::support::stream::{Gateway, segments, stream};
use crate::support::{Place, assert_exit};

/// A message of Fluent's forward protocol of about 270 bytes, which asks for an answer with `id` in it.
fn message(text: usize, id: usize) -> Vec<u8> {
    let mut bytes = b"\x94\xa3tag\x01\x81\xa1m\xd9".to_vec();
    bytes.push(text as u8);
    bytes.extend(vec![b't'; text]);
    bytes.extend(b"\x81\xa5chunk\xd9");
    bytes.push(id as u8);
    bytes.extend(vec![b'i'; id]);
    bytes
}

/// Senders that write one message over and over, and read no answers, until nothing more of any of them is taken.
fn flood(socket: &Path, senders: usize, message: &[u8]) -> Vec<UnixStream> {
    let connections: Vec<_> = (0..senders).map(|_| UnixStream::connect(socket).unwrap()).collect();
    let written = &*Box::leak(Box::new(AtomicU64::new(0)));
    for connection in &connections {
        let (mut connection, piece) = (connection.try_clone().unwrap(), message.repeat(200));
        thread::spawn(move || {
            while connection.write_all(&piece).is_ok() {
                written.fetch_add(piece.len() as u64, Ordering::SeqCst);
            }
        });
    }
    let (mut before, mut looks) = (0, 0);
    wait_until("nothing more is taken", || {
        let now = written.load(Ordering::SeqCst);
        looks = if now == before && now > 0 { looks + 1 } else { 0 };
        before = now;
        looks == 50
    });
    connections
}

fn start(place: &Place, more: &[&str]) -> Gateway {
    let listen = format!("unix:{}", place.path("in").display());
    let logs = place.path("logs/");
    let args = ["--framing", "fluent", "--listen", &listen, "-o", logs.to_str().unwrap()];
    Gateway::start_with(stream(place).args(args).args(more))
}

fn leave(connections: Vec<UnixStream>) {
    for connection in connections {
        connection.shutdown(Shutdown::Both).unwrap();
    }
}

#[test]
fn small_messages_take_little_more_than_the_window() {
    let place = Place::new();
    // Its output takes nothing after the first segment, until that is removed.
    let gateway = start(&place, &["--rotate-size", "1M", "--max-size", "2M", "--sync", "never"]);
    let connections = flood(&place.path("in"), 8, &message(200, 24));
    gateway.wait_for("wattlock_stream_output_waiting 1");
    let full = gateway.memory();
    println!("full: {} MiB", full >> 20);
    assert!(full < 80 << 20, "a window of 32 MiB took {full} bytes");
    leave(connections);
    wait_until("all is written", || {
        let all = segments(&place.path("logs"));
        all.iter()
            .take(all.len().saturating_sub(1))
            .for_each(|path| fs::remove_file(path).unwrap());
        ["connections_open", "output_waiting", "buffered_bytes", "in_flight_bytes"]
            .iter()
            .all(|name| gateway.value(&format!("wattlock_stream_{name}")) == 0.0)
    });
    let left = gateway.memory();
    println!("after: {} MiB", left >> 20);
    assert!(left < 64 << 20, "{left} bytes stay");
    assert_exit(&gateway.stop(), 0);
}

#[test]
fn senders_that_read_no_answers_take_little_together() {
    let place = Place::new();
    let gateway = start(&place, &["--sync", "never"]);
    let connections = flood(&place.path("in"), 50, &message(24, 200));
    let peak = gateway.peak_memory();
    println!("deaf: {} MiB", peak >> 20);
    assert!(peak < 80 << 20, "{peak} bytes");
    leave(connections);
    gateway.wait_for("wattlock_stream_connections_open 0");
    let left = gateway.memory();
    println!("after: {} MiB", left >> 20);
    assert!(left < 64 << 20, "{left} bytes stay");
    assert_exit(&gateway.stop(), 0);
}
