//! What is to be done, to which chunks, and where their bytes are.

use std::time::Duration;

use crate::crypto::{self, AeadKey, AesKey, CbcRecord, TAG_LEN};
use crate::error::Error;

pub use aad::Aad;
pub(crate) use aad::AadRoom;
pub use nonces::Nonces;
pub(crate) use records::Memory;
pub use records::Records;
pub use transfer::{Loaded, Stores, Transfer};

mod aad;
mod nonces;
mod records;
mod transfer;

/// A run of chunks and the operation on each.
pub struct Job<'a> {
    /// What is done, and with which key.
    pub cipher: Cipher<'a>,
    /// Plaintext bytes of every chunk but the last, which may be shorter.
    pub chunk_len: usize,
    /// Where the bytes are.
    pub data: Data<'a>,
    /// How long a device may have it before the CPU does it instead. Only an engine with
    /// [lanes](crate::Engine::with_lanes) looks at it; there, a job without one is the CPU's.
    pub deadline: Option<Duration>,
}

/// What is done to the chunks, and how a chunk's nonce or IV follows from its index.
///
/// AEADs change the length: a chunk has room for its tag behind it. The others do not, and there
/// the chunks of a run lie without a gap.
#[derive(Clone, Copy)]
pub enum Cipher<'a> {
    /// Authenticated encryption, one message a chunk.
    Aead {
        /// Seal or open.
        operation: Operation,
        /// One key for the whole run.
        key: &'a AeadKey,
        /// How a chunk's nonce follows from its index.
        nonces: Nonces,
        /// What else the tag of a chunk covers.
        aad: Aad<'a>,
    },
    /// AES-CTR, one key stream over the whole run.
    Ctr {
        /// One key for the whole run.
        key: &'a AesKey,
        /// The counter block at the start of the run.
        iv: [u8; AesKey::BLOCK_LEN],
    },
    /// AES-ECB, encrypting. Chunks are whole blocks.
    EcbEncrypt(&'a AesKey),
    /// AES-ECB, decrypting. Chunks are whole blocks.
    EcbDecrypt(&'a AesKey),
    /// AES-CBC, encrypting, one message a chunk: the chunks of a piece go side by side.
    CbcEncrypt {
        /// One key for the whole run.
        key: &'a AesKey,
        /// The IV of each chunk.
        ivs: &'a [[u8; AesKey::BLOCK_LEN]],
    },
    /// AES-CBC, decrypting. Chunks are messages, or parts of one whose IVs are the ciphertext
    /// blocks before them.
    CbcDecrypt {
        /// One key for the whole run.
        key: &'a AesKey,
        /// The IV of each chunk.
        ivs: &'a [[u8; AesKey::BLOCK_LEN]],
    },
    /// Something that only the CPU does, and that is not known here.
    Other(&'a dyn Transform),
}

/// What can be done to any part of a run that starts at a chunk, without the others.
pub trait Transform: Sync {
    /// Works on `in_out`, whole chunks that lie `offset` bytes into the run.
    ///
    /// # Errors
    /// Any error; the run fails with [`Error::Other`].
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;

    /// What of it is left for a device once [`Transform::prepare`] was called, if a cipher can
    /// do that.
    fn rest(&self) -> Option<Rest<'_>> {
        None
    }

    /// Does on all of the run, `in_out`, what no device does.
    fn prepare(&self, in_out: &mut [u8]) {
        let _ = in_out;
    }
}

/// The part of a [`Transform`] that a cipher does, after the CPU has prepared the chunks.
pub struct Rest<'a> {
    /// The cipher.
    pub cipher: Cipher<'a>,
    /// Bytes at the beginning of each chunk that it leaves as they are.
    pub front: usize,
}

/// The direction of an AEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Plaintext to ciphertext and tag.
    Seal,
    /// Ciphertext and tag to plaintext.
    Open,
}

