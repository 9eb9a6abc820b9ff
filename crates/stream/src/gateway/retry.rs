//! Retries what fails for now: a peer that restarts, a disk that is full.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::{Counters, Notice};

/// Whether and for how long writes to an output are retried, and the receiver of notices.
#[derive(Clone)]
pub struct Retry {
    limit: Option<Duration>,
    counters: Arc<Counters>,
    notify: Arc<dyn Fn(Notice) + Send + Sync>,
}

/// Consecutive failures of one output.
#[derive(Default)]
pub(super) struct FailureStreak {
    since: Option<Instant>,
    delay: Duration,
    /// While it lasts.
    waiting: Option<Waiting>,
}

/// An output that is waited for, which is counted until this ends.
struct Waiting(Option<Arc<Counters>>);

impl Waiting {
    /// Also says whether no other output is waited for.
    fn begin(counters: &Arc<Counters>) -> (Self, bool) {
        let others = counters.waiting.fetch_add(1, Ordering::Relaxed);
        (Self(Some(Arc::clone(counters))), others == 0)
    }

    /// Says whether no other output is waited for.
    fn end(mut self) -> bool {
        self.0.take().is_some_and(|counters| counters.waiting.fetch_sub(1, Ordering::Relaxed) == 1)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let Some(counters) = &self.0 {
            counters.waiting.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Retry {
    /// Retries for `limit`, or without end.
    pub fn new(
        limit: Option<Duration>,
        counters: Arc<Counters>,
        notify: impl Fn(Notice) + Send + Sync + 'static,
    ) -> Self {
        Self { limit, counters, notify: Arc::new(notify) }
    }

    /// Waits before the next attempt after `error`, which the first of an episode reports.
    ///
    /// # Errors
    /// `error`, with the name of the output, once the limit is reached.
    pub(super) fn wait(
        &self,
        episode: &mut FailureStreak,
        output: &str,
        error: &io::Error,
    ) -> io::Result<()> {
        let now = Instant::now();
        let since = *episode.since.get_or_insert(now);
        let waited = now.duration_since(since);
        if self.limit.is_some_and(|limit| waited >= limit) {
            return Err(named(output, error));
        }
        if episode.waiting.is_none() {
            let (waiting, is_first) = Waiting::begin(&self.counters);
            episode.waiting = Some(waiting);
            // Of several connections to one peer that is gone, one says so.
            if is_first {
                Counters::add(&self.counters.waits, 1);
                (self.notify)(Notice::Waits { output: output.to_owned(), why: error.to_string() });
            }
        }
        episode.delay = (episode.delay * 2).clamp(SHORTEST, LONGEST);
        let left = self.limit.map_or(LONGEST, |limit| limit - waited);
        thread::sleep(episode.delay.min(left));
        Ok(())
    }

    /// Does `work` again and again while it fails for a reason that may pass: see [`is_passing`].
    ///
    /// # Errors
    /// The last error, once the limit is reached, and any other at once.
    pub(super) fn persist<T, E: std::error::Error + 'static>(
        &self,
        output: &str,
        mut work: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let mut streak = FailureStreak::default();
        loop {
            let error = match work() {
                Ok(done) => {
                    self.end(&mut streak, output, true);
                    return Ok(done);
                }
                Err(error) => error,
            };
            let passing = system_error(&error).filter(|why| is_passing(why));
            if passing.is_none_or(|why| self.wait(&mut streak, output, why).is_err()) {
                return Err(error);
            }
        }
    }

    /// Ends an episode: the output takes bytes again. Unless it is `steady`, the delay before the
    /// next retry goes on growing.
    pub(super) fn end(&self, episode: &mut FailureStreak, output: &str, steady: bool) {
        if steady {
            episode.delay = Duration::ZERO;
        }
        episode.since = None;
        if episode.waiting.take().is_some_and(Waiting::end) {
            (self.notify)(Notice::GoesOn { output: output.to_owned() });
        }
    }

    pub(super) fn counters(&self) -> &Arc<Counters> {
        &self.counters
    }

    /// The receiver of notices.
    pub(super) fn listener(&self) -> Arc<dyn Fn(Notice) + Send + Sync> {
        Arc::clone(&self.notify)
    }

    pub(super) fn notify(&self, notice: Notice) {
        (self.notify)(notice);
    }
}

/// An error of an output, with its name.
pub(super) fn named(output: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{output}: {error}"))
}

/// The error of the system that an error comes from.
fn system_error<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a io::Error> {
    let mut error = Some(error);
    while let Some(this) = error {
        if let Some(found) = this.downcast_ref() {
            return Some(found);
        }
        error = this.source();
    }
    None
}

/// True for what may keep a peer from being reached and may pass: that it is not there yet, and not that it, or what this
/// program was told of it, is wrong.
pub(super) fn may_come(error: &io::Error) -> bool {
    use io::ErrorKind::{InvalidData, InvalidInput, PermissionDenied};
    !matches!(error.kind(), InvalidData | InvalidInput | PermissionDenied)
}

/// True for a disk that may have room again.
pub(super) fn is_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}

/// True for what may keep a file from being made and may pass: a full disk, and too many open files.
pub(super) fn is_passing(error: &io::Error) -> bool {
    let code = error.raw_os_error().map(Errno::from_raw_os_error);
    is_full(error) || matches!(code, Some(Errno::MFILE | Errno::NFILE))
}

/// The delay before the first retry; each further one is twice as long.
const SHORTEST: Duration = Duration::from_millis(20);

/// The longest delay between retries.
const LONGEST: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;
    use crate::lock::lock;

    #[test]
    fn of_connections_to_one_peer_the_first_says_that_it_waits_and_the_last_that_it_goes_on() {
        let counters = Arc::new(Counters::default());
        let said = Arc::new(Mutex::new(Vec::new()));
        let notices = Arc::clone(&said);
        let retry = Retry::new(None, Arc::clone(&counters), move |notice| {
            lock(&notices).push(matches!(notice, Notice::Waits { .. }));
        });
        let error = io::Error::from(io::ErrorKind::ConnectionRefused);
        let waiting = || counters.waiting.load(Ordering::Relaxed);
        let [mut one, mut other, mut failed] = [(); 3].map(|()| FailureStreak::default());
        for streak in [&mut one, &mut other, &mut failed] {
            retry.wait(streak, "peer", &error).unwrap();
            retry.wait(streak, "peer", &error).unwrap();
        }
        assert_eq!((waiting(), lock(&said).as_slice()), (3, &[true][..]));
        retry.end(&mut one, "peer", true);
        drop(failed);
        assert_eq!((waiting(), lock(&said).as_slice()), (1, &[true][..]));
        retry.end(&mut other, "peer", true);
        assert_eq!((waiting(), lock(&said).as_slice()), (0, &[true, false][..]));
    }
}
