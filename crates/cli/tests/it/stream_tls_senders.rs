//! `wattlock stream` with TLS: senders that break off, and senders that send more than they have to.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufReader, Write};

use sha2::{Digest, Sha256};

use crate::stream_tls::{LISTEN, authority, say_goodbye, with_senders};
use crate::support::senders::{Fluent, Numbered, Relp, Sender};
use crate::support::stream::{Gateway, stream};
use crate::support::{Place, assert_exit, stderr, wattlock};

/// Sends a message to a gateway with TLS, waits for its acknowledgement, does `more`, and cuts the connection off as
/// rsyslog does: without the end of the session.
fn acknowledged_and_cut<S: Sender>(framing: &str, more: &[u8], lost: bool) {
    let place = Place::new();
    let Some(authority) = authority(&place) else { return };
    let mut command = stream(&place);
    command.args(["--listen", LISTEN, "--framing", framing]).args(authority.listening());
    let gateway = Gateway::start_with(command.arg("-o").arg(place.path("logs/")));
    let mut connection = authority.connect(&gateway.address(), None).unwrap();
    S::greet(&mut connection).unwrap();
    connection.write_all(&S::message(2, "a line")).unwrap();
    assert_eq!(S::acknowledged(&mut BufReader::with_capacity(1, &mut connection)).unwrap(), 2);
    connection.write_all(more).unwrap();
    connection.sock.shutdown(std::net::Shutdown::Both).unwrap();
    gateway.wait_for("wattlock_stream_connections_open 0");
    gateway.wait_for(&format!("wattlock_stream_connections_cut_total {}", u8::from(lost)));
    let output = gateway.stop();
    assert_exit(&output, 0);
    assert_eq!(stderr(&output).contains("was cut"), lost, "{}", stderr(&output));
    let mut command = wattlock();
    command.args(["stream", "--open", "-i"]).arg(place.path("key.txt")).arg(place.path("logs"));
    let opened = command.output().unwrap();
    assert_exit(&opened, i32::from(lost));
    assert!(String::from_utf8_lossy(&opened.stdout).contains("a line"));
}

#[test]
fn a_cut_connection_whose_messages_were_acknowledged_lost_nothing() {
    acknowledged_and_cut::<Numbered>("numbered", b"", false);
    acknowledged_and_cut::<Fluent>("fluent", b"", false);
    acknowledged_and_cut::<Relp>("relp", b"", false);
    // The answer to this is not waited for.
    acknowledged_and_cut::<Relp>("relp", b"3 close 0\n", false);
}

#[test]
fn a_cut_connection_with_messages_that_were_not_acknowledged_is_a_loss() {
    acknowledged_and_cut::<Numbered>("numbered", b"\0\0\0\x09half", true);
    // An event that asks for no acknowledgement.
    acknowledged_and_cut::<Fluent>("fluent", b"\x93\xa3tag\x01\x81\xa1a\xa1b", true);
}

#[test]
fn a_token_that_is_sent_besides_a_certificate_is_checked_and_not_kept() {
    const TOKEN: &str = "5e1c-secret-of-alpha";
    let place = Place::new();
    let Some(authority) = with_senders(&place) else { return };
    let hash = Sha256::digest(TOKEN).iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let list =
        format!("alpha cert alpha.example\nalpha token {hash}\nbeta cert spiffe://example/beta\n");
    let list = place.write("tenants", list.as_bytes());
    let mut command = stream(&place);
    command.args(["--listen", LISTEN, "--framing", "ndjson", "--tls-client-ca"]);
    command.arg(authority.path("ca.pem")).args(authority.listening());
    command.arg("--tenants").arg(list).arg("-o").arg(place.path("logs/"));
    let gateway = Gateway::start_with(&mut command);
    let sent = |name: &str, bytes: &str| {
        let mut connection = authority.connect(&gateway.address(), Some(name)).unwrap();
        connection.write_all(bytes.as_bytes()).unwrap();
        say_goodbye(connection);
    };
    sent("alpha", &format!("token {TOKEN}\nwith a token\n"));
    gateway.wait_for("wattlock_stream_messages_total 1");
    sent("alpha", "without\ntoken of a queue\n");
    gateway.wait_for("wattlock_stream_messages_total 3");
    // Those of another tenant, of none, and one that does not end.
    sent("beta", &format!("token {TOKEN}\nof another\n"));
    sent("alpha", "token mistyped\nof none\n");
    sent("alpha", "token without an end");
    gateway.wait_for("wattlock_stream_connections_cut_total 3");
    let output = gateway.stop();
    assert_exit(&output, 0);
    let said = stderr(&output);
    assert!(said.contains("belong to different tenants"), "{said}");
    assert!(!said.contains(TOKEN) && !said.contains("mistyped"), "{said}");
    let kept = |tenant: &str| {
        let mut command = wattlock();
        command.args(["stream", "--open", "-q", "-i"]).arg(place.path("key.txt"));
        let output = command.arg(place.path("logs").join(tenant)).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    assert_eq!(kept("alpha"), "with a token\nwithout\ntoken of a queue\n");
    assert_eq!(kept("beta"), "");
}
