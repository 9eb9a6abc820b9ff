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
//! root.absorb_head(head);
//! // Second, the leaves: pieces of whole chunks, best in multiples of eight, on any thread ...
//! for piece in chunks.chunks(64 * hash.chunk_len()) {
//!     let mut values = vec![0; hash.leaves_len(piece.len())];
//!     hash.leaves(kernel, piece, &mut values);
//!     // ... and their chaining values to the root, in the order of the message.
//!     root.absorb_leaves(&values);
//! }
//! // Third, what does not fill a chunk.
//! let mut digest = [0; 32];
//! root.finish(rest, &mut digest);
//! ```

use std::array::from_fn;

use crate::keccak::{KeccakKernel, LANES};
use crate::sponge::{Sponge, squeeze};

/// A tree hash and its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeHash {
    /// KT128, RFC 9861 section 3: TurboSHAKE128 over chunks of 8192 bytes, 128 bits of security.
    Kt128,
    /// ParallelHash256, SP 800-185 section 6: cSHAKE256 over blocks, 256 bits of security.
    ParallelHash256 {
        /// Bytes of a block, B in the standard; never 0. The digest depends on it.
        block_len: usize,
    },
}

impl TreeHash {
    /// ParallelHash256 with blocks of 8192 bytes.
    pub const PARALLEL_HASH_256: Self = Self::ParallelHash256 { block_len: 8192 };

