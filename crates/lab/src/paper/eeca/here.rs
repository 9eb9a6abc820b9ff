//! What is measured for the paper on this machine: Table 1 by `openssl speed`, Table 2 by nginx and ab,
//! and where the time of a page goes.

mod claims;
mod kernel;
pub mod page_server;
mod phases;
mod rows;
mod speed;

pub use kernel::missing as kernel_missing;
pub use phases::section as figure_3;

use anyhow::Context;
use serde_json::json;
use wattlock_host::signals;
use wattlock_report::paper::Section;
use wattlock_report::results::Results;

use super::printed::Which;
use crate::args;
use crate::bench::https::{Load, Settings, Site};
use crate::bench::lab::{Lab, Windows};

/// A table as it comes out here, and the claims that it can hold.
pub fn section(which: Which, results: Option<&Results>) -> Section {
    let mut section = rows::section(which, results);
    section.rows.extend(claims::of(&rows::Here { which, results }));
    section
}

/// The kind of the results.
pub const KIND: &str = "eeca";

/// Measures all of it.
///
/// # Errors
/// That a file of the flags is missing, a signal came, or a meter cannot be read.
pub fn measure(args: &args::PaperEeca) -> anyhow::Result<Results> {
    let directory = tempfile::Builder::new()
        .prefix("wattlock-paper-")
        .tempdir()
        .context("cannot make a temporary directory; set TMPDIR to a writable one")?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let is_quick = args.measured.quick;
    let sizes = |which: Which, quick: u64| {
        let all = which.lines().into_iter().map(|line| line.kb << 10);
        if is_quick { vec![quick] } else { all.collect::<Vec<u64>>() }
    };
    let mut settings = Settings::study(&args.accelerator, sizes(Which::Two, 8 << 10))?;
    (settings.rounds, settings.seconds) = if is_quick { (1, 1) } else { (3, 2) };
    settings.rounds = args.rounds.unwrap_or(settings.rounds);
    settings.seconds = args.seconds.unwrap_or(settings.seconds);
    let windows = if is_quick { Windows::QUICK } else { Windows::SHORT };
    let mut results = Results::new(KIND);
    let site = Site::new(directory.path(), &settings, args.provider.as_deref(), &mut results)?;
    let speed = speed::Settings {
        bytes: sizes(Which::One, 16 << 10),
        rounds: settings.rounds,
        seconds: settings.seconds,
        accelerator: settings.accelerator.clone(),
        hardware: settings.hardware,
        processes: args::threads(None),
    };
    if let Some(load) = load_average() {
        results.settings.insert(claims::LOAD.into(), json!(load));
    }
    results.settings.insert("speed_processes".into(), json!(speed.processes));
    let mut lab = Lab::new(results, &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        speed::measure(lab, &speed, &site)?;
        kernel::measure(lab, &speed.bytes, speed.rounds, speed.seconds);
        site.pages(lab, &settings)?;
        phases::measure(lab, &site, &settings.sizes, settings.seconds)
    })?;
    let mut results = lab.results;
    results.skipped.dedup();
    Ok(results)
}

/// Processes that ran or wanted to in the last minute, on average.
fn load_average() -> Option<f64> {
    std::fs::read_to_string("/proc/loadavg").ok()?.split(' ').next()?.parse().ok()
}

/// The release of the running kernel.
fn kernel_version() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", release.trim())
}

/// Phases of a page.
pub const PHASES: usize = page_server::Phase::ALL.len();

/// The client of pages.
pub const CLIENT: Load = Load::Ab;
