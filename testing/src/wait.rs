//! Waits for events.

use std::fmt::Display;
use std::process::{Child, ExitStatus};
use std::thread;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};

/// Waits until `condition` holds.
///
/// # Panics
/// If it does not hold within two minutes, which no machine that works needs.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    wait_for(|| if condition() { Ok(()) } else { Err(what) });
}

/// Waits until `look` finds something, and returns it. Until then `look` returns what is awaited.
///
/// It looks often at first, and every 20 milliseconds later on.
///
/// # Panics
/// If nothing is found within two minutes; the message is what `look` returned last.
#[track_caller]
pub fn wait_for<T, E: Display>(mut look: impl FnMut() -> Result<T, E>) -> T {
    let start = Instant::now();
    let mut pause = Duration::from_millis(1);
    loop {
        match look() {
            Ok(found) => return found,
            Err(what) => assert!(start.elapsed() < DEADLINE, "waited {DEADLINE:?} in vain: {what}"),
        }
        thread::sleep(pause);
        pause = LONGEST_PAUSE.min(pause + Duration::from_millis(1));
    }
}

/// Waits for the end of a process, no longer than `deadline`; `None` if it still runs then.
///
/// # Panics
/// If the kernel cannot report its state.
pub fn exits_within(child: &mut Child, deadline: Duration) -> Option<ExitStatus> {
    if let Some(status) = child.try_wait().expect("a child can be waited for") {
        return Some(status);
    }
    let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).expect("it runs");
    is_ready_within(&process, deadline);
    child.try_wait().expect("a child can be waited for")
}

/// Waits until something can be read from `file`; false if that takes longer than `deadline`.
pub(crate) fn is_ready_within(file: impl std::os::fd::AsFd, deadline: Duration) -> bool {
    let end = Instant::now() + deadline;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).expect("a test waits no hundred years");
        match poll(&mut [PollFd::new(&file, PollFlags::IN)], Some(&left)) {
            Ok(ready) => return ready > 0,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("waiting for a file: {error}"),
        }
    }
}

pub(crate) const DEADLINE: Duration = Duration::from_secs(120);
const LONGEST_PAUSE: Duration = Duration::from_millis(20);
