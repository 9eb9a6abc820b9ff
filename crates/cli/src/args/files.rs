//! Arguments of commands on files: protect, unprotect, verify, inspect, rekey and keygen.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use wattlock_file::{Format, SealedName, Shard};
use wattlock_host::flags::{Places, Run};
use wattlock_host::values::{Choices, from_to, one_of, parse_range};

use super::{EXIT_CODES, KEYS};
use crate::shard::parse_shard;

/// Protect files: authenticated encryption, on all cores.
///
/// FILE becomes FILE.wlk in the same folder, or FILE.age with --format age. Without FILE, standard
/// input is protected to standard output. FILE and outputs can be object-store addresses such as
/// s3://bucket/key.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, visible_alias = "encrypt")]
#[command(mut_arg("identities", |arg| arg.help(OWN_RECIPIENT)))]
#[command(mut_arg("ask", |arg| arg.help(NEW_PASSPHRASE)))]
pub struct Protect {
    #[command(flatten)]
    pub recipients: Recipients,
    #[command(flatten)]
    pub identities: IdentitySources,
    #[command(flatten)]
    pub passphrase: Passphrase,
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub batch: Batch,
    /// Container format
    #[arg(long, value_parser = one_of(FORMATS), default_value = "wattlock")]
    pub format: Format,
    /// Write ASCII armor; only with --format age
    #[arg(short, long)]
    pub armor: bool,
    /// Also write FILE.wlk.sig, a signature of the payload by this ssh-ed25519 private key
    #[arg(long, value_name = "KEY", value_hint = ValueHint::FilePath, help_heading = KEYS)]
    #[arg(conflicts_with = "resume")]
    pub sign: Option<String>,
    /// Leave the file's name, mode and time out of the container
    #[arg(long)]
    pub no_metadata: bool,
    /// Encrypt file paths in object names; requires an --out-dir in a store
    ///
    /// The key for the names is stored in the tree, encrypted to the recipients. Adding files to the tree
    /// needs an identity (-i) or the passphrase (-p) that decrypts this key. `unprotect --recursive` restores
    /// the paths.
    #[arg(long, requires = "out_dir")]
    pub hide_names: bool,
    /// Encrypt each file into DIR first, and delete that copy once it is uploaded
    ///
    /// After a crash, run again with --resume and the same DIR to upload only the missing parts. Without a
    /// copy, an interrupted upload starts anew with a new key. DIR needs space for up to 32 containers.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub spool: Option<PathBuf>,
    #[command(flatten)]
    pub run: Run,
}

