//! MLKEM768-X25519 (X-Wing) as a KEM of HPKE, number 0x647a: draft-connolly-cfrg-xwing-kem, with the checks
//! that age makes: a point of low order is refused, and so is a public key whose coefficients are not
//! reduced.

use hpke::generic_array::GenericArray;
use hpke::generic_array::typenum::{Sum, U32, U96, U192, U1024};
use hpke::kem::SharedSecret;
use hpke::rand_core::{CryptoRng, RngCore};
use hpke::{Deserializable, HpkeError, Kem, Serializable};
use ml_kem::kem::{Decapsulate, DecapsulationKey, Encapsulate, EncapsulationKey};
use ml_kem::{Ciphertext, Encoded, EncodedSizeUser, KemCore, MlKem768, MlKem768Params};
use sha3_of_age::digest::{ExtendableOutput, Update, XofReader};
use sha3_of_age::{Digest, Sha3_256, Shake256};
use x25519_dalek::{PublicKey as Point, StaticSecret};
use zeroize::Zeroizing;

/// The KEM.
pub(super) struct XWing;

/// A private key: the seed, and what follows from it.
#[derive(Clone)]
pub(super) struct PrivateKey {
    seed: Zeroizing<[u8; 32]>,
    ml_kem: DecapsulationKey<MlKem768Params>,
    x25519: StaticSecret,
    public: PublicKey,
}

/// A public key.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct PublicKey {
    ml_kem: EncapsulationKey<MlKem768Params>,
    x25519: Point,
}

/// An encapsulated key.
#[derive(Clone)]
pub(super) struct Encapsulated {
    ml_kem: Ciphertext<MlKem768>,
    x25519: Point,
}

/// Bytes of an ML-KEM-768 public key.
const ML_KEM_KEY_LEN: usize = 1184;
/// Bytes of an ML-KEM-768 ciphertext.
const ML_KEM_CIPHERTEXT_LEN: usize = 1088;
/// `\.//^\`
const LABEL: &[u8] = b"\\.//^\\";

impl PrivateKey {
    /// SHAKE256 of the seed: d and z of ML-KEM, and the scalar of X25519.
    fn of(seed: [u8; 32]) -> Self {
        let seed = Zeroizing::new(seed);
        let mut expanded = Zeroizing::new([0; 96]);
        Shake256::default().chain(*seed).finalize_xof().read(&mut *expanded);
        let part = |at: usize| {
            let mut part = Zeroizing::new([0; 32]);
            part.copy_from_slice(&expanded[at..at + 32]);
            part
        };
        let (d, z) = (part(0), part(32));
        let (ml_kem, ml_kem_public) = MlKem768::generate_deterministic(&(*d).into(), &(*z).into());
        let x25519 = StaticSecret::from(*part(64));
        let public = PublicKey { ml_kem: ml_kem_public, x25519: Point::from(&x25519) };
        Self { seed, ml_kem, x25519, public }
    }
}

impl PartialEq for PrivateKey {
    fn eq(&self, other: &Self) -> bool {
        use subtle::ConstantTimeEq;
        self.seed.ct_eq(&*other.seed).into()
    }
}

impl Eq for PrivateKey {}

impl Eq for PublicKey {}

impl Serializable for PrivateKey {
    type OutputSize = U32;

    fn write_exact(&self, buf: &mut [u8]) {
        buf.copy_from_slice(&*self.seed);
    }
}

impl Deserializable for PrivateKey {
    fn from_bytes(encoded: &[u8]) -> Result<Self, HpkeError> {
        let seed = encoded.try_into().map_err(|_| wrong_length::<Self>(encoded))?;
        Ok(Self::of(seed))
    }
}

impl Serializable for PublicKey {
    type OutputSize = Sum<U1024, U192>;

    fn write_exact(&self, buf: &mut [u8]) {
        let (ml_kem, x25519) = buf.split_at_mut(ML_KEM_KEY_LEN);
        ml_kem.copy_from_slice(&self.ml_kem.as_bytes());
        x25519.copy_from_slice(self.x25519.as_bytes());
    }
}

