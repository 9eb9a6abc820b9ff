//! What of a job a GPU can do, and what a piece of it is to a kernel.

use std::sync::Arc;

use wattlock_engine::crypto::{AesKey, NONCE_LEN, TAG_LEN};
use wattlock_engine::{Cipher, Job, Nonces, Operation};
use zeroize::{Zeroize, Zeroizing};

use crate::kernels::{hash_key_words, round_key_words};

/// A job in the words of the kernels, with its key.
pub(crate) struct Task<'a> {
    mode: Mode<'a>,
    pub keys: Arc<Keys>,
    /// Bytes of a chunk without its tag.
    chunk_len: usize,
    /// Bytes from one chunk to the next.
    pub slot_len: usize,
}

/// The key of a task as the kernels take it.
pub(crate) struct Keys {
    /// 10, 12 or 14.
    pub rounds: u32,
    /// As [`round_key_words`] says.
    pub round_keys: Zeroizing<Vec<u32>>,
    /// As [`hash_key_words`] says; empty where nothing is hashed.
    pub hash_key: Zeroizing<Vec<u32>>,
}

/// Whether [`Task::of`] finds one for most jobs of that cipher.
pub(crate) fn supports(cipher: &Cipher<'_>) -> bool {
    match cipher {
        Cipher::Ctr { .. }
        | Cipher::EcbEncrypt(_)
        | Cipher::EcbDecrypt(_)
        | Cipher::CbcDecrypt { .. } => true,
        Cipher::Aead { key, aad, .. } => key.block_cipher().is_some() && aad.is_none(),
        Cipher::CbcEncrypt { ivs, .. } => ivs.len() >= LEAST_CHAINS,
        Cipher::Other(_) => false,
    }
}

enum Mode<'a> {
    Ctr { iv: u128 },
    EcbEncrypt,
    EcbDecrypt,
    CbcEncrypt { ivs: &'a [[u8; BLOCK]] },
    CbcDecrypt { ivs: &'a [[u8; BLOCK]] },
    Gcm { operation: Operation, nonces: Nonces },
}

/// One piece, in the words of the kernels.
pub(crate) enum Batch {
    /// The bytes from `start` on, in the block of this counter.
    Ctr {
        counter: u128,
        start: usize,
    },
    /// The same with several blocks a lane, for the study of extended block sizes.
    CtrExtended {
        counter: u128,
        start: usize,
        lane_blocks: u32,
    },
    EcbEncrypt,
    EcbDecrypt,
    /// Messages of `message_blocks` blocks, and their IVs.
    CbcEncrypt {
        ivs: Vec<u8>,
        message_blocks: u32,
    },
    /// The same.
    CbcDecrypt {
        ivs: Vec<u8>,
        message_blocks: u32,
    },
    /// Chunks, of which the last has its own length; nonces take 16 bytes each.
    Gcm {
        operation: Operation,
        nonces: Vec<u8>,
        chunks: u32,
        chunk_len: u32,
        last_len: u32,
    },
}

/// Whether a piece is computed once or twice, and which time this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pass {
    Only,
    First,
    /// Each group of lanes does what another did the first time.
    Second,
}

impl Pass {
    /// How far the work of `groups` groups is shifted.
    pub fn shift(self, groups: usize) -> usize {
        if self == Self::Second { groups / 2 } else { 0 }
    }

    /// The least number of groups, where `most` are possible: two if the work is done twice, so
    /// that the second pass can exchange them.
    pub fn least_groups(self, most: usize) -> usize {
        if self == Self::Only { 1 } else { most.clamp(1, 2) }
    }
}

impl<'a> Task<'a> {
    /// The task of a job, or `None` if a GPU does not help: one chain, no AES, or chunks of an
    /// unsuitable size.
    pub fn of(job: &Job<'a>) -> Option<Self> {
        let chunk_len = job.chunk_len;
        let slot_len = job.slot_len();
        let whole_blocks = chunk_len > 0 && chunk_len.is_multiple_of(BLOCK);
        if chunk_len == 0 || slot_len > MOST_SLOT {
            return None;
        }
        let (mode, key) = match job.cipher {
            Cipher::Ctr { key, iv } => (Mode::Ctr { iv: u128::from_be_bytes(iv) }, key),
            Cipher::EcbEncrypt(key) if whole_blocks => (Mode::EcbEncrypt, key),
            Cipher::EcbDecrypt(key) if whole_blocks => (Mode::EcbDecrypt, key),
            Cipher::CbcEncrypt { key, ivs } if whole_blocks && ivs.len() >= LEAST_CHAINS => {
                (Mode::CbcEncrypt { ivs }, key)
            }
            Cipher::CbcDecrypt { key, ivs } if whole_blocks => (Mode::CbcDecrypt { ivs }, key),
            Cipher::Aead { operation, key, nonces, aad }
                if whole_blocks && chunk_len >= LEAST_CHUNK && aad.is_none() =>
            {
                (Mode::Gcm { operation, nonces }, key.block_cipher()?)
            }
            _ => return None,
        };
        let schedule = match mode {
            Mode::EcbDecrypt | Mode::CbcDecrypt { .. } => key.decrypt_schedule(),
            _ => key.encrypt_schedule(),
        };
        let hash_key = match mode {
            Mode::Gcm { .. } => hash_key(key),
            _ => Zeroizing::default(),
        };
        let rounds = schedule.rounds() as u32;
        let round_keys = round_key_words(&schedule);
        let keys = Arc::new(Keys { rounds, round_keys, hash_key });
        Some(Self { mode, keys, chunk_len, slot_len })
    }

