//! Records: sealed messages that open by themselves, in any order. `docs/spec/record.md` has the format.
//!
//! ```
//! use wattlock_record::{Reader, Writer, new_session_key};
//!
//! let key = new_session_key()?;
//! let mut writer = Writer::new(key.clone(), 1)?;
//! let record = writer.seal(b"21.5 degrees", b"kitchen")?;
//!
//! let mut reader = Reader::new([(1, key)]);
//! assert_eq!(reader.open(&record, b"kitchen")?, b"21.5 degrees");
//! # Ok::<(), wattlock_record::Error>(())
//! ```
#![forbid(unsafe_code)]

mod additional;
mod error;
mod head;
mod reader;
mod writer;

pub use additional::AdditionalData;
pub use error::Error;
pub use head::{HEAD_LEN, OVERHEAD, SessionKey, new_session_key};
pub use reader::Reader;
pub use writer::{NextRecord, Writer};
