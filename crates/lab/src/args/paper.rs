//! Arguments of `wattlock-lab paper`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use wattlock_gpu::Named;
use wattlock_host::flags::{Clocks, DEVICES, Devices, Meters};
use wattlock_host::values::{from_to, parse_size};

use super::bench::parse_accelerator;
use crate::simulation::Experiment;

/// Compare what a paper prints with our numbers: each table, figure and claim.
///
/// Each row says what is printed, what we have, where ours is from, and whether it is held. Fails
/// with exit code 1 if a row is missed.
#[derive(Debug, Subcommand)]
pub enum Paper {
    Lecpaes(PaperLecpaes),
    Eeca(PaperEeca),
    Sefps(PaperSefps),
    Ciphers(PaperCiphers),
    Blocks(PaperBlocks),
}

/// LECPAES: energy and throughput of streams under a clock that follows the window.
///
/// Simulates the paper's experiment in virtual time on a model of its machine; those joules are
/// modelled. Then runs it here: 12,000 users at seven latencies through CS and CP, and, with a GPU in
/// --device, through GP and LECPAES. That takes some minutes.
#[derive(Debug, Args)]
pub struct PaperLecpaes {
    /// Seed for the order of the message lengths
    #[arg(long, value_name = "N", default_value_t = Experiment::SEED)]
    pub seed: u64,
    /// Number of users that are measured, each with a key and one message
    #[arg(long, value_name = "N", default_value_t = 12_000)]
    #[arg(value_parser = from_to(1_u32, 1_000_000))]
    pub users: u32,
    /// Size of the window that is measured, in bytes (suffix K, M or G)
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    pub window: u64,
    /// Verify all outputs within the measured time, not only a sample after it
    #[arg(long)]
    pub check_all: bool,
    /// CPU threads of CP [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    /// Also run GP and LECPAES on this GPU, such as cuda:0; see `wattlock devices` [default: none]
    #[arg(long, value_name = "NAME", value_parser = parse_gpu, help_heading = DEVICES)]
    pub device: Option<String>,
    #[command(flatten)]
    pub measured: Measured,
}

/// What is measured for a comparison, and where it goes.
#[derive(Debug, Args)]
pub struct Measured {
    /// Take a quick look; rows that are measured have no verdict
    #[arg(long, conflicts_with_all = ["no_live", "measured"])]
    pub quick: bool,
    /// Measure nothing: compare models and printed numbers only
    #[arg(long, conflicts_with = "measured")]
    pub no_live: bool,
    /// Read the measurements from FILE, which an earlier run wrote with --json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub measured: Option<PathBuf>,
    /// Write the comparison as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// SEFPS: files under SHA3-256 and parallel AES, on CPU and GPU.
///
/// Adds up the stages that the paper prints. Encrypts and decrypts files of the paper's 14 sizes by each
/// of its algorithms, with its kind of kernels and with the best; without a GPU, its GPU algorithms run
/// by OpenCL on the CPU if that is installed, and rows say so.
#[derive(Debug, Args)]
pub struct PaperSefps {
    #[command(flatten)]
    pub measured: Measured,
    /// Run N rounds; at most 3 with --quick, which takes the three smallest files
    #[arg(long, value_name = "N", default_value_t = Self::ROUNDS)]
    #[arg(value_parser = from_to(1, u16::MAX))]
    pub rounds: u16,
    /// Put the files below DIR; in a memory file system, disk speed does not count
    #[arg(long, default_value = "/dev/shm", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_usize, 256))]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    #[command(flatten)]
    pub devices: Devices,
}

impl PaperSefps {
    /// Rounds by default.
    pub const ROUNDS: u16 = 7;
}

/// EECA: AES for HTTPS by instruction set and accelerator, scheduled by size.
///
/// Reckons Tables 1 and 2 by models in virtual time, whose constants are fitted to the columns of
/// software, instruction set and accelerator. Then measures both tables and Figure 3 on this
/// machine, with openssl speed, and with nginx and ab.
#[derive(Debug, Args)]
pub struct PaperEeca {
    /// Measure each contender for N seconds per round [default: 2; with --quick 1]
    #[arg(long, value_name = "SECONDS", value_parser = from_to(1_u16, 600))]
    pub seconds: Option<u16>,
    /// Run N rounds [default: 3; with --quick 1]
    #[arg(long, value_name = "N", value_parser = from_to(1, u16::MAX))]
    pub rounds: Option<u16>,
    /// Load the provider from FILE [default: libwattlock_provider.so in this program's folder]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub provider: Option<PathBuf>,
    /// Let the provider use this accelerator: simulated, or a device that `wattlock devices` shows
    #[arg(long, value_name = "DEVICE", default_value = "simulated", value_parser = parse_accelerator)]
    pub accelerator: String,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    #[command(flatten)]
    pub measured: Measured,
}

/// Serve pages over TLS and say where the time goes; `paper eeca` starts it.
#[derive(Debug, Args)]
pub struct ServePages {
    /// Directory with cert.pem, key.pem and pages/
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Cipher suite of TLS 1.2, by OpenSSL's name
    #[arg(long)]
    pub suite: String,
}

/// Extended blocks: AES-CTR with a call for 16 bytes or for up to 4 KB, on CPU and GPU.
///
/// Measures the study's listing with 1, 4 and 8 threads, other forms of it to find out why larger
/// blocks gain, our kernels, and the first GPU. Takes minutes; --quick takes seconds.
#[derive(Debug, Args)]
pub struct PaperBlocks {
    /// Measure each contender N times
    #[arg(long, value_name = "N", default_value_t = 15)]
    #[arg(value_parser = from_to(1, u16::MAX))]
    pub rounds: u16,
    /// Do a form of the listing under a tracer: for the program itself
    #[arg(long, hide = true, num_args = 3, value_names = ["FORM", "BYTES", "BYTES"])]
    pub count_steps: Vec<String>,
    #[command(flatten)]
    pub measured: Measured,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    /// Measure on this GPU, such as cuda:0; see `wattlock devices` [default: the first]
    #[arg(long, value_name = "NAME", value_parser = parse_gpu, help_heading = DEVICES)]
    pub device: Option<String>,
}

/// Six ciphers: joules a byte of serial and parallel ciphers, at the default clock and a lower one.
///
/// Measures RC4, RC4A, Blowfish and their parallel forms, encrypting and decrypting. The headline
/// takes a meter and clocks that can be set: `--clocks default,low --set-clocks`.
#[derive(Debug, Args)]
pub struct PaperCiphers {
    /// Measure each contender N times
    #[arg(long, value_name = "N", default_value_t = 41)]
    #[arg(value_parser = from_to(1, u16::MAX))]
    pub rounds: u16,
    /// Use at most N threads in parallel ciphers [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub measured: Measured,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
}

/// A GPU, by the name that `wattlock devices` shows.
fn parse_gpu(text: &str) -> Result<String, String> {
    match Named::parse(text) {
        Some(_) => Ok(text.to_owned()),
        None => Err(format!("a GPU is {}; see `wattlock devices`", Named::forms())),
    }
}
