//! Arguments of `wattlock-lab bench`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use wattlock_engine::Simulated;
use wattlock_gpu::Named;
use wattlock_host::flags::{Clocks, Devices, Meters};
use wattlock_host::values::{from_to, parse_page, parse_size, parse_size_above_zero};

use super::Spread;

/// Benchmark Wattlock against the tools that are installed.
#[derive(Debug, Subcommand)]
pub enum Bench {
    Ciphers(BenchCiphers),
    Files(BenchFiles),
    Objects(BenchObjects),
    Python(BenchPython),
    Stream(BenchStream),
    Https(BenchHttps),
    Provider(BenchProvider),
}

/// Benchmark ciphers, modes and kernels against OpenSSL, AWS-LC and other libraries.
///
/// All contenders must produce the same output and are timed in turn. The report also gives three upper
/// limits: the instruction set, the rounds without memory, and a pass over memory.
#[derive(Debug, Args)]
pub struct BenchCiphers {
    /// Run only cases with a word in the name that starts with TEXT: "aes-256-ctr", "sha3" [default: all]
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Measure N times and report the median
    #[arg(long, value_name = "N", default_value_t = 15)]
    #[arg(value_parser = from_to(1, u16::MAX))]
    pub rounds: u16,
    /// Use at most N threads in multi-threaded cases [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    #[command(flatten)]
    pub spread: Spread,
    /// Take a quick look: one or two lengths, at most 3 rounds
    #[arg(long)]
    pub quick: bool,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Also write the results to FILE to share them: without names of host, user or paths. An
    /// existing FILE is replaced [default: wattlock-ciphers.json]
    #[arg(long, value_name = "FILE", num_args = 0..=1)]
    #[arg(default_missing_value = "wattlock-ciphers.json")]
    pub submit: Option<PathBuf>,
}

/// Benchmark file encryption against cp, age, gpg, openssl enc, rclone, restic and 7z.
///
/// In each round, every installed tool encrypts and decrypts one large file of random bytes; then
/// many small files follow, one by one and as trees in memory and on a disk. Prints the median and spread of wall and CPU time, peak memory, and
/// ratios.
#[derive(Debug, Args)]
pub struct BenchFiles {
    /// Size of the large file in bytes (suffix K, M or G)
    #[arg(long, value_name = "BYTES", default_value = "1G", value_parser = parse_size_above_zero)]
    pub size: u64,
    /// Measure N times and report the median
    #[arg(long, value_name = "N", default_value_t = 7)]
    #[arg(value_parser = from_to(1_usize, 65_535))]
    pub rounds: usize,
    /// Number of small files; 0 skips them and the trees
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub files: usize,
    /// Size of each small file in bytes (suffix K, M or G)
    #[arg(long, value_name = "BYTES", default_value = "20000", value_parser = parse_size)]
    pub file_size: u64,
    /// Put the files below DIR; in a memory file system, disk speed does not count
    #[arg(long, default_value = "/dev/shm", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Put the tree that is measured on a disk below DIR
    #[arg(long, default_value = ".", value_hint = ValueHint::DirPath)]
    pub disk: PathBuf,
    /// Use this age [default: the one in PATH]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::ExecutablePath)]
    pub age: Option<PathBuf>,
    /// CPU threads of wattlock [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_usize, 256))]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    #[command(flatten)]
    pub devices: Devices,
    /// Take a quick look: 64M, 3 rounds, 100 files, trees of 1000
    #[arg(long)]
    pub quick: bool,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Benchmark objects in a store on this machine against rclone crypt.
///
/// Starts versitygw, an S3 server, on this machine, where it shares the CPUs: the CPU time of the client is the
/// figure to compare.
#[derive(Debug, Args)]
pub struct BenchObjects {
    /// Size of the large object in bytes (suffix K, M or G)
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_size_above_zero)]
    pub size: u64,
    /// Number of small objects
    #[arg(long, value_name = "N", default_value_t = 1000)]
    pub files: usize,
    /// Measure N times and report the median
    #[arg(long, value_name = "N", default_value_t = 7)]
    #[arg(value_parser = from_to(1_usize, 65_535))]
    pub rounds: usize,
    /// Put files and the store below DIR
    #[arg(long, default_value = "/dev/shm", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// The S3 server
    #[arg(long, value_name = "PROGRAM", default_value = "versitygw", value_hint = ValueHint::ExecutablePath)]
    pub server: PathBuf,
    /// Use this rclone
    #[arg(long, value_name = "PROGRAM", default_value = "rclone", value_hint = ValueHint::ExecutablePath)]
    pub rclone: PathBuf,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    /// Take a quick look: 32M, 2 rounds, 50 files
    #[arg(long)]
    pub quick: bool,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
    /// Send FILE to ADDRESS without encryption, for this bench
    #[arg(long, hide = true, num_args = 2, value_names = ["FILE", "ADDRESS"])]
    pub put: Vec<PathBuf>,
}

