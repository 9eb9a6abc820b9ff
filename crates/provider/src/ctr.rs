//! AES in CTR: a key stream, of any length.

use std::sync::Arc;

use wattlock_crypto::AesKey;
use wattlock_engine::{Cipher as Work, Data, Job};

use crate::abi::{Param, mode, name};
use crate::allocation::Allocation;
use crate::buffer::Buffers;
use crate::cipher::{Algorithm, Cipher, Direction, Traits};
use crate::error::Error;
use crate::key::Key;
use crate::params::Params;
use crate::statistics::{Path, Tally};

const BLOCK: usize = AesKey::BLOCK_LEN;

/// AES-`BITS`-CTR.
pub(crate) struct Ctr<const BITS: usize>;

impl<const BITS: usize> Algorithm for Ctr<BITS> {
    const TRAITS: Traits = Traits {
        mode: mode::CTR,
        key_len: BITS / 8,
        iv_len: BLOCK,
        block_size: 1,
        aead: false,
        custom_iv: false,
        multiblock: false,
        paper: false,
    };
    const SETTABLE: &'static [Param] = SETTABLE;
    const GETTABLE: &'static [Param] = GETTABLE;

    type Context = Stream;

    fn context(requests: &Arc<Allocation>, _paper_mode: bool) -> Stream {
        Stream {
            requests: Arc::clone(requests),
            key: Key::of_len(BITS / 8),
            first_iv: [0; BLOCK],
            start: [0; BLOCK],
            used: 0,
            answer: [0; BLOCK],
            padding: true,
            tally: Tally::new(),
        }
    }
}

static SETTABLE: &[Param] =
    &[Param::unsigned::<u32>(name::PADDING), Param::unsigned::<u32>(name::NUM), Param::END];

static GETTABLE: &[Param] = &[
    Param::unsigned::<usize>(name::KEY_LEN),
    Param::unsigned::<usize>(name::IV_LEN),
    Param::unsigned::<u32>(name::PADDING),
    Param::unsigned::<u32>(name::NUM),
    Param::octets(name::IV),
    Param::octets(name::UPDATED_IV),
    Param::END,
];

/// A context.
#[derive(Clone)]
pub(crate) struct Stream {
    requests: Arc<Allocation>,
    key: Key,
    first_iv: [u8; BLOCK],
    /// The counter block with which the key stream of this message begins.
    start: [u8; BLOCK],
    /// Bytes of it that are used.
    used: u64,
    /// The counter block that was asked for last: a pointer to it has to stay good.
    answer: [u8; BLOCK],
    /// Without meaning here, but what was set can be read.
    padding: bool,
    tally: Tally,
}

impl Stream {
    /// Blocks of key stream that were begun.
    fn begun(&self) -> u64 {
        self.used.div_ceil(BLOCK as u64)
    }

    /// The counter block behind those.
    fn counter(&self) -> [u8; BLOCK] {
        let start = u128::from_be_bytes(self.start);
        start.wrapping_add(u128::from(self.begun())).to_be_bytes()
    }

    /// A part that is the accelerator's; `used` is what will be used of the key stream.
    #[inline(never)]
    fn update_elsewhere(&mut self, in_out: &mut [u8], used: u64) -> Result<usize, Error> {
        let (key, len) = (self.key.get()?, in_out.len());
        // The rest of a block that was begun is no work for a lane.
        let begun = (self.begun() * BLOCK as u64 - self.used) as usize;
        let (head, whole) = in_out.split_at_mut(begun.min(len));
        let iv = self.start;
        let data = Data::InPlace { slots: &mut [] };
        let job = Job { cipher: Work::Ctr { key, iv }, chunk_len: 1, data, deadline: None };
        job.apply(self.used, true, head)?;
        let cipher = Work::Ctr { key, iv: self.counter() };
        self.requests.run(whole.len(), cipher, whole.len(), whole)?;
        self.used = used;
        self.tally.add(Path::Ctr, 1, len);
        Ok(len)
    }
}

impl Cipher for Stream {
    fn init(
        &mut self,
        _direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Error> {
        match iv {
            Some(iv) => {
                self.first_iv = *<&[u8; BLOCK]>::try_from(iv).map_err(|_| Error::IvLength)?;
                self.start = self.first_iv;
            }
            // As OpenSSL's own: without an IV the counter goes on at a whole block.
            None => self.start = self.counter(),
        }
        self.used = 0;
        self.key.take(key)
    }

    #[inline(always)]
    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        let key = self.key.get()?;
        let len = buffers.len();
        let used = self.used.checked_add(len as u64).ok_or(Error::TooLong)?;
        let in_out = buffers.joined()?;
        if !self.requests.is_callers(len) {
            return self.update_elsewhere(in_out, used);
        }
        key.ctr(&self.start, self.used, in_out);
        self.requests.did(len);
        self.used = used;
        self.tally.add(Path::Ctr, 1, len);
        Ok(len)
    }

    fn finish(&mut self, _buffers: Buffers<'_>) -> Result<usize, Error> {
        self.key.get().map(|_| 0)
    }

    fn at_once(&mut self, buffers: Buffers<'_>) -> Result<usize, Error> {
        self.update(buffers)
    }

    fn set(&mut self, params: &Params<'_>) -> Result<(), Error> {
        // EVP says so before each message.
        if let Some(padding) = params.only().filter(|value| value.is(name::PADDING)) {
            self.padding = padding.unsigned()? != 0;
            return Ok(());
        }
        if let Some(padding) = params.unsigned(name::PADDING)? {
            self.padding = padding != 0;
        }
        // `num` bytes of the block that was begun last are used; 0 means that it is used up.
        match params.unsigned(name::NUM)? {
            None => Ok(()),
            Some(0) => {
                self.used = self.begun() * BLOCK as u64;
                Ok(())
            }
            Some(num) if num >= BLOCK as u64 => Err(Error::Parameter),
            Some(num) => {
                let before = self.begun().checked_sub(1).ok_or(Error::NoKeyStream)?;
                self.used = before * BLOCK as u64 + num;
                Ok(())
            }
        }
    }

    fn get(&mut self, params: &Params<'_>) -> Result<(), Error> {
        params.answer(name::KEY_LEN, self.key.len())?;
        params.answer(name::IV_LEN, BLOCK)?;
        params.answer(name::PADDING, usize::from(self.padding))?;
        params.answer(name::NUM, (self.used % BLOCK as u64) as usize)?;
        params.answer_octets(name::IV, &self.first_iv)?;
        self.answer = self.counter();
        params.answer_octets(name::UPDATED_IV, &self.answer)
    }
}
