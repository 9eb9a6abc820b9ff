//! `wattlock measure`: runs a command unchanged, and reports the joules that it took.

mod report;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, ExitCode, ExitStatus};
use std::time::{Duration, Instant, SystemTime};

use anyhow::Context;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::FileType;
use wait4::Wait4;
use wattlock_energy::{Idle, Metered, Sources};
use wattlock_file::Shown;
use wattlock_host::energy;
use wattlock_host::exit::{Ended, FAILURE, UNAVAILABLE, usage};
use wattlock_host::metrics::Metrics;
use wattlock_host::signals::{self, Ward};
use wattlock_host::summary::process_cpu_time;

use crate::args;

/// What one run of the command took.
struct Run {
    status: ExitStatus,
    wall: Duration,
    cpu: Duration,
    /// CPU time of the measuring itself, while the command ran.
    own_cpu: Duration,
    window: Metered,
}

/// How the command ended, when, and with what CPU time.
struct Done {
    status: ExitStatus,
    wall: Duration,
    cpu: Duration,
}

/// `wattlock measure`.
pub fn run(args: &args::Measure) -> Ended {
    check_command(args)?;
    Metrics::can_write(args.meters.prometheus.as_deref())?;
    if args.repeat > 1 {
        check_input(args.repeat)?;
    }
    let root = energy::root();
    let mut sources = energy::sources(&root, &args.meters)?;
    if args.require.is_some() && !sources.can_measure() {
        say_not_measured(&mut sources, args.meters.meter.is_some());
        return Ok(UNAVAILABLE.into());
    }
    let ward = signals::leave_to_child()?;
    let before =
        args.idle_baseline.map(|seconds| rest(&mut sources, seconds, &ward)).transpose()?;
    let started = SystemTime::now();
    let mut runs = Vec::new();
    while runs.len() < usize::from(args.repeat) {
        match once(&args.command, &mut sources, &ward)? {
            Ok(run) => runs.push(run),
            Err(error) => return Ok(say_not_started(&args.command[0], &error)),
        }
        if ward.is_hurried() || runs.last().is_some_and(|run| !run.status.success()) {
            break;
        }
    }
    let after = args.idle_baseline.map(|seconds| rest(&mut sources, seconds, &ward)).transpose()?;
    let idle = before.zip(after).map(|(before, after)| Idle::new(before, after));
    let report = report::Report::new(args, &root, started, &runs, idle.as_ref());
    let code = runs.last().map_or(FAILURE, |run| code(run.status));
    if args.json {
        // The command may have left a line unfinished.
        tell!("\n{}", report.json()?);
    } else {
        tell!("{}", report.text());
    }
    if let Err(error) = report.metrics().write(args.meters.prometheus.as_deref()) {
        say!("{error:#}");
        return Ok(if code == 0 { FAILURE } else { code }.into());
    }
    let void = args.require.is_some() && !runs.iter().all(|run| run.window.is_measured());
    if code == 0 && void {
        say!("the command succeeded, but its energy was not measured");
        return Ok(UNAVAILABLE.into());
    }
    if let Some(run) = runs.last() {
        signals::end_if_interrupted(run.status);
    }
    Ok(code.into())
}

/// Why `--require measured` cannot be kept. What only reports power works without it.
fn say_not_measured(sources: &mut Sources, external: bool) {
    if !sources.can_integrate() {
        say!("energy cannot be measured on this machine; the command was not run");
        tell!("  `wattlock doctor` shows why, and what helps");
        return;
    }
    let what = if external { "the meter reports" } else { "sensors of this machine report" };
    say!(
        "{what} power (class integrated), but --require measured needs a counter of energy; the \
         command was not run"
    );
    let meter = if external { "use a meter that reports joules or kWh, or " } else { "" };
    tell!("  {meter}leave out --require measured");
}

