//! Every flag of the program, in one place; help, completions and manual pages come from here. A
//! long file, because it is a flat list.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::builder::styling::{AnsiColor, Styles};
use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use wattlock_stream::gateway::Address;
use wattlock_stream::simulate::{Algorithm, Experiment};

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

/// Protect files: authenticated encryption, on all cores.
///
/// FILE becomes FILE.wlk beside it, or FILE.age with --format age. Without FILE, standard input
/// is protected to standard output. --format sefps reproduces a study, and keeps nobody's data.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Protect {
    #[command(flatten)]
    pub recipients: Recipients,
    /// Protect for the recipient of this identity, too; with --resume, check outputs with it
    #[arg(short, long = "identity", value_name = "FILE", help_heading = KEYS)]
    pub identities: Vec<String>,
    #[command(flatten)]
    pub passphrase: Passphrase,
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub batch: Batch,
    /// Container format
    #[arg(long, value_enum, default_value_t)]
    pub format: ContainerFormat,
    /// Leave the file's name, mode and time out of the container
    #[arg(long)]
    pub no_metadata: bool,
    #[command(flatten)]
    pub sefps: Sefps,
    /// Who encrypts [default: overlapped]: one thread, all threads, the GPU, both in the study's
    /// ratio; or hashing and encrypting at once, which is not the study's
    #[arg(long, help_heading = SEFPS, value_parser = ["csp", "cpp", "gpp", "hpp", "overlapped"])]
    pub variant: Option<String>,
    #[command(flatten)]
    pub run: Run,
}

/// Open containers that wattlock or age made; the format is found out.
///
/// FILE.wlk or FILE.age becomes FILE, with the mode and time it had. Without FILE, standard input
/// is opened to standard output, where only authentic bytes come out.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Unprotect {
    #[command(flatten)]
    pub identities: Identities,
    #[command(flatten)]
    pub passphrase: Passphrase,
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub batch: Batch,
    /// Open only these bytes: "A..B", "A.." or "..B"; only the chunks that hold them are read
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    pub range: Option<(u64, u64)>,
    /// Use the name that is sealed in the container
    #[arg(short = 'N', long)]
    pub restore_name: bool,
    /// The format, where a container does not tell it
    #[arg(long, value_enum)]
    pub format: Option<UntoldFormat>,
    #[command(flatten)]
    pub sefps: Sefps,
    /// Who decrypts [default: overlapped], as with protect
    #[arg(long, help_heading = SEFPS, value_parser = ["csup", "cpup", "gpup", "hpup", "overlapped"])]
    pub variant: Option<String>,
    #[command(flatten)]
    pub run: Run,
}

/// Authenticate every byte of containers, and write nothing.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Verify {
    #[command(flatten)]
    pub identities: Identities,
    #[command(flatten)]
    pub passphrase: Passphrase,
    /// Containers; standard input if there is none
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Take the containers in directories
    #[arg(long)]
    pub recursive: bool,
    #[command(flatten)]
    pub run: Run,
}

/// Show what a container is, whom it is for and how long it is; more with a key.
#[derive(Debug, Args)]
pub struct Inspect {
    /// Open the header with this identity, to show what is sealed in it
    #[arg(short, long = "identity", value_name = "FILE", help_heading = KEYS)]
    pub identities: Vec<String>,
    #[command(flatten)]
    pub passphrase: Passphrase,
    /// Containers; standard input if there is none
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Change the recipients of containers; the payload stays as it is.
///
/// The recipients given replace all that were there. Whoever kept a copy of the old container or
/// of its data key can still open what they have.
#[derive(Debug, Args)]
pub struct Rekey {
    #[command(flatten)]
    pub identities: Identities,
    #[command(flatten)]
    pub passphrase: Passphrase,
    #[command(flatten)]
    pub recipients: Recipients,
    /// Ask for a new passphrase on the terminal
    #[arg(long, group = "new_source", help_heading = KEYS)]
    pub new_passphrase: bool,
    /// Take the new passphrase from the first line of FILE
    #[arg(long, value_name = "FILE", group = "new_source", help_heading = KEYS)]
    pub new_passphrase_file: Option<PathBuf>,
    /// Containers, which are rewritten in place
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath, required = true)]
    pub files: Vec<PathBuf>,
    /// Write the container to FILE instead
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an output that exists
    #[arg(short, long)]
    pub force: bool,
}

