//! An interpreter of the part of PTX that the kernels use, with nothing but `std`: the tests run
//! the committed text with it, and so does the library that stands for NVIDIA's driver.
//!
//! The threads of a block run one after the other, each up to the next barrier. What a GPU would
//! stop for is an error here: an address outside of what is allocated, one that is not aligned, a
//! loop without end. Shared memory starts out with other bytes than zeros, as it does on a GPU.

mod parse;
mod run;

pub use parse::{Module, parse};
pub use run::{Fault, Memory, Shape, launch};
