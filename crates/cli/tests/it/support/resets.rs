//! A proxy that resets connections in the middle of what they carry.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, poll};
use rustix::net::sockopt::set_socket_linger;

/// A proxy in front of a TCP port. Each of its first connections is reset in both directions, after some bytes.
pub struct Resets {
    /// Where it listens, as `HOST:PORT`.
    pub address: String,
    resets: Arc<AtomicU64>,
}

impl Resets {
    /// Carries connections to `to`, and resets `count` of them, each after at most `longest` bytes.
    pub fn start(to: &str, count: u64, longest: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let resets = Arc::new(AtomicU64::new(0));
        let (to, done) = (to.to_owned(), Arc::clone(&resets));
        thread::spawn(move || {
            let mut state: u64 = 0x9e37_79b9_7f4a_7c15;
            for (number, client) in (0..).zip(listener.incoming()) {
                let Ok(client) = client else { return };
                // xorshift64.
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                let limit = if number < count { 1 + state % longest } else { u64::MAX };
                let (to, done) = (to.clone(), Arc::clone(&done));
                thread::spawn(move || {
                    let ends = TcpStream::connect(to).and_then(|server| {
                        let ends = [client, server];
                        carry(&ends, limit).map(|()| ends)
                    });
                    let Ok(ends) = ends else { return };
                    // Closing sends a reset then, and drops what is unsent.
                    for end in &ends {
                        set_socket_linger(end, Some(Duration::ZERO)).unwrap();
                    }
                    drop(ends);
                    done.fetch_add(1, Ordering::SeqCst);
                });
            }
        });
        Self { address, resets }
    }

    /// How many connections were reset.
    pub fn count(&self) -> u64 {
        self.resets.load(Ordering::SeqCst)
    }
}

/// Carries bytes in both directions until there were `left`. An error is the end of the connection before that.
fn carry(ends: &[TcpStream; 2], mut left: u64) -> io::Result<()> {
    ends.iter().try_for_each(|end| end.set_nonblocking(true))?;
    let mut buffer = vec![0; 16 << 10];
    // What came from each end, and whether it has ended.
    let mut waiting: [Vec<u8>; 2] = Default::default();
    let mut ended = [false; 2];
    while left > 0 || waiting.iter().any(|bytes| !bytes.is_empty()) {
        let mut polled = Vec::new();
        for end in 0..2 {
            if waiting[end].is_empty() && !ended[end] {
                polled.push(PollFd::new(&ends[end], PollFlags::IN));
            } else if !waiting[end].is_empty() {
                polled.push(PollFd::new(&ends[1 - end], PollFlags::OUT));
            }
        }
        if polled.is_empty() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        poll(&mut polled, None)?;
        for end in 0..2 {
            if waiting[end].is_empty() && !ended[end] {
                let most = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
                match unless_blocked((&ends[end]).read(&mut buffer[..most]))? {
                    Some(0) if most > 0 => {
                        ended[end] = true;
                        ends[1 - end].shutdown(Shutdown::Write)?;
                    }
                    count => {
                        let count = count.unwrap_or(0);
                        waiting[end].extend_from_slice(&buffer[..count]);
                        left -= count as u64;
                    }
                }
            }
            if !waiting[end].is_empty() {
                let written = unless_blocked((&ends[1 - end]).write(&waiting[end]))?;
                waiting[end].drain(..written.unwrap_or(0));
            }
        }
    }
    Ok(())
}

fn unless_blocked(done: io::Result<usize>) -> io::Result<Option<usize>> {
    match done {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
        done => done.map(Some),
    }
}
