//! Arguments of `wattlock kafka`.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use wattlock_host::values::{from_to, parse_size_above_zero};
use wattlock_kafka::Address;

use super::stream::parse_tenant;
use super::{EXIT_CODES, IdentitySources, KEYS, Limits, Passphrase, Recipients};

/// Encrypt the records of a Kafka topic into another topic; --open decrypts them.
///
/// Values are encrypted. Record keys, headers, timestamps and tombstones stay as they are, and so do
/// partition numbers if both topics have as many. A sealed record opens only in its topic, under its
/// record key, for its tenant. The wrapped keys are in a topic of their own, TOPIC.keys.
///
/// Within one cluster (the same servers in --from and --to), each record is written exactly once.
/// Between clusters, each record is written at least once: after a failure some come twice.
#[derive(Debug, Args)]
#[command(after_help = format!("{HELP}\n{EXIT_CODES}"))]
#[command(mut_arg("identities", |arg| arg.help(IDENTITIES)))]
#[command(mut_arg("ask", |arg| arg.help(super::files::NEW_PASSPHRASE)))]
pub struct Kafka {
    /// Decrypt sealed records; ends at the first record that is not authentic
    #[arg(long)]
    pub open: bool,
    /// Read this topic: kafka://HOST:PORT[,HOST:PORT…]/TOPIC
    #[arg(long, value_name = "ADDRESS")]
    pub from: Address,
    /// Write to this topic, which must exist
    #[arg(long, value_name = "ADDRESS")]
    pub to: Address,
    #[command(flatten)]
    pub recipients: Recipients,
    #[command(flatten)]
    pub identities: IdentitySources,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub passphrase: Passphrase,
    /// Use the key in FILE, not recipients: 32 random bytes or 64 hexadecimal digits
    #[arg(long, value_name = "FILE", help_heading = KEYS, value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["recipients", "recipients_files", "identities", "identity_command"])]
    #[arg(conflicts_with_all = ["ask", "file", "fd", "env"])]
    pub key_file: Option<PathBuf>,
    /// Topic of the wrapped keys [default: SEALED-TOPIC.keys]
    #[arg(long, value_name = "TOPIC", help_heading = KEYS)]
    pub keys: Option<String>,
    /// Tenant that the records are sealed for; needed again to open them
    #[arg(long, value_name = "NAME", value_parser = parse_tenant, help_heading = KEYS)]
    pub tenant: Option<String>,
    /// Make a new key after N seconds
    #[arg(long, value_name = "SECONDS", value_parser = from_to(1, u64::from(u32::MAX)))]
    #[arg(default_value_t = 86_400, help_heading = KEYS, conflicts_with = "open")]
    pub key_age: u64,
    /// Make a new key after N records
    #[arg(long, value_name = "N", value_parser = from_to(1, 1_u64 << 31))]
    #[arg(default_value_t = 1 << 31, help_heading = KEYS, conflicts_with = "open")]
    pub key_records: u64,
    /// Make a new key after BYTES of values (suffix K, M, G or T)
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero, default_value = "64G")]
    #[arg(help_heading = KEYS, conflicts_with = "open")]
    pub key_bytes: u64,
    /// Consumer group; its members share the partitions [default: wattlock.TARGET-TOPIC]
    #[arg(long, value_name = "NAME", help_heading = GROUP)]
    pub group: Option<String>,
    /// Name of this process in the group, the same after a restart [default: the host's name]
    ///
    /// Do not run two processes with the same name: each stops the other. A process that is started
    /// again under its name aborts the transaction that it left open, and has its partitions back at
    /// once.
    #[arg(long, value_name = "NAME", help_heading = GROUP)]
    pub id: Option<String>,
    /// Exit after the records that were in the topic at the start
    #[arg(long)]
    pub until_end: bool,
    /// Client settings, such as TLS and SASL, as NAME=VALUE lines of librdkafka in FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub config: Option<PathBuf>,
    /// Client settings for the cluster in --to [default: those of --config]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to_config: Option<PathBuf>,
    /// Print a summary as JSON on standard error
    #[arg(long)]
    pub json: bool,
    /// Errors only
    #[arg(short, long)]
    pub quiet: bool,
}

const GROUP: &str = "Many processes";

/// What -i is for.
const IDENTITIES: &str = "Also encrypt to this identity; with --open, decrypt with it (repeatable)";

const HELP: &str = "Examples:
  wattlock kafka --from kafka://broker:9092/orders --to kafka://broker:9092/orders.sealed -r \"$TO\"
  wattlock kafka --open --from kafka://broker:9092/orders.sealed --to kafka://broker:9092/out -i key.txt
where TO=$(wattlock keygen -y key.txt)

SIGTERM and SIGINT end it after the transaction in progress. Records that are repeated, left out or
reordered are not detected.

Exit code 3 also means: a record is not authentic, or its key is missing. Nothing of its transaction
was committed.
";