    /// Bytes of a chunk.
    pub fn chunk_len(self) -> usize {
        match self {
            Self::Kt128 => KT_CHUNK_LEN,
            Self::ParallelHash256 { block_len } => block_len,
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
        len / self.chunk_len() * self.chaining_value_len()
    }

    /// Writes the chaining values of the chunks in `data` to `out`, eight chunks at a time.
    ///
    /// Panics unless `data` is whole chunks and `out` has [`Self::leaves_len`] of it.
    pub fn leaves(self, kernel: KeccakKernel, data: &[u8], out: &mut [u8]) {
        assert!(data.len().is_multiple_of(self.chunk_len()), "whole chunks");
        assert_eq!(out.len(), self.leaves_len(data.len()), "one chaining value for every chunk");
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

/// The sponge with `domain` over each of up to eight chunks of one length.
fn leaf_group<const RATE: usize, const ROUNDS: usize>(
    kernel: KeccakKernel,
    chunks: [Option<&[u8]>; LANES],
    domain: u8,
) -> [[u8; PH_CHAINING_VALUE_LEN]; LANES] {
    let mut bodies = [None; LANES];
    let mut last_blocks = [[0; RATE]; LANES];
    for ((chunk, body), last) in chunks.iter().zip(&mut bodies).zip(&mut last_blocks) {
        let Some(chunk) = chunk else { continue };
        let (blocks, rest) = chunk.split_at(chunk.len() - chunk.len() % RATE);
        *body = Some(blocks);
        last[..rest.len()].copy_from_slice(rest);
        last[rest.len()] = domain;
        last[RATE - 1] |= 0x80;
    }
    let mut values = [[0; PH_CHAINING_VALUE_LEN]; LANES];
    if let [Some(body), None, ..] = bodies {
        let mut state = [0; 25];
        kernel.absorb_one::<RATE, ROUNDS>(&mut state, body);
        kernel.absorb_one::<RATE, ROUNDS>(&mut state, &last_blocks[0]);
        squeeze(state.into_iter(), &mut values[0]);
        return values;
    }
    let mut states = [[0; LANES]; 25];
    kernel.absorb::<RATE, ROUNDS>(&mut states, bodies);
    let last_inputs = from_fn(|n| bodies[n].map(|_| last_blocks[n].as_slice()));
    kernel.absorb::<RATE, ROUNDS>(&mut states, last_inputs);
    for (n, value) in values.iter_mut().enumerate() {
        squeeze(states.iter().map(|words| words[n]), value);
    }
    values
}

/// The root of one message's tree: takes the head, the chaining values and the rest, in order.
pub struct Root {
    hash: TreeHash,
    kernel: KeccakKernel,
    sponge: RootSponge,
    /// KT128 appends it to the message, so it waits for the end; empty for ParallelHash256.
    customization: Vec<u8>,
    head_absorbed: bool,
    leaves: u64,
}

enum RootSponge {
    Kt128(Sponge<KT_RATE, KT_ROUNDS>),
    ParallelHash256(Sponge<PH_RATE, PH_ROUNDS>),
}

impl Root {
    /// The root of a message under the customization string `customization`, usually empty.
    ///
    /// Panics when the block length of ParallelHash256 is 0.
    pub fn new(hash: TreeHash, kernel: KeccakKernel, customization: &[u8]) -> Self {
        let (sponge, customization) = match hash {
            TreeHash::Kt128 => (RootSponge::Kt128(Sponge::new()), customization.to_vec()),
            TreeHash::ParallelHash256 { block_len } => {
                assert!(block_len > 0, "a block has at least one byte");
                let sponge = parallel_hash_root(kernel, customization, block_len as u64);
                (RootSponge::ParallelHash256(sponge), Vec::new())
            }
        };
        Self { hash, kernel, sponge, customization, head_absorbed: false, leaves: 0 }
    }

    /// Absorbs the first [`TreeHash::head_len`] bytes of the message.
    ///
    /// Call it before any leaf; leave it out, or pass nothing, for a message that is shorter.
    /// Panics when called twice or with another length.
    pub fn absorb_head(&mut self, head: &[u8]) {
        if head.is_empty() {
            return;
        }
        assert_eq!(head.len(), self.hash.head_len(), "the whole head");
        assert!(!self.head_absorbed, "one head");
        self.absorb(head);
        // RFC 9861, section 3.2: the mark between S_0 and the chaining values.
        self.absorb(&[3, 0, 0, 0, 0, 0, 0, 0]);
        self.head_absorbed = true;
    }

    /// Absorbs the chaining values of the next chunks.
    ///
    /// Panics unless they are whole, and while a head is missing.
    pub fn absorb_leaves(&mut self, chaining_values: &[u8]) {
        let len = self.hash.chaining_value_len();
        assert!(chaining_values.len().is_multiple_of(len), "whole chaining values");
        assert!(
            chaining_values.is_empty() || self.head_absorbed || self.hash.head_len() == 0,
            "the head before the leaves"
        );
        self.absorb(chaining_values);
        self.leaves += (chaining_values.len() / len) as u64;
    }

    /// Absorbs `rest`, the message after its last whole chunk, and fills `out`.
    ///
    /// The length of `out` is a parameter of ParallelHash256: a shorter digest is another one.
    /// Panics when `rest` has a whole chunk in it.
    pub fn finish(mut self, rest: &[u8], out: &mut [u8]) {
        assert!(rest.len() < self.hash.chunk_len(), "less than a chunk");
        match self.hash {
            TreeHash::Kt128 => {
                let domain = self.kt128_end(rest);
                self.squeeze(domain, out);
            }
            TreeHash::ParallelHash256 { .. } => {
                self.absorb_short_leaf(rest);
                self.absorb(&right_encode(self.leaves));
                self.absorb(&right_encode(8 * out.len() as u64));
                self.squeeze(CSHAKE_DOMAIN, out);
            }
        }
    }

    /// RFC 9861, section 3.2, from the last bytes of the message on; the domain byte.
    fn kt128_end(&mut self, rest: &[u8]) -> u8 {
        let mut end = rest.to_vec();
        end.append(&mut self.customization);
        let customization_len = end.len() - rest.len();
        end.extend(length_encode(customization_len as u64));
        let mut chunks = end.as_slice();
        if !self.head_absorbed {
            if end.len() <= KT_CHUNK_LEN {
                self.absorb(&end);
                return KT_SINGLE_DOMAIN;
            }
            let (head, leaves) = end.split_at(KT_CHUNK_LEN);
            self.absorb_head(head);
            chunks = leaves;
        }
        let (whole, rest) = chunks.split_at(chunks.len() - chunks.len() % KT_CHUNK_LEN);
        self.absorb_chunks(whole);
        self.absorb_short_leaf(rest);
        self.absorb(&length_encode(self.leaves));
        self.absorb(&[0xff, 0xff]);
        KT_FINAL_DOMAIN
    }

    /// Whole chunks of the message, the head among them, on this thread.
    fn absorb_chunks(&mut self, mut chunks: &[u8]) {
        if !self.head_absorbed && !chunks.is_empty() {
            let (head, leaves) = chunks.split_at(self.hash.head_len());
            self.absorb_head(head);
            chunks = leaves;
        }
        let mut values = [0; LEAVES_AT_ONCE * PH_CHAINING_VALUE_LEN];
        for group in chunks.chunks(LEAVES_AT_ONCE * self.hash.chunk_len()) {
            let values = &mut values[..self.hash.leaves_len(group.len())];
            self.hash.leaves(self.kernel, group, values);
            self.absorb_leaves(values);
        }
    }

    /// The last leaf, of fewer bytes than a chunk; none for no bytes.
    fn absorb_short_leaf(&mut self, rest: &[u8]) {
        if rest.is_empty() {
            return;
        }
        let mut chunks = [None; LANES];
        chunks[0] = Some(rest);
        let [value, ..] = self.hash.leaf_group(self.kernel, chunks);
        self.absorb_leaves(&value[..self.hash.chaining_value_len()]);
    }

    fn absorb(&mut self, data: &[u8]) {
        match &mut self.sponge {
            RootSponge::Kt128(sponge) => sponge.update(self.kernel, data),
            RootSponge::ParallelHash256(sponge) => sponge.update(self.kernel, data),
        }
    }

    fn squeeze(self, domain: u8, out: &mut [u8]) {
        match self.sponge {
            RootSponge::Kt128(sponge) => sponge.finish(self.kernel, domain, out),
            RootSponge::ParallelHash256(sponge) => sponge.finish(self.kernel, domain, out),
        }
    }
}

/// A tree hash of a message that comes in pieces, on one thread.
pub struct Hasher {
    root: Root,
    /// What waits for its eight chunks to be full.
    buffer: Vec<u8>,
}

impl Hasher {
    /// The hash of nothing so far, under the customization string `customization`.
    ///
    /// Panics when the block length of ParallelHash256 is 0.
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
            let rest = (data.len() - self.head_len()) % (LANES * self.root.hash.chunk_len());
            let (now, later) = data.split_at(data.len() - rest);
            self.root.absorb_chunks(now);
            data = later;
        }
        self.buffer.extend_from_slice(data);
    }

    /// Fills `out` with the digest; its length is a parameter of ParallelHash256.
    pub fn finish(mut self, out: &mut [u8]) {
        let whole = self.buffer.len() - self.buffer.len() % self.root.hash.chunk_len();
        let (chunks, rest) = self.buffer.split_at(whole);
        self.root.absorb_chunks(chunks);
        self.root.finish(rest, out);
    }

    /// Bytes that make eight leaves, with the head before them if that is still to come.
    fn group_len(&self) -> usize {
        self.head_len() + LANES * self.root.hash.chunk_len()
    }

    /// Bytes of the head that are still to come.
    fn head_len(&self) -> usize {
        if self.root.head_absorbed { 0 } else { self.root.hash.head_len() }
    }
}

/// cSHAKE256 with the name "ParallelHash", as far as the block length: SP 800-185, sections 3.3
/// and 6.3.
fn parallel_hash_root(
    kernel: KeccakKernel,
    customization: &[u8],
    block_len: u64,
) -> Sponge<PH_RATE, PH_ROUNDS> {
    let mut sponge = Sponge::new();
    sponge.update(kernel, &left_encode(PH_RATE as u64));
    for string in [b"ParallelHash", customization] {
        sponge.update(kernel, &left_encode(8 * string.len() as u64));
        sponge.update(kernel, string);
    }
    sponge.pad_block_with_zeros(kernel);
    sponge.update(kernel, &left_encode(block_len));
    sponge
}

/// SP 800-185, section 2.3.1.
fn left_encode(value: u64) -> Vec<u8> {
    let bytes = big_endian(value, 1);
    [&[bytes.len() as u8], bytes.as_slice()].concat()
}

/// SP 800-185, section 2.3.1.
fn right_encode(value: u64) -> Vec<u8> {
    with_count(big_endian(value, 1))
}

/// RFC 9861, section 3.3: like `right_encode`, but 0 has no bytes.
fn length_encode(value: u64) -> Vec<u8> {
    with_count(big_endian(value, 0))
}

fn with_count(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.push(bytes.len() as u8);
    bytes
}

/// The big-endian bytes of `value` without leading zeros, but at least `least` bytes.
fn big_endian(value: u64, least: usize) -> Vec<u8> {
    let used = (8 - value.leading_zeros() as usize / 8).max(least);
    value.to_be_bytes()[8 - used..].to_vec()
}

/// Chunks between two visits to the root: eight in each lane.
const LEAVES_AT_ONCE: usize = 8 * LANES;

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
