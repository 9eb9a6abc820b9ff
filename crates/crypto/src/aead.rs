//! Authenticated encryption in place: AES-GCM by a kernel of our own or by AWS-LC, the others by AWS-LC.
#![cfg_attr(
    not(target_arch = "x86_64"),
    allow(
        unused_variables,
        clippy::infallible_destructuring_match,
        reason = "AWS-LC is the only worker there"
    )
)]

use aws_lc_rs::aead::{
    AES_128_GCM, AES_192_GCM, AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey,
};
use std::sync::OnceLock;

#[cfg(target_arch = "x86_64")]
use subtle::ConstantTimeEq;
use zeroize::Zeroize;

use crate::aes::{AesKernel, AesKey};
use crate::error::Error;
use crate::gcm_kernel::GcmKernel;
#[cfg(target_arch = "x86_64")]
use crate::kernel::gcm;
#[cfg(target_arch = "x86_64")]
use crate::kernel::gcm_text::Text;
#[cfg(target_arch = "x86_64")]
use crate::kernel::{gcm_aes_ni, gcm_vaes256, gcm_vaes512};
use crate::secret::Secret;

mod own;

/// Bytes of a tag, for every algorithm here.
pub const TAG_LEN: usize = 16;
/// Bytes of a nonce, for every algorithm here.
pub const NONCE_LEN: usize = 12;

/// The AEADs that Wattlock's formats use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AeadAlgorithm {
    /// AES-128-GCM, NIST SP 800-38D.
    Aes128Gcm,
    /// AES-192-GCM, NIST SP 800-38D. No suite of TLS has it, and no format of Wattlock's.
    Aes192Gcm,
    /// AES-256-GCM, NIST SP 800-38D.
    Aes256Gcm,
    /// ChaCha20-Poly1305, RFC 8439.
    ChaCha20Poly1305,
}

impl AeadAlgorithm {
    /// The name as RFC 5116's registry spells it; AES-192-GCM is not in it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Aes128Gcm => "AEAD_AES_128_GCM",
            Self::Aes192Gcm => "AEAD_AES_192_GCM",
            Self::Aes256Gcm => "AEAD_AES_256_GCM",
            Self::ChaCha20Poly1305 => "AEAD_CHACHA20_POLY1305",
        }
    }

    /// Bytes of a key.
    pub fn key_len(self) -> usize {
        match self {
            Self::Aes128Gcm => 16,
            Self::Aes192Gcm => 24,
            Self::Aes256Gcm | Self::ChaCha20Poly1305 => 32,
        }
    }

    fn is_gcm(self) -> bool {
        self != Self::ChaCha20Poly1305
    }
}

/// An expanded key of one AEAD; both directions.
///
/// The caller owns the uniqueness of nonces: sealing twice under one nonce gives both messages
/// away.
pub struct AeadKey {
    algorithm: AeadAlgorithm,
    backend: Backend,
    /// The block cipher beneath AES-GCM, once a device has asked for it.
    aes: OnceLock<Box<AesKey>>,
}

/// Who works with a key.
enum Backend {
    #[cfg(target_arch = "x86_64")]
    Own(Own),
    AwsLc {
        key: Box<LessSafeKey>,
        raw: Secret<MOST_KEY_LEN>,
    },
}

/// A key for a kernel of our own.
#[cfg(target_arch = "x86_64")]
struct Own {
    key: gcm::Key,
    /// Bytes of the longest message that the kernel does.
    longest: usize,
    /// The same key for longer ones, once there was one.
    aws_lc: OnceLock<Box<LessSafeKey>>,
}

