//! Whether a meter that can be read moves when the machine works. A counter that stands still, as
//! under some hypervisors, or that shows what no machine draws, is not believed.

use std::time::{Duration, Instant};

use crate::accumulator::LEAST_POWER;
use crate::candidate::{Candidate, Obstacle};
use crate::window::Account;
use crate::{Caveat, Domain, Extent, Kind, Root, Watts};

/// Keeps one CPU busy for long enough that every counter of a machine moves.
pub(crate) fn spin() {
    let start = Instant::now();
    while start.elapsed() < SPIN {
        for _ in 0..1000 {
            std::hint::spin_loop();
        }
    }
}

/// Watches all candidates while `work` runs, and takes away those that are not plausible.
pub(crate) fn probe(candidates: &mut [Candidate], root: &Root, work: impl FnOnce()) {
    let readable = candidates.iter_mut().filter(|candidate| candidate.meter.is_ok());
    let mut watched: Vec<_> = readable
        .filter_map(|candidate| {
            let meter = candidate.meter.as_mut().ok()?;
            // A coarse counter moves too seldom.
            match meter.info().kind {
                Kind::Counter(counter) if counter.longest_rest() > SPIN => None,
                _ => Some(Account::open(meter.as_mut(), true)),
            }
        })
        .collect();
    if watched.is_empty() {
        return;
    }
    let start = Instant::now();
    work();
    let domains: Vec<_> =
        watched.drain(..).map(|account| (account.extent(), account.close())).collect();
    let elapsed = start.elapsed();
    let virtual_machine = crate::is_virtual(root);
    for (extent, domain) in domains {
        let Some(mut why) = implausible(extent, &domain, elapsed) else { continue };
        if virtual_machine {
            why += "; this is a virtual machine, whose host may not pass it on";
        }
        let candidate = candidates
            .iter_mut()
            .find(|candidate| candidate.source == domain.source && candidate.domain == domain.name);
        if let Some(candidate) = candidate {
            candidate.meter = Err(Obstacle::unavailable(why));
        }
    }
}

/// Why that cannot be what the domain took in `elapsed`, while a CPU was busy.
fn implausible(extent: Extent, domain: &Domain, elapsed: Duration) -> Option<String> {
    let Some(energy) = domain.energy.best() else {
        let stood = |caveat| matches!(caveat, Caveat::BelowResolution | Caveat::Stuck);
        return Some(match domain.energy.caveats().any(stood) {
            true => {
                format!("it stood still for {:.1} s while a CPU was busy", elapsed.as_secs_f64())
            }
            false => match domain.energy.gaps().first() {
                Some(gap) => gap.clone(),
                None => "it told what no machine draws while a CPU was busy".into(),
            },
        });
    };
    let power = energy.over(elapsed);
    let least = match extent {
        // Memory and accelerators may rest.
        Extent::Memory | Extent::Accelerator => Watts(0.0),
        _ => LEAST_POWER,
    };
    (power <= least).then(|| format!("it told {:.2} W while a CPU was busy", power.0))
}

/// RAPL has a new value every millisecond, and NVML one every tenth of a second.
const SPIN: Duration = Duration::from_millis(300);
