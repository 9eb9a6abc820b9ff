//! What ciphers offer libssl beyond single records: set for each library context, and taken back for the whole process.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::statistics::{Path, count_call};

/// The settings of one library context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    /// Whether ciphers offer the multiblock protocol.
    pub(crate) multiblock: bool,
    /// Whether AES-256-CBC takes the part of a composite.
    pub(crate) paper_mode: bool,
}

/// True once the multiblock protocol went wrong in this process.
static WITHDRAWN: AtomicBool = AtomicBool::new(false);

/// Whether the multiblock protocol may be offered still.
pub(crate) fn multiblock_is_sound() -> bool {
    !WITHDRAWN.load(Ordering::Relaxed)
}

/// Offers it no more, to library contexts that have not fetched the cipher yet.
pub(crate) fn turn_multiblock_off() {
    count_call(Path::MultiblockRefused, 0);
    WITHDRAWN.store(true, Ordering::Relaxed);
}
