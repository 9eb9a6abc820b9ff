//! HMAC (FIPS 198-1, RFC 2104) with SHA-1 and SHA-2: a key, and the MAC of one message.

use std::fmt;

use zeroize::{Zeroize, zeroize_stack};

use crate::error::Error;
use crate::sha::{
    Compression, SHA_1, SHA_256, SHA_384, SHA_512, Sha1, Sha256, Sha512, ShaKernel, Word,
};

/// A hash function in HMAC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum HmacAlgorithm {
    /// HMAC-SHA-1, for protocols that have nothing later.
    Sha1,
    /// HMAC-SHA-256.
    Sha256,
    /// HMAC-SHA-384.
    Sha384,
    /// HMAC-SHA-512.
    Sha512,
}

impl HmacAlgorithm {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Sha1, Self::Sha256, Self::Sha384, Self::Sha512];

    /// Bytes of the tag of the longest.
    pub const MOST_TAG_LEN: usize = 64;

    /// Bytes of a tag: 20, 32, 48 or 64.
    pub const fn tag_len(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }

    /// Messages that the widest kernel works on at once.
    pub const fn lanes(self) -> usize {
        match self {
            Self::Sha1 | Self::Sha256 => 16,
            Self::Sha384 | Self::Sha512 => 8,
        }
    }

    /// The name for tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sha1 => "hmac-sha1",
            Self::Sha256 => "hmac-sha256",
            Self::Sha384 => "hmac-sha384",
            Self::Sha512 => "hmac-sha512",
        }
    }
}

impl fmt::Display for HmacAlgorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A key of HMAC: the states of the hash after the inner and the outer pad. Wiped on drop.
pub struct HmacKey {
    pub(crate) algorithm: HmacAlgorithm,
    pub(crate) kernel: ShaKernel,
    pub(crate) pads: AnyPads,
}

impl Drop for HmacKey {
    fn drop(&mut self) {
        // The compressions keep states on the stack. They are wiped once, here, and not after each
        // message.
        zeroize_stack::<DEAD_STACK>();
    }
}

/// Bytes of the stack below the owner of a key in which its MACs may have left states.
const DEAD_STACK: usize = 12 * 1024;

/// The states of whichever hash. Boxed, so that moving the key leaves no copy behind.
pub(crate) enum AnyPads {
    Sha1(Box<Pads<Sha1, 16, 64>>),
    Sha256(Box<Pads<Sha256, 16, 64>>),
    Sha512(Box<Pads<Sha512, 8, 128>>),
}

/// The hash states after the inner and the outer pad, which stand for the key.
pub(crate) struct Pads<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize> {
    pub(crate) inner: [H::Word; 8],
    pub(crate) outer: [H::Word; 8],
}

/// Runs code that is the same for all hashes on the states of one.
macro_rules! on_pads {
    ($key:expr, $pads:ident => $run:expr) => {
        match &$key.pads {
            $crate::hmac::key::AnyPads::Sha1($pads) => $run,
            $crate::hmac::key::AnyPads::Sha256($pads) => $run,
            $crate::hmac::key::AnyPads::Sha512($pads) => $run,
        }
    };
}
pub(crate) use on_pads;

impl HmacKey {
    /// A key of any length, for this CPU's best kernel.
    pub fn new(algorithm: HmacAlgorithm, key: &[u8]) -> Self {
        Self::with_kernel(ShaKernel::best(), algorithm, key)
    }

    /// A key of any length, for `kernel`.
    pub fn with_kernel(kernel: ShaKernel, algorithm: HmacAlgorithm, key: &[u8]) -> Self {
        let len = algorithm.tag_len();
        let pads = match algorithm {
            HmacAlgorithm::Sha1 => AnyPads::Sha1(Pads::new(SHA_1, len, key)),
            HmacAlgorithm::Sha256 => AnyPads::Sha256(Pads::new(SHA_256, len, key)),
            HmacAlgorithm::Sha384 => AnyPads::Sha512(Pads::new(SHA_384, len, key)),
            HmacAlgorithm::Sha512 => AnyPads::Sha512(Pads::new(SHA_512, len, key)),
        };
        Self { algorithm, kernel, pads }
    }

    /// What the key is for.
    pub fn algorithm(&self) -> HmacAlgorithm {
        self.algorithm
    }

    /// The kernel that works with this key.
    pub fn kernel(&self) -> ShaKernel {
        self.kernel
    }

    /// The MAC of one message, which comes in parts.
    ///
    /// # Errors
    /// [`Error::BufferLength`] if `tag` has another length than the algorithm's tags.
    pub fn sign(&self, parts: &[&[u8]], tag: &mut [u8]) -> Result<(), Error> {
        self.check_tag_len(tag)?;
        on_pads!(self, pads => pads.sign(parts, tag));
        Ok(())
    }

