//! `wattlock stream -o FOLDER/` with senders that are told when their messages are safe: what is acknowledged is
//! there, whatever happens.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use wattlock_testing::{free_port, wait_for, wait_until};

use crate::power_loss::path_of;
use crate::support::senders::{Fluent, Numbered, Relp, Sender, send_all};
use crate::support::stream::{Gateway, stream};
use crate::support::{Place, assert_exit, can_trace, installed, stderr, wattlock};

fn start(place: &Place, protocol: &str, more: &[&str]) -> Gateway {
    let listen = format!("unix:{}", place.path("in.sock").display());
    let logs = place.path("logs/");
    let mut args = vec!["--framing", protocol, "--listen", &listen];
    args.extend(["--rotate-size", "100K", "-q", "-o", logs.to_str().unwrap()]);
    args.extend(more);
    let mut command = stream(place);
    // It says where it listens.
    args.retain(|arg| *arg != "-q");
    Gateway::start_with(command.args(args))
}

/// The lines in a folder, with how often each is there.
#[track_caller]
fn lines(place: &Place) -> BTreeMap<String, usize> {
    let (output, lines) = lines_so_far(place);
    // Connections that were cut are counted; nothing is damaged.
    assert!(matches!(output.status.code(), Some(0 | 1)), "{}", stderr(&output));
    lines
}

/// The same while it is written, with the exit code.
fn lines_so_far(place: &Place) -> (Output, BTreeMap<String, usize>) {
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(place.path("logs"));
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut lines = BTreeMap::new();
    for line in text.lines() {
        // What stands before it is of its framing.
        if let Some(at) = line.find("sender") {
            *lines.entry(line[at..].to_owned()).or_default() += 1;
        }
    }
    (output, lines)
}

fn nothing_acknowledged_is_lost<S: Sender>(protocol: &str, sync: &str) {
    const SENDERS: u64 = 4;
    const LINES: u64 = 3000;
    let place = Place::new();
    let socket = place.path("in.sock");
    let acknowledged = AtomicU64::new(0);
    let mut gateway = start(&place, protocol, &["--sync", sync]);
    thread::scope(|scope| {
        for sender in 0..SENDERS {
            let (socket, acknowledged) = (&socket, &acknowledged);
            scope.spawn(move || {
                send_all::<S>(socket, &format!("sender {sender}"), LINES, acknowledged);
            });
        }
        for kill in 1..=3 {
            let enough = kill * SENDERS * LINES / 4;
            wait_until("a part is acknowledged", || acknowledged.load(Ordering::SeqCst) >= enough);
            gateway.signal("-KILL");
            gateway.wait_for_exit();
            gateway = start(&place, protocol, &["--sync", sync]);
        }
    });
    assert_exit(&gateway.stop(), 0);
    let lines = lines(&place);
    for sender in 0..SENDERS {
        for line in 0..LINES {
            let line = format!("sender {sender} line {line}");
            assert!(lines.contains_key(&line), "{protocol}: {line} was acknowledged and is lost");
        }
    }
    let all: usize = lines.values().sum();
    let doubles = all - lines.len();
    assert!(
        doubles <= 3 * 4 * 128,
        "{protocol}: only what was not acknowledged comes twice: {doubles}"
    );
}

#[test]
fn nothing_that_was_acknowledged_by_relp_is_lost_when_the_program_is_killed() {
    nothing_acknowledged_is_lost::<Relp>("relp", "batch");
}

#[test]
fn nothing_that_was_acknowledged_by_number_is_lost_when_the_program_is_killed() {
    nothing_acknowledged_is_lost::<Numbered>("numbered", "5");
    nothing_acknowledged_is_lost::<Numbered>("numbered", "never");
}

#[test]
fn nothing_that_was_acknowledged_to_fluent_is_lost_when_the_program_is_killed() {
    nothing_acknowledged_is_lost::<Fluent>("fluent", "batch");
}

