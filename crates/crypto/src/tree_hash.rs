//! Tree hashes over Keccak: KT128 (RFC 9861) and ParallelHash256 (NIST SP 800-185, section 6).
//!
//! A message is cut into chunks, each chunk is hashed to a chaining value, and a root hashes the
//! chaining values in order. The leaves are nearly all of the work, and independent. [`Hasher`]
//! does everything on one thread. A caller with threads does the same in three steps, as below.
//!
//! ```
//! use wattlock_crypto::KeccakKernel;
//! use wattlock_crypto::tree_hash::{Root, TreeHash};
//!
//! let (kernel, hash) = (KeccakKernel::best(), TreeHash::Kt128);
//! let message = vec![7; 1_000_000];
//! let (chunks, rest) = message.split_at(message.len() - message.len() % hash.chunk_len());
//! let mut root = Root::new(hash, kernel, b"");
//! // First, the start of the message that has no leaf of its own, if there is that much.
//! let (head, chunks) = chunks.split_at(hash.head_len().min(chunks.len()));
//! root.absorb_head(head)?;
//! // Second, the leaves: pieces of whole chunks, best in multiples of eight, on any thread ...
//! for piece in chunks.chunks(64 * hash.chunk_len()) {
//!     let mut values = vec![0; hash.leaves_len(piece.len())];
//!     hash.leaves(kernel, piece, &mut values)?;
//!     // ... and their chaining values to the root, in the order of the message.
//!     root.absorb_leaves(&values)?;
//! }
//! // Third, what is left: here what does not fill a chunk.
//! let mut digest = [0; 32];
//! root.finish(rest, &mut digest);
//! # Ok::<(), wattlock_crypto::Error>(())
//! ```

use std::array::from_fn;
use std::num::NonZeroUsize;

use crate::error::Error;
use crate::keccak::{KeccakKernel, LANES};
use crate::sponge::{EqualLanes, Sponge};

mod encode;
mod hasher;
mod output;
mod root;

pub use hasher::Hasher;
pub use output::Output;
pub use root::Root;

/// A tree hash and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeHash {
    /// KT128, RFC 9861 section 3: TurboSHAKE128 over chunks of 8192 bytes, 128 bits of security.
    Kt128,
    /// ParallelHash256, SP 800-185 section 6: cSHAKE256 over blocks, 256 bits of security.
    ParallelHash256 {
        /// Bytes of a block, B in the standard. The digest depends on it.
        block_len: NonZeroUsize,
    },
}

impl TreeHash {
    /// ParallelHash256 with blocks of 8192 bytes.
    pub const PARALLEL_HASH_256: Self =
        Self::ParallelHash256 { block_len: NonZeroUsize::new(8192).expect("not 0") };

    /// Bytes of a chunk.
    pub fn chunk_len(self) -> usize {
        match self {
            Self::Kt128 => KT_CHUNK_LEN,
            Self::ParallelHash256 { block_len } => block_len.get(),
        }
    }

    /// Bytes at the start of a message that the root absorbs as they are: a chunk, or nothing.
    pub fn head_len(self) -> usize {
        match self {
            Self::Kt128 => KT_CHUNK_LEN,
            Self::ParallelHash256 { .. } => 0,
        }
    }

    /// Bytes of a chaining value.
    pub(crate) fn chaining_value_len(self) -> usize {
        match self {
            Self::Kt128 => KT_CHAINING_VALUE_LEN,
            Self::ParallelHash256 { .. } => PH_CHAINING_VALUE_LEN,
        }
    }

    /// Bytes of the chaining values of `len` bytes of whole chunks.
    pub fn leaves_len(self, len: usize) -> usize {
        (len / self.chunk_len()).saturating_mul(self.chaining_value_len())
    }

    /// Writes the chaining values of the chunks in `data` to `out`, eight chunks at a time.
    ///
    /// # Errors
    /// [`Error::PartialBlock`] unless `data` is whole chunks, and [`Error::BufferLength`] unless `out` has
    /// [`Self::leaves_len`] of it.
    pub fn leaves(self, kernel: KeccakKernel, data: &[u8], out: &mut [u8]) -> Result<(), Error> {
        whole(data.len(), self.chunk_len())?;
        let (len, expected) = (out.len(), self.leaves_len(data.len()));
        if len != expected {
            return Err(Error::BufferLength { len, expected });
        }
        self.write_leaves(kernel, data, out);
        Ok(())
    }

