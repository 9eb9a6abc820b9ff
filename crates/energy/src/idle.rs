//! Idle power of a machine, to compute the net energy of work.

use std::time::Duration;

use crate::amount::Energy;
use crate::caveat::Caveat;
use crate::metered::{Domain, Metered};

/// Two looks at a machine at rest: before the work, and after it.
#[derive(Clone, Debug)]
pub struct Idle {
    before: Metered,
    after: Metered,
}

impl Idle {
    /// Of two windows in which nothing was done.
    pub fn new(before: Metered, after: Metered) -> Self {
        Self { before, after }
    }

    /// What is left of a window without what the machine would have taken at rest.
    #[must_use]
    pub fn net(&self, window: &Metered) -> Metered {
        window.map(|domain| match self.during(window.wall, domain) {
            Some(idle) => domain.energy.clone().above(idle),
            None => Energy::unavailable(Caveat::DomainMissing),
        })
    }

    /// What the domain would have taken at rest in `wall`: the mean of both looks, and that they
    /// differ is added to its uncertainty.
    fn during(&self, wall: Duration, domain: &Domain) -> Option<Energy> {
        let of = |window: &Metered| {
            let mut same = window
                .domains
                .iter()
                .filter(|other| other.name == domain.name && other.source == domain.source);
            let times = wall.as_secs_f64() / window.wall.as_secs_f64();
            same.next().map(|same| same.energy.clone().scaled(times))
        };
        let (before, after) = (of(&self.before)?, of(&self.after)?);
        let drifted = before
            .best()
            .zip(after.best())
            .is_some_and(|(before, after)| 10 * before.0.abs_diff(after.0) > before.0.max(after.0));
        let mean = before.mean(after);
        Some(if drifted { mean.with_caveat(Caveat::IdleDrift) } else { mean })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::amount::Microjoules;
    use crate::class::Class;
    use crate::metered::Coverage;

    fn window(seconds: u64, joules: f64) -> Metered {
        let energy = Energy::measured(
            "package-0",
            Microjoules::from_joules(joules),
            Microjoules::from_joules(0.1),
        );
        let extent = crate::meter::Extent::Package;
        let domain = Domain {
            name: "package-0".into(),
            source: "fake",
            energy,
            in_sum: true,
            overlaps: false,
            extent,
        };
        Metered {
            wall: Duration::from_secs(seconds),
            domains: vec![domain],
            coverage: Coverage::Whole,
        }
    }

    #[test]
    fn the_drift_of_the_idle_power_is_in_the_error() {
        let idle = Idle::new(window(2, 10.0), window(2, 14.0));
        let net = idle.net(&window(10, 200.0)).sum();
        // 5 and 7 W are 60 J in 10 s, give or take 10 and what the readings hide.
        assert_eq!(net.best(), Some(Microjoules::from_joules(140.0)));
        assert_eq!(net.to_string(), "140 J ± 11 (attributed)");
        assert_eq!(net.class(), Class::Attributed);
        assert!(net.caveats().any(|caveat| caveat == Caveat::IdleDrift));
        let steady = Idle::new(window(2, 10.0), window(2, 10.5)).net(&window(10, 200.0)).sum();
        assert!(!steady.caveats().any(|caveat| caveat == Caveat::IdleDrift));
    }

    #[test]
    fn without_the_domain_at_rest_nothing_is_net() {
        let mut before = window(2, 10.0);
        before.domains.clear();
        let net = Idle::new(before, window(2, 10.0)).net(&window(10, 200.0));
        assert_eq!(net.sum().interval(), None);
    }
}
