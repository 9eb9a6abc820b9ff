//! Asynchronous reads of several sockets, by io_uring.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::Instant;

use io_uring::types::{Fd, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use zeroize::Zeroizing;

/// Reads of several sockets: at most one of each is in flight.
pub struct ReadQueue {
    ring: IoUring,
    /// By the index of the socket. The kernel may write into one from when its read was submitted until
    /// it is complete.
    buffers: Vec<Option<Zeroizing<Vec<u8>>>>,
}

/// What was read.
pub struct Read {
    buffer: Zeroizing<Vec<u8>>,
    len: usize,
}

impl Read {
    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.buffer[..self.len]
    }
}

impl ReadQueue {
    /// Makes a queue for `sockets` sockets.
    ///
    /// # Errors
    /// The kernel has no io_uring, or forbids it.
    pub fn new(sockets: usize) -> io::Result<Self> {
        let entries = u32::try_from(sockets.next_power_of_two()).unwrap_or(u32::MAX);
        let buffers = (0..sockets).map(|_| None).collect();
        Ok(Self { ring: IoUring::new(entries)?, buffers })
    }

    /// Returns the number of reads that are not complete.
    pub fn in_flight(&self) -> usize {
        self.buffers.iter().flatten().count()
    }

    /// Begins to read at most `len` bytes of a socket that has no read in flight.
    ///
    /// # Errors
    /// The queue is full, or the kernel refuses.
    pub fn read(&mut self, index: usize, socket: &OwnedFd, len: usize) -> io::Result<()> {
        let mut buffer = Zeroizing::new(vec![0; len]);
        let wanted = u32::try_from(len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let read = opcode::Read::new(Fd(socket.as_raw_fd()), buffer.as_mut_ptr(), wanted);
        // A socket has no offset.
        let entry = read.offset(u64::MAX).build().user_data(index as u64);
        self.buffers[index] = Some(buffer);
        // SAFETY: the buffer stays where it is until the read is complete: it is taken out by `wait`
        // then, and a queue that is dropped before leaks it.
        let pushed = unsafe { self.ring.submission().push(&entry) };
        if pushed.is_err() {
            self.buffers[index] = None;
            return Err(io::Error::other("the io_uring queue is full"));
        }
        self.ring.submit().map(drop)
    }

    /// Waits for the next complete read and returns it with the index of its socket. `None` at
    /// `until`.
    ///
    /// # Errors
    /// What io_uring says.
    pub fn wait(&mut self, until: Instant) -> io::Result<Option<(usize, io::Result<Read>)>> {
        loop {
            let done = self.ring.completion().next();
            if let Some(done) = done {
                let index = done.user_data() as usize;
                let Some(buffer) = self.buffers[index].take() else { continue };
                let read = match usize::try_from(done.result()) {
                    Ok(len) => Ok(Read { len: len.min(buffer.len()), buffer }),
                    Err(_) => Err(io::Error::from_raw_os_error(-done.result())),
                };
                return Ok(Some((index, read)));
            }
            let remaining = until.saturating_duration_since(Instant::now());
            if remaining.is_zero() {
                return Ok(None);
            }
            let remaining = Timespec::from(remaining);
            let wait = SubmitArgs::new().timespec(&remaining);
            match self.ring.submitter().submit_with_args(1, &wait) {
                Ok(_) => {}
                Err(error)
                    if matches!(
                        error.raw_os_error(),
                        Some(nix::libc::ETIME | nix::libc::EINTR)
                    ) => {}
                Err(error) => return Err(error),
            }
        }
    }
}

impl Drop for ReadQueue {
    fn drop(&mut self) {
        // The kernel may still write into them.
        self.buffers.iter_mut().filter_map(Option::take).for_each(std::mem::forget);
    }
}
