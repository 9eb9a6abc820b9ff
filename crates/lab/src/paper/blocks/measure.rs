//! Measures AES-128-CTR at the granularities of the study on this machine.

use serde_json::json;
use wattlock_engine::Engine;
use wattlock_host::exit::unavailable;
use wattlock_report::results::Results;

use super::forms;
use super::gpu;
use super::granularity::{Granularity, Rounds, granular_ctr};
use super::printed::{SIZES_MB, THREADS};
use super::rows::{DEVICE_IS_A_CPU, EXTENDED, FINE, KEY, LISTING, WHOLE, case};
use crate::args;
use crate::bench::lab::{Lab, Windows};
use crate::bench::rates::{Buffer, Case, Contender, Effort};
use crate::study::ListingAes;
use crate::study::aes::{Kernel, Key};

/// All rows: every granularity, the forms of the listing, and those of a GPU.
///
/// # Errors
/// That a device is not here, or a meter cannot be read.
pub fn measure(args: &args::PaperBlocks) -> anyhow::Result<Results> {
    let quick = args.measured.quick;
    let megabytes: &[usize] = if quick { &[1] } else { &SIZES_MB };
    let threads: &[usize] = if quick { &THREADS[..2] } else { &THREADS };
    let rounds = usize::from(if quick { args.rounds.min(3) } else { args.rounds });
    // One call is a sample: the study times whole messages.
    let effort = Effort { rounds, sample_ns: 1 };
    let mut results = Results::new("blocks");
    results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
    for (name, value) in
        [("rounds", json!(rounds)), ("megabytes", json!(megabytes)), ("threads", json!(threads))]
    {
        results.settings.insert(name.into(), value);
    }
    let windows = if quick { Windows::QUICK } else { Windows::SHORT };
    let named = args.device.as_deref();
    let gpu = gpu::find(named);
    if let (Some(name), Err(why)) = (named, &gpu) {
        return Err(unavailable(format!("--device {name}: {why}")));
    }
    match &gpu {
        Ok(gpu) if gpu.is_a_cpu => {
            results.settings.insert(DEVICE_IS_A_CPU.into(), json!(true));
            let why = format!("a GPU: rows of {} are of OpenCL on the CPU, not of a GPU", gpu.name);
            results.skipped.push(why);
        }
        Ok(_) => {}
        Err(why) => results.skipped.push(format!("a GPU, of which Tables II and III are: {why}")),
    }
    let mut lab = Lab::new(results, &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        for &megabytes in megabytes {
            message(lab, effort, megabytes, threads);
        }
        fine(lab, effort, threads, if quick { FINE_LEN / 16 } else { FINE_LEN });
        let smallest = megabytes[0];
        forms::measure_forms(lab, effort, smallest, length(smallest), quick);
        match &gpu {
            Ok(gpu) => megabytes
                .iter()
                .try_for_each(|megabytes| gpu.rows(lab, rounds, *megabytes, length(*megabytes))),
            Err(_) => Ok(()),
        }
    })?;
    Ok(lab.results)
}

/// A message in blocks of each size: all take turns, so that a drift meets them alike.
fn message(lab: &mut Lab<'_>, effort: Effort, megabytes: usize, threads: &[usize]) {
    let mut names = Vec::new();
    let mut contenders = Vec::new();
    for block in [16].into_iter().chain(EXTENDED) {
        let granularity =
            if block == 16 { Granularity::Coarse } else { Granularity::Extended(block) };
        let here = threads.iter().flat_map(|threads| of_blocks(granularity, *threads));
        contenders.extend(here);
        names.resize(contenders.len(), case(block, megabytes));
        tell!("{}", case(block, megabytes));
    }
    let len = length(megabytes);
    let first = lab.results.rows.len();
    let all = Case { name: String::new(), call_bytes: len };
    lab.measure(effort, &all, Buffer::new(len).bytes(), contenders);
    for (row, name) in lab.results.rows[first..].iter_mut().zip(names) {
        row.case = name;
    }
}

/// The threads of a block wait for each other after every round: a message of the study's size
/// would take minutes. The same short message in whole blocks takes turns with it.
fn fine(lab: &mut Lab<'_>, effort: Effort, threads: &[usize], len: usize) {
    let mut names = Vec::new();
    let mut contenders = Vec::new();
    for (kind, granularity) in [(FINE, Granularity::Fine), (WHOLE, Granularity::Coarse)] {
        contenders.extend(threads.iter().map(|threads| of_listing(granularity, *threads)));
        let name = format!("{kind}, {} KiB", len >> 10);
        tell!("{name}");
        names.resize(contenders.len(), name);
    }
    let first = lab.results.rows.len();
    let all = Case { name: String::new(), call_bytes: len };
    lab.measure(effort, &all, Buffer::new(len).bytes(), contenders);
    for (row, name) in lab.results.rows[first..].iter_mut().zip(names) {
        row.case = name;
    }
}

/// Bytes of a message of `megabytes` MB, rounded to whole blocks of the largest kind.
fn length(megabytes: usize) -> usize {
    megabytes * 1_000_000 / EXTENDED[3] * EXTENDED[3]
}

/// What fine granularity is measured on.
const FINE_LEN: usize = 16 << 10;

/// The study's listing and our kernels with so many threads.
fn of_blocks(granularity: Granularity, threads: usize) -> Vec<Contender<'static>> {
    let kernels = [Kernel::TtableVartime, Kernel::best()].map(|kernel| {
        let key = Key::new(kernel, &KEY).expect("a key of 16 bytes");
        let engine = Engine::new(threads);
        let run = move |buffer: &mut [u8]| {
            granular_ctr(&engine, granularity, Rounds::Kernel(&key), 7, buffer)
                .expect("whole blocks");
        };
        Contender::new("wattlock", run).kernel(kernel.name()).threads(threads)
    });
    [of_listing(granularity, threads)].into_iter().chain(kernels).collect()
}

fn of_listing(granularity: Granularity, threads: usize) -> Contender<'static> {
    let listing = ListingAes::new(&KEY).expect("a key of 16 bytes");
    let engine = Engine::new(threads);
    let run = move |buffer: &mut [u8]| {
        granular_ctr(&engine, granularity, Rounds::Listing(&listing), 7, buffer)
            .expect("whole blocks");
    };
    Contender::new("wattlock", run).kernel(LISTING).threads(threads)
}
