//! A bar with rate and time left, on a terminal and nowhere else.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wattlock_file::Progress;

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

fn draw(progress: &Progress, stop: &AtomicBool) {
    let wait = || std::thread::park_timeout(Duration::from_millis(100));
    // What is over in a blink needs no bar.
    wait();
    if stop.load(Ordering::Relaxed) {
        return;
    }
    let expected = progress.expected();
    let bar = ProgressBar::with_draw_target(
        (expected > 0).then_some(expected),
        ProgressDrawTarget::stderr_with_hz(10),
    );
    let template = match expected {
        0 => "  {bytes}  {binary_bytes_per_sec}",
        _ => "  {bar:30} {bytes} of {total_bytes}  {binary_bytes_per_sec}  {eta} left",
    };
    if let Ok(style) = ProgressStyle::with_template(template) {
        bar.set_style(style.progress_chars("=> "));
    }
    while !stop.load(Ordering::Relaxed) {
        bar.set_position(progress.done());
        wait();
    }
    bar.finish_and_clear();
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
