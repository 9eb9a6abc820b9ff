//! Arguments of `wattlock-lab sefps`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use wattlock_host::flags::{EXIT_CODES, Places};

use super::Spread;

/// Protect files as the study SEFPS does: for reproduction only, it can be forged.
///
/// The containers have no header: unprotect takes the same --key-file, --cipher and --iv as protect.
#[derive(Debug, Subcommand)]
pub enum Sefps {
    Protect(SefpsProtect),
    Unprotect(SefpsUnprotect),
}

/// Protect files: SHA3-256 under AES in ECB or CTR; FILE becomes FILE.sefps.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct SefpsProtect {
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub keyed: Keyed,
    /// Who encrypts [default: overlapped]: one thread, all threads, the GPU, both in the study's
    /// ratio; or hashing and encrypting at once, which is not the study's
    #[arg(long, value_parser = ["csp", "cpp", "gpp", "hpp", "overlapped"])]
    pub variant: Option<String>,
    #[command(flatten)]
    pub run: SefpsRun,
}

/// Unprotect files; FILE.sefps becomes FILE.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct SefpsUnprotect {
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub keyed: Keyed,
    /// Who decrypts [default: overlapped], as with protect
    #[arg(long, value_parser = ["csup", "cpup", "gpup", "hpup", "overlapped"])]
    pub variant: Option<String>,
    #[command(flatten)]
    pub run: SefpsRun,
}

/// The key, and how it is used.
#[derive(Debug, Args)]
pub struct Keyed {
    /// The key: a file of 16, 24 or 32 bytes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// aes-128-ecb, as in the study's listings, aes-256-ctr, … ; nothing in a container tells it
    #[arg(long, value_name = "NAME")]
    pub cipher: Option<String>,
    /// First counter block of CTR, 16 bytes in hexadecimal digits, never twice with one key; it is
    /// not in the container
    #[arg(long, value_name = "HEX")]
    pub iv: Option<String>,
    /// Kernel of AES [default: the fastest that is constant in time]; the study's is
    /// aes-ttable-vartime
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
}

/// How a run is done and what it says.
#[derive(Debug, Args)]
pub struct SefpsRun {
    #[command(flatten)]
    pub spread: Spread,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Print a summary as JSON, on standard error if standard output is taken
    #[arg(long)]
    pub json: bool,
    /// No progress, no summary; errors only
    #[arg(short, long)]
    pub quiet: bool,
}
