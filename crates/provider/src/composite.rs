//! AES in CBC with HMAC: the composites that libssl prefers for TLS 1.0 to 1.2 without
//! Encrypt-then-MAC, record by record and many at once.
//!
//! Once additional data is set, the next update is a record: explicit IV, payload, room for MAC
//! and padding. Without, it is plain CBC of whole blocks.

use std::sync::Arc;

use wattlock_crypto::AesKey;
use wattlock_crypto::hmac::{HmacAlgorithm, HmacKey};
use wattlock_engine::Cipher as Work;
use wattlock_tls::cbc::{self, Seal};
use wattlock_tls::{AAD_LEN, BLOCK, HEADER_LEN, Overhead, RecordAad, explicit_iv_len};
use zeroize::Zeroize;

use crate::abi::{Param, mode, name};
use crate::allocation::Allocation;
use crate::buffer::Buffers;
use crate::cipher::{Algorithm, Cipher, Direction, Traits};
use crate::error::Error;
use crate::key::Key;
use crate::multiblock::{self, Group, Reconstruction};
use crate::params::Params;
use crate::random;
use crate::self_check::{self, Suite};
use crate::statistics::{Path, Tally};
use single::CbcRecords;

/// AES-`BITS`-CBC-HMAC-SHA1.
pub(crate) struct CbcHmacSha1<const BITS: usize>;

/// AES-`BITS`-CBC-HMAC-SHA256.
pub(crate) struct CbcHmacSha256<const BITS: usize>;

impl<const BITS: usize> Algorithm for CbcHmacSha1<BITS> {
    const TRAITS: Traits = Traits {
        mode: mode::CBC,
        key_len: BITS / 8,
        iv_len: BLOCK,
        block_size: BLOCK,
        aead: true,
        custom_iv: false,
        multiblock: true,
        paper: false,
    };
    const SETTABLE: &'static [Param] = SETTABLE;
    const GETTABLE: &'static [Param] = GETTABLE;

    type Context = Composite;

    fn context(requests: &Arc<Allocation>, _paper_mode: bool) -> Composite {
        Composite::new(requests, BITS / 8, HmacAlgorithm::Sha1)
    }
}

impl<const BITS: usize> Algorithm for CbcHmacSha256<BITS> {
    const TRAITS: Traits = CbcHmacSha1::<BITS>::TRAITS;
    const SETTABLE: &'static [Param] = SETTABLE;
    const GETTABLE: &'static [Param] = GETTABLE;

    type Context = Composite;

    fn context(requests: &Arc<Allocation>, _paper_mode: bool) -> Composite {
        Composite::new(requests, BITS / 8, HmacAlgorithm::Sha256)
    }
}

static SETTABLE: &[Param] = &[
    Param::octets(name::MAC_KEY),
    Param::octets(name::TLS_AAD),
    Param::unsigned::<usize>(name::KEY_LEN),
    Param::unsigned::<u32>(name::TLS_VERSION),
    Param::unsigned::<usize>(name::MULTI_MAX_FRAGMENT),
    Param::octets(name::MULTI_AAD),
    Param::unsigned::<u32>(name::MULTI_INTERLEAVE),
    Param::octets(name::MULTI_OUT),
    Param::octets(name::MULTI_IN),
    Param::END,
];

static GETTABLE: &[Param] = &[
    Param::unsigned::<usize>(name::KEY_LEN),
    Param::unsigned::<usize>(name::IV_LEN),
    Param::octets(name::IV),
    Param::octets(name::UPDATED_IV),
    Param::unsigned::<usize>(name::TLS_AAD_PAD),
    Param::unsigned::<usize>(name::MULTI_MAX_BUFFER),
    Param::unsigned::<u32>(name::MULTI_INTERLEAVE),
    Param::unsigned::<u32>(name::MULTI_PACKED),
    Param::unsigned::<usize>(name::MULTI_OUT_LEN),
    Param::END,
];

mod single;

