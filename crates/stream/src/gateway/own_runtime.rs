//! A thread for tasks.

use std::io;
use std::thread;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A runtime on a thread of its own, which ends when this is dropped.
pub(super) struct OwnRuntime {
    pub tasks: Handle,
    _runs: oneshot::Sender<()>,
}

impl OwnRuntime {
    /// Starts the thread.
    ///
    /// # Errors
    /// That it cannot be started.
    pub fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let tasks = runtime.handle().clone();
        let (runs, ended) = oneshot::channel::<()>();
        let work = move || drop(runtime.block_on(ended));
        thread::Builder::new().name(name.to_owned()).spawn(work)?;
        Ok(Self { tasks, _runs: runs })
    }
}
