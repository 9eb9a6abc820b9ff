//! `wattlock stream` where anybody may connect: headers that cost time, too many connections, and
//! connections that end in the middle or say nothing.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::io::Write;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::process::Command;

use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType, connect, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::support::stream::{Gateway, open, sealed, stream, units};
use crate::support::{Place, Plugin, assert_exit, installed, stderr, wattlock, with_input};
use wattlock_testing::wait_until;

fn opening(place: &Place, args: &[&str]) -> Gateway {
    let mut command = wattlock();
    command.args(["stream", "--open", "--listen", "tcp:127.0.0.1:0", "-i"]);
    Gateway::start_with(command.arg(place.path("key.txt")).args(args))
}

fn connect_to(gateway: &Gateway) -> TcpStream {
    TcpStream::connect(gateway.address().trim_start_matches("tcp:")).unwrap()
}

/// The beginning of a stream whose key header has as many recipients.
fn header_of(recipients: usize) -> Vec<u8> {
    let stanza = format!("-> X25519 {}\n{}\n", "A".repeat(43), "A".repeat(43));
    let text = format!("wattlock/v1\n{}--- {}\n", stanza.repeat(recipients), "A".repeat(43));
    let len = (text.len() as u32).to_be_bytes();
    [b"wattlock-stream/v1\n", &len[..], text.as_bytes(), &[7; 56]].concat()
}

#[test]
fn headers_with_too_many_recipients_are_refused_before_a_key_is_tried() {
    let place = Place::new();
    let out = place.path("out");
    let receiver = opening(&place, &["-o", out.to_str().unwrap()]);
    let mut hostile = Vec::new();
    for recipients in [129, 10_000] {
        let mut stream = connect_to(&receiver);
        // It may be cut before it has sent all.
        let _ = stream.write_all(&header_of(recipients));
        hostile.push(stream);
    }
    receiver.wait_for("wattlock_stream_connections_total 2");
    receiver.wait_for("wattlock_stream_connections_open 0");
    let sent = with_input(stream(&place).args(["--connect", &receiver.address()]), b"authentic");
    assert_exit(&sent, 0);
    receiver.wait_for("wattlock_stream_out_bytes_total 9");
    let output = receiver.stop();
    assert_exit(&output, 3);
    let said = stderr(&output);
    assert!(
        said.contains("129 recipients, and the limit is 128: raise it with --max-recipients"),
        "{said}"
    );
    assert!(said.contains("bytes is longer than the limit of"), "{said}");
    assert_eq!(fs::read(out).unwrap(), b"authentic");
}

#[test]
fn while_keys_are_looked_for_other_connections_go_on() {
    if !installed("python3") {
        return;
    }
    let place = Place::new();
    let plugin = Plugin::new(&place);
    let slow = ["first\n", "second\n"].map(|text| {
        let mut sealing = plugin.wattlock();
        let sealed = with_input(sealing.args(["stream", "-r", &plugin.recipient]), text.as_bytes());
        assert_exit(&sealed, 0);
        sealed.stdout
    });
    let quick = units(&sealed(&place, &["--max-message", "6"], b"quick\nagain\n"));
    // The plugin reports the request, and answers once all ends of this pipe are closed.
    let held = place.path("held");
    assert!(Command::new("mkfifo").arg(&held).status().unwrap().success());
    let held = File::options().read(true).write(true).open(held).unwrap();
    let mut opening = plugin.wattlock_and("exec 3< held; echo >> asked; cat <&3");
    opening.args(["stream", "--open", "--listen", "tcp:127.0.0.1:0", "-i"]);
    opening.arg(place.path("key.txt")).arg("-i").arg(&plugin.identity);
    let out = place.path("out");
    let receiver = Gateway::start_with(opening.arg("-o").arg(&out));

    let text = || fs::read_to_string(&out).unwrap_or_default();
    let asked = || fs::read(place.path("asked")).map_or(0, |lines| lines.len());
    let mut slow = slow.iter().map(|stream| {
        let mut connection = connect_to(&receiver);
        connection.write_all(stream).unwrap();
        connection
    });
    let first = slow.next().unwrap();
    wait_until("the plugin is asked for the first", || asked() == 1);
    // The header of another is opened meanwhile: the header, the beginning, one message.
    let mut other = connect_to(&receiver);
    other.write_all(&quick[..3].concat()).unwrap();
    wait_until("a connection that came later is served", || text() == "quick\n");
    // As many headers as are looked at together stop none that is open already.
    let second = slow.next().unwrap();
    wait_until("the plugin is asked for the second", || asked() == 2);
    other.write_all(&quick[3..].concat()).unwrap();
    wait_until("a connection that is open is served", || text() == "quick\nagain\n");

    drop((held, first, second, other));
    let whole = "quick\nagain\nfirst\nsecond\n".len();
    wait_until("all of them are opened", || text().len() == whole);
    receiver.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&receiver.stop(), 0);
    let mut last: Vec<_> = text().lines().skip(2).map(str::to_owned).collect();
    last.sort();
    assert_eq!(last, ["first", "second"]);
}

#[test]
fn a_header_that_does_not_come_whole_is_not_waited_for() {
    let place = Place::new();
    let receiver = opening(&place, &["-o", place.path("out").to_str().unwrap()]);
    let mut slow = connect_to(&receiver);
    slow.write_all(&header_of(100)[..1000]).unwrap();
    receiver.wait_for("wattlock_stream_connections_cut_total 1");
    let output = receiver.stop();
    let said = stderr(&output);
    assert!(said.contains("its stream header did not arrive"), "{said}");
}

