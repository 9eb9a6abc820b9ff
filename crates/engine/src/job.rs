//! What is to be done, to which chunks, and where their bytes are.

use std::io;
use std::ops::Range;

use crate::Error;
use crate::crypto::{self, AeadKey, AesKey, CbcRecord, NONCE_LEN, TAG_LEN};

/// A run of chunks and what is to be done to each.
pub struct Job<'a> {
    /// What is done, and with which key.
    pub cipher: Cipher<'a>,
    /// Plaintext bytes of every chunk but the last, which may be shorter.
    pub chunk_len: usize,
    /// Where the bytes are.
    pub data: Data<'a>,
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

/// The additional data of the chunks of a run: what a tag covers and the chunk does not hold.
#[derive(Clone, Copy, Debug, Default)]
pub enum Aad<'a> {
    /// None.
    #[default]
    None,
    /// The same for each.
    Same(&'a [u8]),
}

impl<'a> Aad<'a> {
    /// That of a chunk.
    pub fn of_chunk(&self) -> &'a [u8] {
        match self {
            Self::None => &[],
            Self::Same(aad) => aad,
        }
    }

    /// True if no chunk has any.
    pub fn is_none(&self) -> bool {
        self.of_chunk().is_empty()
    }
}

/// What can be done to any part of a run that starts at a chunk, without the others.
pub trait Transform: Sync {
    /// Works on `in_out`, whole chunks that lie `offset` bytes into the run.
    ///
    /// # Errors
    /// Whatever it says; the run fails with [`Error::Other`].
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
}

/// The direction of an AEAD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Plaintext to ciphertext and tag.
    Seal,
    /// Ciphertext and tag to plaintext.
    Open,
}

/// How the nonce of a chunk follows from its index.
#[derive(Clone, Copy, Debug)]
pub enum Nonces {
    /// The base nonce XOR the index as a big-endian number as wide as the nonce (C2SP
    /// chunked-encryption, TLS 1.3).
    XorIndex {
        /// The base nonce, derived once for the run.
        base: [u8; NONCE_LEN],
    },
    /// The first nonce, whose last eight bytes are a big-endian number to which the index is added
    /// (records of TLS 1.2 with AES-GCM, as libssl counts their explicit nonces).
    Counted {
        /// That of chunk 0.
        first: [u8; NONCE_LEN],
    },
    /// An 11-byte big-endian index and a byte that is 1 for the last chunk (age v1, "STREAM").
    IndexAndLast,
}

impl Nonces {
    /// The nonce of chunk `index`, which is the `last` of its run or not.
    pub fn nonce(&self, index: u64, last: bool) -> [u8; NONCE_LEN] {
        match *self {
            Self::XorIndex { mut base } => {
                for (byte, index) in base[4..].iter_mut().zip(index.to_be_bytes()) {
                    *byte ^= index;
                }
                base
            }
            Self::Counted { first: mut nonce } => {
                let (_, counter) = nonce.split_last_chunk_mut::<8>().expect("eight of twelve");
                *counter = u64::from_be_bytes(*counter).wrapping_add(index).to_be_bytes();
                nonce
            }
            Self::IndexAndLast => {
                let mut nonce = [0; NONCE_LEN];
                nonce[3..11].copy_from_slice(&index.to_be_bytes());
                nonce[11] = u8::from(last);
                nonce
            }
        }
    }
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
    /// Elsewhere: each piece is loaded into a buffer of the device and stored from there.
    Moved(&'a dyn Transfer),
}

/// Brings pieces from where a job has its input, and takes them where it wants its output.
///
/// Called by several workers at once. A piece that was loaded is stored exactly once, unless the
/// run fails or [`Transfer::take_back`] permits that it is done again.
pub trait Transfer: Sync {
    /// The indices of the chunks of the run, or `None` if only the end of the input will tell;
    /// then pieces are loaded one after the other, from chunk 0 on.
    fn chunks(&self) -> Option<Range<u64>>;

    /// How [`Transfer::store`] wants to be called.
    fn stores(&self) -> Stores;

    /// Fills the slots of the chunks `wanted`, as many as there are.
    ///
    /// # Errors
    /// Whatever the input said; the run fails.
    fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded>;

    /// Takes the finished slots of the chunks from `first` on.
    ///
    /// # Errors
    /// Whatever the output said; the run fails.
    fn store(&self, first: u64, slots: &[u8]) -> io::Result<()>;

