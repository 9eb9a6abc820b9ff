//! AES-GCM (NIST SP 800-38D) of whole messages: what the kernels `gcm_*` have in common.
//!
//! A message is worked on with two *virtual blocks* in front. For the cipher they are the counters 0, which
//! has no use, and 1, which hides the tag; for the hash they are the additional data. So the encryption of the
//! tag's mask and the hash of the additional data cost nothing of their own, and no register ever holds
//! counters that differ in more than their last byte.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::BLOCK_LEN;
use super::cpu::{GcmAesNi, GcmVaes256, GcmVaes512};
use super::gcm_parts::{Direction, Parts, PartsKernel};
use super::gcm_text::Text;
use super::round_keys::MOST_ROUNDS;

/// A key for one kernel.
pub(crate) struct Key {
    pub(super) tables: Box<Tables>,
    pub(super) rounds: usize,
    pub(super) works: &'static Works,
    pub(super) terms: OnceLock<Box<Terms>>,
    /// Long messages that were worked on in parts, to do without terms.
    pub(super) long: AtomicU32,
    pub(super) _proof: Proof,
}

/// Proof that the CPU has what a kernel needs.
pub(super) enum Proof {
    Vaes512(#[allow(dead_code, reason = "it is enough that there is one")] GcmVaes512),
    Vaes256(#[allow(dead_code, reason = "it is enough that there is one")] GcmVaes256),
    AesNi(#[allow(dead_code, reason = "it is enough that there is one")] GcmAesNi),
}

/// What every message needs. Wiped on drop.
#[repr(C)]
pub(super) struct Tables {
    /// The powers of the hash key from [`MOST_POWER`] down to 1, and zeros behind, so that the powers for any
    /// number of blocks lie in a row.
    pub powers: [[u8; BLOCK_LEN]; MOST_POWER + SPARE],
    /// [`Terms`] of the counters that a short message has.
    pub first_terms: [[u8; BLOCK_LEN]; FIRST_TERMS],
    /// The round keys, and zeros.
    pub round_keys: [[u8; BLOCK_LEN]; MOST_ROUNDS + 1],
}

/// What the first round makes of the last byte of a counter block.
///
/// Counters that agree in all but their last byte agree, after the first round, in three of their four columns,
/// and the fourth is a sum in which that byte has a term of its own. So the round is done once for 256
/// blocks, and each block adds its term: one XOR instead of making a counter, adding the first round key, and a
/// round. The index is the counter, which is no secret.
#[repr(align(64))]
pub(super) struct Terms(pub [[u8; BLOCK_LEN]; 256]);

/// The most blocks that are hashed before a reduction, with the block of lengths.
pub(super) const MOST_POWER: usize = 36;
/// Blocks of zeros behind the powers.
const SPARE: usize = 4;
/// Counters whose terms every key has: of messages up to 736 bytes.
pub(super) const FIRST_TERMS: usize = 48;
/// Bytes of the longest message that is worked on with [`FIRST_TERMS`].
pub(super) const FIRST_TERMS_LAST: usize = (FIRST_TERMS - 2) * BLOCK_LEN;

/// Bytes of a message that is worth [`Terms`] by itself.
const WORTH_TERMS: usize = 8 << 10;
/// Times that shorter ones were not, after which they are made.
const MOST_IN_PARTS: u32 = 8;

/// Bytes of the longest message that has a work for its length.
pub(super) const MOST_SHORT: usize = 240;

/// How a message of some length is sealed, or opened without a look at the tag, which goes to the last place.
pub(super) type Work = unsafe fn(&Key, &[u8; 12], &[u8], &Text<'_>, &mut [u8; BLOCK_LEN]);

/// The works for messages by their number of blocks.
pub(super) struct Works {
    pub seal: [Work; WORKS],
    pub open: [Work; WORKS],
    /// For messages in parts, if this kernel has code for those.
    pub parts: Option<PartWorks>,
}

/// What [`PartsKernel`] does.
pub(super) struct PartWorks {
    pub seal_short: PartWork,
    pub open_short: PartWork,
    pub seal_long: PartWork,
    pub open_long: PartWork,
    pub tag: unsafe fn(&Key, &Parts, &mut [u8; BLOCK_LEN]),
    pub go_back: unsafe fn(&Key, &[u8; BLOCK_LEN], &[u8; BLOCK_LEN], &mut Parts),
    pub inverse: unsafe fn(&Key) -> [u8; BLOCK_LEN],
    pub block: unsafe fn(&Key, &[u8; BLOCK_LEN]) -> [u8; BLOCK_LEN],
    pub hash: unsafe fn(&Key, &mut u128, &[[u8; BLOCK_LEN]]),
}

/// How a part of a message is sealed or opened.
pub(super) type PartWork = unsafe fn(&Key, &mut Parts, &mut Text<'_>);

/// Lengths in blocks that have a work of their own, and one for all that are longer.
pub(super) const WORKS: usize = MOST_SHORT / BLOCK_LEN + 2;

/// Where in [`Works`] a message of that many bytes is.
#[inline]
pub(super) fn work_index(total: usize) -> usize {
    total.div_ceil(BLOCK_LEN).min(MOST_SHORT / BLOCK_LEN + 1)
}

impl Key {
    pub(super) fn new(
        tables: Box<Tables>,
        rounds: usize,
        works: &'static Works,
        proof: Proof,
    ) -> Self {
        let (terms, long) = (OnceLock::new(), AtomicU32::new(0));
        Self { tables, rounds, works, terms, long, _proof: proof }
    }

    /// Encrypts a text and writes its tag.
    #[inline]
    pub fn seal(&self, nonce: &[u8; 12], aad: &[u8], text: &Text<'_>, tag: &mut [u8; BLOCK_LEN]) {
        self.apply(&self.works.seal, nonce, aad, text, tag);
    }

    /// Decrypts a text and writes the tag that it should have. The caller compares it, and wipes the
    /// text if it has another.
    #[inline]
    pub fn open(&self, nonce: &[u8; 12], aad: &[u8], text: &Text<'_>, tag: &mut [u8; BLOCK_LEN]) {
        self.apply(&self.works.open, nonce, aad, text, tag);
    }

    /// Whether a message of `len` bytes is best worked on as a whole: a long one wants [`Terms`], which take as long to
    /// make as some kilobytes to seal, and a key may have but one message.
    #[inline]
    pub fn is_whole_best(&self, len: usize) -> bool {
        len <= FIRST_TERMS_LAST
            || self.terms.get().is_some()
            || len >= WORTH_TERMS
            || self.works.parts.is_none()
            || self.long.fetch_add(1, Ordering::Relaxed) >= MOST_IN_PARTS
    }

    /// The key for messages in parts.
    pub fn parts(&self) -> Option<&dyn PartsKernel> {
        self.works.parts.is_some().then_some(self as &dyn PartsKernel)
    }

    /// The key that this was expanded from: the first of the round keys.
    pub fn raw(&self) -> &[u8] {
        &self.tables.round_keys.as_flattened()[..4 * (self.rounds - 6)]
    }
}

impl Key {
    #[inline]
    fn apply(
        &self,
        works: &[Work; WORKS],
        nonce: &[u8; 12],
        aad: &[u8],
        text: &Text<'_>,
        tag: &mut [u8; BLOCK_LEN],
    ) {
        let work = works[work_index(text.total())];
        // SAFETY: `_proof` says that the CPU has what the kernel needs.
        unsafe { work(self, nonce, aad, text, tag) };
    }

    fn part_works(&self) -> &'static PartWorks {
        self.works.parts.as_ref().expect("only keys with such works are lent")
    }
}

impl PartsKernel for Key {
    fn short(&self, direction: Direction, message: &mut Parts, text: &mut Text<'_>) {
        let works = self.part_works();
        let work = match direction {
            Direction::Encrypt => works.seal_short,
            Direction::Decrypt => works.open_short,
        };
        // SAFETY: `_proof` says that the CPU has what the kernel needs.
        unsafe { work(self, message, text) }
    }

    fn long(&self, direction: Direction, message: &mut Parts, text: &mut Text<'_>) {
        let works = self.part_works();
        let work = match direction {
            Direction::Encrypt => works.seal_long,
            Direction::Decrypt => works.open_long,
        };
        // SAFETY: `_proof` says that the CPU has what the kernel needs.
        unsafe { work(self, message, text) }
    }

    fn tag(&self, message: &Parts, tag: &mut [u8; BLOCK_LEN]) {
        // SAFETY: `_proof` says that the CPU has what the kernel needs.
        unsafe { (self.part_works().tag)(self, message, tag) }
    }

    fn go_back(&self, inverse: &[u8; BLOCK_LEN], tag: &[u8; BLOCK_LEN], message: &mut Parts) {
        // SAFETY: `_proof` says that the CPU has what the kernel needs.
        unsafe { (self.part_works().go_back)(self, inverse, tag, message) }
    }

    fn inverse(&self) -> [u8; BLOCK_LEN] {
        // SAFETY: `_proof` says that the CPU has what the kernel needs.
        unsafe { (self.part_works().inverse)(self) }
    }

    fn block(&self, block: &[u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
        // SAFETY: `_proof` says that the CPU has what the kernel needs.
        unsafe { (self.part_works().block)(self, block) }
    }

    fn hash(&self, hash: &mut u128, blocks: &[[u8; BLOCK_LEN]]) {
        // SAFETY: `_proof` says that the CPU has what the kernel needs.
        unsafe { (self.part_works().hash)(self, hash, blocks) }
    }
}
