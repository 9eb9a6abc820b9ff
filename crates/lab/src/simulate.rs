//! `wattlock-lab simulate`: studies of streams in virtual time.

pub mod lecpaes;
pub mod lecpaes_document;
pub mod policies;
mod policies_document;
