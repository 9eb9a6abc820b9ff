//! A web server of one thread that says what its time went into: handshake, file, crypto, network and
//! the rest.
//!
//! It serves pages over TLS 1.2 by the system's libssl, a buffer of 16 KiB at a time, as nginx does by
//! default. libssl works in memory, so that each step can be timed by itself. Times are the thread's
//! CPU times: what it waits for a client counts nowhere.

use std::fs::File;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;

use anyhow::{Context, bail};
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};
use wattlock_host::exit::{self, Ended, unavailable};
use wattlock_peers::{TlsConnection, TlsServer, TlsStep};

use crate::args;

/// Where the time of a page goes, as Figure 3 divides it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Handshake,
    File,
    Crypto,
    Network,
    Other,
}

impl Phase {
    pub const ALL: [Self; 5] =
        [Self::Handshake, Self::File, Self::Crypto, Self::Network, Self::Other];

    pub fn name(self) -> &'static str {
        match self {
            Self::Handshake => "handshake",
            Self::File => "file",
            Self::Crypto => "crypto",
            Self::Network => "network",
            Self::Other => "other",
        }
    }
}

/// CPU time of some pages by phase, in the order of [`Phase::ALL`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    pub pages: u64,
    pub ns: [u64; 5],
}

impl Spent {
    /// A phase's share of the time, percent.
    pub fn share(&self, phase: Phase) -> f64 {
        100.0 * self.ns[phase as usize] as f64 / self.ns.iter().sum::<u64>().max(1) as f64
    }

    fn add(&mut self, other: &Self) {
        self.pages += other.pages;
        self.ns.iter_mut().zip(other.ns).for_each(|(sum, more)| *sum += more);
    }
}

/// `wattlock-lab serve-pages`: serves until it is ended, and writes its port first.
pub fn run(args: &args::ServePages) -> Ended {
    let file = |name: &str| args.directory.join(name);
    let server = TlsServer::new(&file("cert.pem"), &file("key.pem"), &args.suite)
        .map_err(|absent| unavailable(format!("{}: {}", absent.name, absent.why)))?;
    let listener = TcpListener::bind(("127.0.0.1", 0)).context("cannot listen")?;
    exit::print(&format!("{}\n", listener.local_addr()?.port()))?;
    let pages = file("pages");
    let mut all = Spent::default();
    let mut clock = Stopwatch::new();
    loop {
        let (stream, _) = listener.accept().context("cannot accept")?;
        // A client that breaks off is its own affair.
        let _ =
            Visit::new(&server, stream, &pages, &mut clock).and_then(|visit| visit.serve(&mut all));
    }
}

/// A connection and what it took so far.
struct Visit<'a> {
    tls: TlsConnection<'a>,
    stream: TcpStream,
    pages: &'a Path,
    clock: &'a mut Stopwatch,
    /// Bytes for the client, and bytes of it.
    out: Vec<u8>,
    read: Vec<u8>,
    page: Vec<u8>,
}

/// What a client asks for.
#[derive(Debug, PartialEq, Eq)]
struct Asked {
    path: String,
    keeps_alive: bool,
}

impl<'a> Visit<'a> {
    fn new(
        server: &'a TlsServer,
        stream: TcpStream,
        pages: &'a Path,
        clock: &'a mut Stopwatch,
    ) -> anyhow::Result<Self> {
        clock.start();
        stream.set_nodelay(true)?;
        let tls = server.connection().context("no memory")?;
        let read = vec![0; BUFFER];
        Ok(Self { tls, stream, pages, clock, out: Vec::new(), read, page: Vec::new() })
    }

    fn serve(mut self, all: &mut Spent) -> anyhow::Result<()> {
        loop {
            let step = self.tls.accept();
            self.clock.lap(Phase::Handshake);
            self.send()?;
            match step {
                TlsStep::Done(_) => break,
                TlsStep::NeedsMore => self.receive()?,
                TlsStep::Over => bail!("no handshake"),
            }
        }
        while let Some(asked) = self.asked()? {
            if asked.path == REPORT {
                let report = serde_json::to_vec(all)?;
                *all = Spent::default();
                self.answer(&report)?;
                self.close()?;
                // What the question itself took is nobody's page.
                self.clock.spent = Spent::default();
            } else {
                self.page(&asked.path)?;
                if !asked.keeps_alive {
                    self.close()?;
                }
                self.clock.spent.pages = 1;
                all.add(&std::mem::take(&mut self.clock.spent));
            }
            if !asked.keeps_alive {
                break;
            }
        }
        Ok(())
    }

