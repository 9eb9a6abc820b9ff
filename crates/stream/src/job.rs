//! What is sealed at once, a message or a frame, as a job of the engine: one chunk, done on the thread
//! that asks for it.

use wattlock_engine::crypto::{self, AeadKey, TAG_LEN};
use wattlock_engine::{Aad, Cipher, Data, Error, Job, Nonces, Operation};

/// Seals or opens `slot`, which ends with its tag or with room for it.
///
/// # Errors
/// What the engine says: [`Error::Authentication`] clears the text, [`Error::Layout`] is one
/// without room for a tag.
pub(crate) fn run(
    operation: Operation,
    key: &AeadKey,
    nonces: Nonces,
    aad: &[u8],
    slot: &mut [u8],
) -> Result<(), Error> {
    let chunk_len = slot.len().saturating_sub(TAG_LEN).max(1);
    let cipher = Cipher::Aead { operation, key, nonces, aad: Aad::Same(aad) };
    Job { cipher, chunk_len, data: Data::InPlace { slots: slot }, deadline: None }.run_here()
}

/// What a primitive said, if it was one.
pub(crate) fn crypto_error(error: Error) -> Option<crypto::Error> {
    match error {
        Error::Authentication { .. } => Some(crypto::Error::Authentication),
        Error::Cipher { source, .. } => Some(source),
        _ => None,
    }
}