/// Benchmark the Python package against cryptography and pyrage.
///
/// One process of Python encrypts and decrypts large data in memory and many small messages, each library in turn.
/// Prints the median and spread of wall and CPU time, and ratios.
#[derive(Debug, Args)]
pub struct BenchPython {
    /// A Python with wattlock, cryptography and pyrage
    #[arg(long, value_name = "PROGRAM", default_value = "python3", value_hint = ValueHint::ExecutablePath)]
    pub python: PathBuf,
    /// Size of the large data in bytes (suffix K, M or G)
    #[arg(long, value_name = "BYTES", default_value = "256M", value_parser = parse_size_above_zero)]
    pub size: u64,
    /// Measure N times and report the median
    #[arg(long, value_name = "N", default_value_t = 9)]
    #[arg(value_parser = from_to(1_usize, 65_535))]
    pub rounds: usize,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    /// Take a quick look: 16M, 2 rounds
    #[arg(long)]
    pub quick: bool,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Benchmark streams: many users, one bounded window.
///
/// A producer waits for --latency, then puts a user's message of 35 to 150 KiB into the window. If
/// the window is full, it counts a refusal and retries after twice the time. Seals by the default of
/// wattlock, AES-256-GCM with as many workers as the window asks for. Then measures that at
/// saturation, next to the engine without a window, and at half of that load. The algorithms of the
/// LECPAES study: `wattlock-lab paper lecpaes`.
#[derive(Debug, Args)]
pub struct BenchStream {
    /// Number of users, each with a key and one message
    #[arg(long, value_name = "N", default_value_t = 12_000)]
    #[arg(value_parser = from_to(1_u32, 1_000_000))]
    pub users: u32,
    /// Producer latencies in microseconds, separated by commas
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    #[arg(default_value = "100,500,1000,1500,2000,2500,3000")]
    #[arg(value_parser = from_to(1_u32, 1_000_000))]
    pub latency: Vec<u32>,
    /// Window size in bytes (suffix K, M or G)
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    pub window: u64,
    /// Verify all outputs within the measured time, not only a sample after it
    #[arg(long)]
    pub check_all: bool,
    /// Measure gateways, with lines through sockets and folders, beside relays, stunnel, socat and rsyslog
    #[arg(long, conflicts_with_all = ["users", "latency", "window", "check_all", "threads"])]
    pub gateway: bool,
    /// With --gateway: write folders of segments in DIR
    #[arg(long, value_name = "DIR", default_value = ".", requires = "gateway")]
    #[arg(value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
    /// Relay connections to ADDRESS until killed; --gateway starts it
    #[arg(long, value_name = "ADDRESS", hide = true)]
    pub relay_to: Option<SocketAddr>,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    /// Take a quick look: at most 200 users, latencies of 100 and 1000 microseconds
    #[arg(long)]
    pub quick: bool,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Benchmark HTTPS with nginx: OpenSSL's own ciphers against Wattlock's provider.
///
/// Also measures servers on rustls and, if go is installed, on Go's standard library. Starts a server
/// and a client on this machine, on one core each, and stops them at the end.
/// Reports requests per second, and CPU time and energy per request. Also measures AES-256-CBC
/// without a server, as `openssl speed` does. Requires nginx, wrk and curl.
#[derive(Debug, Args)]
pub struct BenchHttps {
    /// Page sizes in bytes (suffix K or M), separated by commas [default: 1K, 2K, 4K and so on to
    /// 2M; with --quick 16K and 512K]
    #[arg(long, value_name = "BYTES", value_delimiter = ',', value_parser = parse_page)]
    pub sizes: Vec<u64>,
    /// Run these cipher suites, separated by commas [default: all]
    #[arg(long, value_name = "SUITE", value_delimiter = ',')]
    pub suites: Vec<Suite>,
    /// Measure each case for N seconds per round [default: 2; with --quick 1]
    #[arg(long, value_name = "SECONDS", value_parser = from_to(1_u16, 600))]
    pub seconds: Option<u16>,
    /// Measure N times and report the median [default: 3; with --quick 1]
    #[arg(long, value_name = "N", value_parser = from_to(1, u16::MAX))]
    pub rounds: Option<u16>,
    /// Load the provider from FILE [default: the one installed with this program]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub provider: Option<PathBuf>,
    /// Also measure DIR/bin/nginx, linked to another OpenSSL (`make openssl-all` builds them); may be
    /// repeated
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub openssl: Vec<PathBuf>,
    /// Let the provider use this accelerator: simulated, or a device that `wattlock devices` shows
    #[arg(long, value_name = "DEVICE", default_value = "simulated", value_parser = parse_accelerator)]
    pub accelerator: String,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    /// Take a quick look: two page sizes, 1 round of 1 s
    #[arg(long)]
    pub quick: bool,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Serve pages by rustls; `bench https` starts it.
#[derive(Debug, Args)]
pub struct ServeRustls {
    /// Directory with cert.pem, key.pem and pages/
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub directory: PathBuf,
    /// Port of 127.0.0.1
    pub port: u16,
    /// Cipher suite, by OpenSSL's name
    pub suite: String,
}

/// Benchmark calls into libcrypto: OpenSSL's own ciphers against Wattlock's provider.
///
/// Both take turns in one process, with messages of 16 bytes to 1 MiB, whole and in parts. Reports
/// CPU time per message, the ratio, and the cases in which the provider is slower.
#[derive(Debug, Args)]
pub struct BenchProvider {
    /// Also measure with DIR/lib/libcrypto.so (`make openssl-all` builds them); may be repeated
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub openssl: Vec<PathBuf>,
    /// Load the provider from FILE [default: the one installed with this program]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub provider: Option<PathBuf>,
    /// Measure N times and report the median
    #[arg(long, value_name = "N", default_value_t = 11)]
    #[arg(value_parser = from_to(1_u16, u16::MAX))]
    pub rounds: u16,
    /// Run only cases whose name starts with TEXT: "AES-256-GCM", "AES-256-CBC decrypt" [default: all]
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Exit with 1 if a case misses its required speedup
    #[arg(long)]
    pub gate: bool,
    #[command(flatten)]
    pub clocks: Clocks,
    #[command(flatten)]
    pub meters: Meters,
    /// Take a quick look: two lengths, 3 rounds, no bars
    #[arg(long)]
    pub quick: bool,
    /// Write the results as JSON to FILE, or to standard output without FILE
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// A cipher suite that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Suite {
    /// TLS 1.2, AES-256-CBC and SHA-384 (the study's suite)
    #[value(name = "ECDHE-RSA-AES256-SHA384")]
    CbcSha384,
    /// TLS 1.2, AES-128-CBC and SHA-256 (stitched in OpenSSL)
    #[value(name = "ECDHE-RSA-AES128-SHA256")]
    CbcSha256,
    /// TLS 1.2, AES-256-GCM
    #[value(name = "ECDHE-RSA-AES256-GCM-SHA384")]
    Gcm,
    /// TLS 1.3, AES-256-GCM
    #[value(name = "TLS_AES_256_GCM_SHA384")]
    Tls13,
}

/// An accelerator of the provider, as its settings name it.
pub(super) fn parse_accelerator(text: &str) -> Result<String, String> {
    let is_model = text.split(':').next() == Some(Simulated::NAME);
    if is_model || Named::parse(text).is_some() {
        return Ok(text.to_owned());
    }
    Err(format!("an accelerator is {}, {}", Simulated::NAME, Named::forms()))
}
