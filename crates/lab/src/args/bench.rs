//! Arguments of `wattlock-lab bench`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use wattlock_host::flags::{Clocks, Devices, Meters};
use wattlock_host::values::{parse_accelerator, parse_page, parse_size};

use super::Spread;

/// Measure, beside the tools that are installed.
#[derive(Debug, Subcommand)]
pub enum Bench {
    Ciphers(BenchCiphers),
    Blocks(BenchBlocks),
    Files(BenchFiles),
    Stream(BenchStream),
    Https(BenchHttps),
}

/// Measure every cipher, mode and kernel, beside OpenSSL, AWS-LC and RustCrypto.
///
/// All contenders for one case take turns on the same memory. Beside their rates stand those of
/// the kernel's rounds on registers only and of a pass over the same memory, which bound them.
#[derive(Debug, Args)]
pub struct BenchCiphers {
    /// Only cases whose name contains this: "aes-256-ctr", "sha3", "parc4"
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Samples of each contender
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: u16,
    /// The most threads of cases that use several [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    #[command(flatten)]
    pub spread: Spread,
    /// A quick look: one length, 3 rounds
    #[arg(long)]
    pub quick: bool,
    /// Only what a study measured, and its printed numbers beside ours
    #[arg(long, value_enum, value_name = "STUDY")]
    pub paper: Option<Study>,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// A study whose numbers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Study {
    /// Joules per byte of six serial and parallel ciphers
    Energy,
}

