//! What a process does once after it was forked: it has another process id, its own random numbers
//! and its own row of statistics.
//!
//! A forked process may be in a sandbox when it makes its first context, and is not allowed to ask
//! for its process id there. So all this happens in `fork` itself, by a handler that is registered
//! when the provider is loaded; the module stays in memory, and with it the handler.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::error::Error;
use crate::{random, statistics};

static PROCESS: AtomicU32 = AtomicU32::new(0);
/// Forks between the process that loaded the provider and this one, and one.
static GENERATION: AtomicU32 = AtomicU32::new(1);
/// The generation that made a context last.
static BEGUN: AtomicU32 = AtomicU32::new(0);

/// Prepares for forks. At load, where system calls are allowed.
///
/// # Errors
/// [`Error::Random`], [`Error::Internal`] where the C library has no memory for a handler.
pub(crate) fn prepare() -> Result<(), Error> {
    static PREPARED: OnceLock<Result<(), Error>> = OnceLock::new();
    *PREPARED.get_or_init(|| {
        PROCESS.store(std::process::id(), Ordering::Relaxed);
        random::set_up()?;
        // SAFETY: the handler takes no lock and allocates nothing.
        match unsafe { libc::pthread_atfork(None, None, Some(in_child)) } {
            0 => Ok(()),
            _ => Err(Error::Internal),
        }
    })
}

unsafe extern "C" fn in_child() {
    PROCESS.store(std::process::id(), Ordering::Relaxed);
    GENERATION.fetch_add(1, Ordering::Relaxed);
    statistics::leave_row();
    // The kernel has wiped the key; without one, the first random numbers ask for it again.
    let _ = random::seed();
}

/// The id of this process.
pub(crate) fn process_id() -> u32 {
    PROCESS.load(Ordering::Relaxed)
}

/// Forks between the process that loaded the provider and this one, and one.
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// True once in each process: for its first context.
pub(crate) fn is_first_context() -> bool {
    let generation = GENERATION.load(Ordering::Relaxed);
    BEGUN.load(Ordering::Relaxed) != generation
        && BEGUN.swap(generation, Ordering::Relaxed) != generation
}
