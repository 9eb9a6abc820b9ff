//! Unix sockets, TCP and TLS, as far as they are alike.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use bytes::BufMut;
use rustix::io::Errno;
use rustix::net::{RecvFlags, sockopt};
use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

use super::tls::{TlsClient, TlsServer};
use super::tls_socket::TlsSocket;

/// Where to listen, or whom to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `tcp:HOST:PORT`.
    Tcp(String),
    /// `tls:HOST:PORT`.
    Tls(String),
    /// `unix:PATH`.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is not tls:HOST:PORT, tcp:HOST:PORT or unix:PATH");
        match text.split_once(':').ok_or_else(wrong)? {
            (kind @ ("tcp" | "tls"), address) => {
                let (_, port) = address.rsplit_once(':').ok_or_else(wrong)?;
                match port.parse::<u16>() {
                    Ok(_) if kind == "tls" => Ok(Self::Tls(address.to_owned())),
                    Ok(_) => Ok(Self::Tcp(address.to_owned())),
                    Err(_) => Err(format!("{port:?} is not a port: a number from 0 to 65535")),
                }
            }
            ("unix", path) if !path.is_empty() => Ok(Self::Unix(path.into())),
            _ => Err(wrong()),
        }
    }
}

/// As it is given, but with what a terminal would obey escaped.
impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => write!(f, "tcp:{}", address.escape_debug()),
            Self::Tls(address) => write!(f, "tls:{}", address.escape_debug()),
            Self::Unix(path) => write!(f, "unix:{}", path.to_string_lossy().escape_debug()),
        }
    }
}

/// Where to connect to.
#[derive(Clone)]
pub struct Destination {
    /// The address.
    pub address: Address,
    /// What an address with TLS needs.
    pub tls: Option<TlsClient>,
}

impl Destination {
    pub(super) fn tls(&self) -> io::Result<&TlsClient> {
        self.tls.as_ref().ok_or_else(without_tls)
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

fn without_tls() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "TLS was not set up")
}

/// A socket that accepts.
pub(super) struct Door {
    listener: DoorListener,
    /// The path of a Unix socket.
    path: Option<RemovedAtEnd>,
}

enum DoorListener {
    Tcp(TcpListener, Option<TlsServer>),
    Unix(UnixListener),
}

struct RemovedAtEnd(PathBuf);

impl Drop for RemovedAtEnd {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A connection that was accepted.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
    Tls(Box<TlsSocket>),
}

impl Door {
    pub async fn open(address: &Address, tls: Option<TlsServer>) -> io::Result<Self> {
        Ok(match address {
            Address::Tcp(name) | Address::Tls(name) => {
                let tls = match address {
                    Address::Tls(_) => Some(tls.ok_or_else(without_tls)?),
                    _ => None,
                };
                let listener = TcpListener::bind(name).await?;
                rustix::net::listen(&listener, BACKLOG)?;
                Self { listener: DoorListener::Tcp(listener, tls), path: None }
            }
            Address::Unix(path) => {
                remove_stale(path)?;
                let listener = UnixListener::bind(path)?;
                let path = Some(RemovedAtEnd(path.clone()));
                rustix::net::listen(&listener, BACKLOG)?;
                Self { listener: DoorListener::Unix(listener), path }
            }
        })
    }

    /// Where it listens: with the port that the system chose, if it was asked for none.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match (&self.listener, &self.path) {
            (DoorListener::Tcp(listener, tls), _) => {
                let own = listener.local_addr()?.to_string();
                tls.as_ref().map_or(Address::Tcp(own.clone()), |_| Address::Tls(own))
            }
            (_, Some(RemovedAtEnd(path))) => Address::Unix(path.clone()),
            _ => return Err(io::ErrorKind::NotFound.into()),
        })
    }

    /// The next connection, and who it is.
    pub async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match &self.listener {
            DoorListener::Tcp(listener, tls) => {
                let (stream, peer) = listener.accept().await?;
                // Detects peers that vanish without closing; a failure here does no harm.
                let _ = keep_alive(&stream);
                Ok((Socket::accepted(stream, tls.as_ref())?, Some(peer)))
            }
            DoorListener::Unix(listener) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), None))
            }
        }
    }

    /// Accepts nothing more but what the system had accepted before.
    pub fn close(self) -> Vec<(Socket, Option<SocketAddr>)> {
        let mut rest = Vec::new();
        match self.listener {
            DoorListener::Tcp(listener, tls) => {
                let Ok(listener) = listener.into_std() else { return rest };
                while let Ok((stream, peer)) = listener.accept() {
                    let stream = not_blocking(stream, TcpStream::from_std);
                    let socket = stream.and_then(|stream| Socket::accepted(stream, tls.as_ref()));
                    rest.extend(socket.map(|socket| (socket, Some(peer))));
                }
            }
            DoorListener::Unix(listener) => {
                let Ok(listener) = listener.into_std() else { return rest };
                drop(self.path);
                while let Ok((stream, _)) = listener.accept() {
                    if let Ok(stream) = not_blocking(stream, UnixStream::from_std) {
                        rest.push((Socket::Unix(stream), None));
                    }
                }
            }
        }
        rest
    }
}

