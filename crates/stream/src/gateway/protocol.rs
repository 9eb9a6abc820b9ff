//! How senders speak: messages alone, or with acknowledgements.

mod fluent;
mod hear;
mod numbered;
mod relp;

use std::borrow::Cow;

pub use hear::Heard;

use super::split::{Split, UnitFinder};
use super::{Error, Next};
use crate::frame::Framing;

/// How senders speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// Messages, which are not acknowledged.
    Plain(Framing),
    /// A number before each message, and cumulative acknowledgements.
    Numbered,
    /// RELP, the reliable event logging protocol of rsyslog.
    Relp,
    /// Fluent's forward protocol, of Fluentd and Fluent Bit.
    Fluent,
}

/// Takes the bytes of one sender apart.
pub(super) trait Speech: Send {
    /// What stands at the start of `bytes`, all that came and was not taken yet.
    ///
    /// # Errors
    /// What came breaks the rules of the protocol.
    fn find(&mut self, bytes: &[u8], ended: bool) -> Result<Next, Error>;

    /// Takes a unit that is no message, and returns its answer.
    ///
    /// # Errors
    /// As [`Speech::find`].
    fn control(&mut self, _: &[u8]) -> Result<Vec<u8>, Error> {
        unreachable!("every unit holds messages")
    }

    /// Takes the messages of a unit.
    ///
    /// # Errors
    /// As [`Speech::find`].
    fn take<'a>(&mut self, unit: &'a [u8]) -> Result<Messages<'a>, Error>;

    /// True once the sender has said that nothing more comes.
    fn has_ended(&self) -> bool {
        false
    }

    /// What a sender is told when nothing more is taken from it.
    fn farewell(&self) -> &'static [u8] {
        b""
    }
}

/// The messages of a unit.
pub(super) struct Messages<'a> {
    /// Their bytes, with the marks of the framing that they are kept in.
    pub bytes: Cow<'a, [u8]>,
    /// How many.
    pub count: u64,
    /// What the sender is answered when they are safe; empty for nothing.
    pub answer: Vec<u8>,
}

impl Protocol {
    /// The framing in which messages are kept.
    pub fn framing(self) -> Framing {
        match self {
            Self::Plain(framing) => framing,
            Self::Numbered => Framing::Length,
            Self::Relp => Framing::Lines,
            // Values of MessagePack say themselves where they end.
            Self::Fluent => Framing::Raw,
        }
    }

    /// True if senders are told that their messages are safe.
    pub fn acknowledges(self) -> bool {
        !matches!(self, Self::Plain(_))
    }

    /// What takes the bytes of one sender apart. `beside` is how many bytes are kept of a unit
    /// besides its message.
    pub(super) fn speech(self, split: Split, beside: usize) -> Box<dyn Speech> {
        let limit = split.limit;
        match self {
            Self::Plain(_) => Box::new(Plain(UnitFinder::new(split, beside))),
            Self::Numbered => Box::new(numbered::Numbered::new(limit, beside)),
            Self::Relp => Box::new(relp::Relp::new(limit, beside)),
            Self::Fluent => Box::new(fluent::Fluent::new(limit, beside)),
        }
    }
}

/// Messages without acknowledgements.
struct Plain(UnitFinder);

impl Speech for Plain {
    fn find(&mut self, bytes: &[u8], ended: bool) -> Result<Next, Error> {
        self.0.find(bytes, ended)
    }

    fn take<'a>(&mut self, unit: &'a [u8]) -> Result<Messages<'a>, Error> {
        let answer = Vec::new();
        Ok(Messages { bytes: Cow::Borrowed(unit), count: self.0.messages, answer })
    }
}

/// True if a message of `len` bytes is too long.
fn check_len(len: usize, limit: usize) -> Result<(), Error> {
    if len > limit {
        return Err(Error::TooLong { len: len as u64, limit: limit as u64 });
    }
    Ok(())
}