#[test]
fn at_sigterm_all_that_came_is_written_acknowledged_and_said_to_be_the_end() {
    for sync in ["batch", "1000", "never"] {
        let place = Place::new();
        let gateway = start(&place, "relp", &["--sync", sync]);
        let mut connection = UnixStream::connect(place.path("in.sock")).unwrap();
        Relp::greet(&mut connection).unwrap();
        connection.write_all(&Relp::message(2, "sender 0 line 0")).unwrap();
        gateway.wait_for("wattlock_stream_messages_total 1");
        gateway.signal("-TERM");
        let mut rest = String::new();
        connection.read_to_string(&mut rest).unwrap();
        assert_eq!(rest, "2 rsp 6 200 OK\n0 serverclose 0\n", "{sync}");
        assert_exit(&gateway.end(), 0);
        assert_eq!(lines(&place).len(), 1);
    }
}

#[test]
fn a_session_is_closed_after_its_last_answer() {
    let place = Place::new();
    let gateway = start(&place, "relp", &[]);
    let mut connection = UnixStream::connect(place.path("in.sock")).unwrap();
    Relp::greet(&mut connection).unwrap();
    let both = [Relp::message(2, "sender 0 line 0"), b"3 close 0\n".to_vec()].concat();
    connection.write_all(&both).unwrap();
    connection.shutdown(std::net::Shutdown::Write).unwrap();
    let mut rest = String::new();
    connection.read_to_string(&mut rest).unwrap();
    assert_eq!(rest, "2 rsp 6 200 OK\n3 rsp 0\n0 serverclose 0\n");
    // What is no RELP is cut, and does not disturb the others.
    let mut other = UnixStream::connect(place.path("in.sock")).unwrap();
    other.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    assert_eq!(other.read(&mut [0; 1]).unwrap(), 0);
    let output = gateway.stop();
    assert_exit(&output, 0);
    assert!(stderr(&output).contains("not RELP"), "{}", stderr(&output));
}

/// Runs a gateway for RELP under strace.
fn traced(place: &Place, options: &[&str], more: &[&str]) -> Option<Gateway> {
    if !can_trace() {
        return None;
    }
    let plain = stream(place);
    let mut command = Command::new("strace");
    // The program is the child, and strace a process apart: so signals reach the program.
    command.args(["-D", "-fqq", "-s", "200", "-o"]).arg(place.path("trace")).args(options);
    command.arg(plain.get_program()).args(plain.get_args());
    for (name, value) in plain.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let listen = format!("unix:{}", place.path("in.sock").display());
    command.args(["--framing", "relp", "--listen", &listen]).args(more);
    command.arg("-o").arg(place.path("logs/"));
    Some(Gateway::start_with(&mut command))
}

#[test]
fn an_acknowledgement_comes_after_the_message_is_durable() {
    let place = Place::new();
    let Some(gateway) = traced(&place, &["-e", "trace=fdatasync,sendto,pwrite64"], &[]) else {
        return;
    };
    let mut connection = UnixStream::connect(place.path("in.sock")).unwrap();
    Relp::greet(&mut connection).unwrap();
    connection.write_all(&Relp::message(2, "sender 0 line 0")).unwrap();
    let mut answers = BufReader::new(connection.try_clone().unwrap());
    assert_eq!(Relp::acknowledged(&mut answers).unwrap(), 2);
    assert_exit(&gateway.stop(), 0);
    let trace = || fs::read_to_string(place.path("trace")).unwrap();
    wait_until("the trace is written", || trace().contains("2 rsp 6 200 OK"));
    let trace = trace();
    let answered = trace.find("2 rsp 6 200 OK").unwrap();
    let durable = trace.find("fdatasync").unwrap();
    // The header of the segment is the first write.
    let written = trace.match_indices("pwrite64").nth(1).unwrap().0;
    assert!(written < durable && durable < answered, "{trace}");
}

#[test]
fn what_cannot_be_made_durable_is_not_acknowledged() {
    for sync in ["batch", "100"] {
        not_acknowledged(sync);
    }
}

