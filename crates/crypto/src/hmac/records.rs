//! HMAC of many records at once: deals records of unequal length to the lanes of a kernel.
//!
//! A record is a run of blocks in four stages: the first, which begins with the header; those that
//! lie whole in the data and are read there; the padded end; and the outer hash. The lanes go
//! together as far as the shortest stage, and one that is done takes the next record.

use zeroize::Zeroize;

use super::key::{HmacKey, Pads, on_pads, pad, write_state};
use crate::kernel::cpu::Avx512;
use crate::sha::{Compression, ShaKernel};

/// A message of HMAC among many.
pub struct HmacRecord<'a, const HEADER: usize> {
    /// The first bytes of the message: at most 64.
    pub header: [u8; HEADER],
    /// The others.
    pub data: &'a [u8],
    /// Where the MAC goes: as many bytes as the algorithm's tags have.
    pub tag: &'a mut [u8],
}

impl HmacKey {
    /// The MAC of every record, side by side, of unequal lengths. Allocates nothing.
    ///
    /// # Panics
    /// If a tag has another length than the algorithm's tags; nothing is written then.
    pub fn sign_records<const HEADER: usize>(&self, records: &mut [HmacRecord<'_, HEADER>]) {
        const { assert!(HEADER <= 64, "a header fits into a block of every hash") };
        let len = self.algorithm.tag_len();
        assert!(records.iter().all(|record| record.tag.len() == len), "bytes of each tag");
        on_pads!(self, pads => sign_records(pads, self.kernel, records));
    }
}

fn sign_records<
    H: Compression<LANES, BLOCK>,
    const LANES: usize,
    const BLOCK: usize,
    const HEADER: usize,
>(
    pads: &Pads<H, LANES, BLOCK>,
    kernel: ShaKernel,
    records: &mut [HmacRecord<'_, HEADER>],
) {
    match kernel {
        ShaKernel::Avx512(proof) if records.len() >= H::FEWEST => {
            let mut dealt = Dealt::<H, LANES, BLOCK> {
                pads,
                states: [[H::Word::default(); LANES]; 8],
                lanes: std::array::from_fn(|_| Lane::idle()),
                busy: 0,
            };
            dealt.run(proof, records.iter_mut());
            dealt.states.zeroize();
        }
        _ => {
            for record in records {
                pads.sign(&[&record.header, record.data], record.tag);
            }
        }
    }
}

/// Records on lanes, the first ones of `LANES`.
struct Dealt<'r, H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize> {
    pads: &'r Pads<H, LANES, BLOCK>,
    states: [[H::Word; LANES]; 8],
    lanes: [Lane<'r, BLOCK>; LANES],
    busy: usize,
}

impl<'r, H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize>
    Dealt<'r, H, LANES, BLOCK>
{
    fn run<'t: 'r, const HEADER: usize>(
        &mut self,
        proof: Avx512,
        mut records: impl Iterator<Item = &'r mut HmacRecord<'t, HEADER>>,
    ) {
        loop {
            while self.busy < LANES
                && let Some(record) = records.next()
            {
                self.lanes[self.busy] = Lane::new(record);
                self.set_state(self.busy, &self.pads.inner);
                self.busy += 1;
            }
            if self.busy < H::FEWEST {
                return self.finish_alone();
            }
            self.advance(proof);
        }
    }

    /// Takes every record as far as the shortest stage goes.
    fn advance(&mut self, proof: Avx512) {
        let lanes = &self.lanes[..self.busy];
        let count = lanes.iter().map(|lane| lane.blocks().len()).min().unwrap_or(0);
        // An idle lane costs nothing more when it reads what another lane reads.
        let mut inputs = [&lanes[0].blocks()[..count]; LANES];
        for (input, lane) in inputs.iter_mut().zip(lanes) {
            *input = &lane.blocks()[..count];
        }
        H::compress_lanes(proof, &mut self.states, &inputs, self.busy);
        for index in (0..self.busy).rev() {
            if self.lanes[index].advance(count) && !self.next_stage(index) {
                self.busy -= 1;
                self.lanes.swap(index, self.busy);
                self.states.iter_mut().for_each(|row| row[index] = row[self.busy]);
            }
        }
    }

    /// False if the record has its MAC.
    fn next_stage(&mut self, index: usize) -> bool {
        let state = self.states.map(|row| row[index]);
        match self.lanes[index].next_stage(self.pads, &state) {
            Next::Inner => true,
            Next::Outer => {
                self.set_state(index, &self.pads.outer);
                true
            }
            Next::Done => false,
        }
    }

    fn finish_alone(&mut self) {
        for index in 0..self.busy {
            let mut state = self.states.map(|row| row[index]);
            let lane = &mut self.lanes[index];
            loop {
                H::compress(&mut state, lane.blocks());
                match lane.next_stage(self.pads, &state) {
                    Next::Inner => {}
                    Next::Outer => state = self.pads.outer,
                    Next::Done => break,
                }
            }
            state.zeroize();
        }
        self.busy = 0;
    }

    fn set_state(&mut self, index: usize, state: &[H::Word; 8]) {
        for (row, word) in self.states.iter_mut().zip(state) {
            row[index] = *word;
        }
    }
}

/// A record and how far it is.
struct Lane<'r, const BLOCK: usize> {
    stage: Stage,
    /// Blocks of this stage that are done.
    done: usize,
    /// The blocks that do not lie in the data.
    own: [[u8; BLOCK]; 2],
    /// Blocks of `own` that this stage has.
    owned: usize,
    data: &'r [[u8; BLOCK]],
    /// What is behind `data`.
    rest: &'r [u8],
    /// Bytes of the message.
    len: usize,
    tag: &'r mut [u8],
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    First,
    Data,
    End,
    Outer,
}

/// What follows a stage.
enum Next {
    Inner,
    /// From the state after the outer pad.
    Outer,
    Done,
}

impl<'r, const BLOCK: usize> Lane<'r, BLOCK> {
    /// A lane without a record.
    fn idle() -> Self {
        Self {
            stage: Stage::Outer,
            done: 0,
            own: [[0; BLOCK]; 2],
            owned: 0,
            data: &[],
            rest: &[],
            len: 0,
            tag: &mut [],
        }
    }

