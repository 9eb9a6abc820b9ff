//! AES in ECB and CBC: whole blocks; a partial block is held until the next update.

use std::sync::Arc;

use wattlock_crypto::AesKey;
use wattlock_crypto::hmac::HmacAlgorithm;
use wattlock_engine::Cipher as Work;
use wattlock_tls::{BLOCK, Overhead, cbc, explicit_iv_len, pad};
use zeroize::Zeroize;

use crate::abi::{Param, mode, name};
use crate::allocation::Allocation;
use crate::buffer::Buffers;
use crate::cipher::{Algorithm, Cipher, Direction, Traits};
use crate::error::Error;
use crate::key::Key;
use crate::params::Params;
use crate::random;
use crate::statistics::{Path, Tally};

const MAX_MAC_LEN: usize = HmacAlgorithm::MOST_TAG_LEN;

const SSL_3: u16 = 0x0300;

/// AES-`BITS`-ECB.
pub(crate) struct Ecb<const BITS: usize>;

impl<const BITS: usize> Algorithm for Ecb<BITS> {
    const TRAITS: Traits = Traits {
        mode: mode::ECB,
        key_len: BITS / 8,
        iv_len: 0,
        block_size: BLOCK,
        aead: false,
        custom_iv: false,
        multiblock: false,
        paper: false,
    };
    const SETTABLE: &'static [Param] = SETTABLE;
    const GETTABLE: &'static [Param] = GETTABLE;

    type Context = BlockCipher;

    fn context(requests: &Arc<Allocation>, _paper_mode: bool) -> BlockCipher {
        BlockCipher::new(requests, Chaining::Ecb, BITS / 8)
    }
}

pub(crate) static SETTABLE: &[Param] = &[
    Param::unsigned::<u32>(name::PADDING),
    Param::unsigned::<u32>(name::NUM),
    Param::unsigned::<u32>(name::TLS_VERSION),
    Param::unsigned::<usize>(name::TLS_MAC_SIZE),
    Param::END,
];

pub(crate) static GETTABLE: &[Param] = &[
    Param::unsigned::<usize>(name::KEY_LEN),
    Param::unsigned::<usize>(name::IV_LEN),
    Param::unsigned::<u32>(name::PADDING),
    Param::unsigned::<u32>(name::NUM),
    Param::octets(name::IV),
    Param::octets(name::UPDATED_IV),
    Param::octet_ptr(name::TLS_MAC),
    Param::END,
];

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chaining {
    Ecb,
    Cbc,
}

/// A context of either.
#[derive(Clone)]
pub(crate) struct BlockCipher {
    requests: Arc<Allocation>,
    chaining: Chaining,
    key: Key,
    direction: Direction,
    first_iv: [u8; BLOCK],
    iv: [u8; BLOCK],
    padding: bool,
    held: Held,
    tls: Option<Tls>,
    mac_size: usize,
    tally: Tally,
}

/// Input that is not a block yet, or the block that may turn out to be the last.
#[derive(Clone)]
struct Held {
    bytes: [u8; BLOCK],
    len: usize,
}

impl Drop for Held {
    fn drop(&mut self) {
        self.wipe();
    }
}

impl Held {
    fn wipe(&mut self) {
        if self.len > 0 {
            self.bytes.zeroize();
            self.len = 0;
        }
    }
}

/// TLS with a MAC that libssl makes and checks.
#[derive(Clone)]
struct Tls {
    version: u16,
    mac: [u8; MAX_MAC_LEN],
}

impl BlockCipher {
    pub(crate) fn new(requests: &Arc<Allocation>, chaining: Chaining, key_len: usize) -> Self {
        Self {
            requests: Arc::clone(requests),
            chaining,
            key: Key::of_len(key_len),
            direction: Direction::Encrypt,
            first_iv: [0; BLOCK],
            iv: [0; BLOCK],
            padding: true,
            held: Held { bytes: [0; BLOCK], len: 0 },
            tls: None,
            mac_size: 0,
            tally: Tally::new(),
        }
    }

    /// Where its requests go.
    pub(crate) fn requests(&self) -> &Arc<Allocation> {
        &self.requests
    }

    /// The key, and where the chain begins.
    pub(crate) fn keyed(&self) -> Option<(Arc<AesKey>, Direction, [u8; BLOCK])> {
        self.key.get().ok().map(|key| (Arc::clone(key), self.direction, self.iv))
    }

