//! Messages with a number each, and cumulative acknowledgements: `docs/spec/numbered.md`.

use std::borrow::Cow;

use super::super::split::Split;
use super::super::{Error, Next};
use super::{Messages, Speech, check_len};
use crate::message::Message;

/// Takes numbered messages apart.
pub(super) struct Numbered {
    limit: usize,
    beside: usize,
    /// The number of the last message.
    last: Option<u64>,
}

impl Numbered {
    pub fn new(limit: usize, beside: usize) -> Self {
        Self { limit, beside, last: None }
    }

    /// The message at the start of `bytes` with its number, and its length with what stands before it.
    fn message<'a>(&self, bytes: &'a [u8]) -> Result<Result<(u64, &'a [u8]), usize>, Error> {
        let Some((front, rest)) = bytes.split_first_chunk::<MARK_LEN>() else {
            return Ok(Err(MARK_LEN));
        };
        let (len, number) = front.split_first_chunk().expect("12 bytes");
        let number = u64::from_be_bytes(number.try_into().expect("8 bytes"));
        let len = u32::from_be_bytes(*len) as usize;
        check_len(len, self.limit)?;
        Ok(rest.get(..len).map(|message| (number, message)).ok_or(MARK_LEN + len))
    }
}

impl Speech for Numbered {
    fn find(&mut self, bytes: &[u8], _: bool) -> Result<Next, Error> {
        let mut len = 0;
        loop {
            let missing = match self.message(&bytes[len..]) {
                Ok(Ok((_, message))) if len == 0 || len + message.len() < Split::BATCH => {
                    len += MARK_LEN + message.len();
                    continue;
                }
                // What came before is taken first.
                Err(error) if len == 0 => return Err(error),
                Ok(Err(needed)) => len + needed,
                _ => len + 1,
            };
            return Ok(match len {
                0 => Next::More(missing),
                _ => Next::Unit { len, needs: Message::charge(len, self.beside) },
            });
        }
    }

    fn take<'a>(&mut self, unit: &'a [u8]) -> Result<Messages<'a>, Error> {
        let (mut bytes, mut count) = (Vec::with_capacity(unit.len()), 0);
        let mut rest = unit;
        while let Ok((number, message)) = self.message(rest)? {
            if self.last.is_some_and(|last| last.checked_add(1) != Some(number)) {
                return Err(Error::Protocol("its messages are not numbered in order"));
            }
            self.last = Some(number);
            bytes.extend_from_slice(&(message.len() as u32).to_be_bytes());
            bytes.extend_from_slice(message);
            rest = &rest[MARK_LEN + message.len()..];
            count += 1;
        }
        let answer = self.last.unwrap_or_default().to_be_bytes().to_vec();
        Ok(Messages { bytes: Cow::Owned(bytes), count, answer })
    }
}

/// Bytes in front of a message: its length and its number.
const MARK_LEN: usize = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn numbered(number: u64, message: &[u8]) -> Vec<u8> {
        [&(message.len() as u32).to_be_bytes()[..], &number.to_be_bytes(), message].concat()
    }

    #[test]
    fn messages_that_came_together_have_one_answer() {
        let mut speech = Numbered::new(10, 0);
        let bytes = [numbered(7, b"one"), numbered(8, b""), numbered(9, b"th")].concat();
        let Next::Unit { len, .. } = speech.find(&bytes[..bytes.len() - 1], false).unwrap() else {
            panic!("two messages are whole")
        };
        assert_eq!(len, 15 + 12);
        let taken = speech.take(&bytes[..len]).unwrap();
        assert_eq!(&*taken.bytes, b"\0\0\0\x03one\0\0\0\0");
        assert_eq!((taken.count, taken.answer), (2, 8_u64.to_be_bytes().to_vec()));
        let rest = &bytes[len..];
        assert_eq!(speech.find(&rest[..3], false).unwrap(), Next::More(12));
        assert_eq!(speech.find(&rest[..13], false).unwrap(), Next::More(14));
        assert_eq!(speech.take(rest).unwrap().answer, 9_u64.to_be_bytes());
    }

    #[test]
    fn a_gap_and_a_long_message_end_the_connection() {
        let mut speech = Numbered::new(10, 0);
        assert!(speech.find(&numbered(1, b"eleven byte"), false).is_err());
        let bytes = [numbered(1, b"a"), numbered(3, b"c")].concat();
        assert!(speech.take(&bytes).is_err());
    }
}
