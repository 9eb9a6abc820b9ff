//! Takes apart what a sender wrote, without a connection.

use super::super::split::Split;
use super::super::{Error, Next};
use super::Protocol;

/// What the bytes of a sender hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Heard {
    /// The messages, with the marks of the framing that they are kept in.
    pub messages: Vec<u8>,
    /// How many messages.
    pub count: u64,
    /// What the sender is answered.
    pub answers: Vec<u8>,
    /// Bytes that were taken.
    pub taken: usize,
    /// Whether what follows them breaks the rules of the protocol.
    pub is_broken: bool,
}

impl Protocol {
    /// Takes apart all that one sender wrote, of which `step` bytes come at a time. A connection does the same as its
    /// bytes arrive; this is for programs that test a protocol with any bytes.
    pub fn hear(self, split: Split, bytes: &[u8], step: usize) -> Heard {
        let mut heard = Heard::default();
        heard.is_broken = self.hear_into(&mut heard, split, bytes, step.max(1)).is_err();
        heard
    }

    fn hear_into(
        self,
        heard: &mut Heard,
        split: Split,
        bytes: &[u8],
        step: usize,
    ) -> Result<(), Error> {
        let mut speech = self.speech(split, 0);
        let mut came = 0;
        loop {
            let ended = came == bytes.len();
            let here = &bytes[heard.taken..came];
            match speech.find(here, ended)? {
                Next::Unit { len, .. } => {
                    let messages = speech.take(&here[..len])?;
                    heard.messages.extend_from_slice(&messages.bytes);
                    heard.count += messages.count;
                    heard.answers.extend_from_slice(&messages.answer);
                    heard.taken += len;
                }
                Next::Aside(len) => {
                    heard.answers.extend_from_slice(&speech.control(&here[..len])?);
                    heard.taken += len;
                }
                Next::More(_) if ended => return Ok(()),
                Next::More(_) => came = (came + step).min(bytes.len()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::Framing;

    #[test]
    fn however_bytes_come_the_same_is_heard() {
        let relp = &b"1 open 14 relp_version=0\n2 syslog 2 ab\n3 syslog 1 c\n4 close 0\nx"[..];
        let fluent = &b"\x93\xa3tag\x01\x81\xa1a\xa1b\x92\xa3tag\x90\x01"[..];
        for (protocol, bytes, count, is_broken) in
            [(Protocol::Relp, relp, 2, true), (Protocol::Fluent, fluent, 2, true)]
        {
            let split = Split { framing: Framing::Raw, limit: 300, bare_last: false };
            let all = protocol.hear(split, bytes, bytes.len());
            assert_eq!((all.count, all.is_broken), (count, is_broken), "{all:?}");
            assert_eq!(all.taken, bytes.len() - 1, "{all:?}");
            for step in 0..bytes.len() {
                assert_eq!(protocol.hear(split, bytes, step), all, "{step}");
            }
        }
    }
}
