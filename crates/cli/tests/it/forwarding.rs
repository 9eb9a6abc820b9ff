//! `wattlock stream --forward` and `--store`: segments on another machine, complete whatever breaks between.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use wattlock_testing::wait_until;

use crate::support::senders::{Numbered, Sender, send_all};
use crate::support::stream::{Gateway, segments, stream};
use crate::support::{Place, assert_exit, pattern, stderr, wattlock, with_input};

fn unix(path: &Path) -> String {
    format!("unix:{}", path.display())
}

/// Starts a store below `name`.
fn store(place: &Place, name: &str) -> Gateway {
    let mut command = wattlock();
    command.args(["stream", "--store", "--listen", &unix(&place.path(format!("{name}.sock")))]);
    command.arg("-o").arg(place.path(name));
    Gateway::start_with(&mut command)
}

/// The only subfolder of a store.
fn stored(place: &Place, name: &str) -> PathBuf {
    let mut folders = fs::read_dir(place.path(name)).unwrap().map(|entry| entry.unwrap().path());
    let folder = folders.next().unwrap();
    assert!(folders.next().is_none());
    folder
}

#[track_caller]
fn open(place: &Place, folder: &Path) -> Vec<u8> {
    let output = open_so_far(place, folder);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    output.stdout
}

/// The same of a folder that may end anywhere.
fn open_so_far(place: &Place, folder: &Path) -> Output {
    let mut command = wattlock();
    command.args(["stream", "--open", "-q", "-i"]).arg(place.path("key.txt")).arg(folder);
    command.output().unwrap()
}

/// Seals `bytes` into `logs`, and forwards them to stores of these names.
fn forwarded(place: &Place, names: &[&str], more: &[&str], bytes: &[u8]) -> String {
    let mut command = stream(place);
    command.args(["--framing", "ndjson", "-o"]).arg(place.path("logs/")).args(more);
    for name in names {
        command.args(["--forward", &unix(&place.path(format!("{name}.sock")))]);
    }
    let output = with_input(&mut command, bytes);
    assert_exit(&output, 0);
    stderr(&output)
}

fn lines(from: usize, to: usize) -> Vec<u8> {
    (from..to).flat_map(|line| format!("line {line}\n").into_bytes()).collect()
}

#[test]
fn stores_have_the_same_segments_and_open_with_the_same_keys() {
    let place = Place::new();
    let stores = [store(&place, "near"), store(&place, "far")];
    forwarded(&place, &["near", "far"], &["--rotate-size", "50K"], &lines(0, 30_000));
    let own = segments(&place.path("logs"));
    assert!(own.len() >= 3);
    for name in ["near", "far"] {
        let copies = segments(&stored(&place, name));
        assert_eq!(copies.len(), own.len());
        for (own, copy) in own.iter().zip(&copies) {
            assert!(fs::read(own).unwrap() == fs::read(copy).unwrap(), "{}", copy.display());
        }
        assert_eq!(open(&place, &stored(&place, name)), lines(0, 30_000));
    }
    // What they have is not sent again, and what is new is.
    forwarded(&place, &["near", "far"], &[], &lines(30_000, 30_010));
    assert_eq!(open(&place, &stored(&place, "far")), lines(0, 30_010));
    for store in stores {
        assert_exit(&store.stop(), 0);
    }
}

#[test]
fn a_peer_that_is_away_stops_nothing_and_gets_all_later() {
    let place = Place::new();
    let near = store(&place, "near");
    let said = forwarded(&place, &["near", "far"], &["--drain", "1"], &lines(0, 1000));
    assert!(said.contains("far.sock has not stored all segments"), "{said}");
    assert_eq!(open(&place, &stored(&place, "near")), lines(0, 1000));
    let far = store(&place, "far");
    forwarded(&place, &["near", "far"], &[], &lines(1000, 1001));
    assert_eq!(open(&place, &stored(&place, "far")), lines(0, 1001));
    assert_exit(&near.stop(), 0);
    assert_exit(&far.stop(), 0);
}

