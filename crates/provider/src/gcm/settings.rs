//! What a context of AES-GCM is told and asked beside its messages: keys, IVs and parameters.

use std::sync::Arc;

use wattlock_crypto::NONCE_LEN;
use wattlock_crypto::TAG_LEN;
use wattlock_crypto::gcm::GcmKey;
use wattlock_tls::gcm::{EXPLICIT_IV_LEN, FIXED_IV_LEN};

use super::records::{GcmRecords, count_up};
use super::{IvState, MAX_IV_LEN, Message, start};
use crate::abi::name;
use crate::cipher::Direction;
use crate::error::Error;
use crate::params::Params;
use crate::random;
use crate::self_check::{self, Suite};

impl Message {
    #[inline(never)]
    pub(super) fn init_any(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Error> {
        if direction != self.direction || key.is_some() {
            // Work in progress has ended; only an unused IV remains valid.
            if self.iv_state == IvState::InUse {
                self.iv_state = IvState::Used;
            }
            self.stream.end();
            self.many.reset();
        }
        if direction != self.direction {
            self.tag_len = None;
        }
        self.direction = direction;
        if let Some(iv) = iv {
            self.iv.get_mut(..iv.len()).ok_or(Error::IvLength)?.copy_from_slice(iv);
            if iv.is_empty() {
                return Err(Error::IvLength);
            }
            self.iv_len = iv.len();
            self.iv_state = IvState::Ready;
            self.iv_counts = false;
            self.stream.end();
        }
        if let Some(key) = key {
            if key.len() != self.key_len {
                return Err(Error::KeyLength);
            }
            match self.key.as_mut().and_then(Arc::get_mut) {
                Some(old) => old.replace(key)?,
                None => self.key = Some(Arc::new(GcmKey::new(key)?)),
            }
            self.tls.records = 0;
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn set_all(&mut self, params: &Params<'_>) -> Result<(), Error> {
        if let Some(value) = params.find(name::TAG) {
            self.set_tag(&value)?;
        }
        if let Some(len) = params.unsigned(name::IV_LEN)? {
            let len = usize::try_from(len).map_err(|_| Error::IvLength)?;
            if !(1..=MAX_IV_LEN).contains(&len) {
                return Err(Error::IvLength);
            }
            if len != self.iv_len {
                self.iv_len = len;
                if self.iv_state != IvState::Absent {
                    self.iv_state = IvState::Used;
                }
            }
        }
        if let Some(value) = params.find(name::TLS_AAD) {
            self.set_record_aad(&value)?;
        }
        self.set_fixed(params)?;
        if let Some(value) = params.find(name::TLS_IV_INVOCATION) {
            let invocation = value.octets()?;
            self.set_invocation(invocation).map_err(Error::unsaid)?;
            let key = self.key.as_ref().ok_or(Error::NoKey)?;
            start(&mut self.stream, key, &self.iv, self.iv_len)?;
            self.iv_state = IvState::InUse;
        }
        let sealing = self.direction == Direction::Encrypt && self.nonce().is_ok();
        if let Some(write) = self.many.set(params, sealing && self.key.is_some())? {
            let suite = Suite::Gcm { key_len: self.key_len };
            let again = self_check::wants(suite, write.records()).then(|| write.again());
            let first = self.nonce()?;
            let written = self.records(write)?;
            if let (Some(again), Some(key)) = (again, &self.key) {
                let single = GcmRecords { key: key.aead(), first };
                // SAFETY: it was sealed, and nothing of it is borrowed.
                unsafe { self_check::written(suite, again, written, &single) }?;
            }
            self.many.wrote(written);
        }
        Ok(())
    }

    #[inline(never)]
    pub(super) fn answer_all(&mut self, params: &Params<'_>) -> Result<(), Error> {
        params.answer(name::KEY_LEN, self.key_len)?;
        params.answer(name::IV_LEN, self.iv_len)?;
        params.answer(name::TAG_LEN, self.tag_len.unwrap_or(TAG_LEN))?;
        params.answer(name::TLS_AAD_PAD, self.tls.pad)?;
        self.answer_iv(params)?;
        if let Some(value) = params.find(name::TAG) {
            self.answer_tag(&value)?;
        }
        self.generate(params)?;
        self.many.get(params)
    }

    /// `tlsivfixed`: what a connection keeps of the IV, or the whole under the size -1.
    fn set_fixed(&mut self, params: &Params<'_>) -> Result<(), Error> {
        let Some(value) = params.find(name::TLS_IV_FIXED) else { return Ok(()) };
        let (_, size) = value.place()?;
        if size == usize::MAX {
            if self.iv_len != NONCE_LEN {
                return Err(Error::IvLength);
            }
            // SAFETY: under this size OpenSSL's protocol has a whole IV, whose length is the
            // usual one by the line above.
            let (iv, _) = unsafe { value.declared::<NONCE_LEN>() }?;
            self.iv[..NONCE_LEN].copy_from_slice(&iv);
        } else {
            let fixed = value.octets()?;
            let room = self.iv_len.checked_sub(fixed.len()).ok_or(Error::Parameter)?;
            if fixed.len() < FIXED_IV_LEN || room < EXPLICIT_IV_LEN {
                return Err(Error::Parameter);
            }
            self.iv[..fixed.len()].copy_from_slice(fixed);
            if self.direction == Direction::Encrypt {
                random::fill(&mut self.iv[fixed.len()..self.iv_len])?;
            }
        }
        self.iv_counts = true;
        self.iv_state = IvState::Ready;
        Ok(())
    }

    /// `tlsivgen`: the end of the IV for a message that the caller frames, and the next one ready.
    fn generate(&mut self, params: &Params<'_>) -> Result<(), Error> {
        let Some(value) = params.find(name::TLS_IV_GENERATE) else { return Ok(()) };
        let key = self.key.as_ref().ok_or(Error::NoKey)?;
        let room = value.room().ok_or(Error::Parameter)?;
        if !self.iv_counts || self.iv_len < EXPLICIT_IV_LEN {
            return Err(Error::NoIv);
        }
        start(&mut self.stream, key, &self.iv, self.iv_len)?;
        if room == 0 {
            // SAFETY: under this size, which EVP makes of -1, there is room for a whole IV.
            unsafe { value.set_beyond_size(&self.iv[..self.iv_len]) }?;
        } else {
            let len = room.min(self.iv_len);
            value.set_octets(&self.iv[self.iv_len - len..self.iv_len])?;
        }
        count_up(&mut self.iv[self.iv_len - EXPLICIT_IV_LEN..self.iv_len]);
        self.iv_state = IvState::InUse;
        Ok(())
    }

    fn answer_iv(&mut self, params: &Params<'_>) -> Result<(), Error> {
        for name in [name::IV, name::UPDATED_IV] {
            let Some(value) = params.find(name) else { continue };
            if self.iv_state == IvState::Absent {
                if self.direction == Direction::Decrypt || self.iv_len < NONCE_LEN {
                    return Err(Error::NoIv);
                }
                random::fill(&mut self.iv[..self.iv_len])?;
                self.iv_state = IvState::Ready;
            }
            value.set_octets(&self.iv[..self.iv_len])?;
        }
        Ok(())
    }
}
