//! `wattlock simulate`: studies of streams in virtual time.

pub mod lecpaes;
mod lecpaes_document;
mod lecpaes_paper;
