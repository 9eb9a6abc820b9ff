//! Drivers of GPUs, each loaded in a child process before it is loaded here: a library that aborts,
//! as PoCL does where it cannot read `/sys`, ends the child and not this program.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use wattlock_energy::STATIC;
use wattlock_gpu::{Offer, RUNTIMES, Runtime, exit_now};

use crate::exit::usage;

/// The arguments with which a program starts itself to load a driver; the runtime's name follows.
const ARGUMENTS: [&str; 2] = ["devices", "--load-driver"];

/// Loads a driver and ends, if this process was started for that. Call it first in `main`.
pub fn run_if_asked() -> Option<ExitCode> {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    let (name, asked) = args.split_last()?;
    if !asked.iter().eq(ARGUMENTS.iter().map(OsStr::new)) {
        return None;
    }
    if let Some(runtime) = RUNTIMES.iter().find(|runtime| name == runtime.name) {
        // Why it has no device is said by the program that asks it again.
        runtime.list().ok();
    }
    // A driver may also fail at the end of the process, which says nothing of its use.
    exit_now(0)
}

/// The devices of a runtime.
///
/// # Errors
/// Why there are none, in words: its library ends processes that load it, or what it says itself.
pub(crate) fn list(runtime: &Runtime) -> Result<Vec<Offer>, String> {
    check(runtime)?;
    runtime.list().map_err(|why| why.to_string())
}

/// Checks once in this process that a runtime's library can be loaded, and says if it cannot.
///
/// # Errors
/// That the child which loaded it was ended by a signal.
pub(crate) fn check(runtime: &Runtime) -> Result<(), String> {
    static CHECKED: Mutex<BTreeMap<&str, Result<(), String>>> = Mutex::new(BTreeMap::new());
    // What is in it is whole, whoever panicked.
    let mut checked = CHECKED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let result = checked.entry(runtime.name).or_insert_with(|| {
        let result = load_in_child(runtime);
        if let Err(why) = &result {
            say!("{} is left out: {why}; update or remove the driver", runtime.title);
        }
        result
    });
    result.clone()
}

/// The variable that limits how long a GPU may be silent.
const TIMEOUT_VARIABLE: &str = "WATTLOCK_DEVICE_TIMEOUT";

/// How long a GPU may be silent, if the environment says it.
pub(crate) fn timeout() -> anyhow::Result<Option<Duration>> {
    let Some(text) = std::env::var_os(TIMEOUT_VARIABLE).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let seconds = text.to_str().and_then(|text| text.parse().ok());
    match seconds {
        Some(seconds @ 1..=86_400) => Ok(Some(Duration::from_secs(seconds))),
        _ => Err(usage(format!("{TIMEOUT_VARIABLE} must be a number of seconds from 1 to 86400"))),
    }
}

fn load_in_child(runtime: &Runtime) -> Result<(), String> {
    if STATIC {
        return Ok(());
    }
    let started = std::env::current_exe().and_then(|program| {
        let mut command = Command::new(program);
        command.args(ARGUMENTS).arg(runtime.name);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()
    });
    // Without a child nothing is known against the library.
    let Ok(mut child) = started else { return Ok(()) };
    let status = ended(&mut child).ok().flatten();
    if status.is_none() {
        // What hangs has a time limit in this process, too. One that hangs in the kernel does not end at all.
        child.kill().and_then(|()| ended(&mut child)).ok();
    }
    match status.and_then(|status| status.signal()) {
        Some(signal) => Err(format!(
            "{} ended the process that loaded it, with signal {signal}",
            runtime.library
        )),
        None => Ok(()),
    }
}

/// How a child ended; `None` if it has not in time.
fn ended(child: &mut Child) -> std::io::Result<Option<ExitStatus>> {
    let deadline = Instant::now() + timeout().ok().flatten().unwrap_or(PATIENCE);
    loop {
        let status = child.try_wait()?;
        if status.is_some() || Instant::now() > deadline {
            return Ok(status);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// How long a library may take to abort, on a machine that has much else to do.
const PATIENCE: Duration = Duration::from_secs(10);
