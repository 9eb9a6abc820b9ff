//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod cobblestone;
mod properties;
mod vectors;
