//! `wattlock stream` with TLS: who is let in, which tenant a message is of, and what arrives.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest, Sha256};
use wattlock_testing::wait_until;

use crate::support::authority::{Authority, Connection};
use crate::support::senders::{Numbered, Sender};
use crate::support::stream::{Gateway, opened, segments, stream};
use crate::support::{Place, assert_exit, installed, pattern, stderr, wattlock, with_input};

pub const LISTEN: &str = "tls:127.0.0.1:0";

/// An authority, if there is a program to make its certificates.
pub fn authority(place: &Place) -> Option<Authority> {
    installed("openssl").then(|| Authority::new(place.path("authority")))
}

/// The only authority that senders and peers of these tests need, with certificates of two senders.
pub fn with_senders(place: &Place) -> Option<Authority> {
    let authority = authority(place)?;
    authority.sign("alpha", "DNS:alpha.example");
    authority.sign("beta", "URI:spiffe://example/beta");
    Some(authority)
}

fn open(place: &Place, folder: &Path) -> Vec<u8> {
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(folder);
    let output = command.output().unwrap();
    assert_exit(&output, 0);
    output.stdout
}

/// Sends messages with numbers, and waits until the last is acknowledged.
fn send(connection: &mut (impl Read + Write), messages: &[&str]) -> io::Result<()> {
    for (number, message) in (1..).zip(messages) {
        connection.write_all(&Numbered::message(number, message))?;
    }
    connection.flush()?;
    let mut last = 0;
    while last < messages.len() as u64 {
        let mut number = [0; 8];
        connection.read_exact(&mut number)?;
        last = u64::from_be_bytes(number);
    }
    Ok(())
}

pub fn say_goodbye(mut connection: Connection) {
    connection.conn.send_close_notify();
    let _ = connection.flush();
}

/// What numbered messages are opened to.
fn with_lengths(messages: &[&str]) -> Vec<u8> {
    let framed = |message: &&str| {
        let text = format!("{message}\n");
        [&(text.len() as u32).to_be_bytes()[..], text.as_bytes()].concat()
    };
    messages.iter().flat_map(framed).collect()
}

#[test]
fn each_tenant_has_a_folder_and_strangers_have_none() {
    const TOKEN: &str = "a4b96c6d-secret-of-gamma";
    let place = Place::new();
    let Some(authority) = with_senders(&place) else { return };
    authority.sign("delta", "DNS:delta.example");
    authority.sign("both", "DNS:ALPHA.example,URI:spiffe://example/beta");
    let stranger = Authority::new(place.path("other"));
    stranger.sign("alpha", "DNS:alpha.example");
    let hash = Sha256::digest(TOKEN).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let list = format!(
        "# tenants\nalpha cert alpha.example  # a host\n\nbeta cert spiffe://example/beta\ngamma token {hash}\n"
    );
    let list = place.write("tenants", list.as_bytes());
    let mut command = stream(&place);
    command.args(["--listen", LISTEN, "--framing", "numbered", "--json", "--tls-client-ca"]);
    command.arg(authority.path("ca.pem")).args(authority.listening());
    command.arg("--tenants").arg(list).arg("-o").arg(place.path("logs/"));
    let gateway = Gateway::start_with(&mut command);
    let at = gateway.address();

    let mut alpha = authority.connect(&at, Some("alpha")).unwrap();
    send(&mut alpha, &["of alpha", "more"]).unwrap();
    let mut beta = authority.connect(&at, Some("beta")).unwrap();
    send(&mut beta, &["of beta"]).unwrap();
    let mut gamma = authority.connect(&at, None).unwrap();
    gamma.write_all(format!("token {TOKEN}\n").as_bytes()).unwrap();
    send(&mut gamma, &["of gamma"]).unwrap();
    [alpha, beta, gamma].into_iter().for_each(say_goodbye);

    // A wrong token, none, a certificate of no tenant, and one by another authority.
    let refused = |name: Option<&str>, first: &[u8]| {
        let mut connection = authority.connect(&at, name).unwrap();
        let tried = connection.write_all(first).and_then(|()| send(&mut connection, &["strange"]));
        assert!(tried.is_err(), "{name:?} {first:?}");
    };
    refused(None, b"token wrong\n");
    refused(None, b"token\n");
    refused(None, b"");
    refused(None, format!("token {}", "x".repeat(5000)).as_bytes());
    refused(Some("delta"), b"");
    refused(Some("both"), b"");
    fs::copy(stranger.path("alpha.pem"), authority.path("false.pem")).unwrap();
    fs::copy(stranger.path("alpha.key"), authority.path("false.key")).unwrap();
    let tried = authority.connect(&at, Some("false"));
    assert!(tried.and_then(|mut connection| send(&mut connection, &["false"])).is_err());
    // No TLS at all.
    let mut plain = TcpStream::connect(at.strip_prefix("tls:").unwrap()).unwrap();
    plain.write_all(&Numbered::message(1, "plain")).unwrap();
    let _ = plain.read_to_end(&mut Vec::new());
    gateway.wait_for("wattlock_stream_connections_unwelcome_total 8");

    let output = gateway.stop();
    assert_exit(&output, 0);
    let said = stderr(&output);
    assert!(!said.contains(TOKEN) && !said.contains("token wrong"), "{said}");
    assert!(said.contains("\"connections_unwelcome\":8"), "{said}");
    assert!(said.contains("its token is not in the list of tenants"), "{said}");
    assert!(said.contains("the TLS handshake failed"), "{said}");
    let logs = place.path("logs");
    assert_eq!(open(&place, &logs.join("alpha")), with_lengths(&["of alpha", "more"]));
    assert_eq!(open(&place, &logs.join("beta")), with_lengths(&["of beta"]));
    assert_eq!(open(&place, &logs.join("gamma")), with_lengths(&["of gamma"]));
    // One tenant's keys are destroyed.
    fs::remove_dir_all(logs.join("beta/keys")).unwrap();
    assert_eq!(open(&place, &logs.join("alpha")), with_lengths(&["of alpha", "more"]));
    let mut lost = wattlock();
    lost.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(logs.join("beta"));
    assert!(lost.output().unwrap().stdout.is_empty());
}

