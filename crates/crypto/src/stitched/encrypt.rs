//! Messages on lanes, two or eight interleaved, with the hash and CBC in one loop.
//!
//! Under the MAC is the header and then the payload, so a block of the hash begins some bytes into
//! the payload and reads ahead of CBC. The end and the tag are made by themselves.

use std::ops::Range;
use std::slice::IterMut;

use zeroize::Zeroize;

use super::Message;
use crate::hmac::key::{Pads, pad};
use crate::kernel::cbc_sha_ni::{Lane, STEP, Stitched};
use crate::kernel::cpu::{ShaNi, Vaes512};
use crate::kernel::{BLOCK_LEN, RoundKeys, aes_ni, cbc_sha_avx512};
use crate::lanes::{self, Lanes};

/// What encrypts messages whose lengths were looked at.
pub(super) struct Encryptor<'k, H: Stitched> {
    pub(super) proof: ShaNi,
    /// Takes eight messages in one loop.
    pub(super) wide: Option<(Vaes512, Eight)>,
    pub(super) keys: &'k RoundKeys,
    pub(super) pads: &'k Pads<H, 16, STEP>,
    pub(super) tag_len: usize,
}

/// Takes eight lanes some steps further.
type Eight = fn(Vaes512, &RoundKeys, &mut [Lane<'_>; MOST], usize);

/// Lanes of the widest kernel.
const MOST: usize = cbc_sha_avx512::LANES;

impl<H: Stitched> Encryptor<'_, H> {
    pub(super) fn encrypt<const HEADER: usize>(&self, messages: &mut [Message<'_, HEADER>]) {
        match messages.len() {
            0..2 => self.encrypt_on::<1, HEADER>(messages),
            MOST.. if self.wide.is_some() => self.encrypt_on::<MOST, HEADER>(messages),
            _ => self.encrypt_on::<2, HEADER>(messages),
        }
    }

    /// On `N` lanes.
    fn encrypt_on<const N: usize, const HEADER: usize>(
        &self,
        messages: &mut [Message<'_, HEADER>],
    ) {
        let mut dealt = Dealt {
            encryptor: self,
            waiting: messages.iter_mut(),
            lanes: std::array::from_fn(|_| self.lane([0; BLOCK_LEN], &mut [])),
            payloads: [const { 0..0 }; N],
        };
        lanes::run(&mut dealt, N);
    }

    /// A message with nothing enciphered or hashed yet.
    fn lane<'r>(&self, iv: [u8; BLOCK_LEN], in_out: &'r mut [u8]) -> Lane<'r> {
        let state = self.pads.inner;
        Lane { state, chain: iv, in_out, enciphered: 0, first: None, hashed: 0 }
    }

    /// What is behind the last whole block of the hash, of which there have been `len` bytes: `filled`
    /// bytes of `last`, the tag, and what comes after it.
    fn finish(
        &self,
        lane: &mut Lane<'_>,
        end: usize,
        mut last: [[u8; STEP]; 2],
        filled: usize,
        len: usize,
    ) {
        let blocks = pad(&mut last, filled, len + filled);
        // The CPU runs this in parallel with the hash.
        self.encipher(lane, end / BLOCK_LEN * BLOCK_LEN);
        H::compress(&mut lane.state, &last[..blocks]);
        self.pads.finish(&lane.state, &mut lane.in_out[end..][..self.tag_len]);
        self.encipher(lane, lane.in_out.len());
        lane.state.zeroize();
    }

    /// Enciphers the blocks before `end`.
    fn encipher(&self, lane: &mut Lane<'_>, end: usize) {
        let blocks = lane.in_out[lane.enciphered..end].as_chunks_mut().0;
        aes_ni::cbc_encrypt(self.proof.aes_ni(), self.keys, &mut lane.chain, blocks);
        lane.enciphered = end;
    }
}

/// Messages on lanes.
struct Dealt<'e, 'k, 'r, 'a, H: Stitched, const N: usize, const HEADER: usize> {
    encryptor: &'e Encryptor<'k, H>,
    waiting: IterMut<'r, Message<'a, HEADER>>,
    lanes: [Lane<'r>; N],
    payloads: [Range<usize>; N],
}

impl<H: Stitched, const N: usize, const HEADER: usize> Dealt<'_, '_, '_, '_, H, N, HEADER> {
    /// Bytes of the payload in the first block of the hash.
    const IN_FIRST: usize = STEP - HEADER;
}

impl<H: Stitched, const N: usize, const HEADER: usize> Lanes
    for Dealt<'_, '_, '_, '_, H, N, HEADER>
{
    fn begin(&mut self, lane: usize) -> Option<usize> {
        loop {
            let Message { header, iv, payload, in_out } = self.waiting.next()?;
            let mut begun = self.encryptor.lane(*iv, in_out);
            let mut first = [0; STEP];
            first[..HEADER].copy_from_slice(header);
            let bytes = &begun.in_out[payload.clone()];
            let Some((head, rest)) = bytes.split_at_checked(Self::IN_FIRST) else {
                let filled = HEADER + bytes.len();
                first[HEADER..filled].copy_from_slice(bytes);
                self.encryptor.finish(&mut begun, payload.end, [first, [0; STEP]], filled, STEP);
                continue;
            };
            first[HEADER..].copy_from_slice(head);
            begun.hashed = payload.end - rest.len();
            let steps = if begun.hashed >= STEP {
                begun.first = Some(first);
                1
            } else {
                // CBC may not overtake the hash.
                H::compress(&mut begun.state, &[first]);
                rest.len() / STEP
            };
            (self.lanes[lane], self.payloads[lane]) = (begun, payload.clone());
            return Some(steps);
        }
    }

    fn advance(&mut self, busy: usize, steps: usize) {
        let Encryptor { proof, keys, wide, .. } = *self.encryptor;
        let lanes = &mut self.lanes[..busy];
        if let (Some((wide, eight)), Some(lanes)) = (wide, lanes.first_chunk_mut()) {
            return eight(wide, keys, lanes, steps);
        }
        let (pairs, rest) = lanes.as_chunks_mut::<2>();
        pairs.iter_mut().for_each(|pair| H::steps(proof, keys, pair, steps));
        rest.iter_mut().for_each(|lane| H::steps(proof, keys, std::array::from_mut(lane), steps));
    }

    fn next_stage(&mut self, lane: usize) -> Option<usize> {
        let (lane, payload) = (&mut self.lanes[lane], &self.payloads[lane]);
        let rest = &lane.in_out[lane.hashed..payload.end];
        if rest.len() >= STEP {
            return Some(rest.len() / STEP);
        }
        let mut last = [[0; STEP]; 2];
        last[0][..rest.len()].copy_from_slice(rest);
        // The inner pad, the header, and the payload that is hashed.
        let (filled, len) = (rest.len(), STEP + HEADER + payload.len() - rest.len());
        self.encryptor.finish(lane, payload.end, last, filled, len);
        None
    }

    fn relocate(&mut self, from: usize, to: usize) {
        self.lanes.swap(from, to);
        self.payloads.swap(from, to);
    }
}
