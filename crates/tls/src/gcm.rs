//! Records of TLS under AES-GCM: 1.2 (RFC 5288) and 1.3 (RFC 8446, section 5.2).

use wattlock_crypto::{AeadKey, NONCE_LEN, TAG_LEN};
use wattlock_engine::{Aad, Cipher, Data, Job, Nonces, Operation, Records};

use crate::record::{HEADER_LEN, RecordAad};

/// Bytes of the IV that a connection keeps to itself, in TLS 1.2.
pub const FIXED_IV_LEN: usize = 4;
/// Bytes of the IV that every record carries, in TLS 1.2.
pub const EXPLICIT_IV_LEN: usize = NONCE_LEN - FIXED_IV_LEN;
/// Bytes that a record of TLS 1.2 adds to its payload, without its header.
pub const OVERHEAD: usize = EXPLICIT_IV_LEN + TAG_LEN;
/// Bytes of a record of TLS 1.2 before its payload.
pub const FRONT: usize = HEADER_LEN + EXPLICIT_IV_LEN;
/// Bytes that a record of TLS 1.3 adds to its payload, without its header: a type and a tag.
pub const OVERHEAD_1_3: usize = 1 + TAG_LEN;

/// A write of an application, to be sealed as records that follow each other.
pub struct Write<'a> {
    /// What was written.
    pub payload: &'a [u8],
    /// Bytes of it in each record but the last, which may have fewer.
    pub fragment: usize,
    /// Where the records go, without a gap, and as long as they are together.
    pub records: &'a mut [u8],
}

impl<'a> Write<'a> {
    /// The job that makes records of TLS 1.2. The nonce of the first is `nonce`, of which the last
    /// eight bytes count, and `aad` its additional data. The caller owns the uniqueness of nonces.
    pub fn job_1_2(self, key: &'a AeadKey, nonce: [u8; NONCE_LEN], aad: RecordAad) -> Job<'a> {
        let nonces = Nonces::Counted { first: nonce };
        let place_len = FRONT + self.fragment + TAG_LEN;
        for (index, place) in (0..).zip(self.records.chunks_mut(place_len)) {
            let header = aad.header(place.len() - HEADER_LEN);
            place[..HEADER_LEN].copy_from_slice(&header);
            let nonce = nonces.nonce(index, false);
            place[HEADER_LEN..FRONT].copy_from_slice(&nonce[FIXED_IV_LEN..]);
        }
        let cipher = Cipher::Aead { operation: Operation::Seal, key, nonces, aad: aad.rule() };
        self.job(cipher, FRONT, None)
    }

    /// The job that makes records of TLS 1.3 under the IV of a connection, from the record with
    /// that sequence number on. Inside, they have that type.
    pub fn job_1_3(
        self,
        key: &'a AeadKey,
        iv: [u8; NONCE_LEN],
        sequence: u64,
        content_type: u8,
    ) -> Job<'a> {
        for place in self.records.chunks_mut(HEADER_LEN + self.fragment + OVERHEAD_1_3) {
            let [high, low] = ((place.len() - HEADER_LEN) as u16).to_be_bytes();
            place[..HEADER_LEN].copy_from_slice(&[APPLICATION_DATA, 3, 3, high, low]);
        }
        let nonces = Nonces::XorCount { base: iv, first: sequence };
        let cipher = Cipher::Aead { operation: Operation::Seal, key, nonces, aad: Aad::Tls13 };
        self.job(cipher, HEADER_LEN, Some(content_type))
    }

    fn job(self, cipher: Cipher<'a>, front: usize, extra: Option<u8>) -> Job<'a> {
        let chunk_len = self.fragment + usize::from(extra.is_some());
        let places = self.records;
        let data = Data::Records(Records { input: Some(self.payload), places, front, extra });
        Job { cipher, chunk_len, data, deadline: None }
    }
}

/// The type of a record with what an application sent, and of all that TLS 1.3 seals.
const APPLICATION_DATA: u8 = 23;
