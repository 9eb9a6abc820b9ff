//! Which device is the accelerator, and how a real one is opened in the process of a server.
//!
//! A driver may compile for seconds, so that a thread of its own opens the device while requests
//! are the CPU's. It starts threads, which must not take the server's signals, and it does not
//! survive a fork, so that a process whose parent had one gets none.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use wattlock_engine::{Device, Fault, Simulated};
use wattlock_gpu::cuda::{self, Cuda};
use wattlock_gpu::opencl::{self, Kind, OpenCl};

use crate::error::Error;
use crate::statistics;

/// The accelerator that the settings name.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wanted {
    /// A model.
    Simulated(Simulated),
    /// The device of that number, or with that in its name; the first that is no CPU.
    OpenCl(Option<String>),
    /// `cuda` or `cuda:` and a number.
    Cuda(String),
}

impl Wanted {
    /// Reads the setting `accelerator`; `None` for none.
    pub(crate) fn parse(text: &str) -> Result<Option<Self>, Error> {
        let (kind, which) = match text.split_once(':') {
            Some((kind, which)) => (kind, Some(which.trim()).filter(|which| !which.is_empty())),
            None => (text, None),
        };
        match (kind, which) {
            ("none", None) => Ok(None),
            (Simulated::NAME, model) => {
                let model = model.unwrap_or_default().parse().map_err(|_| Error::Accelerator)?;
                Ok(Some(Self::Simulated(model)))
            }
            ("opencl", which) => Ok(Some(Self::OpenCl(which.map(str::to_owned)))),
            ("cuda", None) => Ok(Some(Self::Cuda("cuda:0".to_owned()))),
            ("cuda", Some(number)) if number.parse::<usize>().is_ok() => {
                Ok(Some(Self::Cuda(format!("cuda:{number}"))))
            }
            _ => Err(Error::Accelerator),
        }
    }

    /// What it is called before it is open.
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Simulated(_) => Simulated::NAME,
            Self::OpenCl(_) => "opencl",
            Self::Cuda(_) => "cuda",
        }
    }

    /// True for a device with a driver, which does ciphers of the engine's and nothing else.
    pub(crate) fn is_real(&self) -> bool {
        !matches!(self, Self::Simulated(_))
    }

    /// Opens it, lets `see` have a look at it, and notes what it is. A real one is opened by a
    /// thread that does nothing else.
    pub(crate) fn open(
        &self,
        see: impl FnOnce(&dyn Device) -> Result<(), Fault>,
    ) -> Result<Box<dyn Device>, Fault> {
        if let Self::Simulated(model) = self {
            return model.open();
        }
        own_drivers()?;
        take_no_signals();
        let (device, name) = match self {
            Self::OpenCl(which) => open_opencl(which.as_deref()),
            Self::Cuda(name) => open_cuda(name),
            Self::Simulated(_) => return Err(Fault("it is a model".into())),
        }?;
        see(&*device)?;
        statistics::note_device(&name);
        Ok(device)
    }
}

fn open_opencl(which: Option<&str>) -> Result<(Box<dyn Device>, String), Fault> {
    let fault = |error: opencl::Error| Fault(error.to_string());
    let listed = opencl::devices().map_err(fault)?;
    let chosen = opencl::choose(&listed, which).map_err(fault)?;
    if chosen.platform.contains(POCL) && !can_compile() {
        return Err(Fault(NO_COMPILER.to_owned()));
    }
    // It works on one request at a time, and who finds it busy waits in the scheduler's queue.
    let options = opencl::Options { slots: 1, ..opencl::Options::default() };
    let device = OpenCl::open(chosen, options).map_err(fault)?;
    let kind = if chosen.kind == Kind::Cpu { "opencl on the CPU" } else { "opencl" };
    Ok((Box::new(device), format!("{kind}: {}", chosen.name)))
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

fn open_cuda(name: &str) -> Result<(Box<dyn Device>, String), Fault> {
    let device = Cuda::open(name, cuda::Options::default());
    let device = device.map_err(|error| Fault(error.to_string()))?;
    let name = format!("{name}: {}", device.info().name);
    Ok((Box::new(device), name))
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

/// What PoCL calls itself.
const POCL: &str = "Portable Computing Language";

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
        let wanted = |text| Wanted::parse(text).unwrap();
        assert_eq!(wanted("none"), None);
        assert_eq!(wanted("simulated"), Some(Wanted::Simulated(Simulated::default())));
        assert_eq!(wanted("opencl"), Some(Wanted::OpenCl(None)));
        assert_eq!(wanted("opencl:"), Some(Wanted::OpenCl(None)));
        assert_eq!(wanted("opencl:pthread"), Some(Wanted::OpenCl(Some("pthread".into()))));
        assert_eq!(wanted("cuda"), Some(Wanted::Cuda("cuda:0".into())));
        assert_eq!(wanted("cuda:3"), Some(Wanted::Cuda("cuda:3".into())));
        for text in ["", "gpu", "cuda:x", "cuda:-1", "none:1", "simulated:speed=1", "opencl,0"] {
            assert_eq!(Wanted::parse(text), Err(Error::Accelerator), "{text}");
        }
    }

    #[test]
    fn a_child_of_a_process_with_a_driver_gets_none() {
        let before = OWNER.swap(process::id() + 1, Ordering::Relaxed);
        let refused = Wanted::Cuda("cuda:0".into()).open(|_| Ok(())).err().unwrap();
        assert!(refused.0.contains("before this process was forked"), "{refused}");
        OWNER.store(before, Ordering::Relaxed);
    }
}
