//! The CPU and fake accelerators share jobs: every piece is done once, even if a device is slow,
//! wrong or dies.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::ops::Range;
use std::sync::{Barrier, Mutex};
use std::time::Duration;

use proptest::prelude::*;
use wattlock_engine::crypto::{AesKernel, AesKey};
use wattlock_engine::fake::Fake;
use wattlock_engine::{
    Case, Cipher, Data, Doubt, Engine, Error, Goal, Job, Loaded, Policy, Profile, Profiles, Report,
    Residency, Stores, Transfer, Transform,
};

const MIB: usize = 1 << 20;
const CHUNK: usize = 4096;
const IV: [u8; 16] = [0xff; 16];

fn key() -> AesKey {
    AesKey::new(AesKernel::best(), &[0x17; 32]).unwrap()
}

/// Swapped lanes never look alike.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// What AES-CTR makes of the pattern.
fn expected(len: usize) -> Vec<u8> {
    let mut bytes = pattern(len);
    key().ctr(&IV, 0, &mut bytes);
    bytes
}

fn run(engine: &Engine, bytes: &mut [u8]) -> Result<Report, Error> {
    run_with(engine, Cipher::Ctr { key: &key(), iv: IV }, bytes)
}

fn run_with(engine: &Engine, cipher: Cipher<'_>, slots: &mut [u8]) -> Result<Report, Error> {
    engine.run(Job { cipher, chunk_len: CHUNK, data: Data::InPlace { slots }, deadline: None })
}

/// Runs a job of `len` bytes, which has to come out right.
fn right(engine: &Engine, len: usize) -> Report {
    let mut bytes = pattern(len);
    let report = run(engine, &mut bytes).unwrap();
    assert!(bytes == expected(len), "{report:?}");
    assert_eq!(report.bytes(), len as u64, "{report:?}");
    report
}

fn profile(device: &str, workers: usize, startup_ms: u64, bytes_per_second: f64) -> Profile {
    Profile {
        device: device.into(),
        case: Case::named("aes-256-ctr").unwrap(),
        kernel: "of a test".into(),
        workers,
        residency: Residency::Host,
        startup: Duration::from_millis(startup_ms),
        bytes_per_second,
        spread: 0.0,
        samples: 1,
        joules: None,
        created_unix_s: 0,
        wattlock: "0.0.0".into(),
    }
}

/// The first and the last piece of a run of that many bytes wait for each other to begin.
struct Meeting(usize, Barrier);

impl Transform for Meeting {
    fn apply(
        &self,
        offset: u64,
        in_out: &mut [u8],
    ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        if offset == 0 || offset as usize + in_out.len() == self.0 {
            self.1.wait();
        }
        in_out.iter_mut().for_each(|byte| *byte ^= 1);
        Ok(())
    }
}

#[test]
fn the_two_ends_meet() {
    let fake = Fake { piece_chunks: 64, ..Fake::default() };
    let engine = Engine::new(1).with_policy(Policy::Hybrid).with_device(Box::new(fake));
    let len = 20 * MIB + 5;
    let mut bytes = pattern(len);
    let meeting = Meeting(len, Barrier::new(2));
    let report = run_with(&engine, Cipher::Other(&meeting), &mut bytes).unwrap();
    assert!(bytes.iter().zip(pattern(len)).all(|(after, before)| *after == before ^ 1));
    assert!(report.cpu.bytes > 0 && report.accelerators[0].bytes > 0, "{report:?}");
    assert_eq!(report.bytes(), len as u64);
    assert_eq!(report.chosen.policy, Policy::Hybrid);
}

#[test]
fn only_the_accelerator() {
    for len in [0, 1, CHUNK + 1, 5 * MIB + 3] {
        let engine = Engine::new(2).with_policy(Policy::Gpu).with_device(Box::new(Fake::default()));
        let report = right(&engine, len);
        let fake = &report.accelerators[0];
        assert_eq!((fake.bytes, report.cpu.bytes), (len as u64, 0), "{report:?}");
    }
}

#[test]
fn a_ratio_is_kept_at_any_speed() {
    let slow = Fake { bytes_per_second: Some(50e6), ..Fake::default() };
    let policy = Policy::HybridRatio { ratio: 3.0 };
    let engine = Engine::new(2).with_policy(policy).with_device(Box::new(slow));
    let report = right(&engine, 4 * MIB);
    assert_eq!((report.cpu.bytes, report.accelerators[0].bytes), (MIB as u64, 3 * MIB as u64));
}

#[test]
fn what_the_cpu_finishes_sooner_is_declined() {
    let profiles: Profiles =
        [profile("cpu", 2, 0, 1e9), profile("fake", 1, 5_000, 1e9)].into_iter().collect();
    let slow = Fake { latency: Duration::from_secs(3600), ..Fake::default() };
    let engine = Engine::new(2)
        .with_policy(Policy::Hybrid)
        .with_device(Box::new(slow))
        .with_profiles(profiles);
    let report = right(&engine, 20 * MIB);
    let fake = &report.accelerators[0];
    assert_eq!((fake.bytes, report.cpu.bytes), (0, 20 * MIB as u64));
    // Nothing was left to decline if its thread was late.
    assert!(fake.fault.is_none() && fake.declined != Some(0), "{report:?}");
}

