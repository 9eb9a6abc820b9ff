//! The scheduler unit in the provider: with a simulated accelerator, even a faulty one, the bytes
//! are those of OpenSSL's own provider, and the counters say which lane made them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::time::{Duration, Instant};

use crate::support::evp::{Context, Evp};
use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::{Modules, Numbers};
use wattlock_engine::Lane;
use wattlock_provider::statistics::{Event, SharedTable};

const FAST: &str = "simulated:rate=cpu,latency_us=0";
const SET_IV_FIXED: i32 = 0x12;
const GET_TAG: i32 = 0x10;
const SET_TAG: i32 = 0x11;
const TLS_AAD: i32 = 0x16;

/// Requests by lane, and why the CPU did what was the accelerator's.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Counted {
    cpu: u64,
    accelerator: u64,
    faults: u64,
    /// Where a machine is busy, even the fastest device may be too late, and then rest.
    late_or_absent: u64,
}

impl Counted {
    /// What this process has counted until now; nothing before its first context.
    fn of(table: &SharedTable) -> Self {
        let all = table.read().unwrap();
        let own = all.iter().find(|one| one.process == u64::from(std::process::id()));
        let lane = |lane| own.map_or(0, |one| one.lane(lane).calls);
        let times = |event| own.map_or(0, |one| one.times(event));
        Self {
            cpu: lane(Lane::Cpu),
            accelerator: lane(Lane::Accelerator),
            faults: times(Event::Fault),
            late_or_absent: times(Event::Timeout) + times(Event::Absent),
        }
    }

    fn since(self, before: Self) -> Self {
        Self {
            cpu: self.cpu - before.cpu,
            accelerator: self.accelerator - before.accelerator,
            faults: self.faults - before.faults,
            late_or_absent: self.late_or_absent - before.late_or_absent,
        }
    }

    fn all(self) -> u64 {
        self.cpu + self.accelerator
    }
}

/// One after the other, since the counters are the whole process's.
fn the_bytes_are_right_with_any_fault_of_the_accelerator(openssl: OpenSsl) {
    let table = SharedTable::new().unwrap();
    let run = |settings: &str| {
        let before = Counted::of(&table);
        let evp = configured(openssl, &table, settings)?;
        agrees(&evp);
        Some(Counted::of(&table).since(before))
    };
    let device = |device: &str, threshold: &str| {
        run(&format!("accelerator = {device}\nthreshold = {threshold}"))
    };
    let Some(zero) = device(FAST, "0") else { return };
    assert!(zero.accelerator > 0 && zero.all() > 60, "{zero:?}");
    assert_eq!((zero.faults, zero.cpu), (0, zero.late_or_absent), "{zero:?}");

    let some = device(FAST, "8192").unwrap();
    assert!(some.accelerator > 0 && some.cpu > some.late_or_absent, "{some:?}");
    assert_eq!((some.all(), some.faults), (zero.all(), 0), "{some:?}");

    let huge = device(FAST, "18446744073709551615").unwrap();
    assert_eq!((huge.accelerator, huge.cpu), (0, zero.all()), "{huge:?}");

    let faulty = device(&format!("{FAST},fault_every=3"), "0").unwrap();
    assert!(faulty.faults > 0 && faulty.accelerator > 0, "{faulty:?}");
    assert_eq!(faulty.cpu, faulty.faults + faulty.late_or_absent, "{faulty:?}");
    assert_eq!(faulty.all(), zero.all(), "{faulty:?}");

    let dying = device(&format!("{FAST},dies_after=10"), "0").unwrap();
    assert!(dying.accelerator <= 10 && dying.late_or_absent > 0, "{dying:?}");
    assert_eq!(dying.cpu, dying.faults + dying.late_or_absent, "{dying:?}");
    assert_eq!(dying.all(), zero.all(), "{dying:?}");

    let without = run("").unwrap();
    assert_eq!((without.all(), without.faults), (0, 0), "{without:?}");

    waiting_requests_of_threads_migrate(openssl, &table);
    nothing_migrates_to_where_it_is_later_done(openssl, &table);
}

fn configured(openssl: OpenSsl, table: &SharedTable, settings: &str) -> Option<Evp> {
    let settings = format!("statistics = {}\n{settings}", table.setting());
    let modules = Modules::new(openssl, &settings);
    let mut evp = Evp::without_providers(&modules)?;
    evp.configure(&modules.path().join("openssl.cnf"));
    for name in [c"default", c"wattlock"] {
        evp.provider(name).unwrap();
    }
    Some(evp)
}

