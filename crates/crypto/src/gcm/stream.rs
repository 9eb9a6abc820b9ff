//! A message of AES-GCM that comes in parts.

use crate::aead::{MOST_GCM_BYTES, NONCE_LEN, TAG_LEN};
use crate::error::Error;
use crate::kernel::gcm_parts::{Held, copy_short};
use crate::kernel::gcm_text::Text;
use zeroize::Zeroizing;

use super::hash::Hash;
use super::{BLOCK_LEN, GcmKey, lengths, xor};

/// Bytes of additional data that are kept until the message begins.
pub(super) const KEPT_AAD: usize = 32;

/// A message that is on its way.
#[derive(Clone)]
pub struct GcmStream {
    /// The counter block that hides the tag (J0).
    first_counter: [u8; BLOCK_LEN],
    /// True if the IV has the usual 96 bits: those in front of the counter.
    is_usual: bool,
    /// The hash, once something went through it.
    hash: Option<Hash>,
    /// Bytes that are not a block of the hash yet, if there is a hash or a tag.
    held: Held,
    /// Additional data, all of it while there is no hash: the message may come in one part.
    aad: [u8; KEPT_AAD],
    aad_len: u64,
    len: u64,
    /// The tag, if all of the message was sealed at once.
    tag: Option<[u8; TAG_LEN]>,
    /// The key stream of the block that `held` is of, once a part ended and began in it.
    keystream: Option<Zeroizing<[u8; BLOCK_LEN]>>,
}

impl Default for GcmStream {
    /// No message: one begins with [`GcmStream::begin`].
    fn default() -> Self {
        Self {
            first_counter: [0; BLOCK_LEN],
            is_usual: false,
            hash: None,
            held: Held::NOTHING,
            aad: [0; KEPT_AAD],
            aad_len: 0,
            len: 0,
            tag: None,
            keystream: None,
        }
    }
}

impl GcmStream {
    /// A message with a first counter that was made of an IV of another length.
    pub(super) fn unusual(first_counter: [u8; BLOCK_LEN]) -> Self {
        Self { first_counter, ..Self::default() }
    }

    /// Begins the next message, under an IV of the usual 96 bits; what was before is forgotten. The caller owns the
    /// uniqueness of the IV.
    #[inline(always)]
    pub fn begin(&mut self, nonce: [u8; NONCE_LEN]) {
        self.end();
        self.first_counter[..NONCE_LEN].copy_from_slice(&nonce);
        self.first_counter[NONCE_LEN..].copy_from_slice(&[0, 0, 0, 1]);
        self.is_usual = true;
        (self.aad_len, self.len, self.tag) = (0, 0, None);
    }

    /// Forgets what would help to forge: no part may come after this.
    #[inline(always)]
    pub fn end(&mut self) {
        if self.hash.is_some() {
            (self.hash, self.keystream) = (None, None);
        }
    }

    /// Adds additional data, all of which comes before the message.
    ///
    /// # Errors
    /// [`Error::PartOrder`] if the message has begun; [`Error::MessageTooLong`] after 2^61 bytes.
    #[inline(always)]
    pub fn aad(&mut self, key: &GcmKey, aad: &[u8]) -> Result<(), Error> {
        if self.len == 0
            && self.aad_len == 0
            && let Some(room) = self.aad.get_mut(..aad.len())
        {
            copy_short(room, aad);
            self.aad_len = aad.len() as u64;
            return Ok(());
        }
        self.more_aad(key, aad)
    }

    /// [`GcmStream::aad`], but for what is first and short.
    #[cold]
    fn more_aad(&mut self, key: &GcmKey, aad: &[u8]) -> Result<(), Error> {
        if self.len > 0 {
            return Err(Error::PartOrder);
        }
        let aad_len = self.aad_len.checked_add(aad.len() as u64).filter(|&len| len < 1 << 61);
        let aad_len = aad_len.ok_or(Error::MessageTooLong(aad.len()))?;
        let kept = self.kept_aad().map(<[u8]>::len);
        match kept.and_then(|kept| self.aad.get_mut(kept..kept + aad.len())) {
            Some(room) => room.copy_from_slice(aad),
            None => {
                self.hash_kept_aad(key);
                self.absorb(key, aad);
            }
        }
        self.aad_len = aad_len;
        Ok(())
    }