/// Lets a gateway forward to a store that is stopped and started again while the gateway runs.
fn restarted_meanwhile(place: &Place, near: Gateway) -> Gateway {
    let listen = unix(&place.path("in.sock"));
    let mut command = stream(place);
    command.args([
        "--listen",
        &listen,
        "--framing",
        "ndjson",
        "--remove-forwarded",
        "--drain",
        "1",
    ]);
    for name in ["near", "far"] {
        command.args(["--forward", &unix(&place.path(format!("{name}.sock")))]);
    }
    let gateway = Gateway::start_with(command.arg("-o").arg(place.path("logs/")));
    let folder = stored(place, "near");
    let mut near = near;
    for line in 0..3 {
        let before = segments(&folder).len();
        let mut sender = UnixStream::connect(place.path("in.sock")).unwrap();
        sender.write_all(format!("again {line}\n").as_bytes()).unwrap();
        drop(sender);
        wait_until("the store has the line", || {
            let text = String::from_utf8_lossy(&open_so_far(place, &folder).stdout).into_owned();
            text.contains(&format!("again {line}"))
        });
        assert!(segments(&folder).len() >= before);
        assert_exit(&near.stop(), 0);
        near = store(place, "near");
    }
    assert_exit(&gateway.stop(), 0);
    near
}

#[test]
fn segments_are_removed_once_all_peers_have_them() {
    let place = Place::new();
    let near = store(&place, "near");
    let args = ["--remove-forwarded", "--rotate-size", "50K", "--drain", "1"];
    forwarded(&place, &["near", "far"], &args, &lines(0, 30_000));
    assert!(segments(&place.path("logs")).len() >= 3, "one peer does not have them");
    // A peer that comes again does not count twice.
    assert_exit(&near.stop(), 0);
    let near = store(&place, "near");
    forwarded(&place, &["near", "far"], &args, b"");
    let near = restarted_meanwhile(&place, near);
    assert!(segments(&place.path("logs")).len() >= 3, "one peer does not have them");
    let far = store(&place, "far");
    let args = ["--remove-forwarded", "--rotate-size", "50K", "--drain", "60"];
    forwarded(&place, &["near", "far"], &args, &lines(30_000, 30_001));
    assert_eq!(segments(&place.path("logs")), Vec::<PathBuf>::new());
    for name in ["near", "far"] {
        let text = String::from_utf8(open(&place, &stored(&place, name))).unwrap();
        assert!(text.contains("again 2\n") && text.ends_with("line 30000\n"), "{name}");
    }
    // The next segment has a number of its own.
    forwarded(&place, &["near", "far"], &args, &lines(30_001, 30_002));
    let text = String::from_utf8(open(&place, &stored(&place, "near"))).unwrap();
    assert!(text.ends_with("line 30001\n"));
    assert_exit(&near.stop(), 0);
    assert_exit(&far.stop(), 0);
}

#[test]
fn a_segment_that_a_crash_tore_in_a_store_is_made_whole_again() {
    let place = Place::new();
    let near = store(&place, "near");
    forwarded(&place, &["near"], &["--rotate-size", "50K"], &lines(0, 30_000));
    assert_exit(&near.stop(), 0);
    let folder = stored(&place, "near");
    let copies = segments(&folder);
    let own = fs::read(&copies[1]).unwrap();
    // Its end was never written, and some of it came as zeros.
    let torn = [&own[..own.len() / 2], &[0; 500]].concat();
    fs::write(&copies[1], torn).unwrap();
    fs::write(&copies[2], [0; 500]).unwrap();
    let near = store(&place, "near");
    forwarded(&place, &["near"], &[], &lines(30_000, 30_001));
    assert_eq!(open(&place, &folder), lines(0, 30_001));
    // Another segment of the same name is left alone, and the sender says so.
    fs::write(&copies[1], fs::read(&copies[0]).unwrap()).unwrap();
    let mut command = stream(&place);
    command.args(["--framing", "ndjson", "-o"]).arg(place.path("logs/"));
    command.args(["--forward", &unix(&place.path("near.sock"))]);
    let output = with_input(&mut command, &lines(30_001, 30_002));
    assert_exit(&output, 1);
    let said = stderr(&output);
    assert!(said.contains("another segment of that name"), "{said}");
    assert_eq!(fs::read(&copies[1]).unwrap(), fs::read(&copies[0]).unwrap());
    assert_exit(&near.stop(), 0);
}

