//! `wattlock measure`: runs a command as if nobody looked, and tells the joules that it took.

mod report;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use wait4::Wait4;
use wattlock_energy::{Idle, Sources, Window};
use wattlock_file::Shown;

use crate::args;
use crate::energy;
use crate::exit::{Ended, FAILURE, UNAVAILABLE};
use crate::metrics::Metrics;
use crate::signals;
use crate::summary::process_cpu_time;

/// What one run of the command took.
struct Run {
    status: ExitStatus,
    wall: Duration,
    cpu: Duration,
    /// CPU time of the measuring itself, while the command ran.
    own_cpu: Duration,
    window: Window,
}

/// How the command ended, when, and with what CPU time.
struct Done {
    status: ExitStatus,
    wall: Duration,
    cpu: Duration,
}

/// `wattlock measure`.
pub fn run(args: &args::Measure) -> Ended {
    Metrics::can_write(args.meters.prometheus.as_deref())?;
    let root = energy::root();
    let mut sources = energy::sources(&root, &args.meters)?;
    if args.require.is_some() && !sources.can_measure() {
        tell!("wattlock: joules cannot be measured here, so the command was not run");
        tell!("  `wattlock doctor` says why, and what would help");
        return Ok(UNAVAILABLE.into());
    }
    let child = signals::leave_to_child()?;
    let before = args.idle_baseline.map(|seconds| rest(&mut sources, seconds)).transpose()?;
    let mut runs = Vec::new();
    while runs.len() < usize::from(args.repeat) {
        match once(&args.command, &mut sources, &child)? {
            Ok(run) => runs.push(run),
            Err(error) => return Ok(say_not_started(&args.command[0], &error)),
        }
        if runs.last().is_some_and(|run| !run.status.success()) {
            break;
        }
    }
    let after = args.idle_baseline.map(|seconds| rest(&mut sources, seconds)).transpose()?;
    let idle = before.zip(after).map(|(before, after)| Idle::new(before, after));
    let report = report::Report::new(args, &root, &runs, idle.as_ref());
    tell!("{}", if args.json { report.json()? } else { report.text() });
    report.metrics().write(args.meters.prometheus.as_deref())?;
    let code = runs.last().map_or(FAILURE, |run| code(run.status));
    let void = args.require.is_some() && !runs.iter().all(|run| run.window.is_measured());
    if code == 0 && void {
        tell!("wattlock: the command succeeded, but its joules were not measured");
        return Ok(UNAVAILABLE.into());
    }
    Ok(code.into())
}

/// Looks at the machine while nothing is done.
fn rest(sources: &mut Sources, seconds: f64) -> anyhow::Result<Window> {
    let ((), window) = sources.measure(|| std::thread::sleep(Duration::from_secs_f64(seconds)))?;
    Ok(window)
}

/// Runs the command once under the meters; the inner error is that it could not be started.
fn once(
    command: &[OsString],
    sources: &mut Sources,
    child: &AtomicI32,
) -> anyhow::Result<std::io::Result<Run>> {
    let own_cpu = process_cpu_time();
    let (done, window) = sources.measure(|| to_its_end(command, child))?;
    let own_cpu = process_cpu_time().saturating_sub(own_cpu);
    let run = |Done { status, wall, cpu }| Run { status, wall, cpu, own_cpu, window };
    Ok(done?.map(run))
}

fn to_its_end(command: &[OsString], running: &AtomicI32) -> anyhow::Result<std::io::Result<Done>> {
    let started = Instant::now();
    let child = match Command::new(&command[0]).args(&command[1..]).spawn() {
        Ok(child) => child,
        Err(error) => return Ok(Err(error)),
    };
    running.store(i32::try_from(child.id()).unwrap_or(0), Ordering::SeqCst);
    let used = child.wait4();
    running.store(0, Ordering::SeqCst);
    let used = used.context("cannot wait for the command")?;
    let cpu = used.rusage.utime + used.rusage.stime;
    Ok(Ok(Done { status: used.status, wall: started.elapsed(), cpu }))
}

/// The codes of a shell.
fn say_not_started(program: &std::ffi::OsStr, error: &std::io::Error) -> ExitCode {
    tell!("wattlock: cannot run {}: {error}", Shown(Path::new(program)));
    if error.kind() == ErrorKind::NotFound { 127 } else { 126 }.into()
}

/// What a shell would say: the command's own code, or 128 + n for signal n.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILURE)
}
