//! Sealing one record or two, with the hash and CBC in one loop.
//!
//! Under the MAC is the header and then the payload, so a block of the hash begins 51 bytes into
//! the payload and reads ahead of CBC. The first block of the hash, the end and the tag are made by
//! themselves.

use std::ops::Range;

use zeroize::Zeroize;

use super::seal::{SealRecord, pad as pad_record};
use crate::aes::AesKey;
use crate::hmac::key::{AnyPads, Pads, pad};
use crate::hmac::{HEADER_LEN, HmacKey};
use crate::kernel::cbc_sha_ni::{Lane, STEP, Stitched};
use crate::kernel::cpu::{ShaNi, Vaes512};
use crate::kernel::{BLOCK_LEN, RoundKeys, aes_ni, cbc_sha_avx512};
use crate::sha::{Sha256, ShaKernel};

/// Seals the records, or does nothing and says false: for other keys, or so many records that they
/// are faster side by side.
pub(super) fn seal(
    proof: ShaNi,
    wide: Option<Vaes512>,
    key: &AesKey,
    mac: &HmacKey,
    records: &mut [SealRecord<'_>],
) -> bool {
    let Some(keys) = key.aes_ni_keys() else { return false };
    // Many lanes of AVX-512 fill it better: eight of SHA-1, twelve of SHA-256 (of eight they are as
    // fast as pairs).
    let lanes = matches!(mac.kernel, ShaKernel::Avx512(_));
    match &mac.pads {
        AnyPads::Sha1(pads) if !lanes || records.len() < 8 => {
            Sealer { proof, keys, pads: &**pads, tag_len: 20 }.seal(records);
        }
        AnyPads::Sha256(pads) if !lanes || records.len() < 12 => {
            let sealer = Sealer { proof, keys, pads: &**pads, tag_len: 32 };
            let rest = match wide {
                Some(wide) => sealer.seal_eights(wide, records),
                None => records,
            };
            sealer.seal(rest);
        }
        _ => return false,
    }
    true
}

/// Bytes of the payload in the first block of the hash.
const IN_FIRST: usize = STEP - HEADER_LEN;

struct Sealer<'k, H: Stitched> {
    proof: ShaNi,
    keys: &'k RoundKeys,
    pads: &'k Pads<H, 16, STEP>,
    tag_len: usize,
}

impl<H: Stitched> Sealer<'_, H> {
    fn seal(&self, records: &mut [SealRecord<'_>]) {
        let (pairs, rest) = records.as_chunks_mut::<2>();
        for pair in pairs {
            if pair.iter().all(|record| record.payload.len() >= IN_FIRST) {
                self.seal_beside(pair);
            } else {
                pair.iter_mut().for_each(|record| self.seal_one(record));
            }
        }
        rest.iter_mut().for_each(|record| self.seal_one(record));
    }

    fn seal_one(&self, record: &mut SealRecord<'_>) {
        if record.payload.len() >= IN_FIRST {
            return self.seal_beside(std::array::from_mut(record));
        }
        let payload = record.payload.clone();
        let mut last = [[0; STEP]; 2];
        last[0][..HEADER_LEN].copy_from_slice(&record.header);
        last[0][HEADER_LEN..][..payload.len()].copy_from_slice(&record.in_out[payload.clone()]);
        let filled = HEADER_LEN + payload.len();
        self.finish(&mut self.lane(record), &payload, last, filled);
    }

    /// Records whose payloads fill the first block of the hash.
    fn seal_beside<const N: usize>(&self, records: &mut [SealRecord<'_>; N]) {
        // CBC may begin where it does not overtake the hash.
        let start = records.iter().all(|record| record.payload.start + IN_FIRST >= STEP);
        self.seal_with(
            records,
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

    /// The same, with what does the first blocks of the hash, and so many steps of all lanes.
    fn seal_with<const N: usize>(
        &self,
        records: &mut [SealRecord<'_>; N],
        start: impl FnOnce(&mut [Lane<'_>; N], &[[u8; STEP]; N]),
        steps: impl FnOnce(&mut [Lane<'_>; N], usize),
    ) {
        let payloads = records.each_ref().map(|record| record.payload.clone());
        let firsts = records.each_ref().map(|record| {
            let mut first = [0; STEP];
            first[..HEADER_LEN].copy_from_slice(&record.header);
            first[HEADER_LEN..].copy_from_slice(&record.in_out[record.payload.start..][..IN_FIRST]);
            first
        });
        let mut lanes = records.each_mut().map(|record| self.lane(record));
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

    /// A record of which nothing is enciphered, and hashed what is before the first block.
    fn lane<'r>(&self, record: &'r mut SealRecord<'_>) -> Lane<'r> {
        Lane {
            state: self.pads.inner,
            chain: record.iv,
            hashed: record.payload.start + IN_FIRST,
            in_out: record.in_out,
            enciphered: 0,
        }
    }

    /// What is behind the last whole block of the hash: `filled` bytes of `last`, MAC and padding.
    fn finish(
        &self,
        lane: &mut Lane<'_>,
        payload: &Range<usize>,
        mut last: [[u8; STEP]; 2],
        filled: usize,
    ) {
        let blocks = pad(&mut last, filled, STEP + HEADER_LEN + payload.len());
        // The CPU does this beside the hash.
        self.encipher(lane, payload.end / BLOCK_LEN * BLOCK_LEN);
        H::compress(&mut lane.state, &last[..blocks]);
        let (tag, padding) = lane.in_out[payload.end..].split_at_mut(self.tag_len);
        self.pads.finish(&lane.state, tag);
        pad_record(padding);
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

impl Sealer<'_, Sha256> {
    /// Seals records eight beside each other, and returns what is left.
    fn seal_eights<'r, 'a>(
        &self,
        wide: Vaes512,
        records: &'r mut [SealRecord<'a>],
    ) -> &'r mut [SealRecord<'a>] {
        let (eights, rest) = records.as_chunks_mut::<{ cbc_sha_avx512::LANES }>();
        for eight in eights {
            if eight.iter().all(|record| record.payload.len() >= IN_FIRST) {
                self.seal_with(
                    eight,
                    |lanes, firsts| self.hash_firsts(lanes, firsts),
                    |lanes, steps| cbc_sha_avx512::steps(wide, self.keys, lanes, steps),
                );
            } else {
                self.seal(eight);
            }
        }
        rest
    }
}
