//! Buffers that go round, so that a steady stream allocates nothing.

use crossbeam_queue::ArrayQueue;
use zeroize::{Zeroize, Zeroizing};

/// A bounded number of buffers that wait for their next message. Their bytes are wiped when they
/// are let go of; as long as they go round, the next message overwrites them.
pub struct Pool {
    short: ArrayQueue<Zeroizing<Vec<u8>>>,
    long: ArrayQueue<Zeroizing<Vec<u8>>>,
}

impl Pool {
    /// A pool that keeps `buffers` at most, at least one.
    pub fn new(buffers: usize) -> Self {
        let (short, long) = (buffers.max(1), (buffers / LONG_SHARE).max(1));
        Self { short: ArrayQueue::new(short), long: ArrayQueue::new(long) }
    }

    /// Where buffers of this capacity are.
    fn of(&self, capacity: usize) -> &ArrayQueue<Zeroizing<Vec<u8>>> {
        if capacity < LONG { &self.short } else { &self.long }
    }

    /// A buffer of `len` bytes, of any content.
    pub fn take(&self, len: usize) -> Zeroizing<Vec<u8>> {
        let mut buffer = self.find(len);
        buffer.resize(len, 0);
        buffer
    }

    /// An empty buffer that as many bytes can be added to.
    pub(crate) fn take_empty(&self, capacity: usize) -> Zeroizing<Vec<u8>> {
        let mut buffer = self.find(capacity);
        buffer.clear();
        buffer
    }

    /// A buffer of any content and no smaller capacity.
    fn find(&self, capacity: usize) -> Zeroizing<Vec<u8>> {
        let mut buffer = self.of(capacity).pop().unwrap_or_default();
        if buffer.capacity() < capacity {
            // To let it grow would leave its bytes behind, not wiped.
            buffer.zeroize();
            buffer = Zeroizing::new(Vec::with_capacity(capacity));
        }
        buffer
    }

    /// Takes a buffer back.
    pub fn give(&self, buffer: Zeroizing<Vec<u8>>) {
        if buffer.capacity() > 0 {
            // One too many is wiped and dropped.
            let _ = self.of(buffer.capacity()).push(buffer);
        }
    }
}

/// The capacity of long buffers, at least: they are not spent on short messages.
const LONG: usize = 64 << 10;

/// The share of all buffers that long ones are.
const LONG_SHARE: usize = 4;
