//! Nothing: this crate is there for its dependency.
