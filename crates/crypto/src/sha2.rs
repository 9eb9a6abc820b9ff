//! SHA-256, FIPS 180-4: one message, or any number of independent messages side by side.

use std::cmp::Reverse;

use crate::hmac::key::{pad, write_state};
use crate::hmac::states::{Group, States};
use crate::lanes::{self, Lanes};
use crate::sha::{self, Compression, SHA_256, ShaKernel};

/// Bytes of a digest.
pub const DIGEST_LEN: usize = 32;

/// Bytes of a block.
const BLOCK: usize = 64;

/// Messages in a register of AVX-512.
const WIDE: usize = 16;

/// Messages whose states are in memory at once.
const GROUP: usize = 256;

/// The SHA-256 of one message, by the CPU's instructions for it where it has them.
///
/// Serial by construction: sixteen messages take less than half as long with [`sha256_many`], or in pieces with
/// [`update_many`], where the CPU has AVX-512.
#[derive(Default)]
pub struct Sha256(Sha256Lane);

impl Sha256 {
    /// A hasher that has read no data yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `data`.
    pub fn update(&mut self, mut data: &[u8]) {
        if self.0.filled > 0 {
            self.0.fill(&mut data);
        }
        let (blocks, mut rest) = data.as_chunks();
        sha::Sha256::compress(&mut self.0.state, blocks);
        self.0.len += blocks.as_flattened().len();
        self.0.fill(&mut rest);
    }

    /// The digest.
    pub fn finish(self) -> [u8; DIGEST_LEN] {
        self.0.finish()
    }
}

/// The state of one message among many: see [`update_many`] and [`finish_many`].
pub struct Sha256Lane {
    state: [u32; 8],
    /// The bytes behind the last whole block, and room for the padding.
    rest: [[u8; BLOCK]; 2],
    filled: usize,
    len: usize,
}

impl Sha256Lane {
    /// A hasher that has read no data yet.
    pub fn new() -> Self {
        Self { state: SHA_256, rest: [[0; BLOCK]; 2], filled: 0, len: 0 }
    }

    /// The digest. [`finish_many`] is faster for several messages.
    pub fn finish(mut self) -> [u8; DIGEST_LEN] {
        let (state, blocks) = self.padding_job();
        sha::Sha256::compress(state, blocks);
        self.digest()
    }

    /// The state, and the blocks at the end of its message.
    fn padding_job(&mut self) -> Job<'_> {
        let blocks = pad(&mut self.rest, self.filled, self.len);
        (&mut self.state, &self.rest[..blocks])
    }

    fn digest(&self) -> [u8; DIGEST_LEN] {
        let mut digest = [0; DIGEST_LEN];
        write_state(&self.state, &mut digest);
        digest
    }

    /// Moves as many bytes from the front of `data` as a block takes that has begun.
    fn fill(&mut self, data: &mut &[u8]) {
        let head = data.split_off(..data.len().min(BLOCK - self.filled)).unwrap_or_default();
        self.rest[0][self.filled..][..head.len()].copy_from_slice(head);
        self.filled += head.len();
        self.len += head.len();
        if self.filled == BLOCK {
            sha::Sha256::compress(&mut self.state, &self.rest[..1]);
            self.filled = 0;
        }
    }
}

impl Default for Sha256Lane {
    fn default() -> Self {
        Self::new()
    }
}

/// Adds to every message its own data, of any length, with as many messages at once as `kernel` takes.
///
/// Fastest if no data but the last of a message ends within a block of 64 bytes. Allocates nothing.
pub fn update_many(kernel: ShaKernel, messages: &mut [(&mut Sha256Lane, &[u8])]) {
    for (lane, data) in &mut *messages {
        if lane.filled > 0 {
            lane.fill(data);
        }
        lane.len += data.len() / BLOCK * BLOCK;
    }
    let jobs = messages.iter_mut().map(|(lane, data)| (&mut lane.state, data.as_chunks().0));
    compress_many(kernel, jobs);
    for (lane, data) in messages {
        let mut rest = data.as_chunks::<BLOCK>().1;
        lane.fill(&mut rest);
    }
}

/// The digests of `lanes`, in their order; the last blocks too go side by side.
pub fn finish_many(kernel: ShaKernel, mut lanes: Vec<Sha256Lane>) -> Vec<[u8; DIGEST_LEN]> {
    compress_many(kernel, lanes.iter_mut().map(Sha256Lane::padding_job));
    lanes.iter().map(Sha256Lane::digest).collect()
}

/// The digests of `messages`, in their order, with as many at once as `kernel` takes.
pub fn sha256_many(kernel: ShaKernel, messages: &[&[u8]]) -> Vec<[u8; DIGEST_LEN]> {
    let mut digests = vec![[0; DIGEST_LEN]; messages.len()];
    // With the longest first, the fewest lanes idle at the end.
    let mut order: Vec<usize> = (0..messages.len()).collect();
    order.sort_by_key(|&i| Reverse(messages[i].len()));
    for group in order.chunks(GROUP) {
        let mut lanes: Vec<_> = group.iter().map(|_| Sha256Lane::new()).collect();
        let mut data: Vec<_> = lanes.iter_mut().zip(group.iter().map(|&i| messages[i])).collect();
        update_many(kernel, &mut data);
        for (digest, &i) in finish_many(kernel, lanes).into_iter().zip(group) {
            digests[i] = digest;
        }
    }
    digests
}

/// A state and the blocks that it takes in.
type Job<'r> = (&'r mut [u32; 8], &'r [[u8; BLOCK]]);