#[test]
fn many_tenants_at_once_get_each_their_own() {
    const TENANTS: usize = 8;
    const MESSAGES: usize = 300;
    let place = Place::new();
    let hash = |tenant: usize| {
        let hash = Sha256::digest(format!("secret {tenant}"));
        hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let list: String = (0..TENANTS).map(|t| format!("t{t} token {}\n", hash(t))).collect();
    let list = place.write("tenants", list.as_bytes());
    let socket = place.path("in.sock");
    let mut command = stream(&place);
    command.args(["--listen", &format!("unix:{}", socket.display()), "--framing", "numbered"]);
    command.arg("--tenants").arg(list).args(["--rotate-size", "20K", "-o"]);
    let gateway = Gateway::start_with(command.arg(place.path("logs/")));
    let messages = |tenant: usize| -> Vec<String> {
        (0..MESSAGES).map(|number| format!("message {number} of tenant {tenant}")).collect()
    };
    std::thread::scope(|scope| {
        for tenant in 0..TENANTS {
            let socket = &socket;
            scope.spawn(move || {
                let mut connection = UnixStream::connect(socket).unwrap();
                connection.write_all(format!("token secret {tenant}\r\n").as_bytes()).unwrap();
                let messages = messages(tenant);
                let messages: Vec<_> = messages.iter().map(String::as_str).collect();
                send(&mut connection, &messages).unwrap();
            });
        }
    });
    assert_exit(&gateway.stop(), 0);
    for tenant in 0..TENANTS {
        let messages = messages(tenant);
        let messages: Vec<_> = messages.iter().map(String::as_str).collect();
        let folder = place.path(format!("logs/t{tenant}"));
        assert_eq!(open(&place, &folder), with_lengths(&messages));
    }
}

#[test]
fn a_tenant_whose_folder_is_lost_does_not_stop_the_others() {
    let place = Place::new();
    let hash = |token: &str| {
        Sha256::digest(token).iter().map(|byte| format!("{byte:02x}")).collect::<String>()
    };
    let list = format!("one token {}\ntwo token {}\n", hash("1"), hash("2"));
    let list = place.write("tenants", list.as_bytes());
    let socket = place.path("in.sock");
    let mut command = stream(&place);
    command.args(["--listen", &format!("unix:{}", socket.display()), "--framing", "numbered"]);
    command.arg("--tenants").arg(list).args(["--rotate-size", "1K", "-o"]);
    let gateway = Gateway::start_with(command.arg(place.path("logs/")));
    let connect = |token: &str| {
        let mut connection = UnixStream::connect(&socket).unwrap();
        connection.write_all(format!("token {token}\n").as_bytes()).unwrap();
        connection
    };
    let (mut one, mut two) = (connect("1"), connect("2"));
    fs::remove_dir_all(place.path("logs/one")).unwrap();
    let messages = vec!["a message of some length, so that a segment is full soon"; 100];
    assert!(send(&mut one, &messages).is_err());
    send(&mut two, &messages).unwrap();
    assert!(send(&mut connect("1"), &["again"]).is_err());
    drop(two);
    let output = gateway.stop();
    assert_exit(&output, 1);
    assert!(stderr(&output).contains("logs/one any more"), "{}", stderr(&output));
    assert_eq!(open(&place, &place.path("logs/two")), with_lengths(&messages));
}

/// Large messages there and acknowledgements back, more than fits into any buffer.
#[test]
fn much_goes_through_tls_and_is_acknowledged() {
    let place = Place::new();
    let Some(authority) = authority(&place) else { return };
    let mut command = stream(&place);
    command.args(["--listen", LISTEN, "--framing", "numbered"]).args(authority.listening());
    let gateway = Gateway::start_with(command.arg("-o").arg(place.path("logs/")));
    let mut connection = authority.connect(&gateway.address(), None).unwrap();
    let mut sent = Vec::new();
    let mut number: u64 = 0;
    for len in [0, 1, 16_000, 16_384, 92_000, 300_000, 5_000_000].into_iter().cycle().take(21) {
        let message = pattern(len);
        let front = [&(len as u32).to_be_bytes()[..], &number.to_be_bytes()].concat();
        connection.write_all(&[front, message.clone()].concat()).unwrap();
        sent.extend([&(len as u32).to_be_bytes()[..], &message].concat());
        number += 1;
    }
    // Many short ones, whose answers come together.
    for _ in 0..20_000 {
        connection.write_all(&[&[0; 4][..], &number.to_be_bytes()].concat()).unwrap();
        sent.extend([0; 4]);
        number += 1;
    }
    connection.flush().unwrap();
    let mut answer = [0; 8];
    while u64::from_be_bytes(answer) + 1 < number {
        connection.read_exact(&mut answer).unwrap();
    }
    say_goodbye(connection);
    assert_exit(&gateway.stop(), 0);
    assert!(open(&place, &place.path("logs")) == sent);
}

#[test]
fn the_end_of_a_sender_is_that_of_its_session() {
    let place = Place::new();
    let Some(authority) = authority(&place) else { return };
    let output = place.path("log.wls");
    let mut command = stream(&place);
    command.args(["--listen", LISTEN, "--framing", "ndjson"]).args(authority.listening());
    let gateway = Gateway::start_with(command.arg("-o").arg(&output));
    let at = gateway.address();
    // OpenSSL's client, which says at the end of its input that it ends.
    let mut client = Command::new("openssl")
        .args(["s_client", "-quiet", "-no_ign_eof", "-verify_return_error", "-connect"])
        .args([at.strip_prefix("tls:").unwrap(), "-servername", "localhost", "-CAfile"])
        .arg(authority.path("ca.pem"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    client.stdin.take().unwrap().write_all(b"one\ntwo\n").unwrap();
    assert!(client.wait().unwrap().success());
    gateway.wait_for("wattlock_stream_messages_total 2");
    // One whose connection just ends was cut, as far as can be known.
    let mut cut = authority.connect(&at, None).unwrap();
    cut.write_all(b"three\n").unwrap();
    cut.sock.shutdown(std::net::Shutdown::Both).unwrap();
    gateway.wait_for("wattlock_stream_connections_cut_total 1");
    assert_exit(&gateway.stop(), 0);
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(output);
    let opened = command.output().unwrap();
    assert_exit(&opened, 1);
    assert_eq!(opened.stdout, b"one\ntwo\nthree\n");
    assert!(stderr(&opened).contains("1 connection had been cut"), "{}", stderr(&opened));
}

#[test]
fn callers_who_say_nothing_hold_up_neither_others_nor_the_end() {
    let place = Place::new();
    let Some(authority) = authority(&place) else { return };
    let mut command = stream(&place);
    command.args(["--listen", LISTEN, "--framing", "numbered"]).args(authority.listening());
    let gateway = Gateway::start_with(command.arg("-o").arg(place.path("logs/")));
    let at = gateway.address();
    let silent: Vec<_> =
        (0..50).map(|_| TcpStream::connect(at.strip_prefix("tls:").unwrap()).unwrap()).collect();
    (&silent[0]).write_all(b"\x16\x03\x01\x00").unwrap();
    let mut connection = authority.connect(&at, None).unwrap();
    send(&mut connection, &["heard"]).unwrap();
    say_goodbye(connection);
    let output = gateway.stop();
    assert_exit(&output, 0);
    assert_eq!(open(&place, &place.path("logs")), with_lengths(&["heard"]));
    drop(silent);
}

#[test]
fn two_gateways_and_a_backend_speak_tls() {
    let place = Place::new();
    let Some(authority) = with_senders(&place) else { return };
    let key = place.write("key", &[7; 32]);
    let mut last = stream(&place);
    last.args(["--listen", LISTEN, "--framing", "ndjson"]).args(authority.listening());
    let last = Gateway::start_with(last.arg("-o").arg(place.path("last.wls")));
    // Opens, and shows its certificate to its sender and its backend.
    let mut middle = wattlock();
    middle.args(["stream", "--open", "--listen", LISTEN, "--key-file"]).arg(&key);
    middle.args(authority.listening()).arg("--tls-client-ca").arg(authority.path("ca.pem"));
    let localhost = |address: &str| address.replace("127.0.0.1", "localhost");
    middle.args(["--connect", &localhost(&last.address()), "--tls-ca"]);
    let middle = Gateway::start_with(middle.arg(authority.path("ca.pem")));

    let lines: String = (0..20_000).map(|line| format!("line {line}\n")).collect();
    let seal = |certificate: Option<&str>, retry: &str| {
        let mut command = wattlock();
        command.args(["stream", "--framing", "ndjson", "--retry", retry, "--key-file"]).arg(&key);
        command.args(["--connect", &localhost(&middle.address()), "--tls-ca"]);
        command.arg(authority.path("ca.pem"));
        if let Some(name) = certificate {
            command.arg("--tls-cert").arg(authority.path(&format!("{name}.pem")));
            command.arg("--tls-key").arg(authority.path(&format!("{name}.key")));
        }
        with_input(&mut command, lines.as_bytes())
    };
    assert_exit(&seal(Some("alpha"), "30"), 0);
    let without = seal(None, "0");
    assert!(!without.status.success(), "{}", stderr(&without));
    last.wait_for("wattlock_stream_messages_total 20000");
    assert_exit(&middle.stop(), 0);
    assert_exit(&last.stop(), 0);
    let sealed = fs::read(place.path("last.wls")).unwrap();
    assert!(opened(&place, &sealed) == lines.as_bytes());
}

#[test]
fn a_peer_that_is_not_the_one_that_was_meant_gets_nothing() {
    let place = Place::new();
    let Some(authority) = authority(&place) else { return };
    let other = Authority::new(place.path("other"));
    let mut command = stream(&place);
    command.args(["--listen", LISTEN, "--framing", "ndjson"]).args(other.listening());
    let gateway = Gateway::start_with(command.arg("-o").arg(place.path("log.wls")));
    let tried = with_input(
        stream(&place)
            .args(["--connect", &gateway.address(), "--retry", "0", "--tls-ca"])
            .arg(authority.path("ca.pem")),
        b"not for others",
    );
    assert_exit(&tried, 1);
    assert!(stderr(&tried).contains("the TLS handshake failed"), "{}", stderr(&tried));
    // The right authority, but another name.
    other.sign("server", "DNS:elsewhere.example");
    assert_exit(&gateway.stop(), 0);
    let mut command = stream(&place);
    command.args(["--listen", LISTEN, "--framing", "ndjson"]).args(other.listening());
    let gateway = Gateway::start_with(command.arg("-o").arg(place.path("log2.wls")));
    let tried = with_input(
        stream(&place)
            .args(["--connect", &gateway.address(), "--retry", "0", "--tls-ca"])
            .arg(other.path("ca.pem")),
        b"not for others",
    );
    assert_exit(&tried, 1);
    assert_exit(&gateway.stop(), 0);
}

#[test]
fn segments_are_forwarded_over_tls_into_the_folder_of_their_tenant() {
    let place = Place::new();
    let Some(authority) = with_senders(&place) else { return };
    let list = place.write("tenants", b"site-a cert alpha.example\n");
    let mut store = wattlock();
    store.args(["stream", "--store", "--listen", LISTEN]).args(authority.listening());
    store.arg("--tls-client-ca").arg(authority.path("ca.pem")).arg("--tenants").arg(list);
    let store = Gateway::start_with(store.arg("-o").arg(place.path("copies")));
    let forward = |name: &str, folder: &str, drain: &str| {
        let mut command = stream(&place);
        command
            .args(["--framing", "ndjson", "-o"])
            .arg(place.path(folder))
            .args(["--drain", drain]);
        command.args(["--forward", &store.address(), "--tls-ca"]).arg(authority.path("ca.pem"));
        command.arg("--tls-cert").arg(authority.path(&format!("{name}.pem")));
        command.arg("--tls-key").arg(authority.path(&format!("{name}.key")));
        with_input(&mut command, b"line\n")
    };
    assert_exit(&forward("alpha", "logs/", "10"), 0);
    let copies: Vec<_> = subfolders(&place.path("copies/site-a"));
    assert_eq!(copies.len(), 1);
    let (own, copy) = (segments(&place.path("logs")), segments(&copies[0]));
    assert_eq!(fs::read(&own[0]).unwrap(), fs::read(&copy[0]).unwrap());
    assert_eq!(open(&place, &copies[0]), b"line\n");
    // A certificate of no tenant stores nothing.
    let refused = forward("beta", "others/", "1");
    assert!(stderr(&refused).contains("has not stored all segments"), "{}", stderr(&refused));
    wait_until("the store says so", || subfolders(&place.path("copies")).len() == 1);
    let output = store.stop();
    assert_exit(&output, 0);
    assert!(
        stderr(&output).contains("its certificate is not in the list of tenants"),
        "{}",
        stderr(&output)
    );
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn what_cannot_be_safe_or_work_is_refused_at_the_start() {
    let place = Place::new();
    let Some(authority) = authority(&place) else { return };
    let own = authority.listening();
    let own: Vec<&str> = own.iter().map(String::as_str).collect();
    let with_own = |more: &[&'static str]| [&own[..], more].concat();
    let (ca, key) = (authority.arg("ca.pem"), authority.arg("server.key"));
    let list = |text: &str, name: &str| place.write(name, text.as_bytes()).display().to_string();
    let certs = list("a cert a.example\n", "certs");
    let hash = "0".repeat(64);
    let tokens = list(&format!("a token {hash}\n"), "tokens");
    let wrong = list("a token 1234\n", "wrong");
    let twice = list(&format!("a token {hash}\nb token {hash}\n"), "twice");
    let outside = list(&format!("../a token {hash}\n"), "outside");
    let empty = list("# none\n", "empty");
    let out = place.path("logs/").display().to_string();
    let any = "tls:0.0.0.0:0";
    for (args, code, why) in [
        (with_own(&["--listen", any]), 2, "without showing who they are"),
        (vec!["--listen", "tcp:0.0.0.0:0", "--tenants", &tokens], 2, "showing who they are"),
        (vec!["--listen", LISTEN], 2, "requires --tls-cert"),
        (with_own(&["--listen", "tcp:127.0.0.1:0"]), 2, "require an address tls:HOST:PORT"),
        (vec!["--tls-ca", &ca], 2, "requires --connect or --forward"),
        (vec!["--listen", "unix:s", "--tls-client-ca", &ca], 2, "requires --listen tls:HOST:PORT"),
        (vec!["--listen", "unix:s", "--tenants", &certs], 2, "--tls-client-ca"),
        (
            vec!["--listen", "unix:s", "--tenants", &wrong],
            2,
            "line 1: write the SHA-256 of the token",
        ),
        (
            vec!["--listen", "unix:s", "--tenants", &twice],
            2,
            "line 2: this certificate name or token",
        ),
        (vec!["--listen", "unix:s", "--tenants", &outside], 2, "not a tenant's name"),
        (vec!["--listen", "unix:s", "--tenants", &empty], 2, "names no tenant"),
        (vec!["--listen", "unix:s", "--tenants", "none"], 1, "cannot read none"),
        (vec!["--listen", "unix:s", "--tenants", &tokens, "--max-size", "1G"], 2, "drop-oldest"),
        (
            vec!["--listen", LISTEN, "--tls-cert", &key, "--tls-key", &key],
            1,
            "holds no certificate",
        ),
        (vec!["--listen", LISTEN, "--tls-cert", &ca, "--tls-key", &ca], 1, "holds no private key"),
        (vec!["--listen", LISTEN, "--tls-cert", &ca, "--tls-key", &key], 1, "do not match"),
        (
            vec![
                "--forward",
                "unix:s",
                "--ack-forwarded",
                "--sync",
                "never",
                "--framing",
                "relp",
                "--listen",
                "unix:x",
            ],
            2,
            "requires --sync batch",
        ),
        (vec!["--forward", "unix:s", "--forward", "unix:s"], 2, "twice"),
    ] {
        let output = stream(&place).args(&args).args(["-o", &out]).output().unwrap();
        assert_exit(&output, code);
        assert!(stderr(&output).contains(why), "{args:?}: {}", stderr(&output));
    }
}
