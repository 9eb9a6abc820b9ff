//! Seals and opens chunks from one place in memory into another, on all cores, without a copy between.

use std::sync::Mutex;

use wattlock_engine::Engine;
use wattlock_engine::crypto::TAG_LEN;
use zeroize::Zeroize;

use crate::error::{Damage, Error};
use crate::lock::lock;
use crate::payload::Payload;
use crate::transfer::Progress;

/// Consecutive chunks of a payload in memory.
pub(crate) struct Chunks<'from, 'to> {
    /// The index of the first.
    pub first: u64,
    /// Whether the last one ends the payload. If not, all are full.
    pub with_last: bool,
    pub from: &'from [u8],
    /// As long as what `from` becomes.
    pub to: &'to mut [u8],
}

impl Payload {
    /// Bytes that `plain_len` bytes of plaintext become, which end the payload or are full chunks of it.
    pub(crate) fn sealed_len_of(&self, plain_len: u64, with_last: bool) -> u64 {
        if with_last {
            return self.layout.sealed_len(plain_len);
        }
        plain_len + plain_len / self.layout.chunk_len as u64 * TAG_LEN as u64
    }

    /// Seals plaintext.
    pub(crate) fn seal_memory(
        &self,
        engine: &Engine,
        chunks: Chunks<'_, '_>,
        progress: &Progress,
    ) -> Result<(), Error> {
        self.spread(
            engine,
            chunks,
            [self.layout.chunk_len, self.layout.slot_len()],
            progress,
            |it| {
                let (ciphertext, tag) = it.to.split_last_chunk_mut().ok_or(Damage::Truncated)?;
                let nonce = self.nonces.nonce(it.first, it.with_last);
                *tag = self.key.seal_into(nonce, &[], it.from, None, ciphertext)?;
                Ok(())
            },
        )
    }

    /// Opens chunks with their tags. After an error, all of `chunks.to` is zeros.
    pub(crate) fn open_memory(
        &self,
        engine: &Engine,
        chunks: Chunks<'_, '_>,
        progress: &Progress,
    ) -> Result<(), Error> {
        let Chunks { first, with_last, from, to } = chunks;
        let chunks = Chunks { first, with_last, from, to: &mut *to };
        let lens = [self.layout.slot_len(), self.layout.chunk_len];
        let opened = self.spread(engine, chunks, lens, progress, |it| {
            let (ciphertext, tag) = it.from.split_last_chunk().ok_or(Damage::Truncated)?;
            let nonce = self.nonces.nonce(it.first, it.with_last);
            let opened = self.key.open_into(nonce, &[], ciphertext, tag, it.to);
            opened.map_err(|_| Damage::Chunk { chunk: it.first }.into())
        });
        if opened.is_err() {
            to.zeroize();
        }
        opened
    }

    /// Calls `work` for each chunk, of which `from_len` bytes become `to_len`, on all workers. Returns the error of
    /// the first chunk that has one.
    fn spread(
        &self,
        engine: &Engine,
        chunks: Chunks<'_, '_>,
        [from_len, to_len]: [usize; 2],
        progress: &Progress,
        work: impl Fn(Chunks<'_, '_>) -> Result<(), Error> + Sync,
    ) -> Result<(), Error> {
        // Few pieces for each worker: memory is fastest in long runs.
        let count = chunks.from.len() / from_len / (PIECES_OF_A_WORKER * engine.threads());
        let count = count.clamp(LEAST_PIECE, MOST_PIECE);
        let pieces = chunks.cut(count, [from_len, to_len]);
        let pieces: Vec<_> = pieces.into_iter().map(|piece| Mutex::new(Some(piece))).collect();
        let failure: Mutex<Option<(u64, Error)>> = Mutex::new(None);
        let worked = engine.for_each(&pieces, |piece| {
            let Some(piece) = lock(piece).take() else { return };
            if lock(&failure).as_ref().is_some_and(|(chunk, _)| *chunk < piece.first) {
                return;
            }
            let (first, plain) = (piece.first, piece.from.len().min(piece.to.len()) as u64);
            let mut done = match progress.is_stopped() {
                true => Err((first, Error::Stopped)),
                false => Ok(()),
            };
            for chunk in piece.cut(1, [from_len, to_len]) {
                let index = chunk.first;
                done = done.and_then(|()| work(chunk).map_err(|error| (index, error)));
            }
            match done {
                Ok(()) => progress.advance(plain),
                Err((chunk, error)) => {
                    let mut failure = lock(&failure);
                    if failure.as_ref().is_none_or(|(earlier, _)| chunk < *earlier) {
                        *failure = Some((chunk, error));
                    }
                }
            }
        });
        worked.map_err(Error::Engine)?;
        let failure = failure.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        failure.map_or(Ok(()), |(_, error)| Err(error))
    }
}

impl<'from, 'to> Chunks<'from, 'to> {
    /// Cuts it into pieces of `count` chunks, of which `from_len` bytes become `to_len`. At least one, if the last
    /// chunk is among them, and one for the empty chunk that may end a payload.
    fn cut(self, count: usize, [from_len, to_len]: [usize; 2]) -> Vec<Self> {
        let Self { mut first, with_last, mut from, mut to } = self;
        let mut pieces = Vec::with_capacity(from.len() / from_len / count + 1);
        while !from.is_empty() || !to.is_empty() {
            let (front, behind) = from.split_at((count * from_len).min(from.len()));
            let (target, rest) = to.split_at_mut((count * to_len).min(to.len()));
            let ends = behind.is_empty() && rest.is_empty();
            pieces.push(Self { first, with_last: with_last && ends, from: front, to: target });
            (first, from, to) = (first + count as u64, behind, rest);
        }
        pieces
    }
}

/// So many that all workers end at about the same time.
const PIECES_OF_A_WORKER: usize = 8;

/// Chunks that a worker takes at once: much more work than the lock around them, and so little that a run which is
/// stopped ends soon.
const LEAST_PIECE: usize = 16;
const MOST_PIECE: usize = 128;