    /// What [`Self::leaves`] does, of whole chunks, into as many chaining values.
    fn write_leaves(self, kernel: KeccakKernel, data: &[u8], out: &mut [u8]) {
        let chunk = |i: usize| data.get(i * self.chunk_len()..)?.get(..self.chunk_len());
        let mut write = |i: usize, value: &[u8; PH_CHAINING_VALUE_LEN]| {
            let len = self.chaining_value_len();
            out[i * len..][..len].copy_from_slice(&value[..len]);
        };
        // Every lane takes consecutive chunks, so that it reads through its part of `data` without
        // a jump: the prefetchers then see eight long streams.
        let count = data.len() / self.chunk_len();
        let in_lane = count / LANES;
        for i in 0..in_lane {
            let values = self.leaf_group(kernel, from_fn(|n| chunk(n * in_lane + i)));
            values.iter().enumerate().for_each(|(n, value)| write(n * in_lane + i, value));
        }
        let done = in_lane * LANES;
        if done < count {
            let values = self.leaf_group(kernel, from_fn(|n| chunk(done + n)));
            (done..count).zip(&values).for_each(|(i, value)| write(i, value));
        }
    }

    /// The chaining values of up to eight chunks of one length; those of KT128 fill only half.
    fn leaf_group(
        self,
        kernel: KeccakKernel,
        chunks: [Option<&[u8]>; LANES],
    ) -> [[u8; PH_CHAINING_VALUE_LEN]; LANES] {
        match self {
            Self::Kt128 => leaf_group::<KT_RATE, KT_ROUNDS>(kernel, chunks, KT_LEAF_DOMAIN),
            Self::ParallelHash256 { .. } => {
                leaf_group::<PH_RATE, PH_ROUNDS>(kernel, chunks, SHAKE_DOMAIN)
            }
        }
    }
}

/// Refuses `len` bytes that end within a part of `part_len` bytes.
fn whole(len: usize, part_len: usize) -> Result<(), Error> {
    if len.is_multiple_of(part_len) {
        return Ok(());
    }
    Err(Error::PartialBlock { len, block_len: part_len })
}

/// The sponge with `domain` over each of up to eight chunks of one length.
fn leaf_group<const RATE: usize, const ROUNDS: usize>(
    kernel: KeccakKernel,
    chunks: [Option<&[u8]>; LANES],
    domain: u8,
) -> [[u8; PH_CHAINING_VALUE_LEN]; LANES] {
    let mut values = [[0; PH_CHAINING_VALUE_LEN]; LANES];
    if let [Some(chunk), None, ..] = chunks {
        let mut sponge = Sponge::<RATE, ROUNDS>::new();
        sponge.update(kernel, chunk);
        sponge.finish(kernel, domain, &mut values[0]);
        return values;
    }
    let mut lanes = EqualLanes::<RATE, ROUNDS>::absorb(kernel, chunks);
    lanes.finish(kernel, chunks, domain);
    values.iter_mut().enumerate().for_each(|(n, value)| lanes.digest(n, value));
    values
}

/// TurboSHAKE128, RFC 9861 section 2: 200 bytes less the capacity of 256 bits.
const KT_RATE: usize = 168;
/// `Keccak-p[1600, 12]`, RFC 9861 section 2.
const KT_ROUNDS: usize = 12;
/// RFC 9861, section 3.2.
const KT_CHUNK_LEN: usize = 8192;
/// RFC 9861, section 3.2.
const KT_CHAINING_VALUE_LEN: usize = 32;
/// The domain byte of a message that is one chunk, RFC 9861 section 3.2.
const KT_SINGLE_DOMAIN: u8 = 0x07;
/// The domain byte of a leaf, RFC 9861 section 3.2.
const KT_LEAF_DOMAIN: u8 = 0x0b;
/// The domain byte of the final node, RFC 9861 section 3.2.
const KT_FINAL_DOMAIN: u8 = 0x06;

/// cSHAKE256, SP 800-185 section 3.3: 200 bytes less the capacity of 512 bits.
const PH_RATE: usize = 136;
/// `Keccak-f[1600]`.
const PH_ROUNDS: usize = 24;
/// 512 bits, SP 800-185 section 6.3.
const PH_CHAINING_VALUE_LEN: usize = 64;
/// The domain bits 00 of cSHAKE and the first bit of the padding.
const CSHAKE_DOMAIN: u8 = 0x04;
/// The domain bits 1111 of SHAKE: cSHAKE without name and customization, SP 800-185 section 3.3.
const SHAKE_DOMAIN: u8 = 0x1f;

#[cfg(test)]
mod tests;