    /// The piece of `len` bytes that begins with chunk `first`, and ends with the run if it is
    /// the `last`; `None` if it is none that any device could do.
    pub fn batch(&self, first: u64, last: bool, len: usize) -> Option<Batch> {
        let offset = u128::from(first) * self.chunk_len as u128;
        let count = len.div_ceil(self.slot_len);
        match &self.mode {
            Mode::Ctr { iv } => Some(Batch::Ctr {
                counter: iv.wrapping_add(offset / BLOCK as u128),
                start: (offset % BLOCK as u128) as usize,
            }),
            _ if !len.is_multiple_of(BLOCK) && !matches!(self.mode, Mode::Gcm { .. }) => None,
            Mode::EcbEncrypt => Some(Batch::EcbEncrypt),
            Mode::EcbDecrypt => Some(Batch::EcbDecrypt),
            Mode::CbcEncrypt { ivs } | Mode::CbcDecrypt { ivs } => {
                let first = usize::try_from(first).ok()?;
                let ivs = ivs.get(first..first.checked_add(count)?)?.as_flattened().to_vec();
                let message_blocks = (self.chunk_len / BLOCK) as u32;
                Some(match self.mode {
                    Mode::CbcEncrypt { .. } => Batch::CbcEncrypt { ivs, message_blocks },
                    _ => Batch::CbcDecrypt { ivs, message_blocks },
                })
            }
            Mode::Gcm { operation, nonces } => {
                let last_len = len.checked_sub((count.checked_sub(1)?) * self.slot_len)?;
                let nonce_of = |index: usize| {
                    let chunk = first + index as u64;
                    let mut padded = [0; BLOCK];
                    padded[..NONCE_LEN]
                        .copy_from_slice(&nonces.nonce(chunk, last && index + 1 == count));
                    padded
                };
                Some(Batch::Gcm {
                    operation: *operation,
                    nonces: (0..count).flat_map(nonce_of).collect(),
                    chunks: count as u32,
                    chunk_len: self.chunk_len as u32,
                    last_len: last_len.checked_sub(TAG_LEN)? as u32,
                })
            }
        }
    }
}

impl Batch {
    /// The same work in the study's way, if it is CTR.
    pub fn extended(self, lane_blocks: u32) -> Option<Self> {
        match self {
            Self::Ctr { counter, start } if lane_blocks > 0 => {
                Some(Self::CtrExtended { counter, start, lane_blocks })
            }
            _ => None,
        }
    }

    /// Bytes before the first, in its block.
    pub fn start(&self) -> usize {
        match self {
            Self::Ctr { start, .. } | Self::CtrExtended { start, .. } => *start,
            _ => 0,
        }
    }

    /// IVs or nonces, in blocks; empty if the mode has none.
    pub fn ivs(&self) -> &[u8] {
        match self {
            Self::CbcEncrypt { ivs, .. }
            | Self::CbcDecrypt { ivs, .. }
            | Self::Gcm { nonces: ivs, .. } => ivs,
            _ => &[],
        }
    }

    /// Chunks whose tags are made.
    pub fn tags(&self) -> usize {
        match self {
            Self::Gcm { chunks, .. } => *chunks as usize,
            _ => 0,
        }
    }
}

/// The hash subkey of SP 800-38D, 7.1: a block of zeros, enciphered.
fn hash_key(key: &AesKey) -> Zeroizing<Vec<u32>> {
    let mut h = [[0_u8; BLOCK]];
    // One whole block cannot be refused.
    let _ = key.ecb_encrypt(h.as_flattened_mut());
    let words = hash_key_words(h[0]);
    h[0].zeroize();
    words
}

/// Bytes of a block.
pub(crate) const BLOCK: usize = AesKey::BLOCK_LEN;

/// Chains below which a GPU is of no use: one is one lane.
const LEAST_CHAINS: usize = 2;

/// Bytes of a chunk below which the 32 parts of its GHASH would weigh more than the chunk.
const LEAST_CHUNK: usize = 512;

/// Bytes of a slot above which a device would have to hold too much: kernels count blocks of a
/// chunk in 32 bits, and a piece is at least one slot.
const MOST_SLOT: usize = 256 << 20;
