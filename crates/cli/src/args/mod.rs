//! Every flag of the program, by command; help, completions and manual pages come from here.

mod bench;
mod energy;
mod files;
mod provider;
mod raw;
mod simulate;
mod stream;
mod values;

use std::path::PathBuf;

use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueHint};

pub use bench::{
    Bench, BenchBlocks, BenchCiphers, BenchFiles, BenchHttps, BenchStream, FileStudy,
    StreamAlgorithm, Study, Suite,
};
pub use energy::{Calibrate, Clock, Clocks, Devices, Doctor, Measure, Meters, Restore};
pub use files::{
    Batch, ContainerFormat, GoalName, Identities, Inspect, Keygen, Limits, Passphrase, Places,
    PolicyName, Protect, Recipients, Rekey, Run, Sefps, Spread, Unprotect, UntoldFormat, Verify,
    VerifyName,
};
pub use provider::{
    Provider, ProviderCheck, ProviderConfig, ProviderMigration, ProviderStats, Switch,
};
pub use raw::{Cipher, Hash, HashAlgorithm, Padding};
pub use simulate::{Simulate, SimulateLecpaes, SimulatePolicies};
pub use stream::{FramingName, Stream, VelocityName};

/// Protects files with authenticated encryption, on all cores, as fast as memory allows.
#[derive(Debug, Parser)]
#[command(version, styles = STYLES, after_help = EXIT_CODES, propagate_version = true)]
#[command(arg_required_else_help = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    Protect(Protect),
    Unprotect(Unprotect),
    Verify(Verify),
    Inspect(Inspect),
    Rekey(Rekey),
    Keygen(Keygen),
    Stream(Box<Stream>),
    Cipher(Cipher),
    Hash(Hash),
    Measure(Measure),
    Devices(Devices),
    Calibrate(Calibrate),
    Doctor(Doctor),
    Restore(Restore),
    #[command(subcommand)]
    Bench(Bench),
    #[command(subcommand)]
    Simulate(Simulate),
    #[command(subcommand)]
    Provider(Provider),
    Report(Report),
    Completions(Completions),
    Man(Man),
}

/// Make one page of figures from results of `wattlock bench`, `measure` and `simulate`.
///
/// The page is a single HTML file, without scripts and without anything from elsewhere. Every figure
/// names its machine and versions; what a model gave is hatched, and is never ranked.
#[derive(Debug, Args)]
pub struct Report {
    /// Results: what `wattlock bench --json` or `wattlock simulate --json` wrote, or the JSON line of
    /// `wattlock measure --json`
    #[arg(value_name = "RESULT.json", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Write the page to FILE, replacing it, or "-" for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
}

/// Print the completions for a shell.
#[derive(Debug, Args)]
pub struct Completions {
    /// The shell
    pub shell: clap_complete::Shell,
}

/// Print the manual page, or write one per command into a directory.
#[derive(Debug, Args)]
pub struct Man {
    /// Write wattlock.1, wattlock-protect.1, … here
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: Option<PathBuf>,
}

const KEYS: &str = "Keys";

const ENERGY: &str = "Energy";

const DEVICES: &str = "Devices";

const SEFPS: &str = "Only with --format sefps, which is for study";

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong key or tampered \
                          input, 4 a required measurement is not available, 128 + n ended by \
                          signal n.";

const STYLES: Styles = Styles::styled()
    .header(AnsiColor::Green.on_default().bold())
    .usage(AnsiColor::Green.on_default().bold())
    .literal(AnsiColor::Cyan.on_default().bold())
    .placeholder(AnsiColor::Cyan.on_default());

/// Threads to work with: those asked for, or one for each CPU.
pub fn threads(wanted: Option<u16>) -> usize {
    let all = || std::thread::available_parallelism().map_or(1, usize::from);
    wanted.map_or_else(all, usize::from)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }
}
