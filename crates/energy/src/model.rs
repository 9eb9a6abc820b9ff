//! What joules a CPU may have drawn, where nothing counts them: an interval, never a point.
//!
//! The models in use differ by 3.5 times at half load. None knows more than time, utilisation and
//! the CPU's design power, so none can tell a thrifty cipher from a wasteful one that takes as long.

use std::time::Duration;

use crate::{Caveat, Energy, Microjoules, Watts};

/// The models whose least and greatest answer are the interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Straight lines through 0.12, 0.32, 0.75 and 1.02 of the design power at 0, 10, 50 and 100 %
    /// (Teads' curve for cloud machines).
    Teads,
    /// 0.1 + 0.9 u³ of the design power (CodeCarbon).
    Cubic,
    /// 0.12 + 0.88 u of the design power: also P = Ps + A C V² f, the textbook's, at one clock and
    /// voltage, with Teads' idle power for Ps.
    Linear,
}

impl Model {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Teads, Self::Cubic, Self::Linear];

    /// The share of the design power that a CPU draws at a utilisation of 0 to 1.
    pub fn share(self, utilisation: f64) -> f64 {
        let u = utilisation.clamp(0.0, 1.0);
        match self {
            Self::Teads => {
                let points = [(0.0, 0.12), (0.1, 0.32), (0.5, 0.75), (1.0, 1.02)];
                let line = points.windows(2).find(|line| u <= line[1].0).unwrap_or(&points[2..]);
                let [(u0, p0), (u1, p1)] = [line[0], line[1]];
                p0 + (p1 - p0) * (u - u0) / (u1 - u0)
            }
            Self::Cubic => 0.1 + 0.9 * u.powi(3),
            Self::Linear => 0.12 + 0.88 * u,
        }
    }
}

/// The design power of the CPU.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tdp {
    /// Somebody looked it up.
    Given(Watts),
    /// Nobody did: from a laptop's 15 W to a large server's 500 W.
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

/// What the models say of a CPU that was busy for a share of `wall`.
pub fn modelled(wall: Duration, utilisation: f64, tdp: Tdp) -> Energy {
    let shares = Model::ALL.map(|model| model.share(utilisation));
    let least = shares.into_iter().fold(f64::INFINITY, f64::min);
    let most = shares.into_iter().fold(0.0, f64::max);
    let (from, to) = tdp.range();
    let joules =
        |share: f64, tdp: Watts| Microjoules::from_joules(share * tdp.during(wall).joules());
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
            assert!((Model::Teads.share(u) - p).abs() < 1e-9, "{u}");
        }
        let ratio = Model::Teads.share(0.5) / Model::Cubic.share(0.5);
        assert!((3.4..3.6).contains(&ratio), "{ratio}");
    }

    #[test]
    fn the_interval_holds_every_model() {
        let second = Duration::from_secs(1);
        let energy = modelled(second, 0.5, Tdp::Given(Watts(100.0)));
        assert_eq!(energy.interval(), Some((Microjoules(21_250_000), Microjoules(75_000_000))));
        assert_eq!(energy.best(), None);
        assert_eq!(energy.to_string(), "~21-75 J (model, not measured)");
        let wide = modelled(second, 0.5, Tdp::Assumed);
        assert_eq!(wide.to_string(), "~3.1-380 J (model, not measured)");
        assert!(wide.caveats().any(|caveat| caveat == Caveat::TdpAssumed));
    }
}
