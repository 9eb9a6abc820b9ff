//! A message of AES-GCM that comes in parts.

use crate::aead::{MOST_GCM_BYTES, NONCE_LEN, TAG_LEN};
use crate::error::Error;
use crate::kernel::gcm_parts::{Direction, Parts, PartsKernel, Unhashed, copy_short};
use crate::kernel::gcm_text::Text;
use ghash::GHash;
use ghash::universal_hash::UniversalHash;

use super::{BLOCK_LEN, GcmKey, lengths, xor};

/// Bytes of the longest part that key stream is made ahead for, by kernels of our own.
const MOST_SHORT_PART: usize = 96;

/// Bytes of the longest first part that is processed as a part if the last message came in parts.
const MOST_GOING_ON: usize = 1024;

/// A message that is on its way.
#[derive(Clone)]
pub struct GcmStream {
    message: Parts,
    /// True if the IV has the usual 96 bits: those in front of the counter.
    is_usual: bool,
    /// The hash once it is begun, if no kernel of our own makes it.
    hash: Option<GHash>,
    /// The tag, if all of the message was worked on at once, or the one that was asked for last.
    tag: [u8; TAG_LEN],
    /// True if all of the message was worked on at once.
    was_all: bool,
    /// Parts of the message so far. Only whether there is more than one matters.
    parts: u8,
    /// True if the message before this one came in parts: then the first part of this one is processed as a part too.
    is_like_last: bool,
}

impl Default for GcmStream {
    /// No message: one begins with [`GcmStream::begin`].
    fn default() -> Self {
        Self::unusual([0; BLOCK_LEN])
    }
}

impl GcmStream {
    /// A message with a first counter that was made of an IV of another length.
    pub(super) fn unusual(first_counter: [u8; BLOCK_LEN]) -> Self {
        let message = Parts::new(first_counter);
        Self {
            message,
            is_usual: false,
            hash: None,
            tag: [0; TAG_LEN],
            was_all: false,
            parts: 0,
            is_like_last: false,
        }
    }

    /// Begins the next message, under an IV of the usual 96 bits; what was before is forgotten. The caller owns the
    /// uniqueness of the IV.
    #[inline(always)]
    pub fn begin(&mut self, nonce: [u8; NONCE_LEN]) {
        self.end();
        let message = &mut self.message;
        message.first_counter[..NONCE_LEN].copy_from_slice(&nonce);
        message.first_counter[NONCE_LEN..].copy_from_slice(&[0, 0, 0, 1]);
        (message.aad_len, message.len, message.unhashed.len) = (0, 0, 0);
        (self.is_usual, self.was_all) = (true, false);
        (self.is_like_last, self.parts) = (self.parts > 1, 0);
    }

    /// Forgets what would help to forge: no part may come after this.
    #[inline(always)]
    pub fn end(&mut self) {
        self.message.wipe();
        if self.hash.is_some() {
            self.hash = None;
        }
    }

    /// Adds additional data, all of which comes before the message.
    ///
    /// # Errors
    /// [`Error::PartOrder`] if the message has begun; [`Error::MessageTooLong`] after 2^61 bytes.
    #[inline(always)]
    pub fn aad(&mut self, key: &GcmKey, aad: &[u8]) -> Result<(), Error> {
        let message = &mut self.message;
        if message.len == 0
            && message.aad_len == 0
            && let Some(room) = message.aad.get_mut(..aad.len())
        {
            copy_short(room, aad);
            message.aad_len = aad.len() as u64;
            return Ok(());
        }
        self.more_aad(key, aad)
    }

    /// [`GcmStream::aad`], but for what is first and short.
    #[cold]
    fn more_aad(&mut self, key: &GcmKey, aad: &[u8]) -> Result<(), Error> {
        let message = &mut self.message;
        if message.len > 0 {
            return Err(Error::PartOrder);
        }
        let aad_len = message.aad_len.checked_add(aad.len() as u64).filter(|&len| len < 1 << 61);
        let aad_len = aad_len.ok_or(Error::MessageTooLong(aad.len()))?;
        let kept = message.kept_aad().map(<[u8]>::len);
        match kept.and_then(|kept| message.aad.get_mut(kept..kept + aad.len())) {
            Some(room) => room.copy_from_slice(aad),
            None => {
                self.absorb_kept_aad(key);
                self.absorb(key, aad);
            }
        }
        self.message.aad_len = aad_len;
        Ok(())
    }

