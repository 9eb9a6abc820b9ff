//! Which of the meters that were found are believed: pure, so that any machine can be tried.

use crate::candidate::Candidate;
use crate::found::{Found, Status};
use crate::meter::Extent;
use crate::sources::{battery, external, hwmon, perf, powercap};
use crate::window::Coverage;

/// What is made of the candidates.
pub(crate) struct Chosen<M> {
    pub found: Vec<Found>,
    /// The meters that are read, and whether they are a part of the sum.
    pub meters: Vec<(M, bool)>,
    /// What the sum leaves out.
    pub coverage: Coverage,
}

/// Sources that are one sum, in the order in which they are believed: what the mains deliver, then
/// the platform, then packages and memory, then what boards and batteries tell.
const GROUPS: [Group; 8] = [
    Group { source: external::SOURCE, extents: &[Extent::Wall], name: "the external meter" },
    Group { source: perf::SOURCE, extents: &[Extent::Platform], name: "psys" },
    Group { source: powercap::SOURCE, extents: &[Extent::Platform], name: "psys" },
    Group { source: perf::SOURCE, extents: SOCKETS, name: "perf's counters" },
    Group { source: powercap::SOURCE, extents: SOCKETS, name: "the packages' counters" },
    Group { source: hwmon::SOURCE, extents: &[Extent::Platform], name: "the board's sensor" },
    Group { source: hwmon::SOURCE, extents: SOCKETS, name: "the packages' sensors" },
    Group { source: battery::SOURCE, extents: &[Extent::Battery], name: "the battery" },
];

const SOCKETS: &[Extent] = &[Extent::Package, Extent::Memory];

/// Candidates of one source that together are a sum.
struct Group {
    source: &'static str,
    extents: &'static [Extent],
    name: &'static str,
}

impl Group {
    fn has<M>(&self, candidate: &Candidate<M>) -> bool {
        let extent = candidate.extent.is_some_and(|extent| self.extents.contains(&extent));
        candidate.source == self.source && extent
    }

    /// Memory alone is no sum.
    fn usable<M>(&self, candidates: &[Candidate<M>]) -> bool {
        candidates.iter().any(|candidate| {
            let memory = candidate.extent == Some(Extent::Memory);
            self.has(candidate) && candidate.meter.is_ok() && !memory
        })
    }

    fn complete<M>(&self, candidates: &[Candidate<M>]) -> bool {
        let mut members = candidates.iter().filter(|candidate| self.has(candidate));
        self.usable(candidates) && members.all(|candidate| candidate.meter.is_ok())
    }
}

/// Chooses the first group that is complete, or else the first that has anything, and every
/// accelerator.
pub(crate) fn choose<M>(candidates: Vec<Candidate<M>>) -> Chosen<M> {
    let complete = GROUPS.iter().find(|group| group.complete(&candidates));
    let group = complete.or_else(|| GROUPS.iter().find(|group| group.usable(&candidates)));
    // What sees the whole machine sees its accelerators.
    let apart = group.is_none_or(|group| group.extents == SOCKETS);
    let mut chosen = Chosen { found: Vec::new(), meters: Vec::new(), coverage: Coverage::Whole };
    let mut missing = Vec::new();
    for candidate in candidates {
        let accelerator = candidate.extent == Some(Extent::Accelerator);
        let used = accelerator || group.is_some_and(|group| group.has(&candidate));
        let (status, why, fix) = match (candidate.meter, group) {
            (Err(obstacle), _) => {
                if accelerator && obstacle.status == Status::Unavailable && apart {
                    chosen.coverage = Coverage::WithoutAccelerators;
                } else if used {
                    missing.push(candidate.domain.clone());
                }
                (obstacle.status, obstacle.why, obstacle.fix)
            }
            (Ok(meter), group) if used => {
                chosen.meters.push((meter, !accelerator || apart));
                (Status::Used, role(candidate.extent, apart, group), None)
            }
            (Ok(_), Some(group)) => {
                (Status::Ignored, format!("its energy is in {} already", group.name), None)
            }
            (Ok(_), None) => (Status::Ignored, "memory alone is no sum".into(), None),
        };
        let Candidate { source, domain, path, .. } = candidate;
        chosen.found.push(Found { source, domain, path, status, why, fix });
    }
    match group {
        None => chosen.coverage = Coverage::Nothing,
        Some(_) if complete.is_none() => chosen.coverage = Coverage::Without(missing),
        Some(_) => {}
    }
    chosen
}

