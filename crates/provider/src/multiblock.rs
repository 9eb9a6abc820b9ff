//! Request reconstruction: one write of an application, given as a whole and sealed as many
//! records, through libssl's multiblock protocol for TLS 1.1 and 1.2.
//!
//! libssl asks in four steps, all of them parameters of the context:
//!
//! 1. set `tls1multi_maxsndfrag`, get `tls1multi_maxbufsz`: the largest record for that fragment;
//! 2. set `tls1multi_aad` and `tls1multi_interleave`, get the bytes of all records together and
//!    the number of records. The additional data is 13 bytes, with no length in it, under the
//!    *size of the whole payload*;
//! 3. set `tls1multi_enc` (where the records go, again under the size of the payload),
//!    `tls1multi_encin` and `tls1multi_interleave`;
//! 4. get `tls1multi_enclen`.
//!
//! The protocol is not documented. What does not fit it exactly is refused, and ciphers do not
//! offer it any more: to library contexts that fetch them for the first time, since OpenSSL
//! remembers the answer.

use std::marker::PhantomData;

use wattlock_tls::{AAD_LEN, HEADER_LEN, MAX_PAYLOAD, Overhead, RecordAad};

use crate::abi::name;
use crate::error::Error;
use crate::fault::Fault;
use crate::offers::turn_multiblock_off;
use crate::params::Params;

/// The most records of a write. libssl has 4 or 8.
const MAX_RECORDS: usize = 64;
const APPLICATION_DATA: u8 = 23;
const TLS_1_1: u16 = 0x0302;
const TLS_1_2: u16 = 0x0303;

/// Where the protocol is in a context.
#[derive(Clone)]
pub(crate) struct State {
    overhead: Overhead,
    max_fragment: usize,
    plan: Option<Plan>,
    /// Records and bytes of the last plan, for questions.
    records: usize,
    packed: usize,
    written: usize,
}

/// What step 2 arranged for step 3.
#[derive(Clone, Copy)]
struct Plan {
    overhead: Overhead,
    aad: RecordAad,
    payload: usize,
    records: usize,
    packed: usize,
}

impl Plan {
    /// Bytes of payload of each record but the last.
    fn fragment(&self) -> usize {
        self.payload / self.records
    }

    /// Bytes of payload of the last record, which takes the rest.
    fn last(&self) -> usize {
        self.payload - self.fragment() * (self.records - 1)
    }

    /// Bytes of a record with `payload` bytes of payload, header included.
    fn sealed(&self, payload: usize) -> usize {
        HEADER_LEN + self.overhead.sealed(payload)
    }
}

/// The records of a write, and what they have to hold.
pub(crate) struct Packed<'a> {
    pub(crate) parts: Vec<Part<'a>>,
    pub(crate) bytes: &'a mut [u8],
}

/// What a record has to hold.
pub(crate) struct Part<'a> {
    pub(crate) aad: RecordAad,
    pub(crate) payload: &'a [u8],
    /// Bytes behind the header.
    pub(crate) sealed: usize,
}

/// A sealed write, to check its records.
pub(crate) struct Again<'a>(Reconstruction<'a>);

impl<'a> Again<'a> {
    /// Returns the records and their payloads.
    ///
    /// # Errors
    /// [`Error::Internal`] if the records are not as long as announced.
    ///
    /// # Safety
    /// The write was sealed, and what was borrowed for it is given back.
    pub(crate) unsafe fn packed(self, bytes: usize) -> Result<Packed<'a>, Error> {
        let Self(write) = self;
        if bytes != write.plan.packed {
            return Err(Error::Internal);
        }
        let plan = write.plan;
        let part = |index| {
            let start = plan.fragment() * index;
            let len = if index + 1 == plan.records { plan.last() } else { plan.fragment() };
            let payload = &write.input[start..start + len];
            Part { aad: plan.aad.later(index, len), payload, sealed: plan.overhead.sealed(len) }
        };
        let parts = (0..plan.records).map(part).collect();
        // SAFETY: libssl's buffer has room for all that was announced, all of it was written, and
        // the caller guarantees that it is not borrowed.
        let bytes = unsafe { std::slice::from_raw_parts_mut(write.out, bytes) };
        Ok(Packed { parts, bytes })
    }
}

/// One write that is to be sealed.
pub(crate) struct Reconstruction<'a> {
    plan: Plan,
    input: &'a [u8],
    out: *mut u8,
    _borrowed: PhantomData<&'a mut [u8]>,
}

impl State {
    /// For records with this overhead.
    pub(crate) fn new(overhead: Overhead) -> Self {
        Self { overhead, max_fragment: 0, plan: None, records: 0, packed: 0, written: 0 }
    }

    /// Forgets a plan that belongs to another key.
    pub(crate) fn reset(&mut self) {
        self.plan = None;
    }