fn not_acknowledged(sync: &str) {
    let place = Place::new();
    let options = ["-e", "trace=fdatasync", "-e", "inject=fdatasync:error=EIO"];
    let Some(gateway) = traced(&place, &options, &["--sync", sync]) else { return };
    let mut connection = UnixStream::connect(place.path("in.sock")).unwrap();
    Relp::greet(&mut connection).unwrap();
    connection.write_all(&Relp::message(2, "sender 0 line 0")).unwrap();
    let mut rest = Vec::new();
    // It is closed without a word.
    let _ = connection.read_to_end(&mut rest);
    assert_eq!(rest, b"");
    // The next message finds out that the disk fails, and so does its sender.
    if let Ok(mut connection) = UnixStream::connect(place.path("in.sock")) {
        let _ = Relp::greet(&mut connection);
        let _ = connection.write_all(&Relp::message(2, "sender 0 line 1"));
        let _ = connection.read_to_end(&mut rest);
    }
    let output = gateway.end();
    assert_exit(&output, 1);
    assert!(stderr(&output).contains("Input/output error"), "{}", stderr(&output));
    assert!(!String::from_utf8_lossy(&rest).contains("200 OK\n"), "{rest:?}");
}

#[test]
fn a_disk_that_fails_is_found_at_the_end_of_a_segment_that_is_never_synced_before() {
    let place = Place::new();
    // The first is of its header, when it begins. They are counted for each thread.
    let segment = place.path("logs/000001.wls").display().to_string();
    let inject = "inject=fsync:error=EIO:when=2+";
    let options = ["-e", "trace=fsync", "-P", &segment, "-e", inject];
    let Some(gateway) = traced(&place, &options, &["--sync", "never", "--threads", "1"]) else {
        return;
    };
    let mut connection = UnixStream::connect(place.path("in.sock")).unwrap();
    Relp::greet(&mut connection).unwrap();
    connection.write_all(&Relp::message(2, "sender 0 line 0")).unwrap();
    let mut answer = [0; 15];
    connection.read_exact(&mut answer).unwrap();
    assert_eq!(&answer, b"2 rsp 6 200 OK\n");
    let output = gateway.stop();
    assert_exit(&output, 1);
    assert!(stderr(&output).contains("Input/output error"), "{}", stderr(&output));
}

#[test]
fn a_sender_that_takes_no_answers_is_not_read_for_ever_and_disturbs_no_other() {
    let place = Place::new();
    let gateway = start(&place, "relp", &["--idle-timeout", "2"]);
    let mut deaf = UnixStream::connect(place.path("in.sock")).unwrap();
    Relp::greet(&mut deaf).unwrap();
    let stopped = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            // Its answers fill what the system keeps for it, and then it is not read.
            for number in 2.. {
                if deaf.write_all(&Relp::message(number % 100_000_000, "x")).is_err() {
                    break;
                }
            }
            stopped.store(true, Ordering::SeqCst);
        });
        send_all::<Relp>(&place.path("in.sock"), "sender 1", 500, &AtomicU64::new(0));
        wait_until("the deaf one is cut", || stopped.load(Ordering::SeqCst));
    });
    assert_exit(&gateway.stop(), 0);
}

#[test]
fn wrong_options_of_acknowledgements_are_refused() {
    let place = Place::new();
    let logs = place.path("logs/");
    let logs = logs.to_str().unwrap();
    for args in [
        &["--framing", "relp", "-o", logs][..],
        &["--framing", "relp", "--listen", "unix:x", "-o", "file.wls"],
        &["--framing", "numbered", "--listen", "unix:x"],
        &["--sync", "batch", "-o", "file.wls"],
        &["--sync", "0", "-o", logs],
        &["--sync", "soon", "-o", logs],
    ] {
        let output = stream(&place).args(args).stdin(Stdio::null()).output().unwrap();
        assert_exit(&output, 2);
    }
}

#[test]
#[ignore = "takes a minute; `make test-all` runs it"]
fn soak_of_rsyslog() {
    if !installed("rsyslogd") {
        return;
    }
    rsyslog(80_000, 5);
}

