//! Arguments of `wattlock stream`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueHint};
use wattlock_host::values::{Choices, from_to, one_of, parse_size_above_zero};
use wattlock_report::date;
use wattlock_stream::frame::Framing;
use wattlock_stream::gateway::{Acknowledged, Address, Durability, Protocol, WhenFull};
use wattlock_stream::{Ladder, Velocity};

use super::{DEVICES, ENERGY, EXIT_CODES, IdentitySources, KEYS, Limits, Passphrase, Recipients};

/// Encrypt a stream of messages from stdin or many connections; --open decrypts it.
///
/// Messages come from standard input, or with --listen from any number of connections, and go out
/// sealed to standard output, to files, or to a peer. --open detects truncated, repeated, reordered
/// and inserted messages. Memory is bounded: senders block when output is slower than input.
#[derive(Debug, Args)]
#[command(after_help = format!("{STREAM_HELP}\n{EXIT_CODES}"))]
#[command(mut_arg("max_recipients", |arg| arg.help(MAX_RECIPIENTS)))]
#[command(mut_arg("identities", |arg| arg.help(IDENTITIES)))]
#[command(mut_arg("ask", |arg| arg.help(super::files::NEW_PASSPHRASE)))]
pub struct Stream {
    /// Decrypt sealed streams; only authentic messages are written
    #[arg(long)]
    pub open: bool,
    /// Receive segments from --forward and store them, still sealed, in -o FOLDER/
    #[arg(long, requires = "listen", requires = "output")]
    #[arg(conflicts_with_all = ["open", "recipients", "recipients_files", "identities", "forward"])]
    #[arg(conflicts_with_all = ["key_file", "ask", "file", "fd", "env", "identity_command"])]
    #[arg(conflicts_with_all = ["framing", "max_message", "idle_timeout", "force", "rotate_size"])]
    #[arg(conflicts_with_all = ["rotate_time", "sync", "max_size", "tenant", "key_age", "key_bytes"])]
    #[arg(conflicts_with_all = ["key_records", "connect", "retry", "window", "threads", "policy"])]
    #[arg(conflicts_with_all = ["device", "set_clocks", "drain", "ack_forwarded"])]
    pub store: bool,
    /// With --open: read these files, or all segments of a folder, instead of standard input
    #[arg(value_name = "PATH", value_hint = ValueHint::AnyPath, conflicts_with = "listen")]
    pub paths: Vec<PathBuf>,
    /// With --open of segments: only messages that came at TIME or later
    ///
    /// TIME is as in 2026-11-26T19:30:00Z, a date, or @SECONDS since 1970.
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = INPUT)]
    #[arg(requires = "paths")]
    pub from: Option<u64>,
    /// With --open of segments: only messages that came before TIME
    #[arg(long, value_name = "TIME", value_parser = parse_time, help_heading = INPUT)]
    #[arg(requires = "paths")]
    pub until: Option<u64>,
    /// With --open of segments: only messages from NAME, an address with or without its port
    #[arg(long, value_name = "NAME", help_heading = INPUT, requires = "paths")]
    pub source: Option<String>,
    /// With --open of a folder: wait for more messages and deliver them, until stopped
    #[arg(long, help_heading = INPUT, requires = "paths")]
    #[arg(conflicts_with_all = ["from", "until", "source"])]
    pub follow: bool,
    /// With --follow: resume where FILE says that the last run stopped
    #[arg(long, value_name = "FILE", help_heading = INPUT, value_hint = ValueHint::FilePath)]
    #[arg(requires = "follow")]
    pub position: Option<PathBuf>,
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
    /// How input is split into messages
    #[arg(long, value_parser = one_of(FRAMINGS), default_value = "raw")]
    #[arg(help_heading = INPUT, conflicts_with = "open")]
    pub framing: Protocol,
    /// Maximum message length (suffix K, M, G or T) [default: 16M; with --framing raw 64K]
    ///
    /// A connection that sends a longer message is closed. With --framing raw, the maximum number of
    /// bytes that are sealed at once.
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero)]
    #[arg(help_heading = INPUT)]
    pub max_message: Option<u64>,
    /// Accept connections at tls:HOST:PORT, tcp:HOST:PORT or unix:PATH instead of reading standard input
    #[arg(long, value_name = "ADDRESS", help_heading = INPUT)]
    pub listen: Option<Address>,
    /// Maximum number of connections; more are refused
    #[arg(long, value_name = "N", default_value_t = 16_384, help_heading = INPUT)]
    #[arg(requires = "listen", value_parser = from_to(1_u32, 65_536))]
    pub max_connections: u32,
    /// Close connections after N seconds without data or on one message
    ///
    /// With 0, idle connections stay open, and a message may take 300 s.
    #[arg(long, value_name = "SECONDS", default_value_t = 0, help_heading = INPUT)]
    #[arg(requires = "listen", value_parser = from_to(0, u32::MAX))]
    pub idle_timeout: u32,
    /// Let other machines reach --listen and --metrics (no encryption or authentication)
    ///
    /// With --store, other machines need client certificates all the same: see --tls-client-ca.
    #[arg(long, help_heading = INPUT)]
    pub insecure: bool,
    /// Accept only the senders in FILE, and write each tenant's data to TENANT/ in the -o folder
    ///
    /// Each line is TENANT cert NAME (a DNS name or URI in the sender's certificate) or TENANT token
    /// SHA256. A sender whose certificate is not listed first sends a line "token TOKEN".
    #[arg(long, value_name = "FILE", help_heading = TLS, value_hint = ValueHint::FilePath)]
    #[arg(requires = "listen", requires = "output", conflicts_with_all = ["open", "tenant"])]
    pub tenants: Option<PathBuf>,
    /// Present the certificate in FILE at tls: addresses (PEM, with intermediate certificates)
    #[arg(long, value_name = "FILE", help_heading = TLS, value_hint = ValueHint::FilePath)]
    #[arg(requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,
    /// The private key of --tls-cert (PEM)
    #[arg(long, value_name = "FILE", help_heading = TLS, value_hint = ValueHint::FilePath)]
    #[arg(requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
    /// With --listen tls:HOST:PORT: require certificates that the CAs in FILE issued (PEM)
    ///
    /// If --tenants has tokens, a sender may send a token instead.
    #[arg(long, value_name = "FILE", help_heading = TLS, value_hint = ValueHint::FilePath)]
    #[arg(requires = "listen")]
    pub tls_client_ca: Option<PathBuf>,
    /// With --connect or --forward to tls:HOST:PORT: trust the CAs in FILE (PEM) [default: the system's]
    #[arg(long, value_name = "FILE", help_heading = TLS, value_hint = ValueHint::FilePath)]
    pub tls_ca: Option<PathBuf>,
    /// Write to FILE, or to FILE.000001 and so on if it exists (error with --open)
    ///
    /// If FILE ends with a slash or is a folder, writes segments and their keys into it. They survive a
    /// crash, and --from, --until and --source select messages.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::AnyPath)]
    #[arg(help_heading = OUTPUT, conflicts_with = "connect")]
    pub output: Option<PathBuf>,
    /// Replace an output that exists
    #[arg(short, long, help_heading = OUTPUT, requires = "output")]
    pub force: bool,
    /// Write FILE.000001 and so on, a new one after BYTES (suffix K, M, G or T)
    ///
    /// Each file decrypts on its own. In a folder, the default is 256M.
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero, help_heading = OUTPUT)]
    #[arg(requires = "output", conflicts_with = "open")]
    pub rotate_size: Option<u64>,
    /// Write FILE.000001 and so on; start the next file after N seconds
    #[arg(long, value_name = "SECONDS", value_parser = from_to(1, u64::from(u32::MAX)))]
    #[arg(requires = "output", conflicts_with = "open", help_heading = OUTPUT)]
    pub rotate_time: Option<u64>,
    /// With -o FOLDER/: when to sync and acknowledge [default: batch for acknowledged framings and
    /// --forward, else never]
    ///
    /// batch: after each write. N: at most N milliseconds later (1 to 60000). never: at the end of a
    /// segment; acknowledged messages then survive a crash of the program, but not of the system.
    #[arg(long, value_name = "batch|never|N", value_parser = parse_sync, help_heading = OUTPUT)]
    #[arg(requires = "output", conflicts_with = "open")]
    pub sync: Option<Durability>,
    /// With -o FOLDER/: keep about BYTES of segments at most (suffix K, M, G or T)
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero, help_heading = OUTPUT)]
    #[arg(requires = "output", conflicts_with = "open")]
    pub max_size: Option<u64>,
    /// With --max-size: what happens when it is reached
    #[arg(long, value_parser = one_of(WHEN_FULL), default_value = "block", help_heading = OUTPUT)]
    #[arg(requires = "max_size")]
    pub when_full: WhenFull,
    /// With -o FOLDER/: copy segments to the wattlock stream --store at ADDRESS (repeatable)
    ///
    /// After a break, resumes at the first byte that the peer has not stored. Peers do not wait for
    /// each other.
    #[arg(long, value_name = "ADDRESS", help_heading = OUTPUT)]
    #[arg(requires = "output", conflicts_with = "open")]
    pub forward: Vec<Address>,
    /// Acknowledge a message only once every --forward peer has stored it, too
    #[arg(long, help_heading = OUTPUT, requires = "forward")]
    pub ack_forwarded: bool,
    /// Remove segments that every --forward peer has stored
    #[arg(long, help_heading = OUTPUT, requires = "forward")]
    pub remove_forwarded: bool,
    /// With -o FOLDER/: seal for NAME, with keys of its own, in FOLDER/NAME/
    ///
    /// Removing FOLDER/NAME/keys makes all that was sealed for NAME unreadable.
    #[arg(long, value_name = "NAME", value_parser = parse_tenant, help_heading = OUTPUT)]
    #[arg(requires = "output", conflicts_with = "open")]
    pub tenant: Option<String>,
    /// With -o FOLDER/: make a new key after N seconds
    #[arg(long, value_name = "SECONDS", value_parser = from_to(1, u64::from(u32::MAX)))]
    #[arg(default_value_t = 86_400, help_heading = OUTPUT)]
    pub key_age: u64,
    /// With -o FOLDER/: make a new key after BYTES of messages (suffix K, M, G or T)
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero, default_value = "64G")]
    #[arg(help_heading = OUTPUT)]
    pub key_bytes: u64,
    /// With -o FOLDER/: make a new key after N records
    #[arg(long, value_name = "N", value_parser = from_to(1, 1_u64 << 31))]
    #[arg(default_value_t = 1 << 31, help_heading = OUTPUT)]
    pub key_records: u64,
    /// Send to tls:HOST:PORT, tcp:HOST:PORT or unix:PATH (with --open: one connection per sender)
    #[arg(long, value_name = "ADDRESS", help_heading = OUTPUT)]
    pub connect: Option<Address>,
    /// With --follow --connect: how the peer acknowledges messages, which are sent again until it does
    #[arg(long, value_parser = one_of(ACKNOWLEDGED), default_value = "never")]
    #[arg(help_heading = OUTPUT, requires = "follow", requires = "connect")]
    pub acknowledged: Acknowledged,
    /// Retry an unreachable peer or a full disk for N seconds; 0 does not retry [default: no limit with
    /// --listen and --follow, else 30]
    #[arg(long, value_name = "SECONDS", value_parser = from_to(0, u32::MAX), help_heading = OUTPUT)]
    pub retry: Option<u32>,
    /// With --open --connect: drop a backend's queue after N seconds without progress
    ///
    /// This happens only while other connections wait for that backend.
    #[arg(long, value_name = "SECONDS", default_value_t = 10, help_heading = OUTPUT)]
    #[arg(value_parser = from_to(1, u32::MAX))]
    pub peer_timeout: u32,
    /// Maximum bytes in flight (suffix K, M, G or T); senders block when it is full [default: 32M, or
    /// more if --max-message needs it]
    #[arg(long, value_name = "BYTES", value_parser = parse_size_above_zero)]
    pub window: Option<u64>,
    /// CPU threads [default: all]
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 256))]
    pub threads: Option<u16>,
    /// With --listen --connect: threads that read connections
    ///
    /// Each has its own window and, unless --open is given, its own connection to the peer. More of them are
    /// faster where messages are long and CPUs are free.
    #[arg(long, value_name = "N", value_parser = from_to(1_u16, 64), default_value_t = 1)]
    #[arg(requires = "listen", requires = "connect", conflicts_with_all = ["device", "set_clocks"])]
    pub readers: u16,
    /// Choose the number of threads, or with --set-clocks the clock
    ///
    /// The deadline is 50 ms, and shorter if the window fills sooner. No option changes it.
    #[arg(long, value_parser = one_of(Velocity::CHOICES))]
    #[arg(value_name = "POLICY", default_value = "paced")]
    pub policy: fn(&Ladder, f64) -> Velocity,
    /// Seal and open on this GPU, such as cuda:0; see `wattlock devices` [default: the CPU]
    ///
    /// The GPU gets runs of 8 or more messages of equal length, as --framing raw produces from a file.
    /// The CPU does the rest; with ndjson that is nearly all. If the GPU fails, the CPU takes over.
    #[arg(long, value_name = "NAME", help_heading = DEVICES)]
    pub device: Option<String>,
    /// Let the policy set the CPU clock, not the thread count; restore it at the end
    ///
    /// With --device, sets the core and memory clocks of that GPU instead.
    #[arg(long, help_heading = ENERGY)]
    pub set_clocks: bool,
    /// On SIGTERM or SIGINT, take up to N seconds to deliver what senders have written
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    #[arg(value_parser = from_to(0, u32::MAX))]
    pub drain: u32,
    /// Serve metrics for Prometheus at IP:PORT
    #[arg(long, value_name = "ADDRESS", value_parser = parse_socket, help_heading = REPORT)]
    pub metrics: Option<SocketAddr>,
    /// Print a summary as JSON on standard error
    #[arg(long, help_heading = REPORT)]
    pub json: bool,
    /// Errors only: no status line on a terminal
    #[arg(short, long, help_heading = REPORT)]
    pub quiet: bool,
}

