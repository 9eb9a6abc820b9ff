//! `wattlock stream --open --follow`: what is sealed into a folder arrives, whatever breaks on the way. It is long because it
//! lists many things that may break.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;

use wattlock_testing::{free_port, wait_for, wait_until};

use crate::power_loss::path_of;
use crate::support::senders::{Numbered, send_all};
use crate::support::stream::{Gateway, segments, stream};
use crate::support::{Place, assert_exit, stderr, wattlock, with_input};

pub fn unix(path: &Path) -> String {
    format!("unix:{}", path.display())
}

/// `wattlock stream --open --follow` of `logs`, which goes on at the position in `position`.
fn follow(place: &Place, args: &[&str]) -> Command {
    let mut command = wattlock();
    command.args(["stream", "--open", "--follow", "-i"]).arg(place.path("key.txt")).args(args);
    command.arg("--position").arg(place.path("position")).arg(place.path("logs"));
    command
}

/// Starts it.
pub fn following(place: &Place, args: &[&str]) -> Child {
    let mut command = follow(place, args);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

#[track_caller]
pub fn stop(child: Child) -> Output {
    let stopped = Command::new("kill").arg(child.id().to_string()).status().unwrap();
    assert!(stopped.success());
    child.wait_with_output().unwrap()
}

pub fn lines(from: usize, to: usize) -> Vec<u8> {
    (from..to).flat_map(|line| format!("line {line}\n").into_bytes()).collect()
}

/// Seals lines into `logs`.
pub fn seal(place: &Place, bytes: &[u8], args: &[&str]) {
    let mut command = stream(place);
    command.args(["--framing", "ndjson", "-o"]).arg(place.path("logs/")).args(args);
    assert_exit(&with_input(&mut command, bytes), 0);
}

fn position(place: &Place) -> String {
    fs::read_to_string(place.path("position")).unwrap_or_default()
}

/// Waits until all of so many segments were delivered.
#[track_caller]
pub fn wait_for_segments(place: &Place, count: usize) {
    // Its form, the newest segment, and what is next: no segment that is not done.
    let next = format!("\n{} next\n", count + 1);
    wait_for(|| {
        let position = position(place);
        match position.ends_with(&next) && position.lines().count() == 3 {
            true => Ok(()),
            false => Err(position),
        }
    });
}

#[test]
fn what_is_there_and_what_comes_is_delivered_once_over_restarts() {
    let place = Place::new();
    seal(&place, &lines(0, 30_000), &["--rotate-size", "50K"]);
    let mut first = following(&place, &[]);
    let mut output = first.stdout.take().unwrap();
    let reader = thread::spawn(move || {
        let mut read = Vec::new();
        output.read_to_end(&mut read).unwrap();
        read
    });
    let before = segments(&place.path("logs")).len();
    assert!(before >= 3);
    wait_for_segments(&place, before);
    // Another writer, which is still at work while the first follower ends, and is killed later.
    let listen = unix(&place.path("in.sock"));
    let args = ["--listen", &listen, "--framing", "numbered", "-o"];
    let mut writer = Gateway::start_with(stream(&place).args(args).arg(place.path("logs/")));
    let acknowledged = AtomicU64::new(0);
    let delivered = |records: u64| {
        position(&place).lines().any(|line| {
            let number = line.split_once(' ').and_then(|(_, count)| count.parse::<u64>().ok());
            number.is_some_and(|count| count >= records)
        })
    };
    send_all::<Numbered>(&place.path("in.sock"), "sender 0", 1, &acknowledged);
    wait_until("it was delivered", || delivered(4));
    assert_exit(&stop(first), 0);
    let first = reader.join().unwrap();
    send_all::<Numbered>(&place.path("in.sock"), "sender 1", 1, &acknowledged);
    writer.signal("-KILL");
    writer.wait_for_exit();
    seal(&place, b"after\n", &[]);
    let second = following(&place, &[]);
    wait_for_segments(&place, before + 2);
    let second = stop(second);
    assert_exit(&second, 0);
    assert!(stderr(&second).contains("its writer was killed"), "{}", stderr(&second));
    let all = [first, second.stdout].concat();
    let with_length =
        |text: &str| [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat();
    let expected = [
        lines(0, 30_000),
        with_length("sender 0 line 0\n"),
        with_length("sender 1 line 0\n"),
        b"after\n".to_vec(),
    ];
    assert!(all == expected.concat(), "{} bytes", all.len());
}

/// Senders, a gateway, a follower and the gateway that it delivers to, all but the first killed in turn.
fn delivered_whatever_is_killed(kills: u64, lines: u64) {
    const SENDERS: u64 = 3;
    let place = Place::new();
    let gateway = |name: &str| {
        let listen = unix(&place.path(format!("{name}.sock")));
        let mut command = stream(&place);
        command.args(["--framing", "numbered", "--listen", &listen, "--rotate-size", "30K", "-o"]);
        Gateway::start_with(command.arg(place.path(format!("{name}/"))))
    };
    let to = unix(&place.path("there.sock"));
    let start = || following(&place, &["-q", "--connect", &to, "--acknowledged", "numbered"]);
    let (mut here, mut there) = (gateway("logs"), gateway("there"));
    let mut follower = start();
    let acknowledged = AtomicU64::new(0);
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (place, acknowledged) = (&place, &acknowledged);
            scope.spawn(move || {
                let name = format!("sender {sender}");
                send_all::<Numbered>(&place.path("logs.sock"), &name, lines, acknowledged);
            });
        }
        for kill in 1..=kills {
            let enough = kill * SENDERS * lines / (kills + 1);
            wait_until("a part is acknowledged", || acknowledged.load(Ordering::SeqCst) >= enough);
            match kill % 3 {
                0 => {
                    here.signal("-KILL");
                    here.wait_for_exit();
                    here = gateway("logs");
                }
                1 => {
                    follower.kill().unwrap();
                    follower.wait().unwrap();
                    follower = start();
                }
                _ => {
                    there.signal("-KILL");
                    there.wait_for_exit();
                    there = gateway("there");
                }
            }
        }
    });
    assert_exit(&here.stop(), 0);
    // Once all was delivered, nothing of any segment is left to do but of those without a record.
    let is_delivered = || {
        let position = position(&place);
        let last = segments(&place.path("logs")).len();
        position.lines().all(|line| {
            line.split_once(' ').is_none_or(|(number, count)| match count {
                "next" => number.parse::<usize>().is_ok_and(|next| next > last),
                "0" => fs::metadata(place.path(format!("logs/{number:0>6}.wls")))
                    .is_ok_and(|segment| segment.len() == 0),
                count => count.starts_with("by "),
            })
        })
    };
    wait_for(|| if is_delivered() { Ok(()) } else { Err(position(&place)) });
    assert_exit(&stop(follower), 0);
    assert_exit(&there.stop(), 0);
    let mut command = wattlock();
    command.args(["stream", "--open", "-q", "-i"]).arg(place.path("key.txt"));
    let output = command.arg(place.path("there")).output().unwrap();
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    let text = String::from_utf8_lossy(&output.stdout);
    let found: BTreeSet<&str> =
        text.lines().filter_map(|line| line.find("sender").map(|at| &line[at..])).collect();
    for sender in 0..SENDERS {
        for line in 0..lines {
            let line = format!("sender {sender} line {line}");
            assert!(found.contains(&*line), "{line} was acknowledged and did not arrive");
        }
    }
}

