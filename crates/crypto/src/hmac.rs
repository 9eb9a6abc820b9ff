//! HMAC, FIPS 198-1: the MAC over container headers, and the MACs of many messages at once.
//!
//! [`sha256`] and [`verify_sha256`] are AWS-LC's, for one short message. [`HmacKey`] is for records,
//! which come in dozens: side by side they take a fraction of the time.

pub(crate) mod key;
mod records;
#[cfg(feature = "mac-then-encrypt")]
mod secret_len;
pub(crate) mod states;

pub use key::{HmacAlgorithm, HmacKey};
pub use records::HmacRecord;

use aws_lc_rs::hmac::{HMAC_SHA256, Key, sign, verify as verify_tag};

use crate::error::Error;
use crate::secret::Secret;

/// Bytes of a MAC.
pub const MAC_LEN: usize = 32;

/// The MAC of `message` under `key`.
pub fn sha256(key: &Secret<32>, message: &[u8]) -> [u8; MAC_LEN] {
    let mut mac = [0; MAC_LEN];
    mac.copy_from_slice(sign(&Key::new(HMAC_SHA256, key.expose()), message).as_ref());
    mac
}

/// Compares the MAC of `message` with `mac`, in a time that does not depend on where they differ.
///
/// # Errors
/// [`Error::Authentication`].
pub fn verify_sha256(key: &Secret<32>, message: &[u8], mac: &[u8; MAC_LEN]) -> Result<(), Error> {
    verify_tag(&Key::new(HMAC_SHA256, key.expose()), message, mac)
        .map_err(|_| Error::Authentication)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_the_mac_counts() {
        let key = Secret::init_with(|b| b.fill(5));
        let mac = sha256(&key, b"header");
        verify_sha256(&key, b"header", &mac).unwrap();
        assert!(verify_sha256(&key, b"Header", &mac).is_err());
        for bit in 0..MAC_LEN * 8 {
            let mut wrong = mac;
            wrong[bit / 8] ^= 1 << (bit % 8);
            assert!(verify_sha256(&key, b"header", &wrong).is_err(), "bit {bit}");
        }
    }
}
