//! Arguments of commands on files: protect, unprotect, verify, inspect, rekey and keygen.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use wattlock_file::SealedName;

use super::values::parse_range;
use super::{DEVICES, EXIT_CODES, KEYS, SEFPS};

/// Protect files: authenticated encryption, on all cores.
///
/// FILE becomes FILE.wlk beside it, or FILE.age with --format age. Without FILE, standard input
/// is protected to standard output. --format sefps reproduces a study, and keeps nobody's data.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Protect {
    #[command(flatten)]
    pub recipients: Recipients,
    /// Also encrypt to this identity's recipient; --resume verifies outputs with it
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

/// Decrypt Wattlock or age files (the format is detected).
///
/// FILE.wlk or FILE.age becomes FILE, with the mode (less the umask) and time it had. A container
/// with another name needs -o, --out-dir or --restore-name. Without FILE, standard input is decrypted
/// to standard output; only authentic bytes are written.
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
    /// Give the output the name sealed in the container; its folder stays the same
    #[arg(short = 'N', long, conflicts_with = "output")]
    pub restore_name: bool,
    /// With --restore-name, also use names that start with a dot
    #[arg(long, requires = "restore_name")]
    pub dot_files: bool,
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

impl Unprotect {
    /// The sealed names that are wanted for outputs.
    pub fn sealed_name(&self) -> Option<SealedName> {
        let wanted = if self.dot_files { SealedName::Any } else { SealedName::Visible };
        self.restore_name.then_some(wanted)
    }
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
    pub limits: Limits,
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
    #[command(flatten)]
    pub limits: Limits,
}

/// How much work a container may cause before it is known to be for these keys.
#[derive(Clone, Copy, Debug, Args)]
pub struct Limits {
    /// Refuse more than N recipients [default: 1024; 128 from the network]
    #[arg(long, value_name = "N", help_heading = KEYS)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub max_recipients: Option<u32>,
    /// Refuse passphrase work factors above N; N takes 2^N KiB of memory
    #[arg(long, value_name = "N", default_value_t = Self::MAX_WORK_FACTOR, help_heading = KEYS)]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=30))]
    pub max_work_factor: u8,
}

impl Limits {
    /// 4 GiB of memory and some seconds: as much as `protect` may ask for, and age itself.
    const MAX_WORK_FACTOR: u8 = 22;
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_recipients: None, max_work_factor: Self::MAX_WORK_FACTOR }
    }
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
    /// Resume: verify existing outputs and keep the good ones
    ///
    /// protect keeps a container only if the identities given with -i, or the passphrase, prove
    /// that it is for these recipients and no others. It reports any other as an error, and
    /// replaces it only with --force.
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
    /// Check GPU results; use none for benchmarks only
    #[arg(long, value_enum, value_name = "CHECKS", default_value_t, help_heading = DEVICES)]
    pub verify: VerifyName,
    /// Give up on a GPU that is silent for N seconds; the CPU takes over
    ///
    /// Default: 60 to open the GPU. To finish a piece of work: 2 plus 16 times what `wattlock
    /// calibrate` measured, or, if nothing was measured, 10 plus 1 for each 50 MB in flight.
    #[arg(long, value_name = "SECONDS", help_heading = DEVICES)]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=86_400))]
    pub device_timeout: Option<u32>,
}

impl Spread {
    /// How long a GPU may take, if that was set.
    pub fn timeout(&self) -> Option<std::time::Duration> {
        self.device_timeout.map(|seconds| std::time::Duration::from_secs(seconds.into()))
    }

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
        if self.verify == VerifyName::None {
            words.push("--verify=none".into());
        }
        if let Some(seconds) = self.device_timeout {
            words.push(format!("--device-timeout={seconds}"));
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

/// What of a GPU's work is checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum VerifyName {
    /// Compute each piece twice, check transfers, compare a sample with the CPU
    #[default]
    Full,
    /// Check nothing: a faulty GPU makes wrong output
    None,
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
