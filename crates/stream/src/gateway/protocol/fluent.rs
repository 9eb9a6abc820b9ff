//! Fluent's forward protocol, version 1: arrays of MessagePack, each with an identifier that is sent back once it is
//! safe. Events are kept as they came.

use std::borrow::Cow;

use super::super::{Error, Next};
use super::{Messages, Speech, check_len};
use crate::message::Message;

/// Takes the forward protocol apart.
pub(super) struct Fluent {
    limit: usize,
    beside: usize,
}

impl Fluent {
    pub fn new(limit: usize, beside: usize) -> Self {
        Self { limit, beside }
    }
}

impl Speech for Fluent {
    fn find(&mut self, bytes: &[u8], _: bool) -> Result<Next, Error> {
        match value_len(bytes)? {
            Some(len) => {
                check_len(len, self.limit)?;
                Ok(Next::Unit { len, needs: Message::charge(len, self.beside) })
            }
            None => {
                check_len(bytes.len(), self.limit)?;
                Ok(Next::More(bytes.len() + 1))
            }
        }
    }

    fn take<'a>(&mut self, unit: &'a [u8]) -> Result<Messages<'a>, Error> {
        let answer = match chunk(unit).ok_or(NOT_FLUENT)? {
            // {"ack": the identifier}
            Some(chunk) => [b"\x81\xa3ack", chunk].concat(),
            None => Vec::new(),
        };
        Ok(Messages { bytes: Cow::Borrowed(unit), count: 1, answer })
    }
}

/// The value of the option `chunk` in a message, as it was encoded; `Some(None)` if it has none, and `None` if it is
/// no message.
fn chunk(message: &[u8]) -> Option<Option<&[u8]>> {
    let (Head { kind: Kind::Array(count @ 2..=4), len: 0, .. }, mut rest) = head(message)? else {
        return None;
    };
    let mut last: &[u8] = &[];
    for _ in 0..count {
        let len = value_len(rest).ok()??;
        (last, rest) = rest.split_at(len);
    }
    // Options stand behind everything else, which the mode decides; a record is a map, too, but has no such key in
    // the second place of three.
    let (Head { kind: Kind::Map(pairs), .. }, mut rest) = head(last)? else { return Some(None) };
    if count == 2 {
        return Some(None);
    }
    for _ in 0..pairs {
        let (key, behind) = rest.split_at(value_len(rest).ok()??);
        let (value, behind) = behind.split_at(value_len(behind).ok()??);
        if key == b"\xa5chunk" {
            return Some(Some(value));
        }
        rest = behind;
    }
    Some(None)
}

/// What a value begins with.
struct Head {
    kind: Kind,
    /// Bytes of its content.
    len: usize,
}

enum Kind {
    /// So many values follow.
    Array(u64),
    /// So many pairs of values follow.
    Map(u64),
    /// No values follow.
    Scalar,
}

/// The length of the value at the start of `bytes`; `None` if it has not come whole.
fn value_len(bytes: &[u8]) -> Result<Option<usize>, Error> {
    let mut rest = bytes;
    let mut values: u64 = 1;
    while values > 0 {
        let Some((Head { kind, len }, behind)) = head(rest) else {
            return if rest.first() == Some(&0xc1) { Err(NOT_FLUENT) } else { Ok(None) };
        };
        let Some(behind) = behind.get(len..) else { return Ok(None) };
        rest = behind;
        values -= 1;
        let inside = match kind {
            Kind::Array(count) => Some(count),
            Kind::Map(count) => count.checked_mul(2),
            Kind::Scalar => Some(0),
        };
        values = inside.and_then(|inside| values.checked_add(inside)).ok_or(NOT_FLUENT)?;
    }
    Ok(Some(bytes.len() - rest.len()))
}

