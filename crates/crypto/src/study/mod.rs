//! The ciphers of two studies, for study and benchmarks only: never for users' data.
//!
//! One is about AES with extended blocks: [`ListingAes`]. The other, about energy, compares RC4, RC4A and Blowfish with parallel forms of them (PARC4, PARC4-I, PBlock)
//! on microjoules per byte. Every one is broken or outgrown: RC4 is prohibited in TLS by RFC 7465,
//! RC4A can be told from random (Maximov, FSE 2005), Blowfish has 64-bit blocks (Sweet32, CCS
//! 2016). None has authentication, and all look up tables at secret places, so that their time
//! depends on key and data; files that do so themselves carry `_vartime` in their names.
//!
//! There are no threads here. A parallel cipher hands out pieces that do not depend on one another;
//! an engine deals them to its threads:
//!
//! | cipher | serial part | independent pieces |
//! |---|---|---|
//! | [`Rc4`], [`Rc4a`] | all | none |
//! | [`Parc4`] | [`Parc4::fill`] | blocks of a length at choice, [`Parc4::blocks`] |
//! | [`Parc4i`] | [`Parc4i::fill`] | blocks of 256 bytes, [`Parc4i::blocks`] |
//! | [`Blowfish`] | key schedule | any whole blocks (ECB), any bytes (CTR) |
//! | [`PBlock`] | key schedule | one piece for each task, [`PBlock::pieces`] |

mod blowfish_vartime;
mod extended_block_vartime;
mod parc4;
mod parc4i_vartime;
mod pblock;
mod rc4_vartime;
mod rc4a_vartime;
#[cfg(test)]
mod testing;
mod words;

use std::ops::RangeInclusive;

pub use blowfish_vartime::Blowfish;
pub use extended_block_vartime::{ExtendedBlock, ListingAes};
pub use parc4::{Parc4, Parc4Reuse};
pub use parc4i_vartime::Parc4i;
pub use pblock::{PBlock, Piece};
pub use rc4_vartime::Rc4;
pub use rc4a_vartime::Rc4a;

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
    fn check(cipher: &'static str, key: &[u8], range: &RangeInclusive<usize>) -> Result<(), Self> {
        let (min, max, len) = (*range.start(), *range.end(), key.len());
        if range.contains(&len) { Ok(()) } else { Err(Self { cipher, len, min, max }) }
    }
}

/// What can go wrong in a cipher of the study.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
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
