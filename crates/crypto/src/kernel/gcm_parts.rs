//! Parts that are cut anywhere, and the hash (SP 800-38D, 6.4), which takes blocks.

use super::BLOCK_LEN;
use super::gcm_text::Text;

/// What a kernel of AES-GCM does for messages in parts, with one key.
pub(crate) trait PartsKernel {
    /// Encrypts the next part of a message and hashes it. Its first block, of which `held` has the bytes before it, has
    /// the counter that comes so many blocks behind the first.
    fn seal(
        &self,
        first_counter: &[u8; BLOCK_LEN],
        blocks: u32,
        hash: &mut [u8; BLOCK_LEN],
        held: &mut Held,
        text: Text<'_>,
    );

    /// As [`PartsKernel::seal`], but decrypts.
    fn open(
        &self,
        first_counter: &[u8; BLOCK_LEN],
        blocks: u32,
        hash: &mut [u8; BLOCK_LEN],
        held: &mut Held,
        text: Text<'_>,
    );

    /// Enciphers a block.
    fn block(&self, block: &[u8; BLOCK_LEN]) -> [u8; BLOCK_LEN];

    /// Goes on from a hash with blocks.
    fn hash(&self, before: &mut [u8; BLOCK_LEN], blocks: &[[u8; BLOCK_LEN]]);

    /// The inverse of the hash key, for [`PartsKernel::divide`].
    fn inverse(&self) -> [u8; BLOCK_LEN];

    /// Takes back one step of the hash.
    fn divide(&self, inverse: &[u8; BLOCK_LEN], block: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN];
}

/// Copies some bytes into a place of their length: few of them without a call of the C library, which would take as long
/// as a block.
#[inline]
pub(crate) fn copy_short(to: &mut [u8], from: &[u8]) {
    fn halves<const N: usize>(to: &mut [u8], from: &[u8]) -> Option<()> {
        *to.first_chunk_mut::<N>()? = *from.first_chunk()?;
        *to.last_chunk_mut::<N>()? = *from.last_chunk()?;
        Some(())
    }
    let done = match from.len() {
        0 => Some(()),
        1..4 => halves::<1>(to, from).and_then(|()| {
            *to.get_mut(from.len() / 2)? = from[from.len() / 2];
            Some(())
        }),
        4..8 => halves::<4>(to, from),
        8..16 => halves::<8>(to, from),
        16..=32 => halves::<16>(to, from),
        _ => None,
    };
    if done.is_none() {
        to.copy_from_slice(from);
    }
}

/// The bytes of a block that is not whole yet.
#[derive(Clone)]
pub(crate) struct Held {
    /// The bytes, and zeros.
    pub block: [u8; BLOCK_LEN],
    pub len: usize,
}

impl Held {
    pub const NOTHING: Self = Self { block: [0; BLOCK_LEN], len: 0 };

    /// The end of some bytes that is not a whole block.
    #[inline(always)]
    pub fn end_of(bytes: &[u8]) -> Self {
        let (mut block, end) = ([0; BLOCK_LEN], bytes.as_chunks::<BLOCK_LEN>().1);
        if !end.is_empty() {
            copy_short(&mut block[..end.len()], end);
        }
        Self { block, len: end.len() }
    }

    /// Takes more bytes; `hash` gets all blocks that are whole then.
    pub fn absorb(&mut self, mut bytes: &[u8], mut hash: impl FnMut(&[[u8; BLOCK_LEN]])) {
        if self.len > 0 {
            let (now, rest) = bytes.split_at(bytes.len().min(BLOCK_LEN - self.len));
            self.block[self.len..][..now.len()].copy_from_slice(now);
            self.len += now.len();
            if self.len < BLOCK_LEN {
                return;
            }
            hash(&[self.block]);
            bytes = rest;
        }
        let blocks = bytes.as_chunks().0;
        if !blocks.is_empty() {
            hash(blocks);
        }
        *self = Self::end_of(bytes);
    }

    /// `hash` gets the bytes with zeros up to a whole block.
    pub fn fill_block(&mut self, hash: impl FnOnce(&[[u8; BLOCK_LEN]])) {
        if self.len > 0 {
            hash(&[self.block]);
            *self = Self::NOTHING;
        }
    }
}
