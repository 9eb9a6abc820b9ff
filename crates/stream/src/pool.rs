//! Buffers that go round, so that a steady stream allocates nothing.

use crossbeam_queue::ArrayQueue;
use zeroize::{Zeroize, Zeroizing};

/// A bounded number of buffers that wait for their next message. Their bytes are wiped when they
/// are let go of; as long as they go round, the next message overwrites them.
pub struct Pool {
    buffers: ArrayQueue<Zeroizing<Vec<u8>>>,
}

impl Pool {
    /// A pool that keeps `buffers` at most, at least one.
    pub fn new(buffers: usize) -> Self {
        Self { buffers: ArrayQueue::new(buffers.max(1)) }
    }

    /// A buffer of `len` bytes, of any content.
    pub fn take(&self, len: usize) -> Zeroizing<Vec<u8>> {
        let mut buffer = self.buffers.pop().unwrap_or_default();
        if buffer.capacity() < len {
            // To let it grow would leave its bytes behind, not wiped.
            buffer.zeroize();
            buffer = Zeroizing::new(Vec::with_capacity(len));
        }
        buffer.resize(len, 0);
        buffer
    }

    /// Takes a buffer back.
    pub fn give(&self, buffer: Zeroizing<Vec<u8>>) {
        if buffer.capacity() > 0 {
            // One too many is wiped and dropped.
            let _ = self.buffers.push(buffer);
        }
    }
}
