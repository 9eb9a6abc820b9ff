//! `wattlock simulate`: studies of streams in virtual time.

pub mod lecpaes;
