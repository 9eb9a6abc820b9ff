//! GPUs as devices of the engine, opened at run time: no GPU and no driver means "no device", not
//! another build.

pub mod cuda;
