//! What can be wrong with a record.

use wattlock_crypto as crypto;

/// What can be wrong with a record. Messages hold no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The message has more than 64 MiB.
    #[error("a message of {0} bytes is too long for a record")]
    TooLong(usize),
    /// The buffer for the output has the wrong length.
    #[error("the buffer has {len} bytes instead of {expected}")]
    BufferLength {
        /// Its length.
        len: usize,
        /// That of the output.
        expected: usize,
    },
    /// A name in the additional data has more than 65,535 bytes.
    #[error("a name of {0} bytes is too long for additional data")]
    NameTooLong(usize),
    /// It has fewer bytes than an empty record.
    #[error("a record of {0} bytes is cut short")]
    Truncated(usize),
    /// Its version is not one that is known here.
    #[error("not a record, or one of an unknown version")]
    Version,
    /// There is no session key of its epoch.
    #[error("no session key for epoch {0}")]
    Epoch(u32),
    /// It was sealed under another key or with other additional data, or changed since.
    #[error("the record is not authentic")]
    Authentication,
    /// The writer has sealed 2^32 records.
    #[error("the writer has sealed 2^32 records and takes no more")]
    Spent,
    /// There are no random bytes.
    #[error(transparent)]
    Crypto(crypto::Error),
}
