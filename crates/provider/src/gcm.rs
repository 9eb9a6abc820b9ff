//! AES-GCM: messages in parts, and records of TLS 1.2, one by one and many at once.

use std::sync::Arc;

use subtle::ConstantTimeEq;
use wattlock_crypto::gcm::{GcmKey, GcmStream};
use wattlock_crypto::{NONCE_LEN, TAG_LEN};
use wattlock_engine::{Aad, Cipher as Work, Nonces, Operation};
use wattlock_tls::gcm::{EXPLICIT_IV_LEN, FIXED_IV_LEN, OVERHEAD, Write};
use wattlock_tls::{AAD_LEN, Overhead, RecordAad, is_whole_1_3};
use zeroize::Zeroize;

use crate::abi::{Param, mode, name};
use crate::allocation::Allocation;
use crate::buffer::{Buffers, Places};
use crate::cipher::{Algorithm, Cipher, Direction, Traits};
use crate::error::Error;
use crate::multiblock::{self, Group, Reconstruction};
use crate::params::{Params, Value};
use crate::random;
use crate::statistics::{Path, Tally};
use records::allocated;
use tables::{GETTABLE, SETTABLE};

mod records;
mod settings;
mod tables;

/// AES-`BITS`-GCM.
pub(crate) struct Gcm<const BITS: usize>;

impl<const BITS: usize> Algorithm for Gcm<BITS> {
    const TRAITS: Traits = Traits {
        mode: mode::GCM,
        key_len: BITS / 8,
        iv_len: NONCE_LEN,
        block_size: 1,
        aead: true,
        custom_iv: true,
        multiblock: true,
        paper: false,
    };
    const SETTABLE: &'static [Param] = SETTABLE;
    const GETTABLE: &'static [Param] = GETTABLE;

    type Context = Message;

    fn context(requests: &Arc<Allocation>, _paper_mode: bool) -> Message {
        Message {
            requests: Arc::clone(requests),
            key_len: BITS / 8,
            key: None,
            direction: Direction::Encrypt,
            iv: [0; MAX_IV_LEN],
            iv_len: NONCE_LEN,
            iv_state: IvState::Absent,
            iv_counts: false,
            stream: GcmStream::default(),
            tag: [0; TAG_LEN],
            tag_len: None,
            tls: Tls { aad: None, pad: 0, records: 0 },
            many: multiblock::State::new(Overhead::Fixed(OVERHEAD)),
            tally: Tally::new(),
        }
    }
}

/// Bytes of the longest IV (`GCM_IV_MAX_SIZE`).
const MAX_IV_LEN: usize = 128;

#[derive(Clone, Copy, PartialEq, Eq)]
enum IvState {
    Absent,
    /// Set, and not used.
    Ready,
    /// A message under it is on its way.
    InUse,
    /// Used up: nothing may be sealed under it again.
    Used,
}

/// A context.
#[derive(Clone)]
pub(crate) struct Message {
    requests: Arc<Allocation>,
    key_len: usize,
    key: Option<Arc<GcmKey>>,
    direction: Direction,
    iv: [u8; MAX_IV_LEN],
    iv_len: usize,
    iv_state: IvState,
    /// True if the last eight bytes of the IV are a counter of this context.
    iv_counts: bool,
    /// The message on its way; of use while the IV is in use.
    stream: GcmStream,
    tag: [u8; TAG_LEN],
    /// Bytes of the tag that was set, or made.
    tag_len: Option<usize>,
    tls: Tls,
    many: multiblock::State,
    tally: Tally,
}

#[derive(Clone)]
struct Tls {
    /// That of the next update, which is a record.
    aad: Option<RecordAad>,
    pad: usize,
    /// Records that were sealed with this key.
    records: u64,
}

impl Message {
    /// The message under the IV that is set, begun if need be.
    #[inline(always)]
    fn begin(&mut self) -> Result<(), Error> {
        if self.iv_state == IvState::InUse {
            return Ok(());
        }
        let key = self.key.as_ref().ok_or(Error::NoKey)?;
        if self.iv_state == IvState::Absent {
            // As in OpenSSL's own provider, sealing without an IV generates one.
            if self.direction == Direction::Decrypt || self.iv_len < NONCE_LEN {
                return Err(Error::NoIv);
            }
            random::fill(&mut self.iv[..self.iv_len])?;
            self.iv_state = IvState::Ready;
        }
        if self.iv_state != IvState::Ready {
            return Err(Error::NoIv);
        }
        start(&mut self.stream, key, &self.iv, self.iv_len)?;
        self.iv_state = IvState::InUse;
        Ok(())
    }

