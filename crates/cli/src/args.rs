//! Every flag of the program, by command; help, completions and manual pages come from here.

mod energy;
mod files;
#[cfg(feature = "kafka")]
mod kafka;
mod provider;
mod stream;

use clap::{Parser, Subcommand};
use wattlock_host::documents::{Completions, Man};
use wattlock_host::flags::{DEVICES, ENERGY, EXIT_CODES, STYLES};
use wattlock_host::report::Report;

pub use energy::{Calibrate, Devices, Doctor, Measure, Restore};
pub use files::{
    Batch, Identities, IdentitySources, Inspect, Keygen, Limits, Passphrase, Protect, Recipients,
    Rekey, Unprotect, Verify,
};
#[cfg(feature = "kafka")]
pub use kafka::Kafka;
pub use provider::{Provider, ProviderCheck, ProviderConfig, ProviderStats};
pub use stream::{Stream, parse_tenant};
pub use wattlock_host::flags::{Places, threads};

/// Encrypt files, streams and HTTPS traffic on all cores, and measure the energy of programs.
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
    #[cfg(feature = "kafka")]
    Kafka(Box<Kafka>),
    Measure(Measure),
    Devices(Devices),
    Calibrate(Calibrate),
    Doctor(Doctor),
    Restore(Restore),
    #[command(subcommand)]
    Provider(Provider),
    Report(Report),
    Completions(Completions),
    Man(Man),
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

    /// Each command that does something, by its words, and the number of its own flags.
    fn counted(command: &clap::Command, words: &str, counts: &mut Vec<(String, usize)>) {
        let words = format!("{words} {}", command.get_name());
        let flag = |arg: &&clap::Arg| !arg.is_positional() && !arg.is_hide_set();
        if !command.has_subcommands() {
            counts.push((words.clone(), command.get_arguments().filter(flag).count()));
        }
        command.get_subcommands().for_each(|sub| counted(sub, &words, counts));
    }

    #[test]
    fn the_program_stays_small() {
        let mut counts = Vec::new();
        counted(&Cli::command(), "", &mut counts);
        let flags: usize = counts.iter().map(|(_, flags)| flags).sum();
        assert!(counts.len() <= 20, "{} commands: {counts:#?}", counts.len());
        // 3 of them are --shard, of the commands that take trees.
        // A fifth are those of `stream`, which is a service.
        let most = if cfg!(feature = "kafka") { 228 } else { 198 };
        assert!(flags <= most, "{flags} flags: {counts:#?}");
    }
}