/// Refuses a number in the place of the command, which `--idle-baseline 10` puts there.
///
/// A program with such a name runs by its path, or after `--idle-baseline=SECONDS`.
fn check_command(args: &args::Measure) -> anyhow::Result<()> {
    let first = args.command[0].to_string_lossy();
    let number = first.trim_end_matches('s').parse::<f64>();
    if args.idle_baseline == Some(args::Measure::IDLE_SECONDS) && number.is_ok() {
        return Err(usage(format!(
            "{first} stands where the command is expected; the seconds of --idle-baseline follow \
             an equals sign: --idle-baseline={first} -- COMMAND"
        )));
    }
    Ok(())
}

/// Refuses a standard input that the first run would leave nothing of for the others.
///
/// A terminal and `/dev/null` can be read again, and so can a file, a pipe and a socket that hold
/// nothing and never will.
fn check_input(runs: u16) -> anyhow::Result<()> {
    let input = std::io::stdin();
    let Ok(status) = rustix::fs::fstat(&input) else { return Ok(()) };
    let kind = match FileType::from_raw_mode(status.st_mode) {
        FileType::RegularFile => {
            let at = rustix::fs::tell(&input).unwrap_or(0);
            if at >= u64::try_from(status.st_size).unwrap_or(0) {
                return Ok(());
            }
            "a file"
        }
        FileType::Fifo | FileType::Socket => {
            let mut looks = [PollFd::new(&input, PollFlags::IN)];
            let looked = poll(&mut looks, Some(&Timespec::default()));
            let seen = looks[0].revents();
            // The writer closed the pipe and left nothing.
            if looked.is_ok() && seen.contains(PollFlags::HUP) && !seen.contains(PollFlags::IN) {
                return Ok(());
            }
            "a pipe or a socket"
        }
        _ => return Ok(()),
    };
    Err(usage(format!(
        "--repeat {runs}: standard input is {kind}, and only the first run could read it\n  add \
         `</dev/null` if the command reads nothing, or let each run open its input: \
         `-- sh -c 'command <file'`"
    )))
}

/// Measures the idle machine, until a signal hurries the report.
fn rest(sources: &mut Sources, seconds: f64, ward: &Ward) -> anyhow::Result<Metered> {
    let end = Instant::now() + Duration::from_secs_f64(seconds);
    let wait = || {
        while !ward.is_hurried() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
    };
    let ((), window) = sources.measure_until(wait, &|| ward.is_hurried())?;
    Ok(window)
}

/// Runs the command once under the meters; the inner error is that it could not be started.
fn once(
    command: &[OsString],
    sources: &mut Sources,
    ward: &Ward,
) -> anyhow::Result<std::io::Result<Run>> {
    let own_cpu = process_cpu_time();
    let (done, window) =
        sources.measure_until(|| to_its_end(command, ward), &|| ward.is_hurried())?;
    let own_cpu = process_cpu_time().saturating_sub(own_cpu);
    let run = |Done { status, wall, cpu }| Run { status, wall, cpu, own_cpu, window };
    Ok(done?.map(run))
}

fn to_its_end(command: &[OsString], ward: &Ward) -> anyhow::Result<std::io::Result<Done>> {
    let started = Instant::now();
    ward.starts();
    let child = match Command::new(&command[0]).args(&command[1..]).spawn() {
        Ok(child) => child,
        Err(error) => {
            ward.has_ended();
            return Ok(Err(error));
        }
    };
    ward.is(child.id());
    let used = child.wait4();
    ward.has_ended();
    let used = used.context("cannot wait for the command")?;
    let cpu = used.rusage.utime + used.rusage.stime;
    Ok(Ok(Done { status: used.status, wall: started.elapsed(), cpu }))
}

/// The codes of a shell.
fn say_not_started(program: &std::ffi::OsStr, error: &std::io::Error) -> ExitCode {
    say!("cannot run {}: {error}", Shown(Path::new(program)));
    if error.kind() == ErrorKind::NotFound { 127 } else { 126 }.into()
}

/// What a shell would say: the command's own code, or 128 + n for signal n.
fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILURE)
}
