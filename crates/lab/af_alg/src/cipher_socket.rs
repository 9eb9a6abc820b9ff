//! A socket of the kernel's crypto, and how far its message has come.

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, OwnedFd};

use nix::libc::{ALG_OP_DECRYPT, ALG_OP_ENCRYPT, MSG_MORE, c_int};
use nix::sys::socket::{ControlMessage, MsgFlags, sendmsg};

use crate::read_queue::ReadQueue;
use crate::socket_source::Direction;

/// Bytes that go to the kernel at once. A socket holds more, and what it does not hold would wait for
/// a read.
const PART: usize = 64 << 10;

/// A socket that works on one message at a time.
pub struct CipherSocket {
    socket: OwnedFd,
    /// The index of its message among those of the piece.
    message: usize,
    /// Bytes of it that were read.
    read: usize,
    /// Bytes of it that were sent.
    sent: usize,
    len: usize,
}

impl CipherSocket {
    pub fn new(socket: OwnedFd) -> Self {
        Self { socket, message: 0, read: 0, sent: 0, len: 0 }
    }

    /// Sends the beginning of a message with its IV, and begins to read.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn start(
        &mut self,
        queue: &mut ReadQueue,
        index: usize,
        message: usize,
        (direction, iv): (Direction, &[u8; 16]),
        bytes: &[u8],
    ) -> io::Result<()> {
        (self.message, self.read, self.sent, self.len) = (message, 0, 0, bytes.len());
        let operation: c_int = match direction {
            Direction::Encrypt => ALG_OP_ENCRYPT,
            Direction::Decrypt => ALG_OP_DECRYPT,
        };
        let head = [ControlMessage::AlgSetOp(&operation), ControlMessage::AlgSetIv(iv)];
        self.send(queue, index, bytes, &head)
    }

    /// Continues the message that [`start`](Self::start) began.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn resume(&mut self, queue: &mut ReadQueue, index: usize, bytes: &[u8]) -> io::Result<()> {
        if self.read < self.sent {
            // A part of what was sent was read.
            return queue.read(index, &self.socket, self.sent - self.read);
        }
        self.send(queue, index, bytes, &[])
    }

    fn send(
        &mut self,
        queue: &mut ReadQueue,
        index: usize,
        bytes: &[u8],
        head: &[ControlMessage<'_>],
    ) -> io::Result<()> {
        let part = &bytes[self.sent..bytes.len().min(self.sent + PART)];
        let is_last = self.sent + part.len() == bytes.len();
        let more = if is_last { MsgFlags::empty() } else { MsgFlags::from_bits_retain(MSG_MORE) };
        let flags = more | MsgFlags::MSG_NOSIGNAL | MsgFlags::MSG_DONTWAIT;
        let sent =
            sendmsg::<()>(self.socket.as_raw_fd(), &[IoSlice::new(part)], head, flags, None)?;
        if sent != part.len() {
            let why = format!("sent {sent} of {} bytes", part.len());
            return Err(io::Error::new(io::ErrorKind::WriteZero, why));
        }
        self.sent += sent;
        queue.read(index, &self.socket, self.sent - self.read)
    }

    /// Returns the index of the message, and the offset in it of the bytes that are read next.
    pub fn place(&self) -> (usize, usize) {
        (self.message, self.read)
    }

    /// Records that `bytes` bytes were read. Returns true if the message is complete.
    pub fn advance(&mut self, bytes: usize) -> bool {
        self.read += bytes;
        self.read >= self.len
    }
}
