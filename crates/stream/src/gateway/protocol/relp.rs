//! RELP, the reliable event logging protocol, version 0, as rsyslog's `omrelp` speaks it.
//!
//! Frames are `TXNR SP COMMAND SP LENGTH [SP DATA] LF`. Each message is answered `TXNR rsp 6 200 OK` once it is safe.

use std::borrow::Cow;

use super::super::split::Split;
use super::super::{Error, Next};
use super::{Messages, Speech, check_len};
use crate::message::Message;

/// Takes RELP apart.
pub(super) struct Relp {
    limit: usize,
    beside: usize,
    /// The sender has closed the session.
    is_closed: bool,
}

struct Frame<'a> {
    transaction: &'a str,
    command: &'a str,
    data: &'a [u8],
    len: usize,
}

impl Relp {
    pub fn new(limit: usize, beside: usize) -> Self {
        Self { limit, beside, is_closed: false }
    }

    /// The frame at the start of `bytes`, or how many bytes it needs at least.
    fn frame<'a>(&self, bytes: &'a [u8]) -> Result<Result<Frame<'a>, usize>, Error> {
        let wrong = Error::Protocol("what it sent is not RELP");
        if bytes.first().is_some_and(|byte| !byte.is_ascii_digit()) {
            return Err(wrong);
        }
        let head = &bytes[..bytes.len().min(LONGEST_HEAD)];
        let words: Vec<&[u8]> =
            head.splitn(4, |byte| *byte == b' ' || *byte == b'\n').take(3).collect();
        let is_whole = head.iter().filter(|byte| b" \n".contains(byte)).count() >= 3;
        if !is_whole {
            return if bytes.len() < LONGEST_HEAD { Ok(Err(bytes.len() + 1)) } else { Err(wrong) };
        }
        let word = |at: usize| std::str::from_utf8(words[at]).ok().filter(|word| !word.is_empty());
        let (Some(transaction), Some(command), Some(digits)) = (word(0), word(1), word(2)) else {
            return Err(wrong);
        };
        let is_number =
            |text: &str| text.len() <= 9 && text.bytes().all(|byte| byte.is_ascii_digit());
        if !is_number(transaction) || !is_number(digits) {
            return Err(wrong);
        }
        let len: usize = digits.parse().map_err(|_| Error::Protocol("what it sent is not RELP"))?;
        check_len(len, self.limit)?;
        let at = words.iter().map(|word| word.len() + 1).sum::<usize>() - 1;
        // Without data, the newline may follow at once.
        let start = if len > 0 || bytes.get(at) == Some(&b' ') { at + 1 } else { at };
        let end = start + len;
        match bytes.get(end) {
            None => Ok(Err(end + 1)),
            Some(b'\n') if len == 0 || bytes[at] == b' ' => {
                Ok(Ok(Frame { transaction, command, data: &bytes[start..end], len: end + 1 }))
            }
            Some(_) => Err(wrong),
        }
    }
}

impl Speech for Relp {
    fn find(&mut self, bytes: &[u8], _: bool) -> Result<Next, Error> {
        let mut len = 0;
        loop {
            let next = match self.frame(&bytes[len..]) {
                Ok(Ok(frame)) if frame.command == "syslog" => {
                    if len == 0 || len + frame.len <= Split::BATCH {
                        len += frame.len;
                        continue;
                    }
                    Next::More(0)
                }
                Ok(Ok(frame)) => Next::Aside(frame.len),
                Ok(Err(needed)) => Next::More(needed),
                Err(error) if len == 0 => return Err(error),
                // What came before is taken first.
                Err(_) => Next::More(0),
            };
            return Ok(if len > 0 {
                Next::Unit { len, needs: Message::charge(len, self.beside) }
            } else {
                next
            });
        }
    }