    /// Encrypts the next part of the message in place.
    ///
    /// # Errors
    /// [`Error::MessageTooLong`] beyond 64 GiB under one IV; `in_out` is then untouched.
    #[inline(always)]
    pub fn encrypt(&mut self, key: &GcmKey, in_out: &mut [u8]) -> Result<(), Error> {
        self.encrypt_text(key, &mut Text::in_place(in_out))
    }

    /// As [`GcmStream::encrypt`], from one place into another that is as long.
    ///
    /// # Errors
    /// As [`GcmStream::encrypt`], and [`Error::BufferLength`] if the lengths are not the same; nothing is written
    /// then.
    #[inline(always)]
    pub fn encrypt_into(
        &mut self,
        key: &GcmKey,
        plaintext: &[u8],
        ciphertext: &mut [u8],
    ) -> Result<(), Error> {
        let Some(mut text) = Text::apart(plaintext, None, ciphertext) else {
            return Err(other_len(plaintext, ciphertext));
        };
        self.encrypt_text(key, &mut text)
    }

    /// Decrypts the next part of the message in place. It is not authenticated before
    /// [`GcmStream::tag`] was compared.
    ///
    /// # Errors
    /// As [`GcmStream::encrypt`].
    #[inline(always)]
    pub fn decrypt(&mut self, key: &GcmKey, in_out: &mut [u8]) -> Result<(), Error> {
        self.decrypt_text(key, &mut Text::in_place(in_out))
    }

    /// As [`GcmStream::decrypt`], from one place into another that is as long.
    ///
    /// # Errors
    /// As [`GcmStream::encrypt_into`].
    #[inline(always)]
    pub fn decrypt_into(
        &mut self,
        key: &GcmKey,
        ciphertext: &[u8],
        plaintext: &mut [u8],
    ) -> Result<(), Error> {
        let Some(mut text) = Text::apart(ciphertext, None, plaintext) else {
            return Err(other_len(ciphertext, plaintext));
        };
        self.decrypt_text(key, &mut text)
    }

    #[inline(always)]
    fn encrypt_text(&mut self, key: &GcmKey, text: &mut Text<'_>) -> Result<(), Error> {
        if self.is_at_once(key, text.len()) {
            let Self { message, tag, .. } = self;
            let (nonce, aad) = message.nonce_and_aad();
            if key.aead.own_seal(nonce, aad, text, tag) {
                message.unhashed.take_end(text.written());
                message.len = text.len() as u64;
                (self.was_all, self.parts) = (true, 1);
                return Ok(());
            }
        }
        self.part(key, Direction::Encrypt, text)
    }

    #[inline(always)]
    fn decrypt_text(&mut self, key: &GcmKey, text: &mut Text<'_>) -> Result<(), Error> {
        if self.is_at_once(key, text.len()) {
            let Self { message, tag, .. } = self;
            message.unhashed.take_end(text.read());
            let (nonce, aad) = message.nonce_and_aad();
            if key.aead.own_open(nonce, aad, text, tag) {
                message.len = text.len() as u64;
                (self.was_all, self.parts) = (true, 1);
                return Ok(());
            }
            message.unhashed.len = 0;
        }
        self.part(key, Direction::Decrypt, text)
    }

    /// The additional data, as long as nothing of the message came and it is short.
    #[inline(always)]
    pub fn short_aad(&self) -> Option<&[u8]> {
        self.message.kept_aad().filter(|_| self.message.len == 0)
    }

    /// Decrypts a whole message after checking its tag, for callers that know where it ends.
    /// Faster than parts, and returns no plaintext before it is authenticated.
    ///
    /// # Errors
    /// [`Error::Authentication`]; `in_out` is then all zeros. [`Error::OnlyInParts`] if
    /// additional data is long, the IV has not 96 bits, or parts came before; nothing has happened
    /// then.
    pub fn open(
        &mut self,
        key: &GcmKey,
        in_out: &mut [u8],
        tag: &[u8; TAG_LEN],
    ) -> Result<(), Error> {
        if !self.is_usual || self.short_aad().is_none() {
            return Err(Error::OnlyInParts);
        }
        let message = &mut self.message;
        message.unhashed.take_end(in_out);
        let (nonce, aad) = message.nonce_and_aad();
        if let Err(error) = key.aead.open(*nonce, aad, in_out, tag) {
            message.unhashed.len = 0;
            return Err(error);
        }
        message.len = in_out.len() as u64;
        (self.tag, self.was_all, self.parts) = (*tag, !in_out.is_empty(), 1);
        Ok(())
    }

