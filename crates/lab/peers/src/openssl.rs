//! The peers `openssl` and `openssl-vendored`: one set of operations over two copies of libcrypto.

use crate::libcrypto::{Cipher, Direction, Error, Libcrypto};
use crate::work::{NOTHING, opening, plain, sealing};
use crate::{AAD, Absent, Operation, Peer, Work};
use std::ffi::CStr;
use std::rc::Rc;

/// OpenSSL, wherever its libcrypto comes from.
pub(crate) struct OpenSsl {
    name: &'static str,
    libcrypto: Rc<Libcrypto>,
}

impl OpenSsl {
    /// The libcrypto that this system has.
    pub(crate) fn system() -> Result<Self, Absent> {
        Self::with("openssl", Libcrypto::system())
    }

    /// The libcrypto that was built into this program, if it was.
    pub(crate) fn vendored() -> Result<Self, Absent> {
        let vendored = Self::with("openssl-vendored", Libcrypto::vendored());
        vendored.map_err(|absent| Absent { name: "OpenSSL 4", ..absent })
    }

    fn with(name: &'static str, opened: Result<Libcrypto, Error>) -> Result<Self, Absent> {
        match opened {
            Ok(libcrypto) => Ok(Self { name, libcrypto: Rc::new(libcrypto) }),
            Err(why) => Err(Absent { name, why: why.to_string() }),
        }
    }

    fn cipher(&self, name: &CStr, direction: Direction, key: &[u8]) -> Option<Cipher> {
        Cipher::new(&self.libcrypto, name, direction, key).ok()
    }

    fn gcm_seal(&self, key: &[u8]) -> Option<Box<dyn Work>> {
        let cipher = self.cipher(Mode::Gcm.of_aes(key)?, Direction::Encrypt, key)?;
        sealing(
            cipher,
            |cipher, iv, in_out| {
                cipher.restart(&iv[..12]);
                cipher.associate(&AAD);
                cipher.update(in_out);
                assert!(cipher.finish(), "libcrypto finishes what it has encrypted");
                cipher.tag()
            },
            Cipher::replace_key,
        )
    }

    fn gcm_open(&self, key: &[u8]) -> Option<Box<dyn Work>> {
        let mut cipher = self.cipher(Mode::Gcm.of_aes(key)?, Direction::Decrypt, key)?;
        opening(move |iv, in_out, tag| {
            cipher.restart(&iv[..12]);
            cipher.associate(&AAD);
            cipher.update(in_out);
            cipher.expect_tag(tag);
            cipher.finish()
        })
    }

    fn hmac(&self, digest: &CStr, key: &[u8]) -> Option<Box<dyn Work>> {
        if key.is_empty() {
            return None;
        }
        let mut hmac = self.libcrypto.hmac(digest, key).ok()?;
        plain(move |_, message| hmac.of(message))
    }

    fn sha3_256(&self) -> Option<Box<dyn Work>> {
        let mut digest = self.libcrypto.digest(c"SHA3-256").ok()?;
        plain(move |_, message| digest.of(message))
    }
}

impl Peer for OpenSsl {
    fn name(&self) -> &'static str {
        self.name
    }

    fn version(&self) -> String {
        self.libcrypto.version()
    }

    fn operation(&self, operation: &Operation, key: &[u8]) -> Option<Box<dyn Work>> {
        use Direction::{Decrypt, Encrypt};
        match operation {
            Operation::AesCtr => with_iv(self.cipher(Mode::Ctr.of_aes(key)?, Encrypt, key)?),
            Operation::AesEcbEncrypt => {
                without_iv(self.cipher(Mode::Ecb.of_aes(key)?, Encrypt, key)?)
            }
            Operation::AesEcbDecrypt => {
                without_iv(self.cipher(Mode::Ecb.of_aes(key)?, Decrypt, key)?)
            }
            Operation::AesCbcEncrypt => {
                with_iv(self.cipher(Mode::Cbc.of_aes(key)?, Encrypt, key)?)
            }
            Operation::AesCbcDecrypt => {
                with_iv(self.cipher(Mode::Cbc.of_aes(key)?, Decrypt, key)?)
            }
            Operation::AesGcmSeal => self.gcm_seal(key),
            Operation::AesGcmOpen => self.gcm_open(key),
            Operation::Sha3_256 => self.sha3_256(),
            Operation::HmacSha1 => self.hmac(c"SHA1", key),
            Operation::HmacSha256 => self.hmac(c"SHA2-256", key),
            Operation::HmacSha384 => self.hmac(c"SHA2-384", key),
            Operation::Rc4 => without_iv(self.cipher(c"RC4", Encrypt, key)?),
            Operation::BlowfishEcbEncrypt => without_iv(self.cipher(c"BF-ECB", Encrypt, key)?),
            // OpenSSL has neither the tree hashes nor a counter mode of Blowfish.
            Operation::Kt128 | Operation::ParallelHash256 | Operation::BlowfishCtr => None,
        }
    }
}

/// Padding is off and [`Cipher::update`] takes whole blocks only, so that EVP_CipherFinal_ex would
/// have nothing to do: it is left out of both, in the peer's favour.
fn with_iv(mut cipher: Cipher) -> Option<Box<dyn Work>> {
    plain(move |iv, in_out| {
        cipher.restart(iv);
        cipher.update(in_out);
        NOTHING
    })
}

fn without_iv(mut cipher: Cipher) -> Option<Box<dyn Work>> {
    plain(move |_, in_out| {
        cipher.update(in_out);
        NOTHING
    })
}

/// Modes of AES.
#[derive(Clone, Copy)]
enum Mode {
    Ctr,
    Ecb,
    Cbc,
    Gcm,
}

impl Mode {
    /// OpenSSL's name of the mode for a key of this length.
    fn of_aes(self, key: &[u8]) -> Option<&'static CStr> {
        let [with_128, with_192, with_256] = match self {
            Self::Ctr => [c"AES-128-CTR", c"AES-192-CTR", c"AES-256-CTR"],
            Self::Ecb => [c"AES-128-ECB", c"AES-192-ECB", c"AES-256-ECB"],
            Self::Cbc => [c"AES-128-CBC", c"AES-192-CBC", c"AES-256-CBC"],
            Self::Gcm => [c"AES-128-GCM", c"AES-192-GCM", c"AES-256-GCM"],
        };
        match key.len() {
            16 => Some(with_128),
            24 => Some(with_192),
            32 => Some(with_256),
            _ => None,
        }
    }
}
