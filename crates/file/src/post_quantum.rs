//! age's hybrid post-quantum keys, `age1pq1…`: ML-KEM-768 and X25519 together, so that a file stays closed
//! as long as one of them holds.

mod kem;

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;

use age::secrecy::ExposeSecret;
use age_core::format::{FILE_KEY_BYTES, FileKey, Stanza};
use age_core::primitives::{
    bech32_decode, bech32_encode, bech32_encode_to_fmt, hpke_open, hpke_seal,
};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD_NO_PAD as BASE64;
use bech32::Hrp;
use hpke::{Deserializable, HpkeError, Kem, Serializable};
use rand_core::OsRng;
use wattlock_engine::crypto::random;
use zeroize::Zeroizing;

use crate::error::Error;
use kem::{Encapsulated, PrivateKey, PublicKey, XWing};

/// The type of its stanzas.
pub(crate) const POST_QUANTUM: &str = "mlkem768x25519";
/// The label that keeps its recipients among themselves.
const LABEL: &str = "postquantum";
const INFO: &[u8] = b"age-encryption.org/mlkem768x25519";
const PUBLIC: Hrp = Hrp::parse_unchecked("age1pq");
const PRIVATE_PREFIX: &str = "AGE-SECRET-KEY-PQ-";
const PRIVATE: Hrp = Hrp::parse_unchecked(PRIVATE_PREFIX);
/// Characters of an identity: what it starts with, `1`, a character for 5 bits, 6 of a checksum.
const PRIVATE_LEN: usize = PRIVATE_PREFIX.len() + 1 + (32 * 8_usize).div_ceil(5) + 6;
/// Bytes of a sealed file key: the key and its tag.
const BODY_LEN: usize = FILE_KEY_BYTES + 16;

/// A hybrid post-quantum recipient.
#[derive(Clone, PartialEq, Eq)]
pub struct PostQuantumRecipient(PublicKey);

/// A hybrid post-quantum identity.
#[derive(Clone)]
pub struct PostQuantumIdentity(PrivateKey);

impl PostQuantumIdentity {
    /// Makes a new one.
    ///
    /// # Errors
    /// [`Error::Crypto`] if the system gives no random bytes.
    pub fn generate() -> Result<Self, Error> {
        let seed = random::secret::<32>()?;
        Ok(Self(PrivateKey::from_bytes(seed.expose()).expect("a seed has 32 bytes")))
    }

    /// Its recipient.
    pub fn recipient(&self) -> PostQuantumRecipient {
        PostQuantumRecipient(XWing::sk_to_pk(&self.0))
    }

    /// Its text, as age writes it.
    pub fn to_text(&self) -> Zeroizing<String> {
        let seed = Zeroizing::new(<[u8; 32]>::from(self.0.to_bytes()));
        // Exactly as long as it gets, so that nothing of it is left where it was before it grew.
        let mut text = Zeroizing::new(String::with_capacity(PRIVATE_LEN));
        bech32_encode_to_fmt(&mut *text, PRIVATE, &seed[..]).expect("a string takes all");
        text.make_ascii_uppercase();
        text
    }
}

impl FromStr for PostQuantumIdentity {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = "it is no post-quantum identity, or a character is mistyped";
        let is_its = |prefix: Hrp| if prefix == PRIVATE { Ok(()) } else { Err(malformed) };
        let seed = |_, bytes: bech32::primitives::decode::ByteIter<'_>| {
            Ok(Zeroizing::new(bytes.collect::<Vec<u8>>()))
        };
        let seed = bech32_decode(text, |_| malformed, is_its, seed)?;
        PrivateKey::from_bytes(&seed).map(Self).map_err(|_| malformed)
    }
}

impl FromStr for PostQuantumRecipient {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = "it starts like a post-quantum recipient, and is malformed";
        let is_its = |prefix: Hrp| if prefix == PUBLIC { Ok(()) } else { Err(malformed) };
        let bytes =
            |_, bytes: bech32::primitives::decode::ByteIter<'_>| Ok(bytes.collect::<Vec<u8>>());
        let bytes = bech32_decode(text, |_| malformed, is_its, bytes)?;
        PublicKey::from_bytes(&bytes).map(Self).map_err(|_| malformed)
    }
}

impl fmt::Display for PostQuantumRecipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&bech32_encode(PUBLIC, &self.0.to_bytes()))
    }
}

impl age::Recipient for PostQuantumRecipient {
    fn wrap_file_key(
        &self,
        file_key: &FileKey,
    ) -> Result<(Vec<Stanza>, HashSet<String>), age::EncryptError> {
        let (enc, body) =
            hpke_seal::<XWing, _>(&self.0, INFO, file_key.expose_secret(), &mut OsRng);
        let args = vec![BASE64.encode(enc.to_bytes())];
        let stanza = Stanza { tag: POST_QUANTUM.to_owned(), args, body };
        Ok((vec![stanza], HashSet::from([LABEL.to_owned()])))
    }
}

impl age::Identity for PostQuantumIdentity {
    /// `None` for another type, and for a stanza that is for another: ML-KEM rejects implicitly, so
    /// that only the tag shows it.
    fn unwrap_stanza(&self, stanza: &Stanza) -> Option<Result<FileKey, age::DecryptError>> {
        if stanza.tag != POST_QUANTUM {
            return None;
        }
        let invalid = Some(Err(age::DecryptError::InvalidHeader));
        let [enc] = stanza.args.as_slice() else { return invalid };
        let enc = BASE64.decode(enc).ok().and_then(|enc| Encapsulated::from_bytes(&enc).ok());
        let Some(enc) = enc.filter(|_| stanza.body.len() == BODY_LEN) else { return invalid };
        match hpke_open::<XWing>(&enc, &self.0, INFO, &stanza.body) {
            Ok(opened) => {
                let opened = Zeroizing::new(opened);
                let file_key = <&[u8; FILE_KEY_BYTES]>::try_from(&opened[..]).ok()?;
                Some(Ok(FileKey::init_with_mut(|bytes| bytes.copy_from_slice(file_key))))
            }
            Err(HpkeError::DecapError) => invalid,
            Err(_) => None,
        }
    }
}
