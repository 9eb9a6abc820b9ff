//! The stream key: from a file, or wrapped for recipients as in a container.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use anyhow::Context;
use wattlock_engine::crypto::Secret;
use wattlock_file::{self as file, Identities, Shown, Wrapping, unwrap_data_key, wrap_data_key};
use wattlock_host::exit::{redact_value, usage};
use wattlock_stream::frame::{Error as FrameError, MAX_KEY_HEADER_LEN};
use wattlock_stream::gateway::Unlock;
use zeroize::Zeroizing;

use crate::args;
use crate::keys;

/// A key for sealing, and the header that wraps it; the header is empty for a key from a file.
pub fn stream_key(args: &args::Stream) -> anyhow::Result<(Secret<32>, Vec<u8>)> {
    if let Some(key) = shared(args)? {
        return Ok((key, Vec::new()));
    }
    let (header, key) = wrap_data_key(&wrapping(args)?)?;
    Ok((key, header))
}

/// The key of --key-file.
pub fn shared(args: &args::Stream) -> anyhow::Result<Option<Secret<32>>> {
    args.key_file.as_deref().map(from_file).transpose()
}

/// Wraps keys for the recipients that were given.
pub fn wrapping(args: &args::Stream) -> anyhow::Result<Wrapping> {
    let own = keys::own_recipients(&args.recipients, &args.identities, &args.passphrase)?;
    let passphrase = keys::passphrase(&args.passphrase, true)?;
    let stdin_is_data = args.listen.is_none();
    let recipients = keys::recipients(&args.recipients, &own, passphrase, stdin_is_data)?;
    Ok(Wrapping::new(recipients))
}

/// What opens the keys of streams.
#[derive(Clone)]
pub enum OpeningKey {
    /// A key that was shared beforehand: the one of --key-file.
    Shared(Arc<Secret<32>>),
    /// Identities, for keys that were wrapped for recipients.
    Identities(Arc<Identities>),
}

impl OpeningKey {
    /// The one that the options name.
    pub fn new(args: &args::Stream) -> anyhow::Result<Self> {
        Ok(match shared(args)? {
            Some(key) => Self::Shared(Arc::new(key)),
            None => Self::Identities(Arc::new(identities(args)?)),
        })
    }

    /// The key of a stream of version 1 with this header.
    ///
    /// # Errors
    /// [`FrameError::Key`].
    pub fn unlock(&self, header: &[u8]) -> Result<Secret<32>, FrameError> {
        match (self, header) {
            (Self::Shared(key), []) => {
                Ok(Secret::init_with(|bytes| bytes.copy_from_slice(key.expose())))
            }
            (Self::Shared(_), _) => {
                Err(FrameError::Key("it was sealed for recipients: open it with -i or -p".into()))
            }
            (Self::Identities(_), []) => Err(FrameError::Key(NEEDS_KEY_FILE.into())),
            (Self::Identities(identities), header) => unwrap_data_key(header, identities)
                .map_err(|error| FrameError::Key(KeyHeader(error).into())),
        }
    }
}

/// Why identities do not open a stream.
pub const NEEDS_KEY_FILE: &str = "it was sealed with --key-file, and needs that file";

/// What opens keys that were wrapped.
fn identities(args: &args::Stream) -> anyhow::Result<Identities> {
    let passphrase = keys::passphrase(&args.passphrase, false)?;
    let stdin_is_data = args.listen.is_none() && args.paths.is_empty();
    let limits = args::Limits { max_recipients: Some(max_recipients(args)), ..args.limits };
    keys::some_identities(&args.identities, passphrase, stdin_is_data, limits)
}

/// Finds the keys of streams that are opened.
pub fn unlock(args: &args::Stream) -> anyhow::Result<Box<Unlock>> {
    let key = OpeningKey::new(args)?;
    Ok(Box::new(move |header| key.unlock(header)))
}

/// What is wrong with the header that wraps a stream's key, which has the form of a container's.
#[derive(Debug)]
pub struct KeyHeader(pub file::Error);

impl std::fmt::Display for KeyHeader {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            file::Error::WrongKey { recipients } => {
                write!(f, "no given identity opens this stream; it is encrypted to {recipients}")
            }
            file::Error::NeedsPassphrase => f.write_str("this stream needs a passphrase"),
            file::Error::TooManyRecipients { found, limit } => write!(
                f,
                "the stream is for {found} recipients, and the limit is {limit}: raise it with \
                 --max-recipients {found}"
            ),
            file::Error::NotAContainer
            | file::Error::SealedStream
            | file::Error::UnknownVersion
            | file::Error::HeaderCut => {
                f.write_str("the header with the stream's key is malformed")
            }
            other => other.fmt(f),
        }
    }
}

impl std::error::Error for KeyHeader {}

/// The most recipients of a stream: each may cost an attempt to unwrap the key, and a header may come
/// from anybody who can connect.
fn max_recipients(args: &args::Stream) -> u32 {
    let default = if args.listen.is_some() { FROM_NETWORK } else { FROM_FILE };
    args.limits.max_recipients.unwrap_or(default)
}

/// Bytes of the longest key header: enough for as many recipients of every type.
pub fn max_header(args: &args::Stream) -> usize {
    match args.listen {
        Some(_) => 4096 + 2048 * max_recipients(args) as usize,
        None => MAX_KEY_HEADER_LEN,
    }
}

const FROM_NETWORK: u32 = 128;
const FROM_FILE: u32 = wattlock_file::MAX_RECIPIENTS as u32;

/// The key in a file: 32 bytes, or 64 hexadecimal digits.
pub fn from_file(path: &Path) -> anyhow::Result<Secret<32>> {
    // It may be the key itself, in the wrong place.
    let shown = redact_value(&Shown(path).to_string());
    let mut bytes = Zeroizing::new(Vec::with_capacity(128));
    let read = File::open(path).and_then(|file| file.take(100).read_to_end(&mut bytes));
    if read.as_ref().is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
        anyhow::bail!("{shown}: no such key file");
    }
    read.with_context(|| format!("cannot read the key file {shown}"))?;
    if let Ok(raw) = <&[u8; 32]>::try_from(&bytes[..]) {
        return Ok(Secret::init_with(|key| key.copy_from_slice(raw)));
    }
    let text = bytes.trim_ascii();
    let wrong = || {
        usage(format!(
            "the key file {shown} holds neither 32 bytes nor 64 hexadecimal digits; make one with: \
             head -c 32 /dev/urandom"
        ))
    };
    Secret::try_init_with(|key| read_hex(text, key).ok_or_else(wrong))
}

/// Reads 64 hexadecimal digits.
pub fn read_hex(text: &[u8], bytes: &mut [u8; 32]) -> Option<()> {
    if text.len() != 64 {
        return None;
    }
    for (byte, pair) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        let digit = |at: usize| char::from(pair[at]).to_digit(16);
        *byte = (digit(0)? * 16 + digit(1)?) as u8;
    }
    Some(())
}
