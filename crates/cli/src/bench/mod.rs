//! `wattlock bench`: claims, measured beside the peers in the same run.

pub mod blocks;
pub mod ciphers;
pub mod files;

mod child;
mod joules;
mod lab;
mod machine;
mod paper;
mod rates;
mod results;
mod sample;
mod tools;