    /// Encrypts the next part of the message in place.
    ///
    /// # Errors
    /// [`Error::MessageTooLong`] beyond 64 GiB under one IV; `in_out` is then untouched.
    #[inline(always)]
    pub fn encrypt(&mut self, key: &GcmKey, in_out: &mut [u8]) -> Result<(), Error> {
        if let Some((nonce, aad)) = self.at_once(key, in_out.len())
            && let Some(tag) = key.aead.own_seal(nonce, aad, in_out)
        {
            self.was_all(tag, Held::end_of(in_out), in_out.len());
            return Ok(());
        }
        self.encrypt_part(key, Text::in_place(in_out))
    }

    /// [`GcmStream::encrypt`] of what no kernel of our own works on as if it were all.
    #[inline(never)]
    fn encrypt_part(&mut self, key: &GcmKey, text: Text<'_>) -> Result<(), Error> {
        let len = self.longer(text.len())?;
        if text.is_empty() {
            return Ok(());
        }
        if let Some((nonce, aad)) = self.at_once(key, text.len()) {
            let in_out = text.joined();
            let tag = key.aead.seal(nonce, aad, in_out)?;
            self.was_all(tag, Held::end_of(in_out), in_out.len());
            return Ok(());
        }
        self.rejoin(key);
        if self.is_within_block(text.len()) {
            self.within_block::<true>(key, text.joined());
        } else {
            let blocks = self.blocks();
            match (key.aead.parts(), &mut self.hash) {
                (Some(kernel), Some(Hash::Kernel(hash))) => {
                    kernel.seal(&self.first_counter, blocks, hash, &mut self.held, text);
                    self.keystream = None;
                }
                _ => {
                    let in_out = text.joined();
                    self.ctr(key, in_out);
                    self.absorb(key, in_out);
                }
            }
        }
        self.len = len;
        Ok(())
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
        if let Some((nonce, aad)) = self.at_once(key, plaintext.len())
            && let Some(tag) = key.aead.own_seal_into(nonce, aad, plaintext, ciphertext)
        {
            self.was_all(tag, Held::end_of(ciphertext), plaintext.len());
            return Ok(());
        }
        let (len, expected) = (ciphertext.len(), plaintext.len());
        let text = Text::apart(plaintext, None, ciphertext);
        self.encrypt_part(key, text.ok_or(Error::BufferLength { len, expected })?)
    }

    /// Decrypts the next part of the message in place. It is not authenticated before
    /// [`GcmStream::tag`] was compared.
    ///
    /// # Errors
    /// As [`GcmStream::encrypt`].
    #[inline(always)]
    pub fn decrypt(&mut self, key: &GcmKey, in_out: &mut [u8]) -> Result<(), Error> {
        if let Some((nonce, aad)) = self.at_once(key, in_out.len()) {
            let end = Held::end_of(in_out);
            if let Some(tag) = key.aead.own_open(nonce, aad, in_out) {
                self.was_all(tag, end, in_out.len());
                return Ok(());
            }
        }
        self.decrypt_part(key, Text::in_place(in_out))
    }

    /// [`GcmStream::decrypt`] of what no kernel of our own works on as if it were all.
    #[inline(never)]
    fn decrypt_part(&mut self, key: &GcmKey, text: Text<'_>) -> Result<(), Error> {
        let len = self.longer(text.len())?;
        if text.is_empty() {
            return Ok(());
        }
        self.rejoin(key);
        if self.is_within_block(text.len()) {
            self.within_block::<false>(key, text.joined());
        } else {
            let blocks = self.blocks();
            match (key.aead.parts(), &mut self.hash) {
                (Some(kernel), Some(Hash::Kernel(hash))) => {
                    kernel.open(&self.first_counter, blocks, hash, &mut self.held, text);
                    self.keystream = None;
                }
                _ => {
                    let in_out = text.joined();
                    self.absorb(key, in_out);
                    self.ctr(key, in_out);
                }
            }
        }
        self.len = len;
        Ok(())
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
        if let Some((nonce, aad)) = self.at_once(key, ciphertext.len())
            && let Some(tag) = key.aead.own_open_into(nonce, aad, ciphertext, plaintext)
        {
            self.was_all(tag, Held::end_of(ciphertext), ciphertext.len());
            return Ok(());
        }
        let (len, expected) = (plaintext.len(), ciphertext.len());
        let text = Text::apart(ciphertext, None, plaintext);
        self.decrypt_part(key, text.ok_or(Error::BufferLength { len, expected })?)
    }

