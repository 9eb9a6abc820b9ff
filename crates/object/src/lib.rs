//! Objects in stores (S3, Google Cloud Storage, Azure, HTTP) as inputs and outputs of `wattlock-file`.
//!
//! [`Client`] opens stores by address, with the credentials of the usual environment variables and files.
//! [`Client::object`] is an input whose ranges are fetched ahead in parallel; [`Client::upload`] an
//! output that appears when it is complete, or not at all.
//!
//! No call here is asynchronous: requests run on threads of the client, and callers wait for them.
#![forbid(unsafe_code)]

mod address;
mod client;
mod error;
mod journal;
mod listing;
mod lock;
mod names;
mod network;
mod object;
mod origin;
mod profile;
mod read_ahead;
mod spool;
mod store;
mod transport;
mod unfinished;
mod upload;

pub use address::{Address, is_address, local_path};
pub use client::{Client, ListEntry, Listed};
pub use error::Error;
pub use listing::ForeignObject;
pub use names::{HiddenNames, NAMES_FILE, NameError};
pub use object::Object;
pub use spool::{Spool, SpooledCopy, SpooledUpload};
pub use unfinished::UnfinishedUpload;
pub use upload::{Upload, abort_uploads};
