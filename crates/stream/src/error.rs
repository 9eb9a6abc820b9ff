//! What can go wrong with a window and with a live run.

use std::io;

use wattlock_engine::crypto;

/// Why a message was not taken in, not sealed, or not handed on.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The window has no room now, or others wait for it.
    #[error("the window has no room for {bytes} bytes now")]
    Full {
        /// Bytes of the message.
        bytes: u64,
    },
    /// Nothing more is taken in.
    #[error("the window is closed")]
    Closed,
    /// A message will never fit.
    #[error("a message of {bytes} bytes is longer than the window of {size}")]
    TooLong {
        /// Bytes of the message.
        bytes: u64,
        /// Bytes of the window.
        size: u64,
    },
    /// A window has to hold something.
    #[error("a window of {size} bytes is too small: it takes at least {least}")]
    Window {
        /// Bytes that were asked for.
        size: u64,
        /// The fewest.
        least: u64,
    },
    /// A ladder without a rung, or with a rung that does nothing.
    #[error("there is no rung to choose: workers and rates have to be above zero")]
    Ladder,
    /// The payload, its tag or its additional data do not lie in the buffer.
    #[error("payload {start}..{end} of a message does not fit its buffer of {len} bytes")]
    Layout {
        /// First byte of the payload.
        start: usize,
        /// The byte after its last.
        end: usize,
        /// Bytes of the buffer.
        len: usize,
    },
    /// A message was opened whose tag is wrong; its payload was cleared.
    #[error("authentication failed")]
    Authentication,
    /// A primitive refused its input.
    #[error("a message cannot be worked on")]
    Cipher(#[source] crypto::Error),
    /// The engine refused its job.
    #[error("a message cannot be worked on")]
    Engine(#[source] Box<wattlock_engine::Error>),
    /// The sink took no more.
    #[error("cannot write a message to the output")]
    Sink(#[source] io::Error),
    /// A thread could not be started.
    #[error("starting a thread of the stream failed")]
    Thread(#[source] io::Error),
    /// A thread of the stream panicked; what was in its hands is lost.
    #[error("a thread of the stream panicked")]
    Panicked,
    /// Not everything was handed on before the deadline.
    #[error("the stream was not drained in time")]
    Late,
}
