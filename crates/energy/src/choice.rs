//! Which of the meters that were found are believed: pure, so that any machine can be tried.

use crate::candidate::Candidate;
use crate::found::{Found, Status};
use crate::meter::Extent;
use crate::metered::Coverage;
use crate::source::{Belief, SOCKETS, Source, Sum};

/// What is made of the candidates.
pub(crate) struct Chosen<M> {
    pub found: Vec<Found>,
    /// The meters that are read, and whether they are a part of the sum.
    pub meters: Vec<(M, bool)>,
    /// What the sum leaves out.
    pub coverage: Coverage,
    /// Where packages are read beside a counter of the platform, to check it: what their sum leaves
    /// out, should it have to stand in.
    pub parts: Option<Coverage>,
}

/// Candidates of one source that together are a sum.
struct Group {
    source: &'static str,
    extents: &'static [Extent],
    name: &'static str,
    belief: Belief,
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

/// Chooses the sum that is believed most of those that are complete, or else of those that have
/// anything, and every accelerator.
pub(crate) fn choose<M>(sources: &[Source], candidates: Vec<Candidate<M>>) -> Chosen<M> {
    let groups = groups(sources);
    let complete = groups.iter().find(|group| group.complete(&candidates));
    let group = complete.or_else(|| groups.iter().find(|group| group.usable(&candidates)));
    let parts = group
        .filter(|group| group.belief == Belief::PlatformCounter)
        .and_then(|_| counters_of_packages(&groups, &candidates));
    // What sees the whole machine sees its accelerators.
    let apart = group.is_none_or(|group| group.extents == SOCKETS);
    let mut chosen = Chosen {
        found: Vec::new(),
        meters: Vec::new(),
        coverage: Coverage::Whole,
        parts: parts.map(|_| Coverage::Whole),
    };
    let (mut missing, mut missing_parts) = (Vec::new(), Vec::new());
    for candidate in candidates {
        let accelerator = candidate.extent == Some(Extent::Accelerator);
        let used = accelerator || group.is_some_and(|group| group.has(&candidate));
        let part = parts.is_some_and(|parts| parts.has(&candidate));
        if part && candidate.meter.is_err() {
            missing_parts.push(candidate.domain.clone());
        }
        let (status, why, fix) = match (candidate.meter, group) {
            (Err(obstacle), _) => {
                let is_missing = accelerator && obstacle.status == Status::Unavailable;
                if is_missing && parts.is_some() {
                    // The packages, which may stand in for the whole, do not see it.
                    missing_parts.push(candidate.domain.clone());
                }
                if is_missing && apart {
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
            (Ok(meter), Some(group)) if part => {
                chosen.meters.push((meter, false));
                (
                    Status::Used,
                    format!("to check {}, which has its energy already", group.name),
                    None,
                )
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
    if !missing_parts.is_empty() {
        chosen.parts = Some(Coverage::Without(missing_parts));
    }
    chosen
}

/// The counters of packages that are believed most: those that are complete, or else those that
/// have anything.
fn counters_of_packages<'a, M>(
    groups: &'a [Group],
    candidates: &[Candidate<M>],
) -> Option<&'a Group> {
    let counters = || groups.iter().filter(|group| group.belief == Belief::PackageCounters);
    let complete = counters().find(|group| group.complete(candidates));
    complete.or_else(|| counters().find(|group| group.usable(candidates)))
}

/// The sums of all sources, in the order in which they are believed.
fn groups(sources: &[Source]) -> Vec<Group> {
    let sums = sources.iter().flat_map(|source| source.sums.iter().map(|sum| (source.name, sum)));
    let mut sums: Vec<_> = sums.collect();
    sums.sort_by_key(|(_, sum)| sum.belief);
    let group = |(source, sum): (_, &Sum)| Group {
        source,
        extents: sum.extents,
        name: sum.name,
        belief: sum.belief,
    };
    sums.into_iter().map(group).collect()
}

fn role(extent: Option<Extent>, apart: bool, group: Option<&Group>) -> String {
    match (extent, group) {
        (Some(Extent::Wall), _) => "all that the mains deliver".into(),
        (Some(Extent::Platform), _) => "the whole platform".into(),
        (Some(Extent::Battery), _) => "the whole machine, while it is not plugged in".into(),
        (Some(Extent::Accelerator), Some(group)) if !apart => match group.belief {
            Belief::PlatformCounter => {
                format!("a domain of its own, added where {} cannot have its energy", group.name)
            }
            _ => format!("a domain of its own, not added: its energy is in {} too", group.name),
        },
        (Some(Extent::Accelerator), _) => "a domain of its own".into(),
        _ => "a part of the sum".into(),
    }
}