    /// The additional data, as long as nothing of the message came and it is short.
    #[inline(always)]
    pub fn short_aad(&self) -> Option<&[u8]> {
        self.kept_aad().filter(|_| self.len == 0)
    }

    /// All additional data, if the hash has none of it.
    #[inline(always)]
    fn kept_aad(&self) -> Option<&[u8]> {
        self.aad.get(..self.aad_len as usize).filter(|_| self.hash.is_none())
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
        let (Some(nonce), Some(aad)) = (self.nonce(), self.short_aad()) else {
            return Err(Error::OnlyInParts);
        };
        let end = Held::end_of(in_out);
        key.aead.open(nonce, aad, in_out, tag)?;
        self.held = end;
        self.len = in_out.len() as u64;
        self.tag = (self.len > 0).then_some(*tag);
        Ok(())
    }

    /// The tag over all that came.
    #[inline(always)]
    pub fn tag(&mut self, key: &GcmKey) -> [u8; TAG_LEN] {
        match self.tag {
            Some(tag) => tag,
            None => self.tag_of_parts(key),
        }
    }

    #[inline(never)]
    fn tag_of_parts(&self, key: &GcmKey) -> [u8; TAG_LEN] {
        let mask = key.mask(&self.first_counter);
        if let (Some(kernel), Some(Hash::Kernel(hash))) = (key.aead.parts(), &self.hash) {
            let (mut hash, last) = (**hash, lengths(self.aad_len, self.len));
            match self.held.len {
                0 => kernel.hash(&mut hash, &[last]),
                _ => kernel.hash(&mut hash, &[self.held.block, last]),
            }
            return xor(hash, mask);
        }
        let mut end = self.clone();
        end.hash_kept_aad(key);
        end.fill_block(key);
        let mut hash = end.hash.unwrap_or_else(|| key.hash.start(&key.aead));
        hash.update(&key.aead, &[lengths(end.aad_len, end.len)]);
        let hash = hash.value();
        xor(hash, mask)
    }

    /// IV and additional data, if a first part of `len` bytes is worked on as if it were the whole message: most are. Never
    /// for none.
    #[inline(always)]
    fn at_once(&self, key: &GcmKey, len: usize) -> Option<([u8; NONCE_LEN], &[u8])> {
        let fits = len >= key.aead.at_once_from() && len as u64 <= MOST_GCM_BYTES;
        match (self.nonce(), self.short_aad()) {
            (Some(nonce), Some(aad)) if fits && key.aead.is_whole_best(len) => Some((nonce, aad)),
            _ => None,
        }
    }

    /// The IV, if it has the usual 96 bits.
    #[inline(always)]
    fn nonce(&self) -> Option<[u8; NONCE_LEN]> {
        self.first_counter.first_chunk().copied().filter(|_| self.is_usual)
    }

    /// Notes that a first part was worked on as if it were the message, and what of its ciphertext is no whole block.
    #[inline(always)]
    fn was_all(&mut self, tag: [u8; TAG_LEN], end: Held, len: usize) {
        (self.tag, self.held, self.len) = (Some(tag), end, len as u64);
    }

    /// Bytes of the message with `more`.
    fn longer(&self, more: usize) -> Result<u64, Error> {
        self.len
            .checked_add(more as u64)
            .filter(|&len| len <= MOST_GCM_BYTES)
            .ok_or(Error::MessageTooLong(more))
    }

    /// Additional data that was kept goes through the hash.
    fn hash_kept_aad(&mut self, key: &GcmKey) {
        let aad = self.aad;
        let kept = self.kept_aad().map_or(0, <[u8]>::len);
        self.absorb(key, &aad[..kept]);
    }