/// Make an identity (a private key); its recipient (the public key) is shown.
///
/// The file is an age identity: age and rage read it, and wattlock reads theirs.
#[derive(Debug, Args)]
pub struct Keygen {
    /// Write the identity to FILE, which only you may read; standard output if not given
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Show the recipient of an existing identity instead of making one
    #[arg(short = 'y', long, value_name = "IDENTITY", conflicts_with = "output")]
    pub recipient_of: Option<String>,
}

/// Seal messages as they come, from many connections at once; with --open, open them again.
///
/// Messages come from standard input, or with --listen from any number of connections, and go out
/// sealed to standard output, to files, or to a peer. What goes out opens to exactly what came in:
/// whatever is cut, repeated, moved or put in on the way is an error. Memory is bounded: where less
/// can go out than comes in, those who send have to wait.
#[derive(Debug, Args)]
#[command(after_help = STREAM_HELP)]
pub struct Stream {
    /// Open sealed streams instead; only what is authentic comes out
    #[arg(long)]
    pub open: bool,
    #[command(flatten)]
    pub recipients: Recipients,
    /// Seal for the recipient of this identity, too; with --open, open with it (repeatable)
    #[arg(short, long = "identity", value_name = "FILE", help_heading = KEYS)]
    pub identities: Vec<String>,
    #[command(flatten)]
    pub passphrase: Passphrase,
    /// The key itself instead of recipients: a file of 32 random bytes, or of 64 hexadecimal digits
    #[arg(long, value_name = "FILE", help_heading = KEYS, value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["recipients", "recipients_files", "identities"])]
    #[arg(conflicts_with_all = ["ask", "file", "fd", "env"])]
    pub key_file: Option<PathBuf>,
    /// How messages are told apart in what comes
    #[arg(long, value_enum, default_value_t, help_heading = INPUT, conflicts_with = "open")]
    pub framing: FramingName,
    /// With --framing raw: seal at most so many bytes at a time
    #[arg(long, value_name = "BYTES", default_value = "64K", value_parser = parse_size_above_zero)]
    #[arg(help_heading = INPUT)]
    pub chunk: u64,
    /// The longest message; a connection that sends a longer one is cut
    #[arg(long, value_name = "BYTES", default_value = "16M", value_parser = parse_size_above_zero)]
    #[arg(help_heading = INPUT)]
    pub max_message: u64,
    /// Take connections at tcp:HOST:PORT or unix:PATH, rather than standard input
    #[arg(long, value_name = "ADDRESS", help_heading = INPUT)]
    pub listen: Option<Address>,
    /// Connections at once; further ones are turned away
    #[arg(long, value_name = "N", default_value_t = 16_384, help_heading = INPUT)]
    #[arg(requires = "listen", value_parser = clap::value_parser!(u32).range(1..=65_536))]
    pub max_connections: u32,
    /// End a connection that completes no message for so long; 0 never does
    #[arg(long, value_name = "SECONDS", default_value_t = 300, help_heading = INPUT)]
    #[arg(requires = "listen")]
    pub idle_timeout: u32,
    /// Write to FILE, rather than to standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(help_heading = OUTPUT, conflicts_with = "connect")]
    pub output: Option<PathBuf>,
    /// Replace an output that exists
    #[arg(short, long, help_heading = OUTPUT, requires = "output")]
    pub force: bool,
    /// Write FILE.000001 and so on; the next after so many bytes. Each opens by itself
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero, help_heading = OUTPUT)]
    #[arg(requires = "output", conflicts_with = "open")]
    pub rotate_size: Option<u64>,
    /// Write FILE.000001 and so on; the next after so many seconds
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    #[arg(requires = "output", conflicts_with = "open", help_heading = OUTPUT)]
    pub rotate_time: Option<u64>,
    /// Send to a peer at tcp:HOST:PORT or unix:PATH; with --open, over a connection for each that
    /// was sealed
    #[arg(long, value_name = "ADDRESS", help_heading = OUTPUT)]
    pub connect: Option<Address>,
    /// Bytes that may be on their way at most; who sends more has to wait
    #[arg(long, value_name = "BYTES", default_value = "32M", value_parser = parse_size_above_zero)]
    pub window: u64,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// How many threads work, or at which clock, by how full the window is
    #[arg(long, value_enum, value_name = "POLICY", default_value_t)]
    pub policy: VelocityName,
    /// Let the policy set the clock of the CPUs; without it, it chooses threads, and what would be
    /// set is told. The clock is put back at the end
    #[arg(long, help_heading = ENERGY)]
    pub set_clocks: bool,
    /// At SIGTERM or SIGINT, deliver what was taken in within so many seconds
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    pub drain: u32,
    /// Serve metrics for Prometheus at HOST:PORT, of this machine alone
    #[arg(long, value_name = "ADDRESS", help_heading = REPORT)]
    pub metrics: Option<std::net::SocketAddr>,
    /// Show how it goes in one line, if standard error is a terminal
    #[arg(long, help_heading = REPORT)]
    pub status: bool,
    /// Print a summary as JSON on standard error
    #[arg(long, help_heading = REPORT)]
    pub json: bool,
    /// Errors only
    #[arg(short, long, help_heading = REPORT)]
    pub quiet: bool,
}

