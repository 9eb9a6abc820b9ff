//! Parts that are cut anywhere, and the hash (SP 800-38D, 6.4), which takes blocks.

use zeroize::Zeroize;

use super::BLOCK_LEN;
use super::gcm_text::Text;

/// What a kernel of AES-GCM does for messages in parts, with one key.
pub(crate) trait PartsKernel {
    /// Encrypts or decrypts the next part of a message: key stream is made ahead, and the hash waits.
    fn short(&self, direction: Direction, message: &mut Parts, text: &mut Text<'_>);

    /// As [`PartsKernel::short`], but for a part of more than 96 bytes: it is encrypted and hashed in one loop.
    fn long(&self, direction: Direction, message: &mut Parts, text: &mut Text<'_>);

    /// Writes the tag of a message.
    fn tag(&self, message: &Parts, tag: &mut [u8; BLOCK_LEN]);

    /// Recovers the state of the hash from the tag: undoes its last steps, the lengths and what is unhashed.
    fn go_back(&self, inverse: &[u8; BLOCK_LEN], tag: &[u8; BLOCK_LEN], message: &mut Parts);

    /// The inverse of the hash key, for [`PartsKernel::go_back`].
    fn inverse(&self) -> [u8; BLOCK_LEN];

    /// Enciphers a block.
    fn block(&self, block: &[u8; BLOCK_LEN]) -> [u8; BLOCK_LEN];

    /// Goes on from a hash with blocks.
    fn hash(&self, hash: &mut u128, blocks: &[[u8; BLOCK_LEN]]);
}

/// Whether a part is encrypted or decrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Encrypt,
    Decrypt,
}

/// A message in parts, between two of them.
#[derive(Clone)]
pub(crate) struct Parts {
    /// The counter block that hides the tag (J0).
    pub first_counter: [u8; BLOCK_LEN],
    /// The additional data, all of it while nothing is hashed.
    pub aad: [u8; Parts::KEPT_AAD],
    /// Bytes of additional data.
    pub aad_len: u64,
    /// Bytes of the message so far.
    pub len: u64,
    /// True once something went through the hash.
    pub is_hashed: bool,
    /// The hash, in the order of memory, if a kernel of our own makes it. Whoever knows it and the ciphertext can
    /// compute the hash key.
    pub hash: u128,
    /// What the hash does not have yet.
    pub unhashed: Unhashed,
    /// The key stream for short parts.
    pub key_stream: KeyStream,
}

impl Parts {
    /// Bytes of additional data that are kept until the message begins.
    pub const KEPT_AAD: usize = 2 * BLOCK_LEN;

    /// No message yet.
    pub const fn new(first_counter: [u8; BLOCK_LEN]) -> Self {
        Self {
            first_counter,
            aad: [0; Self::KEPT_AAD],
            aad_len: 0,
            len: 0,
            is_hashed: false,
            hash: 0,
            unhashed: Unhashed::NOTHING,
            key_stream: KeyStream::NOTHING,
        }
    }

    /// How far the counter of the next block, which may be begun already, is behind the first counter.
    #[cfg(target_arch = "x86_64")]
    pub fn block(&self) -> u32 {
        // Of a counter 32 bits count.
        (self.len / BLOCK_LEN as u64 + 1) as u32
    }

    /// All additional data, if the hash has none of it.
    #[inline(always)]
    pub fn kept_aad(&self) -> Option<&[u8]> {
        self.aad.get(..self.aad_len as usize).filter(|_| !self.is_hashed)
    }

    /// The IV of the usual 96 bits, and all additional data that is kept.
    #[inline(always)]
    pub fn nonce_and_aad(&self) -> (&[u8; 12], &[u8]) {
        let nonce = self.first_counter.first_chunk().expect("a block is longer");
        (nonce, self.kept_aad().unwrap_or_default())
    }

