//! Arguments of `wattlock-lab sefps`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use wattlock_host::flags::{EXIT_CODES, Places};
use wattlock_host::values::from_to;

use super::Spread;

/// Encrypt files as the SEFPS study does (forgeable: for reproduction only).
///
/// Containers have no header: unprotect needs the same --key-file, --cipher and --iv as protect.
#[derive(Debug, Subcommand)]
pub enum Sefps {
    Protect(SefpsProtect),
    Unprotect(SefpsUnprotect),
}

/// Encrypt files and their SHA3-256 digests with AES-ECB or AES-CTR.
///
/// FILE becomes FILE.sefps.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
#[command(
    override_usage = "wattlock-lab sefps protect --key-file <FILE> --cipher <NAME> [OPTIONS] [FILE]..."
)]
pub struct SefpsProtect {
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub keyed: Keyed,
    /// Choose what encrypts, as the study names it [default: overlapped]
    ///
    /// csp: one thread, cpp: all threads, gpp: the GPU, hpp: CPU and GPU, in the study's ratio.
    /// overlapped, which the study does not have, hashes and encrypts at once.
    #[arg(long, value_parser = ["csp", "cpp", "gpp", "hpp", "overlapped"])]
    pub variant: Option<String>,
    #[command(flatten)]
    pub run: SefpsRun,
}

/// Decrypt files and check their digests; FILE.sefps becomes FILE.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
#[command(
    override_usage = "wattlock-lab sefps unprotect --key-file <FILE> --cipher <NAME> [OPTIONS] [FILE]..."
)]
pub struct SefpsUnprotect {
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub keyed: Keyed,
    /// Choose what decrypts, as the study names it [default: overlapped]
    ///
    /// csup: one thread, cpup: all threads, gpup: the GPU, hpup: CPU and GPU in the study's ratio.
    /// overlapped, which the study does not have, decrypts and hashes at once.
    #[arg(long, value_parser = ["csup", "cpup", "gpup", "hpup", "overlapped"])]
    pub variant: Option<String>,
    #[command(flatten)]
    pub run: SefpsRun,
}

/// The key, and how it is used.
#[derive(Debug, Args)]
pub struct Keyed {
    /// Read the key from FILE: 16, 24 or 32 bytes
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// Cipher, such as aes-128-ecb (the study's) or aes-128-ctr; containers do not name it
    #[arg(long, value_name = "NAME")]
    pub cipher: Option<String>,
    /// First counter block of CTR: 16 bytes in hexadecimal; use each only once per key
    ///
    /// The container does not hold it.
    #[arg(long, value_name = "HEX")]
    pub iv: Option<String>,
    /// Use this AES kernel (the study's: aes-ttable-vartime) [default: the fastest constant-time one]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
}

/// How a run is done and what it says.
#[derive(Debug, Args)]
pub struct SefpsRun {
    #[command(flatten)]
    pub spread: Spread,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    /// Print a summary as JSON; to standard error if standard output holds data
    #[arg(long)]
    pub json: bool,
    /// Print errors only: no progress, no summary
    #[arg(short, long)]
    pub quiet: bool,
}
