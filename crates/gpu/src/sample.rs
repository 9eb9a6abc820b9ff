//! A part of each piece, chosen at random, that the CPU computes, too: what a device does wrong every
//! time, both of its results have in common.

use wattlock_engine::crypto::{TAG_LEN, random};
use wattlock_engine::{Cipher, Job, Operation};
use zeroize::Zeroizing;

use crate::piece_output::PieceOutput;
use crate::task::BLOCK;

/// Compares a part of what was `made` of `input`, the chunks from `first` on, with what the CPU makes
/// of it.
///
/// # Errors
/// That they differ.
pub(crate) fn check(
    job: &Job<'_>,
    first: u64,
    last: bool,
    input: &[u8],
    made: &PieceOutput<'_>,
) -> Result<(), &'static str> {
    let same = match job.cipher {
        Cipher::Aead { operation, .. } => aead(job, operation, first, last, input, made),
        Cipher::CbcEncrypt { .. } => chain(job, first, input, made),
        _ => blocks(job, first, input, made),
    };
    if same { Ok(()) } else { Err("the CPU computed a different result") }
}

/// One whole chunk, and its tag.
fn aead(
    job: &Job<'_>,
    operation: Operation,
    first: u64,
    last: bool,
    input: &[u8],
    made: &PieceOutput<'_>,
) -> bool {
    let slot_len = job.slot_len();
    let count = input.len().div_ceil(slot_len);
    let chunk = below(count);
    let at = chunk * slot_len;
    let end = (at + slot_len).min(input.len());
    let mut own = Zeroizing::new(input[at..end].to_vec());
    let is_last = last && chunk + 1 == count;
    let Some(text_len) = own.len().checked_sub(TAG_LEN) else { return true };
    if job.apply(first + chunk as u64, is_last, &mut own).is_err() {
        // A message that is not authentic is found by its tag, and the CPU then says which it is.
        return operation == Operation::Open;
    }
    let text = made.bytes[at..].get(..text_len).is_some_and(|text| *text == own[..text_len]);
    let tag = operation == Operation::Open
        || made.tags.get(chunk).is_some_and(|tag| *tag == own[text_len..]);
    text && tag
}

/// The beginning of a chain.
fn chain(job: &Job<'_>, first: u64, input: &[u8], made: &PieceOutput<'_>) -> bool {
    let chunk = below(input.len().div_ceil(job.chunk_len));
    let at = chunk * job.chunk_len;
    let end = (at + job.chunk_len.min(SAMPLE)).min(input.len());
    let mut own = Zeroizing::new(input[at..end].to_vec());
    job.apply(first + chunk as u64, false, &mut own).is_ok() && *own == made.bytes[at..end]
}

/// Some blocks of what has no chains.
fn blocks(job: &Job<'_>, first: u64, input: &[u8], made: &PieceOutput<'_>) -> bool {
    let count = input.len().div_ceil(BLOCK);
    let at = below(count) * BLOCK;
    let (chunk, within) = (at / job.chunk_len, at % job.chunk_len);
    let end = match job.cipher {
        // What follows may be of another chunk, with another IV.
        Cipher::CbcDecrypt { .. } => (chunk + 1) * job.chunk_len,
        _ => input.len(),
    };
    let end = end.min(at + SAMPLE).min(input.len());
    let mut own = Zeroizing::new(input[at..end].to_vec());
    let offset = first.wrapping_mul(job.chunk_len as u64).wrapping_add(at as u64);
    let done = match job.cipher {
        Cipher::Ctr { key, iv } => {
            key.ctr(&iv, offset, &mut own);
            Ok(())
        }
        Cipher::EcbEncrypt(key) => key.ecb_encrypt(&mut own),
        Cipher::EcbDecrypt(key) => key.ecb_decrypt(&mut own),
        Cipher::CbcDecrypt { key, ivs } => {
            let before = match within {
                0 => ivs.get(first as usize + chunk).copied(),
                _ => input[..at].last_chunk::<BLOCK>().copied(),
            };
            let Some(before) = before else { return false };
            key.cbc_decrypt(&before, &mut own)
        }
        _ => return true,
    };
    done.is_ok() && *own == made.bytes[at..end]
}

/// A random number below `count`; 0 where there is none, which is as good as any.
fn below(count: usize) -> usize {
    let random = random::array::<8>().map_or(0, u64::from_le_bytes);
    (random % (count.max(1) as u64)) as usize
}

/// Bytes that the CPU computes of what has no chunks of its own.
const SAMPLE: usize = 4096;
