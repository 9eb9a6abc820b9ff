//! What ciphers offer libssl beyond single records: set once at load, and taken back for good.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::statistics::{Path, count_call};

/// Whether ciphers offer libssl the multiblock protocol: the question comes without a context.
static MULTIBLOCK: AtomicBool = AtomicBool::new(false);

/// Whether AES-256-CBC takes the part of a composite; as above.
static PAPER_MODE: AtomicBool = AtomicBool::new(false);

/// Sets both, at load.
pub(crate) fn set(multiblock: bool, paper_mode: bool) {
    PAPER_MODE.store(paper_mode, Ordering::Relaxed);
    MULTIBLOCK.store(multiblock, Ordering::Relaxed);
}

/// Whether AES-256-CBC takes the part of a composite.
pub(crate) fn paper_mode_is_on() -> bool {
    PAPER_MODE.load(Ordering::Relaxed)
}

/// Whether ciphers offer the multiblock protocol.
pub(crate) fn multiblock_is_on() -> bool {
    MULTIBLOCK.load(Ordering::Relaxed)
}

/// Offers it no more, to library contexts that have not fetched the cipher yet.
pub(crate) fn turn_multiblock_off() {
    count_call(Path::MultiblockRefused, 0);
    MULTIBLOCK.store(false, Ordering::Relaxed);
}
