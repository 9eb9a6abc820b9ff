//! Records of TLS as jobs of the engine: what they look like, and what seals and opens them.
#![forbid(unsafe_code)]

pub mod cbc;
pub mod gcm;
mod record;

pub use record::{
    AAD_LEN, BLOCK, HEADER_LEN, MAX_PAYLOAD, Overhead, RecordAad, explicit_iv_len, is_whole_1_3,
    pad,
};
