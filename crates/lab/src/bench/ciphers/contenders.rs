//! The contenders of `wattlock-lab bench ciphers` that work through the engine, and what registers and
//! memory allow.

use wattlock_engine::crypto::tree_hash::TreeHash;
use wattlock_engine::crypto::{
    AeadAlgorithm, AeadKey, AesKernel, GcmKernel, KeccakKernel, roofline,
};
use wattlock_engine::{Aad, Cipher, Data, Direction, Engine, Job, Nonces, Operation, Transform};

use super::super::rates::Contender;
use super::{IV, KEY, RECORD};
use crate::cipher::{RawKey, RawStream};
use crate::hash::TreeStream;
use crate::study::{Algorithm, Parc4Reuse, aes};

/// The tool of rows that are a kernel's rounds on registers, without memory or mode.
pub const REGISTERS: &str = "rounds on registers";
/// The tool of rows that are a pass over the same memory.
pub const MEMORY: &str = "memory only";

/// The rounds of each kernel that works on registers.
pub fn registers(bits: usize) -> impl Iterator<Item = Contender<'static>> {
    let kernels = AesKernel::all().into_iter();
    kernels.filter(move |kernel| roofline::aes_rounds(*kernel, bits, 1).is_some()).map(
        move |kernel| {
            let mut contender = Contender::new(REGISTERS, |_| {}).kernel(kernel.name()).threads(1);
            contender.run =
                Box::new(move |_| roofline::aes_rounds(kernel, bits, 1000).unwrap_or_default());
            contender
        },
    )
}

/// The permutations of the fastest kernel: 12 rounds for KT128, 24 for SHA-3.
pub fn keccak_registers(short: bool) -> [Contender<'static>; 1] {
    let kernel = KeccakKernel::best();
    let mut contender = Contender::new(REGISTERS, |_| {}).kernel(kernel.name()).threads(1);
    contender.run = Box::new(move |_| {
        if short {
            roofline::keccak_12_rounds(kernel, 200)
        } else {
            roofline::keccak_24_rounds(kernel, 100)
        }
    });
    [contender]
}

pub fn memory() -> Contender<'static> {
    Contender::new(MEMORY, roofline::pass_over).threads(1)
}

/// A pass over memory that is dealt to threads as the engine deals a job.
pub fn memory_by(threads: usize) -> Contender<'static> {
    struct PassOver;
    impl Transform for PassOver {
        fn apply(
            &self,
            _: u64,
            in_out: &mut [u8],
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            roofline::pass_over(in_out);
            Ok(())
        }
    }
    let engine = Engine::new(threads);
    Contender::new(MEMORY, move |buffer| {
        let data = Data::InPlace { slots: buffer };
        let job =
            Job { cipher: Cipher::Other(&PassOver), chunk_len: 64 << 10, data, deadline: None };
        engine.run(job).expect("nothing can fail");
    })
    .threads(threads)
}

/// A tree hash whose leaves are dealt to threads.
pub fn tree(hash: TreeHash, threads: usize) -> Contender<'static> {
    let engine = Engine::new(threads);
    let kernel = KeccakKernel::best();
    Contender::new("wattlock", move |buffer| {
        let mut digest = [0; 32];
        TreeStream::new(hash, kernel)
            .finish(&engine, buffer, &mut digest)
            .expect("the threads have started");
        std::hint::black_box(digest);
    })
    .kernel(kernel.name())
    .threads(threads)
}

/// A raw cipher through the engine.
pub fn raw(algorithm: Algorithm, direction: Direction, threads: usize) -> Contender<'static> {
    raw_on(Engine::new(threads), algorithm, direction).threads(threads)
}

/// The same on an engine that may have other devices.
pub fn raw_on(engine: Engine, algorithm: Algorithm, direction: Direction) -> Contender<'static> {
    let key = &KEY[..algorithm.key_len().1.min(if algorithm.for_study_only() { 16 } else { 32 })];
    let keyed = RawKey { key, key2: None, iv: &IV[..algorithm.iv_len()] };
    let kernel = aes::Kernel::best();
    let mut stream =
        RawStream::new(algorithm, kernel, keyed, direction).expect("lengths are the algorithm's");
    let contender = Contender::new("wattlock", move |buffer| {
        stream.apply(&engine, buffer).expect("whole blocks, and less than any limit");
    });
    let name = if algorithm.for_study_only() { "portable" } else { kernel.name() };
    contender.kernel(name)
}

/// The chunks of a file.
pub fn gcm_chunks(algorithm: AeadAlgorithm, key: &[u8], threads: usize) -> Contender<'static> {
    let key = AeadKey::new(algorithm, key).expect("a key of the right length");
    let engine = Engine::new(threads);
    Contender::new("wattlock", move |slots| {
        let nonces = Nonces::XorIndex { base: [7; 12] };
        let cipher = Cipher::Aead { operation: Operation::Seal, key: &key, nonces, aad: Aad::None };
        let job = Job { cipher, chunk_len: RECORD, data: Data::InPlace { slots }, deadline: None };
        engine.run(job).expect("short messages");
    })
    .kernel(GcmKernel::best().name())
    .threads(threads)
}

/// PARC4 as it can also be read: one block of key stream for all of the data. No encryption, and so
/// only here.
pub fn parc4_reuse(threads: usize) -> Contender<'static> {
    struct Reuse(Parc4Reuse);
    impl Transform for Reuse {
        fn apply(
            &self,
            _: u64,
            in_out: &mut [u8],
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            for block in in_out.chunks_mut(REUSED_BLOCK) {
                self.0.xor_block(block)?;
            }
            Ok(())
        }
    }
    let reuse = Reuse(Parc4Reuse::new(&KEY[..16], REUSED_BLOCK).expect("a key of 16 bytes"));
    let engine = Engine::new(threads);
    Contender::new("wattlock", move |buffer| {
        let data = Data::InPlace { slots: buffer };
        let job = Job { cipher: Cipher::Other(&reuse), chunk_len: 64 << 10, data, deadline: None };
        engine.run(job).expect("whole chunks");
    })
    .kernel("portable")
    .threads(threads)
}

const REUSED_BLOCK: usize = 4096;
