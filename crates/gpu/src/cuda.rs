//! GPUs of NVIDIA, through the driver's own library: no toolkit to build, none to run.
//!
//! [`Cuda`] is the device. `driver.rs` and its neighbours wrap the driver in values that free
//! themselves; the kernels are `kernels/aes.sm_75.ptx`.

mod api;
mod device;
mod driver;
mod error;
mod handle;
mod kernels;
mod keys;
mod launch;
mod memory;
mod module;
mod rates;
mod resident;
mod runtime;
mod slot;
mod stream;

pub use crate::kernels::Tables;
pub use device::{Cuda, Options};
pub use driver::{Driver, Info};
pub use error::{Error, Version};
pub use rates::{CopyRates, InstructionRate};
pub use resident::Resident;
pub(crate) use runtime::RUNTIME;
