//! A tree hash of a message in pieces.

use super::{Output, Root, TreeHash};
use crate::keccak::{KeccakKernel, LANES};

/// A tree hash of a message that comes in pieces, on one thread. For a message in one piece,
/// [`Root::finish`] copies nothing.
pub struct Hasher {
    root: Root,
    /// What waits for its eight chunks to be full.
    buffer: Vec<u8>,
}

impl Hasher {
    /// A hasher that has read no data yet, under the customization string `customization`.
    pub fn new(hash: TreeHash, kernel: KeccakKernel, customization: &[u8]) -> Self {
        Self { root: Root::new(hash, kernel, customization), buffer: Vec::new() }
    }

    /// Absorbs `data`. Up to eight chunks are copied and kept; the rest is hashed where it lies.
    pub fn update(&mut self, mut data: &[u8]) {
        if !self.buffer.is_empty() {
            let missing = self.group_len() - self.buffer.len();
            let (now, later) = data.split_at(missing.min(data.len()));
            self.buffer.extend_from_slice(now);
            data = later;
            if self.buffer.len() < self.group_len() {
                return;
            }
            self.root.absorb_chunks(&self.buffer);
            self.buffer.clear();
        }
        if data.len() >= self.group_len() {
            let rest = (data.len() - self.head_len()) % self.leaves_len();
            let (now, later) = data.split_at(data.len() - rest);
            self.root.absorb_chunks(now);
            data = later;
        }
        self.buffer.extend_from_slice(data);
    }

    /// Fills `out` with the digest; its length is a parameter of ParallelHash256.
    pub fn finish(self, out: &mut [u8]) {
        self.root.finish(&self.buffer, out);
    }

    /// The digest as a stream of any length: see [`Output`].
    pub fn finish_xof(self) -> Output {
        self.root.finish_xof(&self.buffer)
    }

    /// Bytes that make eight leaves, with the head before them if that is still to come.
    fn group_len(&self) -> usize {
        self.head_len().saturating_add(self.leaves_len())
    }

    /// Bytes of eight chunks; more than memory has, if those of ParallelHash256 are that long.
    fn leaves_len(&self) -> usize {
        LANES.saturating_mul(self.root.hash.chunk_len())
    }

    /// Bytes of the head that are still to come.
    fn head_len(&self) -> usize {
        if self.root.head_absorbed { 0 } else { self.root.hash.head_len() }
    }
}