    /// Sends the page with that name.
    fn page(&mut self, name: &str) -> anyhow::Result<()> {
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_digit()) {
            bail!("not a page");
        }
        let mut page = std::mem::take(&mut self.page);
        page.clear();
        File::open(self.pages.join(name))?.read_to_end(&mut page)?;
        self.clock.lap(Phase::File);
        let sent = self.answer(&page);
        self.page = page;
        sent
    }

    /// Encrypts and sends an answer, a buffer at a time.
    fn answer(&mut self, body: &[u8]) -> anyhow::Result<()> {
        let mut first = format!(
            "HTTP/1.1 200 OK\r\nServer: wattlock-lab\r\nContent-Type: application/octet-stream\r\n\
             Content-Length: {}\r\nConnection: keep-alive\r\n\r\n",
            body.len()
        )
        .into_bytes();
        let (with_head, rest) = body.split_at(body.len().min(BUFFER - first.len()));
        first.extend_from_slice(with_head);
        for buffer in std::iter::once(first.as_slice()).chain(rest.chunks(BUFFER)) {
            self.clock.lap(Phase::Other);
            let step = self.tls.write(buffer);
            self.clock.lap(Phase::Crypto);
            if !matches!(step, TlsStep::Done(_)) {
                bail!("cannot encrypt");
            }
            self.send()?;
        }
        Ok(())
    }

    /// Reads the head of a request; `None` at the end of the connection.
    fn asked(&mut self) -> anyhow::Result<Option<Asked>> {
        let mut head = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let step = self.tls.read(&mut buffer);
            self.clock.lap(Phase::Crypto);
            match step {
                TlsStep::Done(bytes) => head.extend_from_slice(&buffer[..bytes]),
                TlsStep::Over => return Ok(None),
                TlsStep::NeedsMore => self.receive()?,
            }
            if let Some(asked) = Asked::parse(&head) {
                self.clock.lap(Phase::Other);
                return Ok(Some(asked));
            }
            if head.len() > BUFFER {
                bail!("a request without an end");
            }
        }
    }

    fn close(&mut self) -> anyhow::Result<()> {
        self.tls.close();
        self.clock.lap(Phase::Handshake);
        self.send()
    }

    fn receive(&mut self) -> anyhow::Result<()> {
        self.clock.lap(Phase::Other);
        let bytes = self.stream.read(&mut self.read)?;
        self.clock.lap(Phase::Network);
        if bytes == 0 {
            bail!("the client has gone");
        }
        self.tls.take(&self.read[..bytes]);
        Ok(())
    }

    fn send(&mut self) -> anyhow::Result<()> {
        self.out.clear();
        self.tls.give(&mut self.out);
        self.clock.lap(Phase::Other);
        if !self.out.is_empty() {
            self.stream.write_all(&self.out)?;
            self.clock.lap(Phase::Network);
        }
        Ok(())
    }
}

impl Asked {
    fn parse(head: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(head).ok()?;
        let (head, _) = text.split_once("\r\n\r\n")?;
        let mut words = head.lines().next()?.split(' ');
        let path = words.nth(1)?.trim_start_matches('/').to_owned();
        let is_new = words.next() == Some("HTTP/1.1");
        let says = |what: &str| {
            head.lines().any(|line| {
                line.split_once(':').is_some_and(|(name, value)| {
                    name.eq_ignore_ascii_case("connection")
                        && value.trim().eq_ignore_ascii_case(what)
                })
            })
        };
        Some(Self { path, keeps_alive: says("keep-alive") || is_new && !says("close") })
    }
}

/// Gives the thread's CPU time to phases, without what asking for the time takes.
struct Stopwatch {
    last: u64,
    cost: u64,
    spent: Spent,
}

impl Stopwatch {
    fn new() -> Self {
        let started = thread_ns();
        let asked = 1000;
        let mut last = started;
        for _ in 0..asked {
            last = thread_ns();
        }
        Self { last, cost: (last - started) / asked, spent: Spent::default() }
    }

    /// Begins a connection.
    fn start(&mut self) {
        (self.last, self.spent) = (thread_ns(), Spent::default());
    }

    /// What went by since the last call belongs to that phase.
    fn lap(&mut self, phase: Phase) {
        let now = thread_ns();
        self.spent.ns[phase as usize] += (now - self.last).saturating_sub(self.cost);
        self.last = now;
    }
}

/// CPU time of this thread.
fn thread_ns() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The path that answers with what was spent since it was last asked for.
pub const REPORT: &str = "spent";

/// What is encrypted at once, nginx's `ssl_buffer_size`.
const BUFFER: usize = 16 << 10;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read() {
        let asked = |text: &str| Asked::parse(text.as_bytes()).map(|it| (it.path, it.keeps_alive));
        let ab = "GET /1024 HTTP/1.0\r\nConnection: Keep-Alive\r\nHost: x\r\n\r\n";
        assert_eq!(asked(ab), Some(("1024".into(), true)));
        assert_eq!(asked("GET /1024 HTTP/1.0\r\nHost: x\r\n\r\n"), Some(("1024".into(), false)));
        assert_eq!(asked("GET /spent HTTP/1.1\r\n\r\n"), Some(("spent".into(), true)));
        assert_eq!(
            asked("GET /1 HTTP/1.1\r\nconnection: close\r\n\r\n"),
            Some(("1".into(), false))
        );
        assert_eq!(asked("GET /1024 HTTP/1.0\r\n"), None);
    }

    #[test]
    fn shares_are_of_the_whole() {
        let spent = Spent { pages: 2, ns: [10, 20, 30, 40, 100] };
        assert_eq!(Phase::ALL.map(|phase| spent.share(phase)), [5.0, 10.0, 15.0, 20.0, 50.0]);
        assert_eq!(Spent::default().share(Phase::File), 0.0);
    }
}
