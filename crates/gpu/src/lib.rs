//! GPUs as devices of the engine, opened at run time: no GPU and no driver means "no device", not
//! another build.
//!
//! The kernels are one C text (`kernels/README.md`). [`opencl`] gives it to whatever driver is
//! there; [`cuda`] has it as PTX, for the driver of NVIDIA.

#[cfg(test)]
mod agreement;
mod check;
pub mod cuda;
mod driver_thread;
mod host_memory;
mod kernels;
mod lock;
pub mod opencl;
mod piece_output;
mod pipeline;
mod runtime;
mod sample;
mod self_test;
#[cfg(test)]
mod shim;
mod task;
mod timeouts;

pub use driver_thread::left_behind;
pub use runtime::{Named, Offer, Opened, Opening, Runtime};

/// All ways to reach devices. The first that has a device which can be used is used unless another
/// is named.
pub static RUNTIMES: [Runtime; 2] = [cuda::RUNTIME, opencl::RUNTIME];

/// Ends this process at once, without what libraries do at its end: for a process of which
/// [`left_behind`] is true, where a driver would wait for its device. Buffers of standard output
/// are the caller's to flush.
pub fn exit_now(code: u8) -> ! {
    // SAFETY: it only ends the process.
    unsafe { libc::_exit(code.into()) }
}
