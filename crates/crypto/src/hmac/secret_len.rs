//! HMAC of a message whose length is secret, in a time that does not depend on it.
//!
//! The hash always takes as many blocks as the longest message would; the state after the block that
//! is really the last is kept by a mask, as OpenSSL and AWS-LC do it.
//!
//! Secret lengths are added with `wrapping_add` and its like: they never wrap, but a build that
//! checks it would branch on them.

use std::hint::black_box;

use zeroize::Zeroize;

use super::key::{HmacAlgorithm, HmacKey, Pads, length_len, on_pads};
use crate::error::Error;
use crate::mask::{equal, less};
use crate::sha::{Compression, Word};

impl HmacKey {
    /// The MAC of `header` and the first `len` bytes of `longest`, into the first bytes of `tag`: as
    /// many as the algorithm's tags have.
    ///
    /// `len` is a secret, but not less than `shortest`, and not more than `longest` has: for any other
    /// the tag is of no message. The time depends on the other lengths, and grows by that of a block of
    /// the hash for each that may or may not be in the message.
    ///
    /// # Errors
    /// [`Error::MessageTooLong`] if `longest` has more than 2^30 bytes.
    pub fn sign_secret_len<const HEADER: usize>(
        &self,
        header: &[u8; HEADER],
        longest: &[u8],
        shortest: usize,
        len: u32,
        tag: &mut [u8; HmacAlgorithm::MOST_TAG_LEN],
    ) -> Result<(), Error> {
        const { assert!(HEADER <= 64, "a header fits into a block of every hash") };
        if longest.len() > MOST_LEN {
            return Err(Error::MessageTooLong(longest.len()));
        }
        let tag = &mut tag[..self.algorithm.tag_len()];
        on_pads!(self, pads => sign(pads, header, longest, shortest, len, tag));
        Ok(())
    }
}

/// So that all lengths are less than 2^31.
const MOST_LEN: usize = 1 << 30;

/// Part of its caller: behind a call, short messages take 5 % longer.
#[inline(always)]
fn sign<
    H: Compression<LANES, BLOCK>,
    const LANES: usize,
    const BLOCK: usize,
    const HEADER: usize,
>(
    pads: &Pads<H, LANES, BLOCK>,
    header: &[u8; HEADER],
    longest: &[u8],
    shortest: usize,
    len: u32,
    tag: &mut [u8],
) {
    let mut state = pads.inner;
    // What is certainly in the message goes the short way, as far as it fills blocks.
    let certain = (HEADER + shortest.min(longest.len())) / BLOCK;
    let mut rest = longest;
    if let Some(others) = certain.checked_sub(1) {
        let mut first = [0; BLOCK];
        first[..HEADER].copy_from_slice(header);
        first[HEADER..].copy_from_slice(take(&mut rest, BLOCK - HEADER));
        H::compress(&mut state, &[first]);
        H::compress(&mut state, take(&mut rest, others * BLOCK).as_chunks().0);
    }
    let len = len.wrapping_add(HEADER as u32);
    let log = BLOCK.trailing_zeros();
    let last = len.wrapping_add(length_len(BLOCK) as u32) >> log;
    let bits = u64::from(len).wrapping_add(BLOCK as u64).wrapping_mul(8).to_be_bytes();
    let last_of_longest = (HEADER + longest.len() + length_len(BLOCK)) >> log;
    let mut inner = [H::Word::default(); 8];
    for index in certain..=last_of_longest {
        let mut block = [0; BLOCK];
        let from = if index == 0 { HEADER } else { 0 };
        if index == 0 {
            block[..HEADER].copy_from_slice(header);
        }
        let head = take(&mut rest, BLOCK - from);
        block[from..][..head.len()].copy_from_slice(head);
        // Where the message ends, from the beginning of this block, as far as it matters.
        let end = black_box(clamp(len.wrapping_sub((index << log) as u32), BLOCK as u32 + 1));
        for (place, byte) in block.iter_mut().enumerate() {
            let to_end = (place as i16).wrapping_sub(end);
            let (inside, at) = (to_end >> 15, (to_end.wrapping_sub(1) & !to_end) >> 15);
            *byte = (*byte & inside as u8) | (0x80 & at as u8);
        }
        let is_last = black_box(equal(index as u32, last)) as u8;
        for (byte, bits) in block[BLOCK - bits.len()..].iter_mut().zip(bits) {
            *byte |= bits & is_last;
        }
        H::compress(&mut state, &[block]);
        for (kept, word) in inner.iter_mut().zip(state) {
            *kept |= word & H::Word::repeat(is_last);
        }
    }
    pads.finish(&inner, tag);
    state.zeroize();
    inner.zeroize();
}

/// Removes up to `len` bytes from the front and returns them.
fn take<'b>(bytes: &mut &'b [u8], len: usize) -> &'b [u8] {
    bytes.split_off(..len.min(bytes.len())).unwrap_or_default()
}

/// The difference of two numbers less than 2^31, no less than -1 and no more than `most`.
#[inline]
fn clamp(difference: u32, most: u32) -> i16 {
    let negative = (difference.cast_signed() >> 31).cast_unsigned();
    let small = less(difference, most);
    // Of a negative one, `small` may say anything.
    ((difference & small | most & !small) & !negative | negative) as i16
}