    pub(crate) fn check_tag_len(&self, tag: &[u8]) -> Result<(), Error> {
        let (len, expected) = (tag.len(), self.algorithm.tag_len());
        if len == expected { Ok(()) } else { Err(Error::BufferLength { len, expected }) }
    }
}

impl<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize> Pads<H, LANES, BLOCK> {
    /// FIPS 198-1, section 4, steps 1 to 4 and 7: as much of each hash as only depends on the key.
    fn new(initial: [H::Word; 8], tag_len: usize, key: &[u8]) -> Box<Self> {
        let mut padded = [0; BLOCK];
        if key.len() <= BLOCK {
            padded[..key.len()].copy_from_slice(key);
        } else {
            let mut state = hash::<H, LANES, BLOCK>(initial, 0, &[key]);
            write_state(&state, &mut padded[..tag_len]);
            state.zeroize();
        }
        let mut pads = Box::new(Self { inner: initial, outer: initial });
        padded.iter_mut().for_each(|byte| *byte ^= 0x36);
        H::compress(&mut pads.inner, &[padded]);
        padded.iter_mut().for_each(|byte| *byte ^= 0x36 ^ 0x5c);
        H::compress(&mut pads.outer, &[padded]);
        padded.zeroize();
        pads
    }

    pub(crate) fn sign(&self, parts: &[&[u8]], tag: &mut [u8]) {
        let inner = hash::<H, LANES, BLOCK>(self.inner, BLOCK, parts);
        self.finish(&inner, tag);
    }

    /// The tag, from the state that the inner hash ended with.
    pub(crate) fn finish(&self, inner: &[H::Word; 8], tag: &mut [u8]) {
        let mut state = self.outer;
        H::compress(&mut state, &[self.outer_block(inner, tag.len())]);
        write_state(&state, tag);
    }

    /// The only block of the outer hash behind its pad: a digest fits into it with its padding
    /// (FIPS 180-4, section 5.1).
    pub(crate) fn outer_block(&self, inner: &[H::Word; 8], tag_len: usize) -> [u8; BLOCK] {
        let mut block = [0; BLOCK];
        write_state(inner, &mut block[..tag_len]);
        block[tag_len] = 0x80;
        let bits = 8 * (BLOCK + tag_len) as u64;
        *block.last_chunk_mut().expect("a block is longer") = bits.to_be_bytes();
        block
    }
}

impl<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize> Drop
    for Pads<H, LANES, BLOCK>
{
    fn drop(&mut self) {
        self.inner.zeroize();
        self.outer.zeroize();
    }
}

/// The state after the message in `parts` and its padding, from a state that has taken in
/// `before` bytes, whole blocks.
fn hash<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize>(
    mut state: [H::Word; 8],
    before: usize,
    parts: &[&[u8]],
) -> [H::Word; 8] {
    let mut partial = [[0; BLOCK]; 2];
    let mut filled = 0;
    for mut part in parts.iter().copied() {
        if filled > 0 {
            let (head, rest) = part.split_at(part.len().min(BLOCK - filled));
            partial[0][filled..][..head.len()].copy_from_slice(head);
            (part, filled) = (rest, filled + head.len());
            if filled < BLOCK {
                continue;
            }
            H::compress(&mut state, &partial[..1]);
        }
        let (blocks, rest) = part.as_chunks();
        H::compress(&mut state, blocks);
        partial[0][..rest.len()].copy_from_slice(rest);
        filled = rest.len();
    }
    let len = before + parts.iter().map(|part| part.len()).sum::<usize>();
    let blocks = pad(&mut partial, filled, len);
    H::compress(&mut state, &partial[..blocks]);
    state
}

/// Pads a message of `len` bytes whose last `filled` stand in `last` (FIPS 180-4, section 5.1), and
/// returns the number of blocks that this makes.
pub(crate) fn pad<const BLOCK: usize>(
    last: &mut [[u8; BLOCK]; 2],
    filled: usize,
    len: usize,
) -> usize {
    let blocks = if filled + 1 + length_len(BLOCK) <= BLOCK { 1 } else { 2 };
    let bytes = &mut last.as_flattened_mut()[..blocks * BLOCK];
    bytes[filled..].fill(0);
    bytes[filled] = 0x80;
    *bytes.last_chunk_mut().expect("a block is longer") = (8 * len as u64).to_be_bytes();
    blocks
}

/// Bytes of the message's length at the end of its padding.
pub(crate) const fn length_len(block: usize) -> usize {
    block / 8
}

/// Writes the first words of a state, which are whole in every tag.
pub(crate) fn write_state<W: Word>(state: &[W; 8], bytes: &mut [u8]) {
    for (bytes, word) in bytes.chunks_exact_mut(size_of::<W>()).zip(state) {
        word.write(bytes);
    }
}