fn compress_many<'r>(kernel: ShaKernel, jobs: impl ExactSizeIterator<Item = Job<'r>>) {
    match Group::new(kernel, jobs.len()) {
        Group::Wide(states) => Dealt::run(states, jobs),
        Group::Pair(states) => Dealt::run(states, jobs),
        Group::Alone => jobs.for_each(|(state, blocks)| sha::Sha256::compress(state, blocks)),
    }
}

/// Messages on `N` lanes.
struct Dealt<'r, S, I, const N: usize> {
    states: S,
    waiting: I,
    /// Where the states go.
    ends: [Option<&'r mut [u32; 8]>; N],
    blocks: [&'r [[u8; BLOCK]]; N],
}

impl<'r, S, I, const N: usize> Dealt<'r, S, I, N>
where
    S: States<sha::Sha256, N, WIDE, BLOCK>,
    I: Iterator<Item = Job<'r>>,
{
    fn run(states: S, waiting: I) {
        let ends = [const { None }; N];
        lanes::run(&mut Self { states, waiting, ends, blocks: [&[]; N] }, N);
    }
}

impl<'r, S, I, const N: usize> Lanes for Dealt<'r, S, I, N>
where
    S: States<sha::Sha256, N, WIDE, BLOCK>,
    I: Iterator<Item = Job<'r>>,
{
    fn begin(&mut self, lane: usize) -> Option<usize> {
        let (state, blocks) = self.waiting.next()?;
        self.states.set_state(lane, state);
        (self.ends[lane], self.blocks[lane]) = (Some(state), blocks);
        Some(blocks.len())
    }

    fn advance(&mut self, busy: usize, steps: usize) {
        let mut inputs = [&self.blocks[0][..steps]; N];
        for (input, blocks) in inputs.iter_mut().zip(&mut self.blocks[..busy]) {
            (*input, *blocks) = blocks.split_at(steps);
        }
        self.states.compress(&inputs, busy);
    }

    fn next_stage(&mut self, lane: usize) -> Option<usize> {
        if let Some(end) = self.ends[lane].take() {
            *end = self.states.state(lane);
        }
        None
    }

    fn relocate(&mut self, from: usize, to: usize) {
        self.ends.swap(from, to);
        self.blocks.swap(from, to);
        let state = self.states.state(from);
        self.states.set_state(to, &state);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::digest::{SHA256, digest};

    #[test]
    fn many_messages_in_pieces_have_the_digests_of_aws_lc() {
        let long = (1 << 20) + 3;
        let lens = [0, 1, 55, 56, 63, 64, 65, 119, 120, 127, 128, 129, 1000, 16_384, long];
        let data: Vec<u8> = (0..long + 50).map(|i| (i % 251) as u8).collect();
        for (kernel, count) in ShaKernel::all()
            .into_iter()
            .flat_map(|kernel| [0, 1, 2, 6, 7, 8, 9, 15, 16, 17, 33, 50].map(|n| (kernel, n)))
        {
            let messages: Vec<&[u8]> =
                (0..count).map(|i| &data[i % 47..][..lens[i * 7 % lens.len()]]).collect();
            for piece in [63, 64, 1000, 4096, 1 << 21] {
                if piece < 1000 && count > 9 {
                    continue;
                }
                let mut lanes: Vec<_> = messages.iter().map(|_| Sha256Lane::new()).collect();
                for at in (0..long).step_by(piece) {
                    let parts = messages.iter().map(|message| {
                        &message[at.min(message.len())..(at + piece).min(message.len())]
                    });
                    let mut parts: Vec<_> = lanes.iter_mut().zip(parts).collect();
                    update_many(kernel, &mut parts);
                }
                let alone = lanes.split_off(lanes.len() / 2);
                let mut found = finish_many(kernel, lanes);
                found.extend(alone.into_iter().map(Sha256Lane::finish));
                for (i, (found, message)) in found.into_iter().zip(&messages).enumerate() {
                    let what = format!("{}: {i} of {count} by {piece}", kernel.name());
                    assert_eq!(found, digest(&SHA256, message).as_ref(), "{what}");
                }
            }
        }
    }
    #[test]
    fn whole_messages_have_the_digests_of_aws_lc() {
        let lens = [0, 1, 55, 56, 63, 64, 65, 119, 120, 127, 128, 129, 1000, 16_384];
        let data: Vec<u8> = (0..20_000).map(|i| (i % 251) as u8).collect();
        for kernel in ShaKernel::all() {
            for count in [0, 1, 2, 7, 16, 17, 255, 256, 257, 600] {
                let messages: Vec<&[u8]> =
                    (0..count).map(|i| &data[i..][..lens[i * 5 % lens.len()]]).collect();
                let digests = sha256_many(kernel, &messages);
                assert_eq!(digests.len(), count);
                for (found, message) in digests.iter().zip(&messages) {
                    let (name, len) = (kernel.name(), message.len());
                    assert_eq!(found, digest(&SHA256, message).as_ref(), "{name}: {len}");
                }
            }
        }
        for (len, piece) in lens.iter().flat_map(|len| [1, 63, 64, 65, 1000].map(|p| (len, p))) {
            let mut hash = Sha256::new();
            data[..*len].chunks(piece).for_each(|piece| hash.update(piece));
            let expected = digest(&SHA256, &data[..*len]);
            assert_eq!(hash.finish(), expected.as_ref(), "{len} bytes by {piece}");
        }
    }
}
