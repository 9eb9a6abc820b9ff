//! `wattlock-lab bench blocks`: AES-128-CTR at the granularities of the study of extended blocks.

use serde_json::json;
use wattlock_engine::Engine;
use wattlock_host::exit::{Ended, unavailable};
use wattlock_report::columns::Columns;
use wattlock_report::results::{Joules, Ratio, Results};

use super::block_rows::{EXTENDED, KEY, LISTING, row};
use super::blocks_gpu;
use super::extended_block;
use super::granularity::{Granularity, Rounds, granular_ctr};
use super::lab::{Lab, Windows};
use super::rates::{Buffer, Case, Contender, Effort};
use crate::args;
use crate::bench::publish;
use crate::study::ListingAes;
use crate::study::aes::{Kernel, Key};

/// `wattlock-lab bench blocks`.
pub fn run(args: &args::BenchBlocks) -> Ended {
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    let sizes = args.sizes.iter().map(|size| usize::from(*size));
    let megabytes: Vec<usize> = if args.quick { vec![1] } else { sizes.collect() };
    let mut threads: Vec<usize> = args.threads.iter().map(|n| usize::from(*n)).collect();
    threads.dedup();
    let rounds = usize::from(if args.quick { args.rounds.min(3) } else { args.rounds });
    // One call is a sample: the study times whole messages.
    let effort = Effort { rounds, sample_ns: 1 };
    let mut results = Results::new("blocks");
    results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
    for (name, value) in
        [("rounds", json!(rounds)), ("megabytes", json!(megabytes)), ("threads", json!(threads))]
    {
        results.settings.insert(name.into(), value);
    }
    let windows = if args.quick { Windows::QUICK } else { Windows::SHORT };
    let named = args.spread.devices.iter().find(|name| *name != "cpu");
    let gpu = blocks_gpu::find(named.map(String::as_str));
    if let (Some(name), Err(why)) = (named, &gpu) {
        return Err(unavailable(format!("--device {name}: {why}")));
    }
    let mut lab = Lab::new(results, &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        rows(lab, effort, &megabytes, &threads);
        match &gpu {
            Ok(gpu) => megabytes
                .iter()
                .try_for_each(|megabytes| gpu.rows(lab, rounds, *megabytes, length(*megabytes))),
            Err(_) => Ok(()),
        }
    })?;
    let mut results = lab.results;
    results.skipped.extend(match &gpu {
        Ok(gpu) if gpu.is_a_cpu => {
            Some(format!("a GPU: rows of {} are of OpenCL on the CPU, not of a GPU", gpu.name))
        }
        Ok(_) => None,
        Err(why) => Some(format!("a GPU, of which Tables II and III are: {why}")),
    });
    ratios(&mut results, &megabytes, &threads);
    publish::publish(&results, args.json.as_deref(), &args.meters, |results| {
        if args.paper { table(results) + &extended_block::text(results) } else { table(results) }
    })
}

/// Every granularity at every length.
fn rows(lab: &mut Lab<'_>, effort: Effort, megabytes: &[usize], threads: &[usize]) {
    let mut one = |granularity, megabytes, len| {
        let case = case(granularity, megabytes, len);
        tell!("{}", case.name);
        let mut buffer = Buffer::new(len);
        lab.measure(effort, &case, buffer.bytes(), contenders(granularity, threads));
    };
    for &megabytes in megabytes {
        let len = length(megabytes);
        one(Granularity::Coarse, megabytes, len);
        for block in EXTENDED {
            one(Granularity::Extended(block), megabytes, len);
        }
    }
    // Eleven waits for each block: a message of the study's size would take minutes.
    one(Granularity::Fine, 0, FINE_LEN);
}

/// Bytes of a message of `megabytes` MB, rounded to whole blocks of the largest kind.
fn length(megabytes: usize) -> usize {
    megabytes * 1_000_000 / EXTENDED[3] * EXTENDED[3]
}

/// What fine granularity is measured on.
const FINE_LEN: usize = 16 << 10;

fn case(granularity: Granularity, megabytes: usize, len: usize) -> Case {
    let what = match granularity {
        Granularity::Fine => "fine, inside a block, 16 KiB".to_owned(),
        Granularity::Coarse => format!("coarse, 16 bytes, {megabytes} MB"),
        Granularity::Extended(block) => format!("extended, {block} bytes, {megabytes} MB"),
    };
    Case { name: what, call_bytes: len }
}

/// The study's listing and our kernels, each with each number of threads.
fn contenders(granularity: Granularity, threads: &[usize]) -> Vec<Contender<'static>> {
    let mut contenders = Vec::new();
    for &threads in threads {
        let listing = ListingAes::new(&KEY).expect("a key of 16 bytes");
        let engine = Engine::new(threads);
        let run = move |buffer: &mut [u8]| {
            granular_ctr(&engine, granularity, Rounds::Listing(&listing), 7, buffer)
                .expect("whole blocks");
        };
        contenders.push(Contender::new("wattlock", run).kernel(LISTING).threads(threads));
        if granularity == Granularity::Fine {
            continue;
        }
        for kernel in [Kernel::TtableVartime, Kernel::best()] {
            let key = Key::new(kernel, &KEY).expect("a key of 16 bytes");
            let engine = Engine::new(threads);
            let run = move |buffer: &mut [u8]| {
                granular_ctr(&engine, granularity, Rounds::Kernel(&key), 7, buffer)
                    .expect("whole blocks");
            };
            contenders.push(Contender::new("wattlock", run).kernel(kernel.name()).threads(threads));
        }
    }
    contenders
}

/// What extended blocks gain over 16 bytes.
fn ratios(results: &mut Results, megabytes: &[usize], threads: &[usize]) {
    let mut ratios = Vec::new();
    for kernel in [LISTING, Kernel::TtableVartime.name(), Kernel::best().name()] {
        for &megabytes in megabytes {
            for &threads in threads {
                for block in EXTENDED {
                    let extended = format!("extended, {block} bytes");
                    let coarse = row(results, "coarse, 16 bytes", megabytes, kernel, threads);
                    let extended = row(results, &extended, megabytes, kernel, threads);
                    if let (Some(coarse), Some(extended)) = (coarse, extended) {
                        let name = format!(
                            "{kernel}, {megabytes} MB, {threads} threads: {block} / 16 bytes"
                        );
                        ratios.push(Ratio::told(name, extended.rate() / coarse.rate()));
                    }
                }
            }
        }
    }
    results.ratios = ratios;
}

fn table(results: &Results) -> String {
    let mut table = Columns::new("<<>>>>><");
    let heads = ["granularity", "kernel", "threads", "wall s", "CPU s", "MB/s"];
    table.row(heads.into_iter().chain(Joules::HEADS));
    for row in &results.rows {
        let seconds = |sample: &wattlock_report::results::Sample| {
            format!("{:.5} ({:.5})", sample.median as f64 / 1e9, sample.mad as f64 / 1e9)
        };
        let cells = [
            row.case.clone(),
            row.kernel.clone().unwrap_or_default(),
            row.threads.map_or_else(|| "-".into(), |threads| threads.to_string()),
            seconds(&row.wall_ns),
            seconds(&row.cpu_ns),
            format!("{:.2}", 1000.0 * row.rate()),
        ];
        table.row(cells.into_iter().chain(row.joules.cells()));
    }
    table.to_string() + &results.foot()
}