/// Where a job's bytes are.
///
/// In memory, chunks stand in *slots*: the chunk's plaintext or ciphertext, then, for an AEAD,
/// [`TAG_LEN`] bytes for its tag. Only the last slot of a run may be shorter.
pub enum Data<'a> {
    /// In the caller's memory, worked on in place; the whole run, last chunk included.
    InPlace {
        /// The slots.
        slots: &'a mut [u8],
    },
    /// In the caller's memory, with room for something else before each chunk, and the plaintext
    /// perhaps elsewhere.
    Records(Records<'a>),
    /// Elsewhere: each piece is loaded into a buffer of the device and stored from there.
    Moved(&'a dyn Transfer),
}

impl Job<'_> {
    /// Bytes from one chunk to the next in memory.
    pub fn slot_len(&self) -> usize {
        match self.cipher {
            Cipher::Aead { .. } => self.chunk_len + TAG_LEN,
            _ => self.chunk_len,
        }
    }

    /// Works through `slots`, the chunks from `first` on; `last` says whether the final one ends
    /// the run. Every device does this to a piece, one way or another.
    ///
    /// # Errors
    /// [`Error::Authentication`] with the first chunk whose tag is wrong; the plaintext of the
    /// whole piece is then worthless and must not be released. [`Error::Cipher`] where a block
    /// mode gets a part of a block, [`Error::Ivs`] where it gets too few IVs, and [`Error::Other`] for
    /// what a transform says.
    pub fn apply(&self, first: u64, last: bool, slots: &mut [u8]) -> Result<(), Error> {
        let cipher = |source| Error::Cipher { chunk: first, source };
        let offset = first.saturating_mul(self.chunk_len as u64);
        match self.cipher {
            Cipher::Aead { operation, key, nonces, aad } => {
                // A short job would feel the divisions of an iterator that counts its chunks.
                let (mut rest, mut chunk) = (slots, first);
                while !rest.is_empty() {
                    let slot_len = self.slot_len().min(rest.len());
                    let (slot, behind) = rest.split_at_mut(slot_len);
                    let nonce = nonces.nonce(chunk, last && behind.is_empty());
                    let parts = slot.split_last_chunk_mut::<TAG_LEN>();
                    let (in_out, tag) = parts.ok_or(Error::Layout(slot_len))?;
                    let mut room = AadRoom::default();
                    let aad = aad.of_chunk(chunk, in_out.len(), &mut room);
                    match operation {
                        Operation::Seal => {
                            let cipher = |source| Error::Cipher { chunk, source };
                            *tag = key.seal(nonce, aad, in_out).map_err(cipher)?;
                        }
                        Operation::Open => key
                            .open(nonce, aad, in_out, tag)
                            .map_err(|_| Error::Authentication { chunk })?,
                    }
                    (rest, chunk) = (behind, chunk + 1);
                }
                Ok(())
            }
            Cipher::Ctr { key, iv } => {
                key.ctr(&iv, offset, slots);
                Ok(())
            }
            Cipher::EcbEncrypt(key) => key.ecb_encrypt(slots).map_err(cipher),
            Cipher::EcbDecrypt(key) => key.ecb_decrypt(slots).map_err(cipher),
            Cipher::CbcEncrypt { key, ivs } => {
                let ivs = self.ivs_of(ivs, first, slots.len())?;
                self.cbc_encrypt(key, ivs, slots).map_err(cipher)
            }
            Cipher::CbcDecrypt { key, ivs } => {
                let ivs = self.ivs_of(ivs, first, slots.len())?;
                for (iv, in_out) in ivs.iter().zip(slots.chunks_mut(self.chunk_len)) {
                    key.cbc_decrypt(iv, in_out).map_err(cipher)?;
                }
                Ok(())
            }
            Cipher::Other(transform) => {
                let other = |source| Error::Other { chunk: first, source };
                transform.apply(offset, slots).map_err(other)
            }
        }
    }

    /// Groups of messages go side by side, without a vector to hold them: a small job allocates
    /// nothing.
    fn cbc_encrypt(
        &self,
        key: &AesKey,
        ivs: &[[u8; AesKey::BLOCK_LEN]],
        slots: &mut [u8],
    ) -> Result<(), crypto::Error> {
        if let [iv] = ivs {
            return key.cbc_encrypt(iv, slots);
        }
        let group_len = CBC_GROUP.saturating_mul(self.chunk_len);
        for (ivs, slots) in ivs.chunks(CBC_GROUP).zip(slots.chunks_mut(group_len)) {
            let mut messages = ivs.iter().zip(slots.chunks_mut(self.chunk_len));
            let mut records: [CbcRecord<'_>; CBC_GROUP] = std::array::from_fn(|_| {
                let (iv, in_out) =
                    messages.next().map_or_else(Default::default, |(iv, in_out)| (*iv, in_out));
                CbcRecord { iv, in_out }
            });
            key.cbc_encrypt_records(&mut records[..ivs.len()])?;
        }
        Ok(())
    }

    fn ivs_of<'i>(
        &self,
        ivs: &'i [[u8; AesKey::BLOCK_LEN]],
        first: u64,
        len: usize,
    ) -> Result<&'i [[u8; AesKey::BLOCK_LEN]], Error> {
        let first = first as usize;
        ivs.get(first..first + len.div_ceil(self.chunk_len)).ok_or(Error::Ivs(ivs.len()))
    }
}

/// Messages that CBC enciphers side by side: the lanes of the widest kernel.
const CBC_GROUP: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_cover_the_additional_data_of_their_chunk() {
        let key = AeadKey::new(crypto::AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
        let nonces = Nonces::XorIndex { base: [9; 12] };
        let mut slots = [3; 2 * (100 + TAG_LEN)];
        let mut run = |operation, aad| {
            let cipher = Cipher::Aead { operation, key: &key, nonces, aad };
            let job = Job {
                cipher,
                chunk_len: 100,
                data: Data::InPlace { slots: &mut [] },
                deadline: None,
            };
            job.apply(0, true, &mut slots)
        };
        run(Operation::Seal, Aad::Same(b"header")).unwrap();
        run(Operation::Open, Aad::Same(b"header")).unwrap();
        run(Operation::Seal, Aad::Same(b"header")).unwrap();
        let refused = run(Operation::Open, Aad::None);
        assert!(matches!(refused, Err(Error::Authentication { chunk: 0 })), "{refused:?}");
    }

    #[test]
    fn what_a_transform_says_is_the_source_of_the_error() {
        struct Refuses;
        impl Transform for Refuses {
            fn apply(
                &self,
                offset: u64,
                _: &mut [u8],
            ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
                Err(format!("no work from {offset} on").into())
            }
        }
        let cipher = Cipher::Other(&Refuses);
        let job =
            Job { cipher, chunk_len: 5, data: Data::InPlace { slots: &mut [] }, deadline: None };
        let error = job.apply(3, true, &mut [0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "chunk 3 cannot be processed");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("no work from 15 on"));
    }
}
