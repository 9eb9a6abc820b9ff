//! GPUs as devices of the engine, opened at run time: no GPU and no driver means "no device", not
//! another build.
//!
//! The kernels are one C text (`kernels/README.md`). [`opencl`] gives it to whatever driver is
//! there; [`cuda`] has it as PTX, for the driver of NVIDIA.

#[cfg(test)]
mod agreement;
pub mod cuda;
mod kernels;
pub mod opencl;
mod pipeline;
mod self_test;
#[cfg(test)]
mod shim;
mod task;
