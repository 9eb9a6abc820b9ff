//! Messages to a peer over one connection, with acknowledgements if it gives them.

use std::collections::{HashMap, VecDeque};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::thread;
use std::time::{Duration, Instant};

use memchr::memchr_iter;

use super::peer::Peer;
use super::retry::FailureStreak;
use super::{Counters, Destination, MessageOutput, Notice, Retry};
use crate::frame::{End, Framing};

/// How messages are sent to a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Acknowledged {
    /// As they came; how many arrive is unknown.
    Never,
    /// With numbers, which the peer says are safe: `docs/spec/numbered.md`.
    Numbered,
    /// By RELP, as rsyslog's `imrelp` receives it.
    Relp,
}

/// Sends messages to a peer over one connection, again and again until it has them.
pub struct Delivery {
    to: Destination,
    name: String,
    how: Acknowledged,
    retry: Retry,
    peer: Option<BufReader<Peer>>,
    framings: HashMap<(u64, u64), Framing>,
    /// What the peer does not have, as far as is known.
    waiting: VecDeque<Waiting>,
    /// The number of the next message on this connection.
    next: u64,
    /// Messages that this connection took. Nothing proves that they arrived.
    unconfirmed: u64,
    connected: Instant,
    failures: FailureStreak,
}

/// Bytes on their way, and how many messages they are.
struct Waiting {
    bytes: Vec<u8>,
    messages: u64,
}

impl Delivery {
    /// Sends to this peer, which need not be there yet.
    pub fn new(to: Destination, how: Acknowledged, retry: Retry) -> Self {
        Self {
            name: to.to_string(),
            to,
            how,
            retry,
            peer: None,
            framings: HashMap::new(),
            waiting: VecDeque::new(),
            next: 1,
            unconfirmed: 0,
            connected: Instant::now(),
            failures: FailureStreak::default(),
        }
    }

    /// Sends what waits, and waits for the acknowledgements.
    fn send(&mut self) -> io::Result<()> {
        while !self.waiting.is_empty() {
            let mut peer = match self.peer.take() {
                Some(peer) => peer,
                None => self.connect()?,
            };
            match self.send_some(&mut peer) {
                Ok(()) => self.peer = Some(peer),
                Err(error) => self.lost(&in_words(error))?,
            }
        }
        self.retry.end(&mut self.failures, &self.name, self.connected.elapsed() >= STEADY);
        Ok(())
    }

    fn connect(&mut self) -> io::Result<BufReader<Peer>> {
        loop {
            let connected = Peer::connect(&self.to).and_then(|peer| {
                peer.set_patience(PATIENCE)?;
                let mut peer = BufReader::new(peer);
                self.greet(&mut peer)?;
                Ok(peer)
            });
            match connected {
                Ok(peer) => {
                    (self.unconfirmed, self.connected) = (0, Instant::now());
                    return Ok(peer);
                }
                Err(error) => {
                    self.retry.wait(&mut self.failures, &self.name, &in_words(error))?;
                }
            }
        }
    }

    fn greet(&mut self, peer: &mut BufReader<Peer>) -> io::Result<()> {
        self.next = 1;
        if self.how == Acknowledged::Relp {
            let offer = "relp_version=0\nrelp_software=wattlock\ncommands=syslog";
            peer.get_mut().write_all(format!("1 open {} {offer}\n", offer.len()).as_bytes())?;
            if read_answer(peer)? != 1 {
                return Err(wrong("its answer is not RELP"));
            }
            self.next = 2;
        }
        if self.how == Acknowledged::Never {
            // One that does not want the connection says so only after it was made, and would take what is sent with it.
            thread::sleep(SECOND_THOUGHTS);
            peer.get_mut().check()?;
        }
        Ok(())
    }

    /// Notes that the connection broke.
    fn lost(&mut self, why: &io::Error) -> io::Result<()> {
        self.note_loss(why);
        self.retry.wait(&mut self.failures, &self.name, why)
    }

