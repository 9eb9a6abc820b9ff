//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod allocations;
mod faults;
mod segments;
