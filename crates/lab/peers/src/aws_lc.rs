//! The peer `aws-lc`: AWS-LC through aws-lc-rs.

use crate::work::{NOTHING, opening, plain, sealing};
use crate::{AAD, Operation, Peer, Work};
use aws_lc_rs::aead::{AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, DecryptingKey, DecryptionContext, EncryptingKey, EncryptionContext,
    UnboundCipherKey,
};
use aws_lc_rs::digest::{SHA3_256, digest};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::hmac;

/// AWS-LC, as compiled into this program.
pub(crate) struct AwsLc;

impl Peer for AwsLc {
    fn name(&self) -> &'static str {
        "aws-lc"
    }

    fn version(&self) -> String {
        let [binding, library] = [env!("VERSION_aws_lc_rs"), env!("VERSION_aws_lc_sys")];
        format!("aws-lc-rs {binding}, aws-lc-sys {library}")
    }

    /// ECB is left out on purpose: aws-lc-rs calls AWS-LC once per block, so that a rate would
    /// say something of the binding and nothing of the library.
    fn operation(&self, operation: &Operation, key: &[u8]) -> Option<Box<dyn Work>> {
        match operation {
            Operation::AesCtr => encrypting(EncryptingKey::ctr, key),
            Operation::AesCbcEncrypt => encrypting(EncryptingKey::cbc, key),
            Operation::AesCbcDecrypt => cbc_decrypt(key),
            Operation::AesGcmSeal => gcm_seal(key),
            Operation::AesGcmOpen => gcm_open(key),
            Operation::Sha3_256 => plain(|_, message| {
                let mut result = NOTHING;
                result.copy_from_slice(digest(&SHA3_256, message).as_ref());
                result
            }),
            Operation::HmacSha1 => mac(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, key),
            Operation::HmacSha256 => mac(hmac::HMAC_SHA256, key),
            Operation::HmacSha384 => mac(hmac::HMAC_SHA384, key),
            _ => None,
        }
    }
}

fn mac(algorithm: hmac::Algorithm, key: &[u8]) -> Option<Box<dyn Work>> {
    if key.is_empty() {
        return None;
    }
    let key = hmac::Key::new(algorithm, key);
    plain(move |_, message| {
        let tag = hmac::sign(&key, message);
        let len = tag.as_ref().len().min(32);
        let mut result = NOTHING;
        result[..len].copy_from_slice(&tag.as_ref()[..len]);
        result
    })
}

fn encrypting(
    bind: fn(UnboundCipherKey) -> Result<EncryptingKey, Unspecified>,
    key: &[u8],
) -> Option<Box<dyn Work>> {
    let key = bind(cipher_key(key)?).ok()?;
    plain(move |iv, in_out| {
        key.less_safe_encrypt(in_out, EncryptionContext::Iv128(iv.into()))
            .expect("AWS-LC encrypts whole blocks");
        NOTHING
    })
}

fn cbc_decrypt(key: &[u8]) -> Option<Box<dyn Work>> {
    let key = DecryptingKey::cbc(cipher_key(key)?).ok()?;
    plain(move |iv, in_out| {
        key.decrypt(in_out, DecryptionContext::Iv128(iv.into()))
            .expect("AWS-LC decrypts whole blocks");
        NOTHING
    })
}

fn gcm_seal(key: &[u8]) -> Option<Box<dyn Work>> {
    sealing(
        gcm_key(key)?,
        |key, iv, in_out| {
            let tag = key
                .seal_in_place_separate_tag(nonce(iv), Aad::from(AAD), in_out)
                .expect("AWS-LC seals any buffer");
            tag.as_ref().try_into().expect("a tag of 16 bytes")
        },
        |state, key| *state = gcm_key(key).expect("a key of the same length"),
    )
}

fn gcm_open(key: &[u8]) -> Option<Box<dyn Work>> {
    let key = gcm_key(key)?;
    opening(move |iv, in_out, tag| {
        key.open_in_place_separate_tag(nonce(iv), Aad::from(AAD), tag, in_out).is_ok()
    })
}

fn cipher_key(key: &[u8]) -> Option<UnboundCipherKey> {
    let algorithm = match key.len() {
        16 => &AES_128,
        24 => &AES_192,
        32 => &AES_256,
        _ => return None,
    };
    UnboundCipherKey::new(algorithm, key).ok()
}

fn gcm_key(key: &[u8]) -> Option<LessSafeKey> {
    let algorithm = match key.len() {
        16 => &AES_128_GCM,
        24 => &AES_192_GCM,
        32 => &AES_256_GCM,
        _ => return None,
    };
    UnboundKey::new(algorithm, key).ok().map(LessSafeKey::new)
}

fn nonce(iv: &[u8; 16]) -> Nonce {
    Nonce::try_assume_unique_for_key(&iv[..12]).expect("a nonce of 12 bytes")
}
