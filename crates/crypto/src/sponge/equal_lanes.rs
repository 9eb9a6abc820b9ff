//! Up to eight messages of one length at once: no lane waits for another, and no state is moved.

use super::{Sponge, squeeze};
use crate::keccak::{KeccakKernel, LANES};

/// The states of up to eight messages.
pub(crate) struct EqualLanes<const RATE: usize, const ROUNDS: usize>([[u64; LANES]; 25]);

impl<const RATE: usize, const ROUNDS: usize> EqualLanes<RATE, ROUNDS> {
    /// Absorbs all whole blocks of messages of one length. Follow with `finish`, or with `sponge` for a
    /// message that goes on.
    pub(crate) fn absorb(kernel: KeccakKernel, messages: [Option<&[u8]>; LANES]) -> Self {
        let mut states = [[0; LANES]; 25];
        let blocks = messages.map(|message| message.map(|message| split::<RATE>(message).0));
        kernel.absorb::<RATE, ROUNDS>(&mut states, blocks);
        Self(states)
    }

    /// Absorbs what is left of the same messages, and the padding with `domain`. Follow with `digest`.
    pub(crate) fn finish(
        &mut self,
        kernel: KeccakKernel,
        messages: [Option<&[u8]>; LANES],
        domain: u8,
    ) {
        let mut last_blocks = [[0; RATE]; LANES];
        for (message, last) in messages.iter().zip(&mut last_blocks) {
            let Some(message) = message else { continue };
            let rest = split::<RATE>(message).1;
            last[..rest.len()].copy_from_slice(rest);
            last[rest.len()] = domain;
            last[RATE - 1] |= 0x80;
        }
        let last = std::array::from_fn(|n| messages[n].map(|_| last_blocks[n].as_slice()));
        kernel.absorb::<RATE, ROUNDS>(&mut self.0, last);
    }

    /// The sponge of message `n`, which goes on behind what `absorb` took of it.
    pub(crate) fn sponge(&self, n: usize, message: &[u8]) -> Sponge<RATE, ROUNDS> {
        let mut sponge = Sponge::new();
        sponge.state = self.0.map(|words| words[n]);
        sponge.keep_rest(split::<RATE>(message).1);
        sponge
    }

    /// The first bytes of the output of message `n`, at most `RATE`.
    pub(crate) fn digest(&self, n: usize, out: &mut [u8]) {
        assert!(out.len() <= RATE, "one block of output");
        squeeze(self.0.iter().map(|words| words[n]), out);
    }
}

/// Whole blocks, and what is left.
fn split<const RATE: usize>(message: &[u8]) -> (&[u8], &[u8]) {
    message.split_at(message.len() - message.len() % RATE)
}
