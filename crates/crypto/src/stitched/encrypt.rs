//! One message, or two or eight interleaved, with the hash and CBC in one loop.
//!
//! Under the MAC is the header and then the payload, so a block of the hash begins some bytes into
//! the payload and reads ahead of CBC. The first block of the hash, the end and the tag are made by
//! themselves.

use std::ops::Range;

use zeroize::Zeroize;

use super::Message;
use crate::hmac::key::{Pads, pad};
use crate::kernel::cbc_sha_ni::{Lane, STEP, Stitched};
use crate::kernel::cpu::{ShaNi, Vaes512};
use crate::kernel::{BLOCK_LEN, RoundKeys, aes_ni, cbc_sha_avx512};
use crate::sha::Sha256;

/// What encrypts messages whose lengths were looked at.
pub(super) struct Encryptor<'k, H: Stitched, const HEADER: usize> {
    pub(super) proof: ShaNi,
    pub(super) keys: &'k RoundKeys,
    pub(super) pads: &'k Pads<H, 16, STEP>,
    pub(super) tag_len: usize,
}

impl<H: Stitched, const HEADER: usize> Encryptor<'_, H, HEADER> {
    /// Bytes of the payload in the first block of the hash.
    const IN_FIRST: usize = STEP - HEADER;

    pub(super) fn encrypt(&self, messages: &mut [Message<'_, HEADER>]) {
        let (pairs, rest) = messages.as_chunks_mut::<2>();
        for pair in pairs {
            if pair.iter().all(|message| message.payload.len() >= Self::IN_FIRST) {
                self.encrypt_interleaved(pair);
            } else {
                pair.iter_mut().for_each(|message| self.encrypt_one(message));
            }
        }
        rest.iter_mut().for_each(|message| self.encrypt_one(message));
    }

    fn encrypt_one(&self, message: &mut Message<'_, HEADER>) {
        if message.payload.len() >= Self::IN_FIRST {
            return self.encrypt_interleaved(std::array::from_mut(message));
        }
        let payload = message.payload.clone();
        let mut last = [[0; STEP]; 2];
        last[0][..HEADER].copy_from_slice(&message.header);
        last[0][HEADER..][..payload.len()].copy_from_slice(&message.in_out[payload.clone()]);
        let filled = HEADER + payload.len();
        self.finish(&mut self.lane(message), &payload, last, filled);
    }

    /// Messages whose payloads fill the first block of the hash.
    fn encrypt_interleaved<const N: usize>(&self, messages: &mut [Message<'_, HEADER>; N]) {
        // CBC may begin where it does not overtake the hash.
        let start = messages.iter().all(|message| message.payload.start + Self::IN_FIRST >= STEP);
        self.encrypt_with(
            messages,
            |lanes, firsts| {
                if start {
                    H::start(self.proof, self.keys, lanes, firsts);
                } else {
                    self.hash_firsts(lanes, firsts);
                }
            },
            |lanes, steps| H::steps(self.proof, self.keys, lanes, steps),
        );
    }

    /// Encrypts `N` messages: `start` does the first hash blocks, `steps` the steps of all lanes.
    fn encrypt_with<const N: usize>(
        &self,
        messages: &mut [Message<'_, HEADER>; N],
        start: impl FnOnce(&mut [Lane<'_>; N], &[[u8; STEP]; N]),
        steps: impl FnOnce(&mut [Lane<'_>; N], usize),
    ) {
        let payloads = messages.each_ref().map(|message| message.payload.clone());
        let firsts = messages.each_ref().map(|message| {
            let mut first = [0; STEP];
            first[..HEADER].copy_from_slice(&message.header);
            first[HEADER..]
                .copy_from_slice(&message.in_out[message.payload.start..][..Self::IN_FIRST]);
            first
        });
        let mut lanes = messages.each_mut().map(|message| self.lane(message));
        start(&mut lanes, &firsts);
        let left = |lane: &Lane<'_>, payload: &Range<usize>| (payload.end - lane.hashed) / STEP;
        let least = lanes.iter().zip(&payloads).map(|(lane, payload)| left(lane, payload)).min();
        steps(&mut lanes, least.unwrap_or(0));
        for (lane, payload) in lanes.iter_mut().zip(&payloads) {
            let steps = left(lane, payload);
            H::steps(self.proof, self.keys, std::array::from_mut(lane), steps);
            let mut last = [[0; STEP]; 2];
            let rest = &lane.in_out[lane.hashed..payload.end];
            last[0][..rest.len()].copy_from_slice(rest);
            let filled = rest.len();
            self.finish(lane, payload, last, filled);
        }
    }

    /// The first blocks of the hash, by themselves.
    fn hash_firsts(&self, lanes: &mut [Lane<'_>], firsts: &[[u8; STEP]]) {
        for (lane, first) in lanes.iter_mut().zip(firsts) {
            H::compress(&mut lane.state, std::slice::from_ref(first));
        }
    }

    /// A message with nothing enciphered yet, and hashed up to its first block.
    fn lane<'r>(&self, message: &'r mut Message<'_, HEADER>) -> Lane<'r> {
        Lane {
            state: self.pads.inner,
            chain: message.iv,
            hashed: message.payload.start + Self::IN_FIRST,
            in_out: message.in_out,
            enciphered: 0,
        }
    }

    /// What is behind the last whole block of the hash: `filled` bytes of `last`, the tag, and what comes
    /// after it.
    fn finish(
        &self,
        lane: &mut Lane<'_>,
        payload: &Range<usize>,
        mut last: [[u8; STEP]; 2],
        filled: usize,
    ) {
        let blocks = pad(&mut last, filled, STEP + HEADER + payload.len());
        // The CPU runs this in parallel with the hash.
        self.encipher(lane, payload.end / BLOCK_LEN * BLOCK_LEN);
        H::compress(&mut lane.state, &last[..blocks]);
        let tag = &mut lane.in_out[payload.end..][..self.tag_len];
        self.pads.finish(&lane.state, tag);
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

impl<const HEADER: usize> Encryptor<'_, Sha256, HEADER> {
    /// Encrypts messages in groups of eight, and returns the rest.
    pub(super) fn encrypt_eights<'r, 'a>(
        &self,
        wide: Vaes512,
        messages: &'r mut [Message<'a, HEADER>],
    ) -> &'r mut [Message<'a, HEADER>] {
        let (eights, rest) = messages.as_chunks_mut::<{ cbc_sha_avx512::LANES }>();
        for eight in eights {
            if eight.iter().all(|message| message.payload.len() >= Self::IN_FIRST) {
                self.encrypt_with(
                    eight,
                    |lanes, firsts| self.hash_firsts(lanes, firsts),
                    |lanes, steps| cbc_sha_avx512::steps(wide, self.keys, lanes, steps),
                );
            } else {
                self.encrypt(eight);
            }
        }
        rest
    }
}