fn role(extent: Option<Extent>, apart: bool, group: Option<&Group>) -> String {
    match (extent, group) {
        (Some(Extent::Wall), _) => "all that the mains deliver".into(),
        (Some(Extent::Platform), _) => "the whole platform".into(),
        (Some(Extent::Battery), _) => "the whole machine, while it is not plugged in".into(),
        (Some(Extent::Accelerator), Some(group)) if !apart => {
            format!("a domain of its own, not added: its energy is in {} too", group.name)
        }
        (Some(Extent::Accelerator), _) => "a domain of its own".into(),
        _ => "a part of the sum".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fake::FakeMeter;
    use crate::meter::Meter;
    use crate::obstacle::Obstacle;

    fn candidate(source: &'static str, extent: Extent, works: bool) -> Candidate {
        let meter: Box<dyn Meter> = Box::new(FakeMeter::new("fake", []));
        let meter = works.then_some(meter).ok_or_else(|| Obstacle::unavailable("broken"));
        Candidate { source, domain: source.into(), path: None, extent: Some(extent), meter }
    }

    /// Which are used, which of these are in the sum, and what is missing.
    fn tried(machine: &[(&'static str, Extent, bool)]) -> (Vec<usize>, Vec<bool>, Coverage) {
        let candidates = machine.iter().map(|(s, e, works)| candidate(s, *e, *works));
        let chosen = choose(candidates.collect());
        let used = chosen.found.iter().enumerate();
        let used = used.filter(|(_, found)| found.status == Status::Used).map(|(at, _)| at);
        (used.collect(), chosen.meters.iter().map(|(_, sum)| *sum).collect(), chosen.coverage)
    }

    #[test]
    fn the_order_of_belief() {
        use Coverage::{Nothing, Whole, Without, WithoutAccelerators};
        use Extent::{Accelerator, Battery, Memory, Package, Platform, Wall};
        let all = [
            ("external", Wall, true),
            ("powercap", Platform, true),
            ("powercap", Package, true),
            ("powercap", Memory, true),
            ("hwmon", Platform, true),
            ("battery", Battery, true),
        ];
        // Taking the best away leaves the next best.
        assert_eq!(tried(&all), (vec![0], vec![true], Whole));
        assert_eq!(tried(&all[1..]), (vec![0], vec![true], Whole));
        assert_eq!(tried(&all[2..]), (vec![0, 1], vec![true, true], Whole));
        assert_eq!(tried(&all[4..]), (vec![0], vec![true], Whole));
        assert_eq!(tried(&all[5..]), (vec![0], vec![true], Whole));
        // What is not whole gives way to what is, and is better than nothing.
        let broken = [("powercap", Package, true), ("powercap", Memory, false), all[5]];
        assert_eq!(tried(&broken), (vec![2], vec![true], Whole));
        assert_eq!(tried(&broken[..2]), (vec![0], vec![true], Without(vec!["powercap".into()])));
        // perf's counters are powercap's: never both.
        let twice = [("powercap", Package, true), ("perf", Package, true)];
        assert_eq!(tried(&twice), (vec![1], vec![true], Whole));
        assert_eq!(tried(&[("powercap", Memory, true)]).2, Nothing);
        // A GPU is added to packages, and not to what sees it anyway.
        let gpu = ("nvml", Accelerator, true);
        assert_eq!(tried(&[all[2], gpu]), (vec![0, 1], vec![true, true], Whole));
        assert_eq!(tried(&[all[1], gpu]), (vec![0, 1], vec![true, false], Whole));
        assert_eq!(tried(&[gpu]), (vec![0], vec![true], Nothing));
        let mute = ("nvml", Accelerator, false);
        assert_eq!(tried(&[all[2], mute]), (vec![0], vec![true], WithoutAccelerators));
        assert_eq!(tried(&[all[0], mute]), (vec![0], vec![true], Whole));
        assert_eq!(tried(&[]), (vec![], vec![], Nothing));
    }
}