    /// Notes that what was stored for `chunks`, `len` bytes of slots, may be wrong, and will be loaded
    /// and stored once more. False if that cannot be: the input is gone, or the output has left.
    fn take_back(&self, chunks: Range<u64>, len: usize) -> bool {
        let _ = (chunks, len);
        false
    }
}

/// How the output of a [`Transfer`] takes its pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stores {
    /// By any number of workers at once.
    Together,
    /// One at a time, in any order: a file, which the kernel locks for each write.
    OneByOne,
    /// One at a time, in order: a stream.
    InOrder,
}

/// What [`Transfer::load`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// Bytes of the slots that belong to the piece, tags (or the room for them) included. Zero if
    /// the run ended before the piece.
    pub len: usize,
    /// True if the last chunk of the run is among them.
    pub last: bool,
}

impl Job<'_> {
    /// Bytes from one chunk to the next in memory.
    pub fn slot_len(&self) -> usize {
        match self.cipher {
            Cipher::Aead { .. } => self.chunk_len + TAG_LEN,
            _ => self.chunk_len,
        }
    }

    /// Works through `slots`, the chunks from `first` on, of which the final one is the run's
    /// `last` or not. This is what every device does to a piece, one way or another.
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
                self.apply_aead(operation, key, (&nonces, aad), first, last, slots)
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

    fn apply_aead(
        &self,
        operation: Operation,
        key: &AeadKey,
        (nonces, aad): (&Nonces, Aad<'_>),
        first: u64,
        last: bool,
        slots: &mut [u8],
    ) -> Result<(), Error> {
        let count = slots.len().div_ceil(self.slot_len()) as u64;
        for (chunk, slot) in (first..).zip(slots.chunks_mut(self.slot_len())) {
            let nonce = nonces.nonce(chunk, last && chunk + 1 == first + count);
            let len = slot.len();
            let (in_out, tag) = slot.split_last_chunk_mut::<TAG_LEN>().ok_or(Error::Layout(len))?;
            match operation {
                Operation::Seal => {
                    *tag = key
                        .seal(nonce, aad.of_chunk(), in_out)
                        .map_err(|source| Error::Cipher { chunk, source })?;
                }
                Operation::Open => key
                    .open(nonce, aad.of_chunk(), in_out, tag)
                    .map_err(|_| Error::Authentication { chunk })?,
            }
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
        let nonces = Nonces::XorIndex { base: [9; NONCE_LEN] };
        let mut slots = [3; 2 * (100 + TAG_LEN)];
        let mut run = |operation, aad| {
            let cipher = Cipher::Aead { operation, key: &key, nonces, aad };
            let job = Job { cipher, chunk_len: 100, data: Data::InPlace { slots: &mut [] } };
            job.apply(0, true, &mut slots)
        };
        run(Operation::Seal, Aad::Same(b"header")).unwrap();
        run(Operation::Open, Aad::Same(b"header")).unwrap();
        run(Operation::Seal, Aad::Same(b"header")).unwrap();
        let refused = run(Operation::Open, Aad::None);
        assert!(matches!(refused, Err(Error::Authentication { chunk: 0 })), "{refused:?}");
    }

    #[test]
    fn xor_index_changes_the_last_eight_bytes() {
        let nonces = Nonces::XorIndex { base: [0xff; NONCE_LEN] };
        assert_eq!(nonces.nonce(0, false), [0xff; NONCE_LEN]);
        assert_eq!(nonces.nonce(0x0102, true)[8..], [0xff, 0xff, 0xfe, 0xfd]);
        assert_eq!(nonces.nonce(u64::MAX, false)[..4], [0xff; 4]);
        assert_eq!(nonces.nonce(u64::MAX, false)[4..], [0; 8]);
    }

    #[test]
    fn a_counted_nonce_keeps_its_first_four_bytes() {
        let nonces = Nonces::Counted { first: [0xff; NONCE_LEN] };
        assert_eq!(nonces.nonce(0, false), [0xff; NONCE_LEN]);
        assert_eq!(nonces.nonce(2, true), [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1]);
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
        let job = Job { cipher, chunk_len: 5, data: Data::InPlace { slots: &mut [] } };
        let error = job.apply(3, true, &mut [0; 5]).unwrap_err();
        assert_eq!(error.to_string(), "chunk 3 cannot be worked on");
        let source = std::error::Error::source(&error).map(ToString::to_string);
        assert_eq!(source.as_deref(), Some("no work from 15 on"));
    }

    #[test]
    fn index_and_last_is_age_stream() {
        let nonce = Nonces::IndexAndLast.nonce(0x0102, true);
        assert_eq!(nonce, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1]);
        assert_eq!(Nonces::IndexAndLast.nonce(0, false), [0; NONCE_LEN]);
    }
}
