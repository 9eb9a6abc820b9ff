//! Arguments of `wattlock provider`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};
use wattlock_host::values::{Choices, one_of};

/// Use Wattlock's ciphers in OpenSSL 3.0 or newer (tested with 3.0, 3.5, 3.6 and 4.0), and check their use.
#[derive(Debug, Subcommand)]
pub enum Provider {
    Config(ProviderConfig),
    Check(ProviderCheck),
    Stats(ProviderStats),
}

/// Print an openssl.cnf that loads Wattlock's ciphers, or nginx settings.
///
/// Set OPENSSL_CONF=FILE in the environment of one service only. The file includes the system's
/// openssl.cnf, so that policies such as MinProtocol stay in force. Compared with OpenSSL's own
/// ciphers, nginx with the `--nginx` settings and programs that write 64 KiB or more at once in
/// TLS 1.2 gain most. Others gain with AES-GCM, CTR and CBC decryption, more with OpenSSL 3.0 than
/// with later ones; AES-GCM in updates of less than 256 bytes can be slower with 3.5 and later.
#[derive(Debug, Args)]
pub struct ProviderConfig {
    /// Print nginx settings instead, which let one call encrypt several records
    #[arg(long, exclusive = true)]
    pub nginx: bool,
    /// Load the provider from FILE [default: the one installed with this program]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub provider: Option<PathBuf>,
    /// Count operations under NAME, for `wattlock provider stats`
    #[arg(long, value_name = "NAME")]
    pub statistics: Option<String>,
    /// Give requests above the threshold to this accelerator: a device that `wattlock devices` shows,
    /// such as `cuda:0`, or a model, such as `simulated:rate=6e9,latency_us=29` [default: none]
    #[arg(long, value_name = "NAME[:SETTINGS]")]
    pub accelerator: Option<String>,
    /// Offload requests larger than this; `auto` measures the threshold [default: auto]
    #[arg(long, value_name = "BYTES|auto")]
    pub threshold: Option<String>,
    /// Let libssl seal several records in one call [default: on for OpenSSL 3.0, 3.5, 3.6, 4.0]
    #[arg(long, value_parser = one_of(SWITCH), value_name = "SWITCH")]
    pub multiblock: Option<&'static str>,
}

/// Load the provider into an OpenSSL and report which of its ciphers are used.
///
/// Encrypts and decrypts with each of the provider's ciphers and with OpenSSL's own, using the
/// openssl program, and runs TLS between the two in both directions. Exits with 0 only if all
/// results agree and the provider's counters show that it was used; with 4 if there is no
/// provider or no openssl.
#[derive(Debug, Args)]
pub struct ProviderCheck {
    /// Load the provider from FILE [default: the one installed with this program]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub provider: Option<PathBuf>,
    /// Check this openssl program [default: openssl in PATH]
    #[arg(long, value_name = "PROGRAM", value_hint = ValueHint::FilePath)]
    pub openssl: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// Show the counters of running processes that use the provider.
///
/// Requires `statistics = NAME` in their configuration, and root for processes of other users.
#[derive(Debug, Args)]
pub struct ProviderStats {
    /// Show only this service (the NAME of `provider config --statistics`)
    #[arg(value_name = "NAME")]
    pub service: Option<String>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

/// On or off, as the provider's configuration has it.
const SWITCH: &Choices<&str> =
    &[("1", "on", "For every version of OpenSSL, tested or not"), ("0", "off", "Never")];
