//! AES in CTR under the traits of the crate `cipher`.

use cipher::consts::{U16, U24, U32};
use cipher::{
    InOutBuf, Iv, IvSizeUser, Key, KeyIvInit, KeySizeUser, OverflowError, SeekNum, StreamCipher,
    StreamCipherError, StreamCipherSeek,
};

use crate::aes::{AesKernel, AesKey};

/// Bytes of a block.
const BLOCK_LEN: u64 = AesKey::BLOCK_LEN as u64;

/// Bytes of key stream under one counter block: as far as [`AesKey::ctr`] counts, in whole blocks.
const MOST_BYTES: u64 = u64::MAX / BLOCK_LEN * BLOCK_LEN;

/// AES in CTR, by the length of its keys.
macro_rules! ctrs {
    ($($(#[$doc:meta])+ $name:ident, $key_size:ty;)+) => {$(
        $(#[$doc])+
        /// with a 128-bit big-endian counter (NIST SP 800-38A), whose first value is the IV. The key is wiped on drop.
        pub struct $name {
            key: AesKey,
            iv: [u8; AesKey::BLOCK_LEN],
            /// At most [`MOST_BYTES`].
            position: u64,
        }

        impl KeySizeUser for $name {
            type KeySize = $key_size;
        }

        impl IvSizeUser for $name {
            type IvSize = U16;
        }

        impl KeyIvInit for $name {
            fn new(key: &Key<Self>, iv: &Iv<Self>) -> Self {
                let key = AesKey::new(AesKernel::best(), key);
                let key = key.expect("a key of that type is as long");
                Self { key, iv: (*iv).into(), position: 0 }
            }
        }

        impl StreamCipher for $name {
            fn check_remaining(&self, data_len: usize) -> Result<(), StreamCipherError> {
                let left = MOST_BYTES - self.position;
                if data_len as u64 <= left { Ok(()) } else { Err(StreamCipherError) }
            }

            fn unchecked_apply_keystream_inout(&mut self, buf: InOutBuf<'_, '_, u8>) {
                let in_out = buf.into_out_with_copied_in();
                self.key.ctr(&self.iv, self.position, in_out);
                self.position = self.position.saturating_add(in_out.len() as u64).min(MOST_BYTES);
            }

            fn unchecked_write_keystream(&mut self, buf: &mut [u8]) {
                buf.fill(0);
                self.unchecked_apply_keystream_inout(buf.into());
            }
        }

        impl StreamCipherSeek for $name {
            fn try_current_pos<T: SeekNum>(&self) -> Result<T, OverflowError> {
                // The trait wants the block that the position is in or behind, and the bytes up to there: 1 to 16.
                let behind = self.position % BLOCK_LEN;
                let bytes = if behind == 0 { BLOCK_LEN } else { behind };
                T::from_block_byte(self.position.div_ceil(BLOCK_LEN), bytes as u8, BLOCK_LEN as u8)
            }

            fn try_seek<T: SeekNum>(&mut self, pos: T) -> Result<(), StreamCipherError> {
                let (block, byte) = pos.into_block_byte::<u64>(BLOCK_LEN as u8)?;
                let start = block.checked_mul(BLOCK_LEN).ok_or(StreamCipherError)?;
                let position = start.checked_add(byte.into()).filter(|&byte| byte <= MOST_BYTES);
                self.position = position.ok_or(StreamCipherError)?;
                Ok(())
            }
        }
    )+};
}

ctrs! {
    /// AES-128
    Aes128Ctr, U16;
    /// AES-192
    Aes192Ctr, U24;
    /// AES-256
    Aes256Ctr, U32;
}
