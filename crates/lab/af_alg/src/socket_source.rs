//! Where sockets come from: the kernel of this machine, or a fake in tests.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::sys::socket::sockopt::AlgSetKey;
use nix::sys::socket::{AddressFamily, AlgAddr, SockFlag, SockType, bind, setsockopt, socket};

/// What is done to a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    /// Plaintext to ciphertext.
    Encrypt,
    /// Ciphertext to plaintext.
    Decrypt,
}

/// Makes sockets for AES-CBC.
pub trait SocketSource: Send + Sync {
    /// Returns a socket that works on messages under `key`, one after the other.
    ///
    /// # Errors
    /// What is not available, why, and what helps.
    fn socket(&self, key: &[u8]) -> io::Result<OwnedFd>;
}

/// The AF_ALG sockets of this machine's kernel.
pub struct LinuxSockets;

impl SocketSource for LinuxSockets {
    fn socket(&self, key: &[u8]) -> io::Result<OwnedFd> {
        let cipher = socket(AddressFamily::Alg, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None);
        let cipher =
            cipher.map_err(explain("AF_ALG is not available", "load the module af_alg"))?;
        bind(cipher.as_raw_fd(), &AlgAddr::new("skcipher", "cbc(aes)"))
            .map_err(explain("the kernel has no cbc(aes)", "load the module algif_skcipher"))?;
        setsockopt(&cipher, AlgSetKey::default(), &key)
            .map_err(explain("AF_ALG refuses the key", "see /proc/crypto"))?;
        rustix::net::accept_with(&cipher, rustix::net::SocketFlags::CLOEXEC)
            .map_err(explain("AF_ALG opens no cipher", "see /proc/crypto"))
    }
}

/// Makes an error say what failed before its cause, and what helps behind it.
fn explain<E: Into<io::Error>>(what: &str, help: &str) -> impl FnOnce(E) -> io::Error {
    move |error| {
        let error = error.into();
        io::Error::new(error.kind(), format!("{what}: {error}; {help}"))
    }
}
