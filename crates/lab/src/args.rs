//! Every flag of the program, by command.

mod bench;
mod devices;
mod paper;
mod raw;
mod sefps;
mod simulate;

use clap::{Parser, Subcommand};
use wattlock_host::documents::{Completions, Man};
use wattlock_host::flags::{EXIT_CODES, STYLES};
use wattlock_host::report::Report;

pub use bench::{
    Bench, BenchCiphers, BenchFiles, BenchHttps, BenchObjects, BenchProvider, BenchPython,
    BenchStream, ServeRustls, Suite,
};
pub use devices::Spread;
pub use paper::{
    Measured, Paper, PaperBlocks, PaperCiphers, PaperEeca, PaperLecpaes, PaperSefps, ServePages,
};
pub use raw::{Cipher, Hash, HashAlgorithm, Padding};
pub use sefps::{Keyed, Sefps, SefpsProtect, SefpsRun, SefpsUnprotect};
pub use simulate::{Simulate, SimulateLecpaes, SimulatePolicies};
pub use wattlock_host::flags::{Clocks, Devices, Meters, Places, threads};

/// Reproduce the papers behind Wattlock, and benchmark it against other tools.
#[derive(Debug, Parser)]
#[command(name = "wattlock-lab", version, styles = STYLES, after_help = EXIT_CODES)]
#[command(propagate_version = true, arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    #[command(subcommand)]
    Bench(Bench),
    #[command(subcommand)]
    Paper(Paper),
    #[command(subcommand)]
    Simulate(Simulate),
    Cipher(Cipher),
    Hash(Hash),
    #[command(subcommand)]
    Sefps(Sefps),
    Report(Report),
    Completions(Completions),
    Man(Man),
    #[command(hide = true)]
    ServePages(ServePages),
    #[command(hide = true)]
    ServeRustls(ServeRustls),
}

const KEYS: &str = "Keys";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
