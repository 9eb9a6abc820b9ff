//! What a forwarder and a store say to each other.

use std::io::{self, Read, Write};

use crate::segment::LONGEST_KEY;

/// The first bytes of a forwarder, which the identity of its folder follows.
pub(super) const MAGIC: &[u8; 20] = b"wattlock-forward/v1\n";

/// What a forwarder asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Request {
    /// This key file has this content.
    Key { name: String, content: Vec<u8> },
    /// How much is there of this segment, which begins so?
    Segment { name: String, start: Vec<u8> },
    /// More of the segment.
    Data(Vec<u8>),
    /// Make what came of the segment durable.
    Sync,
    /// Nothing: the forwarder is still there.
    Ping,
}

impl Request {
    /// Writes it.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        let mut bytes = Vec::new();
        let named = |bytes: &mut Vec<u8>, kind: u8, name: &str, rest: &[u8]| {
            bytes.push(kind);
            bytes.push(name.len() as u8);
            bytes.extend_from_slice(name.as_bytes());
            bytes.extend_from_slice(&(rest.len() as u32).to_be_bytes());
            bytes.extend_from_slice(rest);
        };
        match self {
            Self::Key { name, content } => named(&mut bytes, KEY, name, content),
            Self::Segment { name, start } => named(&mut bytes, SEGMENT, name, start),
            Self::Data(data) => {
                bytes.push(DATA);
                bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
                bytes.extend_from_slice(data);
            }
            Self::Sync => bytes.push(SYNC),
            Self::Ping => bytes.push(PING),
        }
        to.write_all(&bytes).map_err(|error| match error.kind() {
            io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset => io::Error::new(
                error.kind(),
                "it closed the connection; it may refuse this machine, which it says",
            ),
            _ => error,
        })
    }

    /// Reads the next; `None` at the end.
    pub fn read(from: &mut impl Read) -> io::Result<Option<Self>> {
        let mut kind = [0];
        if from.read(&mut kind)? == 0 {
            return Ok(None);
        }
        Ok(Some(match kind[0] {
            KEY => {
                let name = read_name(from)?;
                Self::Key { name, content: read_bytes(from, LONGEST_KEY as usize)? }
            }
            SEGMENT => {
                let name = read_name(from)?;
                Self::Segment { name, start: read_bytes(from, LONGEST_START)? }
            }
            DATA => Self::Data(read_bytes(from, LONGEST_DATA)?),
            SYNC => Self::Sync,
            PING => Self::Ping,
            _ => return Err(wrong("an unknown request")),
        }))
    }
}

/// Writes the answer to all but data: how many bytes of the segment are durable.
pub(super) fn write_answer(to: &mut impl Write, len: u64) -> io::Result<()> {
    to.write_all(&len.to_be_bytes())
}

/// Reads an answer.
pub(super) fn read_answer(from: &mut impl Read) -> io::Result<u64> {
    let mut len = [0; 8];
    from.read_exact(&mut len).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => io::Error::new(
            error.kind(),
            "it closed the connection; is it a wattlock stream --store?",
        ),
        _ => error,
    })?;
    Ok(u64::from_be_bytes(len))
}

/// True for the name of a segment.
pub(super) fn is_segment_name(name: &str) -> bool {
    is_number(name.strip_suffix(".wls").unwrap_or(""))
}

/// True for the name of a key file.
pub(super) fn is_key_name(name: &str) -> bool {
    let digits = name.strip_suffix(".key").or_else(|| name.strip_suffix(".salt"));
    is_number(digits.unwrap_or(""))
}

fn is_number(digits: &str) -> bool {
    (6..=20).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit())
}

pub(super) fn wrong(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn read_name(from: &mut impl Read) -> io::Result<String> {
    let mut len = [0];
    from.read_exact(&mut len)?;
    let mut name = vec![0; len[0].into()];
    from.read_exact(&mut name)?;
    String::from_utf8(name).map_err(|_| wrong("a name that is no text"))
}

fn read_bytes(from: &mut impl Read, limit: usize) -> io::Result<Vec<u8>> {
    let mut len = [0; 4];
    from.read_exact(&mut len)?;
    let len = u32::from_be_bytes(len) as usize;
    if len > limit {
        return Err(wrong("more bytes than are allowed"));
    }
    let mut bytes = vec![0; len];
    from.read_exact(&mut bytes)?;
    Ok(bytes)
}

const KEY: u8 = b'k';
const SEGMENT: u8 = b's';
const DATA: u8 = b'd';
const SYNC: u8 = b'y';
const PING: u8 = b'p';

/// Bytes of a folder's identity.
pub(super) const ID_LEN: usize = 16;

/// Bytes of the start of a segment that show which it is: up to its writer ID.
pub(super) const LONGEST_START: usize = 39;

/// Bytes that are sent at once.
pub(super) const LONGEST_DATA: usize = 256 << 10;

/// The answer if the store has another segment of that name, or as many other key files as it keeps.
pub(super) const CONFLICT: u64 = u64::MAX;

/// The answer if the store had another key file of that name, and keeps this one beside it.
pub(super) const KEPT_BESIDE: u64 = u64::MAX - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_come_back_and_names_lead_nowhere_else() {
        let requests = [
            Request::Key { name: "000001.key".into(), content: b"content".to_vec() },
            Request::Segment { name: "000001.wls".into(), start: vec![7; 39] },
            Request::Data(vec![1; 1000]),
            Request::Sync,
            Request::Ping,
        ];
        let mut bytes = Vec::new();
        requests.iter().for_each(|request| request.write(&mut bytes).unwrap());
        let mut rest = &bytes[..];
        for request in requests {
            assert_eq!(Request::read(&mut rest).unwrap(), Some(request));
        }
        assert_eq!(Request::read(&mut rest).unwrap(), None);
        assert!(Request::read(&mut &bytes[..5]).is_err());
        assert!(Request::read(&mut &b"x"[..]).is_err());
        assert!(Request::read(&mut &b"d\xff\xff\xff\xff"[..]).is_err());
        for name in ["../x.wls", "1.wls", "000001.wls/", "/000001.wls", "000001.key", ""] {
            assert!(!is_segment_name(name), "{name}");
        }
        assert!(is_segment_name("1000000.wls") && is_key_name("000001.key"));
        assert!(is_key_name("000001.salt") && !is_key_name("../000001.key"));
    }
}