    /// Forgets and wipes what would help to forge.
    #[inline(always)]
    pub fn wipe(&mut self) {
        if self.is_hashed {
            self.hash.zeroize();
            self.is_hashed = false;
        }
        if self.key_stream.is_made {
            self.key_stream.wipe();
        }
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        self.wipe();
    }
}

/// Key stream that was made ahead of the text: some blocks take hardly longer than one.
///
/// It lies as registers store it: what a load takes from one that was just stored need not wait.
#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct KeyStream {
    /// The key stream, the block that hides the tag, and what a register may read behind.
    pub blocks: [u128; (KeyStream::LEN + REGISTER) / BLOCK_LEN + 1],
    /// Where the key stream of the next byte of the text is; [`KeyStream::LEN`] if it was not made.
    pub next: usize,
    /// True if it was made for this message.
    pub is_made: bool,
    /// True if more was made than [`KeyStream::FEW`] blocks.
    pub is_long: bool,
}

impl KeyStream {
    /// Bytes of the most that is made at once.
    pub const LEN: usize = 15 * BLOCK_LEN;
    /// Where the block is that hides the tag.
    pub const MASK: usize = Self::LEN / BLOCK_LEN;
    /// Blocks that are made for very short parts, with the one that hides the tag. They are the last.
    const FEW: usize = 8;

    pub const NOTHING: Self = Self {
        blocks: [0; (Self::LEN + REGISTER) / BLOCK_LEN + 1],
        next: Self::LEN,
        is_made: false,
        is_long: false,
    };

    /// Forgets and wipes it.
    #[inline(never)]
    fn wipe(&mut self) {
        let (front, few) = self.blocks.split_at_mut(Self::MASK + 1 - Self::FEW);
        few[..Self::FEW].zeroize();
        if self.is_long {
            front.zeroize();
        }
        (self.next, self.is_made, self.is_long) = (Self::LEN, false, false);
    }
}

/// Bytes that the hash does not have yet: ciphertext, or additional data. They lie as registers load them.
#[derive(Clone)]
#[repr(align(64))]
pub(crate) struct Unhashed {
    /// The bytes, and some that a register may read and write.
    pub bytes: [u8; Unhashed::MOST + REGISTER],
    pub len: usize,
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

impl Unhashed {
    pub const NOTHING: Self = Self { bytes: [0; Self::MOST + REGISTER], len: 0 };
    /// Bytes that it holds at most.
    pub const MOST: usize = 256;

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// Takes the end of some bytes that is not a whole block.
    #[inline(always)]
    pub fn take_end(&mut self, bytes: &[u8]) {
        let end = bytes.as_chunks::<BLOCK_LEN>().1;
        if !end.is_empty() {
            copy_short(&mut self.bytes[..end.len()], end);
        }
        self.len = end.len();
    }

    /// Takes more bytes; `hash` gets all blocks that are whole then.
    pub fn absorb(&mut self, mut bytes: &[u8], mut hash: impl FnMut(&[[u8; BLOCK_LEN]])) {
        if self.len > 0 {
            let wanted = self.len.next_multiple_of(BLOCK_LEN) - self.len;
            let (now, rest) = bytes.split_at(bytes.len().min(wanted));
            self.bytes[self.len..][..now.len()].copy_from_slice(now);
            self.len += now.len();
            if now.len() < wanted {
                return;
            }
            hash(self.bytes().as_chunks().0);
            bytes = rest;
        }
        let (blocks, end) = bytes.as_chunks();
        if !blocks.is_empty() {
            hash(blocks);
        }
        self.bytes[..end.len()].copy_from_slice(end);
        self.len = end.len();
    }

    /// `hash` gets the bytes with zeros up to a whole block.
    pub fn fill_block(&mut self, hash: impl FnOnce(&[[u8; BLOCK_LEN]])) {
        if self.len > 0 {
            let whole = self.len.next_multiple_of(BLOCK_LEN);
            self.bytes[self.len..whole].fill(0);
            hash(self.bytes[..whole].as_chunks().0);
            self.len = 0;
        }
    }
}

/// Bytes of the widest register.
const REGISTER: usize = 64;
