//! A status line on a terminal.

use std::io::IsTerminal;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use wattlock_stream::Stats;
use wattlock_stream::gateway::Counters;

use super::joules::Joules;

/// The line.
pub struct Line(Option<ProgressBar>);

impl Line {
    /// A line, if it is wanted, there is a terminal, and nothing else is written to it.
    pub fn new(wanted: bool) -> Self {
        let to_terminal = std::io::stderr().is_terminal() && !std::io::stdout().is_terminal();
        let shown = wanted && to_terminal;
        Self(shown.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(5));
            if let Ok(style) = ProgressStyle::with_template("{msg}") {
                bar.set_style(style);
            }
            bar
        }))
    }

    /// True if there is one.
    pub fn is_shown(&self) -> bool {
        self.0.is_some()
    }

    /// Draws it anew.
    pub fn draw(&self, stats: &Stats, counters: &Counters, joules: &Joules, velocity: f64) {
        if let Some(bar) = &self.0 {
            bar.set_message(text(stats, counters, joules, velocity));
            bar.tick();
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

fn text(stats: &Stats, counters: &Counters, joules: &Joules, velocity: f64) -> String {
    let used = stats.in_use.buffered + stats.in_use.in_flight;
    let share = (used as f64 / stats.window as f64 * 10.0).round() as usize;
    let bar: String = (0..10).map(|tenth| if tenth < share { '=' } else { ' ' }).collect();
    let open = counters.open.load(std::sync::atomic::Ordering::Relaxed);
    let watts = joules.watts().map_or_else(|| "watts unknown".into(), |watts| watts.to_string());
    format!(
        "window [{bar}] {}  {}/s  {} in all  {}  p99 {:.1} ms  {open} open  {watts}",
        HumanBytes(used),
        HumanBytes(velocity as u64),
        HumanBytes(stats.bytes),
        stats.rung_name,
        stats.delays.quantile(0.99).as_secs_f64() * 1e3,
    )
}