/// How messages are told apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FramingName {
    /// Not at all: bytes are sealed as they come
    #[default]
    Raw,
    /// A newline ends each; what stands between newlines is not looked at
    Ndjson,
    /// Four bytes of length, big endian, stand before each
    Length,
}

/// How a velocity policy is named.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VelocityName {
    /// As slow as clears the window in time
    #[default]
    Paced,
    /// The study's thresholds of the window's use
    Lecpaes,
    /// The same to the letter, which leaves out what is being worked on
    LecpaesLiteral,
    /// Everything while there is anything to do
    RaceToIdle,
    /// Everything, always
    Fixed,
}

/// Run a raw cipher from standard input to standard output: for tests and study.
///
/// Nothing but AES-GCM authenticates what it encrypts, and a key on the command line can be read by
/// every process of the machine. To keep data safe, use `wattlock protect`. AES-GCM holds the whole
/// message in memory, because nothing may leave before its tag; everything else streams.
#[derive(Debug, Args)]
#[command(after_help = CIPHER_HELP)]
pub struct Cipher {
    /// Algorithm: aes-256-ctr, … ; see --list
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    pub alg: Option<String>,
    /// Key, in hexadecimal digits
    #[arg(long, value_name = "HEX", required_unless_present = "list", help_heading = KEYS)]
    pub key: Option<String>,
    /// Second key of rc4a [default: the first bytes of RC4 under the first]
    #[arg(long, value_name = "HEX", help_heading = KEYS)]
    pub key2: Option<String>,
    /// Initialisation vector, or nonce of GCM
    #[arg(long, value_name = "HEX", help_heading = KEYS)]
    pub iv: Option<String>,
    /// Data that GCM authenticates and does not encrypt
    #[arg(long, value_name = "HEX", help_heading = KEYS)]
    pub aad: Option<String>,
    /// Decrypt; with GCM, the tag is expected at the end
    #[arg(short, long)]
    pub decrypt: bool,
    /// Padding of block modes, which otherwise take whole blocks only
    #[arg(long, value_enum, value_name = "PADDING", default_value_t)]
    pub pad: Padding,
    /// Kernel of AES [default: the fastest that is constant in time]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
    /// Bytes that are dealt to a thread at a time, whole blocks, at most 8M [default: what suits
    /// the cache]
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub block_size: Option<u64>,
    #[command(flatten)]
    pub spread: Spread,
    /// Show every algorithm and kernel, which run here, and why not
    #[arg(long, conflicts_with_all = ["alg", "key", "decrypt"])]
    pub list: bool,
    /// With --list: print JSON
    #[arg(long, requires = "list")]
    pub json: bool,
}

/// How a message becomes whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Padding {
    /// Not at all: a message that is not whole blocks is refused
    #[default]
    None,
    /// PKCS#7
    Pkcs7,
}

/// Print or check SHA-3 digests; several files are hashed side by side.
#[derive(Debug, Args)]
#[command(after_help = HASH_HELP)]
pub struct Hash {
    /// Algorithm
    #[arg(long, value_enum, default_value_t)]
    pub alg: HashAlgorithm,
    /// Files; standard input if there is none, or for "-"
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Read digests and names from the files, and check them
    #[arg(short, long)]
    pub check: bool,
    /// With --check: say nothing about files that are right
    #[arg(short, long, requires = "check")]
    pub quiet: bool,
    /// Bytes of a block of parallelhash256, a parameter of the digest [default: 8192]; eight of
    /// them are in memory for each thread
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub block_size: Option<u64>,
    /// Kernel of Keccak [default: the fastest]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256))]
    pub threads: Option<u16>,
}

/// The digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum HashAlgorithm {
    /// FIPS 202; several files share the lanes of one core
    #[default]
    #[value(name = "sha3-256")]
    Sha3_256,
    /// NIST SP 800-185, 256-bit output; one long file uses all lanes and threads
    #[value(name = "parallelhash256")]
    ParallelHash256,
    /// KangarooTwelve, RFC 9861, 256-bit output; one long file uses all lanes and threads
    #[value(name = "kt128")]
    Kt128,
}

