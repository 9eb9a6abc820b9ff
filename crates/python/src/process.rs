//! What belongs to one process: its engine, and whether it was forked.
//!
//! Threads and locks of the parent are of no use in a child, so that it makes another engine. The locks of the libraries
//! that are for a whole process are held during a fork, so that no other thread has one.

use std::cell::Cell;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use wattlock_engine::Engine;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, NONCE_LEN};
use wattlock_file::GlobalLocks;

/// The engine for each number of threads, once it was needed.
static ENGINES: [AtomicPtr<Engine>; MOST_THREADS + 1] =
    [const { AtomicPtr::new(std::ptr::null_mut()) }; MOST_THREADS + 1];
/// Threads of the engine; 0 for as many as the process has CPUs.
static THREADS: AtomicUsize = AtomicUsize::new(0);
/// Forks between the process that loaded the module and this one.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// Registers for forks, once.
pub(crate) fn prepare() -> PyResult<()> {
    static PREPARED: OnceLock<i32> = OnceLock::new();
    // What is set up once in a process is set up now, and by no thread that a fork could interrupt.
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, &[0; 32]);
    let _ = key.and_then(|key| key.seal([0; NONCE_LEN], b"", &mut [0; 64]));
    let register = || {
        // SAFETY: the handlers allocate nothing in the child, and the module stays in memory.
        unsafe { libc::pthread_atfork(Some(before), Some(in_parent), Some(in_child)) }
    };
    match *PREPARED.get_or_init(register) {
        0 => Ok(()),
        _ => Err(PyRuntimeError::new_err("there is no memory for a fork handler")),
    }
}

thread_local! {
    /// What a thread holds while it forks, so that no other thread holds it in that moment.
    static LOCKS: Cell<Option<GlobalLocks>> = const { Cell::new(None) };
}

unsafe extern "C" fn before() {
    let _ = LOCKS.try_with(|locks| locks.set(Some(wattlock_file::lock_all())));
}

unsafe extern "C" fn in_parent() {
    let _ = LOCKS.try_with(Cell::take);
}

unsafe extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for engine in &ENGINES {
        engine.store(std::ptr::null_mut(), Ordering::Relaxed);
    }
    let _ = LOCKS.try_with(Cell::take);
}

/// Forks between the process that loaded the module and this one: what holds for one process keeps this number.
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// The engine of this process. Engines are never freed: there is one for each fork, and for each number of threads
/// that was set.
pub(crate) fn engine() -> &'static Engine {
    let threads = threads().min(MOST_THREADS);
    let place = &ENGINES[threads];
    let made = place.load(Ordering::Acquire);
    if !made.is_null() {
        // SAFETY: it came from a `Box` that is never freed.
        return unsafe { &*made };
    }
    let new = Box::into_raw(Box::new(Engine::new(threads)));
    match place.compare_exchange(std::ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
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
    THREADS.store(count, Ordering::Relaxed);
    Ok(())
}

const MOST_THREADS: usize = 1024;