    /// The tag over all that came.
    #[inline(always)]
    pub fn tag(&mut self, key: &GcmKey) -> &[u8; TAG_LEN] {
        if !self.was_all {
            self.make_tag(key);
        }
        &self.tag
    }

    #[inline(never)]
    fn make_tag(&mut self, key: &GcmKey) {
        if let Some(kernel) = key.aead.parts() {
            return kernel.tag(&self.message, &mut self.tag);
        }
        let mut end = self.clone();
        end.absorb_kept_aad(key);
        end.fill_block(key);
        let Parts { aad_len, len, first_counter, .. } = end.message;
        let mut hash = end.hash.take().unwrap_or_else(|| key.hash.start(&key.aead));
        hash.update(&[lengths(aad_len, len).into()]);
        self.tag = xor(hash.finalize().into(), key.mask(&first_counter));
    }

    /// Whether a part of `len` bytes is worked on as if it were the whole message: most first ones are. Never one of no
    /// bytes.
    #[inline(always)]
    fn is_at_once(&self, key: &GcmKey, len: usize) -> bool {
        let goes_on = self.is_like_last && len <= MOST_GOING_ON && key.aead.parts().is_some();
        len >= key.aead.at_once_from()
            && len as u64 <= MOST_GCM_BYTES
            && !goes_on
            && self.is_usual
            && self.short_aad().is_some()
            && key.aead.is_whole_best(len)
    }

    /// A part that no kernel of our own worked on as if it were all.
    #[inline(never)]
    fn part(
        &mut self,
        key: &GcmKey,
        direction: Direction,
        text: &mut Text<'_>,
    ) -> Result<(), Error> {
        let len = self.message.len.checked_add(text.len() as u64);
        let len = len.filter(|&len| len <= MOST_GCM_BYTES);
        let len = len.ok_or(Error::MessageTooLong(text.len()))?;
        if text.is_empty() {
            return Ok(());
        }
        self.parts = self.parts.saturating_add(1);
        if let Some(kernel) = key.aead.parts() {
            self.own_part(key, kernel, direction, text);
            return Ok(());
        }
        if direction == Direction::Encrypt && self.is_at_once(key, text.len()) {
            let (message, in_out) = (&mut self.message, text.joined());
            let (nonce, aad) = message.nonce_and_aad();
            self.tag = key.aead.seal(*nonce, aad, in_out)?;
            message.unhashed.take_end(in_out);
            message.len = len;
            (self.was_all, self.parts) = (true, 1);
            return Ok(());
        }
        self.rejoin(key);
        let in_out = text.joined();
        if direction == Direction::Encrypt {
            self.ctr(key, in_out);
            self.absorb(key, in_out);
        } else {
            self.absorb(key, in_out);
            self.ctr(key, in_out);
        }
        self.message.len = len;
        Ok(())
    }

    /// A part for a kernel of our own.
    #[inline(always)]
    fn own_part(
        &mut self,
        key: &GcmKey,
        kernel: &dyn PartsKernel,
        direction: Direction,
        text: &mut Text<'_>,
    ) {
        if self.was_all {
            self.was_all = false;
            // Of less than a block nothing was hashed that is not there.
            if self.message.len >= BLOCK_LEN as u64 {
                kernel.go_back(key.hash.kernel_inverse(kernel), &self.tag, &mut self.message);
            }
        } else if self.message.len == 0 && self.message.is_hashed {
            // The end of long additional data.
            self.fill_block(key);
        }
        if text.len() <= MOST_SHORT_PART {
            kernel.short(direction, &mut self.message, text);
        } else {
            kernel.long(direction, &mut self.message, text);
        }
    }

