//! Why a cipher of the study refuses.

use std::ops::RangeInclusive;

use super::Algorithm;

/// A key that a cipher does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a key of {len} bytes: {cipher} takes {min} to {max}")]
pub struct KeyLength {
    /// The cipher.
    pub cipher: &'static str,
    /// Bytes of the key that was offered.
    pub len: usize,
    /// The shortest key in bytes.
    pub min: usize,
    /// The longest key in bytes.
    pub max: usize,
}

impl KeyLength {
    pub(super) fn check(
        cipher: &'static str,
        key: &[u8],
        range: &RangeInclusive<usize>,
    ) -> Result<(), Self> {
        let (min, max, len) = (*range.start(), *range.end(), key.len());
        if range.contains(&len) { Ok(()) } else { Err(Self { cipher, len, min, max }) }
    }
}

/// What can go wrong in a cipher of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// A key has no length that the algorithm takes.
    #[error("{algorithm} takes keys of {}, not {len}", lengths(*.shortest, *.longest))]
    KeyRange {
        /// The algorithm.
        algorithm: Algorithm,
        /// Bytes of the key.
        len: usize,
        /// The fewest bytes.
        shortest: usize,
        /// The most bytes.
        longest: usize,
    },
    /// An IV or nonce has the wrong length.
    #[error("{}", iv_length(*.algorithm, *.len, *.expected))]
    IvLength {
        /// The algorithm.
        algorithm: Algorithm,
        /// Bytes of the IV.
        len: usize,
        /// Bytes that it should have.
        expected: usize,
    },
    /// The key is too short or too long.
    #[error(transparent)]
    KeyLength(#[from] KeyLength),
    /// ECB takes whole blocks only.
    #[error("{0} bytes are no whole number of 8-byte blocks")]
    PartialBlock(usize),
    /// Data cannot be cut into blocks of no bytes.
    #[error("a block length of 0 bytes")]
    EmptyBlock,
    /// Key stream and data that belong together differ in length.
    #[error("{keystream} bytes of key stream for {data} bytes of data")]
    Lengths {
        /// Bytes of key stream.
        keystream: usize,
        /// Bytes of data.
        data: usize,
    },
    /// The key has encrypted as much as it may, or would with this call.
    #[error(
        "{0} bytes under one Blowfish key: beyond 4 GiB, the birthday bound of 64-bit blocks is \
         too near"
    )]
    KeyWornOut(u64),
}

fn lengths(shortest: usize, longest: usize) -> String {
    if shortest == longest {
        format!("{shortest} bytes")
    } else {
        format!("{shortest} to {longest} bytes")
    }
}

/// What is wrong with an IV of `len` bytes.
pub fn iv_length(algorithm: Algorithm, len: usize, expected: usize) -> String {
    match (len, expected) {
        (_, 0) => format!("{algorithm} takes no --iv"),
        (0, _) => {
            let digits = 2 * expected;
            format!("{algorithm} requires --iv: {expected} bytes ({digits} hexadecimal digits)")
        }
        (1, _) => format!("the IV has 1 byte; {algorithm} takes {expected}"),
        _ => format!("the IV has {len} bytes; {algorithm} takes {expected}"),
    }
}