#[test]
fn a_store_reads_what_it_has_of_a_segment_once() {
    let place = Place::new();
    forwarded(&place, &[], &[], &lines(0, 200_000));
    let whole = fs::read(&segments(&place.path("logs"))[0]).unwrap();
    assert!(whole.len() > 2_000_000);
    // Without its end, as a forwarder leaves it that has more to come.
    let id = [7; 16];
    fs::create_dir_all(place.path(format!("near/{}", "07".repeat(16)))).unwrap();
    let copy =
        place.write(format!("near/{}/000001.wls", "07".repeat(16)), &whole[..whole.len() - 20]);
    let near = store(&place, "near");
    let ask = || {
        let mut connection = UnixStream::connect(place.path("near.sock")).unwrap();
        let start = [&b"s\x0a000001.wls\0\0\0\x27"[..], &whole[..39]].concat();
        connection.write_all(&[&b"wattlock-forward/v1\n"[..], &id, &start].concat()).unwrap();
        let mut answer = [0; 8];
        connection.read_exact(&mut answer).unwrap();
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        // The lock of the segment is gone once the store has ended the connection.
        assert_eq!(connection.read(&mut answer).unwrap(), 0);
        u64::from_be_bytes(answer)
    };
    let has = ask();
    assert!(has > whole.len() as u64 / 2, "{has}");
    let before = near.bytes_read();
    for _ in 0..5 {
        assert_eq!(ask(), has);
    }
    let read = near.bytes_read() - before;
    assert!(read < 200_000, "{read} bytes were read for five connections");
    // What comes meanwhile is looked at.
    fs::write(&copy, &whole[..whole.len() - 16]).unwrap();
    assert_eq!(ask(), whole.len() as u64 - 16);
    assert_exit(&near.stop(), 0);
}

#[test]
fn two_senders_have_folders_of_their_own_in_a_store() {
    let place = Place::new();
    let near = store(&place, "near");
    forwarded(&place, &["near"], &["--tenant", "one"], b"one\n");
    forwarded(&place, &["near"], &["--tenant", "two"], b"two\n");
    let folders = fs::read_dir(place.path("near")).unwrap().map(|entry| entry.unwrap().path());
    let texts: BTreeSet<_> = folders.map(|folder| open(&place, &folder)).collect();
    assert_eq!(texts, BTreeSet::from([b"one\n".to_vec(), b"two\n".to_vec()]));
    assert_exit(&near.stop(), 0);
}

#[test]
fn a_store_takes_no_garbage_and_serves_others_meanwhile() {
    let place = Place::new();
    let near = store(&place, "near");
    let magic = [&b"wattlock-forward/v1\n"[..], &[7; 16]].concat();
    for garbage in [
        b"GET / HTTP/1.1\r\n\r\n and more that is no greeting".to_vec(),
        [&magic[..], b"x"].concat(),
        [&magic[..], b"d\0\0\0\x01x"].concat(),
        [&magic[..], b"s\x0d../000001.wls\0\0\0\0"].concat(),
        [&magic[..], b"k\x0d../000001.key\0\0\0\0"].concat(),
        [&magic[..], b"d\xff\xff\xff\xff"].concat(),
        magic.clone(),
        pattern(10_000),
    ] {
        let mut connection = UnixStream::connect(place.path("near.sock")).unwrap();
        let _ = connection.write_all(&garbage);
        connection.shutdown(std::net::Shutdown::Write).unwrap();
        let mut answer = Vec::new();
        let _ = connection.read_to_end(&mut answer);
    }
    assert!(!place.path("000001.wls").exists() && !place.path("near/000001.wls").exists());
    let silent = UnixStream::connect(place.path("near.sock")).unwrap();
    forwarded(&place, &["near"], &[], b"a line\n");
    drop(silent);
    assert_exit(&near.stop(), 0);
}

