//! What can be wrong with a sealed stream.

use wattlock_engine::crypto;

/// Why a stream cannot be sealed, or is not what was sealed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The first bytes are not those of a sealed stream.
    #[error("this is not a sealed stream")]
    NotAStream,
    /// Bytes behind the end of a stream begin no other.
    #[error("what follows the end of the stream is not a sealed stream")]
    Trailing,
    /// The input is a container of a file.
    #[error("this is a container of a file, and not a sealed stream")]
    Container,
    /// A version to come.
    #[error("this is a sealed stream of a version that is not known here")]
    UnknownVersion,
    /// The commitment is that of another key.
    #[error("the key is not that of this stream")]
    WrongKey,
    /// The key header cannot be unwrapped with the given keys.
    #[error("{0}")]
    Key(Box<dyn std::error::Error + Send + Sync>),
    /// A tag did not match. Deliberately says nothing more.
    #[error("authentication failed at a frame of {}", of(*.connection))]
    Authentication {
        /// The number of the connection within the stream.
        connection: u64,
    },
    /// A frame stands where none like it can stand: the stream was changed, or its writer is wrong.
    #[error("the stream is malformed: {0}")]
    Malformed(&'static str),
    /// A frame is longer than the reader allows.
    #[error("a frame of {len} bytes is longer than the limit of {limit}")]
    TooLong {
        /// Bytes that the frame says it has.
        len: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The key header of a stream is longer than the reader allows.
    #[error("a key header of {len} bytes is longer than the limit of {limit}")]
    HeaderTooLong {
        /// Bytes that the stream says it has.
        len: u64,
        /// Bytes that it may have.
        limit: u64,
    },
    /// The stream ends before its end.
    #[error("the stream is cut: {0}")]
    Cut(&'static str),
    /// More connections than a stream can number or a reader remembers.
    #[error("more than {0} connections in one stream")]
    Connections(u64),
    /// A primitive failed.
    #[error(transparent)]
    Crypto(#[from] crypto::Error),
}

impl Error {
    /// True if the input is at fault: a wrong key, or not what was sealed.
    pub fn is_authentication(&self) -> bool {
        !matches!(self, Self::Connections(_) | Self::Crypto(_))
    }
}

fn of(connection: u64) -> String {
    match connection {
        0 => "the stream itself".into(),
        number => format!("connection {number}"),
    }
}
