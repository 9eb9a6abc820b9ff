//! What belongs to one process: its engine, and whether it was forked.
//!
//! Threads and locks of the parent are of no use in a child, so that it makes another engine. All that happens in `fork`
//! itself is that two numbers change.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use wattlock_engine::Engine;

static ENGINE: AtomicPtr<Engine> = AtomicPtr::new(std::ptr::null_mut());
/// Threads of the engine; 0 for as many as the process has CPUs.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Forks between the process that loaded the module and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Registers for forks, once.
pub(crate) fn prepare() -> PyResult<()> {
    static PREPARED: OnceLock<i32> = OnceLock::new();
    // SAFETY: the handler takes no lock and allocates nothing, and the module stays in memory.
    let registered =
        *PREPARED.get_or_init(|| unsafe { libc::pthread_atfork(None, None, Some(in_child)) });
    match registered {
        0 => Ok(()),
        _ => Err(PyRuntimeError::new_err("there is no memory for a fork handler")),
    }
}

unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    ENGINE.store(std::ptr::null_mut(), Ordering::Relaxed);
}

/// Forks between the process that loaded the module and this one: what holds for one process keeps this number.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// The engine of this process. Engines are never freed: there is one for each fork, and for each number of threads
/// that was set.
pub(crate) fn engine() -> &'static Engine {
    let made = ENGINE.load(Ordering::Acquire);
    if !made.is_null() {
        // SAFETY: it came from a `Box` that is never freed.
        return unsafe { &*made };
    }
    let new = Box::into_raw(Box::new(Engine::new(threads())));
    match ENGINE.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
        // SAFETY: as above; nothing frees it.
        Ok(_) => unsafe { &*new },
        Err(earlier) => {
            // SAFETY: the one made here has no other owner.
            drop(unsafe { Box::from_raw(new) });
            // SAFETY: as above.
            unsafe { &*earlier }
        }
    }
}

/// The number of threads that work at once.
#[pyfunction]
pub(crate) fn threads() -> usize {
    match THREADS.load(Ordering::Relaxed) {
        0 => std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
        set => set,
    }
}

/// Sets the number of threads that work at once; None for as many as this process has CPUs.
#[pyfunction]
#[pyo3(signature = (count))]
pub(crate) fn set_threads(count: Option<usize>) -> PyResult<()> {
    let count = count.unwrap_or(0);
    if count > MOST_THREADS {
        return Err(PyValueError::new_err(format!("more than {MOST_THREADS} threads")));
    }
    if THREADS.swap(count, Ordering::Relaxed) != count {
        ENGINE.store(std::ptr::null_mut(), Ordering::Release);
    }
    Ok(())
}

const MOST_THREADS: usize = 1024;
