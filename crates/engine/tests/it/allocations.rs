//! A small job in memory allocates nothing: inside a server, a TLS record costs what the kernel costs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use wattlock_engine::crypto::stitched::{Message, StitchedKernel, StitchedKeys};
use wattlock_engine::crypto::{
    AeadAlgorithm, AeadKey, AesKernel, AesKey, CbcRecord, HmacAlgorithm, HmacKey, HmacRecord,
    ShaKernel,
};
use wattlock_engine::fake::Fake;
use wattlock_engine::{
    Aad, Cipher, Data, Engine, Goal, Job, Lane, Nonces, Operation, Policy, Settings, Simulated,
    Threshold,
};

/// The system's allocator, and how often each thread has asked it.
struct Counting;

thread_local! {
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: every call goes to the system's allocator as it came; counting touches a constant-
// initialised thread-local without a destructor, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ASKED.set(ASKED.get() + 1);
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `System` with this layout, by `alloc` above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of one call of `work`, on this thread.
fn allocations(work: impl FnOnce()) -> usize {
    let before = ASKED.get();
    work();
    ASKED.get() - before
}

#[test]
fn the_counter_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(vec![1u8; 100]))), 1);
}

#[test]
fn a_small_job_in_memory_allocates_nothing() {
    let aead = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
    let key = AesKey::new(AesKernel::best(), &[7; 32]).unwrap();
    let ivs = [[9; 16]; 1];
    let nonces = Nonces::XorIndex { base: [3; 12] };
    let sealing = |operation| Cipher::Aead { operation, key: &aead, nonces, aad: Aad::None };
    let ciphers = [
        ("seal", sealing(Operation::Seal)),
        ("open", sealing(Operation::Open)),
        ("ctr", Cipher::Ctr { key: &key, iv: [1; 16] }),
        ("ecb encrypt", Cipher::EcbEncrypt(&key)),
        ("ecb decrypt", Cipher::EcbDecrypt(&key)),
        ("cbc encrypt", Cipher::CbcEncrypt { key: &key, ivs: &ivs }),
        ("cbc decrypt", Cipher::CbcDecrypt { key: &key, ivs: &ivs }),
    ];
    // A kernel may make a table at the first use of its key.
    key.ctr(&[0; 16], 0, &mut [0; 16384]);
    aead.seal([0; 12], &[], &mut [0; 16384]).unwrap();
    let policies =
        [Policy::Serial, Policy::Parallel, Policy::Hybrid, Policy::Auto { goal: Goal::Edp }];
    for policy in policies {
        let engine = Engine::new(4).with_policy(policy).with_device(Box::new(Fake::default()));
        // An AEAD opens what it has just sealed.
        let mut slots = [0x5a; 16384 + 16];
        for (name, cipher) in ciphers {
            let len = if matches!(cipher, Cipher::Aead { .. }) { 16384 + 16 } else { 16384 };
            let data = Data::InPlace { slots: &mut slots[..len] };
            let job = Job { cipher, chunk_len: 16384, data, deadline: None };
            let count = allocations(|| {
                let report = engine.run(job).unwrap();
                assert_eq!((report.bytes(), report.cpu.pieces), (len as u64, 1));
            });
            assert_eq!(count, 0, "{name} by {policy:?}");
        }
    }
}

#[test]
fn a_small_request_on_the_lanes_allocates_nothing() {
    let aead = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap();
    let settings = Settings { threshold: Threshold(16384), ..Settings::default() };
    let engine = Engine::new(1).with_lanes(settings, || Simulated::default().open());
    let mut slots = [0x5a; 1024 + 16];
    let nonces = Nonces::XorIndex { base: [3; 12] };
    // A kernel may make a table at the first use of its key.
    aead.seal([0; 12], &[], &mut [0; 1024]).unwrap();
    // Some calls are timed for the statistics, and those are as good as the others.
    for call in 0..100 {
        let operation = if call % 2 == 0 { Operation::Seal } else { Operation::Open };
        let cipher =
            Cipher::Aead { operation, key: &aead, nonces, aad: Aad::Same(b"header of TLS") };
        let job = Job {
            cipher,
            chunk_len: 1024,
            data: Data::InPlace { slots: &mut slots },
            deadline: None,
        };
        let count = allocations(|| {
            let outcome = engine.run_in_time(job).unwrap();
            assert_eq!((outcome.lane, outcome.bytes), (Lane::Cpu, 1040));
        });
        assert_eq!(count, 0, "call {call}");
    }
    assert_eq!(engine.lanes().statistics().device, None, "nor does it open anything");
}

