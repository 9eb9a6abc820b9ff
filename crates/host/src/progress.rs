//! A bar with rate and time left, on a terminal and nowhere else.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wattlock_file::Progress;

use crate::lock::lock;

/// Shows a [`Progress`] until it is dropped.
pub struct Shown {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

/// Shows `progress` on standard error, if that is a terminal and `quiet` is false.
pub fn show(progress: &Arc<Progress>, quiet: bool) -> Shown {
    let stop = Arc::new(AtomicBool::new(false));
    let thread = (!quiet && std::io::stderr().is_terminal()).then(|| {
        let (progress, stop) = (Arc::clone(progress), Arc::clone(&stop));
        std::thread::spawn(move || draw(&progress, &stop))
    });
    Shown { stop, thread }
}

/// Draws until it is stopped.
fn draw(progress: &Progress, stop: &AtomicBool) {
    let started = Instant::now();
    let wait = || std::thread::park_timeout(Duration::from_millis(100));
    // What is over in a blink needs no bar.
    wait();
    while !stop.load(Ordering::Relaxed) {
        lock(&LINE).draw(progress, started);
        wait();
    }
    lock(&LINE).clear();
}

/// The last line of the terminal, which the bar shares with questions to the user and messages.
static LINE: Mutex<Line> = Mutex::new(Line { bar: None, has_question: false });

/// Held while a question is on the terminal: two would share one answer.
static ASKING: Mutex<()> = Mutex::new(());

struct Line {
    /// The bar that is on the terminal.
    bar: Option<ProgressBar>,
    /// True while there is a question, and no bar.
    has_question: bool,
}

impl Line {
    fn draw(&mut self, progress: &Progress, started: Instant) {
        if !self.has_question {
            let bar = || bar(progress.expected(), progress.done(), started.elapsed());
            self.bar.get_or_insert_with(bar).set_position(progress.done());
        }
    }

    fn clear(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A bar of `done` of the `expected` bytes, whose number is not known if it is 0.
fn bar(expected: u64, done: u64, elapsed: Duration) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(
        (expected > 0).then_some(expected),
        ProgressDrawTarget::stderr_with_hz(10),
    );
    let template = match expected {
        0 => "  {bytes}  {binary_bytes_per_sec}",
        _ => "  {bar:30} {bytes} of {total_bytes}  {binary_bytes_per_sec}  {eta} left",
    };
    let bar = bar.with_position(done).with_elapsed(elapsed);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// A question to the user on the terminal. Until it is dropped no bar is drawn, which would wipe
/// the question and what the user has typed, and no other question is asked.
#[must_use = "the bar returns when it is dropped"]
pub struct Question {
    _only: MutexGuard<'static, ()>,
}

impl Question {
    /// Waits until no other question is asked, and clears the bar. Call it before the question is
    /// written, and not while this thread has a question.
    #[expect(clippy::new_without_default, reason = "it changes the terminal")]
    pub fn new() -> Self {
        let only = lock(&ASKING);
        let mut line = lock(&LINE);
        line.has_question = true;
        line.clear();
        Self { _only: only }
    }
}

impl Drop for Question {
    fn drop(&mut self) {
        lock(&LINE).has_question = false;
    }
}

/// Writes whole lines to standard error: above the bar, which is drawn again below them.
pub(crate) fn write_above_bar(lines: &[u8]) {
    let mut line = lock(&LINE);
    line.clear();
    // A closed standard error is no failure: the exit code shows the result.
    let _ = std::io::stderr().write_all(lines);
}