/// A context of any.
#[derive(Clone)]
pub(crate) struct Composite {
    requests: Arc<Allocation>,
    algorithm: HmacAlgorithm,
    key: Key,
    mac: Option<Arc<HmacKey>>,
    direction: Direction,
    first_iv: [u8; BLOCK],
    iv: [u8; BLOCK],
    /// That of the next update, which is a record.
    aad: Option<RecordAad>,
    pad: usize,
    many: multiblock::State,
    tally: Tally,
}

impl Composite {
    pub(crate) fn new(
        requests: &Arc<Allocation>,
        key_len: usize,
        algorithm: HmacAlgorithm,
    ) -> Self {
        let overhead = Overhead::Cbc { mac_len: algorithm.tag_len() };
        Self {
            requests: Arc::clone(requests),
            algorithm,
            key: Key::of_len(key_len),
            mac: None,
            direction: Direction::Encrypt,
            first_iv: [0; BLOCK],
            iv: [0; BLOCK],
            aad: None,
            pad: 0,
            many: multiblock::State::new(overhead),
            tally: Tally::new(),
        }
    }

    /// With the key of the cipher, and where its chain begins.
    pub(crate) fn with_key(self, key: Arc<AesKey>, direction: Direction, iv: [u8; BLOCK]) -> Self {
        Self { key: self.key.clone().with(key), direction, first_iv: iv, iv, ..self }
    }

    /// Processes whole blocks of a request of `request` bytes, and updates the IV.
    fn blocks(&mut self, request: usize, in_out: &mut [u8]) -> Result<(), Error> {
        let key = self.key.get()?;
        let Some(last) = in_out.last_chunk::<BLOCK>().copied() else { return Ok(()) };
        let ivs = &[self.iv];
        if self.direction == Direction::Encrypt {
            self.requests.run(request, Work::CbcEncrypt { key, ivs }, in_out.len(), in_out)?;
            self.iv = *in_out.last_chunk().ok_or(Error::Internal)?;
        } else {
            self.requests.run(request, Work::CbcDecrypt { key, ivs }, in_out.len(), in_out)?;
            self.iv = last;
        }
        Ok(())
    }

    /// One record, in place. What comes back begins behind the explicit IV.
    fn record(&mut self, aad: RecordAad, record: &mut [u8]) -> Result<usize, Error> {
        let mac = Arc::clone(self.mac.as_ref().ok_or(Error::NoKey)?);
        let iv_len = explicit_iv_len(aad.version());
        if self.direction == Direction::Encrypt {
            let sealed = iv_len + Overhead::padded(aad.len(), mac.algorithm().tag_len());
            if record.len() != sealed {
                return Err(Error::Record);
            }
            self.tally.add(Path::CompositeRecord, 1, aad.len());
            let (key, mac, ivs) = (self.key.get()?, &mac, &[self.iv]);
            let seal = Seal { key, mac, first: aad, ivs, front: 0, explicit: iv_len };
            self.requests.run(aad.len(), Work::Other(&seal), sealed, record)?;
            self.iv = *record.last_chunk().ok_or(Error::Internal)?;
            return Ok(sealed);
        }
        self.blocks(record.len(), record)?;
        let inside = record.get(iv_len..).ok_or(Error::Record)?;
        match cbc::verify(&mac, aad.bytes(), inside) {
            Ok(payload) => {
                self.tally.add(Path::CompositeRecord, 1, payload);
                Ok(payload)
            }
            Err(error) => {
                record.zeroize();
                Err(error.into())
            }
        }
    }

    /// All records of one write, side by side.
    fn records(&mut self, write: Reconstruction<'_>) -> Result<usize, Error> {
        let (key, mac) = (self.key.get()?, self.mac.as_ref().ok_or(Error::NoKey)?);
        let records = write.records();
        self.tally.add(Path::CompositeMultiblock, records, write.payload_len());
        let mut ivs = vec![[0; BLOCK]; records];
        random::fill(ivs.as_flattened_mut())?;
        let len = write.packed_len();
        for Group { first, count, aad, fragment, payload, records } in write.groups() {
            let ivs = &ivs[first..first + count];
            let seal = Seal { key, mac, first: aad, ivs, front: HEADER_LEN + BLOCK, explicit: 0 };
            let place_len = seal.place_len();
            let header = aad.header(place_len - HEADER_LEN);
            let places = records.chunks_mut(place_len).zip(payload.chunks(fragment)).zip(ivs);
            for ((place, payload), iv) in places {
                let (front, body) = place.split_at_mut(HEADER_LEN + BLOCK);
                front[..HEADER_LEN].copy_from_slice(&header);
                front[HEADER_LEN..].copy_from_slice(iv);
                body[..fragment].copy_from_slice(payload);
            }
            self.requests.run(payload.len(), Work::Other(&seal), place_len, records)?;
        }
        Ok(len)
    }

