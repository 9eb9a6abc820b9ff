//! What the records of a segment hold.

use super::folder::Recovered;
use super::varint;
use crate::frame::{End, Framing};

/// What a record of a segment holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Payload<'a> {
    /// The first record of a segment.
    Start {
        /// The run of the program that wrote it: random bytes.
        run: [u8; 16],
        /// Its number among the segments of the run, from 0.
        part: u64,
        /// Segments whose writers were killed, as this run found them.
        recovered: Vec<Recovered>,
    },
    /// A source sends into this segment.
    Begin {
        /// Its number in this run.
        source: u64,
        /// How its input is split into messages.
        framing: Framing,
        /// True if it sent into an earlier segment, too.
        continued: bool,
        /// Its name, such as an address.
        name: &'a str,
    },
    /// Whole messages of one source, as they came.
    Messages {
        /// The source.
        source: u64,
        /// When they came, in microseconds since 1970.
        time_us: u64,
        /// The messages, with the marks of their framing.
        messages: &'a [u8],
    },
    /// A source has ended.
    End {
        /// The source.
        source: u64,
        /// How.
        end: End,
    },
    /// Nothing but the index follows.
    Close {
        /// True if the run ended with it.
        is_last: bool,
    },
    /// The index, after which nothing follows.
    Index(&'a [u8]),
    /// What a later writer adds, and this reader passes over.
    Other,
}

/// What the index keeps of a record.
#[derive(Clone, Debug)]
pub(crate) enum Recorded {
    /// Messages came.
    Messages { source: u64, time_us: u64 },
    /// A source entered the segment.
    Begin { source: u64, framing: Framing, name: String },
    /// It is not in the index.
    Other,
}

impl<'a> Payload<'a> {
    /// Bytes in front of the messages of [`Payload::Messages`].
    pub fn front_of_messages(source: u64, time_us: u64) -> Vec<u8> {
        let mut bytes = vec![MESSAGES];
        varint::push(&mut bytes, source);
        bytes.extend_from_slice(&time_us.to_be_bytes());
        bytes
    }

    /// Its bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        match self {
            Self::Start { run, part, recovered } => {
                let mut bytes = vec![START];
                bytes.extend_from_slice(run);
                varint::push(&mut bytes, *part);
                varint::push(&mut bytes, recovered.len() as u64);
                for segment in recovered {
                    bytes.extend_from_slice(&segment.writer);
                    bytes.extend_from_slice(&segment.len.to_be_bytes());
                }
                bytes
            }
            Self::Begin { source, framing, continued, name } => {
                let mut bytes = vec![BEGIN];
                varint::push(&mut bytes, *source);
                bytes.extend_from_slice(&[framing.code(), u8::from(*continued)]);
                bytes.extend_from_slice(name.as_bytes());
                bytes
            }
            Self::Messages { source, time_us, messages } => {
                let mut bytes = Self::front_of_messages(*source, *time_us);
                bytes.extend_from_slice(messages);
                bytes
            }
            Self::End { source, end } => {
                let mut bytes = vec![END];
                varint::push(&mut bytes, *source);
                bytes.push(end.code());
                bytes
            }
            Self::Close { is_last } => vec![CLOSE, u8::from(*is_last)],
            Self::Index(index) => [&[INDEX], *index].concat(),
            Self::Other => vec![OTHER],
        }
    }

    /// What `bytes` say; `None` if they have another form.
    pub fn from_bytes(bytes: &'a [u8]) -> Option<Self> {
        let (kind, mut rest) = bytes.split_first()?;
        match *kind {
            START => {
                let (run, behind) = rest.split_first_chunk::<16>()?;
                rest = behind;
                let part = varint::take(&mut rest)?;
                let count = usize::try_from(varint::take(&mut rest)?).ok()?;
                let (entries, behind) = rest.as_chunks::<24>();
                if entries.len() != count || !behind.is_empty() {
                    return None;
                }
                let entry = |bytes: &[u8; 24]| -> Option<Recovered> {
                    let (writer, len) = bytes.split_first_chunk::<16>()?;
                    let len = u64::from_be_bytes(*len.first_chunk()?);
                    Some(Recovered { writer: *writer, len })
                };
                let recovered = entries.iter().map(entry).collect::<Option<_>>()?;
                Some(Self::Start { run: *run, part, recovered })
            }
            BEGIN => {
                let source = varint::take(&mut rest)?;
                let (&[framing, continued], name) = rest.split_first_chunk::<2>()?;
                let framing = Framing::of(framing)?;
                let continued = flag(continued)?;
                let name = std::str::from_utf8(name).ok()?;
                Some(Self::Begin { source, framing, continued, name })
            }
            MESSAGES => {
                let source = varint::take(&mut rest)?;
                let (time_us, messages) = rest.split_first_chunk()?;
                Some(Self::Messages { source, time_us: u64::from_be_bytes(*time_us), messages })
            }
            END => {
                let source = varint::take(&mut rest)?;
                let &[end] = rest else { return None };
                let end = End::of(end).filter(|end| *end != End::Continued)?;
                Some(Self::End { source, end })
            }
            CLOSE => {
                let &[is_last] = rest else { return None };
                Some(Self::Close { is_last: flag(is_last)? })
            }
            INDEX => Some(Self::Index(rest)),
            OTHER.. => Some(Self::Other),
            _ => None,
        }
    }
}

fn flag(byte: u8) -> Option<bool> {
    match byte {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

const START: u8 = 0;
const BEGIN: u8 = 1;
const MESSAGES: u8 = 2;
const END: u8 = 3;
const CLOSE: u8 = 4;
const INDEX: u8 = 5;
/// The first of the kinds that are passed over.
const OTHER: u8 = 128;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_back_and_nothing_longer_or_shorter() {
        let recovered = vec![Recovered { writer: [7; 16], len: 300 }];
        let kinds = [
            Payload::Start { run: [0; 16], part: 0, recovered: Vec::new() },
            Payload::Start { run: [1; 16], part: 700, recovered },
            Payload::Begin {
                source: 300,
                framing: Framing::Lines,
                continued: true,
                name: "[::1]:9",
            },
            Payload::Messages { source: 1, time_us: 1 << 60, messages: b"one\n" },
            Payload::End { source: 128, end: End::Cut },
            Payload::Close { is_last: false },
            Payload::Index(b"index"),
        ];
        for kind in kinds {
            let bytes = kind.to_bytes();
            assert_eq!(Payload::from_bytes(&bytes), Some(kind.clone()));
            let open_ended = matches!(
                kind,
                Payload::Begin { .. } | Payload::Messages { .. } | Payload::Index(_)
            );
            if !open_ended {
                assert_eq!(Payload::from_bytes(&[&bytes[..], b"x"].concat()), None);
                assert_eq!(Payload::from_bytes(&bytes[..bytes.len() - 1]), None);
            }
        }
        assert_eq!(Payload::from_bytes(b""), None);
        assert_eq!(Payload::from_bytes(b"\x06"), None);
        assert_eq!(Payload::from_bytes(b"\x80 anything"), Some(Payload::Other));
    }
}
