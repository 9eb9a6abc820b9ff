//! Makes files durable on a thread of its own, and tells senders so.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use super::answers::Promise;
use crate::lock::lock;
use crate::segment::{Copies, Progress, check_place};

/// When what was written is made durable, and its senders are told that it is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// After each write. What comes meanwhile is written and synced together.
    EachBatch,
    /// At most this long after a write.
    Within(Duration),
    /// When the file ends. Senders are told when their messages were written: a crash of the system may lose them.
    AtEnd,
}

/// Makes files durable.
pub(super) struct Syncer {
    shared: Arc<Shared>,
    progress: Arc<Progress>,
    /// What promises wait for besides.
    copies: Option<Arc<Copies>>,
    durability: Durability,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// What was written to since it was synced last.
    file: Option<Arc<File>>,
    /// The segment, with the bytes that were written.
    written: Option<(PathBuf, u64)>,
    promises: Vec<Promise>,
    /// When the first of that was written.
    since: Option<Instant>,
    /// True while it is synced.
    busy: bool,
    /// What has to be done is done at once.
    hurried: bool,
    ended: bool,
    failure: Option<io::Error>,
}

impl Syncer {
    /// Starts the thread, if there is anything for it to do.
    ///
    /// # Errors
    /// That there is none to be had.
    pub fn start(
        durability: Durability,
        progress: Arc<Progress>,
        copies: Option<Arc<Copies>>,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = match durability {
            Durability::AtEnd => None,
            Durability::EachBatch | Durability::Within(_) => {
                let (shared, progress) = (Arc::clone(&shared), Arc::clone(&progress));
                let copies = copies.clone();
                let work = move || shared.work(durability, &progress, copies.as_deref());
                Some(thread::Builder::new().name("sync".into()).spawn(work)?)
            }
        };
        Ok(Self { shared, progress, copies, durability, thread })
    }

    /// Takes promises that are kept once the first `len` bytes of the segment at `path` are durable.
    ///
    /// # Errors
    /// That something could not be made durable before, or the file is not at its place: nobody is told any more that it
    /// is.
    pub fn written(
        &self,
        (file, path, len): (&Arc<File>, &Path, u64),
        promises: &mut Vec<Promise>,
    ) -> io::Result<()> {
        if self.durability == Durability::AtEnd {
            check_promises(promises, file, path)?;
            keep(self.copies.as_deref(), (path, len), std::mem::take(promises));
            return Ok(());
        }
        let mut state = self.shared.lock();
        // There is one file at a time: the last is waited for.
        while state.busy_with_other(file) && state.failure.is_none() {
            state.hurried = true;
            self.shared.changed.notify_all();
            state = self.shared.wait(state);
        }
        state.check()?;
        state.file = Some(Arc::clone(file));
        state.written = Some((path.to_owned(), len));
        state.promises.append(promises);
        state.since.get_or_insert_with(Instant::now);
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Notes that the segment is complete and durable.
    pub fn complete(&self) {
        self.progress.is_complete();
    }

    /// Waits until all that was written is durable.
    ///
    /// # Errors
    /// That it cannot be made so.
    pub fn settle(&self) -> io::Result<()> {
        let mut state = self.shared.lock();
        while (state.file.is_some() || state.busy) && state.failure.is_none() {
            state.hurried = true;
            self.shared.changed.notify_all();
            state = self.shared.wait(state);
        }
        state.check()
    }
}

impl Drop for Syncer {
    fn drop(&mut self) {
        self.shared.lock().ended = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // A panic there is reported, and its promises are not kept.
            let _ = thread.join();
        }
    }
}

impl State {
    fn busy_with_other(&self, file: &Arc<File>) -> bool {
        self.file.as_ref().is_some_and(|own| !Arc::ptr_eq(own, file))
    }

    fn check(&self) -> io::Result<()> {
        match &self.failure {
            Some(error) => Err(io::Error::new(error.kind(), error.to_string())),
            None => Ok(()),
        }
    }
}

/// Looks whether the file is at its place, if anybody is to be told that what is in it is safe.
fn check_promises(promises: &[Promise], file: &File, path: &Path) -> io::Result<()> {
    match promises {
        [] => Ok(()),
        _ => check_place(file, path),
    }
}

/// Keeps promises, once copies are stored if they wait for some.
fn keep(copies: Option<&Copies>, (path, len): (&Path, u64), promises: Vec<Promise>) {
    match copies {
        Some(copies) if !promises.is_empty() => {
            copies.wait(path, len, || promises.into_iter().for_each(Promise::keep));
        }
        _ => promises.into_iter().for_each(Promise::keep),
    }
}

impl Shared {
    fn work(&self, durability: Durability, progress: &Progress, copies: Option<&Copies>) {
        let mut state = self.lock();
        loop {
            let Some(since) = state.since.filter(|_| state.failure.is_none()) else {
                if state.ended {
                    return;
                }
                state = self.wait(state);
                continue;
            };
            if let Durability::Within(limit) = durability
                && !state.hurried
                && !state.ended
            {
                let left = limit.saturating_sub(since.elapsed());
                if !left.is_zero() {
                    let waited = self.changed.wait_timeout(state, left);
                    state = waited.unwrap_or_else(|poison| poison.into_inner()).0;
                    continue;
                }
            }
            let (file, promises) = (state.file.take(), std::mem::take(&mut state.promises));
            let written = state.written.take();
            (state.since, state.hurried, state.busy) = (None, false, true);
            drop(state);
            let synced = match (&file, &written) {
                (Some(file), Some((path, _))) => {
                    file.sync_data().and_then(|()| check_promises(&promises, file, path))
                }
                _ => Ok(()),
            };
            let is_durable = synced.is_ok();
            if let Some((path, len)) = written.filter(|_| is_durable) {
                keep(copies, (&path, len), promises);
                progress.is_durable(&path, len);
            }
            state = self.lock();
            state.busy = false;
            // The system reports an error once, and may have dropped what it could not write.
            state.failure = state.failure.take().or(synced.err());
            self.changed.notify_all();
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait(state).unwrap_or_else(|poison| poison.into_inner())
    }
}
