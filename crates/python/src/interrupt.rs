//! Long work without the interpreter's lock, which Ctrl-C ends.

use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use wattlock_file::{Error, Progress};

use crate::errors;

/// Does `work` without the interpreter's lock. While it takes long, signals are looked for, and one whose handler
/// raises stops it: Ctrl-C raises `KeyboardInterrupt`. `bytes` is how much there is to do, if that is known.
pub(crate) fn run<T: Send>(
    py: Python<'_>,
    bytes: Option<usize>,
    work: impl FnOnce(&Progress) -> Result<T, Error> + Send,
) -> PyResult<T> {
    let progress = &Progress::default();
    if bytes.is_some_and(|bytes| bytes < LONG) {
        return py.detach(|| work(progress)).map_err(errors::of_file);
    }
    let work = Mutex::new(Some(work));
    let take = || work.lock().ok().and_then(|mut work| work.take());
    let (done, raised) = py.detach(|| {
        thread::scope(|scope| {
            let (sender, ended) = mpsc::sync_channel::<()>(1);
            let worker = thread::Builder::new().spawn_scoped(scope, {
                let take = &take;
                move || {
                    // Dropped when it ends, also by a panic.
                    let _sender = sender;
                    take().map(|work| work(progress))
                }
            });
            // Without another thread, no signal is seen.
            let Ok(worker) = worker else {
                return (Ok(take().map(|work| work(progress))), None);
            };
            let mut raised = None;
            while ended.recv_timeout(LOOK) == Err(RecvTimeoutError::Timeout) {
                if raised.is_none() {
                    raised = Python::attach(|py| py.check_signals()).err();
                    if raised.is_some() {
                        progress.stop();
                    }
                }
            }
            (worker.join(), raised)
        })
    });
    match (done, raised) {
        // What is done is done; the next bytecode would raise it.
        (Ok(_), Some(raised)) => Err(raised),
        (Ok(Some(done)), None) => done.map_err(errors::of_file),
        (Ok(None) | Err(_), _) => Err(PyRuntimeError::new_err("a worker panicked")),
    }
}

/// Work of fewer bytes than this takes some milliseconds.
const LONG: usize = 16 << 20;

/// How long a signal may wait.
const LOOK: Duration = Duration::from_millis(20);
