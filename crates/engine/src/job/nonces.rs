//! How the nonce of a chunk follows from its index.

use crate::crypto::NONCE_LEN;

/// How the nonce of a chunk follows from its index.
#[derive(Clone, Copy, Debug)]
pub enum Nonces {
    /// The base nonce XOR the index as a big-endian number as wide as the nonce (C2SP
    /// chunked-encryption).
    XorIndex {
        /// The base nonce, derived once for the run.
        base: [u8; NONCE_LEN],
    },
    /// The base nonce XOR a big-endian number as wide as the nonce, which counts the chunks from
    /// `first` on (records of TLS 1.3 from a sequence number on).
    XorCount {
        /// The base nonce.
        base: [u8; NONCE_LEN],
        /// The number of chunk 0.
        first: u64,
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
            Self::XorIndex { base } => xor(base, index),
            Self::XorCount { base, first } => xor(base, first.wrapping_add(index)),
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

fn xor(mut base: [u8; NONCE_LEN], number: u64) -> [u8; NONCE_LEN] {
    for (byte, number) in base[4..].iter_mut().zip(number.to_be_bytes()) {
        *byte ^= number;
    }
    base
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn xor_index_changes_the_last_eight_bytes() {
        let nonces = Nonces::XorIndex { base: [0xff; NONCE_LEN] };
        assert_eq!(nonces.nonce(0, false), [0xff; NONCE_LEN]);
        assert_eq!(nonces.nonce(0x0102, true)[8..], [0xff, 0xff, 0xfe, 0xfd]);
        assert_eq!(nonces.nonce(u64::MAX, false)[..4], [0xff; 4]);
        assert_eq!(nonces.nonce(u64::MAX, false)[4..], [0; 8]);
    }

    #[test]
    fn a_count_goes_on_from_its_first_number() {
        let base = [0; NONCE_LEN];
        let nonce = Nonces::XorCount { base, first: 0xff }.nonce(2, false);
        assert_eq!(nonce, [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
    }

    #[test]
    fn a_counted_nonce_keeps_its_first_four_bytes() {
        let nonces = Nonces::Counted { first: [0xff; NONCE_LEN] };
        assert_eq!(nonces.nonce(0, false), [0xff; NONCE_LEN]);
        assert_eq!(nonces.nonce(2, true), [0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn index_and_last_is_age_stream() {
        let nonce = Nonces::IndexAndLast.nonce(0x0102, true);
        assert_eq!(nonce, [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 1]);
        assert_eq!(Nonces::IndexAndLast.nonce(0, false), [0; NONCE_LEN]);
    }
}