/// Who works on a message.
enum Worker<'k> {
    #[cfg(target_arch = "x86_64")]
    Own(&'k gcm::Key),
    AwsLc(&'k LessSafeKey),
}

/// Bytes of the longest key.
const MOST_KEY_LEN: usize = 32;

impl AeadKey {
    /// Expands `key` for `algorithm`: 16 bytes for AES-128-GCM, 24 for
    /// AES-192-GCM, 32 for the others.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(algorithm: AeadAlgorithm, key: &[u8]) -> Result<Self, Error> {
        Self::with_kernel(GcmKernel::best(), algorithm, key)
    }

    /// As [`AeadKey::new`], for a kernel that the caller chooses. Messages that are longer than the kernel is fast
    /// for are AWS-LC's. For ChaCha20-Poly1305 the kernel does not count.
    ///
    /// # Errors
    /// As [`AeadKey::new`].
    pub fn with_kernel(
        kernel: GcmKernel,
        algorithm: AeadAlgorithm,
        key: &[u8],
    ) -> Result<Self, Error> {
        Self::up_to(kernel.longest(), kernel, algorithm, key)
    }

    /// As [`AeadKey::with_kernel`], and the kernel does messages of every length: to measure and to test it.
    ///
    /// # Errors
    /// As [`AeadKey::new`].
    pub fn with_kernel_alone(
        kernel: GcmKernel,
        algorithm: AeadAlgorithm,
        key: &[u8],
    ) -> Result<Self, Error> {
        Self::up_to(usize::MAX, kernel, algorithm, key)
    }

    #[cfg_attr(
        not(target_arch = "x86_64"),
        allow(unused_variables, reason = "no kernel of our own")
    )]
    fn up_to(
        longest: usize,
        kernel: GcmKernel,
        algorithm: AeadAlgorithm,
        key: &[u8],
    ) -> Result<Self, Error> {
        if key.len() != algorithm.key_len() {
            return Err(Error::KeyLength { algorithm: algorithm.name(), len: key.len() });
        }
        #[cfg(target_arch = "x86_64")]
        let own = match kernel {
            _ if !algorithm.is_gcm() => None,
            GcmKernel::Vaes512(proof) => gcm_vaes512::key(proof, key),
            GcmKernel::Vaes256(proof) => gcm_vaes256::key(proof, key),
            GcmKernel::AesNi(proof) => gcm_aes_ni::key(proof, key),
            GcmKernel::AwsLc => None,
        };
        #[cfg(target_arch = "x86_64")]
        if let Some(key) = own {
            let backend = Backend::Own(Own { key, longest, aws_lc: OnceLock::new() });
            return Ok(Self { algorithm, backend, aes: OnceLock::new() });
        }
        Ok(Self { algorithm, backend: Backend::aws_lc(algorithm, key), aes: OnceLock::new() })
    }

    /// The block cipher beneath AES-GCM, for devices that bring their own CTR and GHASH; `None`
    /// for other AEADs. The caller is responsible for tags and nonces.
    pub fn block_cipher(&self) -> Option<&AesKey> {
        self.algorithm.is_gcm().then(|| {
            &**self.aes.get_or_init(|| {
                let key = match &self.backend {
                    #[cfg(target_arch = "x86_64")]
                    Backend::Own(own) => AesKey::new(AesKernel::best(), own.key.raw()),
                    Backend::AwsLc { raw, .. } => {
                        AesKey::new(AesKernel::best(), &raw.expose()[..self.algorithm.key_len()])
                    }
                };
                Box::new(key.expect("a length of AES keys"))
            })
        })
    }

    /// Which AEAD this key is for.
    pub fn algorithm(&self) -> AeadAlgorithm {
        self.algorithm
    }

    /// Encrypts `in_out` in place and returns its tag, which covers `aad` as well.
    ///
    /// # Errors
    /// [`Error::MessageTooLong`] beyond the AEAD's limit (64 GiB for AES-GCM).
    #[inline]
    pub fn seal(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Error> {
        let len = in_out.len();
        let key = match self.worker(len) {
            #[cfg(target_arch = "x86_64")]
            Worker::Own(key) => {
                fits(len)?;
                let mut tag = [0; TAG_LEN];
                key.seal(&nonce, aad, &Text::in_place(in_out), &mut tag);
                return Ok(tag);
            }
            Worker::AwsLc(key) => key,
        };
        let mut tag = [0; TAG_LEN];
        let made = key
            .seal_in_place_separate_tag(Nonce::assume_unique_for_key(nonce), Aad::from(aad), in_out)
            .map_err(|_| Error::MessageTooLong(len))?;
        tag.copy_from_slice(made.as_ref());
        Ok(tag)
    }

    /// Encrypts `plaintext`, and a byte behind it if there is one, into `ciphertext`, which is as long, and returns
    /// the tag, which covers `aad` as well: what [`AeadKey::seal`] does, without a copy before it.
    /// The extra byte is what TLS 1.3 wants: the type of a record's content (RFC 8446, section 5.2).
    ///
    /// # Errors
    /// As [`AeadKey::seal`], and [`Error::BufferLength`] if the lengths are not the same; nothing is written then.
    #[inline]
    pub fn seal_into(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        plaintext: &[u8],
        extra: Option<u8>,
        ciphertext: &mut [u8],
    ) -> Result<[u8; TAG_LEN], Error> {
        let (len, expected) = (ciphertext.len(), plaintext.len() + usize::from(extra.is_some()));
        if len != expected {
            return Err(Error::BufferLength { len, expected });
        }
        let key = match self.worker(ciphertext.len()) {
            #[cfg(target_arch = "x86_64")]
            Worker::Own(key) => {
                fits(ciphertext.len())?;
                let text = Text::apart(plaintext, extra, ciphertext);
                let mut tag = [0; TAG_LEN];
                key.seal(&nonce, aad, &text.expect("the lengths were compared"), &mut tag);
                return Ok(tag);
            }
            Worker::AwsLc(key) => key,
        };
        let too_long = |_| Error::MessageTooLong(plaintext.len());
        let (nonce, aad) = (Nonce::assume_unique_for_key(nonce), Aad::from(aad));
        let (ciphertext, end) = ciphertext.split_at_mut(plaintext.len());
        let mut extra_and_tag = [0; 1 + TAG_LEN];
        let behind = &mut extra_and_tag[..end.len() + TAG_LEN];
        key.seal_out_of_place_scatter(nonce, aad, plaintext, ciphertext, extra.as_slice(), behind)
            .map_err(too_long)?;
        let (made, tag) = behind.split_last_chunk().expect("a tag is behind");
        end.copy_from_slice(made);
        Ok(*tag)
    }

    /// Checks `tag` over `aad` and `in_out`, and decrypts `in_out` in place.
    ///
    /// # Errors
    /// [`Error::Authentication`]; `in_out` is then all zeros.
    #[inline]
    pub fn open(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        in_out: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), Error> {
        let right = match self.worker(in_out.len()) {
            #[cfg(target_arch = "x86_64")]
            Worker::Own(key) => {
                let mut found = [0; TAG_LEN];
                let fits = fits(in_out.len()).is_ok();
                if fits {
                    key.open(&nonce, aad, &Text::in_place(in_out), &mut found);
                }
                fits && same(found, tag)
            }
            Worker::AwsLc(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_in_place_separate_tag(nonce, Aad::from(aad), tag, in_out).is_ok()
            }
        };
        if !right {
            in_out.zeroize();
            return Err(Error::Authentication);
        }
        Ok(())
    }

    /// Checks `tag` over `aad` and `ciphertext`, and decrypts that into `plaintext`, which is as long: what
    /// [`AeadKey::open`] does, without a copy before it.
    ///
    /// # Errors
    /// [`Error::Authentication`]; `plaintext` is then all zeros. [`Error::BufferLength`] if the lengths are not the
    /// same.
    #[inline]
    pub fn open_into(
        &self,
        nonce: [u8; NONCE_LEN],
        aad: &[u8],
        ciphertext: &[u8],
        tag: &[u8; TAG_LEN],
        plaintext: &mut [u8],
    ) -> Result<(), Error> {
        let (len, expected) = (plaintext.len(), ciphertext.len());
        if len != expected {
            return Err(Error::BufferLength { len, expected });
        }
        let right = match self.worker(len) {
            #[cfg(target_arch = "x86_64")]
            Worker::Own(key) => {
                let mut found = [0; TAG_LEN];
                let fits = fits(len).is_ok();
                if fits {
                    let text = Text::apart(ciphertext, None, plaintext);
                    key.open(&nonce, aad, &text.expect("the lengths were compared"), &mut found);
                }
                fits && same(found, tag)
            }
            Worker::AwsLc(key) => {
                let nonce = Nonce::assume_unique_for_key(nonce);
                key.open_separate_gather(nonce, Aad::from(aad), ciphertext, tag, plaintext).is_ok()
            }
        };
        if !right {
            plaintext.zeroize();
            return Err(Error::Authentication);
        }
        Ok(())
    }
}

