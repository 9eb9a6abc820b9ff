//! A connection to a peer, over TCP, TLS or a Unix socket.

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, recv, sendmsg};

use super::tls::TlsStream;
use super::{Address, Destination, socket};

/// A peer that bytes are written to.
pub(crate) enum Peer {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsStream>),
}

impl Peer {
    /// Connects.
    ///
    /// # Errors
    /// That the peer cannot be reached.
    pub fn connect(to: &Destination) -> io::Result<Self> {
        Ok(match &to.address {
            Address::Unix(path) => Self::Unix(UnixStream::connect(path)?),
            Address::Tcp(address) => Self::Tcp(connect(address)?),
            Address::Tls(address) => {
                let tls = to.tls()?;
                Self::Tls(Box::new(tls.connect(address, connect(address)?)?))
            }
        })
    }

    /// Fails if the peer has gone away. What it sends is read and ignored.
    pub fn check(&mut self) -> io::Result<()> {
        if let Self::Tls(stream) = self {
            loop {
                let mut now = Now(stream.socket().try_clone()?);
                match stream.ignore(&mut now) {
                    Ok(0) => return Err(closed()),
                    Ok(_) => {}
                    Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                    Err(error) => return Err(error),
                }
            }
        }
        let mut ignored = [0; 512];
        loop {
            match recv(self.descriptor(), &mut ignored, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(closed()),
                Ok(_) | Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// Writes some of the bytes; blocks until the system takes any.
    pub fn write(&mut self, slices: &[IoSlice<'_>]) -> io::Result<usize> {
        loop {
            let written = match self {
                Self::Tcp(stream) => stream.write_vectored(slices),
                Self::Unix(stream) => stream.write_vectored(slices),
                Self::Tls(stream) => stream.write_vectored(slices),
            };
            match written {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                written => return written,
            }
        }
    }

    /// Writes what the system takes at once; `None` if that is nothing. Not for TLS.
    pub fn write_now(&mut self, slices: &[IoSlice<'_>]) -> io::Result<Option<usize>> {
        let mut control = SendAncillaryBuffer::default();
        let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
        loop {
            match sendmsg(self.descriptor(), slices, &mut control, flags) {
                Ok(written) => return Ok(Some(written)),
                Err(Errno::AGAIN) => return Ok(None),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    pub fn shutdown(&mut self, how: Shutdown) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.shutdown(how),
            Self::Unix(stream) => stream.shutdown(how),
            Self::Tls(stream) => {
                if how == Shutdown::Write {
                    stream.end()?;
                }
                stream.socket().shutdown(how)
            }
        }
    }

    /// Lets reads and writes fail that take longer than this.
    pub fn set_patience(&self, patience: Duration) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))
            }
            Self::Tls(stream) => {
                stream.socket().set_read_timeout(Some(patience))?;
                stream.socket().set_write_timeout(Some(patience))
            }
            Self::Unix(stream) => {
                stream.set_read_timeout(Some(patience))?;
                stream.set_write_timeout(Some(patience))
            }
        }
    }

    /// Waits until the peer has closed its end, or for `patience`.
    ///
    /// # Errors
    /// That the peer reset the connection.
    pub fn wait_for_end(&mut self, patience: Duration) -> io::Result<()> {
        let deadline = Instant::now() + patience;
        let mut ignored = [0; 512];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            let read = match self {
                Self::Tcp(stream) => {
                    stream.set_read_timeout(Some(left))?;
                    stream.read(&mut ignored)
                }
                Self::Unix(stream) => {
                    stream.set_read_timeout(Some(left))?;
                    stream.read(&mut ignored)
                }
                Self::Tls(stream) => {
                    stream.socket().set_read_timeout(Some(left))?;
                    match stream.read(&mut ignored) {
                        // What it said has to say nothing more.
                        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(0),
                        read => read,
                    }
                }
            };
            match read {
                Ok(0) => return Ok(()),
                Ok(_) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
            }
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(stream) => stream.socket().as_fd(),
        }
    }
}

impl Read for Peer {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(into),
            Self::Unix(stream) => stream.read(into),
            Self::Tls(stream) => stream.read(into),
        }
        .map_err(in_words)
    }
}

impl Write for Peer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
        }
        .map_err(in_words)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Reads what is there, and waits for nothing.
struct Now(TcpStream);

impl Read for Now {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        Ok(recv(&self.0, into, RecvFlags::DONTWAIT)?.0)
    }
}

/// An error of a read or write that waits, where the system says that there is nothing now and means that the time limit
/// has passed.
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        io::ErrorKind::WouldBlock => {
            io::Error::new(io::ErrorKind::TimedOut, "the peer did not answer in time")
        }
        _ => error,
    }
}

fn closed() -> io::Error {
    io::Error::new(io::ErrorKind::ConnectionAborted, "the peer closed the connection")
}

/// Tries every address of the name.
fn connect(address: &str) -> io::Result<TcpStream> {
    let mut failure = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
    for address in address.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, PATIENCE) {
            Ok(stream) => {
                // Pieces are joined before they are written.
                stream.set_nodelay(true)?;
                socket::keep_alive(&stream)?;
                return Ok(stream);
            }
            Err(error) => failure = error,
        }
    }
    Err(failure)
}

/// How long a peer may take to answer.
const PATIENCE: Duration = Duration::from_secs(10);
