//! Senders that learn that their messages are safe.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use wattlock_testing::wait_for;

/// A sender of one protocol.
pub trait Sender {
    /// Begins on a new connection, where there is something to say.
    fn greet(_connection: &mut (impl Read + Write)) -> io::Result<()> {
        Ok(())
    }

    /// The bytes of a message.
    fn message(number: u64, text: &str) -> Vec<u8>;

    /// Reads an acknowledgement: the number of the last message that is safe, with all before it.
    fn acknowledged(from: &mut impl BufRead) -> io::Result<u64>;
}

/// RELP, as rsyslog speaks it.
pub struct Relp;

impl Sender for Relp {
    fn greet(connection: &mut (impl Read + Write)) -> io::Result<()> {
        let offer = "relp_version=0\nrelp_software=test\ncommands=syslog";
        connection.write_all(format!("1 open {} {offer}\n", offer.len()).as_bytes())?;
        let mut reader = BufReader::with_capacity(1, connection);
        for _ in 0..4 {
            let mut line = String::new();
            reader.read_line(&mut line)?;
        }
        Ok(())
    }

    fn message(number: u64, text: &str) -> Vec<u8> {
        format!("{number} syslog {} {text}\n", text.len()).into_bytes()
    }

    fn acknowledged(from: &mut impl BufRead) -> io::Result<u64> {
        let mut line = String::new();
        from.read_line(&mut line)?;
        let number = line.strip_suffix(" rsp 6 200 OK\n").and_then(|number| number.parse().ok());
        number.ok_or_else(|| io::ErrorKind::UnexpectedEof.into())
    }
}

/// Messages with lengths and numbers.
pub struct Numbered;

impl Sender for Numbered {
    fn message(number: u64, text: &str) -> Vec<u8> {
        let text = format!("{text}\n");
        [&(text.len() as u32).to_be_bytes()[..], &number.to_be_bytes(), text.as_bytes()].concat()
    }

    fn acknowledged(from: &mut impl BufRead) -> io::Result<u64> {
        let mut number = [0; 8];
        from.read_exact(&mut number)?;
        Ok(u64::from_be_bytes(number))
    }
}

/// The forward protocol of Fluentd.
pub struct Fluent;

impl Sender for Fluent {
    /// `["tag", 1, {"m": TEXT}, {"chunk": NUMBER}]`
    fn message(number: u64, text: &str) -> Vec<u8> {
        let text = format!("{text}\n");
        let mut bytes = b"\x94\xa3tag\x01\x81\xa1m\xd9".to_vec();
        bytes.push(text.len() as u8);
        bytes.extend_from_slice(text.as_bytes());
        bytes.extend_from_slice(b"\x81\xa5chunk\xcf");
        bytes.extend_from_slice(&number.to_be_bytes());
        bytes
    }

    fn acknowledged(from: &mut impl BufRead) -> io::Result<u64> {
        let mut answer = [0; 14];
        from.read_exact(&mut answer)?;
        assert_eq!(&answer[..6], b"\x81\xa3ack\xcf");
        Ok(u64::from_be_bytes(answer[6..].try_into().unwrap()))
    }
}

/// Sends messages until all are acknowledged, over as many connections as that takes.
pub fn send_all<S: Sender>(socket: &Path, name: &str, count: u64, acknowledged: &AtomicU64) {
    let connect = || {
        let connection = UnixStream::connect(socket)?;
        Ok((connection.try_clone()?, connection))
    };
    send_all_over::<S, _>(connect, name, count, acknowledged);
}

/// The same to an address `HOST:PORT`. Returns how many connections broke.
pub fn send_all_to<S: Sender>(to: &str, name: &str, count: u64, acknowledged: &AtomicU64) -> u64 {
    let connect = || {
        let connection = TcpStream::connect(to)?;
        Ok((connection.try_clone()?, connection))
    };
    send_all_over::<S, _>(connect, name, count, acknowledged)
}

/// Messages that a sender sends before it waits for an acknowledgement.
pub const SENDER_WINDOW: usize = 128;

fn send_all_over<S: Sender, C: Read + Write>(
    connect: impl Fn() -> io::Result<(C, C)>,
    name: &str,
    count: u64,
    acknowledged: &AtomicU64,
) -> u64 {
    let mut owed: VecDeque<u64> = VecDeque::new();
    let (mut next, mut done) = (0, 0);
    let mut session = || -> (u64, io::Result<()>) {
        let mut work = || {
            let (mut connection, answers) = connect()?;
            S::greet(&mut connection)?;
            let mut answers = BufReader::new(answers);
            // The number on this connection of the first that is owed.
            let mut first = 2;
            for (index, message) in owed.iter().enumerate() {
                let bytes = S::message(first + index as u64, &format!("{name} line {message}"));
                connection.write_all(&bytes)?;
            }
            while next < count || !owed.is_empty() {
                while next < count && owed.len() < SENDER_WINDOW {
                    let text = format!("{name} line {next}");
                    let bytes = S::message(first + owed.len() as u64, &text);
                    owed.push_back(next);
                    next += 1;
                    connection.write_all(&bytes)?;
                }
                let number = S::acknowledged(&mut answers)?;
                while first <= number && owed.pop_front().is_some() {
                    (first, done) = (first + 1, done + 1);
                    acknowledged.fetch_add(1, Ordering::SeqCst);
                }
            }
            Ok(())
        };
        let ended = work();
        (done, ended)
    };
    let (mut broken, mut before) = (0, 0);
    // As long as some are acknowledged, it does not wait in vain.
    while !wait_for(|| match session() {
        (_, Ok(())) => Ok(true),
        (done, Err(error)) => {
            broken += 1;
            match std::mem::replace(&mut before, done) {
                former if former == done => Err(format!("{name} did not send all: {error}")),
                _ => Ok(false),
            }
        }
    }) {}
    broken
}