/// Run a command and tell the joules it took, and what that number is worth.
///
/// The command keeps its standard input, output and error, and its exit code is that of wattlock;
/// the report goes to standard error when it has ended. Where no sensor counts joules there is an
/// interval of models, and it says so.
#[derive(Debug, Args)]
#[command(after_help = MEASURE_HELP)]
pub struct Measure {
    /// Exit with 4 unless joules are counted; before the command is run, where that is known
    #[arg(long, value_enum, value_name = "CLASS")]
    pub require: Option<Required>,
    /// Run it so many times; the run in the middle is reported
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = clap::value_parser!(u16).range(1..))]
    pub repeat: u16,
    /// Bytes that one run works through, with K, M, G or T, for joules per byte
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero)]
    pub bytes: Option<u64>,
    /// Look at the machine at rest for so many seconds before and after, and tell joules net of
    /// that, too
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "3", value_parser = parse_seconds)]
    pub idle_baseline: Option<f64>,
    #[command(flatten)]
    pub meters: Meters,
    /// Report as JSON, in one line: the last of standard error
    #[arg(long)]
    pub json: bool,
    /// The command and its arguments
    #[arg(value_name = "CMD", required = true, trailing_var_arg = true)]
    #[arg(value_hint = ValueHint::CommandWithArguments)]
    pub command: Vec<OsString>,
}

/// How joules are had.
#[derive(Debug, Args)]
pub struct Meters {
    /// A meter beside the machine: a shell command, or a URL, that tells watts or joules
    #[arg(long, value_name = "COMMAND|URL", help_heading = ENERGY)]
    pub meter: Option<String>,
    /// Design power of the CPU, for the model [default: 15 to 500]
    #[arg(long, value_name = "WATTS", value_parser = parse_watts, help_heading = ENERGY)]
    pub tdp: Option<f64>,
    /// Write metrics for Prometheus to FILE, as node_exporter's textfile collector reads them
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = ENERGY)]
    pub prometheus: Option<PathBuf>,
}

/// What a number has to be worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Required {
    /// The difference of a counter
    Measured,
}

