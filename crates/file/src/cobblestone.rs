//! C2SP chunked-encryption, instance Cobblestone-256: <https://c2sp.org/chunked-encryption>.

use wattlock_engine::Nonces;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, NONCE_LEN, Secret, hkdf, random};

use crate::error::{Damage, Error};
use crate::format::Format;
use crate::payload::Payload;

/// Bytes of the random salt in front of a payload.
const SALT_LEN: usize = 24;
/// Bytes of the key commitment that follows it.
const COMMITMENT_LEN: usize = 32;
/// Bytes in front of the first chunk.
pub(crate) const PREFIX_LEN: usize = SALT_LEN + COMMITMENT_LEN;

/// A payload to be sealed under `input_key`, with a fresh salt.
pub(crate) fn seal(input_key: &Secret<32>, context: &[u8]) -> Result<Payload, Error> {
    let salt = random::array::<SALT_LEN>()?;
    let (payload, commitment) = derive(input_key, &salt, context);
    let prefix = [&salt[..], commitment.expose()].concat();
    Ok(Payload { prefix, ..payload })
}

/// A payload to be opened, whose first bytes are `prefix`.
pub(crate) fn open(
    input_key: &Secret<32>,
    context: &[u8],
    prefix: &[u8; PREFIX_LEN],
) -> Result<Payload, Error> {
    let (salt, claimed) = prefix.split_first_chunk::<SALT_LEN>().expect("the salt comes first");
    let (payload, commitment) = derive(input_key, salt, context);
    let claimed = Secret::<COMMITMENT_LEN>::init_with(|bytes| bytes.copy_from_slice(claimed));
    if commitment != claimed {
        return Err(Damage::Commitment.into());
    }
    Ok(Payload { prefix: prefix.to_vec(), ..payload })
}

/// A payload of which the commitment may be damaged. Its chunks are authenticated all the same, but a
/// second key might open them.
pub(crate) fn open_uncommitted(
    input_key: &Secret<32>,
    context: &[u8],
    salt: &[u8; SALT_LEN],
) -> Payload {
    derive(input_key, salt, context).0
}

/// key ‖ base nonce ‖ commitment.
fn derive(
    input_key: &Secret<32>,
    salt: &[u8; SALT_LEN],
    context: &[u8],
) -> (Payload, Secret<COMMITMENT_LEN>) {
    let algorithm = AeadAlgorithm::Aes256Gcm;
    let info =
        [b"c2sp.org/chunked-encryption@v1+", algorithm.name().as_bytes(), &[0], salt, context];
    let okm = hkdf::expand_sha512::<{ 32 + NONCE_LEN + COMMITMENT_LEN }>(input_key, &info);
    let okm = okm.expose();
    let key = Secret::<32>::init_with(|bytes| bytes.copy_from_slice(&okm[..32]));
    let mut base = [0; NONCE_LEN];
    base.copy_from_slice(&okm[32..32 + NONCE_LEN]);
    let commitment = Secret::init_with(|bytes| bytes.copy_from_slice(&okm[32 + NONCE_LEN..]));
    let payload = Payload {
        key: AeadKey::new(algorithm, key.expose()).expect("a key of 32 bytes"),
        nonces: Nonces::XorIndex { base },
        layout: Format::WattlockV1.layout(),
        prefix: Vec::new(),
    };
    (payload, commitment)
}
