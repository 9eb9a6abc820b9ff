//! Segments, the stream of version 2 as `docs/spec/stream-v2.md` has it: files of records in a folder, with the keys
//! that open them beside.
//!
//! A [`Folder`] holds the segments of one tenant and a session key for each epoch. A [`Segment`] is read in order or
//! by its index; each record opens by itself. A writer that was killed leaves a segment without an index, which the
//! next writer recovers.

mod copies;
mod error;
mod folder;
mod header;
mod index;
mod key_folder;
mod key_kind;
mod key_store;
mod payload;
mod progress;
mod read;
mod scan;
mod varint;
mod write;

pub use copies::Copies;
pub use error::Error;
pub use folder::{Folder, Listed};
pub use header::{Header, is_segment};
pub use key_folder::{KeyFile, KeyFolder};
pub use key_kind::KeyKind;
pub use key_store::{KeyStore, MakeKey, NewKeys, OpenKey};
pub use progress::Progress;
pub(crate) use read::ReadSoFar;
pub use read::{Segment, Selection};
pub use scan::Tail;

pub(crate) use folder::{Recovered, Recovery, WholeLen, whole_len};
pub(crate) use key_folder::{Kept, MAX_LEN as LONGEST_KEY, name_new};
pub(crate) use payload::{Payload, Recorded};
pub(crate) use read::Records;
pub(crate) use write::{SegmentFile, check_place, record_to_seal, sealed_record, written};