/// Show what can encrypt here, with which code, and how fast it was measured to be.
///
/// For one CPU worker and for all: the rate, and what a call takes before its first byte. What was
/// not measured on this machine is not calibrated, and has no figures.
#[derive(Debug, Args)]
#[command(after_help = CACHE)]
pub struct Devices {
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Measure how fast this machine encrypts, and keep it for `wattlock devices`.
///
/// Takes 10 s, and where joules are counted 2 s more for each operation but `open`, with one worker
/// and with all. Best done while the machine does nothing else: what other programs take of it is
/// missing from the figures.
#[derive(Debug, Args)]
#[command(after_help = CACHE)]
pub struct Calibrate {
    /// Devices beside the CPU, separated by commas: cuda, opencl, cuda:N, opencl:N [default: all GPUs]
    #[arg(long = "device", value_name = "NAME", value_delimiter = ',', help_heading = DEVICES)]
    pub devices: Vec<String>,
    /// A quick look: 2 s, no joules
    #[arg(long)]
    pub quick: bool,
    /// Only operations whose name contains this: "aes-256", "gcm seal"; what was measured of the
    /// others before stays
    #[arg(long, value_name = "TEXT")]
    pub only: Option<String>,
    /// Print what was measured as JSON
    #[arg(long)]
    pub json: bool,
}

/// Show what can be used on this machine, and for what cannot: why, and what would help.
///
/// Every source of energy, every clock that can be set, every kernel, and what GPUs and OpenSSL need.
#[derive(Debug, Args)]
pub struct Doctor {
    /// Look at a meter beside the machine, too: a shell command, or a URL, that tells watts or joules
    #[arg(long, value_name = "COMMAND|URL")]
    pub meter: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Put back clocks that a program which was killed had set.
///
/// Whoever sets a clock keeps a journal of what it was, and puts it back at its end, however that
/// comes; what even that could not is put back by the next that sets one, or by this. What somebody
/// else has set meanwhile is left alone.
#[derive(Debug, Args)]
pub struct Restore {
    /// Wait for the end of the program that holds the other end of standard input
    #[arg(long, hide = true)]
    pub guardian: bool,
}

/// At which clocks of the CPU.
#[derive(Debug, Args)]
pub struct Clocks {
    /// Measure at these clocks, separated by commas: "default" is what the machine does by itself,
    /// "low" about half of the highest, "ladder" all from the lowest to the highest, or so many MHz
    #[arg(long, value_name = "CLOCK", value_delimiter = ',', default_value = "default")]
    #[arg(value_parser = parse_clock, help_heading = ENERGY)]
    pub clocks: Vec<Clock>,
    /// Set the clocks; without it, only what would be set is told. They are put back at the end
    #[arg(long, help_heading = ENERGY)]
    pub set_clocks: bool,
}

/// A clock of the CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    Default,
    Low,
    Ladder,
    Megahertz(u32),
}

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
    pub spread: Spread,
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
    /// Check every output, within the time that is measured, and not a sample afterwards
    #[arg(long)]
    pub verify: bool,
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

/// Use Wattlock's ciphers in OpenSSL 3, and see that they are used.
#[derive(Debug, Subcommand)]
pub enum Provider {
    Config(ProviderConfig),
    Check(ProviderCheck),
    Stats(ProviderStats),
}

/// Print an openssl.cnf that makes OpenSSL use Wattlock's ciphers, or what nginx wants besides.
///
/// A program uses it with OPENSSL_CONF=FILE in its environment, and nothing else changes.
#[derive(Debug, Args)]
pub struct ProviderConfig {
    /// Print settings of nginx instead, with which several records are sealed in one call
    #[arg(long, conflicts_with_all = ["provider", "statistics", "accelerator"])]
    pub nginx: bool,
    /// The provider [default: libwattlock_provider.so beside this program]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub provider: Option<PathBuf>,
    /// Let each process count what it does in a file in DIR, for `wattlock provider stats`
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub statistics: Option<PathBuf>,
    /// Give it an accelerator: simulated, opencl, opencl:N, cuda or cuda:N [default: none]
    #[arg(long, value_name = "DEVICE", value_parser = parse_accelerator)]
    pub accelerator: Option<String>,
}

/// Load the provider into the system's OpenSSL, and tell which ciphers run in it.
///
/// Every cipher of the provider encrypts and decrypts by the program openssl, beside OpenSSL's own,
/// and TLS goes both ways between the two. Exits with 0 only if all agree and the provider's
/// counters show that it worked; with 4 if there is no provider or no openssl.
#[derive(Debug, Args)]
pub struct ProviderCheck {
    /// The provider [default: libwattlock_provider.so beside this program]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub provider: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show what the processes that use the provider have counted.
#[derive(Debug, Args)]
pub struct ProviderStats {
    /// The folder that the provider's configuration names as `statistics`
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub folder: PathBuf,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Run studies of streams in virtual time: nothing is encrypted, and all joules are modelled.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    Lecpaes(SimulateLecpaes),
    Policies(SimulatePolicies),
}

/// Run the LECPAES paper's experiment in virtual time.
///
/// Users submit their messages, one after the other, to a window; an algorithm takes them out. Prints
/// modelled joules, throughput and retransmissions on a model of the paper's machine.
#[derive(Debug, Args)]
pub struct SimulateLecpaes {
    /// Set the paper's figures and tables beside ours, and fail where we miss them
    #[arg(long, conflicts_with_all = ["users", "latency", "window", "algorithm"])]
    pub paper: bool,
    /// What the order of the messages' lengths is drawn from
    #[arg(long, value_name = "N", default_value_t = Experiment::SEED)]
    pub seed: u64,
    /// Users, with one message of 35 to 150 KiB each
    #[arg(long, value_name = "N", default_value_t = 12_000)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub users: u32,
    /// Microseconds between two messages, separated by commas
    #[arg(long, value_name = "US", value_delimiter = ',')]
    #[arg(default_value = "100,500,1000,1500,2000,2500,3000")]
    #[arg(value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    pub latency: Vec<u64>,
    /// Bytes of the window, with K, M or G for powers of 1024
    #[arg(long, value_name = "SIZE", default_value = "8M", value_parser = parse_size)]
    pub window: u64,
    /// Algorithms, separated by commas: the paper's, or our policies on its machine
    #[arg(long, value_name = "NAME", value_delimiter = ',', default_value = "cs,cp,gp,lecpaes")]
    #[arg(value_parser = PossibleValuesParser::new(Algorithm::ALL.map(Algorithm::name)))]
    pub algorithm: Vec<String>,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
}

/// Compare velocity policies on thirteen kinds of streams with the least that any schedule could use.
///
/// In virtual time, on a model of a machine: joules over that bound, the delays of messages, and
/// refusals for each message, of every policy on every stream.
#[derive(Debug, Args)]
pub struct SimulatePolicies {
    /// What the streams are drawn from
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// The machine: "k20m", the LECPAES paper's GPU, or a CSV file of rungs
    #[arg(long, value_name = "k20m|FILE", default_value = "k20m", value_hint = ValueHint::FilePath)]
    pub curve: PathBuf,
    /// Take the stream of FILE instead: a line "seconds bytes" for each message
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["streams", "seconds", "seed"])]
    pub trace: Option<PathBuf>,
    /// Which streams: those for reports, or those to tune policies with
    #[arg(long, value_name = "SET", default_value = "reporting")]
    #[arg(value_parser = ["reporting", "tuning"])]
    pub streams: String,
    /// How long each stream is
    #[arg(long, value_name = "S", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=3600))]
    pub seconds: u32,
    /// Write the results as JSON to FILE, "-" for standard output
    #[arg(long, value_name = "FILE", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,
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

/// For whom.
#[derive(Debug, Args)]
pub struct Recipients {
    /// Protect for this recipient: age1…, ssh-ed25519 …, ssh-rsa …, a plugin's (repeatable)
    #[arg(short, long = "recipient", value_name = "RECIPIENT", help_heading = KEYS, allow_hyphen_values = true)]
    pub recipients: Vec<String>,
    /// Protect for the recipients in FILE, one a line (repeatable)
    #[arg(short = 'R', long = "recipients-file", value_name = "FILE", help_heading = KEYS)]
    pub recipients_files: Vec<String>,
    /// Cost of deriving a key from a passphrase: 2^N
    #[arg(long, value_name = "N", default_value_t = 18, help_heading = KEYS)]
    #[arg(value_parser = clap::value_parser!(u8).range(10..=22))]
    pub work_factor: u8,
}

/// By whom.
#[derive(Debug, Args)]
pub struct Identities {
    /// Open with this identity file: age or SSH private keys (repeatable)
    #[arg(short, long = "identity", value_name = "FILE", help_heading = KEYS)]
    pub identities: Vec<String>,
}

/// Where a passphrase comes from. Asked for, or read, once a run.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
pub struct Passphrase {
    /// Ask for a passphrase on the terminal
    #[arg(short = 'p', long = "passphrase", help_heading = KEYS)]
    pub ask: bool,
    /// Take the passphrase from the first line of FILE
    #[arg(long = "passphrase-file", value_name = "FILE", help_heading = KEYS)]
    pub file: Option<PathBuf>,
    /// Take the passphrase from the first line of file descriptor N
    #[arg(long = "passphrase-fd", value_name = "N", help_heading = KEYS)]
    pub fd: Option<String>,
    /// Take the passphrase from the environment variable NAME
    #[arg(long = "passphrase-env", value_name = "NAME", help_heading = KEYS)]
    pub env: Option<String>,
}

impl Passphrase {
    /// True if there is to be one.
    pub fn is_given(&self) -> bool {
        self.ask || self.file.is_some() || self.fd.is_some() || self.env.is_some()
    }
}

/// Inputs and outputs.
#[derive(Debug, Args)]
pub struct Places {
    /// Files, and with --recursive directories; "-" or none is standard input
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    pub files: Vec<PathBuf>,
    /// Write to FILE, "-" for standard output; for one input only
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Write all outputs into DIR, which is made if need be
    #[arg(long, value_name = "DIR", conflicts_with = "output", value_hint = ValueHint::DirPath)]
    pub out_dir: Option<PathBuf>,
    /// Replace outputs that exist
    #[arg(short, long)]
    pub force: bool,
}

/// What makes many files one run.
#[derive(Debug, Args)]
pub struct Batch {
    /// Take what is in directories, one container a file, and keep the tree under --out-dir
    #[arg(long)]
    pub recursive: bool,
    /// Remove each original once its output is written, on the disk, and read back
    #[arg(long)]
    pub replace: bool,
    /// Go on where a run stopped: outputs that are there are checked and kept if they are right
    #[arg(long)]
    pub resume: bool,
}

/// What --format sefps takes, and nothing else does.
#[derive(Debug, Args)]
pub struct Sefps {
    /// The key: a file of 16, 24 or 32 bytes
    #[arg(long, value_name = "FILE", help_heading = SEFPS, value_hint = ValueHint::FilePath)]
    pub key_file: Option<PathBuf>,
    /// aes-128-ecb, as in the study's listings, aes-256-ctr, … ; nothing in a container tells it
    #[arg(long, value_name = "NAME", help_heading = SEFPS)]
    pub cipher: Option<String>,
    /// First counter block of CTR, 16 bytes in hexadecimal digits, never twice with one key; it is
    /// not in the container
    #[arg(long, value_name = "HEX", help_heading = SEFPS)]
    pub iv: Option<String>,
    /// Kernel of AES [default: the fastest that is constant in time]; the study's is
    /// aes-ttable-vartime
    #[arg(long, value_name = "NAME", help_heading = SEFPS)]
    pub kernel: Option<String>,
}

/// Which devices work, and how they share it.
#[derive(Clone, Debug, Default, Args)]
pub struct Spread {
    /// Devices that work, separated by commas: cpu, cuda, opencl, cuda:N, opencl:N [default: cpu]
    #[arg(long = "device", value_name = "NAME", value_delimiter = ',', help_heading = DEVICES)]
    pub devices: Vec<String>,
    /// How they share the work [default: parallel; gpu or hybrid with a --device that is no CPU]
    #[arg(long, value_enum, value_name = "POLICY", help_heading = DEVICES)]
    pub policy: Option<PolicyName>,
    /// What --policy auto seeks the least of
    #[arg(long, value_enum, value_name = "GOAL", default_value_t, help_heading = DEVICES)]
    pub goal: GoalName,
}

impl Spread {
    /// The flags again, for another run of this program.
    pub fn words(&self) -> Vec<String> {
        let mut words = Vec::new();
        if !self.devices.is_empty() {
            words.push(format!("--device={}", self.devices.join(",")));
        }
        if let Some(policy) = self.policy.and_then(|policy| policy.to_possible_value()) {
            words.push(format!("--policy={}", policy.get_name()));
        }
        if let Some(goal) = self.goal.to_possible_value() {
            words.push(format!("--goal={}", goal.get_name()));
        }
        words
    }
}

/// How devices share the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PolicyName {
    /// One CPU thread
    Serial,
    /// All CPU threads
    Parallel,
    /// GPUs alone; the CPU finishes what they drop
    Gpu,
    /// GPUs and CPU, in the ratio of the SEFPS study's Eq. 1
    HybridRatio,
    /// The CPU from the front and GPUs from the back, until they meet
    Hybrid,
    /// Whichever of these was measured to be the best
    Auto,
}

