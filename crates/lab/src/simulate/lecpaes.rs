//! `wattlock-lab simulate lecpaes`: the LECPAES paper's experiment in virtual time.

use std::process::ExitCode;

use anyhow::Context;
use wattlock_host::exit::{self, Ended};
use wattlock_report::columns::Columns;

use super::lecpaes_document::document;
use crate::args;
use crate::outlet::Outlet;
use crate::simulation::platform::MIB;
use crate::simulation::{Algorithm, Experiment, Run};

/// `wattlock-lab simulate lecpaes`.
pub fn run(args: &args::SimulateLecpaes) -> Ended {
    let outlet = Outlet::open(args.json.as_deref())?;
    let (experiment, algorithms) = asked(args)?;
    let runs = experiment
        .grid(&algorithms, &args.latency)
        .with_context(|| "the window does not hold the longest message".to_owned())?;
    outlet.write(&text(&experiment, &runs), &document(&experiment, &runs))?;
    Ok(ExitCode::SUCCESS)
}

/// What the flags ask for.
fn asked(args: &args::SimulateLecpaes) -> anyhow::Result<(Experiment, Vec<Algorithm>)> {
    if args.window < Experiment::LONGEST {
        return Err(exit::usage(format!(
            "a window of {} bytes cannot hold the longest message ({} bytes); choose a larger \
             --window",
            args.window,
            Experiment::LONGEST
        )));
    }
    let users = usize::try_from(args.users)?;
    let experiment = Experiment { users, window: args.window, seed: args.seed };
    let algorithms = args.algorithm.iter().filter_map(|name| Algorithm::named(name));
    Ok((experiment, algorithms.collect()))
}

fn text(experiment: &Experiment, runs: &[Run]) -> String {
    let bytes: u64 = experiment.messages().iter().sum();
    let mut text = format!(
        "{} users with a message of 35 to 150 KiB each, {:.2} MiB in all; window {:.2} MiB; seed {}\n\
         {MODEL}\n",
        experiment.users,
        bytes as f64 / MIB,
        experiment.window as f64 / MIB,
        experiment.seed,
    );
    text += &table(runs);
    text
}

/// Stands over every output.
const MODEL: &str = "virtual time on a model of the paper's machine (Tesla K20M, two Xeon E5-2640 v2); joules are \
     MODELLED, NOT MEASURED";

fn table(runs: &[Run]) -> String {
    let mut table = Columns::new("<>");
    table.row([
        "algorithm",
        "latency µs",
        "seconds",
        "J (modelled)",
        "MiB/s",
        "retransmissions",
        "clock calls",
        "p50 ms",
        "p99 ms",
    ]);
    for Run { algorithm, latency_us, outcome } in runs {
        let ms = |share| format!("{:.2}", outcome.delay_ns(share).unwrap_or(0) as f64 / 1e6);
        table.row([
            algorithm.to_string(),
            latency_us.to_string(),
            format!("{:.3}", outcome.elapsed_ns as f64 / 1e9),
            format!("{:.2}", outcome.model_joules),
            format!("{:.2}", outcome.rate() / MIB),
            format!("{:.5}", outcome.retransmission_rate()),
            outcome.clock_calls.to_string(),
            ms(0.5),
            ms(0.99),
        ]);
    }
    format!(
        "\n{table}\nretransmissions are for each message; p50 and p99 are delays from the first \
         attempt to submit a message until it is sealed\n"
    )
}
