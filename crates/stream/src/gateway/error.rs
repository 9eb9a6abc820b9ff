//! What can go wrong between a connection and the window.

use std::io;
use std::time::Duration;

use crate::frame;

/// Why a connection, or the whole gateway, cannot go on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A message is longer than it may be.
    #[error("a message of {len} bytes or more is longer than the limit of {limit}")]
    TooLong {
        /// Bytes as far as is known.
        len: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The input ended, or its peer vanished, within a message.
    #[error("it ended in the middle of a message")]
    Cut,
    /// A peer was silent between two messages.
    #[error("idle timeout: it sent nothing for {} s", _0.as_secs_f64())]
    Silent(Duration),
    /// A peer was too slow.
    #[error("timeout: it did not complete a message within {} s", _0.as_secs_f64())]
    Idle(Duration),
    /// A peer did not send the whole header of its stream.
    #[error("timeout: its stream header did not arrive within {} s", _0.as_secs_f64())]
    SlowHeader(Duration),
    /// A sender did not show who it is.
    #[error("timeout: TLS handshake and token were not complete within {} s", _0.as_secs_f64())]
    SlowWelcome(Duration),
    /// A sender is not served.
    #[error("{0}")]
    Refused(&'static str),
    /// A connection could not be encrypted.
    #[error("the TLS handshake failed")]
    Handshake(#[source] io::Error),
    /// Nothing more is read: the drain time is over.
    #[error("it was stopped with {0} bytes unread")]
    Unread(u64),
    /// Too many messages have begun and not come whole.
    #[error("too many incomplete messages")]
    Crowded,
    /// The stream itself has ended, or failed.
    #[error("the stream has ended")]
    Ended,
    /// An input could not be read.
    #[error("reading failed")]
    Read(#[source] io::Error),
    /// A sender could not be answered.
    #[error("cannot send an acknowledgement")]
    Answer(#[source] io::Error),
    /// What a sender was to be told is safe was lost.
    #[error("its messages could not be made durable")]
    Broken,
    /// A sealed stream is not what was sealed.
    #[error(transparent)]
    Frame(#[from] frame::Error),
    /// A sender breaks the rules of its protocol.
    #[error("{0}")]
    Protocol(&'static str),
    /// A record cannot be sealed.
    #[error("cannot seal a record")]
    Record(#[source] wattlock_record::Error),
    /// The window refused.
    #[error(transparent)]
    Window(#[from] crate::error::Error),
}