    /// Takes what `params` set of the protocol, and returns the write of step 3. `ready` says
    /// whether the context has what it takes to seal.
    pub(crate) fn set<'a>(
        &mut self,
        params: &Params<'a>,
        ready: bool,
    ) -> Result<Option<Reconstruction<'a>>, Error> {
        let result = self.step(params, ready);
        if result.is_err() {
            turn_multiblock_off();
        }
        result
    }

    fn step<'a>(
        &mut self,
        params: &Params<'a>,
        ready: bool,
    ) -> Result<Option<Reconstruction<'a>>, Error> {
        if let Some(most) = params.unsigned(name::MULTI_MAX_FRAGMENT)? {
            self.max_fragment = usize::try_from(most)
                .ok()
                .filter(|&most| most <= MAX_PAYLOAD)
                .ok_or(Error::Multiblock)?;
        }
        if let Some(value) = params.find(name::MULTI_AAD) {
            if Fault::Plan.is_pretended() {
                return Err(Error::Multiblock);
            }
            // SAFETY: in this protocol there are always 13 bytes; the size means something else.
            let (aad, payload) = unsafe { value.declared::<AAD_LEN>() }?;
            self.plan = None;
            self.plan(RecordAad::new(aad), payload, records(params)?, ready)?;
        }
        let Some(out) = params.find(name::MULTI_OUT) else { return Ok(None) };
        if Fault::Write.is_pretended() {
            return Err(Error::Multiblock);
        }
        let input = params.find(name::MULTI_IN).ok_or(Error::Multiblock)?.octets()?;
        let (out, declared) = out.place()?;
        let plan = self.plan.take().filter(|_| ready).ok_or(Error::Multiblock)?;
        let fits = declared == plan.payload
            && input.len() == plan.payload
            && records(params)? == plan.records;
        let apart = out.addr().wrapping_sub(input.as_ptr().addr()) >= input.len()
            && input.as_ptr().addr().wrapping_sub(out.addr()) >= plan.packed;
        if !fits || !apart {
            return Err(Error::Multiblock);
        }
        self.written = 0;
        Ok(Some(Reconstruction { plan, input, out, _borrowed: PhantomData }))
    }

    fn plan(
        &mut self,
        aad: RecordAad,
        payload: usize,
        records: usize,
        ready: bool,
    ) -> Result<(), Error> {
        let mut plan = Plan { overhead: self.overhead, aad, payload, records, packed: 0 };
        let sound = ready
            && (1..=MAX_RECORDS).contains(&records)
            && aad.len() == 0
            && aad.content_type() == APPLICATION_DATA
            && matches!(aad.version(), TLS_1_1 | TLS_1_2)
            && payload / records > 0
            && payload <= MAX_PAYLOAD * records
            && plan.last() <= MAX_PAYLOAD;
        if !sound {
            return Err(Error::Multiblock);
        }
        plan.packed = plan.sealed(plan.fragment()) * (records - 1) + plan.sealed(plan.last());
        self.records = records;
        self.packed = plan.packed;
        self.plan = Some(plan);
        Ok(())
    }

    /// Records that step 3 wrote `bytes` bytes.
    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written = bytes;
    }

    /// Answers the questions of the protocol.
    pub(crate) fn get(&self, params: &Params<'_>) -> Result<(), Error> {
        let most = HEADER_LEN + self.overhead.sealed(self.max_fragment);
        params.answer(name::MULTI_MAX_BUFFER, most)?;
        params.answer(name::MULTI_INTERLEAVE, self.records)?;
        params.answer(name::MULTI_PACKED, self.packed)?;
        params.answer(name::MULTI_OUT_LEN, self.written)
    }
}

/// Whether `params` set anything of the protocol.
pub(crate) fn is_asked(params: &Params<'_>) -> bool {
    let names = [name::MULTI_MAX_FRAGMENT, name::MULTI_AAD, name::MULTI_OUT];
    names.into_iter().any(|name| params.find(name).is_some())
}

fn records(params: &Params<'_>) -> Result<usize, Error> {
    let records = params.unsigned(name::MULTI_INTERLEAVE)?.ok_or(Error::Multiblock)?;
    usize::try_from(records).map_err(|_| Error::Multiblock)
}

impl<'a> Reconstruction<'a> {
    /// For a look at it afterwards. To be asked for before anything was handed out.
    pub(crate) fn again(&self) -> Again<'a> {
        Again(Self { ..*self })
    }

    pub(crate) fn records(&self) -> usize {
        self.plan.records
    }

    /// Bytes of the whole payload.
    pub(crate) fn payload_len(&self) -> usize {
        self.plan.payload
    }

    /// Bytes of all records.
    pub(crate) fn packed_len(&self) -> usize {
        self.plan.packed
    }

    /// The records in groups of one length each. libssl's writes are one group; of others the last
    /// record is the second.
    pub(crate) fn groups(self) -> impl Iterator<Item = Group<'a>> {
        let plan = self.plan;
        // SAFETY: libssl's buffer has room for all that was announced, does not overlap the input,
        // is used only here while the write is sealed, and counts as initialised because it comes
        // from outside of this module.
        let packed = unsafe { std::slice::from_raw_parts_mut(self.out, plan.packed) };
        let (fragment, last) = (plan.fragment(), plan.last());
        let equal = if fragment == last { plan.records } else { plan.records - 1 };
        let (payload, payload_left) = self.input.split_at(fragment * equal);
        let (records, records_left) = packed.split_at_mut(plan.sealed(fragment) * equal);
        let aad = plan.aad.later(0, fragment);
        let first = Group { first: 0, count: equal, aad, fragment, payload, records };
        let (payload, records) = (payload_left, records_left);
        let aad = plan.aad.later(equal, last);
        let second = Group { first: equal, count: 1, aad, fragment: last, payload, records };
        [first, second].into_iter().filter(|group| !group.records.is_empty())
    }
}

/// Records of a write that have the same length.
pub(crate) struct Group<'a> {
    /// Records of the write before them.
    pub(crate) first: usize,
    pub(crate) count: usize,
    /// Additional data of the first of them.
    pub(crate) aad: RecordAad,
    /// Bytes of payload of each.
    pub(crate) fragment: usize,
    pub(crate) payload: &'a [u8],
    /// Where they go, which has what was there before.
    pub(crate) records: &'a mut [u8],
}
