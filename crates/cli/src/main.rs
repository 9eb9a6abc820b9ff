//! The program `wattlock`: flags in, library calls, reports out.
#![forbid(unsafe_code)]

#[macro_use(tell, say)]
extern crate wattlock_host;

mod args;
mod calibrate;
mod devices;
mod doctor;
mod dry_run;
mod files;
mod inspect;
#[cfg(feature = "kafka")]
mod kafka;
mod keygen;
mod keys;
mod lock;
mod measure;
mod provider;
mod rekey;
mod restore;
mod shard;
mod stores;
mod stream;
mod velocity;
mod wrong_command;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};
use wattlock_host::{drivers, exit, guardian, program, report};

use args::{Cli, Command};

/// That of musl gives each large piece back to the system at once.
#[cfg(target_env = "musl")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    program::start("wattlock");
    if let Some(ended) = guardian::run_if_asked().or_else(drivers::run_if_asked) {
        return ended;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let args: Vec<_> = std::env::args_os().collect();
            match wrong_command::advice(&args, error.kind()) {
                Some(advice) => return exit::say(&exit::usage(advice)),
                None => exit::refuse(&error),
            }
        }
    };
    let ended = match cli.command {
        Command::Protect(args) => files::protect(&args),
        Command::Unprotect(args) => files::unprotect(&args),
        Command::Verify(args) => files::verify::run(&args),
        Command::Inspect(args) => inspect::run(&args),
        Command::Rekey(args) => rekey::run(&args),
        Command::Keygen(args) => keygen::run(&args),
        Command::Stream(args) => stream::run(&args),
        #[cfg(feature = "kafka")]
        Command::Kafka(args) => kafka::run(&args),
        Command::Measure(args) => measure::run(&args),
        Command::Devices(args) => devices::run(&args),
        Command::Calibrate(args) => calibrate::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Restore(args) => restore::run(&args),
        Command::Provider(args) => provider::run(&args),
        Command::Report(args) => report::run(&args),
        Command::Completions(args) => args.run(Cli::command()),
        Command::Man(args) => args.run(Cli::command()),
    };
    exit::leave(ended.unwrap_or_else(|error| exit::say(&error)))
}
