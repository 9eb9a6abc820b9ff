//! The program `wattlock-lab`: benchmarks, reproductions of papers, and raw primitives.
#![forbid(unsafe_code)]

#[macro_use(tell, say)]
extern crate wattlock_host;

mod args;
mod bench;
mod cipher;
mod engines;
mod hash;
mod lock;
mod outlet;
mod paper;
mod sefps;
mod simulate;
mod simulation;
mod study;
mod wattlock;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use wattlock_host::{drivers, exit, guardian, program, report};

use args::{Bench, Cli, Command, Paper, Sefps, Simulate};

fn main() -> ExitCode {
    program::start("wattlock-lab");
    if let Some(ended) = guardian::run_if_asked().or_else(drivers::run_if_asked) {
        return ended;
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| exit::refuse(&error));
    let ended = match cli.command {
        Command::Bench(Bench::Ciphers(args)) => bench::ciphers::run(&args),
        Command::Bench(Bench::Files(args)) => bench::files::run(&args),
        Command::Bench(Bench::Objects(args)) => bench::objects::run(&args),
        Command::Bench(Bench::Python(args)) => bench::python::run(&args),
        Command::Bench(Bench::Stream(args)) => bench::stream::run(&args),
        Command::Bench(Bench::Https(args)) => bench::https::run(&args),
        Command::Bench(Bench::Provider(args)) => bench::provider::run(&args),
        Command::Paper(Paper::Lecpaes(args)) => paper::lecpaes::run(&args),
        Command::Paper(Paper::Eeca(args)) => paper::eeca::run(&args),
        Command::Paper(Paper::Sefps(args)) => paper::sefps::run(&args),
        Command::Paper(Paper::Ciphers(args)) => paper::ciphers::run(&args),
        Command::Paper(Paper::Blocks(args)) => paper::blocks::run(&args),
        Command::Simulate(Simulate::Lecpaes(args)) => simulate::lecpaes::run(&args),
        Command::Simulate(Simulate::Policies(args)) => simulate::policies::run(&args),
        Command::Cipher(args) => cipher::run(&args),
        Command::Hash(args) => hash::run(&args),
        Command::Sefps(Sefps::Protect(args)) => sefps::protect(&args),
        Command::Sefps(Sefps::Unprotect(args)) => sefps::unprotect(&args),
        Command::ServePages(args) => paper::eeca::serve_pages(&args),
        Command::ServeRustls(args) => bench::https::serve_rustls(&args),
        Command::Report(args) => report::run(&args),
        Command::Completions(args) => args.run(Cli::command()),
        Command::Man(args) => args.run(Cli::command()),
    };
    exit::leave(ended.unwrap_or_else(|error| exit::say(&error)))
}
