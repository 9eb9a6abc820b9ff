//! Connections of streams that are reset again and again, anywhere in what they carry: what was acknowledged is there.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::AtomicU64;
use std::thread;

use crate::following::wait_for_segments;
use crate::support::resets::Resets;
use crate::support::senders::{Numbered, Relp, SENDER_WINDOW, Sender, send_all, send_all_to};
use crate::support::stream::{Gateway, json_summary, segments, stream};
use crate::support::{Place, assert_exit, stderr, wattlock};

const SENDERS: u64 = 3;

/// The lines of senders in a folder, with how often each is there.
#[track_caller]
pub fn lines_in(place: &Place, folder: &Path) -> BTreeMap<String, u64> {
    let (output, lines) = open(place, folder);
    // Connections that were cut are counted; nothing is damaged.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    lines
}

fn open(place: &Place, folder: &Path) -> (Output, BTreeMap<String, u64>) {
    let mut command = wattlock();
    command.args(["stream", "--open", "-q", "-i"]).arg(place.path("key.txt")).arg(folder);
    let output = command.output().unwrap();
    let mut lines = BTreeMap::new();
    for line in String::from_utf8_lossy(&output.stdout).lines() {
        if let Some(at) = line.find("sender") {
            *lines.entry(line[at..].to_owned()).or_default() += 1;
        }
    }
    (output, lines)
}

/// Asserts that each line of each sender is there. Returns how many are there more than once.
#[track_caller]
pub fn doubles(lines: &BTreeMap<String, u64>, senders: u64, count: u64) -> u64 {
    for sender in 0..senders {
        for line in 0..count {
            let line = format!("sender {sender} line {line}");
            assert!(lines.contains_key(&line), "{line} was acknowledged and is lost");
        }
    }
    assert_eq!(lines.len() as u64, senders * count);
    lines.values().sum::<u64>() - senders * count
}

/// A gateway that writes to the folder NAME, and listens at this address.
fn gateway(place: &Place, framing: &str, listen: &str, name: &str, more: &[&str]) -> Gateway {
    let mut command = stream(place);
    command.args(["--framing", framing, "--listen", listen, "--sync", "batch"]);
    command.args(["--rotate-size", "100K", "-o"]).arg(place.path(format!("{name}/"))).args(more);
    Gateway::start_with(&mut command)
}

fn unix(place: &Place) -> String {
    format!("unix:{}", place.path("in.sock").display())
}

/// All lines of all senders over a Unix socket, which nothing resets.
fn send_directly(place: &Place, lines: u64) {
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            scope.spawn(move || {
                let name = format!("sender {sender}");
                send_all::<Numbered>(&place.path("in.sock"), &name, lines, &AtomicU64::new(0));
            });
        }
    });
}

fn between_senders_and_gateway<S: Sender>(framing: &str, count: u64, lines: u64) {
    let place = Place::new();
    let gateway = gateway(&place, framing, "tcp:127.0.0.1:0", "logs", &[]);
    let proxy = Resets::start(gateway.address().strip_prefix("tcp:").unwrap(), count, 16 << 10);
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let proxy = &proxy;
            scope.spawn(move || {
                let name = format!("sender {sender}");
                send_all_to::<S>(&proxy.address, &name, lines, &AtomicU64::new(0));
            });
        }
    });
    assert_exit(&gateway.stop(), 0);
    assert!(proxy.count() >= count - SENDERS, "{} resets", proxy.count());
    let doubles = doubles(&lines_in(&place, &place.path("logs")), SENDERS, lines);
    println!("{framing}: {} resets, {doubles} doubled", proxy.count());
    // What was not acknowledged when the connection broke comes again.
    assert!(doubles <= proxy.count() * SENDER_WINDOW as u64, "{doubles}");
}

fn between_gateway_and_store(count: u64, lines: u64) {
    let place = Place::new();
    let mut command = wattlock();
    command.args(["stream", "--store", "--listen", "tcp:127.0.0.1:0", "-o"]);
    let store = Gateway::start_with(command.arg(place.path("copies")));
    let proxy = Resets::start(store.address().strip_prefix("tcp:").unwrap(), count, 16 << 10);
    let to = format!("tcp:{}", proxy.address);
    let more = ["--forward", &to, "--ack-forwarded", "--remove-forwarded", "--drain", "60"];
    let gateway = gateway(&place, "numbered", &unix(&place), "logs", &more);
    send_directly(&place, lines);
    // What was acknowledged is in the store already.
    let copies = std::fs::read_dir(place.path("copies")).unwrap().next().unwrap().unwrap().path();
    assert_exit(&gateway.stop(), 0);
    assert_exit(&store.stop(), 0);
    assert_eq!(proxy.count(), count);
    assert_eq!(doubles(&lines_in(&place, &copies), SENDERS, lines), 0);
    assert!(segments(&place.path("logs")).is_empty());
}

fn between_follower_and_receiver(framing: &str, count: u64, lines: u64) {
    let place = Place::new();
    let there = gateway(&place, framing, "tcp:127.0.0.1:0", "there", &[]);
    let proxy = Resets::start(there.address().strip_prefix("tcp:").unwrap(), count, 60 << 10);
    let here = gateway(&place, "numbered", &unix(&place), "logs", &[]);
    let mut command = wattlock();
    command.args(["stream", "--open", "--follow", "-q", "--json", "-i"]).arg(place.path("key.txt"));
    command.args(["--connect", &format!("tcp:{}", proxy.address), "--acknowledged", framing]);
    command.arg("--position").arg(place.path("position")).arg(place.path("logs"));
    let follower = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    send_directly(&place, lines);
    assert_exit(&here.stop(), 0);
    wait_for_segments(&place, segments(&place.path("logs")).len());
    let id = follower.id().to_string();
    assert!(Command::new("kill").arg(id).status().unwrap().success());
    let stopped = follower.wait_with_output().unwrap();
    assert_exit(&stopped, 0);
    assert_exit(&there.stop(), 0);
    assert_eq!(proxy.count(), count);
    assert_eq!(json_summary(&stopped)["units_maybe_lost"], 0);
    let doubles = doubles(&lines_in(&place, &place.path("there")), SENDERS, lines);
    println!("{framing}: {count} resets, {doubles} doubled");
    // Messages that wait for acknowledgements.
    assert!(doubles <= count * 1000, "{doubles}");
}

#[test]
fn nothing_acknowledged_is_lost_when_connections_of_senders_are_reset() {
    between_senders_and_gateway::<Relp>("relp", 20, 3000);
    between_senders_and_gateway::<Numbered>("numbered", 20, 3000);
}

#[test]
fn a_store_has_all_once_when_connections_to_it_are_reset() {
    between_gateway_and_store(10, 2000);
}

#[test]
fn all_is_delivered_when_connections_to_the_receiver_are_reset() {
    between_follower_and_receiver("relp", 5, 3000);
    between_follower_and_receiver("numbered", 5, 3000);
}

#[test]
#[ignore = "takes minutes; `make test-all` runs it"]
fn soak_of_hundreds_of_resets() {
    between_senders_and_gateway::<Relp>("relp", 500, 40_000);
    between_senders_and_gateway::<Numbered>("numbered", 500, 40_000);
    between_gateway_and_store(300, 40_000);
    between_follower_and_receiver("relp", 50, 40_000);
    between_follower_and_receiver("numbered", 50, 40_000);
}
