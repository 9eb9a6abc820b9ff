//! GPUs of NVIDIA, through the driver's own library: no toolkit to build, none to run.

mod api;
mod driver;
mod error;
mod memory;
mod module;
mod stream;

pub use driver::{Driver, Info};
pub use error::{Error, Version};
