//! What joules a CPU may have drawn, where nothing counts them: an interval, never a point.
//!
//! The models in use differ by a factor of 3.5 at half load. They know only time, utilisation and
//! the CPU's design power, so they see no difference between two ciphers that take equally long.

use std::time::Duration;

use crate::amount::{Energy, Microjoules, Watts};
use crate::caveat::Caveat;

/// The models whose least and greatest answer are the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Straight lines through 0.12, 0.32, 0.75 and 1.02 of the design power at 0, 10, 50 and 100 %
    /// (Teads' curve for cloud machines).
    Teads,
    /// 0.1 + 0.9 u³ of the design power (CodeCarbon).
    Cubic,
    /// 0.12 + 0.88 u of the design power, from Teads' idle power.
    Linear,
    /// P = Ps + A C V² f, the textbook's of CMOS: leakage Ps, 0.3 of the design power, and 0.7 of
    /// it for an activity A at the full clock. The only one that knows the clock.
    Cmos,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::Teads, Self::Cubic, Self::Linear, Self::Cmos];

    /// The share of the design power that a CPU draws at a utilisation of 0 to 1, and at a clock of
    /// 0 to 1 of its full one.
    pub fn share(self, utilisation: f64, clock: f64) -> f64 {
        let (u, f) = (utilisation.clamp(0.0, 1.0), clock.clamp(0.0, 1.0));
        match self {
            Self::Teads => {
                let points = [(0.0, 0.12), (0.1, 0.32), (0.5, 0.75), (1.0, 1.02)];
                let line = points.windows(2).find(|line| u <= line[1].0).unwrap_or(&points[2..]);
                let [(u0, p0), (u1, p1)] = [line[0], line[1]];
                p0 + (p1 - p0) * (u - u0) / (u1 - u0)
            }
            Self::Cubic => 0.1 + 0.9 * u.powi(3),
            Self::Linear => 0.12 + 0.88 * u,
            // Voltage falls with the clock, in a straight line to 0.6 of the full one.
            Self::Cmos => 0.3 + 0.7 * u * f * (0.6 + 0.4 * f).powi(2),
        }
    }
}

/// The design power of the CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tdp {
    /// Given by the user.
    Given(Watts),
    /// Not given: from a laptop's 15 W to a large server's 500 W.
    Assumed,
}

impl Tdp {
    /// The least and the most that it may be.
    pub fn range(self) -> (Watts, Watts) {
        match self {
            Self::Given(watts) => (watts, watts),
            Self::Assumed => (Watts(15.0), Watts(500.0)),
        }
    }
}

/// How busy a CPU was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Load {
    /// For how long.
    pub wall: Duration,
    /// For what share of it, from 0 to 1.
    pub utilisation: f64,
    /// At what share of its full clock.
    pub clock: f64,
}

/// What the models say of a CPU under a load.
pub fn modelled(load: Load, tdp: Tdp) -> Energy {
    interval(load, tdp, |model| model.share(load.utilisation, load.clock))
}

/// What they say of the load alone, without what an idle CPU would have taken.
pub fn modelled_net(load: Load, tdp: Tdp) -> Energy {
    interval(load, tdp, |model| {
        model.share(load.utilisation, load.clock) - model.share(0.0, load.clock)
    })
}

fn interval(load: Load, tdp: Tdp, share: impl Fn(Model) -> f64) -> Energy {
    let shares = Model::ALL.map(share);
    let least = shares.into_iter().fold(f64::INFINITY, f64::min);
    let most = shares.into_iter().fold(0.0, f64::max);
    let (from, to) = tdp.range();
    let joules =
        |share: f64, tdp: Watts| Microjoules::from_joules(share * tdp.during(load.wall).joules());
    let energy = Energy::modelled("cpu", joules(least, from), joules(most, to));
    let energy = energy.with_caveat(Caveat::UtilisationOnly);
    match tdp {
        Tdp::Given(_) => energy,
        Tdp::Assumed => energy.with_caveat(Caveat::TdpAssumed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_models_at_their_points() {
        for (u, p) in
            [(0.0, 0.12), (0.05, 0.22), (0.1, 0.32), (0.5, 0.75), (1.0, 1.02), (9.0, 1.02)]
        {
            assert!((Model::Teads.share(u, 1.0) - p).abs() < 1e-9, "{u}");
        }
        let ratio = Model::Teads.share(0.5, 1.0) / Model::Cubic.share(0.5, 1.0);
        assert!((3.4..3.6).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_lower_clock_lowers_what_is_known_of_it() {
        let at = |clock| Model::Cmos.share(1.0, clock);
        assert!((at(1.0) - 1.0).abs() < 1e-9);
        // 0.3 + 0.7 · 0.5 · 0.8²
        assert!((at(0.5) - 0.524).abs() < 1e-9, "{}", at(0.5));
        assert!(
            at(0.0) < at(0.5) && Model::Linear.share(1.0, 0.5) == Model::Linear.share(1.0, 1.0)
        );
    }

    #[test]
    fn the_interval_holds_every_model() {
        let load = Load { wall: Duration::from_secs(1), utilisation: 0.5, clock: 1.0 };
        let energy = modelled(load, Tdp::Given(Watts(100.0)));
        assert_eq!(energy.interval(), Some((Microjoules(21_250_000), Microjoules(75_000_000))));
        assert_eq!(energy.best(), None);
        assert_eq!(energy.to_string(), "~21-75 J (model, not measured)");
        let net = modelled_net(load, Tdp::Given(Watts(100.0)));
        assert_eq!(net.to_string(), "~11-63 J (model, not measured)");
        let wide = modelled(load, Tdp::Assumed);
        assert_eq!(wide.to_string(), "~3.1-380 J (model, not measured)");
        assert!(wide.caveats().any(|caveat| caveat == Caveat::TdpAssumed));
    }
}