impl Deserializable for PublicKey {
    fn from_bytes(encoded: &[u8]) -> Result<Self, HpkeError> {
        if encoded.len() != Self::size() {
            return Err(wrong_length::<Self>(encoded));
        }
        let (bytes, x25519) = encoded.split_at(ML_KEM_KEY_LEN);
        let array = Encoded::<EncapsulationKey<MlKem768Params>>::try_from(bytes);
        let ml_kem =
            EncapsulationKey::from_bytes(&array.map_err(|_| wrong_length::<Self>(encoded))?);
        // A coefficient of q or more is reduced when it is read, and is another when it is written.
        let is_reduced = ml_kem.as_bytes()[..] == *bytes;
        let x25519: [u8; 32] = x25519.try_into().map_err(|_| wrong_length::<Self>(encoded))?;
        match is_reduced && !is_low_order(x25519) {
            true => Ok(Self { ml_kem, x25519: x25519.into() }),
            false => Err(HpkeError::ValidationError),
        }
    }
}

impl Serializable for Encapsulated {
    type OutputSize = Sum<U1024, U96>;

    fn write_exact(&self, buf: &mut [u8]) {
        let (ml_kem, x25519) = buf.split_at_mut(ML_KEM_CIPHERTEXT_LEN);
        ml_kem.copy_from_slice(&self.ml_kem);
        x25519.copy_from_slice(self.x25519.as_bytes());
    }
}

impl Deserializable for Encapsulated {
    fn from_bytes(encoded: &[u8]) -> Result<Self, HpkeError> {
        if encoded.len() != Self::size() {
            return Err(wrong_length::<Self>(encoded));
        }
        let (ml_kem, x25519) = encoded.split_at(ML_KEM_CIPHERTEXT_LEN);
        let wrong = |_| wrong_length::<Self>(encoded);
        let x25519: [u8; 32] = x25519.try_into().map_err(|_| wrong_length::<Self>(encoded))?;
        Ok(Self { ml_kem: ml_kem.try_into().map_err(wrong)?, x25519: x25519.into() })
    }
}

impl Kem for XWing {
    type PublicKey = PublicKey;
    type PrivateKey = PrivateKey;
    type EncappedKey = Encapsulated;
    type NSecret = U32;

    const KEM_ID: u16 = 0x647a;

    fn sk_to_pk(key: &PrivateKey) -> PublicKey {
        key.public.clone()
    }

    /// Takes the seed itself: here, no other key material is ever given.
    fn derive_keypair(seed: &[u8]) -> (PrivateKey, PublicKey) {
        let key = PrivateKey::from_bytes(seed).expect("a seed has 32 bytes");
        let public = key.public.clone();
        (key, public)
    }

    fn decap(
        key: &PrivateKey,
        sender: Option<&PublicKey>,
        encapsulated: &Encapsulated,
    ) -> Result<SharedSecret<Self>, HpkeError> {
        assert!(sender.is_none(), "there is no authenticated mode");
        let shared = key.x25519.diffie_hellman(&encapsulated.x25519);
        if !shared.was_contributory() {
            return Err(HpkeError::DecapError);
        }
        let ml_kem = key.ml_kem.decapsulate(&encapsulated.ml_kem);
        let ml_kem = Zeroizing::new(<[u8; 32]>::from(ml_kem.map_err(|()| HpkeError::DecapError)?));
        Ok(combine(&ml_kem, shared.as_bytes(), &encapsulated.x25519, &key.public.x25519))
    }

    fn encap<R: CryptoRng + RngCore>(
        public: &PublicKey,
        sender: Option<(&PrivateKey, &PublicKey)>,
        random: &mut R,
    ) -> Result<(SharedSecret<Self>, Encapsulated), HpkeError> {
        assert!(sender.is_none(), "there is no authenticated mode");
        let (ciphertext, ml_kem) =
            public.ml_kem.encapsulate(random).map_err(|()| HpkeError::EncapError)?;
        let ml_kem = Zeroizing::new(<[u8; 32]>::from(ml_kem));
        let mut scalar = Zeroizing::new([0; 32]);
        random.fill_bytes(&mut *scalar);
        let scalar = StaticSecret::from(*scalar);
        let point = Point::from(&scalar);
        let shared = scalar.diffie_hellman(&public.x25519);
        let secret = combine(&ml_kem, shared.as_bytes(), &point, &public.x25519);
        Ok((secret, Encapsulated { ml_kem: ciphertext, x25519: point }))
    }
}