    fn note_loss(&mut self, why: &io::Error) {
        let counters = self.retry.counters();
        Counters::add(&counters.peer_failures, 1);
        let units = std::mem::take(&mut self.unconfirmed);
        if units > 0 {
            Counters::add(&counters.maybe_lost, units);
            let who = self.name.clone();
            self.retry.notify(Notice::PeerLost { who, why: why.to_string(), units });
        }
    }

    /// Sends as much as may wait for acknowledgements at once.
    fn send_some(&mut self, peer: &mut BufReader<Peer>) -> io::Result<()> {
        if self.how == Acknowledged::Never {
            peer.get_mut().check()?;
        }
        let (mut bytes, mut count, first) = (Vec::new(), 0, self.next);
        let mut messages = 0;
        for Waiting { bytes: message, messages: several } in &self.waiting {
            messages += several;
            if count > 0 && (count >= MOST_WAITING || bytes.len() + message.len() > LONGEST) {
                messages -= several;
                break;
            }
            let number = first + count;
            match self.how {
                Acknowledged::Never => {}
                Acknowledged::Numbered => {
                    bytes.extend((message.len() as u32).to_be_bytes());
                    bytes.extend(number.to_be_bytes());
                }
                Acknowledged::Relp => {
                    bytes.extend(format!("{number} syslog {} ", message.len()).into_bytes());
                }
            }
            bytes.extend_from_slice(message);
            if self.how == Acknowledged::Relp {
                bytes.push(b'\n');
            }
            count += 1;
        }
        peer.get_mut().write_all(&bytes)?;
        self.next += count;
        match self.how {
            Acknowledged::Never => self.unconfirmed += messages,
            Acknowledged::Numbered => {
                let mut last = first - 1;
                while last < self.next - 1 {
                    let mut number = [0; 8];
                    peer.read_exact(&mut number)?;
                    let number = u64::from_be_bytes(number);
                    if number <= last || number >= self.next {
                        return Err(wrong("it acknowledges what was not sent"));
                    }
                    last = number;
                }
            }
            Acknowledged::Relp => {
                for number in first..self.next {
                    if read_answer(peer)? != number {
                        return Err(wrong("it answers out of order"));
                    }
                }
                if self.next > LAST_TRANSACTION {
                    // Numbers begin anew with the next connection.
                    return Err(wrong("connecting again, since the numbers of RELP are used up"));
                }
            }
        }
        self.waiting.drain(..count as usize);
        Ok(())
    }

    fn wait_with(&mut self, bytes: Vec<u8>, messages: u64) {
        self.waiting.push_back(Waiting { bytes, messages });
    }

    fn note_kept(&self) {
        let kept = self.waiting.len() as u64;
        self.retry.counters().kept.store(kept, std::sync::atomic::Ordering::Relaxed);
    }
}

impl MessageOutput for Delivery {
    fn begin(&mut self, source: u64, connection: u64, framing: Framing) -> io::Result<()> {
        self.framings.insert((source, connection), framing);
        Ok(())
    }

    fn data(&mut self, source: u64, connection: u64, messages: &[u8]) -> io::Result<()> {
        let framing = self.framings.get(&(source, connection)).copied().unwrap_or(Framing::Raw);
        match (self.how, framing) {
            (_, Framing::Raw) => self.wait_with(messages.to_vec(), 1),
            (Acknowledged::Never, Framing::Lines) => {
                let mut bytes = messages.to_vec();
                if !bytes.ends_with(b"\n") {
                    bytes.push(b'\n');
                }
                let count = memchr_iter(b'\n', &bytes).count();
                self.wait_with(bytes, count as u64);
            }
            (Acknowledged::Never, Framing::Length) => {
                self.wait_with(messages.to_vec(), prefixed(messages).count() as u64);
            }
            (_, Framing::Lines) => {
                let lines = messages.strip_suffix(b"\n").unwrap_or(messages);
                lines
                    .split(|byte| *byte == b'\n')
                    .for_each(|line| self.wait_with(line.to_vec(), 1));
            }
            (_, Framing::Length) => {
                prefixed(messages).for_each(|message| self.wait_with(message.to_vec(), 1));
            }
        }
        self.note_kept();
        Ok(())
    }

