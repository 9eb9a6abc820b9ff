//! What `wattlock-lab paper sefps` measures on this machine.

use anyhow::Context;
use wattlock_host::signals;
use wattlock_report::results::Results;

use super::future_runs;
use super::runs::Bench;
use crate::args;
use crate::bench::lab::{Lab, Windows};

/// Measures all that the flags ask for.
///
/// # Errors
/// A folder without room, a device that is not here, a file that does not come back.
pub fn measure(args: &args::PaperSefps) -> anyhow::Result<Results> {
    let directory = tempfile::Builder::new()
        .prefix("wattlock-bench-")
        .tempdir_in(&args.dir)
        .with_context(|| format!("cannot write to {}; choose another --dir", args.dir.display()))?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let bench = Bench::new(directory.path(), args)?;
    let windows = if args.measured.quick { Windows::QUICK } else { Windows::LONG };
    let mut lab = Lab::new(bench.results(args), &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        bench.files(lab)?;
        future_runs::measure(lab, &bench)
    })?;
    let mut results = lab.results;
    bench.end(&mut results);
    Ok(results)
}
