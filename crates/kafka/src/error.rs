//! What ends the mirror.

/// What ends the mirror. Messages hold no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A record cannot be opened; nothing of its transaction was committed.
    #[error("{topic}, partition {partition}, offset {offset}: {why}")]
    Refused {
        /// The topic that it was read from.
        topic: String,
        /// Its partition.
        partition: i32,
        /// Its offset.
        offset: i64,
        /// What is wrong with it.
        why: String,
    },
    /// A record cannot be sealed or written.
    #[error("{topic}, partition {partition}, offset {offset}: {why}")]
    Unwritable {
        /// The topic that it was read from.
        topic: String,
        /// Its partition.
        partition: i32,
        /// Its offset.
        offset: i64,
        /// What is wrong with it.
        why: String,
    },
    /// The settings make no sense.
    #[error("{0}")]
    Settings(String),
    /// A cluster does not answer, which may pass.
    #[error("{0}")]
    Unreachable(String),
    /// The clusters, a topic or a key cannot be used.
    #[error("{0}")]
    Failed(String),
}

/// Why a transform cannot take a record.
#[derive(Debug)]
pub enum Fault {
    /// The record is not what was sealed, or its key is not there.
    Refused(String),
    /// The record cannot be sealed.
    Unwritable(String),
    /// Something else failed.
    Failed(Error),
}

#[cfg(feature = "client")]
impl Fault {
    /// Returns the error of a record at this place.
    pub(crate) fn at(self, topic: &str, partition: i32, offset: i64) -> Error {
        let topic = topic.to_owned();
        match self {
            Self::Refused(why) => Error::Refused { topic, partition, offset, why },
            Self::Unwritable(why) => Error::Unwritable { topic, partition, offset, why },
            Self::Failed(error) => error,
        }
    }
}
