//! The threads that do requests, and the memory that they may take.

use std::future::Future;
use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Runs requests, and bounds the bytes that are on their way.
pub(crate) struct Network {
    runtime: Runtime,
    /// Room for blocks that were fetched and not read yet.
    fetched: Arc<Semaphore>,
    /// Room for parts that are not acknowledged yet. What is fetched may wait for it, so it is apart.
    sent: Arc<Semaphore>,
}

/// Bytes of parts that are on their way at a time, all objects together, and of blocks; each object may
/// have one more.
const BUDGET: usize = 72 << 20;

/// The budget is counted in these.
const UNIT: usize = 1 << 16;

impl Network {
    /// Starts the threads: half as many as CPUs, as the others encrypt.
    pub fn new() -> io::Result<Self> {
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let runtime = Builder::new_multi_thread()
            .worker_threads((cpus / 2).clamp(1, 8))
            .thread_name("requests")
            .enable_all()
            .build()?;
        let room = || Arc::new(Semaphore::new(BUDGET / UNIT));
        Ok(Self { runtime, fetched: room(), sent: room() })
    }

    /// Does a request, and waits for its answer.
    pub fn wait<F: Future>(&self, request: F) -> F::Output {
        self.runtime.block_on(request)
    }

    /// Starts a request.
    pub fn start<F>(&self, request: F) -> tokio::task::JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime.spawn(request)
    }

    /// Room for a block of `len` bytes, if there is any now.
    pub fn try_room_for_block(&self, len: u64) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.fetched).try_acquire_many_owned(units(len)).ok()
    }

    /// Waits for room for a part of `len` bytes.
    pub fn room_for_part(&self, len: u64) -> Option<OwnedSemaphorePermit> {
        self.wait(Arc::clone(&self.sent).acquire_many_owned(units(len))).ok()
    }
}

/// What is longer than the budget takes all of it.
fn units(len: u64) -> u32 {
    let units = len.div_ceil(UNIT as u64).clamp(1, (BUDGET / UNIT) as u64);
    units as u32
}