/// Connections that may wait to be accepted; the system may allow fewer.
const BACKLOG: i32 = 4096;

fn not_blocking<S: AsFd, T>(socket: S, wrap: impl Fn(S) -> io::Result<T>) -> io::Result<T> {
    rustix::io::ioctl_fionbio(&socket, true)?;
    wrap(socket)
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Tcp(stream) => stream.as_fd(),
            Self::Unix(stream) => stream.as_fd(),
            Self::Tls(socket) => socket.stream().as_fd(),
        }
    }
}

impl Socket {
    pub async fn connect(to: &Destination) -> io::Result<Self> {
        Ok(match &to.address {
            Address::Unix(path) => Self::Unix(UnixStream::connect(path).await?),
            Address::Tcp(address) => Self::Tcp(connect(address).await?),
            Address::Tls(address) => {
                let session = to.tls()?.session(address)?;
                let socket = Self::Tls(Box::new(TlsSocket::new(connect(address).await?, session)));
                socket.handshake().await?;
                socket
            }
        })
    }

    fn accepted(stream: TcpStream, tls: Option<&TlsServer>) -> io::Result<Self> {
        Ok(match tls {
            None => Self::Tcp(stream),
            Some(tls) => {
                // Answers are short, and wait for none.
                stream.set_nodelay(true)?;
                Self::Tls(Box::new(TlsSocket::new(stream, tls.session()?)))
            }
        })
    }

    /// The same socket for the runtime of this thread, in place of the one that accepted it.
    ///
    /// # Errors
    /// That the runtime cannot wait for it.
    pub fn move_here(self) -> io::Result<Self> {
        Ok(match self {
            Self::Tcp(stream) => Self::Tcp(TcpStream::from_std(stream.into_std()?)?),
            Self::Unix(stream) => Self::Unix(UnixStream::from_std(stream.into_std()?)?),
            Self::Tls(socket) => Self::Tls(Box::new(socket.move_here()?)),
        })
    }

    /// Completes the handshake, where there is one.
    pub async fn handshake(&self) -> io::Result<()> {
        match self {
            Self::Tls(socket) => socket.handshake().await,
            _ => Ok(()),
        }
    }

    /// The names in the peer's certificate.
    pub fn names(&self) -> Vec<String> {
        match self {
            Self::Tls(socket) => socket.names(),
            _ => Vec::new(),
        }
    }

