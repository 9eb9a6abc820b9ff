//! Worker threads: made at the first job that needs them, and again after a fork.

use std::sync::{Arc, Mutex};

use crate::error::Error;
use crate::lock::lock;

/// A pool that does not exist until it is used, and belongs to the process that uses it.
///
/// Threads do not survive a fork, so a pool that was inherited is left alone and replaced.
pub struct Pool {
    workers: usize,
    made: Mutex<Option<(u32, Arc<rayon::ThreadPool>)>>,
}

impl Pool {
    /// A pool that will have `workers` threads.
    pub fn new(workers: usize) -> Self {
        Self { workers, made: Mutex::new(None) }
    }

    /// Runs `work` with the pool's scope, and returns when all that it spawned is done.
    ///
    /// # Errors
    /// [`Error::Pool`] if the threads cannot be started.
    pub fn scope<'scope, R: Send>(
        &self,
        work: impl FnOnce(&rayon::Scope<'scope>) -> R + Send,
    ) -> Result<R, Error> {
        Ok(self.threads()?.scope(work))
    }

    fn threads(&self) -> Result<Arc<rayon::ThreadPool>, Error> {
        let mut made = lock(&self.made);
        let process = std::process::id();
        match made.take() {
            Some((owner, threads)) if owner == process => {
                *made = Some((owner, Arc::clone(&threads)));
                Ok(threads)
            }
            inherited => {
                // Dropping it would talk to threads that are not there.
                std::mem::forget(inherited);
                let threads = rayon::ThreadPoolBuilder::new()
                    .num_threads(self.workers)
                    .thread_name(|index| format!("wattlock-{index}"))
                    .build()
                    .map_err(|source| Error::Pool { workers: self.workers, source })?;
                let threads = Arc::new(threads);
                *made = Some((process, Arc::clone(&threads)));
                Ok(threads)
            }
        }
    }
}
