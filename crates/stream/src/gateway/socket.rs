//! Unix sockets and TCP, as far as they are alike.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::net::{TcpListener, TcpStream, UnixListener, UnixStream};

/// Where to listen, or whom to connect to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// `tcp:HOST:PORT`.
    Tcp(String),
    /// `unix:PATH`.
    Unix(PathBuf),
}

impl FromStr for Address {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("{text:?} is neither tcp:HOST:PORT nor unix:PATH");
        match text.split_once(':').ok_or_else(wrong)? {
            ("tcp", address) if address.contains(':') => Ok(Self::Tcp(address.to_owned())),
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
            Self::Unix(path) => write!(f, "unix:{}", path.to_string_lossy().escape_debug()),
        }
    }
}

/// A socket that accepts.
pub(super) enum Door {
    Tcp(TcpListener),
    /// With the path, which is removed at the end.
    Unix(UnixListener, PathBuf),
}

/// A connection that was accepted.
pub(super) enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Door {
    pub async fn open(address: &Address) -> io::Result<Self> {
        match address {
            Address::Tcp(address) => TcpListener::bind(address).await.map(Self::Tcp),
            Address::Unix(path) => {
                remove_stale(path)?;
                UnixListener::bind(path).map(|listener| Self::Unix(listener, path.clone()))
            }
        }
    }

    /// Where it listens: with the port that the system chose, if it was asked for none.
    pub fn address(&self) -> io::Result<Address> {
        Ok(match self {
            Self::Tcp(listener) => Address::Tcp(listener.local_addr()?.to_string()),
            Self::Unix(_, path) => Address::Unix(path.clone()),
        })
    }

    /// The next connection, and who it is.
    pub async fn accept(&self) -> io::Result<(Socket, Option<SocketAddr>)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, peer) = listener.accept().await?;
                Ok((Socket::Tcp(stream), Some(peer)))
            }
            Self::Unix(listener, _) => {
                let (stream, _) = listener.accept().await?;
                Ok((Socket::Unix(stream), None))
            }
        }
    }
}

impl Drop for Door {
    fn drop(&mut self) {
        if let Self::Unix(_, path) = self {
            let _ = std::fs::remove_file(path);
        }
    }
}

impl Socket {
    pub async fn readable(&self) -> io::Result<()> {
        match self {
            Self::Tcp(stream) => stream.readable().await,
            Self::Unix(stream) => stream.readable().await,
        }
    }

    pub fn try_read(&self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.try_read(into),
            Self::Unix(stream) => stream.try_read(into),
        }
    }
}

/// Removes a socket that nobody listens to any more: what a program that was killed left.
fn remove_stale(path: &Path) -> io::Result<()> {
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