    /// Works on whole blocks and goes on with the IV.
    #[inline(always)]
    fn blocks(&mut self, in_out: &mut [u8]) -> Result<(), Error> {
        let key = self.key.get()?;
        let len = in_out.len();
        if !len.is_multiple_of(BLOCK) {
            return Err(Error::PartialBlock);
        }
        if len == 0 {
            return Ok(());
        }
        if !self.requests.is_callers(len) {
            return self.blocks_elsewhere(in_out);
        }
        let blocks = in_out.as_chunks_mut().0;
        match (self.chaining, self.direction) {
            (Chaining::Ecb, Direction::Encrypt) => key.ecb_encrypt(blocks.as_flattened_mut())?,
            (Chaining::Ecb, Direction::Decrypt) => key.ecb_decrypt(blocks.as_flattened_mut())?,
            (Chaining::Cbc, Direction::Encrypt) => key.cbc_encrypt_blocks(&mut self.iv, blocks),
            (Chaining::Cbc, Direction::Decrypt) => key.cbc_decrypt_blocks(&mut self.iv, blocks),
        }
        self.requests.did(len);
        Ok(())
    }

    /// Whole blocks that are the accelerator's.
    #[inline(never)]
    fn blocks_elsewhere(&mut self, in_out: &mut [u8]) -> Result<(), Error> {
        let key = self.key.get()?;
        let last = *in_out.last_chunk::<BLOCK>().ok_or(Error::PartialBlock)?;
        let ivs = &[self.iv];
        let work = match (self.chaining, self.direction) {
            (Chaining::Ecb, Direction::Encrypt) => Work::EcbEncrypt(key),
            (Chaining::Ecb, Direction::Decrypt) => Work::EcbDecrypt(key),
            (Chaining::Cbc, Direction::Encrypt) => Work::CbcEncrypt { key, ivs },
            (Chaining::Cbc, Direction::Decrypt) => Work::CbcDecrypt { key, ivs },
        };
        self.requests.run(in_out.len(), work, in_out.len(), in_out)?;
        match (self.chaining, self.direction) {
            (Chaining::Ecb, _) => {}
            (Chaining::Cbc, Direction::Encrypt) => {
                self.iv = *in_out.last_chunk().ok_or(Error::Internal)?;
            }
            (Chaining::Cbc, Direction::Decrypt) => self.iv = last,
        }
        Ok(())
    }

    /// One record of TLS, in place.
    fn record(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        self.key.get()?;
        if !buffers.in_place() || !self.padding {
            return Err(Error::Record);
        }
        let len = buffers.len();
        self.tally.add(Path::CbcRecord, 1, len);
        match self.direction {
            Direction::Encrypt => {
                let padded = Overhead::padded(len, 0);
                let record = buffers.output(&[], padded)?;
                pad(&mut record[len..]);
                self.blocks(record)?;
                Ok(padded)
            }
            Direction::Decrypt => {
                let record = buffers.output(&[], len)?;
                self.blocks(record)?;
                let tls = self.tls.as_mut().ok_or(Error::Internal)?;
                let inside = record.get(explicit_iv_len(tls.version)..);
                let inside = inside.ok_or(Error::Record)?;
                let mac = &mut tls.mac[..self.mac_size];
                let mut instead = [0; MAX_MAC_LEN];
                random::fill(&mut instead[..self.mac_size])?;
                Ok(cbc::unpad(inside, mac, &instead)?)
            }
        }
    }
}

impl BlockCipher {
    /// An update that is a record of TLS, or does not begin and end with a block.
    #[inline(never)]
    fn update_held(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        if self.tls.is_some() {
            return self.record(buffers);
        }
        self.key.get()?;
        let len = buffers.len();
        // When decrypting with padding, the last block waits, because its padding must be
        // removed.
        let waits = self.padding && self.direction == Direction::Decrypt;
        let total = self.held.len + len;
        let whole = if waits { total.saturating_sub(1) } else { total } / BLOCK * BLOCK;
        let left = total - whole;
        if whole == 0 {
            let before = self.held.len;
            buffers.peek(0, &mut self.held.bytes[before..total]);
            self.held.len = total;
            return Ok(0);
        }
        let mut next = Held { bytes: [0; BLOCK], len: left };
        buffers.peek(len - left, &mut next.bytes[..left]);
        let in_out = buffers.output(&self.held.bytes[..self.held.len], whole)?;
        self.blocks(in_out)?;
        self.held = next;
        self.tally.add(Path::Block, 1, whole);
        Ok(whole)
    }