impl PolicyName {
    /// True if GPUs take part where there are any.
    pub fn asks_accelerators(self) -> bool {
        !matches!(self, Self::Serial | Self::Parallel)
    }
}

/// What is best.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum GoalName {
    /// The least time
    #[default]
    Time,
    /// The least joules, where they were counted by `wattlock calibrate`
    Energy,
    /// The least product of both
    Edp,
}

/// How a run is done and what it says.
#[derive(Debug, Args)]
pub struct Run {
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

/// The container formats.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ContainerFormat {
    /// wattlock v1: AES-256-GCM in 16 KiB chunks
    #[default]
    Wattlock,
    /// age v1: ChaCha20-Poly1305 in 64 KiB chunks
    Age,
    /// SEFPS, of a study: SHA3-256 under AES-ECB or AES-CTR. For reproduction only: it can be forged
    Sefps,
}

/// The container formats that their bytes do not tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum UntoldFormat {
    /// SEFPS: with --key-file, --cipher and --iv as they were for protect
    Sefps,
}

const KEYS: &str = "Keys";

const INPUT: &str = "What comes in";

const OUTPUT: &str = "Where it goes";

const REPORT: &str = "What is told";

const ENERGY: &str = "Energy";

const DEVICES: &str = "Devices";

const SEFPS: &str = "Only with --format sefps, which is for study";