#[test]
fn other_machines_may_connect_only_if_that_is_asked_for() {
    let place = Place::new();
    let socket = format!("unix:{}", place.path("s").display());
    for args in [
        &["--listen", "tcp:0.0.0.0:0"][..],
        &["--listen", "tcp:[::]:0"],
        &["--listen", &socket, "--metrics", "0.0.0.0:0"],
    ] {
        let output = with_input(stream(&place).args(args), b"");
        assert_exit(&output, 2);
        assert!(stderr(&output).contains("--insecure"), "{}", stderr(&output));
    }
    let out = place.path("out");
    let args = ["--listen", "tcp:0.0.0.0:0", "--insecure", "-o", out.to_str().unwrap()];
    assert_exit(&Gateway::start(&place, &args).stop(), 0);
}

#[test]
fn a_sender_that_is_silent_is_watched_by_the_system_and_ended_only_if_asked() {
    let place = Place::new();
    let out = place.path("out");
    let args = ["--listen", "tcp:127.0.0.1:0", "--framing", "ndjson", "--idle-timeout", "1"];
    let gateway = Gateway::start(&place, &[&args[..], &["-o", out.to_str().unwrap()]].concat());
    let mut sender = connect_to(&gateway);
    sender.write_all(b"a line\n").unwrap();
    gateway.wait_for("wattlock_stream_connections_total 1");
    let port =
        format!(":{:04X} ", gateway.address().rsplit_once(':').unwrap().1.parse::<u16>().unwrap());
    let sockets = fs::read_to_string("/proc/net/tcp").unwrap();
    let of_gateway = sockets.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut of_gateway =
        of_gateway.filter(|fields| format!("{} ", fields[1]).ends_with(&port) && fields[3] == "01");
    // Timer 2 is that of keepalive.
    assert!(of_gateway.all(|fields| fields[5].starts_with("02:")), "{sockets}");
    gateway.wait_for("wattlock_stream_connections_idle_total 1");
    gateway.wait_for("wattlock_stream_connections_cut_total 0");
    assert_exit(&gateway.stop(), 0);
    // Nothing is missing, so the file is whole.
    let output = open(&place, &fs::read(out).unwrap());
    assert_exit(&output, 0);
    assert_eq!(output.stdout, b"a line\n");
}

#[test]
fn half_a_line_at_the_end_of_a_connection_is_counted_and_not_delivered() {
    let place = Place::new();
    let (out, socket) = (place.path("out"), place.path("s"));
    let listen = format!("unix:{}", socket.display());
    let args = ["--listen", &listen, "--framing", "ndjson", "-o", out.to_str().unwrap()];
    let gateway = Gateway::start(&place, &args);
    let mut sender = UnixStream::connect(&socket).unwrap();
    sender.write_all(b"{\"whole\":1}\n{\"half").unwrap();
    drop(sender);
    gateway.wait_for("wattlock_stream_connections_cut_total 1");
    gateway.wait_for("wattlock_stream_messages_total 1");
    gateway.wait_for("wattlock_stream_incomplete_bytes_total 6");
    assert_exit(&gateway.stop(), 0);
    let output = open(&place, &fs::read(out).unwrap());
    assert_exit(&output, 1);
    assert_eq!(output.stdout, b"{\"whole\":1}\n");
    // A file may end without a newline.
    let file = sealed(&place, &["--framing", "ndjson"], b"one\ntwo");
    assert_eq!(open(&place, &file).stdout, b"one\ntwo");
}

fn allow_files() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
}

#[test]
fn a_thousand_connections_may_wait_to_be_accepted() {
    allow_files();
    let place = Place::new();
    let (out, socket) = (place.path("out"), place.path("s"));
    let listen = format!("unix:{}", socket.display());
    let gateway = Gateway::start(&place, &["--listen", &listen, "-o", out.to_str().unwrap()]);
    gateway.signal("-STOP");
    let address = SocketAddrUnix::new(&socket).unwrap();
    let waiting: Vec<_> = (0..1000)
        .map(|_| {
            let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
            let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
            connect(&socket, &address).map(|()| socket)
        })
        .collect();
    gateway.signal("-CONT");
    let refused = waiting.iter().filter(|connected| connected.is_err()).count();
    assert_eq!(refused, 0);
    gateway.wait_for("wattlock_stream_connections_total 1000");
    drop(waiting);
    gateway.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&gateway.stop(), 0);
}

#[test]
fn metrics_are_served_when_descriptors_run_out() {
    let place = Place::new();
    let (out, socket) = (place.path("out"), place.path("s"));
    let mut command = Command::new("sh");
    command.args(["-c", "ulimit -n 128 && exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_wattlock")]);
    command.args(["stream", "-r", &place.recipient, "--listen"]);
    command.arg(format!("unix:{}", socket.display())).arg("-o").arg(&out);
    let gateway = Gateway::start_with(&mut command);
    let connections: Vec<_> = (0..200).map(|_| UnixStream::connect(&socket).unwrap()).collect();
    gateway.wait_until("all", |_| {
        let of = |name: &str| gateway.value(&format!("wattlock_stream_connections_{name}"));
        of("total") + of("refused_total") >= 200.0 && of("refused_total") > 0.0
    });
    drop(connections);
    gateway.wait_for("wattlock_stream_connections_open 0");
    assert_exit(&gateway.stop(), 0);
}