    /// The end of a message that is no end of a block, or padded.
    #[inline(never)]
    fn finish_held(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        self.key.get()?;
        if self.tls.is_some() {
            // A record is complete with its update.
            return Err(Error::Record);
        }
        let mut last = self.held.clone();
        match (self.direction, self.padding, last.len) {
            (_, false, 0) => Ok(0),
            (Direction::Encrypt, true, len) => {
                last.bytes[len..].fill((BLOCK - len) as u8);
                self.blocks(buffers.output(&last.bytes, BLOCK)?)?;
                self.held.wipe();
                Ok(BLOCK)
            }
            (_, false, BLOCK) => {
                self.blocks(buffers.output(&last.bytes, BLOCK)?)?;
                self.held.wipe();
                Ok(BLOCK)
            }
            (Direction::Decrypt, true, BLOCK) => {
                self.blocks(&mut last.bytes)?;
                let len = wattlock_crypto::pkcs7::unpadded_len(&last.bytes)?;
                buffers.output(&last.bytes, len)?;
                self.held.wipe();
                Ok(len)
            }
            _ => Err(Error::PartialBlock),
        }
    }

    #[inline(never)]
    fn set_all(&mut self, params: &Params<'_>) -> Result<(), Error> {
        if let Some(padding) = params.unsigned(name::PADDING)? {
            self.padding = padding != 0;
        }
        if let Some(version) = params.unsigned(name::TLS_VERSION)? {
            let version = u16::try_from(version).map_err(|_| Error::Parameter)?;
            // SSL 3 pads differently, and is forbidden (RFC 7568).
            if version == SSL_3 {
                return Err(Error::Record);
            }
            self.tls = (version != 0).then_some(Tls { version, mac: [0; MAX_MAC_LEN] });
        }
        if let Some(size) = params.unsigned(name::TLS_MAC_SIZE)? {
            self.mac_size = usize::try_from(size)
                .ok()
                .filter(|&size| size <= MAX_MAC_LEN)
                .ok_or(Error::Parameter)?;
        }
        // Block modes count nothing; a number below a block is taken, as by OpenSSL's own.
        match params.unsigned(name::NUM)? {
            Some(num) if num >= BLOCK as u64 => Err(Error::Parameter),
            _ => Ok(()),
        }
    }
}

impl Cipher for BlockCipher {
    #[inline(always)]
    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.direction = direction;
        self.held.wipe();
        if self.chaining == Chaining::Cbc {
            if let Some(iv) = iv {
                self.first_iv = *<&[u8; BLOCK]>::try_from(iv).map_err(|_| Error::IvLength)?;
            }
            self.iv = self.first_iv;
        }
        self.key.take(key)
    }

    #[inline(always)]
    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        let len = buffers.len();
        let waits = self.padding && self.direction == Direction::Decrypt;
        if self.tls.is_some() || self.held.len > 0 || waits || !len.is_multiple_of(BLOCK) {
            return self.update_held(buffers);
        }
        self.blocks(buffers.joined()?)?;
        self.tally.add(Path::Block, 1, len);
        Ok(len)
    }

    #[inline(always)]
    fn finish(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        if self.held.len == 0 && !self.padding && self.tls.is_none() {
            return self.key.get().map(|_| 0);
        }
        self.finish_held(buffers)
    }

    #[inline]
    fn at_once(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        let len = buffers.len();
        self.key.get()?;
        if !len.is_multiple_of(BLOCK) {
            return Err(Error::PartialBlock);
        }
        let in_out = buffers.output(&[], len)?;
        self.blocks(in_out)?;
        self.tally.add(Path::Block, 1, len);
        Ok(len)
    }

    #[inline(always)]
    fn set(&mut self, params: &Params<'_>) -> Result<(), Error> {
        // EVP says so before each message.
        if let Some(padding) = params.only().filter(|value| value.is(name::PADDING)) {
            self.padding = padding.unsigned()? != 0;
            return Ok(());
        }
        self.set_all(params)
    }

    fn get(&mut self, params: &Params<'_>) -> Result<(), Error> {
        let iv_len = if self.chaining == Chaining::Cbc { BLOCK } else { 0 };
        params.answer(name::KEY_LEN, self.key.len())?;
        params.answer(name::IV_LEN, iv_len)?;
        params.answer(name::PADDING, usize::from(self.padding))?;
        params.answer(name::NUM, 0)?;
        params.answer_octets(name::IV, &self.first_iv[..iv_len])?;
        params.answer_octets(name::UPDATED_IV, &self.iv[..iv_len])?;
        match &self.tls {
            Some(tls) => params.answer_octets(name::TLS_MAC, &tls.mac[..self.mac_size]),
            None => params.answer_octets(name::TLS_MAC, &[]),
        }
    }
}
