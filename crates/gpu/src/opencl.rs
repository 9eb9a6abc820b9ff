//! Any device with an OpenCL driver: AMD, Intel, NVIDIA, and PoCL on the CPU.
//!
//! The loader and the drivers are opened when [`devices`] is first called. Nothing is linked, and
//! where nothing is installed there is [`Error::NoDevice`]. A device on the CPU is listed but never
//! chosen by itself: the CPU's own kernels are many times faster.

mod device;
mod error;
mod handle;
mod list;
mod one_block;
mod runtime;
mod slot;
mod worker;

pub use crate::kernels::Tables;
pub use device::{OpenCl, Options};
pub use error::Error;
pub use list::{Kind, Listed, choose, devices};
pub use one_block::OneBlock;
pub(crate) use runtime::RUNTIME;
pub use slot::Phases;
