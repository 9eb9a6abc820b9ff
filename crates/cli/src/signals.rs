//! Ctrl-C and its kin leave no partial output behind.

use std::fs::File;
use std::path::PathBuf;

use anyhow::Context;
use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Starts a thread that ends the program with 128 + n at signal n, once every temporary file is
/// gone and the terminal is as it was.
pub fn clean_up_when_ended() -> anyhow::Result<()> {
    when_ended(|| {})
}

/// As [`clean_up_when_ended`], and `directory` is removed with all that is in it.
pub fn clean_up_and_remove(directory: PathBuf) -> anyhow::Result<()> {
    when_ended(move || {
        let _ = std::fs::remove_dir_all(directory);
    })
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
                clean_up();
                if let Some((terminal, state)) = terminal {
                    // A passphrase prompt may have turned the echo off.
                    let _ = tcsetattr(&terminal, OptionalActions::Now, &state);
                }
                std::process::exit(128 + signal);
            }
        })
        .context("cannot start a thread")?;
    Ok(())
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