/// A gateway whose senders are answered once the store `near` has what they sent.
fn waiting_for_copies(place: &Place) -> Gateway {
    let listen = unix(&place.path("in.sock"));
    let mut command = stream(place);
    command.args(["--framing", "numbered", "--listen", &listen, "--rotate-size", "30K"]);
    command.args(["--ack-forwarded", "--drain", "1", "--forward"]);
    command.arg(unix(&place.path("near.sock")));
    Gateway::start_with(command.arg("-o").arg(place.path("logs/")))
}

#[test]
fn a_sender_is_answered_once_the_store_has_it() {
    let place = Place::new();
    let gateway = waiting_for_copies(&place);
    let mut sender = UnixStream::connect(place.path("in.sock")).unwrap();
    sender.write_all(&Numbered::message(1, "first")).unwrap();
    // It is in the folder, and no answer comes.
    wait_until("the message is durable", || {
        let text = open_so_far(&place, &place.path("logs")).stdout;
        String::from_utf8_lossy(&text).contains("first")
    });
    sender.set_nonblocking(true).unwrap();
    assert_eq!(sender.read(&mut [0; 8]).unwrap_err().kind(), ErrorKind::WouldBlock);
    sender.set_nonblocking(false).unwrap();
    let near = store(&place, "near");
    let mut answer = [0; 8];
    sender.read_exact(&mut answer).unwrap();
    assert_eq!(answer, 1_u64.to_be_bytes());
    let copy = stored(&place, "near");
    assert!(String::from_utf8_lossy(&open_so_far(&place, &copy).stdout).contains("first"));
    drop(sender);
    assert_exit(&gateway.stop(), 0);
    assert_exit(&near.stop(), 0);
}

#[test]
fn what_was_answered_is_in_the_store_when_the_gateway_is_lost() {
    const LINES: u64 = 1500;
    let place = Place::new();
    let acknowledged = AtomicU64::new(0);
    let (mut gateway, mut near) = (waiting_for_copies(&place), store(&place, "near"));
    thread::scope(|scope| {
        scope.spawn(|| {
            send_all::<Numbered>(&place.path("in.sock"), "sender 0", LINES, &acknowledged);
        });
        for kill in 1..=4 {
            let enough = kill * LINES / 5;
            wait_until("a part is answered", || acknowledged.load(Ordering::SeqCst) >= enough);
            if kill % 2 == 0 {
                gateway.signal("-KILL");
                gateway.wait_for_exit();
                gateway = waiting_for_copies(&place);
            } else {
                near.signal("-KILL");
                near.wait_for_exit();
                near = store(&place, "near");
            }
        }
    });
    for program in [&mut gateway, &mut near] {
        program.signal("-KILL");
        program.wait_for_exit();
    }
    // The machine with the gateway is lost, with its folder.
    let text = open_so_far(&place, &stored(&place, "near")).stdout;
    let text = String::from_utf8_lossy(&text);
    let found: BTreeSet<&str> =
        text.lines().filter_map(|line| line.find("sender").map(|at| &line[at..])).collect();
    for line in 0..LINES {
        assert!(found.contains(&*format!("sender 0 line {line}")), "line {line} was answered");
    }
}

