//! The hash states of several messages, and the kernels that work on them.

use zeroize::{Zeroize, optimization_barrier};

use super::key::{Pads, write_state};
use crate::kernel::cpu::{Avx512, ShaNi};
use crate::sha::{CompressPair, Compression, ShaKernel, Word};

/// The states of `N` messages.
pub(crate) trait States<
    H: Compression<LANES, BLOCK>,
    const N: usize,
    const LANES: usize,
    const BLOCK: usize,
>
{
    fn state(&self, lane: usize) -> [H::Word; 8];

    fn set_state(&mut self, lane: usize, state: &[H::Word; 8]);

    /// Writes the first bytes of a state.
    fn write(&self, lane: usize, bytes: &mut [u8]);

    /// States of other messages.
    fn empty(&self) -> Self
    where
        Self: Sized;

    /// Wipes all states.
    fn wipe(&mut self);

    /// Works on the same number of blocks of each of the first `busy` inputs. What is behind them is
    /// garbage afterwards.
    fn compress(&mut self, inputs: &[&[[u8; BLOCK]]; N], busy: usize);

    /// Turns the first `busy` states, which the inner hashes ended with, into those of the outer ones.
    #[inline]
    fn outer_hashes(&mut self, pads: &Pads<H, LANES, BLOCK>, tag_len: usize, busy: usize) {
        let mut blocks = [[[0; BLOCK]]; N];
        for (lane, [block]) in blocks[..busy].iter_mut().enumerate() {
            *block = pads.outer_block(&self.state(lane), tag_len);
            self.set_state(lane, &pads.outer);
        }
        self.compress(&blocks.each_ref().map(<[_; 1]>::as_slice), busy);
    }
}

/// The lanes for `count` messages.
pub(crate) enum Group<W, P> {
    Wide(W),
    Pair(P),
    /// One after the other.
    Alone,
}

impl<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize>
    Group<Wide<H, LANES, BLOCK>, Pair<H, LANES, BLOCK>>
{
    /// The fastest that `kernel` has.
    pub(crate) fn new(kernel: ShaKernel, count: usize) -> Self {
        let (wide, pair) = match kernel {
            ShaKernel::Avx512(proof, pair) => (Some(proof), pair),
            ShaKernel::ShaNi(pair) => (None, Some(pair)),
            ShaKernel::RustCrypto => (None, None),
        };
        if let Some(proof) = wide
            && count >= H::FEWEST
        {
            return Self::Wide(Wide { proof, pair, states: [[H::Word::default(); LANES]; 8] });
        }
        let pair = pair.filter(|_| count > 1).and_then(Pair::new);
        pair.map_or(Self::Alone, Self::Pair)
    }
}

/// The states on the lanes of AVX-512: a row is one word of each.
pub(crate) struct Wide<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize> {
    proof: Avx512,
    pair: Option<ShaNi>,
    states: [[H::Word; LANES]; 8],
}

impl<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize>
    States<H, LANES, LANES, BLOCK> for Wide<H, LANES, BLOCK>
{
    #[inline]
    fn state(&self, lane: usize) -> [H::Word; 8] {
        self.states.each_ref().map(|row| row[lane])
    }

    #[inline]
    fn set_state(&mut self, lane: usize, state: &[H::Word; 8]) {
        for (row, word) in self.states.iter_mut().zip(state) {
            row[lane] = *word;
        }
    }

    /// Word by word: put together first, they would wait for each other's way through memory.
    #[inline]
    fn write(&self, lane: usize, bytes: &mut [u8]) {
        for (bytes, row) in bytes.chunks_exact_mut(size_of::<H::Word>()).zip(&self.states) {
            row[lane].write(bytes);
        }
    }

    #[inline]
    fn empty(&self) -> Self {
        Self { states: [[H::Word::default(); LANES]; 8], ..*self }
    }

    /// 64 bytes at a time, where `zeroize` takes a word.
    #[inline]
    fn wipe(&mut self) {
        self.states = [[H::Word::default(); LANES]; 8];
        optimization_barrier(&self.states);
    }

    #[inline]
    fn compress(&mut self, inputs: &[&[[u8; BLOCK]]; LANES], busy: usize) {
        if busy >= H::FEWEST {
            return H::compress_lanes(self.proof, &mut self.states, inputs, busy);
        }
        for lane in (0..busy).step_by(2) {
            let mut states = [self.state(lane), self.state((lane + 1).min(busy - 1))];
            match (self.pair, H::PAIR) {
                (Some(proof), Some(pair)) if lane + 1 < busy => {
                    pair(proof, &mut states, &[inputs[lane], inputs[lane + 1]]);
                }
                _ => {
                    for (state, input) in states.iter_mut().zip(&inputs[lane..busy]) {
                        H::compress(state, input);
                    }
                }
            }
            for (lane, state) in (lane..busy).zip(&states) {
                self.set_state(lane, state);
            }
            states.zeroize();
        }
    }

    /// The words of a digest are those of the state, so a block need not be written and read.
    #[inline]
    fn outer_hashes(&mut self, pads: &Pads<H, LANES, BLOCK>, tag_len: usize, busy: usize) {
        let [first, last] = H::Word::padding(8 * (BLOCK + tag_len) as u32);
        let mut words = [[H::Word::default(); LANES]; 16];
        let digest = tag_len / size_of::<H::Word>();
        words[..digest].copy_from_slice(&self.states[..digest]);
        (words[digest], words[15]) = ([first; LANES], [last; LANES]);
        for (row, word) in self.states.iter_mut().zip(&pads.outer) {
            *row = [*word; LANES];
        }
        H::compress_words(self.proof, &mut self.states, &words, busy);
        // As in `wipe`.
        words = [[H::Word::default(); LANES]; 16];
        optimization_barrier(&words);
    }
}

/// The states of two messages.
pub(crate) struct Pair<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize> {
    proof: ShaNi,
    compress: CompressPair<H::Word, BLOCK>,
    states: [[H::Word; 8]; 2],
}

impl<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize> Pair<H, LANES, BLOCK> {
    /// `None` for a hash that is not faster so.
    pub(crate) fn new(proof: ShaNi) -> Option<Self> {
        let states = [[H::Word::default(); 8]; 2];
        H::PAIR.map(|compress| Self { proof, compress, states })
    }
}

impl<H: Compression<LANES, BLOCK>, const LANES: usize, const BLOCK: usize>
    States<H, 2, LANES, BLOCK> for Pair<H, LANES, BLOCK>
{
    #[inline]
    fn state(&self, lane: usize) -> [H::Word; 8] {
        self.states[lane]
    }

    #[inline]
    fn set_state(&mut self, lane: usize, state: &[H::Word; 8]) {
        self.states[lane] = *state;
    }

    #[inline]
    fn write(&self, lane: usize, bytes: &mut [u8]) {
        write_state(&self.states[lane], bytes);
    }

    #[inline]
    fn empty(&self) -> Self {
        Self { states: [[H::Word::default(); 8]; 2], ..*self }
    }

    #[inline]
    fn wipe(&mut self) {
        self.states.zeroize();
    }

    #[inline]
    fn compress(&mut self, inputs: &[&[[u8; BLOCK]]; 2], busy: usize) {
        if busy == 2 {
            (self.compress)(self.proof, &mut self.states, inputs);
        } else {
            H::compress(&mut self.states[0], inputs[0]);
        }
    }
}