const EXIT_CODES: &str = "Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong key or tampered \
                          input, 4 a required measurement is not available, 128 + n ended by \
                          signal n.";

const CIPHER_HELP: &str = "Examples:
  wattlock cipher --alg aes-256-ctr --key \"$KEY\" --iv \"$IV\" < plain > sealed
  wattlock cipher --alg aes-128-cbc --pad pkcs7 --key \"$KEY\" --iv \"$IV\" --decrypt < sealed
  wattlock cipher --list
where KEY=$(openssl rand -hex 32) is 32 random bytes, and 16 for an IV or AES-128.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong key or damaged input.";

const STREAM_HELP: &str = "Examples:
  journalctl -f -o json | wattlock stream -r \"$TO\" --framing ndjson -o log.wls --rotate-size 1G
  wattlock stream --key-file key --listen unix:/run/in.sock --connect tcp:backup:7000
  wattlock stream --open -i key.txt < log.wls.000001
where TO=$(wattlock keygen -y key.txt), and key is made by: head -c 32 /dev/urandom > key

A file that was cut, or that a killed program left, opens as far as it is whole, and the exit code
is 3. Files that follow each other may be opened one by one, or together: cat log.wls.* | ...

Exit codes: 0 all was delivered, 1 not all: what is missing is told; or a connection had been cut
when it was sealed, 2 wrong usage, 3 wrong key, or a stream that is cut or tampered with.";

