//! OpenSSL's own ciphers and those of a provider, side by side in one libcrypto, call by call as a program makes
//! them.

use std::ffi::CString;
use std::path::Path;
use std::rc::Rc;

use crate::AAD;
use crate::libcrypto::{Cipher, Direction, Libcrypto};

/// A libcrypto with a provider beside its own.
pub struct Providers(Rc<Libcrypto>);

/// Whose ciphers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// OpenSSL's own.
    OpenSsl,
    /// The other provider's.
    Provider,
}

/// What a program does again and again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Calls {
    /// Seals a message in so many parts, with additional data: IV, AAD, parts, end, tag.
    Seal(usize),
    /// Opens one: the tag comes before the end.
    Open(usize),
    /// Sets a key and seals a message.
    KeyAndSeal,
    /// Encrypts a message: IV, bytes, end.
    Encrypt,
    /// Decrypts one.
    Decrypt,
    /// Encrypts the next bytes of a long message.
    EncryptMore,
    /// Decrypts them.
    DecryptMore,
}

impl Calls {
    fn direction(self) -> Direction {
        match self {
            Self::Open(_) | Self::Decrypt | Self::DecryptMore => Direction::Decrypt,
            _ => Direction::Encrypt,
        }
    }
}

impl Providers {
    /// Loads the provider's file into the libcrypto at `library`, or else the system's.
    ///
    /// # Errors
    /// Which of them cannot be loaded.
    pub fn open(library: Option<&Path>, provider: &Path) -> Result<Self, String> {
        let libcrypto = match library {
            Some(library) => Libcrypto::at(library),
            None => Libcrypto::system(),
        };
        let mut libcrypto = libcrypto.map_err(|error| error.to_string())?;
        let name = provider.to_str().and_then(|name| CString::new(name).ok());
        let name = name.ok_or("the provider's path is no text")?;
        libcrypto.load(&name).map_err(|_| format!("OpenSSL cannot load {}", provider.display()))?;
        Ok(Self(Rc::new(libcrypto)))
    }

    /// What the library calls itself.
    pub fn version(&self) -> String {
        self.0.version()
    }

    /// A contender for messages of `len` bytes. `None` where that side has no such cipher.
    pub fn contender(
        &self,
        whose: Whose,
        cipher: &str,
        calls: Calls,
        key: &[u8],
        len: usize,
    ) -> Option<Box<dyn FnMut(&mut [u8])>> {
        let mut context = self.cipher(whose, cipher, calls.direction(), key)?;
        let key = key.to_vec();
        Some(match calls {
            Calls::Seal(parts) => {
                let (mut nonce, mut tag) = (Nonce([0; 12]), [0; 16]);
                Box::new(move |in_out| {
                    let part = in_out.len().div_ceil(parts);
                    context.message(nonce.next(), None, in_out, part, &mut tag, Direction::Encrypt);
                })
            }
            Calls::KeyAndSeal => {
                let (mut nonce, mut tag) = (Nonce([0; 12]), [0; 16]);
                Box::new(move |in_out| {
                    context.replace_key(&key);
                    let part = in_out.len();
                    context.message(nonce.next(), None, in_out, part, &mut tag, Direction::Encrypt);
                })
            }
            Calls::Open(parts) => {
                let (sealed, mut tag) = self.sealed(cipher, &key, len)?;
                Box::new(move |out| {
                    let (part, from) = (out.len().div_ceil(parts), Some(&sealed[..]));
                    context.message(&[0; 12], from, out, part, &mut tag, Direction::Decrypt);
                })
            }
            Calls::Encrypt | Calls::Decrypt => {
                let iv = vec![0; context.iv_len()];
                Box::new(move |in_out| {
                    context.restart(&iv);
                    context.update(in_out);
                    assert!(context.finish(), "whole blocks end");
                })
            }
            Calls::EncryptMore | Calls::DecryptMore => {
                context.restart(&vec![0; context.iv_len()]);
                Box::new(move |in_out| context.update(in_out))
            }
        })
    }

    fn cipher(&self, whose: Whose, name: &str, direction: Direction, key: &[u8]) -> Option<Cipher> {
        let properties = match whose {
            Whose::OpenSsl => c"provider=default",
            Whose::Provider => c"provider=wattlock",
        };
        let name = CString::new(name).ok()?;
        Cipher::of(&self.0, &name, Some(properties), direction, key).ok()
    }

    /// A message as OpenSSL seals it, under an IV of zeros.
    fn sealed(&self, cipher: &str, key: &[u8], len: usize) -> Option<(Vec<u8>, [u8; 16])> {
        let mut context = self.cipher(Whose::OpenSsl, cipher, Direction::Encrypt, key)?;
        let mut message: Vec<u8> = (0..len).map(|i| (i % 251) as u8).collect();
        context.restart(&[0; 12]);
        context.associate(&AAD);
        context.update(&mut message);
        context.finish().then(|| (message, context.tag()))
    }
}

/// A nonce that counts, and is written in two pieces, as a record's is. On no two lines of the cache.
#[repr(align(16))]
struct Nonce([u8; 12]);

impl Nonce {
    fn next(&mut self) -> &[u8; 12] {
        let (_, count) = self.0.split_last_chunk_mut::<8>().expect("twelve bytes");
        *count = u64::from_be_bytes(*count).wrapping_add(1).to_be_bytes();
        &self.0
    }
}
