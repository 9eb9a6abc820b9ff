//! The ciphers of two studies, for study and benchmarks only: never for anybody's data.
//!
//! One is about AES with extended blocks: [`ListingAes`]; this and others ran AES by tables, which
//! [`aes`] has next to the product's kernels. The other, about energy, compares RC4,
//! RC4A and Blowfish with parallel forms of them (PARC4, PARC4-I, PBlock) on microjoules per byte.
//! Every one is broken or outgrown: RC4 is prohibited in TLS by RFC 7465, RC4A is distinguishable
//! from random (Maximov, FSE 2005), Blowfish has 64-bit blocks (Sweet32, CCS 2016). None has
//! authentication, and all look up tables at secret places, so that their time depends on key and
//! data; files that do so themselves carry `_vartime` in their names.
//!
//! There are no threads here. A parallel cipher has pieces that do not depend on one another; an
//! engine deals them to its threads:
//!
//! | cipher | serial part | independent pieces |
//! |---|---|---|
//! | [`Rc4`], [`Rc4a`] | all | none |
//! | [`Parc4`] | [`Parc4::fill`] | any bytes, [`Parc4::xor_block`] |
//! | [`Parc4i`] | `Half::fill`, of two halves | two, and any bytes, [`Parc4i::xor_block`] |
//! | [`Blowfish`] on one thread, or dealt as PBlock | key schedule | any whole blocks (ECB), any bytes (CTR) |

pub mod aes;
mod aes_ttable_vartime;
mod algorithm;
mod blowfish_vartime;
mod error;
mod extended_block_vartime;
mod parc4;
mod parc4i_vartime;
mod rc4_vartime;
mod rc4a_vartime;
#[cfg(test)]
mod testing;
mod words;

pub use algorithm::{Algorithm, BlowfishMode};
pub use blowfish_vartime::Blowfish;
pub use error::{Error, KeyLength, iv_length};
pub use extended_block_vartime::{ListingAes, PrintedRound};
pub use parc4::{Parc4, Parc4Reuse};
pub use parc4i_vartime::Parc4i;
pub use rc4_vartime::Rc4;
pub use rc4a_vartime::Rc4a;