/// SHA3-256 of both shared secrets, the ephemeral point, the public point and the label.
fn combine(
    ml_kem: &[u8; 32],
    x25519: &[u8; 32],
    ephemeral: &Point,
    public: &Point,
) -> SharedSecret<XWing> {
    let mut hash = Sha3_256::new();
    for part in [&ml_kem[..], x25519, ephemeral.as_bytes(), public.as_bytes(), LABEL] {
        Update::update(&mut hash, part);
    }
    SharedSecret(GenericArray::clone_from_slice(&hash.finalize()))
}

/// True for a point with which every secret gives zero. RFC 7748 ignores the highest bit.
fn is_low_order(mut point: [u8; 32]) -> bool {
    point[31] &= 0x7f;
    LOW_ORDER.contains(&point)
}

/// The points of low order of Curve25519, by their encodings: 0 and 1 and what is the same modulo
/// p = 2^255 - 19, p - 1, and two of order eight.
const LOW_ORDER: [[u8; 32]; 7] = {
    let mut all = [[0; 32]; 7];
    all[1][0] = 1;
    all[2] = [
        0xe0, 0xeb, 0x7a, 0x7c, 0x3b, 0x41, 0xb8, 0xae, 0x16, 0x56, 0xe3, 0xfa, 0xf1, 0x9f, 0xc4,
        0x6a, 0xda, 0x09, 0x8d, 0xeb, 0x9c, 0x32, 0xb1, 0xfd, 0x86, 0x62, 0x05, 0x16, 0x5f, 0x49,
        0xb8, 0x00,
    ];
    all[3] = [
        0x5f, 0x9c, 0x95, 0xbc, 0xa3, 0x50, 0x8c, 0x24, 0xb1, 0xd0, 0xb1, 0x55, 0x9c, 0x83, 0xef,
        0x5b, 0x04, 0x44, 0x5c, 0xc4, 0x58, 0x1c, 0x8e, 0x86, 0xd8, 0x22, 0x4e, 0xdd, 0xd0, 0x9f,
        0x11, 0x57,
    ];
    let mut above = 0;
    while above < 3 {
        all[4 + above] = [0xff; 32];
        all[4 + above][0] = 0xec + above as u8;
        all[4 + above][31] = 0x7f;
        above += 1;
    }
    all
};

fn wrong_length<T: Serializable>(encoded: &[u8]) -> HpkeError {
    HpkeError::IncorrectInputLength(T::size(), encoded.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point of low order as a recipient would make sealing panic, and a coefficient of q or more
    /// would be another key when it is written.
    #[test]
    fn keys_that_age_refuses_are_refused() {
        let public = PrivateKey::of([7; 32]).public.to_bytes();
        assert!(PublicKey::from_bytes(&public).is_ok());
        let secret = StaticSecret::from([0x40; 32]);
        let with_high_bit = LOW_ORDER.map(|mut point| {
            point[31] |= 0x80;
            point
        });
        for point in LOW_ORDER.into_iter().chain(with_high_bit) {
            assert!(!secret.diffie_hellman(&Point::from(point)).was_contributory());
            let mut bytes = public;
            bytes[ML_KEM_KEY_LEN..].copy_from_slice(&point);
            assert!(PublicKey::from_bytes(&bytes).is_err());
        }
        let mut bytes = public;
        // The first coefficient, twelve bits: 4095 is above q = 3329.
        bytes[0] = 0xff;
        bytes[1] |= 0x0f;
        assert!(PublicKey::from_bytes(&bytes).is_err());
        assert!(PublicKey::from_bytes(&public[1..]).is_err());
    }
}