/// An address without a name, which may have several.
fn parse_socket(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is not IP:PORT, such as 127.0.0.1:9100"))
}

/// When messages are made durable.
fn parse_sync(text: &str) -> Result<Durability, String> {
    let wrong = || format!("{text:?} is neither batch nor never, nor 1 to 60000 milliseconds");
    match text {
        "batch" => Ok(Durability::EachBatch),
        "never" => Ok(Durability::AtEnd),
        _ => match text.parse().map_err(|_| wrong())? {
            milliseconds @ 1..=60_000 => {
                Ok(Durability::Within(Duration::from_millis(milliseconds)))
            }
            _ => Err(wrong()),
        },
    }
}

/// Microseconds since 1970.
fn parse_time(text: &str) -> Result<u64, String> {
    date::parse_us(text).ok_or_else(|| {
        format!("{text:?} is not a time, such as 2026-11-26T19:30:00Z, 2026-11-26 or @1795000000")
    })
}

/// How a peer acknowledges messages.
const ACKNOWLEDGED: &Choices<Acknowledged> = &[
    (
        Acknowledged::Never,
        "never",
        "No acknowledgement: messages on their way are lost if a connection breaks",
    ),
    (Acknowledged::Numbered, "numbered", "As wattlock stream --framing numbered does"),
    (Acknowledged::Relp, "relp", "By RELP, as rsyslog's imrelp does"),
];