    /// A part that may be a record of TLS 1.3, or the accelerator's.
    #[inline(never)]
    fn part_elsewhere(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        let (key, stream) = (self.key.as_ref().ok_or(Error::NoKey)?, &mut self.stream);
        let len = buffers.len();
        let in_out = buffers.output(&[], len)?;
        let (direction, tag) = (self.direction, &self.tag);
        let is_whole = direction == Direction::Decrypt
            && self.tag_len == Some(TAG_LEN)
            && self.iv_len == NONCE_LEN
            && is_whole_1_3(stream.short_aad(), len);
        let work = |stream: &mut GcmStream, in_out: &mut [u8]| match direction {
            Direction::Encrypt => stream.encrypt(key, in_out),
            Direction::Decrypt if is_whole => stream.open(key, in_out, tag),
            Direction::Decrypt => stream.decrypt(key, in_out),
        };
        if let Err(error) = allocated(&self.requests, stream, in_out, work) {
            // A tag of TLS 1.3 that OpenSSL's own looks at when the message ends.
            return Err(self.failed(if is_whole { error.unsaid() } else { error }));
        }
        self.tally.add(Path::GcmStream, 1, len);
        Ok(len)
    }

    #[cold]
    fn failed(&mut self, error: Error) -> Error {
        self.stream.end();
        self.iv_state = IvState::Used;
        error
    }

    /// One record of TLS 1.2, in place: explicit IV, payload, tag.
    #[inline(never)]
    fn record(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        let aad = self.tls.aad.take().ok_or(Error::RecordAad)?;
        self.iv_state = IvState::Used;
        let len = buffers.len();
        if !buffers.in_place() || len < OVERHEAD {
            return Err(Error::Record);
        }
        let record = buffers.output(&[], len)?;
        let (explicit_iv, sealed) = record.split_at_mut(EXPLICIT_IV_LEN);
        let payload = len - OVERHEAD;
        let aad = aad.bytes();
        self.tally.add(Path::GcmRecord, 1, payload);
        let (operation, nonce, written) = match self.direction {
            Direction::Encrypt => {
                let nonce = self.next_nonce(1)?;
                explicit_iv.copy_from_slice(&nonce[FIXED_IV_LEN..]);
                (Operation::Seal, nonce, len)
            }
            Direction::Decrypt => {
                self.set_invocation(explicit_iv)?;
                (Operation::Open, self.nonce()?, payload)
            }
        };
        let key = self.key.as_ref().ok_or(Error::NoKey)?.aead();
        if !self.requests.is_callers(payload) {
            let nonces = Nonces::Counted { first: nonce };
            let cipher = Work::Aead { operation, key, nonces, aad: Aad::Same(&aad) };
            self.requests.run(payload, cipher, payload, sealed)?;
            return Ok(written);
        }
        let (in_out, tag) = sealed.split_last_chunk_mut().ok_or(Error::Record)?;
        match operation {
            Operation::Seal => *tag = key.seal(nonce, &aad, in_out)?,
            Operation::Open => key.open(nonce, &aad, in_out, tag)?,
        }
        self.requests.did(payload);
        Ok(written)
    }

    /// All records of one write.
    fn records(&mut self, write: Reconstruction<'_>) -> Result<usize, Error> {
        let records = write.records();
        self.tally.add(Path::GcmMultiblock, records, write.payload_len());
        // The nonces are taken before anything is sealed: an error must not lead to their reuse.
        let nonce = self.next_nonce(records as u64)?;
        self.iv_state = IvState::Used;
        let key = self.key.as_ref().ok_or(Error::NoKey)?.aead();
        let (nonces, len) = (Nonces::Counted { first: nonce }, write.packed_len());
        for Group { first, aad, fragment, payload, records, .. } in write.groups() {
            let nonce = nonces.nonce(first as u64, false);
            let job = Write { payload, fragment, records }.job_1_2(key, nonce, aad);
            self.requests.run_records(payload.len(), job)?;
        }
        Ok(len)
    }