#[test]
fn nothing_is_missing_when_all_on_the_way_are_killed() {
    delivered_whatever_is_killed(6, 1500);
}

#[test]
#[ignore = "takes a minute; `make test-all` runs it"]
fn soak_of_a_hundred_kills_of_all_on_the_way() {
    delivered_whatever_is_killed(100, 40_000);
}

#[test]
fn relp_is_spoken_and_lines_arrive_as_lines() {
    let place = Place::new();
    seal(&place, b"one\n\nthree\n", &[]);
    let listen = unix(&place.path("relp.sock"));
    let mut command = stream(&place);
    command.args(["--framing", "relp", "--listen", &listen, "-o"]).arg(place.path("there/"));
    let there = Gateway::start_with(&mut command);
    let follower = following(&place, &["--connect", &listen, "--acknowledged", "relp"]);
    wait_for_segments(&place, 1);
    seal(&place, &lines(0, 2500), &[]);
    wait_for_segments(&place, 2);
    assert_exit(&stop(follower), 0);
    assert_exit(&there.stop(), 0);
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(place.path("there"));
    let output = command.output().unwrap();
    assert_exit(&output, 0);
    assert!(output.stdout == [b"one\n\nthree\n".to_vec(), lines(0, 2500)].concat());
}

#[test]
fn a_peer_that_is_away_gets_all_once_it_is_there() {
    let place = Place::new();
    seal(&place, &lines(0, 100), &[]);
    let socket = place.path("peer.sock");
    let to = unix(&socket);
    let mut follower = following(&place, &["--connect", &to, "--drain", "1"]);
    let mut said = BufReader::new(follower.stderr.take().unwrap());
    let mut line = String::new();
    said.read_line(&mut line).unwrap();
    assert!(line.contains("cannot write to"), "{line}");
    let stopped = stop(follower);
    said.read_line(&mut line).unwrap();
    assert!(line.contains("the next run continues"), "{line}");
    assert_exit(&stopped, 0);
    let listener = UnixListener::bind(&socket).unwrap();
    let follower = following(&place, &["--connect", &to]);
    let (mut peer, _) = listener.accept().unwrap();
    let mut came = vec![0; lines(0, 100).len()];
    peer.read_exact(&mut came).unwrap();
    assert_eq!(came, lines(0, 100));
    wait_for_segments(&place, 1);
    // It breaks, and what it was sent may be lost: nothing proves the contrary.
    drop(peer);
    seal(&place, b"more\n", &[]);
    let (mut peer, _) = listener.accept().unwrap();
    let mut came = [0; 5];
    peer.read_exact(&mut came).unwrap();
    assert_eq!(&came, b"more\n");
    wait_for_segments(&place, 2);
    drop(listener);
    let reader = thread::spawn(move || peer.read_to_end(&mut Vec::new()).unwrap());
    let stopped = stop(follower);
    assert_exit(&stopped, 1);
    assert!(stderr(&stopped).contains("may be lost"), "{}", stderr(&stopped));
    assert_eq!(reader.join().unwrap(), 0);
}