/// Decrypt Wattlock or age files (the format is detected).
///
/// FILE.wlk or FILE.age becomes FILE, with its original mode (minus the umask) and time. A
/// container with another name needs -o, --out-dir or --restore-name. Without FILE, standard
/// input is decrypted to standard output; only authentic bytes are written. FILE and outputs can be
/// object-store addresses such as s3://bucket/key.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES, visible_alias = "decrypt")]
pub struct Unprotect {
    #[command(flatten)]
    pub identities: Identities,
    #[command(flatten)]
    pub passphrase: Passphrase,
    #[command(flatten)]
    pub places: Places,
    #[command(flatten)]
    pub batch: Batch,
    /// Decrypt only bytes A to B-1 (suffix K, M, G or T, 1K = 1024): "A..B", "A.." or "..B"
    #[arg(long, value_name = "A..B", value_parser = parse_range)]
    pub range: Option<(u64, u64)>,
    /// Write the authentic chunks of damaged containers to NAME.salvaged
    ///
    /// Lost bytes become zeros; their ranges are listed, and the exit code is 3. Nothing is written
    /// under the plain name. A damaged header, which holds the keys, prevents salvage.
    #[arg(long, conflicts_with_all = ["range", "replace", "resume", "restore_name"])]
    pub salvage: bool,
    /// Give the output the name sealed in the container; its folder stays the same
    #[arg(short = 'N', long, conflicts_with = "output")]
    pub restore_name: bool,
    /// With --restore-name, also use names that start with a dot
    #[arg(long, requires = "restore_name")]
    pub dot_files: bool,
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

/// Authenticate every byte of containers without writing anything.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
pub struct Verify {
    #[command(flatten)]
    pub identities: Identities,
    #[command(flatten)]
    pub passphrase: Passphrase,
    /// Use the key in FILE: 32 random bytes or 64 hexadecimal digits (only for sealed streams)
    #[arg(long, value_name = "FILE", help_heading = KEYS, value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["identities", "identity_command", "ask", "file", "fd", "env"])]
    #[arg(conflicts_with_all = ["signer", "recursive", "shard"])]
    pub key_file: Option<PathBuf>,
    /// Verify CONTAINER.sig against SIGNERS (allowed_signers format); needs no key
    ///
    /// With an identity or passphrase, the payload is verified, too.
    #[arg(long, value_name = "SIGNERS", value_hint = ValueHint::FilePath, help_heading = KEYS)]
    pub signer: Option<PathBuf>,
    /// Containers; standard input if "-" or omitted
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Take the containers in directories
    #[arg(long)]
    pub recursive: bool,
    #[command(flatten)]
    pub shard: ShardFlag,
    #[command(flatten)]
    pub run: Run,
}

/// Show the format, recipients and length of a container; more with a key.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
#[command(mut_arg("identities", |arg| arg.help(SHOW_SEALED)))]
pub struct Inspect {
    #[command(flatten)]
    pub identities: IdentitySources,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub passphrase: Passphrase,
    /// Containers; standard input if "-" or omitted
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Change the recipients of containers.
///
/// The recipients given replace all existing ones. The payload is neither changed nor checked, and
/// its key stays the same: a removed recipient who kept that key can still decrypt it. --reseal
/// decrypts the payload and encrypts it again under a new key.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
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
    /// Take the containers in directories
    #[arg(long)]
    pub recursive: bool,
    /// Encrypt the payload again under a new key
    #[arg(long)]
    pub reseal: bool,
    /// Write the container to FILE instead
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Replace an output that exists
    #[arg(short, long)]
    pub force: bool,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    /// Print a summary as JSON
    #[arg(long)]
    pub json: bool,
    /// Print errors only: no progress, no summary
    #[arg(short, long)]
    pub quiet: bool,
}

/// Generate an identity (private key) and show its recipient (public key).
///
/// On a terminal, the identity is written to ~/.config/wattlock/identity.txt, which the other commands
/// use where no key is given. Otherwise it goes to standard output, where a log may keep it: name a
/// file with -o. The file is an age identity: age
/// and rage read it, and wattlock reads theirs.
#[derive(Debug, Args)]
#[command(after_help = EXIT_CODES)]
#[command(mut_arg("ask", |arg| arg.help(IDENTITY_PASSPHRASE)))]
pub struct Keygen {
    /// Write the identity to FILE, readable only by you; never overwrites
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Make a post-quantum identity (ML-KEM-768 with X25519), for recipients age1pq1…
    #[arg(long)]
    pub pq: bool,
    /// Show the recipient of an existing identity instead of making one
    #[arg(short = 'y', long, value_name = "IDENTITY")]
    #[arg(conflicts_with_all = ["output", "pq", "ask", "file", "fd", "env"])]
    pub recipient_of: Option<String>,
    /// Protect the identity with a passphrase
    #[command(flatten)]
    pub passphrase: Passphrase,
}

/// For whom.
#[derive(Debug, Args)]
pub struct Recipients {
    /// Encrypt to RECIPIENT: age1…, age1pq1…, ssh-ed25519 …, ssh-rsa … or @NAME (repeatable)
    ///
    /// Recipients of age's plugins work, too. @NAME stands for the public keys in
    /// ~/.config/wattlock/recipients/NAME, one per line.
    #[arg(short, long = "recipient", value_name = "RECIPIENT", help_heading = KEYS, allow_hyphen_values = true)]
    pub recipients: Vec<String>,
    /// Encrypt to the recipients in FILE, one per line (repeatable)
    #[arg(short = 'R', long = "recipients-file", value_name = "FILE", help_heading = KEYS)]
    pub recipients_files: Vec<String>,
    /// scrypt work factor for passphrases: 2^N KiB of memory
    #[arg(long, value_name = "N", default_value_t = Self::WORK_FACTOR, help_heading = KEYS)]
    #[arg(value_parser = from_to(10_u8, 22))]
    pub work_factor: u8,
}

impl Recipients {
    /// Half a second, and 256 MiB of memory.
    pub const WORK_FACTOR: u8 = 18;

