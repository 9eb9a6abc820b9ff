//! Arguments of raw ciphers and hashes.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use wattlock_engine::crypto::{KeccakKernel, ShaKernel};
use wattlock_host::values::{from_to, parse_size};

use super::KEYS;
use super::Spread;

/// Run a raw cipher from standard input to standard output (for tests and study).
///
/// To keep data safe, use `wattlock protect` instead. Only AES-GCM authenticates its data, and every
/// process of the machine can read a key on the command line. AES-GCM runs on one CPU thread and
/// holds the whole message in memory, because no plaintext may leave before the tag is verified; all
/// other ciphers stream.
#[derive(Debug, Args)]
#[command(after_help = CIPHER_HELP)]
pub struct Cipher {
    /// Use this algorithm, such as aes-256-ctr; --list shows them all
    #[arg(long, value_name = "NAME", required_unless_present = "list")]
    pub alg: Option<String>,
    /// Key in hexadecimal
    #[arg(long, value_name = "HEX", required_unless_present = "list", help_heading = KEYS)]
    pub key: Option<String>,
    /// Second key of rc4a in hexadecimal [default: the first bytes of RC4's key stream under --key]
    #[arg(long, value_name = "HEX", help_heading = KEYS)]
    pub key2: Option<String>,
    /// Initialisation vector, or nonce of GCM, in hexadecimal
    #[arg(long, value_name = "HEX", help_heading = KEYS)]
    pub iv: Option<String>,
    /// Additional authenticated data of GCM in hexadecimal; it is not encrypted
    #[arg(long, value_name = "HEX", help_heading = KEYS)]
    pub aad: Option<String>,
    /// Decrypt; with GCM, the last 16 bytes of the input are the tag
    #[arg(short, long)]
    pub decrypt: bool,
    /// Pad messages of block modes to whole blocks
    #[arg(long, value_enum, value_name = "PADDING", default_value_t)]
    pub pad: Padding,
    /// Use this kernel of the algorithm (see --list) [default: the fastest known on this CPU]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    /// Give each thread this many bytes at a time: whole blocks, at most 8M [default: by cache size]
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub block_size: Option<u64>,
    #[command(flatten)]
    pub spread: Spread,
    /// List all algorithms and kernels, and whether each runs on this machine
    #[arg(long, conflicts_with_all = LISTED_ALONE)]
    pub list: bool,
    /// Print JSON; requires --list
    #[arg(long, requires = "list")]
    pub json: bool,
}

/// How a message becomes whole blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Padding {
    /// No padding: refuse a message that is not whole blocks
    #[default]
    None,
    /// PKCS#7
    Pkcs7,
}

/// Print or check SHA-3 and SHA-256 digests; hash several files at once.
#[derive(Debug, Args)]
#[command(after_help = hash_help())]
pub struct Hash {
    /// Use this algorithm
    #[arg(long, value_enum, default_value_t)]
    pub alg: HashAlgorithm,
    /// Files; standard input if "-" or omitted
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Read digests and file names from each FILE, and check them
    #[arg(short, long)]
    pub check: bool,
    /// Do not list files that match; requires --check
    #[arg(short, long, requires = "check")]
    pub quiet: bool,
    /// Block size of parallelhash256 in bytes, at most 64M; changes the digest [default: 8192]
    ///
    /// Each thread holds eight blocks in memory.
    #[arg(long, value_name = "BYTES", value_parser = parse_size)]
    pub block_size: Option<u64>,
    /// Use this kernel of the algorithm (see below) [default: the fastest known on this CPU]
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
}

/// The digests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum HashAlgorithm {
    /// FIPS 202; several files share the lanes of one core
    #[default]
    #[value(name = "sha3-256")]
    Sha3_256,
    /// FIPS 180-4; several files share the lanes of one core
    #[value(name = "sha256")]
    Sha256,
    /// NIST SP 800-185, 256-bit output; one long file uses all lanes and threads
    #[value(name = "parallelhash256")]
    ParallelHash256,
    /// KangarooTwelve, RFC 9861, 256-bit output; one long file uses all lanes and threads
    #[value(name = "kt128")]
    Kt128,
}

/// What `cipher --list` would not look at.
const LISTED_ALONE: [&str; 9] =
    ["alg", "key", "key2", "iv", "aad", "decrypt", "pad", "kernel", "block_size"];

const CIPHER_HELP: &str = "Examples:
  KEY=$(openssl rand -hex 32) IV=$(openssl rand -hex 16)
  wattlock-lab cipher --alg aes-256-cbc --pad pkcs7 --key \"$KEY\" --iv \"$IV\" < text > encrypted
  wattlock-lab cipher --alg aes-256-cbc --pad pkcs7 --key \"$KEY\" --iv \"$IV\" --decrypt < encrypted
  wattlock-lab cipher --list

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong key or damaged input, 4 missing device or
program; 128 + n is what a shell reports of a program that signal n ended.";

fn hash_help() -> String {
    format!(
        "Kernels of sha256: {}; of the others: {}. `wattlock doctor` says which run here.

Prints lines as sha3sum does: digest, two spaces, name.

Exit codes: 0 done, 1 a file could not be read, a digest differs or a line holds none, 2 wrong usage.",
        ShaKernel::NAMES.join(", "),
        KeccakKernel::NAMES.join(", "),
    )
}
