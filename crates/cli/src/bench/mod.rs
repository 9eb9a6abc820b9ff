//! `wattlock bench`: claims, measured beside the peers in the same run.

pub mod files;

mod child;
mod machine;
mod results;
mod sample;
mod tools;
