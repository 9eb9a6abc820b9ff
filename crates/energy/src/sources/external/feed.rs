//! The readings that a thread took from a meter, for callers that ask and callers that wait.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::line::Line;
use crate::meter::Reading;

/// Why there is no reading.
#[derive(Clone, Debug)]
pub(super) enum Failure {
    /// It did not answer, or not with an answer.
    Silence(String),
    /// It answered with something that is no reading.
    Form(String),
}

impl Failure {
    /// What is said of it.
    pub fn why(&self) -> &str {
        match self {
            Self::Silence(why) | Self::Form(why) => why,
        }
    }
}

/// The readings, and whether to go on.
#[derive(Default)]
pub(super) struct Feed {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The first two arrivals, which show the meter's kind and interval.
    first: Vec<(Instant, Line)>,
    latest: Option<(Instant, Line)>,
    /// A count lower than the one before it, until a sample has reported it.
    went_back: Option<(Instant, Line)>,
    /// Why there is no reading, since the latest.
    failure: Option<Failure>,
    stopped: bool,
    /// The group of the command that runs.
    group: Option<Pid>,
}

impl Feed {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a reading that has arrived.
    pub fn put(&self, line: Line) {
        let now = Instant::now();
        let mut state = self.state();
        // Lines of one burst are one arrival: what they are apart says nothing of the meter.
        let burst = state.first.last().is_some_and(|(last, _)| now - *last < BURST);
        if state.first.len() < 2 && !burst {
            state.first.push((now, line));
        }
        let before = state.latest.map(|(_, before)| before.reading);
        if let (Some(Reading::Energy(before)), Reading::Energy(after)) = (before, line.reading)
            && after < before
        {
            state.went_back = Some((now, line));
        }
        (state.latest, state.failure) = (Some((now, line)), None);
        self.changed.notify_all();
    }

    /// Something went wrong, and there is no reading until the next.
    pub fn fail(&self, why: Failure) {
        self.state().failure = Some(why);
        self.changed.notify_all();
    }

    /// The latest reading, and when it arrived; once the one at which the meter went back, if it
    /// did, which must not go by unseen.
    ///
    /// # Errors
    /// What went wrong since then.
    pub fn latest(&self) -> Result<(Instant, Line), String> {
        let mut state = self.state();
        let latest = state.went_back.take().or(state.latest);
        match (&state.failure, latest) {
            (Some(failure), _) => Err(failure.why().to_owned()),
            (None, Some(latest)) => Ok(latest),
            (None, None) => Err("the meter gave no reading".into()),
        }
    }

    /// Waits for the first `arrivals` readings, at most two; returns fewer when time is up.
    ///
    /// # Errors
    /// What went wrong meanwhile.
    pub fn wait_for(
        &self,
        arrivals: usize,
        at_most: Duration,
    ) -> Result<Vec<(Instant, Line)>, Failure> {
        let waits = |state: &mut State| state.first.len() < arrivals && state.failure.is_none();
        let waited = self.changed.wait_timeout_while(self.state(), at_most, waits);
        let (state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        match &state.failure {
            Some(why) => Err(why.clone()),
            None => Ok(state.first.clone()),
        }
    }

    /// Rests; false if it is time to end.
    pub fn rest(&self, time: Duration) -> bool {
        let waited = self.changed.wait_timeout_while(self.state(), time, |state| !state.stopped);
        !waited.unwrap_or_else(PoisonError::into_inner).0.stopped
    }

    /// Starts a command that is the leader of its group, or nothing if it is time to end.
    pub fn start<T>(&self, start: impl FnOnce() -> Option<(T, Pid)>) -> Option<T> {
        let mut state = self.state();
        let (started, group) = if state.stopped { None } else { start() }?;
        state.group = Some(group);
        Some(started)
    }

    /// Kills the command's group, if one runs. Its number is its own until the leader is reaped.
    pub fn kill(&self) {
        self.state().kill();
    }

    /// The same, and then reaps the leader: afterwards another process may have its number.
    pub fn end<T>(&self, reap: impl FnOnce() -> T) -> T {
        let mut state = self.state();
        state.kill();
        state.group = None;
        reap()
    }

    /// Ends everything.
    pub fn stop(&self) {
        let mut state = self.state();
        state.stopped = true;
        state.kill();
        self.changed.notify_all();
    }
}

impl State {
    fn kill(&self) {
        if let Some(group) = self.group {
            // One that is gone already is as good.
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

/// Closer than any meter prints on purpose.
const BURST: Duration = Duration::from_millis(20);