    fn set_aad(&mut self, params: &Params<'_>) -> Result<(), Error> {
        let Some(value) = params.find(name::TLS_AAD) else { return Ok(()) };
        let aad = <[u8; AAD_LEN]>::try_from(value.octets()?);
        let mut aad = RecordAad::new(aad.map_err(|_| Error::RecordAad)?);
        let mac_len = self.algorithm.tag_len();
        if self.direction == Direction::Encrypt {
            // The length has the explicit IV in it, and the MAC does not cover that.
            aad = aad.shorter(explicit_iv_len(aad.version())).ok_or(Error::RecordAad)?;
            self.pad = Overhead::padded(aad.len(), mac_len) - aad.len();
        } else {
            self.pad = mac_len;
        }
        self.aad = Some(aad);
        Ok(())
    }
}

impl Cipher for Composite {
    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Error> {
        self.direction = direction;
        self.aad = None;
        self.many.reset();
        if let Some(iv) = iv {
            self.first_iv = *<&[u8; BLOCK]>::try_from(iv).map_err(|_| Error::IvLength)?;
        }
        self.iv = self.first_iv;
        self.key.take(key)
    }

    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        let len = buffers.len();
        self.key.get()?;
        if len == 0 {
            return Ok(0);
        }
        if !len.is_multiple_of(BLOCK) {
            return Err(Error::PartialBlock);
        }
        let in_out = buffers.output(&[], len)?;
        match self.aad.take() {
            Some(aad) => self.record(aad, in_out),
            None => {
                self.blocks(len, in_out)?;
                self.tally.add(Path::Block, 1, len);
                Ok(len)
            }
        }
    }

    fn finish(&mut self, _buffers: Buffers<'_>) -> Result<usize, Error> {
        self.key.get().map(|_| 0)
    }

    fn at_once(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        self.update(buffers)
    }

    fn set(&mut self, params: &Params<'_>) -> Result<(), Error> {
        if let Some(value) = params.find(name::MAC_KEY) {
            self.mac = Some(Arc::new(HmacKey::new(self.algorithm, value.octets()?)));
        }
        let key_len = params.unsigned(name::KEY_LEN)?;
        if key_len.is_some_and(|len| len != self.key.len() as u64) {
            return Err(Error::KeyLength);
        }
        self.set_aad(params)?;
        let ready =
            self.direction == Direction::Encrypt && self.key.get().is_ok() && self.mac.is_some();
        if let Some(write) = self.many.set(params, ready)? {
            let suite = Suite::Composite { key_len: self.key.len(), mac: self.algorithm };
            let again = self_check::wants(suite, write.records()).then(|| write.again());
            let written = self.records(write)?;
            if let (Some(again), Ok(key), Some(mac)) = (again, self.key.get(), &self.mac) {
                // SAFETY: it was sealed, and nothing of it is borrowed.
                unsafe { self_check::written(suite, again, written, &CbcRecords { key, mac }) }?;
            }
            self.many.wrote(written);
        }
        Ok(())
    }

    fn get(&mut self, params: &Params<'_>) -> Result<(), Error> {
        params.answer(name::KEY_LEN, self.key.len())?;
        params.answer(name::IV_LEN, BLOCK)?;
        params.answer(name::TLS_AAD_PAD, self.pad)?;
        params.answer_octets(name::IV, &self.first_iv)?;
        params.answer_octets(name::UPDATED_IV, &self.iv)?;
        self.many.get(params)
    }
}