#[test]
fn files_go_on_in_the_next_one() {
    let place = Place::new();
    let out = place.path("out").display().to_string();
    for (run, name) in ["out", "out.000001"].into_iter().enumerate() {
        seal(&place, &lines(run, run + 1), &[]);
        let follower = following(&place, &["-o", &out]);
        wait_for_segments(&place, run + 1);
        assert_exit(&stop(follower), 0);
        assert_eq!(fs::read(place.path(name)).unwrap(), lines(run, run + 1));
    }
}

#[test]
fn nothing_passes_over_what_cannot_be_read() {
    let place = Place::new();
    for line in 0..5 {
        seal(&place, &lines(line, line + 1), &[]);
    }
    let paths = segments(&place.path("logs"));
    let whole = fs::read(&paths[1]).unwrap();
    let mut damaged = whole.clone();
    damaged[whole.len() / 2] ^= 1;
    fs::write(&paths[1], damaged).unwrap();
    let mut delivered = Vec::new();
    let mut ended = |code: i32, why: &str| {
        let output = follow(&place, &[]).output().unwrap();
        assert_exit(&output, code);
        assert!(stderr(&output).contains(why), "{}", stderr(&output));
        delivered.extend(output.stdout);
    };
    ended(3, "000002.wls: ");
    ended(3, "000002.wls: ");
    fs::write(&paths[1], whole).unwrap();
    // A key that is not there.
    let key = place.path("logs/keys/000003.key");
    fs::rename(&key, place.path("key-3")).unwrap();
    ended(3, "000003.wls: the key of epoch 3 is missing");
    fs::rename(place.path("key-3"), &key).unwrap();
    // Another identity.
    place.keygen("other.txt");
    let mut other = wattlock();
    other.args(["stream", "--open", "--follow", "-i"]).arg(place.path("other.txt"));
    other.arg("--position").arg(place.path("position")).arg(place.path("logs"));
    let output = other.output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
    // What was removed is gone, and said to be.
    fs::remove_file(&paths[3]).unwrap();
    let follower = following(&place, &[]);
    wait_for_segments(&place, 5);
    let stopped = stop(follower);
    assert_exit(&stopped, 1);
    let said = stderr(&stopped);
    assert!(
        said.contains("000004.wls: it was removed before all messages were delivered"),
        "{said}"
    );
    delivered.extend(stopped.stdout);
    assert_eq!(delivered, [lines(0, 3), lines(4, 5)].concat());
}

#[test]
fn a_position_of_another_folder_is_refused() {
    let place = Place::new();
    seal(&place, b"one\n", &[]);
    let follower = following(&place, &[]);
    wait_for_segments(&place, 1);
    assert_eq!(stop(follower).stdout, b"one\n");
    fs::remove_dir_all(place.path("logs")).unwrap();
    seal(&place, b"two\n", &[]);
    let output = follow(&place, &[]).output().unwrap();
    assert_exit(&output, 1);
    assert!(output.stdout.is_empty());
    assert!(stderr(&output).contains("the position is that of another folder"));
    fs::remove_file(place.path("position")).unwrap();
    let follower = following(&place, &[]);
    wait_for_segments(&place, 1);
    assert_eq!(stop(follower).stdout, b"two\n");
}

