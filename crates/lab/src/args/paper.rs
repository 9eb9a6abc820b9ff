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
/// Each row has the printed number, ours, its source, the rule that compares them, and a verdict:
/// held, missed, exempt or not here. The exit code is 1 if a row is missed. `wattlock-lab report
/// FILE -o PAGE.html` draws what --json FILE wrote as a page to browse.
#[derive(Debug, Subcommand)]
pub enum Paper {
    Lecpaes(PaperLecpaes),
    Eeca(PaperEeca),
    Sefps(PaperSefps),
    Ciphers(PaperCiphers),
    Blocks(PaperBlocks),
}

/// LECPAES: stream encryption on a GPU whose clock follows the load.
///
/// Simulates the paper's experiment in virtual time, with constants fitted to its figures; all
/// joules are modelled. Then measures 12,000 users at seven latencies with CS (one CPU thread) and
/// CP (all CPU threads), and, with --device, GP (GPU) and LECPAES (GPU, clock by window). Takes
/// about five minutes; --no-live takes seconds.
///
/// With --device and --set-clocks, LECPAES sets that GPU's clocks, too; that takes root. Without
/// --set-clocks, it counts what it would set.
#[derive(Debug, Args)]
pub struct PaperLecpaes {
    /// Seed of the simulation, for the order of the message lengths
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
    /// Measure briefly; measured rows are exempt, not held or missed
    #[arg(long, conflicts_with_all = ["no_live", "measured"])]
    pub quick: bool,
    /// Measure nothing: compare models and printed numbers only; options of the measurement do nothing
    #[arg(long, conflicts_with = "measured")]
    pub no_live: bool,
    /// Measure nothing: take the measurements of FILE, which an earlier run wrote with --json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub measured: Option<PathBuf>,
    /// Write the comparison as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// SEFPS: file encryption with SHA3-256 and parallel AES, on CPU and GPU.
///
/// Compares a model that adds up the paper's stages. Then encrypts and decrypts files of its 14 sizes
/// with its eight algorithms, with kernels like the paper's and with Wattlock's. Without a GPU, OpenCL
/// on the CPU runs the GPU algorithms, and their rows say so. Takes minutes; --no-live takes seconds.
/// Five rows of the model are missed on every machine, so that the exit code is 1.
///
/// Names of algorithms: C, G or H for CPU, GPU or both; S or P for serial or parallel; P or UP for
/// protect or unprotect: CSP, CPP, GPP, HPP, CSUP, CPUP, GPUP, HPUP.
#[derive(Debug, Args)]
pub struct PaperSefps {
    #[command(flatten)]
    pub measured: Measured,
    /// Measure N times and report the median
    ///
    /// With --quick: at most 3 times, and the three smallest files only.
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

/// EECA: AES for HTTPS on instruction set and accelerator, chosen by request size.
///
/// Computes Tables 1 and 2 by models fitted to the columns of software, instruction set and
/// accelerator. Then measures both tables and Figure 3 with openssl speed, nginx and ab, as PATH
/// finds them. Rows of a program that is not installed are not here. Takes about nine minutes;
/// --no-live takes a second.
#[derive(Debug, Args)]
pub struct PaperEeca {
    /// Measure each case for N seconds per round [default: 2; with --quick 1]
    #[arg(long, value_name = "SECONDS", value_parser = from_to(1_u16, 600))]
    pub seconds: Option<u16>,
    /// Measure N times and report the median [default: 3; with --quick 1]
    #[arg(long, value_name = "N", value_parser = from_to(1, u16::MAX))]
    pub rounds: Option<u16>,
    /// Load the provider from FILE [default: the one installed with this program]
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

/// Extended blocks: AES-CTR with 16 bytes or up to 4 KB per call, on CPU and GPU.
///
/// Measures the paper's code with 1, 4 and 8 threads, variants of it that show why larger blocks are
/// faster, Wattlock's kernels, and a GPU. Takes minutes; --quick takes seconds.
#[derive(Debug, Args)]
pub struct PaperBlocks {
    /// Measure N times and report the median
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

/// Six ciphers: energy per byte of serial and parallel ciphers, at two clocks.
///
/// Measures RC4, RC4A, Blowfish and their parallel forms (PARC4, PARC4-I, PBlock), both directions.
/// The paper's main claim, parallel at a low clock against serial at the default, needs an energy
/// meter and `--clocks default,low --set-clocks`. Takes minutes; --quick takes seconds.
#[derive(Debug, Args)]
pub struct PaperCiphers {
    /// Measure N times and report the median
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
