//! What ciphers offer libssl beyond single records: set for each library context, and taken back for the whole process.

use std::sync::atomic::{AtomicBool, Ordering};

use wattlock_crypto::GcmKernel;

use crate::statistics::{Path, count_call};

/// The settings of one library context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Offers {
    /// Whether ciphers offer the multiblock protocol.
    pub(crate) multiblock: bool,
    /// Whether AES-256-CBC takes the part of a composite.
    pub(crate) paper_mode: bool,
    /// Whether there is AES-GCM.
    pub(crate) gcm: bool,
}

/// Whether AES-GCM is offered by default: on CPUs of a class on which Wattlock's own code for it was measured, and is
/// faster than OpenSSL's. On others the provider would call AWS-LC, which is not.
pub(crate) fn gcm_is_faster() -> bool {
    GcmKernel::best() != GcmKernel::AwsLc
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