#[test]
fn only_what_was_sent_is_taken_as_acknowledged() {
    let place = Place::new();
    seal(&place, &lines(0, 10), &[]);
    let socket = place.path("peer.sock");
    let listener = UnixListener::bind(&socket).unwrap();
    let follower = following(&place, &["--connect", &unix(&socket), "--acknowledged", "numbered"]);
    for wrong in [b"HTTP/1.1".to_vec(), 11_u64.to_be_bytes().into(), [0; 8].into()] {
        let (mut peer, _) = listener.accept().unwrap();
        peer.write_all(&wrong).unwrap();
        // It ends the connection for that.
        let _ = peer.read_to_end(&mut Vec::new());
    }
    let (mut peer, _) = listener.accept().unwrap();
    peer.write_all(&3_u64.to_be_bytes()).unwrap();
    peer.write_all(&10_u64.to_be_bytes()).unwrap();
    wait_for_segments(&place, 1);
    let came = thread::spawn(move || {
        let mut came = Vec::new();
        peer.read_to_end(&mut came).unwrap();
        came
    });
    let stopped = stop(follower);
    assert_exit(&stopped, 0);
    assert_eq!(came.join().unwrap().len(), 10 * (12 + 6));
    assert!(stderr(&stopped).contains("it acknowledges what was not sent"));
}

/// A segment that is made just then is found by its reader as it is written, at any byte.
#[test]
fn segments_that_are_made_while_others_read_are_all_delivered() {
    let place = Place::new();
    let listen = unix(&place.path("in.sock"));
    let mut command = stream(&place);
    command.args(["--framing", "numbered", "--listen", &listen, "--rotate-size", "1K", "-o"]);
    let gateway = Gateway::start_with(command.arg(place.path("logs/")));
    let mut followers: Vec<_> = (0..3)
        .map(|number| {
            let position = place.path(format!("position-{number}"));
            let mut command = wattlock();
            command.args(["stream", "--open", "--follow", "-q", "-i"]).arg(place.path("key.txt"));
            command.arg("--position").arg(&position).arg(place.path("logs"));
            command.arg("-o").arg(place.path(format!("out-{number}")));
            (command.spawn().unwrap(), position)
        })
        .collect();
    // One after the other, so that each is a record of its own.
    const CONNECTIONS: usize = 500;
    for number in 0..CONNECTIONS {
        let name = format!("sender {number}");
        send_all::<Numbered>(&place.path("in.sock"), &name, 1, &AtomicU64::new(0));
    }
    assert_exit(&gateway.stop(), 0);
    let last = segments(&place.path("logs")).len();
    assert!(last > 50, "only {last} segments");
    for (number, (follower, position)) in followers.iter_mut().enumerate() {
        let next = format!("\n{} next\n", last + 1);
        wait_for(|| {
            let text = fs::read_to_string(&*position).unwrap_or_default();
            match text.ends_with(&next) && text.lines().count() == 3 {
                true => Ok(()),
                false => Err(text),
            }
        });
        assert!(Command::new("kill").arg(follower.id().to_string()).status().unwrap().success());
        assert!(follower.wait().unwrap().success());
        let text = fs::read(place.path(format!("out-{number}"))).unwrap();
        let found = text.windows(7).filter(|bytes| *bytes == b"sender ").count();
        assert_eq!(found, CONNECTIONS, "follower {number}");
    }
}

#[test]
fn one_process_uses_a_position_and_its_file_is_no_other() {
    let place = Place::new();
    seal(&place, b"line\n", &[]);
    let first = following(&place, &[]);
    wait_for_segments(&place, 1);
    let second = follow(&place, &[]).output().unwrap();
    assert_exit(&second, 1);
    assert!(stderr(&second).contains("another process delivers"), "{}", stderr(&second));
    assert_eq!(stop(first).stdout, b"line\n");
    fs::write(place.path("position"), "not a position\n").unwrap();
    let other = follow(&place, &[]).output().unwrap();
    assert_exit(&other, 1);
    assert!(stderr(&other).contains("not a position"), "{}", stderr(&other));
    assert_eq!(fs::read(place.path("position")).unwrap(), b"not a position\n");
    for args in [
        &["stream", "--open", "--follow"][..],
        &["stream", "--follow", "-i", "key.txt", "logs"],
        &["stream", "--open", "--follow", "--from", "2026-01-01", "logs"],
        &["stream", "--open", "--position", "p", "logs"],
        &["stream", "--open", "--follow", "--acknowledged", "relp", "logs"],
        &["stream", "--open", "--follow", "logs/000001.wls"],
    ] {
        let output = wattlock().current_dir(place.path("")).args(args).output().unwrap();
        assert_exit(&output, 2);
    }
}