    /// Before a part goes through the crate's hash: the state of the hash behind all before it.
    fn rejoin(&mut self, key: &GcmKey) {
        if !self.was_all {
            if self.message.len == 0 {
                self.absorb_kept_aad(key);
                self.fill_block(key);
            }
            return;
        }
        self.was_all = false;
        let Parts { aad_len, len, first_counter, .. } = self.message;
        let unhashed = self.message.unhashed.clone();
        if len < BLOCK_LEN as u64 {
            // Nothing was hashed that is not there.
            self.message.unhashed.len = 0;
            self.absorb_kept_aad(key);
            self.fill_block(key);
            self.message.unhashed = unhashed;
            return;
        }
        // The tag is (hash + lengths) times the hash key, hidden. The hash is had by going back, and
        // one step further where the last block was not whole.
        let back = |block| key.hash.divide(&key.aead, block);
        let mut hash = xor(back(xor(self.tag, key.mask(&first_counter))), lengths(aad_len, len));
        if unhashed.len > 0 {
            let mut block = [0; BLOCK_LEN];
            block[..unhashed.len].copy_from_slice(unhashed.bytes());
            hash = xor(back(hash), block);
        }
        self.hash = Some(key.hash.start_from(&key.aead, hash));
        self.message.is_hashed = true;
    }

    /// The key stream onto the next part. Only 32 bits of the counter count.
    fn ctr(&self, key: &GcmKey, in_out: &mut [u8]) {
        let (mut start, len) = (self.message.first_counter, self.message.len);
        let [.., a, b, c, d] = start;
        let low = u32::from_be_bytes([a, b, c, d]).wrapping_add(1);
        start[NONCE_LEN..].copy_from_slice(&low.to_be_bytes());
        let wraps_at = ((1 << 32) - u64::from(low)) * BLOCK_LEN as u64;
        let before = wraps_at.saturating_sub(len).min(in_out.len() as u64) as usize;
        let (before, behind) = in_out.split_at_mut(before);
        if !before.is_empty() {
            key.aes().ctr(&start, len, before);
        }
        if !behind.is_empty() {
            start[NONCE_LEN..].fill(0);
            let offset = len + before.len() as u64 - wraps_at;
            key.aes().ctr(&start, offset, behind);
        }
    }

    /// Additional data that was kept goes through the hash.
    fn absorb_kept_aad(&mut self, key: &GcmKey) {
        let aad = self.message.aad;
        let kept = self.message.kept_aad().map_or(0, <[u8]>::len);
        self.absorb(key, &aad[..kept]);
    }

    /// Bytes go through the hash as soon as they are a block.
    fn absorb(&mut self, key: &GcmKey, bytes: &[u8]) {
        self.update(key, |unhashed, update| unhashed.absorb(bytes, update));
    }

    /// Zeros up to a whole block.
    fn fill_block(&mut self, key: &GcmKey) {
        self.update(key, |unhashed, update| unhashed.fill_block(update));
    }

    /// Gives `bytes` what the hash does not have, and a way to go on with the hash.
    fn update(
        &mut self,
        key: &GcmKey,
        bytes: impl FnOnce(&mut Unhashed, &mut dyn FnMut(&[[u8; BLOCK_LEN]])),
    ) {
        let Parts { hash, unhashed, is_hashed, .. } = &mut self.message;
        *is_hashed = true;
        if let Some(kernel) = key.aead.parts() {
            return bytes(unhashed, &mut |blocks| kernel.hash(hash, blocks));
        }
        let hash = self.hash.get_or_insert_with(|| key.hash.start(&key.aead));
        bytes(unhashed, &mut |blocks| hash.update(ghash::Block::cast_slice_from_core(blocks)));
    }
}

#[cold]
fn other_len(source: &[u8], target: &[u8]) -> Error {
    Error::BufferLength { len: target.len(), expected: source.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gcm_kernel::GcmKernel;

    #[test]
    fn the_end_wipes_the_key_stream_and_the_hash() {
        for kernel in GcmKernel::all() {
            let key = GcmKey::with_kernel(kernel, &[7; 32]).unwrap();
            for lens in [[4, 4, 4], [40, 40, 40], [40, 200, 4], [300, 4, 40]] {
                let mut stream = key.begin(&[9; NONCE_LEN]).unwrap();
                for len in lens {
                    stream.encrypt(&key, &mut vec![0; len]).unwrap();
                }
                if key.aead.parts().is_some() {
                    assert!(stream.message.key_stream.is_made, "{lens:?}");
                }
                stream.end();
                let Parts { key_stream, hash, .. } = &stream.message;
                assert!(key_stream.blocks.iter().all(|&block| block == 0), "{lens:?}");
                assert!(*hash == 0 && stream.hash.is_none(), "{lens:?}");
            }
        }
    }
}