impl AeadKey {
    /// Who works on a message of that many bytes.
    #[inline]
    fn worker(&self, len: usize) -> Worker<'_> {
        match &self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Own(own) if len <= own.longest => Worker::Own(&own.key),
            #[cfg(target_arch = "x86_64")]
            Backend::Own(own) => Worker::AwsLc(
                own.aws_lc.get_or_init(|| less_safe_key(self.algorithm, own.key.raw())),
            ),
            Backend::AwsLc { key, .. } => Worker::AwsLc(key),
        }
    }
}

impl Backend {
    fn aws_lc(algorithm: AeadAlgorithm, key: &[u8]) -> Self {
        Self::AwsLc {
            key: less_safe_key(algorithm, key),
            raw: Secret::init_with(|raw| raw[..key.len()].copy_from_slice(key)),
        }
    }
}

fn less_safe_key(algorithm: AeadAlgorithm, key: &[u8]) -> Box<LessSafeKey> {
    let algorithm = match algorithm {
        AeadAlgorithm::Aes128Gcm => &AES_128_GCM,
        AeadAlgorithm::Aes192Gcm => &AES_192_GCM,
        AeadAlgorithm::Aes256Gcm => &AES_256_GCM,
        AeadAlgorithm::ChaCha20Poly1305 => &CHACHA20_POLY1305,
    };
    let unbound = UnboundKey::new(algorithm, key).expect("the length was compared");
    Box::new(LessSafeKey::new(unbound))
}

/// Refuses messages that AES-GCM has no counters for; AWS-LC does so itself.
#[cfg(target_arch = "x86_64")]
fn fits(len: usize) -> Result<(), Error> {
    if len as u64 > MOST_GCM_BYTES {
        return Err(Error::MessageTooLong(len));
    }
    Ok(())
}

/// Compares two tags, as numbers: byte by byte takes as long as a short message.
#[cfg(target_arch = "x86_64")]
fn same(found: [u8; TAG_LEN], expected: &[u8; TAG_LEN]) -> bool {
    u128::from_ne_bytes(found).ct_eq(&u128::from_ne_bytes(*expected)).into()
}

/// Bytes of a message of AES-GCM under one IV (SP 800-38D, 5.2.1.1).
pub(crate) const MOST_GCM_BYTES: u64 = (1 << 36) - 32;

#[cfg(test)]
mod tests;
