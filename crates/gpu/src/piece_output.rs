//! What a device made of a piece.

use wattlock_engine::crypto::TAG_LEN;

use crate::check::Sums;

/// What a device made of a piece.
pub(crate) struct PieceOutput<'a> {
    /// As many bytes as were put in.
    pub bytes: &'a [u8],
    pub tags: &'a [[u8; TAG_LEN]],
    /// Zeros where nothing was checked.
    pub sums: Sums,
}