    /// Before a part goes through the hash by itself: the state of the hash behind all before it.
    fn rejoin(&mut self, key: &GcmKey) {
        match self.tag.take() {
            None if self.len == 0 => {
                self.hash_kept_aad(key);
                self.fill_block(key);
            }
            None => {}
            Some(tag) => {
                // Of less than a block nothing was hashed that is not there.
                if self.len < BLOCK_LEN as u64 {
                    let held = self.held.clone();
                    self.hash_kept_aad(key);
                    self.fill_block(key);
                    self.held = held;
                    return;
                }
                // The tag is (hash + lengths) times the hash key, hidden. The hash is had by going back, and
                // one step further where the last block was not whole.
                let last = xor(tag, key.mask(&self.first_counter));
                let back = |block| key.hash.divide(&key.aead, block);
                let mut hash = xor(back(last), lengths(self.aad_len, self.len));
                if self.held.len > 0 {
                    hash = xor(back(hash), self.held.block);
                }
                self.hash = Some(key.hash.start_from(&key.aead, hash));
            }
        }
    }

    /// Whether a part of `len` bytes ends in the block in which it begins, and a kernel of ours has the hash.
    fn is_within_block(&self, len: usize) -> bool {
        matches!(self.hash, Some(Hash::Kernel(_))) && len <= BLOCK_LEN - self.held.len
    }

    /// Works on such a part without making the key stream of its block anew.
    fn within_block<const SEAL: bool>(&mut self, key: &GcmKey, in_out: &mut [u8]) {
        let mut counter = self.first_counter;
        let [.., a, b, c, d] = counter;
        let low = u32::from_be_bytes([a, b, c, d]).wrapping_add(self.blocks());
        counter[NONCE_LEN..].copy_from_slice(&low.to_be_bytes());
        let begun = self.held.len;
        let keystream = self.keystream.get_or_insert_with(|| Zeroizing::new(key.mask(&counter)));
        if let (0, Ok(block)) = (begun, <&mut [u8; BLOCK_LEN]>::try_from(&mut *in_out)) {
            let made = xor(*block, **keystream);
            let hashed = if SEAL { made } else { *block };
            *block = made;
            self.keystream = None;
            if let Some(hash) = &mut self.hash {
                hash.update(&key.aead, &[hashed]);
            }
            return;
        }
        let places = in_out.iter_mut().zip(&keystream[begun..]).zip(&mut self.held.block[begun..]);
        for ((byte, key_byte), held) in places {
            let made = *byte ^ key_byte;
            *held = if SEAL { made } else { *byte };
            *byte = made;
        }
        self.held.len += in_out.len();
        if self.held.len == BLOCK_LEN {
            self.keystream = None;
            self.fill_block(key);
        }
    }

    /// The key stream onto the next part. Only 32 bits of the counter count.
    fn ctr(&self, key: &GcmKey, in_out: &mut [u8]) {
        let mut start = self.first_counter;
        let [.., a, b, c, d] = start;
        let low = u32::from_be_bytes([a, b, c, d]).wrapping_add(1);
        start[NONCE_LEN..].copy_from_slice(&low.to_be_bytes());
        let wraps_at = ((1 << 32) - u64::from(low)) * BLOCK_LEN as u64;
        let before = wraps_at.saturating_sub(self.len).min(in_out.len() as u64) as usize;
        let (before, behind) = in_out.split_at_mut(before);
        if !before.is_empty() {
            key.aes().ctr(&start, self.len, before);
        }
        if !behind.is_empty() {
            start[NONCE_LEN..].fill(0);
            let offset = self.len + before.len() as u64 - wraps_at;
            key.aes().ctr(&start, offset, behind);
        }
    }

    /// How many counters the next byte of the message is behind the first, of which 32 bits count.
    fn blocks(&self) -> u32 {
        (self.len / BLOCK_LEN as u64 + 1) as u32
    }

    /// The hash, begun if need be, and what it has not taken.
    fn begun_hash(&mut self, key: &GcmKey) -> (&mut Hash, &mut Held) {
        let Self { hash, held, .. } = self;
        let hash = hash.get_or_insert_with(|| {
            *held = Held::NOTHING;
            key.hash.start(&key.aead)
        });
        (hash, held)
    }

    /// Bytes go through the hash as soon as they are a block.
    fn absorb(&mut self, key: &GcmKey, bytes: &[u8]) {
        let (hash, held) = self.begun_hash(key);
        held.absorb(bytes, |blocks| hash.update(&key.aead, blocks));
    }

    /// Zeros up to a whole block.
    fn fill_block(&mut self, key: &GcmKey) {
        let (hash, held) = self.begun_hash(key);
        held.fill_block(|block| hash.update(&key.aead, block));
    }
}
