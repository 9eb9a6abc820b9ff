//! The key schedule of age v1: <https://c2sp.org/age>. Everything else of that format is shared.

use wattlock_engine::Nonces;
use wattlock_engine::crypto::{AeadKey, Secret, hkdf, random};

use crate::error::Error;
use crate::format::Format;
use crate::header::{Header, Stanza};
use crate::payload::Payload;

/// Bytes of the random nonce in front of a payload.
pub(crate) const NONCE_LEN: usize = 16;

/// A header for a new file key, and the payload that follows it.
pub(crate) fn seal(file_key: &Secret<16>, stanzas: &[Stanza]) -> Result<(Vec<u8>, Payload), Error> {
    let header = Header::encode(Format::AgeV1, stanzas, &[], &mac_key(file_key))?;
    Ok((header, payload(file_key, random::array()?)))
}

/// The key of the header's MAC.
pub(crate) fn mac_key(file_key: &Secret<16>) -> Secret<32> {
    hkdf::sha256(file_key.expose(), b"", b"header")
}

/// The payload whose first bytes are `nonce`.
pub(crate) fn payload(file_key: &Secret<16>, nonce: [u8; NONCE_LEN]) -> Payload {
    let key: Secret<32> = hkdf::sha256(file_key.expose(), &nonce, b"payload");
    Payload {
        key: AeadKey::new(Format::AgeV1.aead(), key.expose()).expect("a key of 32 bytes"),
        nonces: Nonces::IndexAndLast,
        layout: Format::AgeV1.layout(),
        prefix: nonce.to_vec(),
    }
}
