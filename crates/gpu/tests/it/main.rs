//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod absent;
mod cuda;
mod interpreter;
mod opencl;
mod ptx;
