//! The program `wattlock`: flags in, library calls, reports out.
#![forbid(unsafe_code)]

/// Says something on standard error. Unlike `eprintln!`, it does not panic when nobody listens: what
/// was done is done, and the exit code tells.
macro_rules! tell {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        // In one piece, so that what parallel programs say does not mix.
        let text = format!($($text)*) + "\n";
        let _ = std::io::stderr().write_all(text.as_bytes());
    }};
}

mod accelerators;
mod args;
mod bench;
mod calibrate;
mod cipher;
mod clocks;
mod date;
mod devices;
mod doctor;
mod documents;
mod energy;
mod exit;
mod files;
mod hash;
mod inspect;
mod keygen;
mod keys;
mod measure;
mod metrics;
mod progress;
mod provider;
mod rekey;
mod replace;
mod report;
mod restore;
mod sefps;
mod signals;
mod simulate;
mod stream;
mod summary;
mod velocity;

use std::process::ExitCode;

use clap::Parser;

use args::{Bench, Cli, Command, Simulate};

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| exit::refuse(&error));
    let ended = match cli.command {
        Command::Protect(args) => files::protect(&args),
        Command::Unprotect(args) => files::unprotect(&args),
        Command::Verify(args) => files::verify(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Rekey(args) => rekey::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Stream(args) => stream::run(&args),
        Command::Cipher(args) => cipher::run(&args),
        Command::Hash(args) => hash::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Bench(Bench::Ciphers(args)) => bench::ciphers::run(&args),
        Command::Bench(Bench::Blocks(args)) => bench::blocks::run(&args),
        Command::Bench(Bench::Files(args)) => bench::files::run(&args),
        Command::Bench(Bench::Stream(args)) => bench::stream::run(&args),
        Command::Simulate(Simulate::Lecpaes(args)) => simulate::lecpaes::run(&args),
        Command::Simulate(Simulate::Policies(args)) => simulate::policies::run(&args),
        Command::Bench(Bench::Https(args)) => bench::https::run(&args),
        Command::Provider(args) => provider::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Completions(args) => documents::completions(&args),
        Command::Man(args) => documents::man(&args),
    };
    exit::leave(ended.unwrap_or_else(|error| exit::say(&error)))
}
