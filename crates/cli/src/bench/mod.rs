//! `wattlock bench`: claims, measured beside the peers in the same run.

pub mod files;
