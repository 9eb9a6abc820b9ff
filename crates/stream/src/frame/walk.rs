//! Goes through whole streams on one thread: to check them, or to seal them again under another key.

use std::io::{self, Read, Write};

use wattlock_engine::crypto::Secret;
use zeroize::Zeroizing;

use super::ledger::{Event, Ledger};
use super::reader::{Reader, Unit, Within};
use super::{End, Error, Frame, MAGIC, SALT_LEN};

/// What streams hold that were gone through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Contents {
    /// Bytes that were read.
    pub bytes_in: u64,
    /// Bytes of messages.
    pub message_bytes: u64,
    /// Connections whose senders vanished or broke a rule.
    pub cut: u64,
    /// Connections that began in an earlier file.
    pub headless: u64,
    /// Connections that go on in a later one.
    pub unfinished: u64,
}

/// Why streams were not gone through to their end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WalkError {
    /// A stream is not what was sealed, or its key is not there.
    #[error(transparent)]
    Stream(#[from] Error),
    /// The input cannot be read.
    #[error("cannot read the stream")]
    Read(#[source] io::Error),
    /// The output cannot be written.
    #[error("cannot write the stream")]
    Write(#[source] io::Error),
}

/// Opens all streams in `input`, whose keys `unlock` finds, and drops what they hold.
///
/// # Errors
/// [`WalkError`].
pub fn check(
    input: &mut dyn Read,
    unlock: &dyn Fn(&[u8]) -> Result<Secret<32>, Error>,
) -> Result<Contents, WalkError> {
    walk(input, unlock, &mut |_| Ok(()))
}

/// The same, and writes them to `output`, sealed under `stream_key`, which `key_header` wraps. All else stays as it
/// was: what continues in another file still does.
///
/// # Errors
/// [`WalkError`]; the output is not complete then.
pub fn reseal(
    input: &mut dyn Read,
    unlock: &dyn Fn(&[u8]) -> Result<Secret<32>, Error>,
    output: &mut dyn Write,
    (stream_key, key_header): (&Secret<32>, &[u8]),
) -> Result<Contents, WalkError> {
    let mut sealed: Option<Within> = None;
    let contents = walk(input, unlock, &mut |part| {
        let bytes = match (part, &mut sealed) {
            // No key is used twice: each follows from the new stream key, too, which is used for nothing else.
            (Part::Header(salt), _) => {
                let within = Within::new(stream_key, key_header, salt);
                let len = (key_header.len() as u32).to_be_bytes();
                let commitment = within.commitment();
                let header = [MAGIC, &len[..], key_header, &salt, commitment].concat();
                sealed = Some(within);
                header
            }
            (Part::Frame(opened), Some(within)) => {
                let mut frame = within.frame(Zeroizing::new(opened.bytes().to_vec()))?;
                frame.seal()?;
                frame.bytes().to_vec()
            }
            (Part::Frame(_), None) => Vec::new(),
        };
        output.write_all(&bytes).map_err(WalkError::Write)
    })?;
    output.flush().map_err(WalkError::Write)?;
    Ok(contents)
}

/// Reads the key header of the first stream in `input`: empty if the key is shared beforehand.
///
/// # Errors
/// [`WalkError`].
pub fn key_header(input: &mut dyn Read) -> Result<Vec<u8>, WalkError> {
    let mut reader = Reader::new(LONGEST_FRAME);
    let mut header = Vec::new();
    loop {
        let needed = reader.needed(&header)?;
        let missing = (needed - header.len()) as u64;
        if missing == 0 {
            break;
        }
        let read = input.take(missing).read_to_end(&mut header).map_err(WalkError::Read)?;
        if (read as u64) < missing {
            return Err(Error::Cut("it ends in its header").into());
        }
    }
    match reader.take(header.into())? {
        Unit::Header { key_header } => Ok(key_header),
        Unit::Frame(_) => Err(Error::NotAStream.into()),
    }
}

/// What comes in a stream.
enum Part<'a> {
    /// Its header, with this salt.
    Header([u8; SALT_LEN]),
    /// A frame that was opened.
    Frame(&'a Frame),
}

fn walk(
    input: &mut dyn Read,
    unlock: &dyn Fn(&[u8]) -> Result<Secret<32>, Error>,
    each: &mut dyn FnMut(Part<'_>) -> Result<(), WalkError>,
) -> Result<Contents, WalkError> {
    let mut reader = Reader::new(LONGEST_FRAME);
    let mut ledger = Ledger::default();
    let mut contents = Contents::default();
    let mut unit = Vec::new();
    loop {
        let needed = reader.needed(&unit)?;
        if needed > unit.len() {
            let missing = (needed - unit.len()) as u64;
            let read = input.take(missing).read_to_end(&mut unit).map_err(WalkError::Read)?;
            contents.bytes_in += read as u64;
            if (read as u64) < missing {
                break;
            }
            continue;
        }
        match reader.take(std::mem::take(&mut unit).into())? {
            Unit::Header { key_header } => {
                let key = unlock(&key_header)?;
                reader.unlock(&key)?;
                each(Part::Header(reader.salt()))?;
            }
            Unit::Frame(mut frame) => {
                frame.open()?;
                match ledger.take(frame.bytes())? {
                    Event::Data { .. } => contents.message_bytes += frame.body().len() as u64,
                    Event::Opened { headless, .. } => contents.headless += u64::from(headless),
                    Event::Ended { end, .. } => contents.cut += u64::from(end == End::Cut),
                    Event::Resumed { .. } | Event::Rekeyed | Event::Closed => {}
                }
                each(Part::Frame(&frame))?;
            }
        }
    }
    reader.finish(unit.len())?;
    contents.unfinished = ledger.unfinished().len() as u64;
    Ok(contents)
}

/// Bytes of the longest frame that is accepted: the longest message that can be sealed.
const LONGEST_FRAME: usize = 2 << 30;