/// What the value at the start of `bytes` begins with, and what follows that.
fn head(bytes: &[u8]) -> Option<(Head, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    let scalar = |len: usize| Head { kind: Kind::Scalar, len };
    let number = |size: usize| -> Option<(usize, &[u8])> {
        let (digits, rest) = rest.split_at_checked(size)?;
        let number = digits.iter().fold(0_usize, |number, digit| number << 8 | usize::from(*digit));
        Some((number, rest))
    };
    let array = |count: usize| Head { kind: Kind::Array(count as u64), len: 0 };
    let map = |count: usize| Head { kind: Kind::Map(count as u64), len: 0 };
    let low = usize::from(first & 0x0f);
    Some(match first {
        0x80..=0x8f => (map(low), rest),
        0x90..=0x9f => (array(low), rest),
        0xa0..=0xbf => (scalar(usize::from(first & 0x1f)), rest),
        0xc0 | 0xc2 | 0xc3 | 0x00..=0x7f | 0xe0..=0xff => (scalar(0), rest),
        0xc1 => return None,
        0xc4..=0xc6 => number(1 << (first - 0xc4)).map(|(len, rest)| (scalar(len), rest))?,
        // An extension has a type of one byte.
        0xc7..=0xc9 => number(1 << (first - 0xc7)).map(|(len, rest)| (scalar(len + 1), rest))?,
        0xca => (scalar(4), rest),
        0xcb => (scalar(8), rest),
        0xcc..=0xcf => (scalar(1 << (first - 0xcc)), rest),
        0xd0..=0xd3 => (scalar(1 << (first - 0xd0)), rest),
        0xd4..=0xd8 => (scalar((1 << (first - 0xd4)) + 1), rest),
        0xd9..=0xdb => number(1 << (first - 0xd9)).map(|(len, rest)| (scalar(len), rest))?,
        0xdc => number(2).map(|(count, rest)| (array(count), rest))?,
        0xdd => number(4).map(|(count, rest)| (array(count), rest))?,
        0xde => number(2).map(|(count, rest)| (map(count), rest))?,
        0xdf => number(4).map(|(count, rest)| (map(count), rest))?,
    })
}

const NOT_FLUENT: Error = Error::Protocol("what it sent is not Fluent's forward protocol");

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// `["tag", 1, {"a": "b"}, {"chunk": "xyz"}]`, and other modes.
    const EVENT: &[u8] = b"\x94\xa3tag\x01\x81\xa1a\xa1b\x81\xa5chunk\xa3xyz";
    const FORWARD: &[u8] =
        b"\x93\xa3tag\x91\x92\x01\x81\xa1a\xa1b\x82\xa4size\x01\xa5chunk\xd9\x03xyz";
    const PACKED: &[u8] = b"\x92\xa3tag\xc4\x07\x92\x01\x81\xa1a\xa1b";

    #[test]
    fn an_identifier_is_sent_back_as_it_came() {
        let mut speech = Fluent::new(100, 0);
        for (message, answer) in [
            (EVENT, &b"\x81\xa3ack\xa3xyz"[..]),
            (FORWARD, b"\x81\xa3ack\xd9\x03xyz"),
            (PACKED, b""),
            (b"\x93\xa3tag\x01\x81\xa1a\xa1b", b""),
        ] {
            let next = speech.find(&[message, b"\x92"].concat(), false).unwrap();
            assert_eq!(
                next,
                Next::Unit { len: message.len(), needs: Message::charge(message.len(), 0) }
            );
            let taken = speech.take(message).unwrap();
            assert_eq!((&*taken.bytes, &*taken.answer, taken.count), (message, answer, 1));
            for len in 0..message.len() {
                assert_eq!(speech.find(&message[..len], false).unwrap(), Next::More(len + 1));
            }
        }
    }

    #[test]
    fn what_is_no_message_ends_the_connection() {
        let mut speech = Fluent::new(20, 0);
        for garbage in [&b"\xc1"[..], b"\x93\xc1", EVENT] {
            assert!(speech.find(garbage, false).is_err(), "{garbage:?}");
        }
        for other in [&b"\x01"[..], b"\x91\x01", b"\x80", b"GET / HTTP/1.1"] {
            assert!(speech.take(other).is_err(), "{other:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..60)) {
            if let Ok(Some(len)) = value_len(&bytes) {
                prop_assert!(len <= bytes.len());
                let _ = chunk(&bytes[..len]);
            }
        }
    }
}