/// Measure AES-CTR dealt to threads in columns, blocks, and extended blocks.
#[derive(Debug, Args)]
pub struct BenchBlocks {
    /// Lengths of the message in MB (10^6 bytes), separated by commas
    #[arg(long, value_name = "MB", value_delimiter = ',', default_value = "4,16,32")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=4096), conflicts_with = "quick")]
    pub sizes: Vec<u16>,
    /// Numbers of threads, separated by commas
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1,4,8")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Vec<u16>,
    /// Samples of each contender
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: u16,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    #[command(flatten)]
    pub spread: Spread,
    /// A quick look: 1 MB, 3 rounds
    #[arg(long)]
    pub quick: bool,
    /// Set the study's printed seconds beside ours
    #[arg(long)]
    pub paper: bool,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Protect and unprotect a file of random bytes, beside cp, age, gpg and openssl enc.
///
/// Every tool that is installed takes its turn in every round. Prints the median and the spread
/// of wall and CPU seconds, the largest memory, and ratios.
#[derive(Debug, Args)]
pub struct BenchFiles {
    /// Bytes of the file, with K, M or G for powers of 1024
    #[arg(long, default_value = "1G", value_parser = parse_size)]
    pub size: u64,
    /// Rounds
    #[arg(long, default_value_t = 7)]
    pub rounds: usize,
    /// Small files in the second part; 0 leaves it out
    #[arg(long, default_value_t = 1000)]
    pub files: usize,
    /// Bytes of each small file
    #[arg(long, default_value = "20000", value_parser = parse_size)]
    pub file_size: u64,
    /// Directory for the files; a memory file system keeps the disk out of it
    #[arg(long, default_value = "/dev/shm", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// CPU threads of wattlock
    #[arg(long)]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    #[command(flatten)]
    pub devices: Devices,
    /// A quick look: 64M, 3 rounds, 100 files; with --paper, the five smallest of its files
    #[arg(long)]
    pub quick: bool,
    /// Only what a study measured, and its printed numbers beside ours
    #[arg(long, value_enum, value_name = "STUDY", conflicts_with_all = ["size", "files", "file_size"])]
    pub paper: Option<FileStudy>,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Seal the messages of many users through a bounded window, as in the study LECPAES.
///
/// A producer waits --latency, puts a user's message of 35 to 150 KiB into the window, or counts a
/// refusal, waits twice as long and tries again. Beside the study's four algorithms runs what
/// wattlock does by default. Then the default is measured at saturation, beside the engine without
/// a window in the same run, and at half of that load.
#[derive(Debug, Args)]
pub struct BenchStream {
    /// Users, each with a key and one message
    #[arg(long, value_name = "N", default_value_t = 12_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub users: u32,
    /// Latencies in microseconds, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "100,500,1000,1500,2000,2500,3000")]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub latency: Vec<u32>,
    /// Algorithms, separated by commas
    #[arg(long, value_enum, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "cs,cp,gp,lecpaes,paced")]
    pub algorithms: Vec<StreamAlgorithm>,
    /// Bytes of the window, with K, M or G for powers of 1024
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    pub window: u64,
    /// Verify all outputs within the measured time, not a sample afterwards
    #[arg(long)]
    pub check_all: bool,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    #[command(flatten)]
    pub spread: Spread,
    /// A quick look: 200 users at most, latencies of 100 and 1000 microseconds
    #[arg(long)]
    pub quick: bool,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// How a stream is sealed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum StreamAlgorithm {
    /// One CPU thread with tables of words: CPU serial
    Cs,
    /// All CPU threads with tables of words, in rounds: CPU parallel
    Cp,
    /// The GPU at its own clock: GPU parallel
    Gp,
    /// The GPU at the clock that the window asks for
    Lecpaes,
    /// What wattlock does: AES-256-GCM, as many workers as the window asks for
    Paced,
}

/// A study of file protection whose numbers are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FileStudy {
    /// SEFPS: 14 files of 5.61 KB to 598 MB, protected and unprotected on CPU and GPU
    Sefps,
}

/// Measure nginx serving pages by HTTPS, with OpenSSL's own ciphers and with Wattlock's provider.
///
/// A server and its client are started on this machine, on one core each, and end with the bench.
/// Told are requests a second, CPU time of the server for each, and joules; beside it stands what
/// AES-256-CBC does without a server, as `openssl speed` measures it. Needs nginx, wrk and curl.
#[derive(Debug, Args)]
pub struct BenchHttps {
    /// Bytes of the pages, with K or M for powers of 1024, separated by commas [default: 1K, 2K, 4K
    /// and so on to 2M; with --quick 16K and 512K]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse_page)]
    pub sizes: Vec<u64>,
    /// Cipher suites, separated by commas [default: all]
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    pub suites: Vec<Suite>,
    /// Seconds for which each contender serves in each round [default: 2; with --quick 1]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u16).range(1..=600))]
    pub seconds: Option<u16>,
    /// Rounds [default: 3; with --quick 1]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    pub rounds: Option<u16>,
    /// The provider [default: libwattlock_provider.so beside this program]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub provider: Option<PathBuf>,
    /// Measure the newest OpenSSL, too: DIR/bin/nginx is linked to it (`make openssl` builds both)
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub openssl_newest: Option<PathBuf>,
    /// The accelerator of the provider: simulated, opencl, opencl:N, cuda or cuda:N
    #[arg(long, value_name = "DEVICE", default_value = "simulated", value_parser = parse_accelerator)]
    pub accelerator: String,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    /// A quick look: two pages, 1 round of 1 s
    #[arg(long)]
    pub quick: bool,
    /// Set the study's printed numbers beside ours, and measure its suite with ab, too, as it did
    #[arg(long)]
    pub paper: bool,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// A cipher suite that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// TLS 1.2, AES-256-CBC and SHA-384: the study's
    #[value(name = "ECDHE-RSA-AES256-SHA384")]
    CbcSha384,
    /// TLS 1.2, AES-128-CBC and SHA-256, which OpenSSL stitches
    #[value(name = "ECDHE-RSA-AES128-SHA256")]
    CbcSha256,
    /// TLS 1.2, AES-256-GCM
    #[value(name = "ECDHE-RSA-AES256-GCM-SHA384")]
    Gcm,
    /// TLS 1.3, AES-256-GCM
    #[value(name = "TLS_AES_256_GCM_SHA384")]
    Tls13,
}
