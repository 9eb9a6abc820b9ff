//! Whether what is read as the whole machine can be the whole of its parts.
//!
//! A counter of the platform, `psys`, holds the packages. Some show a fraction of them, or nothing
//! that has to do with them. Where it shows less than the packages, they are the sum instead. Whether
//! it holds a discrete GPU depends on how the board is built: where the GPU takes more than what
//! the packages leave of it, it does not, and otherwise the sum spans both. A meter of all that the
//! mains or the battery deliver holds the GPU, or is wrong.

use crate::amount::Energy;
use crate::caveat::Caveat;
use crate::meter::Extent;
use crate::metered::{Coverage, Domain, Metered};

/// Takes away a whole that is less than its parts, and adds GPUs to one that cannot hold them.
/// `parts` says what the sum of the packages leaves out, where the whole is the platform's counter
/// and they were read beside it.
pub(crate) fn check(window: &mut Metered, parts: Option<&Coverage>) {
    let is_whole = |domain: &Domain| {
        let kind = matches!(domain.extent, Extent::Wall | Extent::Platform | Extent::Battery);
        kind && domain.in_sum
    };
    let of = |is_part: &dyn Fn(&Domain) -> bool| {
        Ends::of(window.domains.iter().filter(|one| is_part(one)))
    };
    // What is not known is compared with nothing.
    let Some(whole) = of(&is_whole) else { return };
    let packages = of(&|domain| domain.extent == Extent::Package);
    let gpus = of(&|domain| domain.extent == Extent::Accelerator);
    let Some(coverage) = parts else {
        if gpus.is_some_and(|gpus| SLACK * gpus.least > whole.most) {
            window.domains.iter_mut().filter(|domain| is_whole(domain)).for_each(refuse);
        }
        return;
    };
    if packages.as_ref().is_some_and(|packages| SLACK * packages.least > whole.most) {
        window.coverage = coverage.clone();
        for domain in &mut window.domains {
            if is_whole(domain) {
                refuse(domain);
                domain.in_sum = false;
            } else {
                domain.in_sum = true;
                domain.energy = domain.energy.clone().with_caveat(Caveat::PartExceedsWhole);
            }
        }
        return;
    }
    let rest = whole.best - packages.map_or(0.0, |packages| packages.best);
    let outside = gpus.is_some_and(|gpus| SLACK_OF_GPUS * gpus.best > rest);
    for domain in window.domains.iter_mut().filter(|one| one.extent == Extent::Accelerator) {
        domain.in_sum = domain.energy.best().is_some();
        domain.overlaps = !outside;
    }
}

/// The energy of a meter that cannot be right.
fn refuse(domain: &mut Domain) {
    let gaps = domain.energy.gaps().to_vec();
    domain.energy = Energy::unavailable(Caveat::PartExceedsWhole).with_gaps(gaps);
}

/// The J that domains took together: the least, the best value and the most.
struct Ends {
    least: f64,
    best: f64,
    most: f64,
}

impl Ends {
    /// Of those that are known; `None` if none is.
    fn of<'a>(domains: impl Iterator<Item = &'a Domain>) -> Option<Self> {
        let known = domains.filter_map(|domain| {
            let (least, most) = domain.energy.interval()?;
            let best = domain.energy.best()?.joules();
            Some(Self { least: least.joules(), best, most: most.joules() })
        });
        known.reduce(|sum, one| Self {
            least: sum.least + one.least,
            best: sum.best + one.best,
            most: sum.most + one.most,
        })
    }
}

/// Counters of one chip agree to this share.
const SLACK: f64 = 0.98;

/// The boards of GPUs are off by up to 5 %.
const SLACK_OF_GPUS: f64 = 0.95;

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::amount::Microjoules;
    use crate::class::Class;

    /// A window of domains, each with its J; those of the sum come first.
    fn window(summed: &[(Extent, f64)], others: &[(Extent, f64)]) -> Metered {
        let domain = |(extent, joules): &(Extent, f64), in_sum| Domain {
            name: format!("{extent:?}"),
            source: "fake",
            energy: Energy::measured(
                &format!("{extent:?}"),
                Microjoules::from_joules(*joules),
                Microjoules::from_joules(0.1),
            ),
            in_sum,
            overlaps: false,
            extent: *extent,
        };
        let domains = summed.iter().map(|one| domain(one, true));
        let domains = domains.chain(others.iter().map(|one| domain(one, false))).collect();
        Metered { wall: Duration::from_secs(5), domains, coverage: Coverage::Whole }
    }

    /// The sum of a platform's counter, packages and GPUs, once it is checked.
    fn sum(psys: f64, package: f64, gpu: Option<f64>) -> Energy {
        let gpu = gpu.map(|joules| (Extent::Accelerator, joules));
        let others: Vec<_> = [(Extent::Package, package)].into_iter().chain(gpu).collect();
        let mut window = window(&[(Extent::Platform, psys)], &others);
        check(&mut window, Some(&Coverage::Whole));
        window.sum()
    }

    #[test]
    fn a_platform_below_its_packages_is_not_believed() {
        let voided = sum(24.0, 130.0, None);
        assert_eq!(voided.best(), Some(Microjoules(130_000_000)));
        assert!(voided.covers().eq(["Package"]));
        assert!(voided.caveats().any(|caveat| caveat == Caveat::PartExceedsWhole));
        let held = sum(150.0, 130.0, None);
        assert_eq!(held.best(), Some(Microjoules(150_000_000)));
        assert!(held.covers().eq(["Platform"]) && held.caveats().next().is_none());
        // Equal but for what the readings hide.
        assert!(sum(129.0, 130.0, None).covers().eq(["Platform"]));
    }

    #[test]
    fn the_packages_that_stand_in_name_what_is_missing() {
        let mut window = window(&[(Extent::Platform, 24.0)], &[(Extent::Package, 130.0)]);
        check(&mut window, Some(&Coverage::Without(vec!["dram".into()])));
        assert!(window.sum().missing().eq(["dram"]) && !window.is_measured());
    }

    #[test]
    fn a_gpu_that_the_platform_cannot_hold_is_added() {
        let added = sum(130.0, 100.0, Some(600.0));
        assert_eq!(added.best(), Some(Microjoules(730_000_000)));
        assert!(!added.caveats().any(|caveat| caveat == Caveat::GpuOverlapUnknown));
        // One that it may hold widens the sum.
        let open = sum(130.0, 40.0, Some(60.0));
        assert!(open.caveats().any(|caveat| caveat == Caveat::GpuOverlapUnknown));
        let (lo, hi) = open.interval().expect("an interval");
        assert_eq!((lo.joules(), hi.joules()), (129.9, 190.2));
        assert_eq!(open.best(), Some(Microjoules(160_000_000)));
    }

    #[test]
    fn a_wall_meter_below_a_gpu_is_void() {
        let of = |wall| {
            let mut window = window(&[(Extent::Wall, wall)], &[(Extent::Accelerator, 600.0)]);
            check(&mut window, None);
            window.sum()
        };
        assert_eq!(of(130.0).class(), Class::Unavailable);
        assert!(of(130.0).caveats().any(|caveat| caveat == Caveat::PartExceedsWhole));
        assert_eq!(of(730.0).best(), Some(Microjoules(730_000_000)));
    }
}
