//! What can go wrong with OpenCL.

use opencl3::error_codes::ClError;
use wattlock_engine::Fault;

/// Why there is no OpenCL device, or no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no loader, or it knows no driver.
    #[error("no OpenCL device: {0}")]
    NoDevice(&'static str),
    /// No device has that name.
    #[error("there is no OpenCL device {0:?}; `wattlock devices` lists them")]
    Unknown(String),
    /// A device cannot run the kernels.
    #[error("{device} gives a group {has} of {what}, and the kernels need {needed}")]
    TooSmall {
        /// The device.
        device: String,
        /// What is too small.
        what: &'static str,
        /// What it has.
        has: u64,
        /// What is needed.
        needed: u64,
    },
    /// The driver could not compile the kernels.
    #[error("the driver of {device} cannot compile the kernels: {log}")]
    Build {
        /// The device.
        device: String,
        /// What the compiler said.
        log: String,
    },
    /// A device computes something else than AES.
    #[error("{device} failed its self-test: {what}")]
    SelfTest {
        /// The device.
        device: String,
        /// The operation.
        what: &'static str,
    },
    /// Something that is left to the CPU.
    #[error("this cipher, or these sizes, are left to the CPU")]
    NotForGpus,
    /// The device works on a job.
    #[error("the device works on another job")]
    Busy,
    /// The driver does not answer; what called it was left behind.
    #[error("the device does not answer: {0}")]
    Unanswered(String),
    /// It passed its self-test, and erred later.
    #[error("the device failed a check: {0}")]
    Wrong(&'static str),
    /// It failed, and is not asked again.
    #[error("{0}")]
    Unusable(String),
    /// A tag is not the one that the device computed.
    #[error("authentication failed")]
    Tag,
    /// A function of OpenCL failed.
    #[error("{call} failed: {name} ({code})")]
    Call {
        /// The function.
        call: &'static str,
        /// The code's name in the standard.
        name: String,
        /// The code.
        code: i32,
    },
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self(error.to_string())
    }
}

impl Error {
    /// An error of `call`.
    pub(super) fn of(call: &'static str) -> impl Fn(i32) -> Self {
        move |code| match code {
            LIBRARY_NOT_LOADED => Self::NoDevice("libOpenCL.so.1 is not installed"),
            PLATFORM_NOT_FOUND => Self::NoDevice("no driver is installed for any"),
            code => Self::Call { call, name: ClError(code).to_string(), code },
        }
    }
}

/// The code of `opencl3` for a missing library.
const LIBRARY_NOT_LOADED: i32 = -2000;
/// `CL_PLATFORM_NOT_FOUND_KHR`: what the loader says when it knows no driver.
const PLATFORM_NOT_FOUND: i32 = -1001;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_loader_or_driver_is_no_device() {
        for code in [LIBRARY_NOT_LOADED, PLATFORM_NOT_FOUND] {
            assert!(matches!(Error::of("clGetPlatformIDs")(code), Error::NoDevice(_)));
        }
        let lost = Error::of("clFinish")(-36).to_string();
        assert_eq!(lost, "clFinish failed: CL_INVALID_COMMAND_QUEUE (-36)");
    }
}