/// A name that is a folder, too.
pub fn parse_tenant(name: &str) -> Result<String, String> {
    let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.@".contains(&byte);
    if name.is_empty() || name.len() > 128 || name.starts_with('.') || !name.bytes().all(is_allowed)
    {
        return Err(format!(
            "{name:?} is not a tenant's name: letters, digits, and any of -_.@, not beginning with a dot"
        ));
    }
    if ["keys", "last", "id"].contains(&name) || name.ends_with(".wls") {
        return Err(format!("{name:?} is the name of something else in a folder of segments"));
    }
    Ok(name.to_owned())
}

const MAX_RECIPIENTS: &str = "Refuse more than N recipients [default: 1024; 128 with --listen]";

/// How messages are told apart.
const FRAMINGS: &Choices<Protocol> = &[
    (Protocol::Plain(Framing::Raw), "raw", "No framing: bytes are sealed as they arrive"),
    (Protocol::Plain(Framing::Lines), "ndjson", "One message per line; the content is not parsed"),
    (Protocol::Plain(Framing::Length), "length", "A 4-byte big-endian length before each message"),
    (Protocol::Numbered, "numbered", "Length and number before each message; acknowledged"),
    (Protocol::Relp, "relp", "RELP of rsyslog, one line per message; acknowledged"),
    (
        Protocol::Fluent,
        "fluent",
        "Forward protocol of Fluentd and Fluent Bit; acknowledged on request",
    ),
];

