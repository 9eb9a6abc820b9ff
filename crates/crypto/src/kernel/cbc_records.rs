//! CBC of many records at once, on the lanes of a kernel.
//!
//! One message of CBC is a chain, so a core that could start two rounds a cycle waits for the
//! latency of each. Independent records side by side fill the gaps.

use super::{BLOCK_LEN, BlockKernel};
use crate::lanes::{self, Lanes, MOST_LANES};

/// Enciphers each record as one message of CBC. A record is its IV and its blocks.
pub(crate) fn cbc_encrypt_records<'r>(
    kernel: &dyn BlockKernel,
    records: impl Iterator<Item = ([u8; BLOCK_LEN], &'r mut [[u8; BLOCK_LEN]])>,
) {
    let mut chains = Chains {
        kernel,
        waiting: records,
        chain: [[0; BLOCK_LEN]; MOST_LANES],
        left: std::array::from_fn(|_| Default::default()),
    };
    lanes::run(&mut chains, kernel.lane_counts()[0].min(MOST_LANES));
}

/// Blocks that lanes without a record go along with.
const IDLE_BLOCKS: usize = 16;

/// Records on lanes.
struct Chains<'k, 'r, I> {
    kernel: &'k dyn BlockKernel,
    waiting: I,
    chain: [[u8; BLOCK_LEN]; MOST_LANES],
    left: [&'r mut [[u8; BLOCK_LEN]]; MOST_LANES],
}

impl<'r, I> Lanes for Chains<'_, 'r, I>
where
    I: Iterator<Item = ([u8; BLOCK_LEN], &'r mut [[u8; BLOCK_LEN]])>,
{
    fn begin(&mut self, lane: usize) -> Option<usize> {
        (self.chain[lane], self.left[lane]) = self.waiting.next()?;
        Some(self.left[lane].len())
    }

    fn advance(&mut self, busy: usize, steps: usize) {
        let fits = |count: &&usize| **count >= busy;
        let lanes = self.kernel.lane_counts().iter().rev().find(fits).copied().unwrap_or(busy);
        let mut now: [&mut [[u8; BLOCK_LEN]]; MOST_LANES] =
            std::array::from_fn(|_| Default::default());
        for (now, left) in now.iter_mut().zip(&mut self.left[..busy]) {
            *now = left.split_off_mut(..steps).unwrap_or_default();
        }
        if lanes == busy {
            self.kernel.cbc_encrypt_lanes(&mut self.chain[..lanes], &mut now[..lanes]);
        } else {
            self.advance_with_idle(&mut now[..lanes]);
        }
    }

    fn next_stage(&mut self, _: usize) -> Option<usize> {
        None
    }

    fn relocate(&mut self, from: usize, to: usize) {
        self.chain[to] = self.chain[from];
        self.left.swap(from, to);
    }
}

impl<I> Chains<'_, '_, I> {
    /// As many lanes as the kernel takes; those without blocks go along.
    fn advance_with_idle(&mut self, lanes: &mut [&mut [[u8; BLOCK_LEN]]]) {
        let mut idle = [[[0; BLOCK_LEN]; IDLE_BLOCKS]; MOST_LANES];
        while !lanes[0].is_empty() {
            let blocks = lanes[0].len().min(IDLE_BLOCKS);
            let mut now: [&mut [[u8; BLOCK_LEN]]; MOST_LANES] =
                std::array::from_fn(|_| Default::default());
            for ((now, lane), idle) in now.iter_mut().zip(&mut *lanes).zip(&mut idle) {
                *now = lane.split_off_mut(..blocks).unwrap_or(&mut idle[..blocks]);
            }
            self.kernel.cbc_encrypt_lanes(&mut self.chain[..lanes.len()], &mut now[..lanes.len()]);
        }
    }
}