const HASH_HELP: &str = "Output is that of sha3sum: digest, two spaces, name.
Exit codes: 0 done, 1 a file could not be read, a digest differs or a line holds none, 2 wrong usage.";

const MEASURE_HELP: &str = "Examples:
  wattlock measure -- make
  wattlock measure --require measured --repeat 5 --bytes 1G -- wattlock protect -i key.txt file
  wattlock measure --idle-baseline=10 --meter http://plug/status#/apower=W -- make

Exit codes: that of the command; 126 it cannot be run, 127 it is not there, 128 + n it was ended by
signal n; 4 a required measurement is not available.

WATTLOCK_ROOT=DIR in the environment reads the sensors below DIR instead of /, for tests.";

const CACHE: &str =
    "Profiles are kept in $XDG_CACHE_HOME/wattlock/profiles.json, or else below ~/.cache.
WATTLOCK_CACHE=DIR in the environment keeps them in DIR.

Exit codes: 0 done, 1 failed, 2 wrong usage.";

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

/// "A..B" with either end left out; the end is not included.
fn parse_range(text: &str) -> Result<(u64, u64), String> {
    let (start, end) = text.split_once("..").ok_or("a range is written A..B, in bytes")?;
    let number = |text: &str, default| match text {
        "" => Ok(default),
        text => parse_size(text),
    };
    let (start, end) = (number(start, 0)?, number(end, u64::MAX)?);
    if start > end {
        return Err("the range ends before it starts".into());
    }
    Ok((start, end))
}

/// Bytes, with K, M, G or T for powers of 1024.
fn parse_size(text: &str) -> Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        Some((at, 'T' | 't')) => (&text[..at], 40),
        _ => (text, 0),
    };
    let number: u64 = digits.parse().map_err(|_| format!("{text:?} is not a number of bytes"))?;
    number.checked_mul(1 << shift).ok_or_else(|| format!("{text} is too large"))
}

fn parse_size_above_zero(text: &str) -> Result<u64, String> {
    parse_size(text).and_then(|size| if size == 0 { Err("0 is too few".into()) } else { Ok(size) })
}

/// A page that a server on this machine can be asked for.
fn parse_page(text: &str) -> Result<u64, String> {
    match parse_size(text)? {
        size @ 1..=0x0400_0000 => Ok(size),
        _ => Err("a page has from 1 byte to 64M".into()),
    }
}

/// An accelerator of the provider, as its settings name it.
fn parse_accelerator(text: &str) -> Result<String, String> {
    match text.split_once(':').map_or(text, |(kind, _)| kind) {
        "simulated" | "opencl" | "cuda" => Ok(text.to_owned()),
        _ => Err("an accelerator is simulated, opencl, opencl:N, cuda or cuda:N".into()),
    }
}

/// A power of at least a milliwatt and at most a megawatt.
fn parse_watts(text: &str) -> Result<f64, String> {
    let watts: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of watts"))?;
    if (1e-3..=1e6).contains(&watts) { Ok(watts) } else { Err("no CPU draws that".into()) }
}

/// A clock by its name or in MHz.
fn parse_clock(text: &str) -> Result<Clock, String> {
    match text {
        "default" => Ok(Clock::Default),
        "low" => Ok(Clock::Low),
        "ladder" => Ok(Clock::Ladder),
        other => match other.trim_end_matches("MHz").parse() {
            Ok(megahertz @ 100..=10_000) => Ok(Clock::Megahertz(megahertz)),
            _ => Err("a clock is default, low, ladder, or from 100 to 10000 MHz".into()),
        },
    }
}

/// At least a tenth of a second, and at most an hour.
fn parse_seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| format!("{text:?} is not a number of seconds"))?;
    match (0.1..=3600.0).contains(&seconds) {
        true => Ok(seconds),
        false => Err("from 0.1 to 3600 seconds".into()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_flags_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn ranges_and_sizes() {
        assert_eq!(parse_range("0..1K"), Ok((0, 1024)));
        assert_eq!(parse_range("5.."), Ok((5, u64::MAX)));
        assert_eq!(parse_range("..7"), Ok((0, 7)));
        assert_eq!(parse_size("3G"), Ok(3 << 30));
        for wrong in ["", "5", "9..3", "a..b", "-1..3", "1...3"] {
            assert!(parse_range(wrong).is_err(), "{wrong}");
        }
        assert!(parse_size("99999999T").is_err());
    }
}
