//! A tree hash whose leaves are dealt to the engine's workers.

use std::sync::Mutex;

use crate::lock::lock;
use wattlock_engine::crypto::KeccakKernel;
use wattlock_engine::crypto::tree_hash::{Root, TreeHash};
use wattlock_engine::{Engine, Error};

/// The hash of one long message that comes in windows.
pub struct TreeStream {
    hash: TreeHash,
    kernel: KeccakKernel,
    root: Root,
    started: bool,
}

impl TreeStream {
    /// The hash of nothing so far, without a customization string.
    pub fn new(hash: TreeHash, kernel: KeccakKernel) -> Self {
        Self { hash, kernel, root: Root::new(hash, kernel, b""), started: false }
    }

    /// The length of windows that suits all lanes of all workers: whole chunks, about `wanted`
    /// bytes.
    pub fn window_len(&self, wanted: usize) -> usize {
        let lanes = KeccakKernel::LANES * self.hash.chunk_len();
        wanted.div_ceil(lanes).max(1) * lanes
    }

    /// Absorbs a window of whole chunks.
    ///
    /// # Errors
    /// [`Error::Pool`] if the threads cannot be started; [`Error::Layout`] for a part of a chunk.
    pub fn update(&mut self, engine: &Engine, window: &[u8]) -> Result<(), Error> {
        if !window.len().is_multiple_of(self.hash.chunk_len()) {
            return Err(Error::Layout(window.len()));
        }
        let mut leaves = window;
        if !self.started && !window.is_empty() {
            let (head, others) = window.split_at(self.hash.head_len());
            self.root.absorb_head(head).expect("the first chunk, once");
            self.started = true;
            leaves = others;
        }
        let piece = self.piece_len(engine, leaves.len());
        let mut values = vec![0; self.hash.leaves_len(leaves.len())];
        let outputs = values.chunks_mut(self.hash.leaves_len(piece).max(1)).map(Mutex::new);
        let pieces: Vec<_> = leaves.chunks(piece).zip(outputs).collect();
        engine.for_each(&pieces, |(chunks, values)| {
            let mut values = lock(values);
            let written = self.hash.leaves(self.kernel, chunks, &mut values);
            written.expect("room for the values of whole chunks");
        })?;
        drop(pieces);
        self.root.absorb_leaves(&values).expect("whole values, behind the head");
        Ok(())
    }

    /// Absorbs `rest`, the end of the message, less than a window, and fills `digest`.
    ///
    /// # Errors
    /// As [`TreeStream::update`].
    pub fn finish(mut self, engine: &Engine, rest: &[u8], digest: &mut [u8]) -> Result<(), Error> {
        // As little as this is done before another thread is awake.
        let here = rest.len() <= KeccakKernel::LANES * self.hash.chunk_len();
        let whole = if here { 0 } else { rest.len() - rest.len() % self.hash.chunk_len() };
        let (whole, rest) = rest.split_at(whole);
        self.update(engine, whole)?;
        self.root.finish(rest, digest);
        Ok(())
    }

    /// Bytes that a worker takes: whole groups of lanes, several for each worker.
    fn piece_len(&self, engine: &Engine, len: usize) -> usize {
        let lanes = KeccakKernel::LANES * self.hash.chunk_len();
        let each = len.div_ceil(4 * engine.threads()).div_ceil(lanes).max(1);
        each.min(MOST_LANE_GROUPS) * lanes
    }
}

/// Groups of lanes that a worker takes at most: 512 KiB of KT128's chunks.
const MOST_LANE_GROUPS: usize = 8;

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_engine::crypto::tree_hash::Hasher;

    #[test]
    fn threads_and_windows_do_not_show() {
        let message: Vec<u8> = (0..3 * (1 << 20) + 77).map(|i| (i % 251) as u8).collect();
        for hash in
            [TreeHash::Kt128, TreeHash::ParallelHash256 { block_len: 1000.try_into().unwrap() }]
        {
            for len in [0, 1, 999, 1000, 8191, 8192, 8193, 65_536, 73_728, 73_729, message.len()] {
                let kernel = KeccakKernel::best();
                let mut expected = [0; 32];
                let mut hasher = Hasher::new(hash, kernel, b"");
                hasher.update(&message[..len]);
                hasher.finish(&mut expected);
                for (threads, wanted) in [(1, 1), (1, 1 << 20), (3, 1), (3, 1 << 18)] {
                    let engine = Engine::new(threads);
                    let mut stream = TreeStream::new(hash, kernel);
                    let window = stream.window_len(wanted);
                    let mut left = &message[..len];
                    while left.len() >= window {
                        let (now, later) = left.split_at(window);
                        stream.update(&engine, now).unwrap();
                        left = later;
                    }
                    let mut digest = [0; 32];
                    stream.finish(&engine, left, &mut digest).unwrap();
                    assert_eq!(digest, expected, "{hash:?}, {len} bytes, windows of {window}");
                }
            }
        }
    }
}
