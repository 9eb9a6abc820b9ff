//! Runs a program to its end and returns its cost.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use wait4::Wait4;

/// What one run of a program cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cost {
    /// From before it was started to after it was reaped.
    pub wall: Duration,
    /// User and system time.
    pub cpu: Duration,
    /// Largest resident set; for many runs, that of the largest.
    pub peak_rss_bytes: u64,
}

impl Cost {
    /// The cost of one run after the other.
    pub fn then(self, next: Self) -> Self {
        Self {
            wall: self.wall + next.wall,
            cpu: self.cpu + next.cpu,
            peak_rss_bytes: self.peak_rss_bytes.max(next.peak_rss_bytes),
        }
    }
}

/// Runs `command`; its output is thrown away unless it fails.
pub fn run(command: &mut Command) -> anyhow::Result<Cost> {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let name = command.get_program().to_string_lossy().into_owned();
    let started = Instant::now();
    let mut child = command.spawn().with_context(|| format!("cannot start {name}"))?;
    // Read to the end before waiting, so that a talkative program is not stopped by a full pipe.
    let mut said = String::new();
    if let Some(mut stderr) = child.stderr.take() {
        let _ = std::io::Read::read_to_string(&mut stderr, &mut said);
    }
    let used = child.wait4().with_context(|| format!("cannot wait for {name}"))?;
    let wall = started.elapsed();
    if !used.status.success() {
        bail!("{name} failed: {}", said.trim());
    }
    let cpu = used.rusage.utime + used.rusage.stime;
    Ok(Cost { wall, cpu, peak_rss_bytes: used.rusage.maxrss })
}