#[test]
fn a_device_that_dies_in_the_middle() {
    for policy in [Policy::Gpu, Policy::HybridRatio { ratio: 50.0 }] {
        let dying = Fake { pieces_before_fault: Some(2), piece_chunks: 100, ..Fake::default() };
        let engine = Engine::new(2).with_policy(policy).with_device(Box::new(dying));
        let report = right(&engine, 9 * MIB + 1);
        let fake = &report.accelerators[0];
        assert_eq!((fake.pieces, fake.bytes), (2, 200 * CHUNK as u64 - 4095), "{report:?}");
        assert_eq!(fake.fault.as_ref().unwrap().0, "the fake device failed on demand");
        assert_eq!(report.cpu.bytes, (9 * MIB + 1) as u64 - fake.bytes);
    }
}

#[test]
fn another_accelerator_goes_on_without_the_dead_one() {
    let dead = Fake { name: "dead", pieces_before_fault: Some(0), ..Fake::default() };
    let alive = Fake { name: "alive", piece_chunks: 10, ..Fake::default() };
    let engine = Engine::new(1).with_policy(Policy::Gpu);
    let engine = engine.with_device(Box::new(dead)).with_device(Box::new(alive));
    let report = right(&engine, 16 * MIB);
    let dead = report.accelerators.iter().find(|device| device.name == "dead").unwrap();
    assert_eq!(dead.bytes, 0, "{report:?}");
}

#[test]
fn a_device_that_is_wrong_is_never_opened() {
    let error = Fake { wrong: true, ..Fake::default() }.open().err().unwrap();
    assert!(error.0.contains("another result"), "{error}");
}

#[test]
fn devices_by_name() {
    let opencl = || Fake { name: "opencl-cpu", only_by_name: true, ..Fake::default() };
    let engine = || {
        Engine::new(2)
            .with_policy(Policy::Hybrid)
            .with_device(Box::new(Fake { name: "cuda", piece_chunks: 9, ..Fake::default() }))
            .with_device(Box::new(opencl()))
    };
    assert_eq!(engine().devices().collect::<Vec<_>>(), ["cpu", "cuda", "opencl-cpu"]);
    let table: [(&[&str], &[&str]); 4] = [
        (&["cpu"], &["cpu"]),
        (&["cuda"], &["cuda"]),
        (&["opencl-cpu"], &["opencl-cpu"]),
        (&["cuda", "opencl-cpu"], &["cuda", "opencl-cpu"]),
    ];
    for (names, took_part) in table {
        let report = right(&engine().with_chosen(names).unwrap(), 4 * MIB);
        let mut seen: Vec<_> = report.devices().map(|device| &*device.name).collect();
        seen.sort_unstable();
        assert_eq!(seen, took_part);
    }
    let by_itself = right(&engine(), 4 * MIB);
    assert!(by_itself.devices().all(|device| device.name != "opencl-cpu"));
    let error = engine().with_chosen(&["cpu", "cud"]).err().unwrap().to_string();
    assert_eq!(error, "there is no device \"cud\" here, only cpu, cuda, opencl-cpu");
}

#[test]
fn what_no_chosen_device_can_do() {
    let only_ctr = || {
        let supports = |cipher: &Cipher<'_>| matches!(cipher, Cipher::Ctr { .. });
        Engine::new(2).with_device(Box::new(Fake { supports, ..Fake::default() }))
    };
    let key = key();
    let ecb = |engine: Engine| {
        let mut bytes = pattern(MIB);
        match run_with(&engine, Cipher::EcbEncrypt(&key), &mut bytes) {
            Err(error @ Error::NoDevice { .. }) => error.to_string(),
            other => panic!("{other:?}"),
        }
    };
    let unable = "none of the chosen devices can do aes-256-ecb encrypt: fake";
    assert_eq!(ecb(only_ctr().with_policy(Policy::Gpu)), unable);
    for policy in [Policy::Hybrid, Policy::Auto { goal: Goal::Time }] {
        assert_eq!(ecb(only_ctr().with_policy(policy).with_chosen(&["fake"]).unwrap()), unable);
    }
    let none = "none of the chosen devices can do aes-256-ecb encrypt: there is none";
    assert_eq!(ecb(only_ctr().with_chosen(&["fake"]).unwrap()), none, "the policy is the CPU's");
    assert_eq!(ecb(Engine::new(2).with_policy(Policy::Gpu)), none);
    let mut bytes = pattern(MIB);
    let hybrid = only_ctr().with_policy(Policy::Hybrid);
    let report = run_with(&hybrid, Cipher::EcbEncrypt(&key), &mut bytes).unwrap();
    assert!(report.accelerators.is_empty(), "it was not asked: {report:?}");
}

