//! AES-CTR at the granularities of the study of extended blocks, dealt to threads as OpenMP deals
//! the iterations of a loop: each thread gets one run of neighbouring blocks.
//!
//! For the study only. [`Cipher::Ctr`] is what a modern engine does.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering};

use wattlock_engine::crypto::AesKey;
use wattlock_engine::{Cipher, Data, Engine, Error, Job, Policy, Transform};

use crate::study::{ListingAes, aes};

/// What one thread does between two decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Granularity {
    /// A column of a round: threads share a block and wait for each other after every round.
    Fine,
    /// A block of 16 bytes.
    Coarse,
    /// This many bytes, whole blocks, in one call.
    Extended(usize),
}

/// Who computes.
#[derive(Clone, Copy)]
pub enum Rounds<'a> {
    /// The study's listing.
    Listing(&'a ListingAes),
    /// A kernel, called once for each block or extended block.
    Kernel(&'a aes::Key),
}

/// XORs the key stream that starts with `counter` onto `in_out`, whole blocks.
///
/// # Errors
/// [`Error::Layout`] if `in_out` is not whole (extended) blocks, or if a kernel is to be split
/// inside a block, which only the listing can be; [`Error::Pool`].
pub fn granular_ctr(
    engine: &Engine,
    granularity: Granularity,
    rounds: Rounds<'_>,
    counter: u128,
    in_out: &mut [u8],
) -> Result<(), Error> {
    let len = in_out.len();
    let block_len = match (granularity, rounds) {
        (Granularity::Fine, Rounds::Listing(aes)) => return fine(engine, aes, counter, in_out),
        (Granularity::Fine, Rounds::Kernel(_)) => return Err(Error::Layout(len)),
        (Granularity::Coarse, _) => AesKey::BLOCK_LEN,
        (Granularity::Extended(block_len), _) => block_len,
    };
    if !len.is_multiple_of(block_len) || !block_len.is_multiple_of(AesKey::BLOCK_LEN) {
        return Err(Error::Layout(len));
    }
    let blocks = Blocks { rounds, counter, block_len };
    let piece_chunks = (len / block_len).div_ceil(engine.threads()).max(1);
    let job = Job {
        cipher: Cipher::Other(&blocks),
        chunk_len: block_len,
        data: Data::InPlace { slots: in_out },
        deadline: None,
    };
    engine.run_by(Policy::Dealt { piece_chunks }, job)?;
    Ok(())
}

struct Blocks<'a> {
    rounds: Rounds<'a>,
    counter: u128,
    block_len: usize,
}

impl Transform for Blocks<'_> {
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let first = self.counter.wrapping_add(u128::from(offset / AesKey::BLOCK_LEN as u64));
        let step = (self.block_len / AesKey::BLOCK_LEN) as u128;
        let counters = (0..).map(|i| first.wrapping_add(i * step));
        match self.rounds {
            Rounds::Kernel(key) => {
                for (counter, block) in counters.zip(in_out.chunks_mut(self.block_len)) {
                    key.ctr(&counter.to_be_bytes(), 0, block);
                }
            }
            Rounds::Listing(aes) if step == 1 => {
                for (counter, block) in counters.zip(in_out.as_chunks_mut().0) {
                    aes.encrypt_block(counter, block);
                }
            }
            Rounds::Listing(aes) => {
                let mut arrays = aes.extended_block(self.block_len)?;
                for (counter, block) in counters.zip(in_out.chunks_mut(self.block_len)) {
                    aes.encrypt_extended(&mut arrays, counter, block);
                }
            }
        }
        Ok(())
    }
}

/// Figure 9 of the study: the columns of a block are dealt to the threads, round by round.
fn fine(engine: &Engine, aes: &ListingAes, counter: u128, in_out: &mut [u8]) -> Result<(), Error> {
    let (blocks, []) = in_out.as_chunks_mut::<{ AesKey::BLOCK_LEN }>() else {
        return Err(Error::Layout(in_out.len()));
    };
    let threads = engine.threads().min(COLUMNS);
    let barrier = Barrier::new(threads);
    // A round reads one of the two states and writes the other.
    let states: [[AtomicU32; COLUMNS]; 2] = Default::default();
    let count = blocks.len();
    let output: Vec<[AtomicU32; COLUMNS]> = (0..count).map(|_| Default::default()).collect();
    let work = |thread: usize| {
        let columns = || (thread..COLUMNS).step_by(threads);
        for (counter, output) in (0..).map(|i| counter.wrapping_add(i)).zip(&output) {
            let first = aes.first_round(counter);
            for j in columns() {
                let column = [first[4 * j], first[4 * j + 1], first[4 * j + 2], first[4 * j + 3]];
                states[0][j].store(u32::from_le_bytes(column), Ordering::Relaxed);
            }
            barrier.wait();
            for round in 1..=aes.rounds() {
                let mut c = [0; AesKey::BLOCK_LEN];
                for (bytes, column) in c.as_chunks_mut().0.iter_mut().zip(&states[(round - 1) % 2])
                {
                    *bytes = column.load(Ordering::Relaxed).to_le_bytes();
                }
                for j in columns() {
                    let column = std::array::from_fn(|i| aes.byte(&c, round, j, i));
                    states[round % 2][j].store(u32::from_le_bytes(column), Ordering::Relaxed);
                }
                barrier.wait();
            }
            for j in columns() {
                let column = states[aes.rounds() % 2][j].load(Ordering::Relaxed);
                output[j].store(column, Ordering::Relaxed);
            }
            barrier.wait();
        }
    };
    let numbers: Vec<usize> = (0..threads).collect();
    std::thread::scope(|scope| {
        for thread in &numbers {
            scope.spawn(|| work(*thread));
        }
    });
    for (block, keystream) in blocks.iter_mut().zip(&output) {
        for (bytes, column) in block.as_chunks_mut::<4>().0.iter_mut().zip(keystream) {
            let keystream = column.load(Ordering::Relaxed).to_le_bytes();
            bytes.iter_mut().zip(keystream).for_each(|(byte, key)| *byte ^= key);
        }
    }
    Ok(())
}

/// Columns of a block: more threads than that have nothing to do.
const COLUMNS: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_granularity_is_aes_ctr() {
        let key = [0x2b; 16];
        let listing = ListingAes::new(&key).unwrap();
        let counter = u128::MAX - 3;
        let pattern = || (0..8192).map(|i| (i % 251) as u8).collect::<Vec<u8>>();
        let mut expected = pattern();
        let aes = aes::Key::new(aes::Kernel::best(), &key).unwrap();
        aes.ctr(&counter.to_be_bytes(), 0, &mut expected);
        for threads in [1, 2, 4, 8] {
            let engine = Engine::new(threads);
            let check = |granularity, rounds, len: usize| {
                let mut data = pattern();
                let done = granular_ctr(&engine, granularity, rounds, counter, &mut data[..len]);
                done.unwrap();
                assert!(data[..len] == expected[..len], "{granularity:?}, {threads} threads");
            };
            check(Granularity::Fine, Rounds::Listing(&listing), 160);
            for granularity in [
                Granularity::Coarse,
                Granularity::Extended(512),
                Granularity::Extended(1024),
                Granularity::Extended(4096),
            ] {
                check(granularity, Rounds::Listing(&listing), 8192);
                check(granularity, Rounds::Kernel(&aes), 8192);
            }
        }
    }
}
