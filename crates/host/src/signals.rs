//! Ctrl-C and its kin leave no partial output behind.

use std::fs::File;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use crate::lock::lock;
use crate::program;
use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process};
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGALRM, SIGHUP, SIGINT, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2};
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Signals, SignalsInfo};
use signal_hook::low_level::emulate_default_handler;
use signal_hook::low_level::siginfo::{Cause, Origin};

/// Starts a thread that, at SIGINT, SIGTERM or SIGHUP, removes every temporary file, puts the
/// terminal back and ends the program by that signal.
pub fn clean_up_when_ended() -> anyhow::Result<()> {
    when_ended(|| {})
}

/// As [`clean_up_when_ended`], and `clean_up` is called before.
pub fn clean_up_with(clean_up: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    when_ended(clean_up)
}

/// As [`clean_up_when_ended`], and `directory` is removed with all that is in it.
pub fn clean_up_and_remove(directory: PathBuf) -> anyhow::Result<()> {
    when_ended(move || {
        let _ = std::fs::remove_dir_all(directory);
    })
}

/// The state of the command that a program runs for its user, as the signal thread sees it.
#[derive(Default)]
pub struct Ward {
    state: Mutex<State>,
    started: Condvar,
    /// True if a signal came after its end.
    hurried: AtomicBool,
}

/// How far the command has come.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Before,
    /// It may run, and its number is not known yet.
    Starting,
    Running(Option<Pid>),
    Ended,
}

impl Ward {
    /// It is about to be started: signals wait until its number is known.
    pub fn starts(&self) {
        self.set(State::Starting);
    }

    /// It runs.
    pub fn is(&self, child: u32) {
        let child = i32::try_from(child).ok().and_then(Pid::from_raw);
        self.set(State::Running(child));
    }

    /// Notes that it has ended or could not be started: only the report is left.
    pub fn has_ended(&self) {
        self.set(State::Ended);
    }

    /// True if a signal asked the program to end while only its report is missing.
    pub fn is_hurried(&self) -> bool {
        self.hurried.load(Ordering::SeqCst)
    }

    fn set(&self, state: State) {
        *lock(&self.state) = state;
        self.started.notify_all();
    }

    /// The state, once the command is not about to start.
    fn state(&self) -> State {
        let state = lock(&self.state);
        let starts = |state: &mut State| *state == State::Starting;
        *self.started.wait_while(state, starts).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Starts a thread that keeps the program alive from the start of its child until its report is
/// written; before, a signal ends the program.
///
/// Ctrl-C reaches the child from the terminal, so it is not sent twice; what was sent to this
/// program alone is passed on. After the end of the child, USR1, USR2 and ALRM are dropped; the
/// others hurry the report.
pub fn leave_to_child() -> anyhow::Result<Arc<Ward>> {
    program::restore_core_limit();
    let ward = Arc::<Ward>::default();
    let ignored = ignored_signals();
    let wanted = [SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM];
    let watched = wanted.iter().filter(|n| ignored & (1 << (**n - 1)) == 0);
    let mut signals =
        SignalsInfo::<WithOrigin>::new(watched).context("cannot watch for signals")?;
    let heard = Arc::clone(&ward);
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for Origin { signal: number, cause, .. } in signals.forever() {
                let passed_on = match number {
                    SIGTERM => Some(Signal::TERM),
                    SIGHUP => Some(Signal::HUP),
                    SIGUSR1 => Some(Signal::USR1),
                    SIGUSR2 => Some(Signal::USR2),
                    SIGALRM => Some(Signal::ALARM),
                    // A process sent this to the program alone; the terminal's comes from the kernel.
                    SIGINT if matches!(cause, Cause::Sent(_)) => Some(Signal::INT),
                    SIGQUIT if matches!(cause, Cause::Sent(_)) => Some(Signal::QUIT),
                    _ => None,
                };
                match heard.state() {
                    State::Before | State::Starting => end_by(number),
                    State::Ended if matches!(number, SIGUSR1 | SIGUSR2 | SIGALRM) => {}
                    State::Ended => heard.hurried.store(true, Ordering::SeqCst),
                    State::Running(child) => {
                        if let Some((pid, signal)) = child.zip(passed_on) {
                            // It may be gone by now.
                            let _ = kill_process(pid, signal);
                        }
                    }
                }
            }
        })
        .context("cannot start a thread")?;
    Ok(ward)
}

fn when_ended(clean_up: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let terminal = terminal_state();
    // What the parent had ignored, as `nohup` does, stays ignored.
    let ignored = ignored_signals();
    let wanted = [SIGINT, SIGTERM, SIGHUP];
    let mut signals = Signals::new(wanted.iter().filter(|n| ignored & (1 << (**n - 1)) == 0))
        .context("cannot watch for signals")?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            if let Some(signal) = signals.forever().next() {
                wattlock_file::abandon_all();
                // The program ends, whatever becomes of it.
                let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(clean_up));
                if let Some((terminal, state)) = terminal {
                    // A passphrase prompt may have turned the echo off.
                    let _ = tcsetattr(&terminal, OptionalActions::Now, &state);
                }
                end_by(signal);
            }
        })
        .context("cannot start a thread")?;
    Ok(())
}

/// Ends the program by a signal that it caught, as its parent expects: a shell leaves its loop after
/// Ctrl-C only if the program in it was ended by SIGINT. An exit code of 128 + n, which a shell
/// reports of a program that was ended by signal n, would not do.
fn end_by(signal: i32) -> ! {
    // Linux ignores the signals that the first process of a container sends itself.
    if std::process::id() != 1 {
        // It does not return for a signal that ends programs.
        let _ = emulate_default_handler(signal);
    }
    std::process::exit(128 + signal)
}

/// Ends the program by SIGINT if that ended the command which it ran for its user: Ctrl-C was meant
/// for both.
pub fn end_if_interrupted(command: ExitStatus) {
    if command.signal() == Some(SIGINT) {
        end_by(SIGINT);
    }
}

/// Ends the program as a program ends that writes to a pipe nobody reads, once every temporary file
/// is gone.
pub(crate) fn end_by_closed_pipe() -> ! {
    wattlock_file::abandon_all();
    end_by(SIGPIPE)
}

/// The terminal that passphrases are asked on, if there is one, and how it is set.
fn terminal_state() -> Option<(File, Termios)> {
    let terminal = File::open("/dev/tty").ok()?;
    let state = tcgetattr(&terminal).ok()?;
    Some((terminal, state))
}

/// A bit for each signal that was ignored when the program started.
fn ignored_signals() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
