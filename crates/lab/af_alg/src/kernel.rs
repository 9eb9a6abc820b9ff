//! Where sockets come from: the kernel, or what stands for it in tests.

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
pub trait Kernel: Send + Sync {
    /// A socket that works on messages under `key`, one after the other.
    ///
    /// # Errors
    /// The kernel has none.
    fn socket(&self, key: &[u8]) -> io::Result<OwnedFd>;
}

/// The kernel of this machine.
pub struct Linux;

impl Kernel for Linux {
    fn socket(&self, key: &[u8]) -> io::Result<OwnedFd> {
        let cipher = socket(AddressFamily::Alg, SockType::SeqPacket, SockFlag::SOCK_CLOEXEC, None)?;
        bind(cipher.as_raw_fd(), &AlgAddr::new("skcipher", "cbc(aes)"))?;
        setsockopt(&cipher, AlgSetKey::default(), &key)?;
        Ok(rustix::net::accept_with(&cipher, rustix::net::SocketFlags::CLOEXEC)?)
    }
}
