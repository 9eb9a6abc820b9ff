//! The sponge of FIPS 202, section 4: absorb, pad, squeeze; one message or many at a time.

use crate::keccak::{KeccakKernel, LANES};

mod equal_lanes;
mod output;

pub(crate) use equal_lanes::EqualLanes;
pub(crate) use output::Output;

/// One message's state and the bytes that do not fill a block yet.
pub(crate) struct Sponge<const RATE: usize, const ROUNDS: usize> {
    state: [u64; 25],
    /// Zeros behind what fills it, so that only two bytes are left to pad: a fill of unknown length costs a
    /// fortieth of a short message.
    partial: [u8; RATE],
    /// Bytes in `partial`, fewer than `RATE`.
    filled: usize,
}

impl<const RATE: usize, const ROUNDS: usize> Sponge<RATE, ROUNDS> {
    pub(crate) fn new() -> Self {
        Self { state: [0; 25], partial: [0; RATE], filled: 0 }
    }

    /// Absorbs `data`.
    pub(crate) fn update(&mut self, kernel: KeccakKernel, data: &[u8]) {
        if let Some(job) = self.job(data) {
            job.run_alone::<RATE, ROUNDS>(kernel);
        }
        self.keep_rest(data);
    }

    /// Fills the block with zeros and absorbs it: `bytepad` of SP 800-185, section 2.3.3.
    pub(crate) fn pad_block_with_zeros(&mut self, kernel: KeccakKernel) {
        if self.filled > 0 {
            self.update(kernel, &[0; RATE][self.filled..]);
        }
    }

    /// Pads with `domain`, the domain bits and the first bit of pad10*1, and fills `out`. The last call:
    /// it takes no value of 384 bytes, because moving one costs a tenth of a short message.
    pub(crate) fn finish(&mut self, kernel: KeccakKernel, domain: u8, out: &mut [u8]) {
        self.pad_last_block(domain);
        kernel.absorb_one::<RATE, ROUNDS>(&mut self.state, &self.partial);
        let mut blocks = out.chunks_mut(RATE).peekable();
        while let Some(block) = blocks.next() {
            squeeze(self.state.iter().copied(), block);
            if blocks.peek().is_some() {
                // A block of zeros changes nothing before the permutation.
                kernel.absorb_one::<RATE, ROUNDS>(&mut self.state, &[0; RATE]);
            }
        }
    }

    /// All blocks that `data` completes. Follow with `keep_rest` of the same data.
    pub(crate) fn job<'a>(&'a mut self, data: &'a [u8]) -> Option<Job<'a>> {
        if self.filled == 0 {
            return Job::new(&mut self.state, whole_blocks::<RATE>(data), &[]);
        }
        let (head, body) = data.split_at_checked(RATE - self.filled)?;
        self.partial[self.filled..].copy_from_slice(head);
        Job::new(&mut self.state, &self.partial, whole_blocks::<RATE>(body))
    }

    /// Keeps what `job` could not absorb.
    pub(crate) fn keep_rest(&mut self, data: &[u8]) {
        let unabsorbed = self.filled + data.len();
        if unabsorbed < RATE {
            self.partial[self.filled..unabsorbed].copy_from_slice(data);
            self.filled = unabsorbed;
        } else {
            self.filled = unabsorbed % RATE;
            self.partial = [0; RATE];
            self.partial[..self.filled].copy_from_slice(&data[data.len() - self.filled..]);
        }
    }

    /// The whole rest of the message: the blocks of `data` and the padded block.
    ///
    /// Panics unless the sponge is at the start of a block. Follow with `digest`.
    pub(crate) fn last_job<'a>(&'a mut self, data: &'a [u8], domain: u8) -> Option<Job<'a>> {
        assert_eq!(self.filled, 0, "at the start of a block");
        self.keep_rest(data);
        self.pad_last_block(domain);
        Job::new(&mut self.state, whole_blocks::<RATE>(data), &self.partial)
    }

