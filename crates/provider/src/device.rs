//! Which device is the accelerator, and how a real one is opened in the process of a server.
//!
//! A driver may compile for seconds, so that a thread of its own opens the device while requests
//! are the CPU's. It starts threads, which must not take the server's signals, and it does not
//! survive a fork, so that a process whose parent had one gets none.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use wattlock_engine::{Device, Fault, Simulated};
use wattlock_gpu::{Named, Opened, Opening};

use crate::error::Error;
use crate::statistics;

/// The accelerator that the settings name.
#[derive(Clone)]
pub(crate) enum Wanted {
    /// A model.
    Simulated(Simulated),
    /// A device with a driver, which does ciphers of the engine's and nothing else.
    Real(Named),
}

impl Wanted {
    /// Reads the setting `accelerator`; `None` for none.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Error> {
        if text == "none" {
            return Ok(None);
        }
        // A colon with nothing behind it is none.
        let text = text.trim_end().trim_end_matches(':');
        let (kind, model) = text.split_once(':').unwrap_or((text, ""));
        Ok(Some(if kind == Simulated::NAME {
            Self::Simulated(model.trim().parse().map_err(|_| Error::Accelerator)?)
        } else {
            Self::Real(Named::parse(text).ok_or(Error::Accelerator)?)
        }))
    }

    /// What it is called before it is open.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Simulated(_) => Simulated::NAME,
            Self::Real(named) => named.runtime.name,
        }
    }

    /// True for a device with a driver.
    pub(crate) fn is_real(&self) -> bool {
        !matches!(self, Self::Simulated(_))
    }

    /// Opens it, lets `see` have a look at it, and notes what it is. A real one is opened by a
    /// thread that does nothing else.
    pub(crate) fn open(
        &self,
        see: impl FnOnce(&dyn Device) -> Result<(), Fault>,
    ) -> Result<Box<dyn Device>, Fault> {
        let named = match self {
            Self::Simulated(model) => return model.open(),
            Self::Real(named) => named,
        };
        own_drivers()?;
        take_no_signals();
        let offer = named.choose()?;
        if offer.starts_programs && !can_compile() {
            return Err(Fault(NO_COMPILER.to_owned()));
        }
        let by = if offer.is_cpu { " on the CPU" } else { "" };
        let id = offer.id.clone();
        // Who finds it busy waits in the engine's queue.
        let how = Opening { verify: true, timeout: None, small_jobs: true };
        let Opened { device, product, .. } = offer.open(how)?;
        see(&*device)?;
        statistics::note_device(&format!("{id}{by}: {product}"));
        Ok(device)
    }
}

/// PoCL starts a linker, and ends the process if that fails: where there is none, as in nginx, which
/// takes `PATH` from its workers, or where the server waits for the children of its libraries, too,
/// unless PoCL finds all in the folder that it is told of.
fn can_compile() -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let links = std::env::split_paths(&path).any(|folder| folder.join("ld").exists());
    links && (!waits_for_children() || std::env::var_os("POCL_CACHE_DIR").is_some())
}

/// True if the process has a handler for the end of its children.
fn waits_for_children() -> bool {
    // SAFETY: all zeros are an action.
    let mut action = unsafe { std::mem::zeroed::<libc::sigaction>() };
    // SAFETY: a place for an action; nothing is set.
    unsafe { libc::sigaction(libc::SIGCHLD, std::ptr::null(), &raw mut action) };
    action.sa_sigaction != libc::SIG_DFL
}

/// The process that has, or had, a driver.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Fails in a child of a process that had a driver.
fn own_drivers() -> Result<(), Fault> {
    let here = process::id();
    match OWNER.compare_exchange(0, here, Ordering::Relaxed, Ordering::Relaxed) {
        Err(owner) if owner != here => Err(Fault(FORKED.to_owned())),
        _ => Ok(()),
    }
}

/// Keeps signals from this thread and all that it starts: a server expects them where it waits.
fn take_no_signals() {
    // SAFETY: all zeros are a set of signals.
    let mut all = unsafe { std::mem::zeroed::<libc::sigset_t>() };
    // SAFETY: a place for a set.
    unsafe { libc::sigfillset(&raw mut all) };
    // SAFETY: a set, and nobody asks for the one before.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, std::ptr::null_mut()) };
}

const NO_COMPILER: &str = "PoCL cannot compile in this process: it needs PATH with ld in it, and in a server that waits for \
     children POCL_CACHE_DIR with what another process has compiled";

const FORKED: &str = "a driver was opened before this process was forked, and does not work in it: raise the \
     threshold above what the parent has to do";

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_setting_names_one_device() {
        assert!(Wanted::parse("none").unwrap().is_none());
        for (text, expected) in [
            ("simulated", Simulated::default()),
            ("simulated:", Simulated::default()),
            ("simulated:rate=1e9", "rate=1e9".parse().unwrap()),
        ] {
            let wanted = Wanted::parse(text).unwrap().unwrap();
            assert!(matches!(wanted, Wanted::Simulated(model) if model == expected), "{text}");
        }
        for (text, expected) in [
            ("opencl", "opencl"),
            ("opencl:", "opencl"),
            ("opencl: pthread ", "opencl:pthread"),
            ("cuda", "cuda"),
            ("cuda:3", "cuda:3"),
        ] {
            let wanted = Wanted::parse(text).unwrap().unwrap();
            let Wanted::Real(named) = wanted else { panic!("{text} is a model") };
            assert_eq!(named.to_string(), expected);
        }
        for text in ["", "gpu", "cuda:x", "cuda:-1", "none:1", "simulated:speed=1", "opencl,0"] {
            assert_eq!(Wanted::parse(text).err(), Some(Error::Accelerator), "{text}");
        }
    }

    #[test]
    fn a_child_of_a_process_with_a_driver_gets_none() {
        let before = OWNER.swap(process::id() + 1, Ordering::Relaxed);
        let refused = Wanted::parse("cuda").unwrap().unwrap().open(|_| Ok(())).err().unwrap();
        assert!(refused.0.contains("before this process was forked"), "{refused}");
        OWNER.store(before, Ordering::Relaxed);
    }
}