    /// Reads what is there and does nothing with it: `None` if nothing is, 0 at the end.
    pub fn ignore(&self) -> io::Result<Option<usize>> {
        match self.try_read(&mut [0; 4096]) {
            Ok(count) => Ok(Some(count)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The same for any thread, which may know less than the one that waits for the socket. Not for TLS.
    pub fn ignore_now(&self) -> io::Result<Option<usize>> {
        match rustix::net::recv(self, &mut [0; 4096], RecvFlags::DONTWAIT) {
            Ok((count, _)) => Ok(Some(count)),
            Err(Errno::AGAIN | Errno::INTR) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// True if what is written goes to the system at once.
    pub fn is_plain(&self) -> bool {
        !matches!(self, Self::Tls(_))
    }

    /// Bytes that can be read now. With TLS, those that carry them.
    pub fn unread(&self) -> u64 {
        let held = match self {
            Self::Tls(socket) => socket.held(),
            _ => 0,
        };
        held + rustix::io::ioctl_fionread(self).unwrap_or(0)
    }

    /// True if something that was written waits to be sent.
    pub fn has_unsent(&self) -> bool {
        matches!(self, Self::Tls(socket) if socket.has_unsent())
    }

    /// Sends what was written and waits, as far as the system takes it.
    pub fn flush(&self) -> io::Result<()> {
        match self {
            Self::Tls(socket) => socket.flush(),
            _ => Ok(()),
        }
    }

    /// Tells the peer that nothing more comes, where there is a word for that.
    pub fn say_end(&self) -> io::Result<()> {
        match self {
            Self::Tls(socket) => socket.end(),
            _ => Ok(()),
        }
    }

    /// Sends all that was written, and that nothing more comes.
    pub async fn end(&self) -> io::Result<()> {
        self.say_end()?;
        while self.has_unsent() {
            self.writable().await?;
            self.flush()?;
        }
        Ok(rustix::net::shutdown(self, rustix::net::Shutdown::Write)?)
    }

    /// Lets a sender on this machine know that nothing more is taken. What it had sent can still be
    /// read. False for TCP, which has no word for that.
    pub fn refuse_more(&self) -> bool {
        matches!(self, Self::Unix(_))
            && rustix::net::shutdown(self, rustix::net::Shutdown::Read).is_ok()
    }

    pub async fn writable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.writable().await,
            Self::Unix(stream) => stream.writable().await,
            Self::Tls(socket) => socket.stream().writable().await,
        }
    }

    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_write(bytes),
            Self::Unix(stream) => stream.try_write(bytes),
            Self::Tls(socket) => socket.try_write(bytes),
        }
    }

    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(stream) => stream.readable().await,
            Self::Tls(socket) => socket.readable().await,
        }
    }

    /// Adds what is there to a buffer, up to `most` bytes, for which there is room.
    pub fn try_read_more(&self, buffer: &mut Vec<u8>, most: usize) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read_buf(&mut buffer.limit(most)),
            Self::Unix(stream) => stream.try_read_buf(&mut buffer.limit(most)),
            Self::Tls(socket) => socket.try_read_more(buffer, most),
        }
    }

    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(into),
            Self::Unix(stream) => stream.try_read(into),
            Self::Tls(socket) => socket.try_read(into),
        }
    }
}

async fn connect(address: &str) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    keep_alive(&stream)?;
    Ok(stream)
}

/// Lets the system find out that a peer is gone without a word, within two minutes.
pub(super) fn keep_alive(socket: impl AsFd) -> io::Result<()> {
    let socket = socket.as_fd();
    sockopt::set_tcp_keepidle(socket, Duration::from_secs(60))?;
    sockopt::set_tcp_keepintvl(socket, Duration::from_secs(15))?;
    sockopt::set_tcp_keepcnt(socket, 4)?;
    sockopt::set_socket_keepalive(socket, true)?;
    Ok(())
}

/// Removes a socket without a listener, which a killed program left.
///
/// # Errors
/// That it cannot be removed.
pub fn remove_stale(path: &Path) -> io::Result<()> {
    let is_socket = path.symlink_metadata().is_ok_and(|status| status.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        std::fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_with_their_kind() {
        assert_eq!("tcp:[::1]:80".parse(), Ok(Address::Tcp("[::1]:80".into())));
        assert_eq!("unix:/run/a:b".parse(), Ok(Address::Unix("/run/a:b".into())));
        for wrong in ["", "tcp:", "tcp:80", "unix:", "localhost:80", "udp:a:1"] {
            assert!(wrong.parse::<Address>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_are_shown_as_no_terminal_obeys_them() {
        for (address, shown) in [
            ("tcp:[::1]:80", "tcp:[::1]:80"),
            ("unix:/run/caf\u{e9}:b", "unix:/run/caf\u{e9}:b"),
            ("tcp:\x1b[2J:80", r"tcp:\u{1b}[2J:80"),
            ("unix:/run/\x1b]0;a\x07\n\u{202e}b", r"unix:/run/\u{1b}]0;a\u{7}\n\u{202e}b"),
        ] {
            assert_eq!(address.parse::<Address>().unwrap().to_string(), shown);
        }
    }
}