/// An accelerator with one slot, which is slow, and four threads that all want it.
fn waiting_requests_of_threads_migrate(openssl: OpenSsl, table: &SharedTable) {
    let slow = "accelerator = simulated:slots=1,rate=cpu,latency_us=5000";
    let evp =
        configured(openssl, table, &format!("{slow}\nthreshold = 0\nmigration = paper")).unwrap();
    let (deadline, before) = (Instant::now() + Duration::from_secs(60), migrations(table));
    let (key, iv) = ([7; 32], [9; 16]);
    let input = vec![3; 4096];
    let mut theirs = evp.cipher("AES-256-CBC", "default");
    assert!(theirs.init(true, Some(&key), Some(&iv)));
    let expected = theirs.update(&input).unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while migrations(table) == before {
                    assert!(Instant::now() < deadline, "nothing has migrated");
                    let mut ours = evp.cipher("AES-256-CBC", "wattlock");
                    assert!(ours.init(true, Some(&key), Some(&iv)));
                    assert!(ours.update(&input).unwrap() == expected);
                }
            });
        }
    });
}

/// An accelerator with one slot, far faster than the CPU: by the lanes' measured lines, waiting for it
/// is sooner than a free CPU.
fn nothing_migrates_to_where_it_is_later_done(openssl: OpenSsl, table: &SharedTable) {
    let fast = "accelerator = simulated:slots=1,rate=1e15,latency_us=0";
    let evp = configured(openssl, table, &format!("{fast}\nthreshold = 0")).unwrap();
    let encrypt = || {
        let mut ours = evp.cipher("AES-256-CBC", "wattlock");
        assert!(ours.init(true, Some(&[7; 32]), Some(&[9; 16])));
        assert_eq!(ours.update(&[3; 65_536]).unwrap().len(), 65_536);
    };
    // The first measures the lines.
    encrypt();
    let before = (migrations(table), by_accelerator(table));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..50).for_each(|_| encrypt()));
        }
    });
    assert_eq!(migrations(table), before.0);
    assert!(by_accelerator(table) > before.1);
}

fn by_accelerator(table: &SharedTable) -> u64 {
    table.read().unwrap().iter().map(|one| one.lane(Lane::Accelerator).calls).sum()
}

fn migrations(table: &SharedTable) -> u64 {
    let all = table.read().unwrap();
    all.iter().map(|one| one.times(Event::MigratedToCpu)).sum()
}

fn a_wrong_setting_is_an_error_with_a_reason(openssl: OpenSsl) {
    for (setting, reason) in [
        ("accelerator = gpu", "nor a device such as cuda:0"),
        ("accelerator = simulated:speed=1", "the setting accelerator is neither"),
        ("threshold = much", "the setting threshold is neither"),
        ("migration = never again", "the setting migration is neither"),
    ] {
        let modules = Modules::new(openssl, "");
        let Some(mut evp) = Evp::without_providers(&modules) else { return };
        let text = format!(
            "openssl_conf = init\n[init]\nproviders = list\n[list]\nwattlock = section\n\
             [section]\n{setting}\n"
        );
        let config = modules.path().join("wrong.cnf");
        std::fs::write(&config, text).unwrap();
        evp.configure(&config);
        let error = evp.provider(c"wattlock").unwrap_err();
        assert!(error.contains(reason), "{setting}: {error}");
    }
}