    /// True if there is one.
    pub fn are_given(&self) -> bool {
        !self.recipients.is_empty() || !self.recipients_files.is_empty()
    }
}

/// Where identities come from.
#[derive(Clone, Debug, Default, Args)]
pub struct IdentitySources {
    /// Open with this identity file: age or SSH private keys (repeatable)
    #[arg(short, long = "identity", value_name = "FILE", help_heading = KEYS)]
    pub identities: Vec<String>,
    /// Run a shell command and use the identities that it prints
    #[arg(long, value_name = "COMMAND", help_heading = KEYS)]
    pub identity_command: Option<String>,
}

/// By whom.
#[derive(Debug, Args)]
pub struct Identities {
    #[command(flatten)]
    pub identities: IdentitySources,
    #[command(flatten)]
    pub limits: Limits,
}

/// How much work a container may cause before it is known to be for these keys.
#[derive(Clone, Copy, Debug, Args)]
pub struct Limits {
    /// Refuse more than N recipients [default: 1024]
    #[arg(long, value_name = "N", help_heading = KEYS)]
    #[arg(value_parser = from_to(1_u32, 100_000))]
    pub max_recipients: Option<u32>,
    /// Refuse passphrase work factors above N; N takes 2^N KiB of memory
    #[arg(long, value_name = "N", default_value_t = Self::MAX_WORK_FACTOR, help_heading = KEYS)]
    #[arg(value_parser = from_to(1_u8, 30))]
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
    /// Ask for the passphrase on the terminal
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

/// What makes many files one run.
#[derive(Debug, Args)]
pub struct Batch {
    /// Take all files in directories; keep the tree under --out-dir
    #[arg(long)]
    pub recursive: bool,
    /// Skip files and directories that match a glob: "*.tmp", "photos/raw" (repeatable)
    ///
    /// A pattern without / matches names; one with / matches paths, with or without the directory
    /// that was given. *, ? and […] do not match /; ** does.
    #[arg(long, value_name = "PATTERN")]
    pub exclude: Vec<String>,
    /// List planned outputs, overwrites and removals; change nothing
    #[arg(short = 'n', long)]
    pub dry_run: bool,
    /// List each file when it is done
    #[arg(short, long, conflicts_with = "quiet")]
    pub verbose: bool,
    /// Remove each input once its output is written, synced to disk and read back
    #[arg(long)]
    pub replace: bool,
    /// Skip inputs whose existing output verifies
    ///
    /// `unprotect` compares each existing output with its container. `protect` needs the identity
    /// of each recipient (-i), or the passphrase, to prove that the container is encrypted to these
    /// recipients and no others. An output that fails is an error; --force replaces it. In a store, an object
    /// with the file's length and time is kept without reading all of it.
    #[arg(long)]
    pub resume: bool,
    #[command(flatten)]
    pub shard: ShardFlag,
}

/// The part of the files that this run does.
#[derive(Debug, Args)]
pub struct ShardFlag {
    /// Process only shard I of N, to share a tree among machines: "3/16", "auto" or "auto/16"
    ///
    /// A file belongs to one shard, by a hash of its path. "auto/N" takes I from a Slurm array, an AWS Batch
    /// array job or a Kubernetes indexed job with tasks 0 to N-1; "auto" takes N from the first two as well. To
    /// run a failed shard again, `protect` and `unprotect` need --resume.
    #[arg(long, value_name = "I/N", value_parser = parse_shard)]
    pub shard: Option<Shard>,
}

/// What -i is for where files are encrypted.
const OWN_RECIPIENT: &str = "Encrypt to the public key of this identity; --resume verifies with it \
                             (repeatable)";

/// What -p is for where files are encrypted.
pub const NEW_PASSPHRASE: &str =
    "Ask for a passphrase on the terminal; leave it empty to generate one";

/// What -p is for where an identity is made.
const IDENTITY_PASSPHRASE: &str = "Ask for a passphrase to encrypt the identity; leave it empty to \
                                   generate one";

/// What -i is for where containers are described.
const SHOW_SEALED: &str = "Open the header with this identity, to show what is sealed in it";

/// The container formats.
const FORMATS: &Choices<Format> = &[
    (Format::WattlockV1, "wattlock", "wattlock v1: AES-256-GCM in 16 KiB chunks"),
    (Format::AgeV1, "age", "age v1: ChaCha20-Poly1305 in 64 KiB chunks"),
];
