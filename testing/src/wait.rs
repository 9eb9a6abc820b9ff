//! Waits for events.

use std::thread;
use std::time::{Duration, Instant};

/// Waits until `condition` holds, and looks every two milliseconds.
///
/// # Panics
/// If it does not hold within a minute, which no machine that works needs.
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let start = Instant::now();
    while !condition() {
        assert!(start.elapsed() < DEADLINE, "waited {DEADLINE:?} in vain until {what}");
        thread::sleep(Duration::from_millis(2));
    }
}

const DEADLINE: Duration = Duration::from_secs(60);