    fn new<const HEADER: usize>(record: &'r mut HmacRecord<'_, HEADER>) -> Self {
        let len = HEADER + record.data.len();
        let mut lane = Self { len, tag: record.tag, ..Self::idle() };
        lane.own[0][..HEADER].copy_from_slice(&record.header);
        let place = &mut lane.own[0][HEADER..];
        match record.data.split_at_checked(BLOCK - HEADER) {
            Some((head, rest)) => {
                place.copy_from_slice(head);
                (lane.data, lane.rest) = rest.as_chunks();
                (lane.stage, lane.owned) = (Stage::First, 1);
            }
            None => {
                place[..record.data.len()].copy_from_slice(record.data);
                lane.end(HEADER + record.data.len());
            }
        }
        lane
    }

    /// The blocks of this stage that are still to be done; never none.
    fn blocks(&self) -> &[[u8; BLOCK]] {
        match self.stage {
            Stage::Data => &self.data[self.done..],
            _ => &self.own[self.done..self.owned],
        }
    }

    /// True if the stage is over.
    fn advance(&mut self, count: usize) -> bool {
        self.done += count;
        self.blocks().is_empty()
    }

    /// Goes on after a stage that ended with `state`.
    fn next_stage<H: Compression<LANES, BLOCK>, const LANES: usize>(
        &mut self,
        pads: &Pads<H, LANES, BLOCK>,
        state: &[H::Word; 8],
    ) -> Next {
        self.done = 0;
        match self.stage {
            Stage::First if !self.data.is_empty() => self.stage = Stage::Data,
            Stage::First | Stage::Data => {
                self.own[0][..self.rest.len()].copy_from_slice(self.rest);
                self.end(self.rest.len());
            }
            Stage::End => {
                self.own[0] = pads.outer_block(state, self.tag.len());
                (self.stage, self.owned) = (Stage::Outer, 1);
                return Next::Outer;
            }
            Stage::Outer => {
                write_state(state, self.tag);
                return Next::Done;
            }
        }
        Next::Inner
    }

    /// Pads the message, whose last `filled` bytes stand in `own`.
    fn end(&mut self, filled: usize) {
        self.owned = pad(&mut self.own, filled, BLOCK + self.len);
        self.stage = Stage::End;
    }
}
