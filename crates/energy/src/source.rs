//! A source of energy: how its meters are found, and which of them add up to a sum.

use crate::candidate::Candidate;
use crate::meter::Extent;
use crate::root::Root;
use crate::sources::external::External;

/// A source of energy.
pub(crate) struct Source {
    /// The name in text and JSON.
    pub name: &'static str,
    /// How its meters are found.
    pub discover: Discover,
    /// What is reported where it has none, if `discover` does not say so itself.
    pub absent: Option<fn() -> Candidate>,
    /// The sums that its meters can make. Accelerators are not listed: each is added to any sum that
    /// does not have it already.
    pub sums: &'static [Sum],
}

/// How the meters of a source are found.
pub(crate) enum Discover {
    /// Asks the meter that the user names, if there is one.
    External(fn(&External) -> Vec<Candidate>),
    /// Reads files, which may not answer.
    Files(fn(&Root) -> Vec<Candidate>),
    /// Asks a library, and limits the time for that itself.
    Library(fn(&Root) -> Vec<Candidate>),
}

/// Meters of one source that together are a sum.
pub(crate) struct Sum {
    pub belief: Belief,
    /// What its meters cover.
    pub extents: &'static [Extent],
    /// What it is called where a meter is ignored because of it.
    pub name: &'static str,
}

/// How much a sum is believed, the most first; of equals, the first in the table is taken.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Belief {
    /// What the mains deliver.
    Mains,
    /// A counter of the whole platform.
    PlatformCounter,
    /// Counters of packages and memory.
    PackageCounters,
    /// What the board tells of the whole platform.
    BoardSensor,
    /// What the board tells of packages and memory.
    PackageSensors,
    /// What the battery tells.
    Battery,
}

/// Packages and memory: all that is left out is the rest of the machine.
pub(crate) const SOCKETS: &[Extent] = &[Extent::Package, Extent::Memory];
