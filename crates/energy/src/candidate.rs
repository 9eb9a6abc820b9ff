//! A source of energy that could be read.

use std::path::PathBuf;

use crate::meter::{Extent, Meter};
use crate::obstacle::Obstacle;

/// A source of energy that is here, or that could be, and what reads it.
pub(crate) struct Candidate<M = Box<dyn Meter>> {
    pub source: &'static str,
    pub domain: String,
    pub path: Option<PathBuf>,
    /// What it would add; `None` if its energy is never a part of a sum.
    pub extent: Option<Extent>,
    pub meter: Result<M, Obstacle>,
}

impl Candidate {
    /// A source that this machine does not have, and what would help if anything can.
    pub fn absent(source: &'static str, domain: &str, why: &str, fix: Option<&str>) -> Self {
        let meter = Err(Obstacle { fix: fix.map(str::to_owned), ..Obstacle::unavailable(why) });
        Self { source, domain: domain.into(), path: None, extent: None, meter }
    }

    /// The same, read by what `reader` makes of the meter.
    pub fn map<M>(self, reader: impl FnOnce(Box<dyn Meter>) -> M) -> Candidate<M> {
        let Self { source, domain, path, extent, meter } = self;
        Candidate { source, domain, path, extent, meter: meter.map(reader) }
    }
}
