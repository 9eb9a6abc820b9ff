//! CBC of many records at once: deals records of unequal length to the lanes of a kernel.
//!
//! One message of CBC is a chain, so a core that could start two rounds a cycle waits for the
//! latency of each. Independent records side by side fill the gaps.

use super::{BLOCK_LEN, BlockKernel};

/// Enciphers each record as one message of CBC. A record is its IV and its blocks.
pub(crate) fn cbc_encrypt_records<'r>(
    kernel: &dyn BlockKernel,
    records: impl Iterator<Item = ([u8; BLOCK_LEN], &'r mut [[u8; BLOCK_LEN]])>,
) {
    let mut waiting = records.filter(|(_, blocks)| !blocks.is_empty());
    let mut dealt = Dealt { chain: [[0; BLOCK_LEN]; MOST_LANES], left: Vec::new() };
    let most = kernel.lane_counts()[0].min(MOST_LANES);
    loop {
        while dealt.left.len() < most
            && let Some((iv, blocks)) = waiting.next()
        {
            dealt.chain[dealt.left.len()] = iv;
            dealt.left.push(blocks);
        }
        if dealt.left.is_empty() {
            return;
        }
        dealt.advance(kernel);
        dealt.drop_finished();
    }
}

/// Lanes of the widest kernel.
const MOST_LANES: usize = 32;

/// Blocks that lanes without a record go along with.
const IDLE_BLOCKS: usize = 16;

/// Records on lanes, the first ones of [`MOST_LANES`].
struct Dealt<'r> {
    chain: [[u8; BLOCK_LEN]; MOST_LANES],
    left: Vec<&'r mut [[u8; BLOCK_LEN]]>,
}

impl Dealt<'_> {
    /// Takes every record as far as the shortest goes.
    fn advance(&mut self, kernel: &dyn BlockKernel) {
        let busy = self.left.len();
        let fits = |count: &&usize| **count >= busy;
        let counts = kernel.lane_counts();
        let lanes = counts.iter().rev().find(fits).copied().unwrap_or(busy);
        let mut blocks = self.left.iter().map(|left| left.len()).min().unwrap_or(0);
        let mut idle = Vec::new();
        if lanes > busy {
            blocks = blocks.min(IDLE_BLOCKS);
            idle = vec![[[0; BLOCK_LEN]; IDLE_BLOCKS]; lanes - busy];
        }
        let mut now: Vec<_> = self
            .left
            .iter_mut()
            .map(|left| left.split_off_mut(..blocks).unwrap_or_default())
            .collect();
        now.extend(idle.iter_mut().map(|idle| &mut idle[..blocks]));
        kernel.cbc_encrypt_lanes(&mut self.chain[..lanes], &mut now);
    }

    fn drop_finished(&mut self) {
        let mut lane = 0;
        while lane < self.left.len() {
            if self.left[lane].is_empty() {
                self.left.swap_remove(lane);
                self.chain[lane] = self.chain[self.left.len()];
            } else {
                lane += 1;
            }
        }
    }
}