    fn control(&mut self, unit: &[u8]) -> Result<Vec<u8>, Error> {
        let Ok(frame) = self.frame(unit)? else { return Ok(Vec::new()) };
        let Frame { transaction, command, .. } = frame;
        let is_close = command == "close";
        let answer = |text: &str| format!("{transaction} rsp {} {text}\n", text.len());
        let answer = match command {
            "open" => answer("200 OK\nrelp_version=0\nrelp_software=wattlock\ncommands=syslog"),
            "close" => format!("{transaction} rsp 0\n0 serverclose 0\n"),
            _ => answer("500 unknown command"),
        }
        .into_bytes();
        self.is_closed |= is_close;
        Ok(answer)
    }

    fn has_ended(&self) -> bool {
        self.is_closed
    }

    fn take<'a>(&mut self, unit: &'a [u8]) -> Result<Messages<'a>, Error> {
        let (mut bytes, mut answer, mut count) = (Vec::with_capacity(unit.len()), Vec::new(), 0);
        let mut rest = unit;
        while let Ok(Frame { transaction, data, len, .. }) = self.frame(rest)? {
            bytes.extend_from_slice(data.strip_suffix(b"\n").unwrap_or(data));
            bytes.push(b'\n');
            answer.extend_from_slice(format!("{transaction} rsp 6 200 OK\n").as_bytes());
            rest = &rest[len..];
            count += 1;
        }
        Ok(Messages { bytes: Cow::Owned(bytes), count, answer })
    }

    /// It sends elsewhere, or again later.
    fn farewell(&self) -> &'static [u8] {
        b"0 serverclose 0\n"
    }
}

/// Bytes of a transaction, a command and a length, and what separates them.
const LONGEST_HEAD: usize = 64;

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(speech: &mut Relp, bytes: &[u8]) -> usize {
        match speech.find(bytes, false).unwrap() {
            Next::Unit { len, .. } | Next::Aside(len) => len,
            Next::More(_) => panic!("it is whole"),
        }
    }

    #[test]
    fn a_session_is_answered_as_rsyslog_wants_it() {
        let mut speech = Relp::new(1000, 0);
        let open = b"1 open 86 relp_version=0\nrelp_software=librelp,1.2.14,http://librelp.adiscon.com\ncommands=syslog\n";
        assert_eq!(unit(&mut speech, open), open.len());
        let answer = speech.control(open).unwrap();
        assert!(answer.starts_with(b"1 rsp 60 200 OK\nrelp_version=0\n"), "{answer:?}");

        let lines = b"2 syslog 5 <13>a\n3 syslog 6 <13>b\n\n4 close 0\n";
        let len = unit(&mut speech, lines);
        assert_eq!(&lines[len..], b"4 close 0\n");
        let taken = speech.take(&lines[..len]).unwrap();
        assert_eq!(&*taken.bytes, b"<13>a\n<13>b\n");
        assert_eq!(taken.answer, b"2 rsp 6 200 OK\n3 rsp 6 200 OK\n");
        assert_eq!(taken.count, 2);
        assert_eq!(speech.find(&lines[len..], false).unwrap(), Next::Aside(10));
        assert_eq!(speech.control(&lines[len..]).unwrap(), b"4 rsp 0\n0 serverclose 0\n");
        assert_eq!(speech.control(b"5 starttls 0\n").unwrap(), b"5 rsp 19 500 unknown command\n");
    }

    #[test]
    fn a_frame_that_has_not_come_whole_is_waited_for_and_garbage_is_not() {
        let mut speech = Relp::new(20, 0);
        let whole = b"2 syslog 5 <13>a\n";
        for len in 0..whole.len() {
            assert!(matches!(speech.find(&whole[..len], false), Ok(Next::More(_))), "{len}");
        }
        for garbage in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            b"2 syslog 5 <13>ab\n",
            b"x syslog 5 <13>a\n",
            b"2 syslog -1 a\n",
            b"2 syslog 99999999999 a\n",
            b"2 syslog 21 a\n",
            b"2  5 <13>a\n",
            &[b'1'; 100],
        ] {
            assert!(speech.find(garbage, false).is_err(), "{garbage:?}");
        }
    }
}
