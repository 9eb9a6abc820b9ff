//! What can be wrong with a segment, its folder and its keys.

use std::io;

use super::key_kind::KeyKind;

/// What can be wrong with a segment, its folder and its keys. Messages hold no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A call of the system failed.
    #[error("cannot {0}")]
    Io(String, #[source] io::Error),
    /// It does not begin as a segment does.
    #[error("not a segment of a sealed stream")]
    NotASegment,
    /// Its header was never written.
    #[error("the segment has no header")]
    HeaderCut,
    /// Its header is changed.
    #[error("the header of the segment is damaged")]
    Header,
    /// There is no key of its epoch.
    #[error(
        "the key of epoch {epoch} is missing in {folder}: it was removed, or the segment was moved"
    )]
    NoKey {
        /// The epoch.
        epoch: u32,
        /// The folder of keys.
        folder: String,
    },
    /// The key of its epoch opens otherwise.
    #[error(
        "the key of epoch {epoch} {}",
        match kind {
            KeyKind::Container => "was made for recipients: open it with -i or -p",
            KeyKind::Salt => "follows from a --key-file, and needs that file",
        }
    )]
    KeyKind {
        /// The epoch.
        epoch: u32,
        /// How it opens.
        kind: KeyKind,
    },
    /// The key of its epoch cannot be unwrapped.
    #[error("the key of epoch {epoch} does not open")]
    Unwrap {
        /// The epoch.
        epoch: u32,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A new key cannot be wrapped.
    #[error("cannot wrap a new key")]
    Wrap(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The key is another than the one that it was sealed under.
    #[error("the key of epoch {0} is not the one that the segment was sealed under")]
    OtherKey(u32),
    /// A record is not authentic, or not at its place.
    #[error("record {0} was changed or moved")]
    Record(u64),
    /// What an authentic record holds has no known form.
    #[error("record {0} has an unknown form; a later version may read it")]
    Form(u64),
    /// An authentic record cannot stand where it does: its writer is wrong.
    #[error("record {0} cannot follow those before it")]
    Order(u64),
    /// Bytes of a complete segment are damaged.
    #[error("the segment is damaged at byte {0}")]
    Damaged(u64),
    /// Bytes are damaged, and whole batches follow.
    #[error(
        "the segment is damaged at byte {0}, and intact records follow; to read them, use wattlock stream \
         --open with --from 1970-01-01"
    )]
    DamagedWithin(u64),
    /// Its index is not that of its records.
    #[error("the index of the segment does not match its records; all records were read")]
    Index,
    /// It was opened before: it is the same segment under another name.
    #[error("it is a copy of a segment that was opened before")]
    Copy,
    /// A segment between others of the same run is not there.
    #[error("{0} missing before it")]
    Missing(String),
    /// Segments are gone, and not all of them was delivered.
    #[error("{0} removed before all messages were delivered")]
    Removed(String),
    /// A position is that of another folder.
    #[error("the position is that of another folder, or of one that was created again")]
    OtherFolder,
    /// A store has another segment of this name.
    #[error(
        "{0} has another segment of that name, and this one is not forwarded: numbers were given twice, or \
         two folders have the same file `id`"
    )]
    Conflict(String),
    /// A store has as many other key files of the epoch as it keeps.
    #[error(
        "cannot forward the segment to {who}: the store already keeps 16 additional key files of epoch {epoch}, \
         the most; remove the ones in its keys/ folder that open no segment"
    )]
    TooManyKeys {
        /// The epoch.
        epoch: u32,
        /// Where the store is.
        who: String,
    },
    /// It ends before its index, and no later segment accounts for that.
    #[error(
        "it ends after {0} records without an index, and no later segment accounts for that: it was truncated, or \
         its writer was killed and none has run since"
    )]
    Cut(u64),
    /// A primitive refused.
    #[error("cannot seal a record")]
    Seal(#[source] wattlock_record::Error),
    /// The system has no random bytes.
    #[error(transparent)]
    Crypto(#[from] wattlock_engine::crypto::Error),
}

impl Error {
    /// For `map_err`: what was attempted.
    pub(super) fn io(what: impl Into<String>) -> impl FnOnce(io::Error) -> Self {
        move |error| Self::Io(what.into(), error)
    }

    /// True for an error that says: the key is wrong, or something was changed.
    pub fn is_authentication(&self) -> bool {
        !matches!(
            self,
            Self::Io(..)
                | Self::Conflict(_)
                | Self::TooManyKeys { .. }
                | Self::Removed(_)
                | Self::OtherFolder
                | Self::Wrap(_)
                | Self::Seal(_)
                | Self::Crypto(_)
        )
    }
}
