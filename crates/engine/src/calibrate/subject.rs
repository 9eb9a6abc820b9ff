//! One case on one device with a number of workers, and what was measured of it.

use std::time::Instant;

use crate::algorithm::{Algorithm, Mode};
use crate::case::{Case, Direction};
use crate::cpu::Cpu;
use crate::crypto::{self, AeadKey, AesKernel, AesKey, NONCE_LEN, TAG_LEN};
use crate::device::Device;
use crate::engine::Engine;
use crate::error::Error;
use crate::job::{Aad, Cipher, Data, Job, Nonces, Operation};
use crate::policy::Policy;

/// A case on a device with a number of workers.
pub(super) struct Subject {
    device: String,
    case: Case,
    workers: usize,
    key: Key,
    /// One for each chunk, for the modes that want them.
    ivs: Vec<[u8; AesKey::BLOCK_LEN]>,
    /// Bytes of plaintext of the calls, the smallest first.
    sizes: Vec<u64>,
    samples: Vec<(u64, u64)>,
    /// True once the device dropped something that the CPU finished: then no time is its own.
    dropped: bool,
}

enum Key {
    Aes(AesKey),
    Aead(AeadKey),
}

impl Subject {
    /// One of the CPU.
    pub(super) fn new(case: Case, workers: usize) -> Result<Self, Error> {
        Self::of(Cpu::NAME, case, workers, sizes(workers))
    }

    /// One of an accelerator; `None` if it does not support the case.
    pub(super) fn of_accelerator(device: &dyn Device, case: Case) -> Result<Option<Self>, Error> {
        let sizes = (0..5).map(|shift| 1 << (20 + shift)).collect();
        let subject = Self::of(device.name(), case, device.workers(), sizes)?;
        let operation = if subject.opens() { Operation::Open } else { Operation::Seal };
        let supported = device.supports(&subject.job(operation, &mut []).cipher);
        Ok(supported.then_some(subject))
    }

    fn of(device: &str, case: Case, workers: usize, sizes: Vec<u64>) -> Result<Self, Error> {
        let key = Key::new(case).map_err(|source| Error::Cipher { chunk: 0, source })?;
        let most_chunks = sizes.last().map_or(0, |size| size.div_ceil(CHUNK as u64));
        let ivs = vec![[0x5a; AesKey::BLOCK_LEN]; most_chunks as usize];
        let device = device.to_owned();
        Ok(Self { device, case, workers, key, ivs, sizes, samples: Vec::new(), dropped: false })
    }

    pub(super) fn case(&self) -> Case {
        self.case
    }

    pub(super) fn workers(&self) -> usize {
        self.workers
    }

    /// Bytes of plaintext and nanoseconds.
    pub(super) fn samples(&self) -> &[(u64, u64)] {
        if self.dropped { &[] } else { &self.samples }
    }

    /// The code that does it.
    pub(super) fn kernel(&self) -> &str {
        if self.device == Cpu::NAME { self.case.kernel() } else { &self.device }
    }

    /// Drops the samples, which were there to warm up.
    pub(super) fn forget(&mut self) {
        self.samples.clear();
    }

    /// Who did it.
    pub(super) fn device(&self) -> &str {
        &self.device
    }

    /// False for opening, which needs newly sealed data each time; the joules of that sealing
    /// cannot be separated.
    pub(super) fn can_be_counted(&self) -> bool {
        !self.opens()
    }

    fn opens(&self) -> bool {
        matches!(self.case, Case::Aead(_, Operation::Open))
    }

    /// Bytes of the buffer that it needs.
    pub(super) fn buffer_len(&self) -> usize {
        self.sizes.iter().map(|&size| calls(size) * self.slots_len(size)).max().unwrap_or(0)
    }

    /// One sample of each size.
    pub(super) fn time(&mut self, engine: &Engine, buffer: &mut [u8]) -> Result<(), Error> {
        for index in 0..self.sizes.len() {
            let size = self.sizes[index];
            let (len, calls) = (self.slots_len(size), calls(size));
            if self.opens() {
                for slots in buffer.chunks_exact_mut(len).take(calls) {
                    engine.run_by(self.policy(size), self.job(Operation::Seal, slots))?;
                }
            }
            let started = Instant::now();
            for slots in buffer.chunks_exact_mut(len).take(calls) {
                self.call(engine, size, slots)?;
            }
            let took = started.elapsed() / calls as u32;
            self.samples.push((size, took.as_nanos().try_into().unwrap_or(u64::MAX)));
        }
        Ok(())
    }

    /// One call of the largest size. Returns its bytes of plaintext.
    pub(super) fn once(&mut self, engine: &Engine, buffer: &mut [u8]) -> Result<u64, Error> {
        let size = self.sizes.last().copied().unwrap_or(0);
        let len = self.slots_len(size);
        self.call(engine, size, &mut buffer[..len])?;
        Ok(size)
    }

