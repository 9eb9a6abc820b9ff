//! HMAC of many records at once, on the lanes of a kernel.
//!
//! A record is a run of blocks: those that lie whole in the header or the data are read there, the
//! others are put together on the lane. The outer hashes wait until they fill the lanes as well.

use std::ops::Range;

use super::key::{HmacKey, Pads, length_len, on_pads};
use super::states::{Group, States};
use crate::error::Error;
use crate::lanes::{self, Lanes};
use crate::sha::{Compression, ShaKernel};

/// A message of HMAC among many.
pub struct HmacRecord<'a, H: AsRef<[u8]>> {
    /// The first bytes of the message: an array, or a slice of any length.
    pub header: H,
    /// The others.
    pub data: &'a [u8],
    /// Where the MAC goes: as many bytes as the algorithm's tags have.
    pub tag: &'a mut [u8],
}

impl HmacKey {
    /// The MAC of every record, side by side, of unequal lengths. Allocates nothing.
    ///
    /// # Errors
    /// [`Error::BufferLength`] if a tag has another length than the algorithm's tags; nothing is written then.
    pub fn sign_records<H: AsRef<[u8]>>(
        &self,
        records: &mut [HmacRecord<'_, H>],
    ) -> Result<(), Error> {
        records.iter().try_for_each(|record| self.check_tag_len(record.tag))?;
        let records = records.iter_mut().map(|record| Message {
            head: record.header.as_ref(),
            data: record.data,
            tag: &mut *record.tag,
        });
        on_pads!(self, pads => sign_records(pads, self.kernel, records));
        Ok(())
    }
}

/// What is left of a record.
struct Message<'r> {
    head: &'r [u8],
    data: &'r [u8],
    tag: &'r mut [u8],
}

fn sign_records<'r, H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize>(
    pads: &Pads<H, LANES, BLOCK>,
    kernel: ShaKernel,
    records: impl ExactSizeIterator<Item = Message<'r>>,
) {
    match Group::new(kernel, records.len()) {
        Group::Wide(states) => {
            Dealt::<H, _, _, LANES, LANES, BLOCK>::sign(pads, states, records);
        }
        Group::Pair(states) => {
            Dealt::<H, _, _, 2, LANES, BLOCK>::sign(pads, states, records);
        }
        Group::Alone => {
            records.for_each(|Message { head, data, tag }| pads.sign(&[head, data], tag));
        }
    }
}

/// Records on `N` lanes.
struct Dealt<
    'p,
    'r,
    H: Compression<LANES, BLOCK>,
    S,
    I,
    const N: usize,
    const LANES: usize,
    const BLOCK: usize,
