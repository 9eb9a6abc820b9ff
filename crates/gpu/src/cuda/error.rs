//! What can go wrong with a GPU of NVIDIA.

use std::path::PathBuf;

use wattlock_engine::Fault;

use super::api::Code;

/// Why a GPU cannot be used, or can no more.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no driver, or the library of another was named.
    #[error("cannot load {}: install NVIDIA's driver, or name its library in WATTLOCK_LIBCUDA", path.display())]
    Library {
        /// What was to be loaded.
        path: PathBuf,
        /// What the loader said.
        source: libloading::Error,
    },
    /// The library lacks a function: it is too old, or no CUDA driver.
    #[error("the CUDA driver has no function {name}: update it")]
    Symbol {
        /// The function.
        name: String,
        /// What the loader said.
        source: libloading::Error,
    },
    /// The driver works and has no GPU to offer.
    #[error("the CUDA driver finds no GPU")]
    NoDevice,
    /// There are GPUs, but not that many.
    #[error("there is no GPU cuda:{index}: the driver has {count}")]
    DeviceAbsent {
        /// The GPU that was asked for.
        index: usize,
        /// How many there are.
        count: usize,
    },
    /// A name that is not `cuda` or `cuda:` and a number.
    #[error("invalid CUDA device {0:?}: use cuda or cuda:0")]
    DeviceName(String),
    /// The driver does not know the PTX version of the kernels.
    #[error("the driver is for CUDA {driver}, and the kernels need {needed}: update it")]
    DriverTooOld {
        /// The CUDA version of the driver.
        driver: Version,
        /// The first whose drivers take the kernels.
        needed: Version,
    },
    /// The GPU is older than the kernels.
    #[error("{name} has compute capability {major}.{minor}, and the kernels need 7.5")]
    GpuTooOld {
        /// The GPU's name.
        name: String,
        /// Its capability, before the point.
        major: i32,
        /// And behind it.
        minor: i32,
    },
    /// The driver's compiler refused the kernels.
    #[error("the driver refuses the kernels ({reason}){log}")]
    Kernels {
        /// The driver's name for the error.
        reason: String,
        /// What its compiler wrote, on lines of its own.
        log: String,
    },
    /// Memory ran out: the device's, or pinned memory of the host.
    #[error("{call} found no {bytes} bytes free")]
    OutOfMemory {
        /// The call.
        call: &'static str,
        /// What was asked for.
        bytes: usize,
    },
    /// A kernel could not be started.
    #[error("launching {kernel} failed: {reason}")]
    Launch {
        /// The kernel.
        kernel: &'static str,
        /// The driver's words.
        reason: String,
    },
    /// The device stopped working; only a new process, or a repair, can change that.
    #[error("the GPU was lost: {call} said {reason}")]
    Lost {
        /// The call that noticed it; the cause may be earlier.
        call: &'static str,
        /// The driver's words.
        reason: String,
    },
    /// The driver does not answer; what called it was left behind.
    #[error("the GPU does not answer: {0}")]
    Unanswered(String),
    /// It passed its self-test, and erred later.
    #[error("the GPU failed a check: {0}")]
    Wrong(&'static str),
    /// Any other call that failed.
    #[error("{call} failed: {reason}")]
    Call {
        /// The call.
        call: &'static str,
        /// The driver's words.
        reason: String,
    },
    /// A kernel gave another result than the CPU.
    #[error("self-test: {0} is wrong, so the device is not used")]
    SelfTest(&'static str),
    /// The device has no kernel for that.
    #[error("there is no CUDA kernel for {0}")]
    Unsupported(&'static str),
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

impl Error {
    /// The error that `code` is, when `call` answers it.
    pub(super) fn of(call: &'static str, code: Code, text: &(String, String)) -> Self {
        let reason = format!("{} ({})", text.1, text.0);
        match code {
            Code::NO_DEVICE if call == "cuInit" => Self::NoDevice,
            // What fails when it starts is none that was there before.
            code if code.is_lost() && call != "cuInit" => Self::Lost { call, reason },
            _ => Self::Call { call, reason },
        }
    }
}

/// A version of CUDA.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version(pub(super) i32);

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.0 / 1000, self.0 % 1000 / 10)
    }
}
