//! `wattlock measure`: runs a command as if nobody looked, and tells the joules that it took.

mod report;

use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::sync::atomic::{AtomicI32, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use wait4::Wait4;
use wattlock_energy::{Energy, Load, Root, Sources, Tdp, Watts, Window, modelled};
use wattlock_file::Shown;

use crate::args;
use crate::exit::{Ended, FAILURE, UNAVAILABLE};
use crate::signals;

/// The variable that names another root than `/`.
const ROOT_VARIABLE: &str = "WATTLOCK_ROOT";

/// What one run of the command took.
struct Run {
    status: ExitStatus,
    wall: Duration,
    cpu: Duration,
    window: Window,
}

/// Where the sensors are read; said aloud if that is not this machine.
pub fn root() -> Root {
    let Some(path) = std::env::var_os(ROOT_VARIABLE).filter(|path| !path.is_empty()) else {
        return Root::default();
    };
    let root = Root::new(path);
    if let Some(path) = other(&root) {
        tell!(
            "wattlock: {ROOT_VARIABLE} is set: sensors are read below {}, NOT from this machine",
            Shown(path)
        );
    }
    root
}

/// The root, if it is not this machine's.
pub fn other(root: &Root) -> Option<&Path> {
    (*root != Root::default()).then(|| root.as_path())
}

/// `wattlock measure`.
pub fn run(args: &args::Measure) -> Ended {
    let root = root();
    let mut sources = Sources::open(&root);
    if args.require.is_some() && !sources.can_measure() {
        tell!("wattlock: joules cannot be measured here, so the command was not run");
        tell!("  `wattlock doctor` says why, and what would help");
        return Ok(UNAVAILABLE.into());
    }
    let child = signals::leave_to_child()?;
    let mut runs = Vec::new();
    while runs.len() < usize::from(args.repeat) {
        let (ran, window) = sources.measure(|| once(&args.command, &child))?;
        let (status, wall, cpu) = match ran? {
            Ok(ran) => ran,
            Err(error) => return Ok(say_not_started(&args.command[0], &error)),
        };
        runs.push(Run { status, wall, cpu, window });
        if !status.success() {
            break;
        }
    }
    let report = report::Report::new(args, &root, &runs);
    tell!("{}", if args.json { report.json()? } else { report.text() });
    let code = runs.last().map_or(FAILURE, |run| code(run.status));
    let void = args.require.is_some() && !runs.iter().all(|run| run.window.is_measured());
    if code == 0 && void {
        tell!("wattlock: the command succeeded, but its joules were not measured");
        return Ok(UNAVAILABLE.into());
    }
    Ok(code.into())
}

/// Runs the command once; the inner error is that it could not be started.
fn once(
    command: &[std::ffi::OsString],
    running: &AtomicI32,
) -> anyhow::Result<std::io::Result<(ExitStatus, Duration, Duration)>> {
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
    Ok(Ok((used.status, started.elapsed(), cpu)))
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

impl Run {
    /// What the models say of it: all CPUs, busy for as long as the command kept them busy.
    fn modelled(&self, tdp: Option<f64>) -> Energy {
        let cpus = args::threads(None);
        let possible = self.wall.as_secs_f64() * cpus as f64;
        let utilisation = self.cpu.as_secs_f64() / possible.max(f64::MIN_POSITIVE);
        let tdp = tdp.map_or(Tdp::Assumed, |watts| Tdp::Given(Watts(watts)));
        modelled(Load { wall: self.wall, utilisation, clock: 1.0 }, tdp)
    }
}