/// Lets Debian's rsyslog send lines by RELP while the program is killed again and again.
fn rsyslog(count: u64, kills: u64) {
    let place = Place::new();
    let port = free_port();
    let listen = format!("tcp:127.0.0.1:{port}");
    let start = || {
        let mut command = stream(&place);
        command.args(["--framing", "relp", "--listen", &listen, "-o"]).arg(place.path("logs/"));
        Gateway::start_with(&mut command)
    };
    let socket = place.path("log.sock");
    let work = place.path("work");
    fs::create_dir(&work).unwrap();
    let configuration = format!(
        "global(workDirectory=\"{}\")\n\
         module(load=\"imuxsock\" SysSock.Use=\"off\")\n\
         module(load=\"omrelp\")\n\
         input(type=\"imuxsock\" Socket=\"{}\" CreatePath=\"on\" RateLimit.Interval=\"0\")\n\
         action(type=\"omrelp\" target=\"127.0.0.1\" port=\"{port}\" windowSize=\"2048\"\n\
         action.resumeInterval=\"1\" action.resumeRetryCount=\"-1\"\n\
         queue.type=\"LinkedList\" queue.size=\"200000\" queue.timeoutEnqueue=\"60000\")\n",
        work.display(),
        socket.display()
    );
    let configuration = place.write("rsyslog.conf", configuration.as_bytes());
    let mut gateway = start();
    let mut rsyslog = Command::new(path_of("rsyslogd"))
        .args(["-n", "-iNONE", "-f"])
        .arg(&configuration)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_until("rsyslog listens", || socket.exists());
    let datagrams = std::os::unix::net::UnixDatagram::unbound().unwrap();
    wait_for(|| datagrams.connect(&socket).map_err(|error| error.to_string()));
    for kill in 0..=kills {
        for line in kill * count / (kills + 1)..(kill + 1) * count / (kills + 1) {
            let text = format!("<13>Nov 26 19:00:00 host test: sender 0 line {line}");
            datagrams.send(text.as_bytes()).unwrap();
        }
        if kill < kills {
            // In the middle of what was sent.
            gateway.wait_until("lines came", |text| {
                let value = text
                    .lines()
                    .find_map(|line| line.strip_prefix("wattlock_stream_messages_total "));
                value.and_then(|value| value.parse::<f64>().ok()).is_some_and(|value| value > 0.0)
            });
            gateway.signal("-KILL");
            gateway.wait_for_exit();
            gateway = start();
        }
    }
    let lost = |lines: &BTreeMap<String, usize>| {
        (0..count).filter(|line| !lines.contains_key(&format!("sender 0 line {line}"))).count()
    };
    wait_for(|| match lost(&lines_so_far(&place).1) {
        0 => Ok(()),
        lost => Err(format!("{lost} lines did not come")),
    });
    let _ = Command::new("kill").arg(rsyslog.id().to_string()).status();
    let _ = rsyslog.wait();
    assert_exit(&gateway.stop(), 0);
    let lines = lines(&place);
    assert_eq!(lost(&lines), 0);
    let doubles = lines.values().sum::<usize>() - lines.len();
    println!("{count} lines, {kills} kills: none lost, {doubles} doubled");
}

#[test]
#[ignore = "needs Fluent's client for Node; `make test-all` installs it"]
fn soak_of_the_client_of_fluent() {
    const EVENTS: usize = 1000;
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/fluent/node_modules");
    if !modules.exists() || !installed("node") {
        return wattlock_testing::skip("fluent", "Node or @fluent-org/logger is missing");
    }
    let place = Place::new();
    let mut command = stream(&place);
    command.args(["--framing", "fluent", "--listen", "tcp:127.0.0.1:0", "-o"]);
    let gateway = Gateway::start_with(command.arg(place.path("logs/")));
    let address = gateway.address();
    let port = address.rsplit_once(':').unwrap().1;
    let modes = ["Message", "Forward", "PackedForward", "CompressedPackedForward"];
    for mode in modes {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fluent.cjs");
        let output = Command::new("node")
            .arg(script)
            .args([port, mode, &EVENTS.to_string()])
            .env("NODE_PATH", &modules)
            .output()
            .unwrap();
        // Each was acknowledged, or it would have failed.
        assert_exit(&output, 0);
    }
    assert_exit(&gateway.stop(), 0);
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(place.path("logs"));
    let output = command.output().unwrap();
    assert_exit(&output, 0);
    let text = String::from_utf8_lossy(&output.stdout);
    // The last mode is compressed: what is kept is what came.
    for mode in &modes[..3] {
        for event in 0..EVENTS {
            assert!(text.contains(&format!("event {event} of {mode}")), "{mode} {event}");
        }
    }
}
