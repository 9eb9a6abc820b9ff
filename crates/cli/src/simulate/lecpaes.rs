//! `wattlock simulate lecpaes`: the LECPAES paper's experiment in virtual time.

use std::fmt::Write;
use std::process::ExitCode;

use anyhow::Context;
use wattlock_stream::simulate::platform::MIB;
use wattlock_stream::simulate::{Algorithm, Comparison, Experiment, Run, Seed};

use super::lecpaes_document::Document;
use super::{Outlet, lecpaes_paper};
use crate::args;
use crate::exit::{self, Ended};

/// `wattlock simulate lecpaes`.
pub fn run(args: &args::SimulateLecpaes) -> Ended {
    let outlet = Outlet::open(args.json.as_deref())?;
    let (experiment, algorithms) = asked(args)?;
    let runs = experiment
        .grid(&algorithms, &args.latency)
        .with_context(|| "the window does not hold the longest message".to_owned())?;
    let comparison = match args.paper {
        true => Comparison::new(&runs, Seed::of(args.seed)),
        false => None,
    };
    let document = Document::new(&experiment, &runs, comparison.as_ref());
    outlet.write(&text(&experiment, &runs, comparison.as_ref()), &document)?;
    if let Some(comparison) = comparison.filter(|comparison| !comparison.is_met()) {
        tell!("wattlock: {}", lecpaes_paper::missed(&comparison));
        return Ok(exit::FAILURE.into());
    }
    Ok(ExitCode::SUCCESS)
}

/// What the flags ask for.
fn asked(args: &args::SimulateLecpaes) -> anyhow::Result<(Experiment, Vec<Algorithm>)> {
    if args.window < Experiment::LONGEST {
        return Err(exit::usage(format!(
            "a window of {} bytes does not hold the longest message, which has {}; choose a larger \
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

fn text(experiment: &Experiment, runs: &[Run], comparison: Option<&Comparison>) -> String {
    let bytes: u64 = experiment.messages().iter().sum();
    let mut text = format!(
        "{} users with a message of 35 to 150 KiB each, {:.2} MiB in all; window {:.2} MiB; seed {}\n\
         {MODEL}\n",
        experiment.users,
        bytes as f64 / MIB,
        experiment.window as f64 / MIB,
        experiment.seed,
    );
    match comparison {
        Some(comparison) => text += &lecpaes_paper::text(comparison, runs),
        None => text += &table(runs),
    }
    text
}

/// Stands over every output.
const MODEL: &str = "virtual time on a model of the paper's machine (Tesla K20M, two Xeon E5-2640 v2); joules are \
     MODELLED, NOT MEASURED";

fn table(runs: &[Run]) -> String {
    let mut text = format!(
        "\n{:<17}{:>11}{:>11}{:>14}{:>9}{:>17}{:>13}{:>10}{:>10}\n",
        "algorithm",
        "latency µs",
        "seconds",
        "J (modelled)",
        "MiB/s",
        "retransmissions",
        "clock calls",
        "p50 ms",
        "p99 ms",
    );
    for Run { algorithm, latency_us, outcome } in runs {
        let ms = |share| outcome.delay_ns(share).unwrap_or(0) as f64 / 1e6;
        let _ = writeln!(
            text,
            "{algorithm:<17}{latency_us:>11}{:>11.3}{:>14.2}{:>9.2}{:>17.5}{:>13}{:>10.2}{:>10.2}",
            outcome.elapsed_ns as f64 / 1e9,
            outcome.model_joules,
            outcome.rate() / MIB,
            outcome.retransmission_rate(),
            outcome.clock_calls,
            ms(0.5),
            ms(0.99),
        );
    }
    text + "\nretransmissions are for each message; p50 and p99 are delays from the first attempt to \
            submit a message until it is sealed\n"
}
