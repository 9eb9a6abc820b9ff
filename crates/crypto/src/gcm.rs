//! AES-GCM (NIST SP 800-38D) of messages that come in parts, with IVs of any length that the standard knows.
//! Tags have 16 bytes; a caller may shorten them as the standard permits.
//!
//! Opening a message in parts gives plaintext before the tag is checked; the caller must hold it
//! back until then. Only interfaces that demand it, such as OpenSSL's, use this. For a message in
//! one part use [`AeadKey`], which is faster.

use ghash::GHash;
use ghash::universal_hash::UniversalHash;
use zeroize::Zeroize;

use crate::aead::{AeadAlgorithm, AeadKey, MOST_GCM_BYTES, NONCE_LEN, TAG_LEN};
use crate::aes::AesKey;
use crate::error::Error;
use crate::gcm_kernel::GcmKernel;
use crate::kernel::gcm_parts::{Held, copy_short};

mod hash;
mod late_aad;
#[cfg(test)]
mod tests;

use hash::{Hash, HashKey};
pub use late_aad::LateAad;

const BLOCK_LEN: usize = AesKey::BLOCK_LEN;

/// Bytes of additional data that are kept until the message begins.
const KEPT_AAD: usize = 32;

/// An expanded key of AES-GCM, for messages at once and in parts.
pub struct GcmKey {
    aead: AeadKey,
    hash: HashKey,
}

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
}

impl GcmKey {
    /// Expands a key of 16, 24 or 32 bytes.
    ///
    /// # Errors
    /// [`Error::KeyLength`] for any other length.
    pub fn new(key: &[u8]) -> Result<Self, Error> {
        Self::with_kernel(GcmKernel::best(), key)
    }

    /// As [`GcmKey::new`], for a kernel that the caller chooses.
    ///
    /// # Errors
    /// As [`GcmKey::new`].
    pub fn with_kernel(kernel: GcmKernel, key: &[u8]) -> Result<Self, Error> {
        let algorithm = match key.len() {
            16 => AeadAlgorithm::Aes128Gcm,
            24 => AeadAlgorithm::Aes192Gcm,
            32 => AeadAlgorithm::Aes256Gcm,
            len => return Err(Error::KeyLength { algorithm: "AES-GCM", len }),
        };
        let aead = AeadKey::with_kernel(kernel, algorithm, key)?;
        Ok(Self { aead, hash: HashKey::default() })
    }

    /// The same key for messages in one part.
    pub fn aead(&self) -> &AeadKey {
        &self.aead
    }

    /// Begins a message under an IV of at least a byte. The caller owns its uniqueness.
    ///
    /// # Errors
    /// [`Error::IvLength`] for an empty IV.
    pub fn begin(&self, iv: &[u8]) -> Result<GcmStream, Error> {
        if iv.is_empty() {
            let algorithm = self.aead.algorithm().name().to_owned();
            return Err(Error::IvLength { algorithm, len: 0, expected: NONCE_LEN });
        }
        if let Ok(nonce) = <[u8; NONCE_LEN]>::try_from(iv) {
            let mut stream = GcmStream::default();
            stream.begin(nonce);
            return Ok(stream);
        }
        let mut hash = self.hash.start(&self.aead);
        let mut held = Held::NOTHING;
        held.absorb(iv, |blocks| hash.update(&self.aead, blocks));
        held.fill_block(|block| hash.update(&self.aead, block));
        hash.update(&self.aead, &[lengths(0, iv.len() as u64)]);
        Ok(GcmStream { first_counter: hash.value(), ..GcmStream::default() })
    }

    fn aes(&self) -> &AesKey {
        block_cipher(&self.aead)
    }

    /// What hides the tag of a message with that first counter.
    fn mask(&self, first_counter: &[u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
        let mut mask = [0; BLOCK_LEN];
        self.aes().ctr(first_counter, 0, &mut mask);
        mask
    }
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
        }
    }
}

