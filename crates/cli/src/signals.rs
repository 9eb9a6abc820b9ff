//! Ctrl-C and its kin leave no partial output behind.

use std::fs::File;
use std::path::PathBuf;

use rustix::termios::{OptionalActions, Termios, tcgetattr, tcsetattr};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Starts a thread that ends the program with 128 + n at signal n, once every temporary file is
/// gone and the terminal is as it was.
pub fn clean_up_when_ended() -> std::io::Result<()> {
    when_ended(|| {})
}

/// As [`clean_up_when_ended`], and `directory` is removed with all that is in it.
pub fn clean_up_and_remove(directory: PathBuf) -> std::io::Result<()> {
    when_ended(move || {
        let _ = std::fs::remove_dir_all(directory);
    })
}

fn when_ended(clean_up: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    let terminal = terminal_state();
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Some(signal) = signals.forever().next() {
            wattlock_file::abandon_all();
            clean_up();
            if let Some((terminal, state)) = terminal {
                // A passphrase prompt may have turned the echo off.
                let _ = tcsetattr(&terminal, OptionalActions::Now, &state);
            }
            std::process::exit(128 + signal);
        }
    })?;
    Ok(())
}

/// The terminal that passphrases are asked on, if there is one, and how it is set.
fn terminal_state() -> Option<(File, Termios)> {
    let terminal = File::open("/dev/tty").ok()?;
    let state = tcgetattr(&terminal).ok()?;
    Some((terminal, state))
}