    /// What is measured.
    fn call(&mut self, engine: &Engine, size: u64, slots: &mut [u8]) -> Result<(), Error> {
        let operation = if self.opens() { Operation::Open } else { Operation::Seal };
        let job = self.job(operation, slots);
        if self.device == Cpu::NAME {
            engine.run_by(self.policy(size), job)?;
        } else {
            let report = engine.run_on(&self.device, job)?;
            self.dropped |= report.cpu.bytes > 0;
        }
        Ok(())
    }

    /// By which a call of `size` bytes on the CPU has as many workers as were asked for.
    fn policy(&self, size: u64) -> Policy {
        match self.workers {
            _ if self.device != Cpu::NAME => Policy::Parallel,
            1 => Policy::Serial,
            all => Policy::spread(size.div_ceil(CHUNK as u64), self.slots_len(CHUNK as u64), all),
        }
    }

    /// The job of one call. The operation is that of an AEAD; the others have one only.
    fn job<'a>(&'a self, operation: Operation, slots: &'a mut [u8]) -> Job<'a> {
        let cipher = match (self.case, &self.key) {
            (_, Key::Aead(key)) => {
                // This is no user data, so nonces may repeat.
                let nonces = Nonces::XorIndex { base: [0xa5; NONCE_LEN] };
                Cipher::Aead { operation, key, nonces, aad: Aad::None }
            }
            (Case::Raw(Algorithm { mode, .. }, direction), Key::Aes(key)) => {
                match (mode, direction) {
                    (Mode::Ecb, Direction::Encrypt) => Cipher::EcbEncrypt(key),
                    (Mode::Ecb, Direction::Decrypt) => Cipher::EcbDecrypt(key),
                    (Mode::Cbc, Direction::Encrypt) => Cipher::CbcEncrypt { key, ivs: &self.ivs },
                    (Mode::Cbc, Direction::Decrypt) => Cipher::CbcDecrypt { key, ivs: &self.ivs },
                    _ => Cipher::Ctr { key, iv: IV },
                }
            }
            (_, Key::Aes(key)) => Cipher::Ctr { key, iv: IV },
        };
        Job { cipher, chunk_len: CHUNK, data: Data::InPlace { slots }, deadline: None }
    }

    /// Bytes in memory of `size` bytes of plaintext.
    fn slots_len(&self, size: u64) -> usize {
        let tags = match self.key {
            Key::Aead(_) => size.div_ceil(CHUNK as u64) as usize * TAG_LEN,
            Key::Aes(_) => 0,
        };
        size as usize + tags
    }
}

impl Key {
    /// Any key that the case takes.
    fn new(case: Case) -> Result<Self, crypto::Error> {
        let bytes = [0x42; 32];
        match case {
            Case::Aead(algorithm, _) => {
                AeadKey::new(algorithm, &bytes[..algorithm.key_len()]).map(Self::Aead)
            }
            Case::Raw(Algorithm { bits, .. }, _) => {
                AesKey::new(AesKernel::best(), &bytes[..bits / 8]).map(Self::Aes)
            }
        }
    }
}

/// Sizes to measure with `workers` workers: from 4 KiB with one, from a chunk each with more, and
/// doubled until start-up is only a small part.
fn sizes(workers: usize) -> Vec<u64> {
    let chunk = CHUNK as u64;
    let smallest = if workers == 1 { chunk / 4 } else { chunk * workers as u64 };
    let largest = (8 << 20).max(16 * smallest);
    std::iter::successors(Some(smallest), |size| Some(size * 2))
        .take_while(|&size| size <= largest)
        .collect()
}

/// Calls of `size` bytes that make one sample: enough that the clock's own time does not count.
fn calls(size: u64) -> usize {
    (CLOCKED / size).max(1) as usize
}

/// Bytes of a chunk, as in the files that Wattlock writes.
const CHUNK: usize = 16 * 1024;
/// Bytes that take long enough to be timed.
const CLOCKED: u64 = 64 * 1024;
const IV: [u8; AesKey::BLOCK_LEN] = [0xc3; AesKey::BLOCK_LEN];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_worker_has_a_chunk_at_least() {
        assert_eq!(sizes(1).first(), Some(&4096));
        assert_eq!(sizes(1).last(), Some(&(8 << 20)));
        for workers in [2, 3, 8, 64, 192] {
            let sizes = sizes(workers);
            assert!(sizes.len() >= 5, "a line needs several points: {sizes:?}");
            assert_eq!(sizes[0], (workers * CHUNK) as u64);
        }
    }

    #[test]
    fn as_many_workers_as_were_asked_for() {
        let engine = Engine::new(4);
        for (workers, case) in [(1, "aes-128-ctr"), (4, "aes-128-ctr"), (4, "aes-256-gcm seal")] {
            let subject = Subject::new(Case::named(case).unwrap(), workers).unwrap();
            let mut buffer = vec![0; subject.buffer_len()];
            for &size in &subject.sizes {
                let slots = &mut buffer[..subject.slots_len(size)];
                let job = subject.job(Operation::Seal, slots);
                let report = engine.run_by(subject.policy(size), job).unwrap();
                assert_eq!(report.workers(), workers, "{case}, {size} bytes");
            }
        }
    }
}