/// What happens when a folder has reached --max-size.
const WHEN_FULL: &Choices<WhenFull> = &[
    (WhenFull::Block, "block", "Senders wait until segments are removed"),
    (
        WhenFull::DropOldest,
        "drop-oldest",
        "The oldest segments are removed; their bytes are counted",
    ),
];

const INPUT: &str = "Input";
const TLS: &str = "TLS and tenants";

const OUTPUT: &str = "Output";

const REPORT: &str = "Status and metrics";

const STREAM_HELP: &str = "Examples:
  journalctl -f -o json | wattlock stream -r \"$TO\" --framing ndjson -o log.wls --rotate-size 1G
  wattlock stream --key-file key --listen unix:/run/in.sock --connect tcp:backup:7000
  wattlock stream --open -i key.txt < log.wls.000001
  wattlock stream -r \"$TO\" --framing ndjson --listen tcp:127.0.0.1:7000 -o logs/
  wattlock stream --open -i key.txt --from 2026-11-26T19:00:00Z --source 10.0.0.7 logs/
where TO=$(wattlock keygen -y key.txt), and key is made by: head -c 32 /dev/urandom > key

A file that was truncated, or left by a killed program, decrypts up to its last complete
message; the exit code is 3. Decrypt consecutive files one by one, or together: cat log.wls.* | ...

Exit code 1 also means: messages were lost or may be lost (see the summary), or a sealed connection
was cut. Exit code 3 also means: truncated input, or not a sealed stream.
";

/// What -i is for.
const IDENTITIES: &str = "Also encrypt to this identity; with --open, decrypt with it (repeatable)";