> {
    pads: &'p Pads<H, LANES, BLOCK>,
    waiting: I,
    states: S,
    lanes: [Lane<'r, BLOCK>; N],
    /// The blocks that lie whole neither in a header nor in the data.
    own: [[[u8; BLOCK]; OWN]; N],
    /// The finished inner hashes, and where their MACs go.
    inner: S,
    tags: [Option<&'r mut [u8]>; N],
    finished: usize,
}

/// Blocks of a record that a lane puts together; two are needed for its end.
const OWN: usize = 4;

impl<'p, 'r, H, S, I, const N: usize, const LANES: usize, const BLOCK: usize>
    Dealt<'p, 'r, H, S, I, N, LANES, BLOCK>
where
    H: Compression<LANES, BLOCK>,
    S: States<H, N, LANES, BLOCK>,
    I: Iterator<Item = Message<'r>>,
{
    fn sign(pads: &'p Pads<H, LANES, BLOCK>, states: S, waiting: I) {
        let inner = states.empty();
        let mut dealt = Self {
            pads,
            waiting,
            states,
            lanes: std::array::from_fn(Lane::idle),
            own: [[[0; BLOCK]; OWN]; N],
            inner,
            tags: [const { None }; N],
            finished: 0,
        };
        lanes::run(&mut dealt, N);
        dealt.finish();
        dealt.states.wipe();
        dealt.inner.wipe();
    }

    /// Makes the outer hashes, and writes the MACs.
    fn finish(&mut self) {
        if self.finished == 0 {
            return;
        }
        let tags = &mut self.tags[..self.finished];
        let len = tags.iter().flatten().next().map_or(0, |tag| tag.len());
        self.inner.outer_hashes(self.pads, len, self.finished);
        for (lane, tag) in tags.iter_mut().flatten().enumerate() {
            self.inner.write(lane, tag);
        }
        self.finished = 0;
    }
}

impl<'r, H, S, I, const N: usize, const LANES: usize, const BLOCK: usize> Lanes
    for Dealt<'_, 'r, H, S, I, N, LANES, BLOCK>
where
    H: Compression<LANES, BLOCK>,
    S: States<H, N, LANES, BLOCK>,
    I: Iterator<Item = Message<'r>>,
{
    #[inline]
    fn begin(&mut self, lane: usize) -> Option<usize> {
        let message = self.waiting.next()?;
        self.states.set_state(lane, &self.pads.inner);
        self.lanes[lane].begin(message);
        self.lanes[lane].next_stage(&mut self.own)
    }

    #[inline]
    fn advance(&mut self, busy: usize, steps: usize) {
        let lanes = &mut self.lanes[..busy];
        // An idle lane costs nothing more when it reads what another lane reads.
        let mut inputs = [lanes[0].blocks(&self.own, steps); N];
        for (input, lane) in inputs.iter_mut().zip(&*lanes) {
            *input = lane.blocks(&self.own, steps);
        }
        self.states.compress(&inputs, busy);
        lanes.iter_mut().for_each(|lane| lane.advance(steps));
    }

    #[inline]
    fn next_stage(&mut self, lane: usize) -> Option<usize> {
        let steps = self.lanes[lane].next_stage(&mut self.own);
        if steps.is_none() {
            self.inner.set_state(self.finished, &self.states.state(lane));
            self.tags[self.finished] = self.lanes[lane].tag.take();
            self.finished += 1;
            if self.finished == N {
                self.finish();
            }
        }
        steps
    }

    #[inline]
    fn relocate(&mut self, from: usize, to: usize) {
        self.lanes.swap(from, to);
        let state = self.states.state(from);
        self.states.set_state(to, &state);
    }
}

/// A record and how far it is.
struct Lane<'r, const BLOCK: usize> {
    /// Which of [`Dealt::own`] is this lane's.
    place: usize,
    /// The blocks of it that are still to be done in this stage.
    own: Range<usize>,
    /// If those are none: the blocks that are read where they lie.
    whole: &'r [[u8; BLOCK]],
    /// What is behind this stage.
    head: &'r [u8],
    data: &'r [u8],
    /// Bytes of the message, unless its padding is in this stage.
    len: Option<usize>,
    tag: Option<&'r mut [u8]>,
}

impl<'r, const BLOCK: usize> Lane<'r, BLOCK> {
    /// A lane without a record.
    fn idle(place: usize) -> Self {
        Self { place, own: 0..0, whole: &[], head: &[], data: &[], len: None, tag: None }
    }

    #[inline]
    fn begin(&mut self, Message { head, data, tag }: Message<'r>) {
        self.len = Some(head.len() + data.len());
        (self.head, self.data, self.tag) = (head, data, Some(tag));
    }

    /// The next blocks of this stage.
    #[inline]
    fn blocks<'b, const N: usize>(
        &'b self,
        own: &'b [[[u8; BLOCK]; OWN]; N],
        count: usize,
    ) -> &'b [[u8; BLOCK]] {
        match self.own.is_empty() {
            true => &self.whole[..count],
            false => &own[self.place][self.own.start..][..count],
        }
    }

    #[inline]
    fn advance(&mut self, count: usize) {
        match self.own.is_empty() {
            true => self.whole = &self.whole[count..],
            false => self.own.start += count,
        }
    }

    /// Returns the number of blocks of the next stage.
    #[inline]
    fn next_stage<const N: usize>(&mut self, own: &mut [[[u8; BLOCK]; OWN]; N]) -> Option<usize> {
        let len = self.len?;
        let own = &mut own[self.place];
        if self.head.len() >= BLOCK {
            (self.whole, self.head) = self.head.as_chunks();
            return Some(self.whole.len());
        }
        let filled = self.head.len() + self.data.len();
        let blocks = (filled + 1 + length_len(BLOCK)).div_ceil(BLOCK);
        if blocks > OWN && self.head.is_empty() {
            (self.whole, self.data) = self.data.as_chunks();
            return Some(self.whole.len());
        }
        if blocks > OWN {
            let (head, data) = own[0].split_at_mut(self.head.len());
            head.copy_from_slice(self.head);
            data.copy_from_slice(self.data.split_off(..data.len()).unwrap_or_default());
            (self.head, self.own) = (&[], 0..1);
            return Some(1);
        }
        // The padding (FIPS 180-4, section 5.1), behind the block of the inner pad.
        own[blocks.saturating_sub(2)..][..2].as_flattened_mut().fill(0);
        let bytes = &mut own.as_flattened_mut()[..blocks * BLOCK];
        bytes[..self.head.len()].copy_from_slice(self.head);
        bytes[self.head.len()..filled].copy_from_slice(self.data);
        bytes[filled] = 0x80;
        let bits = 8 * (BLOCK + len) as u64;
        *bytes.last_chunk_mut().expect("a block is longer") = bits.to_be_bytes();
        (self.len, self.own) = (None, 0..blocks);
        Some(blocks)
    }
}