/// A fixed number of requests of every cipher and length.
fn agrees(evp: &Evp) {
    let mut numbers = Numbers(21);
    for (name, key_len) in [
        ("AES-256-ECB", 32),
        ("AES-128-CBC", 16),
        ("AES-256-CBC", 32),
        ("AES-128-CTR", 16),
        ("AES-256-CTR", 32),
        ("AES-256-GCM", 32),
    ] {
        let (key, iv) = (numbers.bytes(key_len), numbers.bytes(16));
        let iv = if name.ends_with("GCM") { &iv[..12] } else { &iv[..] };
        let mut sealed = Vec::new();
        let mut tags = [[0; 16]; 2];
        for encrypt in [true, false] {
            let mut ours = evp.cipher(name, "wattlock");
            let mut theirs = evp.cipher(name, "default");
            let mut parts = Vec::new();
            for context in [&mut ours, &mut theirs] {
                assert!(context.init(encrypt, Some(&key), Some(iv)));
            }
            for (at, len) in LENGTHS.into_iter().enumerate() {
                let input =
                    if encrypt { numbers.bytes(len) } else { std::mem::take(&mut sealed[at]) };
                let (one, other) = (ours.update(&input), theirs.update(&input));
                assert!(one.is_some() && one == other, "{name}: {len}, {encrypt}");
                parts.push(one.unwrap());
            }
            if name.ends_with("GCM") {
                end_gcm(&mut ours, encrypt, &mut tags[0]);
                end_gcm(&mut theirs, encrypt, &mut tags[1]);
                assert_eq!(tags[0], tags[1], "{name}");
            } else if name.ends_with("CTR") {
                assert_eq!(ours.finish(), theirs.finish(), "{name}");
            }
            sealed = parts;
        }
    }
    records(evp, &mut numbers);
}

/// Of the parts of a message: whole blocks until the last, for the block modes' sake.
const LENGTHS: [usize; 6] = [16, 8192, 8208, 100_000, 32, 5];

/// Ends a message: writes its tag, or checks it.
fn end_gcm(context: &mut Context<'_>, encrypt: bool, tag: &mut [u8; 16]) {
    if encrypt {
        assert!(context.finish().is_some());
        assert_eq!(context.ctrl(GET_TAG, 16, tag.as_mut_ptr().cast()), 1);
    } else {
        assert_eq!(context.ctrl(SET_TAG, 16, tag.as_mut_ptr().cast()), 1);
        assert!(context.finish().is_some());
    }
}

/// Records of TLS 1.2 by both, each opened by the other; a changed one is refused.
fn records(evp: &Evp, numbers: &mut Numbers) {
    let (key, iv) = (numbers.bytes(32), numbers.bytes(12));
    let keyed = |provider, encrypt| {
        let mut context = evp.cipher("AES-256-GCM", provider);
        assert!(context.init(encrypt, Some(&key), None));
        let mut iv = iv.clone();
        let fixed = if encrypt { -1 } else { 4 };
        assert_eq!(context.ctrl(SET_IV_FIXED, fixed, iv.as_mut_ptr().cast()), 1);
        context
    };
    let mut seals = [keyed("wattlock", true), keyed("default", true)];
    let mut opens = [keyed("default", false), keyed("wattlock", false)];
    for (sequence, len) in [1, 8192, 8193, 16_384].into_iter().enumerate() {
        let payload = numbers.bytes(len);
        let sealed = seals.each_mut().map(|context| {
            let record = [&[0; 8][..], &payload, &[0; 16]].concat();
            record_by(context, sequence, 8 + len, &record).unwrap()
        });
        assert!(sealed[0] == sealed[1], "{len}");
        for context in &mut opens {
            let opened = record_by(context, sequence, len + 24, &sealed[0]).unwrap();
            assert!(opened[8..8 + len] == payload, "{len}");
            let mut changed = sealed[0].clone();
            changed[8 + len / 2] ^= 1;
            assert_eq!(record_by(context, sequence, len + 24, &changed), None, "{len}");
            let _ = evp.error();
        }
    }
}

/// Seals or opens a record in place.
fn record_by(
    context: &mut Context<'_>,
    sequence: usize,
    len: usize,
    record: &[u8],
) -> Option<Vec<u8>> {
    let mut aad = [0; 13];
    aad[..8].copy_from_slice(&(sequence as u64).to_be_bytes());
    aad[8..11].copy_from_slice(&[23, 3, 3]);
    aad[11..].copy_from_slice(&(len as u16).to_be_bytes());
    assert_eq!(context.ctrl(TLS_AAD, 13, aad.as_mut_ptr().cast()), 16);
    let mut memory = [record, &[0; 16]].concat();
    let start = memory.as_mut_ptr();
    // SAFETY: there is room for a block behind the record.
    unsafe { context.update_at(start, start, record.len()) }?;
    memory.truncate(record.len());
    Some(memory)
}

on_every_openssl!(
    the_bytes_are_right_with_any_fault_of_the_accelerator,
    a_wrong_setting_is_an_error_with_a_reason,
);
