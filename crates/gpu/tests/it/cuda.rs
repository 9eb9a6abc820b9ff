//! The CUDA device on a library that stands for NVIDIA's driver and runs the committed PTX: right
//! output after any failure, nothing lost, nothing leaked, no key left. Nothing here needs a GPU.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod agreement;
mod faults;
mod library;
mod machine;
mod refusals;
mod resident;
mod silence;
mod wrong;
