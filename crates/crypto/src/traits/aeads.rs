//! The AEADs under the traits of the crate `aead`.

use aead::consts::{U12, U16, U24, U32};
use aead::inout::InOutBuf;
use aead::{AeadCore, AeadInOut, Error, Key, KeyInit, KeySizeUser, Nonce, Tag, TagPosition};

use crate::aead::{AeadAlgorithm, AeadKey};

/// An AEAD of this crate, by the length of its keys.
macro_rules! aeads {
    ($($(#[$doc:meta])+ $name:ident, $key_size:ty;)+) => {$(
        $(#[$doc])+
        ///
        /// The key is wiped on drop. Where input and output are apart, the input is copied first;
        /// [`AeadKey::seal_into`] does without. A message that is not authentic leaves zeros.
        pub struct $name(AeadKey);

        impl KeySizeUser for $name {
            type KeySize = $key_size;
        }

        impl KeyInit for $name {
            fn new(key: &Key<Self>) -> Self {
                Self(AeadKey::new(AeadAlgorithm::$name, key).expect("a key of that type is as long"))
            }
        }

        impl AeadCore for $name {
            type NonceSize = U12;
            type TagSize = U16;
            const TAG_POSITION: TagPosition = TagPosition::Postfix;
        }

        impl AeadInOut for $name {
            fn encrypt_inout_detached(
                &self,
                nonce: &Nonce<Self>,
                associated_data: &[u8],
                buffer: InOutBuf<'_, '_, u8>,
            ) -> aead::Result<Tag<Self>> {
                let in_out = buffer.into_out_with_copied_in();
                let tag = self.0.seal((*nonce).into(), associated_data, in_out);
                tag.map(Into::into).map_err(|_| Error)
            }

            fn decrypt_inout_detached(
                &self,
                nonce: &Nonce<Self>,
                associated_data: &[u8],
                buffer: InOutBuf<'_, '_, u8>,
                tag: &Tag<Self>,
            ) -> aead::Result<()> {
                let in_out = buffer.into_out_with_copied_in();
                let opened = self.0.open((*nonce).into(), associated_data, in_out, tag.as_ref());
                opened.map_err(|_| Error)
            }
        }
    )+};
}

aeads! {
    /// AES-128-GCM, NIST SP 800-38D.
    Aes128Gcm, U16;
    /// AES-192-GCM, NIST SP 800-38D.
    Aes192Gcm, U24;
    /// AES-256-GCM, NIST SP 800-38D.
    Aes256Gcm, U32;
    /// ChaCha20-Poly1305, RFC 8439.
    ChaCha20Poly1305, U32;
}
