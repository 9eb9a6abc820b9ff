//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod cobblestone;
mod containers;
mod memory;
mod properties;
mod vectors;