#[test]
fn messages_side_by_side_allocate_nothing() {
    let key = AesKey::new(AesKernel::best(), &[7; 32]).unwrap();
    let ivs = [[9; 16]; 32];
    let (mut by_engine, mut by_kernel) = ([0x5a; 32 * 256], [0x5a; 32 * 256]);
    let mut records: Vec<_> =
        by_kernel.chunks_mut(256).zip(ivs).map(|(in_out, iv)| CbcRecord { iv, in_out }).collect();
    let kernel = allocations(|| key.cbc_encrypt_records(&mut records).unwrap());
    drop(records);
    let engine = Engine::new(4);
    let cipher = Cipher::CbcEncrypt { key: &key, ivs: &ivs };
    let data = Data::InPlace { slots: &mut by_engine };
    let count = allocations(|| {
        drop(engine.run(Job { cipher, chunk_len: 256, data, deadline: None }).unwrap());
    });
    assert_eq!((count, kernel), (0, 0));
    assert!(by_engine == by_kernel);
}

/// More records than any kernel has lanes, of unequal lengths, so that lanes are dealt again.
#[test]
fn records_on_lanes_allocate_nothing() {
    let lens: [usize; 45] = std::array::from_fn(|i| (i * 7 % 13) * 48);
    let mut data = [[0x5a; 640]; 45];
    for kernel in AesKernel::all() {
        let key = AesKey::new(kernel, &[7; 16]).unwrap();
        let records = data.iter_mut().zip(lens);
        let mut records: Vec<_> = records
            .map(|(data, len)| CbcRecord { iv: [9; 16], in_out: &mut data[..len] })
            .collect();
        let count = allocations(|| key.cbc_encrypt_records(&mut records).unwrap());
        assert_eq!(count, 0, "CBC on {}", kernel.name());
    }
    for (kernel, algorithm) in
        ShaKernel::all().into_iter().flat_map(|kernel| HmacAlgorithm::ALL.map(|of| (kernel, of)))
    {
        let key = HmacKey::with_kernel(kernel, algorithm, &[7; 20]);
        let mut tags = [[0; HmacAlgorithm::MOST_TAG_LEN]; 45];
        let parts = data.iter().zip(lens).zip(&mut tags);
        let mut records: Vec<_> = parts
            .map(|((data, len), tag)| HmacRecord {
                header: [1; 13],
                data: &data[..len],
                tag: &mut tag[..algorithm.tag_len()],
            })
            .collect();
        assert_eq!(allocations(|| key.sign_records(&mut records).unwrap()), 0, "{algorithm}");
    }
    for kernel in StitchedKernel::all() {
        let key = AesKey::new(AesKernel::best(), &[7; 16]).unwrap();
        let mac = HmacKey::new(HmacAlgorithm::Sha256, &[7; 20]);
        let keys = StitchedKeys::new(kernel, &key, &mac).unwrap();
        let messages = data.iter_mut().zip(lens);
        let mut messages: Vec<_> = messages
            .map(|(data, len)| Message {
                header: [1; 13],
                iv: [9; 16],
                payload: 0..len,
                in_out: &mut data[..len + 32],
            })
            .collect();
        let count = allocations(|| keys.encrypt(&mut messages).unwrap());
        assert_eq!(count, 0, "{}", kernel.name());
    }
}
