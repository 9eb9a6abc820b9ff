//! A connection with TLS whose reads and writes do not wait.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use rustls::Connection;
use tokio::net::TcpStream;

use super::tls::{invalid, names, plain};
use crate::lock::lock;

/// A connection with TLS.
pub(super) struct TlsSocket {
    stream: TcpStream,
    session: Mutex<Connection>,
    /// Bytes that came and were not read yet.
    held: AtomicUsize,
}

impl TlsSocket {
    pub fn new(stream: TcpStream, session: impl Into<Connection>) -> Self {
        Self { stream, session: Mutex::new(session.into()), held: AtomicUsize::new(0) }
    }

    /// The same for the runtime of this thread.
    ///
    /// # Errors
    /// That the runtime cannot wait for it.
    pub fn move_here(self) -> io::Result<Self> {
        let stream = TcpStream::from_std(self.stream.into_std()?)?;
        Ok(Self { stream, ..self })
    }

    pub fn stream(&self) -> &TcpStream {
        &self.stream
    }

    /// Bytes that came and were not read yet.
    pub fn held(&self) -> u64 {
        self.held.load(Ordering::Relaxed) as u64
    }

    /// Completes the handshake.
    pub async fn handshake(&self) -> io::Result<()> {
        loop {
            let (is_done, has_more) = {
                let mut session = self.lock();
                let received = match session.is_handshaking() {
                    true => self.receive(&mut session),
                    false => Ok(1),
                };
                // It says what went wrong, too.
                let sent = self.send(&mut session);
                match received {
                    Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                    Err(error) if error.kind() != io::ErrorKind::WouldBlock => return Err(error),
                    _ => sent?,
                }
                (!session.is_handshaking() && !session.wants_write(), session.wants_write())
            };
            if is_done {
                return Ok(());
            }
            tokio::select! {
                ready = self.stream.readable() => ready?,
                ready = self.stream.writable(), if has_more => ready?,
            }
        }
    }

    /// The names in the peer's certificate.
    pub fn names(&self) -> Vec<String> {
        names(&self.lock())
    }

    pub async fn readable(&self) -> io::Result<()> {
        match self.held() {
            0 => self.stream.readable().await,
            _ => Ok(()),
        }
    }

    /// Adds what is there to a buffer, up to `most` bytes, piece by piece: only what is read into is cleared before.
    pub fn try_read_more(&self, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        let start = buffer.len();
        while buffer.len() < start + most {
            let held = buffer.len();
            let piece = PIECE.min(start + most - held);
            buffer.resize(held + piece, 0);
            let read = self.try_read(&mut buffer[held..]);
            buffer.truncate(held + read.as_ref().map_or(0, |count| *count));
            match read {
                Ok(count) if count == piece => {}
                Ok(_) => break,
                // It comes again.
                Err(_) if held > start => break,
                Err(error) => return Err(error),
            }
        }
        Ok(buffer.len() - start)
    }

    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        let mut session = self.lock();
        let mut count = 0;
        loop {
            match session.reader().read(&mut into[count..]) {
                Ok(read) if read > 0 => {
                    count += read;
                    self.held.fetch_sub(read.min(self.held() as usize), Ordering::Relaxed);
                    if count < into.len() {
                        continue;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    match self.receive(&mut session) {
                        Ok(_) => {
                            // The peer may have asked for an answer.
                            self.send(&mut session)?;
                            continue;
                        }
                        Err(error) if count == 0 => {
                            let _ = self.send(&mut session);
                            return Err(error);
                        }
                        // It comes again.
                        Err(_) => {}
                    }
                }
                ended if count == 0 => return ended.map_err(plain),
                _ => {}
            }
            return Ok(count);
        }
    }

    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut session = self.lock();
        self.send(&mut session)?;
        let count = session.writer().write(bytes)?;
        self.send(&mut session)?;
        match count {
            0 if !bytes.is_empty() => Err(io::ErrorKind::WouldBlock.into()),
            _ => Ok(count),
        }
    }

    /// True if something that was written waits to be sent.
    pub fn has_unsent(&self) -> bool {
        self.lock().wants_write()
    }

    /// Sends what waits to be sent, as far as the system takes it.
    pub fn flush(&self) -> io::Result<()> {
        self.send(&mut self.lock())
    }

    /// Says that nothing more comes.
    pub fn end(&self) -> io::Result<()> {
        let mut session = self.lock();
        session.send_close_notify();
        self.send(&mut session)
    }

    /// Takes what the system has. 0 at the end.
    fn receive(&self, session: &mut Connection) -> io::Result<usize> {
        let count = session.read_tls(&mut Ready(&self.stream))?;
        let state = session.process_new_packets().map_err(invalid)?;
        self.held.store(state.plaintext_bytes_to_read(), Ordering::Relaxed);
        Ok(count)
    }

    /// Sends what there is, as far as the system takes it.
    fn send(&self, session: &mut Connection) -> io::Result<()> {
        while session.wants_write() {
            match session.write_tls(&mut Ready(&self.stream)) {
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        lock(&self.session)
    }
}

/// Reads and writes what can be at once.
struct Ready<'a>(&'a TcpStream);

impl Read for Ready<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.try_read(into)
    }
}

impl Write for Ready<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.try_write(bytes)
    }

    fn write_vectored(&mut self, slices: &[io::IoSlice<'_>]) -> io::Result<usize> {
        self.0.try_write_vectored(slices)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What a record of TLS holds.
const PIECE: usize = 16 << 10;
