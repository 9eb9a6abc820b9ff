//! What messages in parts want of a key of AES-GCM, where a kernel of our own has it.

#[cfg(target_arch = "x86_64")]
use std::sync::OnceLock;

use super::{AeadKey, Backend, NONCE_LEN, TAG_LEN, Worker};
use crate::kernel::gcm_parts::PartsKernel;
use crate::kernel::gcm_text::Text;
#[cfg(target_arch = "x86_64")]
use crate::kernel::gcm_vaes512;

impl AeadKey {
    /// Puts another key of the same length in place of this one, if that is for a kernel that can.
    pub(crate) fn replace(&mut self, key: &[u8]) -> bool {
        match &mut self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Own(own) => {
                let is_replaced = gcm_vaes512::replace(&mut own.key, key);
                if is_replaced {
                    (own.aws_lc, self.aes) = (OnceLock::new(), OnceLock::new());
                }
                is_replaced
            }
            Backend::AwsLc { .. } => {
                // Without another backend nothing reads it.
                let _ = key;
                false
            }
        }
    }

    /// Whether a first part of `len` bytes is best worked on as if it were all of the message.
    #[inline]
    pub(crate) fn is_whole_best(&self, len: usize) -> bool {
        match &self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Own(own) => own.key.is_whole_best(len),
            Backend::AwsLc { .. } => true,
        }
    }

    /// Bytes from which on a message that may go on is best sealed as if it were whole.
    #[inline]
    pub(crate) fn at_once_from(&self) -> usize {
        match self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Own(_) => 1,
            Backend::AwsLc { .. } => 256,
        }
    }

    /// Encrypts a message of AES-GCM, of no more bytes than an IV permits, and writes its tag. False if this is up to
    /// AWS-LC; nothing has happened then.
    #[inline(always)]
    pub(crate) fn own_seal(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        text: &Text<'_>,
        tag: &mut [u8; TAG_LEN],
    ) -> bool {
        match self.worker(text.len()) {
            #[cfg(target_arch = "x86_64")]
            Worker::Own(key) => {
                key.seal(nonce, aad, text, tag);
                true
            }
            Worker::AwsLc(_) => {
                // Without another worker nothing reads them.
                let _ = (nonce, aad, tag);
                false
            }
        }
    }

    /// Decrypts a message of AES-GCM, of no more bytes than an IV permits, and writes the tag that it should have.
    /// False if this is up to AWS-LC, which does not tell; nothing has happened then.
    #[inline(always)]
    pub(crate) fn own_open(
        &self,
        nonce: &[u8; NONCE_LEN],
        aad: &[u8],
        text: &Text<'_>,
        tag: &mut [u8; TAG_LEN],
    ) -> bool {
        match &self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Own(own) => {
                own.key.open(nonce, aad, text, tag);
                true
            }
            Backend::AwsLc { .. } => {
                // Without another backend nothing reads them.
                let _ = (nonce, aad, text, tag);
                false
            }
        }
    }

    /// The kernel for messages in parts, if there is one.
    pub(crate) fn parts(&self) -> Option<&dyn PartsKernel> {
        match &self.backend {
            #[cfg(target_arch = "x86_64")]
            Backend::Own(own) => own.key.parts(),
            Backend::AwsLc { .. } => None,
        }
    }
}
