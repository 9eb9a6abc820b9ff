//! `wattlock stream -o FOLDER/` where there is no room: senders wait, or the oldest segments go.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::Write;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::thread;

use crate::support::disk::SmallDisk;
use crate::support::stream::{Gateway, json_summary, segments, stream};
use crate::support::{Place, assert_exit, stderr, wattlock, with_input};

fn lines(from: usize, to: usize) -> Vec<u8> {
    (from..to).flat_map(|line| format!("{line:>99}\n").into_bytes()).collect()
}

fn opened(place: &Place, folder: &Path) -> Vec<u8> {
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(folder);
    let output = command.output().unwrap();
    assert_exit(&output, 0);
    output.stdout
}

fn size(folder: &Path) -> u64 {
    segments(folder).iter().map(|path| path.metadata().unwrap().len()).sum()
}

fn start(place: &Place, folder: &Path, more: &[&str]) -> Gateway {
    let listen = format!("unix:{}", place.path("in").display());
    let mut args = vec!["--listen", &listen, "--framing", "ndjson", "--json"];
    args.extend(["-o", folder.to_str().unwrap()]);
    args.extend(more);
    Gateway::start(place, &args)
}

#[test]
fn the_oldest_segments_go_where_that_was_asked_for() {
    let place = Place::new();
    let logs = place.path("logs/");
    let mut command = stream(&place);
    command.args(["--framing", "ndjson", "--json", "--max-size", "1M"]);
    command.args(["--when-full", "drop-oldest", "-o"]).arg(&logs);
    let output = with_input(&mut command, &lines(0, 40_000));
    assert_exit(&output, 0);
    assert!(size(&logs) <= 1 << 20, "{}", size(&logs));
    let dropped = json_summary(&output)["dropped_bytes"].as_u64().unwrap();
    assert!(dropped >= 2 << 20, "{dropped}");
    let kept = opened(&place, &logs);
    assert!(kept.len() > 500_000 && lines(0, 40_000).ends_with(&kept));
}

#[test]
fn senders_wait_until_segments_are_removed() {
    let place = Place::new();
    let logs = place.path("logs/");
    let gateway = start(&place, &logs, &["--max-size", "1M"]);
    let mut sender = UnixStream::connect(place.path("in")).unwrap();
    let sending = thread::spawn(move || sender.write_all(&lines(0, 40_000)).unwrap());
    gateway.wait_for("wattlock_stream_output_waiting 1");
    assert!(size(&logs) <= 1 << 20, "{}", size(&logs));
    let mut taken = Vec::new();
    let names = ["connections_open", "output_waiting", "buffered_bytes", "in_flight_bytes"];
    let is_done =
        || names.iter().all(|name| gateway.value(&format!("wattlock_stream_{name}")) == 0.0);
    while !sending.is_finished() || !is_done() {
        // As one does who copies segments elsewhere: all but the one that is written.
        let all = segments(&logs);
        for path in all.iter().take(all.len().saturating_sub(1)) {
            let mut command = wattlock();
            command.args(["stream", "--open", "-q", "-i"]).arg(place.path("key.txt")).arg(path);
            taken.extend(command.output().unwrap().stdout);
            fs::remove_file(path).unwrap();
        }
    }
    sending.join().unwrap();
    let output = gateway.stop();
    assert_exit(&output, 0);
    assert!(stderr(&output).contains("maximum size"), "{}", stderr(&output));
    taken.extend(opened(&place, &logs));
    assert_eq!(taken, lines(0, 40_000));
}

#[test]
fn a_full_disk_holds_senders_back_and_tears_nothing() {
    let place = Place::new();
    let Some(disk) = SmallDisk::mount(place.path("small")) else { return };
    let logs = disk.path().join("logs/");
    let gateway = start(&place, &logs, &["--sync", "batch", "--rotate-size", "300K"]);
    let mut sender = UnixStream::connect(place.path("in")).unwrap();
    let sending = thread::spawn(move || sender.write_all(&lines(0, 30_000)).unwrap());
    gateway.wait_for("wattlock_stream_output_waiting 1");
    let so_far = wattlock()
        .args(["stream", "--open", "-q", "-i"])
        .arg(place.path("key.txt"))
        .arg(&logs)
        .output()
        .unwrap();
    assert_exit(&so_far, 0);
    assert!(so_far.stdout.len() > 300_000 && lines(0, 30_000).starts_with(&so_far.stdout));
    disk.grow();
    sending.join().unwrap();
    gateway.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&gateway.stop(), 0);
    assert_eq!(opened(&place, &logs), lines(0, 30_000));
}

#[test]
fn a_maximum_that_holds_no_two_segments_is_refused() {
    let place = Place::new();
    for args in [&["--max-size", "1M", "--rotate-size", "1M"][..], &["--max-size", "100K"]] {
        let mut command = stream(&place);
        command.args(args).arg("-o").arg(place.path("logs/"));
        assert_exit(&with_input(&mut command, b""), 2);
    }
    let mut command = stream(&place);
    command.args(["--when-full", "drop-oldest", "-o"]).arg(place.path("logs/"));
    assert_exit(&with_input(&mut command, b""), 2);
}