    fn nonce(&self) -> Result<[u8; NONCE_LEN], Error> {
        if self.iv_len != NONCE_LEN || !self.iv_counts {
            return Err(Error::NoIv);
        }
        self.iv.first_chunk().copied().ok_or(Error::Internal)
    }

    /// Reserves `records` consecutive nonces and returns the first.
    fn next_nonce(&mut self, records: u64) -> Result<[u8; NONCE_LEN], Error> {
        let nonce = self.nonce()?;
        self.tls.records = self.tls.records.checked_add(records).ok_or(Error::TooManyRecords)?;
        let explicit = &mut self.iv[FIXED_IV_LEN..NONCE_LEN];
        let mut counter = [0; EXPLICIT_IV_LEN];
        counter.copy_from_slice(explicit);
        let counter = u64::from_be_bytes(counter).wrapping_add(records);
        explicit.copy_from_slice(&counter.to_be_bytes());
        Ok(nonce)
    }

    /// Sets the end of the IV, which came with a record.
    fn set_invocation(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let start = self.iv_len.checked_sub(bytes.len()).ok_or(Error::Parameter)?;
        if self.key.is_none() || !self.iv_counts || self.direction == Direction::Encrypt {
            return Err(Error::Parameter);
        }
        self.iv[start..self.iv_len].copy_from_slice(bytes);
        self.iv_state = IvState::Ready;
        Ok(())
    }

    /// `tlsaad`: the additional data of the next update, which is a record.
    fn set_record_aad(&mut self, value: &Value<'_>) -> Result<(), Error> {
        let aad = <[u8; AAD_LEN]>::try_from(value.octets()?);
        let aad = RecordAad::new(aad.map_err(|_| Error::RecordAad)?);
        let decrypting = self.direction == Direction::Decrypt;
        let aad = aad.shorter(if decrypting { OVERHEAD } else { EXPLICIT_IV_LEN });
        self.tls.aad = Some(aad.ok_or(Error::RecordAad)?);
        self.tls.pad = TAG_LEN;
        Ok(())
    }

    #[inline(always)]
    fn set_tag(&mut self, value: &Value<'_>) -> Result<(), Error> {
        let tag = value.octets()?;
        if tag.is_empty() || self.direction == Direction::Encrypt {
            return Err(Error::Tag);
        }
        match <&[u8; TAG_LEN]>::try_from(tag) {
            Ok(tag) => self.tag = *tag,
            Err(_) => self.tag.get_mut(..tag.len()).ok_or(Error::Tag)?.copy_from_slice(tag),
        }
        self.tag_len = Some(tag.len());
        Ok(())
    }

    #[inline(always)]
    fn answer_tag(&self, value: &Value<'_>) -> Result<(), Error> {
        let (Direction::Encrypt, Some(made)) = (self.direction, self.tag_len) else {
            return Err(Error::Tag);
        };
        let len = value.room().unwrap_or(made);
        if len == TAG_LEN {
            return value.set_octets(&self.tag);
        }
        value.set_octets(self.tag.get(..len).filter(|tag| !tag.is_empty()).ok_or(Error::Tag)?)
    }

    /// Makes the tag, or checks it.
    #[inline(always)]
    fn end(&mut self) -> Result<(), Error> {
        if self.tls.aad.is_some() {
            return Err(Error::Record);
        }
        self.begin()?;
        let (key, stream) = (self.key.as_ref().ok_or(Error::NoKey)?, &mut self.stream);
        let compared = match (self.direction, self.tag_len) {
            (Direction::Encrypt, _) => 0,
            (Direction::Decrypt, None) => return Err(Error::NoTag),
            (Direction::Decrypt, Some(len)) => len,
        };
        let tag = stream.tag(key);
        self.iv_state = IvState::Used;
        if compared == 0 {
            (self.tag, self.tag_len) = (*tag, Some(TAG_LEN));
            stream.end();
            return Ok(());
        }
        // Compared as numbers: byte by byte takes as long as a short record.
        let mut differ = u128::from_le_bytes(*tag) ^ u128::from_le_bytes(self.tag);
        stream.end();
        differ <<= 8 * (TAG_LEN - compared);
        let right: bool = differ.ct_eq(&0).into();
        differ.zeroize();
        if right { Ok(()) } else { Err(Error::Authentication) }
    }
}

