//! Arguments of raw ciphers and hashes.

use std::path::PathBuf;

use clap::{Args, ValueEnum, ValueHint};
use wattlock_host::values::parse_size;

use super::KEYS;
use super::Spread;

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

const CIPHER_HELP: &str = "Examples:
  wattlock-lab cipher --alg aes-256-ctr --key \"$KEY\" --iv \"$IV\" < plain > sealed
  wattlock-lab cipher --alg aes-128-cbc --pad pkcs7 --key \"$KEY\" --iv \"$IV\" --decrypt < sealed
  wattlock-lab cipher --list
where KEY=$(openssl rand -hex 32) is 32 random bytes, and 16 for an IV or AES-128.

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 wrong key or damaged input.";

const HASH_HELP: &str = "Output is that of sha3sum: digest, two spaces, name.
Exit codes: 0 done, 1 a file could not be read, a digest differs or a line holds none, 2 wrong usage.";