#[test]
fn profiles_are_learnt_from_jobs() {
    let engine = Engine::new(2).with_device(Box::new(Fake::default())).with_policy(Policy::Gpu);
    let case = Case::named("aes-256-ctr").unwrap();
    assert!(engine.profiles().is_empty());
    right(&engine, 2 * MIB);
    assert!(engine.profiles().is_empty(), "too few bytes");
    right(&engine, 32 * MIB);
    let first = engine.profiles().find("fake", case, 1, Residency::Host).unwrap().clone();
    assert_eq!(first.samples, 1);
    let auto = engine.with_policy(Policy::Auto { goal: Goal::Time });
    let report = right(&auto, MIB);
    assert_eq!(report.chosen.doubt, Some(Doubt::NoProfiles), "the CPU was not measured");
}

/// A transfer over memory that behaves like a file or like a pipe.
struct Memory {
    input: Vec<u8>,
    output: Mutex<Vec<u8>>,
    stores: Stores,
    length_known: bool,
}

impl Transfer for Memory {
    fn chunks(&self) -> Option<Range<u64>> {
        self.length_known.then(|| 0..self.input.len().div_ceil(CHUNK) as u64)
    }

    fn stores(&self) -> Stores {
        self.stores
    }

    fn load(&self, wanted: Range<u64>, slots: &mut [u8]) -> io::Result<Loaded> {
        let at = |chunk: u64| (chunk as usize * CHUNK).min(self.input.len());
        let (start, end) = (at(wanted.start), at(wanted.end));
        slots[..end - start].copy_from_slice(&self.input[start..end]);
        Ok(Loaded { len: end - start, last: end == self.input.len() })
    }

    fn store(&self, first: u64, slots: &[u8]) -> io::Result<()> {
        let start = first as usize * CHUNK;
        let mut output = self.output.lock().unwrap();
        if self.stores == Stores::InOrder {
            assert_eq!(output.len(), start, "a stream is written in order");
        }
        let end = start + slots.len();
        if output.len() < end {
            output.resize(end, 0);
        }
        output[start..end].copy_from_slice(slots);
        Ok(())
    }
}

fn fakes() -> impl Strategy<Value = Fake> {
    (
        prop_oneof![Just(usize::MAX), 1usize..300],
        1usize..5,
        prop_oneof![Just(None), (1e8..1e10f64).prop_map(Some)],
        0u64..300,
        prop_oneof![Just(None), (0u64..9).prop_map(Some)],
    )
        .prop_map(
            |(piece_chunks, slots, bytes_per_second, latency_us, pieces_before_fault)| {
                let latency = Duration::from_micros(latency_us);
                let fake =
                    Fake { bytes_per_second, latency, pieces_before_fault, ..Fake::default() };
                Fake { piece_chunks, slots, ..fake }
            },
        )
}

fn policies() -> impl Strategy<Value = Policy> {
    prop_oneof![
        Just(Policy::Gpu),
        Just(Policy::Hybrid),
        (0.1..200.0f64).prop_map(|ratio| Policy::HybridRatio { ratio }),
        Just(Policy::Auto { goal: Goal::Edp }),
    ]
}

/// Measured with the CPU and the fake at any speed, or never.
fn profiles() -> impl Strategy<Value = Profiles> {
    let rates = (1e8..1e10f64, 1e8..1e10f64, 0u64..20);
    prop_oneof![
        Just(Profiles::default()),
        rates.prop_map(|(cpu, fake, startup_ms)| {
            let all = (1..4).map(|workers| profile("cpu", workers, 0, cpu));
            let fakes = ["fake", "other"].map(|name| profile(name, 1, startup_ms, fake));
            all.chain(fakes).collect()
        }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn all_is_done_once(
        len in prop_oneof![0usize..9000, 0usize..6 << 20],
        threads in 1usize..4,
        policy in policies(),
        fakes in prop::collection::vec(fakes(), 1..3),
        profiles in profiles(),
        cpu_chosen in prop::bool::weighted(0.8),
        stores in prop_oneof![Just(Stores::Together), Just(Stores::OneByOne), Just(Stores::InOrder)],
        length_known in any::<bool>(),
    ) {
        let mut engine = Engine::new(threads).with_policy(policy).with_profiles(profiles);
        for (fake, name) in fakes.into_iter().zip(["fake", "other"]) {
            engine = engine.with_device(Box::new(Fake { name, ..fake }));
        }
        if !cpu_chosen {
            let names: Vec<_> = engine.devices().skip(1).map(str::to_owned).collect();
            engine = engine.with_chosen(&names.iter().map(|name| &**name).collect::<Vec<_>>()).unwrap();
        }
        let mut bytes = pattern(len);
        let report = run(&engine, &mut bytes).unwrap();
        prop_assert!(bytes == expected(len), "in place: {:?}", report);
        prop_assert_eq!(report.bytes(), len as u64);
        let memory = Memory { input: pattern(len), output: Mutex::default(), stores, length_known };
        let cipher = Cipher::Ctr { key: &key(), iv: IV };
        let report = engine.run(Job { cipher, chunk_len: CHUNK, data: Data::Moved(&memory), deadline: None }).unwrap();
        prop_assert!(memory.output.into_inner().unwrap() == expected(len), "moved: {:?}", report);
        prop_assert_eq!(report.bytes(), len as u64);
    }
}