/// Begins a message under the first bytes of `iv`.
#[inline(always)]
fn start(
    stream: &mut GcmStream,
    key: &GcmKey,
    iv: &[u8; MAX_IV_LEN],
    len: usize,
) -> Result<(), Error> {
    match iv.first_chunk::<NONCE_LEN>() {
        Some(nonce) if len == NONCE_LEN => {
            stream.begin(*nonce);
            Ok(())
        }
        _ => start_unusual(stream, key, &iv[..len]),
    }
}

#[cold]
#[inline(never)]
fn start_unusual(stream: &mut GcmStream, key: &GcmKey, iv: &[u8]) -> Result<(), Error> {
    *stream = key.begin(iv)?;
    Ok(())
}

impl Cipher for Message {
    #[inline(always)]
    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Error> {
        // The next message, under an IV of the usual length: nearly every call.
        if direction == self.direction
            && key.is_none()
            && let Some(iv) = iv.and_then(|iv| <&[u8; NONCE_LEN]>::try_from(iv).ok())
            && let Some(place) = self.iv.first_chunk_mut()
        {
            *place = *iv;
            self.iv_len = NONCE_LEN;
            self.iv_state = IvState::Ready;
            self.iv_counts = false;
            self.stream.end();
            return Ok(());
        }
        self.init_any(direction, key, iv)
    }

    /// The shortest way of a message in one part, which the compiler keeps in one function; the others are in
    /// functions of their own.
    #[inline(always)]
    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        let len = buffers.len();
        if len == 0 {
            return Ok(0);
        }
        if self.tls.aad.is_some() {
            return self.record(buffers);
        }
        if self.iv_state != IvState::InUse {
            self.begin()?;
        }
        let (key, stream) = (self.key.as_ref().ok_or(Error::NoKey)?, &mut self.stream);
        if buffers.no_output() {
            stream.aad(key, buffers.input()).map_err(|_| Error::AadLate)?;
            return Ok(len);
        }
        let is_1_3 = self.direction == Direction::Decrypt && is_whole_1_3(stream.short_aad(), len);
        if is_1_3 || !self.requests.is_callers(len) {
            return self.part_elsewhere(buffers);
        }
        let done = match (self.direction, buffers.places()?) {
            (Direction::Encrypt, Places::Same(in_out)) => stream.encrypt(key, in_out),
            (Direction::Encrypt, Places::Apart { input, output }) => {
                stream.encrypt_into(key, input, output)
            }
            (Direction::Decrypt, Places::Same(in_out)) => stream.decrypt(key, in_out),
            (Direction::Decrypt, Places::Apart { input, output }) => {
                stream.decrypt_into(key, input, output)
            }
        };
        if let Err(error) = done {
            return Err(self.failed(error.into()));
        }
        self.requests.did(len);
        self.tally.add(Path::GcmStream, 1, len);
        Ok(len)
    }

    #[inline(always)]
    fn finish(&mut self, _buffers: Buffers<'_>) -> Result<usize, Error> {
        self.end().map_err(Error::unsaid)?;
        Ok(0)
    }

    fn at_once(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        let done = if buffers.no_input() { self.finish(buffers) } else { self.update(buffers) };
        done.map_err(Error::unsaid)
    }

    #[inline(always)]
    fn set(&mut self, params: &Params<'_>) -> Result<(), Error> {
        // What comes with each message or record comes alone.
        if let Some(value) = params.only() {
            if value.is(name::TAG) {
                return self.set_tag(&value);
            }
            if value.is(name::TLS_AAD) {
                return self.set_record_aad(&value);
            }
            if value.is(name::PADDING) {
                // Without meaning here. EVP says it before each message, once it was set.
                return Ok(());
            }
        }
        self.set_all(params)
    }

    #[inline(always)]
    fn get(&mut self, params: &Params<'_>) -> Result<(), Error> {
        if let Some(value) = params.only() {
            if value.is(name::TAG) {
                return self.answer_tag(&value);
            }
            if value.is(name::IV_LEN) {
                return value.set_unsigned(self.iv_len as u64);
            }
        }
        self.answer_all(params)
    }
}
