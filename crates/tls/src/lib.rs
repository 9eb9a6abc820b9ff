//! Records of TLS: what is secret in them, where it lies, and the kernels that fit their number.
//!
//! The primitives are those of `wattlock-crypto`, which knows no TLS, and so are the errors. No I/O,
//! no threads, no clock: everything here works on memory that the caller owns, in place.
#![forbid(unsafe_code)]

pub mod cbc;
