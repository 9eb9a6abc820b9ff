//! Whether a meter that can be read moves when the machine works. A counter that stands still, as
//! under some hypervisors, or that shows what no machine draws, is not believed.

use std::time::{Duration, Instant};

use crate::accumulator::LEAST_POWER;
use crate::amount::Watts;
use crate::candidate::Candidate;
use crate::caveat::Caveat;
use crate::class::Class;
use crate::meter::{Extent, Kind};
use crate::meter_thread::{MeterThread, PATIENCE};
use crate::metered::{Domain, Moves};
use crate::obstacle::Obstacle;
use crate::root::Root;

/// Keeps one CPU busy for as long as `time`.
pub(crate) fn spin(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        for _ in 0..1000 {
            std::hint::spin_loop();
        }
    }
}

/// Watches all candidates while `work` runs for a time, and takes away those that are not plausible.
/// A guest's counters, which have a new value each second, are watched until they move.
pub(crate) fn probe(
    candidates: &mut [Candidate<MeterThread>],
    root: &Root,
    work: impl Fn(Duration),
) {
    let mut watched = Vec::new();
    let start = Instant::now();
    for (index, candidate) in candidates.iter_mut().enumerate() {
        let Ok(meter) = candidate.meter.as_mut() else { continue };
        let guest = match meter.info().kind {
            Kind::Counter(counter) => {
                let guest = meter.class() == Class::Attributed && counter.refresh < LONGEST_SPIN;
                // Other coarse counters move too seldom.
                if !guest && counter.longest_rest() > SPIN {
                    continue;
                }
                guest
            }
            Kind::Sensor(_) => false,
        };
        match meter.open(Moves::WithThisMachine, guest) {
            Ok(watch) => watched.push((index, watch, guest)),
            Err(error) => candidate.meter = Err(Obstacle::unavailable(error.to_string())),
        }
    }
    if watched.is_empty() {
        return;
    }
    for (index, watch, _) in &mut watched {
        if let Ok(meter) = candidates[*index].meter.as_mut() {
            meter.opened(watch, start + PATIENCE);
        }
    }
    let start = Instant::now();
    work(SPIN);
    while watched.iter().any(|(_, watch, _)| watch.is_waiting()) && start.elapsed() < LONGEST_SPIN {
        work(SPIN / 10);
    }
    watched.iter_mut().for_each(|(_, watch, _)| watch.end());
    let deadline = Instant::now() + PATIENCE;
    for (index, watch, guest) in watched {
        let Ok(meter) = candidates[index].meter.as_mut() else { continue };
        let counts = matches!(meter.info().kind, Kind::Counter(_));
        let domain = meter.closed(watch, deadline, &|| false);
        let why = implausible(&domain, counts, guest, start.elapsed());
        let Some(mut why) = why else { continue };
        if domain.extent != Extent::Wall && crate::guest::is_virtual(root) {
            why += "; the host may not expose it to this virtual machine";
        }
        candidates[index].meter = Err(Obstacle::unavailable(why));
    }
}

/// Why that cannot be what the domain took in `elapsed`, while a CPU was busy.
fn implausible(domain: &Domain, counts: bool, guest: bool, elapsed: Duration) -> Option<String> {
    let Some(energy) = domain.energy.best() else {
        let stood = |caveat| matches!(caveat, Caveat::BelowResolution | Caveat::Stuck);
        return Some(if domain.energy.caveats().any(stood) {
            let stood =
                if counts { "counter did not change" } else { "sensor showed almost no power" };
            format!("the {stood} in {:.1} s on a busy CPU", elapsed.as_secs_f64())
        } else {
            match domain.energy.gaps().first() {
                Some(gap) => gap.clone(),
                None => "it reported more power than any machine draws while a CPU was busy".into(),
            }
        });
    };
    let power = energy.over(elapsed);
    let least = match domain.extent {
        // A share may be small.
        _ if guest => Watts(0.0),
        // Memory and accelerators may rest.
        Extent::Memory | Extent::Accelerator => Watts(0.0),
        _ => LEAST_POWER,
    };
    (power <= least).then(|| format!("it reported {:.2} W on a busy CPU", power.0))
}

/// Longer than a guest's counter rests.
const LONGEST_SPIN: Duration = Duration::from_millis(1500);

/// RAPL has a new value every millisecond, and NVML one every tenth of a second.
const SPIN: Duration = Duration::from_millis(300);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Microjoules;
    use crate::fake::FakeMeter;
    use crate::meter::Meter;

    /// What is said of a meter that reads these µJ before and after 20 ms of work; `None` is a
    /// failed read.
    fn said(extent: Extent, before: u64, after: Option<u64>) -> Option<String> {
        let readings = [(Duration::ZERO, Some(before)), (Duration::from_millis(300), after)];
        let readings = readings.map(|(at, value)| (at, value.map(Microjoules)));
        let meter = Box::new(FakeMeter::of(extent, "a", readings)) as Box<dyn Meter>;
        let mut candidates = [Candidate {
            source: "powercap",
            domain: "a".into(),
            path: None,
            extent: Some(extent),
            meter: Ok(MeterThread::new(meter)),
        }];
        let nowhere = Root::new("/nowhere");
        probe(&mut candidates, &nowhere, |_| spin(Duration::from_millis(20)));
        let [candidate] = candidates;
        candidate.meter.err().map(|obstacle| obstacle.why)
    }

    #[test]
    fn a_meter_that_stands_still_or_reads_nonsense_is_not_used() {
        let of = |after| said(Extent::Package, 5, after);
        assert_eq!(of(Some(1_000_005)), None);
        assert!(of(Some(5)).is_some_and(|why| why.contains("the counter did not change")));
        // 100 µJ in 20 ms are 5 mW, and 999 kJ in 0.3 s are no machine's.
        assert!(of(Some(105)).is_some_and(|why| why.contains("0.0")));
        assert!(
            of(Some(999_000_000_000)).is_some_and(|why| why.contains("than any machine draws"))
        );
        assert!(of(None).is_some_and(|why| why.contains("this read was to fail")));
    }

    #[test]
    fn memory_and_gpus_may_rest_but_not_stand_still() {
        for extent in [Extent::Memory, Extent::Accelerator] {
            assert_eq!(said(extent, 5, Some(105)), None);
            assert!(said(extent, 5, Some(5)).is_some());
        }
    }

    #[test]
    fn spinning_takes_its_time() {
        let start = Instant::now();
        spin(SPIN);
        assert!(start.elapsed() >= SPIN);
    }
}