    fn end(&mut self, source: u64, connection: u64, end: End) -> io::Result<()> {
        if end != End::Continued {
            self.framings.remove(&(source, connection));
        }
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        let sent = self.send();
        self.note_kept();
        sent
    }

    fn finish(&mut self, _: Option<Instant>) -> io::Result<()> {
        self.flush()?;
        let Some(peer) = &mut self.peer else { return Ok(()) };
        let peer = peer.get_mut();
        if self.how == Acknowledged::Relp {
            peer.write_all(format!("{} close 0\n", self.next).as_bytes())?;
        }
        let closed = peer.shutdown(std::net::Shutdown::Write);
        let closed = closed.and_then(|()| peer.wait_for_end(FAREWELL));
        if let Err(error) = closed {
            self.note_loss(&error);
        }
        Ok(())
    }
}

/// Messages with their lengths before them.
fn prefixed(messages: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = messages;
    std::iter::from_fn(move || {
        let (len, behind) = rest.split_first_chunk::<4>()?;
        let (message, behind) = behind.split_at_checked(u32::from_be_bytes(*len) as usize)?;
        rest = behind;
        Some(message)
    })
}

/// Reads an answer of RELP, and returns the number that it is for.
fn read_answer(from: &mut impl BufRead) -> io::Result<u64> {
    let mut word = |longest: u64| {
        let mut word = Vec::new();
        from.take(longest).read_until(b' ', &mut word)?;
        if word.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let text = String::from_utf8(word).ok();
        let text = text.and_then(|text| text.strip_suffix(' ').map(str::to_owned));
        text.ok_or_else(|| wrong("its answer is not RELP"))
    };
    let (transaction, command, len) = (word(11)?, word(33)?, word(11)?);
    let number = |text: &str| text.parse::<u64>().map_err(|_| wrong("its answer has no number"));
    let mut data = vec![0; number(&len)?.min(LONGEST_ANSWER) as usize + 1];
    from.read_exact(&mut data)?;
    if command != "rsp" || !data.starts_with(b"200") || data.last() != Some(&b'\n') {
        return Err(wrong("it answered with an error of RELP"));
    }
    number(&transaction)
}

/// An error, where it is the end of the connection in words that say so.
fn in_words(error: io::Error) -> io::Error {
    let why = match error.kind() {
        io::ErrorKind::UnexpectedEof if error.raw_os_error().is_none() => {
            "it closed the connection, perhaps because it rejects this sender or a message"
        }
        io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => {
            "it reset the connection, perhaps because it rejects this sender or a message"
        }
        _ => return error,
    };
    io::Error::new(error.kind(), why)
}

fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

/// Messages that may wait for acknowledgements: few enough that those fit into the buffers of a connection.
const MOST_WAITING: u64 = 1000;

/// Bytes that are sent before acknowledgements are waited for, if that is not one message.
const LONGEST: usize = 1 << 20;

/// The highest number of a transaction of RELP that is used.
const LAST_TRANSACTION: u64 = 999_000_000;

const LONGEST_ANSWER: u64 = 64 << 10;

/// How long a peer may take to close a connection that it does not want.
const SECOND_THOUGHTS: Duration = Duration::from_millis(100);

/// How long a connection has to hold before its loss is answered at once.
const STEADY: Duration = Duration::from_secs(1);

/// How long a peer may take to accept or acknowledge anything.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long it may take to close its end after the last message.
const FAREWELL: Duration = Duration::from_secs(2);
