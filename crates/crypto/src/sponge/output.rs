//! The output of a sponge, in pieces.

use super::{Sponge, squeeze};
use crate::keccak::KeccakKernel;

/// A sponge that has absorbed all of its message and squeezes.
pub(crate) struct Output<const RATE: usize, const ROUNDS: usize> {
    state: [u64; 25],
    kernel: KeccakKernel,
    /// Bytes of the block of `state` that were read.
    read: usize,
}

impl<const RATE: usize, const ROUNDS: usize> Output<RATE, ROUNDS> {
    /// The output of `sponge`, padded with `domain` as [`Sponge::finish`] pads it.
    pub(crate) fn new(mut sponge: Sponge<RATE, ROUNDS>, kernel: KeccakKernel, domain: u8) -> Self {
        sponge.pad_last_block(domain);
        kernel.absorb_one::<RATE, ROUNDS>(&mut sponge.state, &sponge.partial);
        Self { state: sponge.state, kernel, read: 0 }
    }

    /// Fills `out` with the next bytes.
    pub(crate) fn read(&mut self, mut out: &mut [u8]) {
        while !out.is_empty() {
            if self.read == RATE {
                // A block of zeros changes nothing before the permutation.
                self.kernel.absorb_one::<RATE, ROUNDS>(&mut self.state, &[0; RATE]);
                self.read = 0;
            }
            let mut block = [0; RATE];
            squeeze(self.state.iter().copied(), &mut block);
            let len = out.len().min(RATE - self.read);
            let (now, later) = out.split_at_mut(len);
            now.copy_from_slice(&block[self.read..][..len]);
            self.read += len;
            out = later;
        }
    }
}