impl GcmStream {
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
            self.hash = None;
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
        self.encrypt_part(key, in_out)
    }

    /// [`GcmStream::encrypt`] of what no kernel of our own works on as if it were all.
    #[inline(never)]
    fn encrypt_part(&mut self, key: &GcmKey, in_out: &mut [u8]) -> Result<(), Error> {
        let len = self.longer(in_out.len())?;
        if in_out.is_empty() {
            return Ok(());
        }
        if let Some((nonce, aad)) = self.at_once(key, in_out.len()) {
            let tag = key.aead.seal(nonce, aad, in_out)?;
            self.was_all(tag, Held::end_of(in_out), in_out.len());
            return Ok(());
        }
        self.rejoin(key);
        let blocks = self.blocks();
        match (key.aead.parts(), &mut self.hash) {
            (Some(kernel), Some(Hash::Kernel(hash))) => {
                kernel.seal(&self.first_counter, blocks, hash, &mut self.held, in_out);
            }
            _ => {
                self.ctr(key, in_out);
                self.absorb(key, in_out);
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
        same_length(plaintext, ciphertext)?;
        if let Some((nonce, aad)) = self.at_once(key, plaintext.len())
            && let Some(tag) = key.aead.own_seal_into(nonce, aad, plaintext, ciphertext)
        {
            self.was_all(tag, Held::end_of(ciphertext), plaintext.len());
            return Ok(());
        }
        ciphertext.copy_from_slice(plaintext);
        self.encrypt_part(key, ciphertext)
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
        self.decrypt_part(key, in_out)
    }

    /// [`GcmStream::decrypt`] of what no kernel of our own works on as if it were all.
    #[inline(never)]
    fn decrypt_part(&mut self, key: &GcmKey, in_out: &mut [u8]) -> Result<(), Error> {
        let len = self.longer(in_out.len())?;
        if in_out.is_empty() {
            return Ok(());
        }
        self.rejoin(key);
        let blocks = self.blocks();
        match (key.aead.parts(), &mut self.hash) {
            (Some(kernel), Some(Hash::Kernel(hash))) => {
                kernel.open(&self.first_counter, blocks, hash, &mut self.held, in_out);
            }
            _ => {
                self.absorb(key, in_out);
                self.ctr(key, in_out);
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
        same_length(ciphertext, plaintext)?;
        if let Some((nonce, aad)) = self.at_once(key, ciphertext.len())
            && let Some(tag) = key.aead.own_open_into(nonce, aad, ciphertext, plaintext)
        {
            self.was_all(tag, Held::end_of(ciphertext), ciphertext.len());
            return Ok(());
        }
        plaintext.copy_from_slice(ciphertext);
        self.decrypt_part(key, plaintext)
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
        let mut end = self.clone();
        end.hash_kept_aad(key);
        end.fill_block(key);
        let mut hash = end.hash.unwrap_or_else(|| key.hash.start(&key.aead));
        hash.update(&key.aead, &[lengths(end.aad_len, end.len)]);
        let hash = hash.value();
        xor(hash, key.mask(&self.first_counter))
    }

    /// IV and additional data, if a first part of `len` bytes is worked on as if it were the whole message: most are. Never
    /// for none.
    #[inline(always)]
    fn at_once(&self, key: &GcmKey, len: usize) -> Option<([u8; NONCE_LEN], &[u8])> {
        let fits = len >= key.aead.at_once_from() && len as u64 <= MOST_GCM_BYTES;
        match (self.nonce(), self.short_aad()) {
            (Some(nonce), Some(aad)) if fits => Some((nonce, aad)),
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

    /// Bytes go through the hash as soon as they are a block.
    fn absorb(&mut self, key: &GcmKey, bytes: &[u8]) {
        let Self { hash, held, .. } = self;
        let hash = hash.get_or_insert_with(|| {
            *held = Held::NOTHING;
            key.hash.start(&key.aead)
        });
        held.absorb(bytes, |blocks| hash.update(&key.aead, blocks));
    }

    /// Zeros up to a whole block.
    fn fill_block(&mut self, key: &GcmKey) {
        let Self { hash, held, .. } = self;
        let hash = hash.get_or_insert_with(|| {
            *held = Held::NOTHING;
            key.hash.start(&key.aead)
        });
        held.fill_block(|block| hash.update(&key.aead, block));
    }
}

fn same_length(input: &[u8], output: &[u8]) -> Result<(), Error> {
    let (len, expected) = (output.len(), input.len());
    if len == expected { Ok(()) } else { Err(Error::BufferLength { len, expected }) }
}

fn block_cipher(aead: &AeadKey) -> &AesKey {
    aead.block_cipher().expect("AES-GCM has a block cipher")
}

/// The hash under the key of a block cipher, before any block (SP 800-38D, 6.4).
fn hash_of(aes: &AesKey) -> GHash {
    let mut hash_key = [0; BLOCK_LEN];
    aes.ecb_encrypt(&mut hash_key).expect("one block is whole blocks");
    let hash = GHash::new(&hash_key.into());
    hash_key.zeroize();
    hash
}

/// The last block of the hash: two lengths in bits.
fn lengths(aad_len: u64, len: u64) -> [u8; BLOCK_LEN] {
    ((u128::from(aad_len * 8) << 64) | u128::from(len * 8)).to_be_bytes()
}

fn xor(a: [u8; BLOCK_LEN], b: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    (u128::from_ne_bytes(a) ^ u128::from_ne_bytes(b)).to_ne_bytes()
}

/// The product in the field of the hash.
fn multiply(a: [u8; BLOCK_LEN], b: [u8; BLOCK_LEN]) -> [u8; BLOCK_LEN] {
    let mut hash = GHash::new(&a.into());
    hash.update(&[b.into()]);
    hash.finalize().into()
}