    /// The padded last block of what was absorbed so far. Follow with `digest`.
    pub(crate) fn padding_job(&mut self, domain: u8) -> Option<Job<'_>> {
        self.pad_last_block(domain);
        Job::new(&mut self.state, &self.partial, &[])
    }

    /// The first bytes of the output, at most `RATE`, once the padded block is absorbed.
    pub(crate) fn digest(&self, out: &mut [u8]) {
        assert!(out.len() <= RATE, "one block of output");
        squeeze(self.state.iter().copied(), out);
    }

    /// Section 5.1, pad10*1 on bytes.
    fn pad_last_block(&mut self, domain: u8) {
        self.partial[self.filled] = domain;
        self.partial[RATE - 1] |= 0x80;
    }
}

/// Whole blocks that one state is to absorb, in two pieces; the first is empty only at the end.
pub(crate) struct Job<'a> {
    state: &'a mut [u64; 25],
    now: &'a [u8],
    next: &'a [u8],
}

impl<'a> Job<'a> {
    /// `None` when there is nothing to absorb.
    fn new(state: &'a mut [u64; 25], first: &'a [u8], second: &'a [u8]) -> Option<Self> {
        let (now, next) = if first.is_empty() { (second, first) } else { (first, second) };
        (!now.is_empty()).then_some(Self { state, now, next })
    }

    fn advance(&mut self, len: usize) {
        self.now = &self.now[len..];
        if self.now.is_empty() {
            self.now = std::mem::take(&mut self.next);
        }
    }

    fn run_alone<const RATE: usize, const ROUNDS: usize>(self, kernel: KeccakKernel) {
        kernel.absorb_one::<RATE, ROUNDS>(self.state, self.now);
        if !self.next.is_empty() {
            kernel.absorb_one::<RATE, ROUNDS>(self.state, self.next);
        }
    }
}

/// Runs all jobs, `LANES` at a time; a job that is done makes room for the next one.
pub(crate) fn absorb_many<'a, const RATE: usize, const ROUNDS: usize>(
    kernel: KeccakKernel,
    jobs: impl Iterator<Item = Job<'a>>,
) {
    let mut jobs = jobs.fuse();
    let mut states = [[0; LANES]; 25];
    let mut slots: [Option<Job<'a>>; LANES] = [const { None }; LANES];
    loop {
        for n in 0..LANES {
            if slots[n].is_some() {
                continue;
            }
            slots[n] = jobs.next();
            if let Some(job) = &slots[n] {
                states.iter_mut().zip(&*job.state).for_each(|(words, word)| words[n] = *word);
            } else if let Some(last) = slots.iter().rposition(Option::is_some).filter(|&m| m > n) {
                // The kernels do the first lanes alone in less time.
                slots.swap(n, last);
                states.iter_mut().for_each(|words| words[n] = words[last]);
            }
        }
        let busy = slots.iter().flatten().count();
        let Some(len) = slots.iter().flatten().map(|job| job.now.len()).min() else { return };
        if busy > 1 {
            let inputs = slots.each_ref().map(|slot| slot.as_ref().map(|job| &job.now[..len]));
            kernel.absorb::<RATE, ROUNDS>(&mut states, inputs);
        }
        for (n, slot) in slots.iter_mut().enumerate() {
            let Some(job) = slot else { continue };
            if busy > 1 {
                job.advance(len);
            }
            if busy == 1 || job.now.is_empty() {
                job.state.iter_mut().zip(&states).for_each(|(word, words)| *word = words[n]);
                if let Some(job) = slot.take() {
                    job.run_alone::<RATE, ROUNDS>(kernel);
                }
            }
        }
    }
}

/// The first bytes of a state, at most 200, in the byte order of section 3.1.
fn squeeze(mut state: impl Iterator<Item = u64>, out: &mut [u8]) {
    let (words, rest) = out.as_chunks_mut();
    for (bytes, word) in words.iter_mut().zip(&mut state) {
        *bytes = word.to_le_bytes();
    }
    if let (false, Some(word)) = (rest.is_empty(), state.next()) {
        rest.copy_from_slice(&word.to_le_bytes()[..rest.len()]);
    }
}

fn whole_blocks<const RATE: usize>(data: &[u8]) -> &[u8] {
    &data[..data.len() - data.len() % RATE]
}