#[test]
fn what_was_not_answered_at_the_end_follows_with_the_next_run() {
    let place = Place::new();
    let gateway = waiting_for_copies(&place);
    let mut sender = UnixStream::connect(place.path("in.sock")).unwrap();
    sender.write_all(&Numbered::message(1, "sender 0 line 0")).unwrap();
    gateway.wait_for("wattlock_stream_messages_total 1");
    gateway.signal("-TERM");
    let mut answers = Vec::new();
    // It may be broken off: there is no answer.
    let _ = sender.read_to_end(&mut answers);
    assert_eq!(answers, b"");
    let ended = gateway.end();
    assert!(stderr(&ended).contains("near.sock has not stored all segments"), "{}", stderr(&ended));
    let (near, gateway) = (store(&place, "near"), waiting_for_copies(&place));
    wait_until("the store has it", || {
        let there =
            fs::read_dir(place.path("near")).is_ok_and(|mut folders| folders.next().is_some());
        there && open_so_far(&place, &stored(&place, "near")).stdout.ends_with(b"sender 0 line 0\n")
    });
    assert_exit(&gateway.stop(), 0);
    assert_exit(&near.stop(), 0);
}

/// Senders, a gateway and a store, of which both are killed again and again.
fn killed_again_and_again(kills: u64, lines: u64) {
    const SENDERS: u64 = 3;
    let place = Place::new();
    let acknowledged = AtomicU64::new(0);
    let gateway = || {
        let listen = unix(&place.path("in.sock"));
        let mut command = stream(&place);
        command.args(["--framing", "numbered", "--listen", &listen, "--rotate-size", "30K"]);
        command.args(["--remove-forwarded", "--forward", &unix(&place.path("near.sock")), "-o"]);
        Gateway::start_with(command.arg(place.path("logs/")))
    };
    let (mut sealing, mut storing) = (gateway(), store(&place, "near"));
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (place, acknowledged) = (&place, &acknowledged);
            scope.spawn(move || {
                let name = format!("sender {sender}");
                send_all::<Numbered>(&place.path("in.sock"), &name, lines, acknowledged);
            });
        }
        for kill in 1..=kills {
            let enough = kill * SENDERS * lines / (kills + 1);
            wait_until("a part is acknowledged", || acknowledged.load(Ordering::SeqCst) >= enough);
            if kill % 2 == 0 {
                sealing.signal("-KILL");
                sealing.wait_for_exit();
                sealing = gateway();
            } else {
                storing.signal("-KILL");
                storing.wait_for_exit();
                storing = store(&place, "near");
            }
        }
    });
    assert_exit(&sealing.stop(), 0);
    let text = String::from_utf8_lossy(&open(&place, &stored(&place, "near"))).into_owned();
    let found: BTreeSet<&str> =
        text.lines().filter_map(|line| line.find("sender").map(|at| &line[at..])).collect();
    for sender in 0..SENDERS {
        for line in 0..lines {
            let line = format!("sender {sender} line {line}");
            assert!(found.contains(&*line), "{line} was acknowledged and is not in the store");
        }
    }
    // A writer that was killed before its first record leaves an empty file.
    let left = segments(&place.path("logs")).into_iter();
    let left = left.filter(|path| path.metadata().unwrap().len() > 0).collect::<Vec<_>>();
    assert_eq!(left, Vec::<PathBuf>::new());
    assert_exit(&storing.stop(), 0);
}

#[test]
fn nothing_acknowledged_is_missing_in_a_store_when_both_are_killed() {
    killed_again_and_again(6, 1500);
}

#[test]
#[ignore = "takes a minute; `make test-all` runs it"]
fn soak_of_a_hundred_kills_of_gateway_and_store() {
    killed_again_and_again(100, 40_000);
}

#[test]
fn wrong_options_of_forwarding_are_refused() {
    let place = Place::new();
    let logs = place.path("logs/");
    let logs = logs.to_str().unwrap();
    for args in [
        &["--forward", "unix:x", "-o", "file.wls"][..],
        &["--remove-forwarded", "-o", logs],
        &["--store", "-o", logs],
        &["--store", "--listen", "unix:x", "-o", logs, "--max-size", "1G"],
        &["--ack-forwarded", "-o", logs],
        &["--ack-forwarded", "--forward", "unix:x", "--framing", "ndjson", "-o", logs],
    ] {
        assert_exit(&with_input(stream(&place).args(args), b""), 2);
    }
}