#[test]
fn metrics_say_how_much_was_delivered() {
    let place = Place::new();
    seal(&place, &lines(0, 10), &[]);
    let port = free_port();
    let address = format!("127.0.0.1:{port}");
    let follower = following(&place, &["--metrics", &address]);
    wait_for_segments(&place, 1);
    let mut connection = std::net::TcpStream::connect(&address).unwrap();
    connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
    let mut text = String::new();
    connection.read_to_string(&mut text).unwrap();
    assert!(text.contains("wattlock_stream_out_bytes_total 70\n"), "{text}");
    assert_exit(&stop(follower), 0);
}

#[test]
fn metrics_are_served_while_a_folder_is_opened() {
    let place = Place::new();
    let all = lines(0, 100_000);
    seal(&place, &all, &[]);
    let address = format!("127.0.0.1:{}", free_port());
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt"));
    command.args(["--metrics", &address]).arg(place.path("logs"));
    // It waits for its output to be read.
    let opening = command.stdout(Stdio::piped()).spawn().unwrap();
    wait_for(|| {
        let mut connection =
            std::net::TcpStream::connect(&address).map_err(|error| error.to_string())?;
        connection.write_all(b"GET /metrics HTTP/1.1\r\nHost: here\r\n\r\n").unwrap();
        let mut text = String::new();
        connection.read_to_string(&mut text).unwrap();
        match text.contains("wattlock_stream_messages_total 0\n") {
            false if text.contains("wattlock_stream_messages_total ") => Ok(()),
            _ => Err(text),
        }
    });
    let opened = opening.wait_with_output().unwrap();
    assert_exit(&opened, 0);
    assert!(opened.stdout == all);
}

/// rsyslog as the last: it acknowledges what it has in its queue on disk.
#[test]
#[ignore = "needs rsyslog; `make test-all` installs it"]
fn soak_of_delivery_to_rsyslog() {
    let place = Place::new();
    let port = free_port();
    let work = place.path("rsyslog");
    fs::create_dir(&work).unwrap();
    let out = place.path("out.log");
    let configuration = format!(
        "global(workDirectory=\"{}\")\nmodule(load=\"imrelp\")\n\
         input(type=\"imrelp\" port=\"{port}\" address=\"127.0.0.1\" maxDataSize=\"10k\")\n\
         template(name=\"raw\" type=\"string\" string=\"%rawmsg%\\n\")\n\
         action(type=\"omfile\" file=\"{}\" template=\"raw\")\n",
        work.display(),
        out.display()
    );
    let configuration = place.write("rsyslog.conf", configuration.as_bytes());
    let rsyslog = || {
        Command::new(path_of("rsyslogd"))
            .args(["-n", "-iNONE", "-f"])
            .arg(&configuration)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    };
    let line = |number: usize| format!("<13>Nov 26 19:00:00 host test: line {number}\n");
    let part = |from: usize, to: usize| (from..to).map(line).collect::<String>();
    seal(&place, part(0, 20_000).as_bytes(), &[]);
    let mut server = rsyslog();
    let to = format!("tcp:127.0.0.1:{port}");
    let follower = following(&place, &["--connect", &to, "--acknowledged", "relp"]);
    wait_for_segments(&place, 1);
    // A restart in good order: it writes what it has acknowledged.
    assert!(Command::new("kill").arg(server.id().to_string()).status().unwrap().success());
    server.wait().unwrap();
    seal(&place, part(20_000, 40_000).as_bytes(), &[]);
    server = rsyslog();
    wait_for_segments(&place, 2);
    assert_exit(&stop(follower), 0);
    let expected = 40_000;
    wait_for(|| {
        let text = fs::read_to_string(&out).unwrap_or_default();
        let found: BTreeSet<&str> = text.lines().collect();
        match (0..expected).filter(|number| !found.contains(line(*number).trim_end())).count() {
            0 => Ok(()),
            missing => Err(format!("{missing} lines are missing")),
        }
    });
    let _ = Command::new("kill").arg(server.id().to_string()).status();
    server.wait().unwrap();
}
