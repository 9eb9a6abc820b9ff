//! What every cipher of this provider can do, before anything of C's.

use std::ffi::c_uint;
use std::sync::Arc;

use crate::abi::Param;
use crate::allocation::Allocation;
use crate::buffer::Buffers;
use crate::error::Error;
use crate::params::Params;

/// Which way a context works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Direction {
    Encrypt,
    Decrypt,
}

/// What OpenSSL may know of a cipher before a context is made.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits {
    pub(crate) mode: c_uint,
    /// Bytes.
    pub(crate) key_len: usize,
    /// Bytes; 0 for none.
    pub(crate) iv_len: usize,
    /// Bytes; 1 for what works on single bytes.
    pub(crate) block_size: usize,
    pub(crate) aead: bool,
    /// True if the cipher answers for its IV itself.
    pub(crate) custom_iv: bool,
    /// True if it takes many records of TLS at once.
    pub(crate) multiblock: bool,
    /// True if paper mode makes it an AEAD that takes many records.
    pub(crate) paper: bool,
}

/// An algorithm under its names.
pub(crate) trait Algorithm: 'static {
    const TRAITS: Traits;
    /// The parameters that a context can set.
    const SETTABLE: &'static [Param];
    /// The parameters that a context can get.
    const GETTABLE: &'static [Param];

    /// Its state in a context. Known to the compiler, so that a call for some bytes costs no detour.
    type Context: Cipher + Clone;

    /// A context whose requests go where `requests` says. In paper mode AES-256-CBC may become a composite.
    fn context(requests: &Arc<Allocation>, paper_mode: bool) -> Self::Context;
}

/// The state of one use of an algorithm. A clone shares its keys.
pub(crate) trait Cipher: Send {
    /// Begins. What is not given stays as it was.
    fn init(
        &mut self,
        direction: Direction,
        key: Option<&[u8]>,
        iv: Option<&[u8]>,
    ) -> Result<(), Error>;

    /// Takes the input and returns the bytes of output that are complete.
    fn update(&mut self, buffers: Buffers<'_>) -> Result<usize, Error>;

    /// Ends the message.
    fn finish(&mut self, buffers: Buffers<'_>) -> Result<usize, Error>;

    /// Works on the input alone, without holding anything back (`EVP_Cipher`).
    fn at_once(&mut self, buffers: Buffers<'_>) -> Result<usize, Error>;

    /// Takes what `params` set.
    fn set(&mut self, params: &Params<'_>) -> Result<(), Error>;

    /// Answers what `params` ask for.
    fn get(&mut self, params: &Params<'_>) -> Result<(), Error>;
}
