//! What the paper leaves for later, measured: a tree hash in the place of SHA3-256, and AES split by
//! measured rates rather than by Eq. 1.

use std::time::Instant;

use anyhow::Context;
use wattlock_engine::crypto::KeccakKernel;
use wattlock_engine::crypto::tree_hash::TreeHash;
use wattlock_engine::{Data, Engine, Job, Policy};
use wattlock_file::Input;
use wattlock_report::results::{Row, Sample};

use super::runs::{Bench, Cost};
use crate::bench::content::random_file;
use crate::bench::joules::Counted;
use crate::bench::lab::Lab;
use crate::hash::{DigestAlgorithm, digests};
use crate::sefps::format::Times;
use crate::study::aes::{How, Kernel, Key, Work};

/// Cases of rows: hashes of a file, and AES of a buffer by each rule.
pub const SHA3: &str = "hash, sha3-256";
pub const PARALLEL_HASH: &str = "hash, parallelhash256";
pub const BY_EQUATION_1: &str = "encrypt, split by Eq. 1";
pub const BY_RATES: &str = "encrypt, split by measured rates";
pub const AS_IT_COMES: &str = "encrypt, split as it comes";

/// Adds the rows of both.
pub fn measure(lab: &mut Lab<'_>, bench: &Bench) -> anyhow::Result<()> {
    hashes(lab, bench)?;
    match &bench.contenders.with_gpu {
        Ok(engine) => splits(lab, bench, engine),
        Err(_) => Ok(()),
    }
}

/// The largest file through SHA3-256, which one thread hashes, and ParallelHash256, which all do.
fn hashes(lab: &mut Lab<'_>, bench: &Bench) -> anyhow::Result<()> {
    let file = bench.files.last().context("there is no file")?;
    let path = bench.directory.join("plain");
    random_file(&path, file.bytes)?;
    let engine = &bench.contenders.engine;
    let inputs = [Input::Path(path.clone())];
    let kernel = KeccakKernel::best();
    let algorithms = [
        (SHA3, 1, DigestAlgorithm::Sha3_256(kernel)),
        (
            PARALLEL_HASH,
            engine.threads(),
            DigestAlgorithm::Tree(TreeHash::PARALLEL_HASH_256, kernel),
        ),
    ];
    let mut costs = algorithms.map(|_| Vec::new());
    for round in 0..=bench.rounds {
        for ((_, _, algorithm), costs) in algorithms.iter().zip(&mut costs) {
            let mut cost = Cost::default();
            cost.add(|| {
                let made = digests(engine, *algorithm, &inputs)?.pop();
                made.context("there is no digest")??;
                Ok(Times::default())
            })?;
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    std::fs::remove_file(path)?;
    for ((case, threads, _), costs) in algorithms.into_iter().zip(costs) {
        let row = row(case, KeccakKernel::best().name(), threads, file.bytes, &costs);
        lab.add(row, Counted::default());
    }
    Ok(())
}

fn row(case: &str, kernel: &str, threads: usize, bytes: u64, costs: &[Cost]) -> Row {
    let sample = |of: fn(&Cost) -> u64| Sample::of(costs.iter().map(of).collect());
    Row {
        tool: "wattlock".into(),
        case: case.to_owned(),
        kernel: Some(kernel.to_owned()),
        threads: Some(threads),
        call_bytes: Some(bytes),
        bytes,
        wall_ns: sample(|cost| cost.wall_ns),
        cpu_ns: sample(|cost| cost.cpu_ns),
        ..Row::default()
    }
}

/// AES of a buffer by both devices. Rates are measured just before: each device alone.
fn splits(lab: &mut Lab<'_>, bench: &Bench, engine: &Engine) -> anyhow::Result<()> {
    let len = bench.files.last().map_or(0, |file| file.bytes.min(MOST)) as usize;
    let kernel = Kernel::best();
    let key = Key::new(kernel, &[0x42; 16])?;
    let mut data = vec![0x5a; len / 16 * 16];
    let mut run = |policy| -> anyhow::Result<f64> {
        let work = Work { key: &key, how: How::EcbEncrypt, chunk_len: 16 };
        let data = Data::InPlace { slots: &mut data };
        let job = Job { cipher: work.cipher(), chunk_len: 16, data, deadline: None };
        let started = Instant::now();
        engine.run_by(policy, job)?;
        Ok(started.elapsed().as_secs_f64())
    };
    run(Policy::Gpu)?;
    let (cpu, gpu) = (run(Policy::Parallel)?, run(Policy::Gpu)?);
    let measured = Policy::HybridRatio { ratio: cpu / gpu };
    lab.results.settings.insert("measured_ratio".to_owned(), serde_json::json!(cpu / gpu));
    let rules =
        [(BY_EQUATION_1, engine.policy()), (BY_RATES, measured), (AS_IT_COMES, Policy::Hybrid)];
    let mut costs = rules.map(|_| Vec::new());
    for round in 0..=bench.rounds {
        for ((_, policy), costs) in rules.iter().zip(&mut costs) {
            let mut cost = Cost::default();
            cost.add(|| run(*policy).map(|_| Times::default()))?;
            if round > 0 {
                costs.push(cost);
            }
        }
    }
    let devices: Vec<_> = engine.devices().skip(1).collect();
    for ((case, _), costs) in rules.into_iter().zip(costs) {
        let row = row(case, kernel.name(), engine.threads(), len as u64, &costs);
        lab.add(Row { device: Some(devices.join(", ")), ..row }, Counted::default());
    }
    Ok(())
}

/// The window of the GPU's variants.
const MOST: u64 = 64 << 20;
