//! An energy as a document gives it. A model's interval has no `best`, and nothing here makes one.

use wattlock_energy::{Caveat, Energy};

use crate::amounts::{three, two, unit};

/// Joules, of whichever worth.
#[derive(Clone, Debug)]
pub struct Reading {
    pub amount: Amount,
    /// The domains that are in it, sorted.
    pub covers: Vec<String>,
    pub gaps: Vec<String>,
    pub caveats: Vec<String>,
}

/// How many joules, by whom.
#[derive(Clone, Debug, PartialEq)]
pub enum Amount {
    /// From a sensor: the class is "measured", "integrated" or "attributed".
    Counted { class: &'static str, joules: Spread },
    /// From formulas: an interval, in which no point is better than another.
    Modelled { lo: f64, hi: f64 },
    /// No source gave it.
    Unavailable,
}

/// A number and how far off it may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub lo: f64,
    pub best: f64,
    pub hi: f64,
}

/// The words that stand with every number of a model.
pub const MODEL: &str = "model, not measured";

impl From<&Energy> for Reading {
    fn from(energy: &Energy) -> Self {
        let amount = match (energy.interval(), energy.best()) {
            (None, _) => Amount::Unavailable,
            (Some((lo, hi)), None) => Amount::Modelled { lo: lo.joules(), hi: hi.joules() },
            (Some((lo, hi)), Some(best)) => {
                let joules = Spread { lo: lo.joules(), best: best.joules(), hi: hi.joules() };
                Amount::Counted { class: energy.class().name(), joules }
            }
        };
        Self {
            amount,
            covers: energy.covers().map(str::to_owned).collect(),
            gaps: energy.gaps().to_vec(),
            caveats: energy.caveats().map(Caveat::name).map(str::to_owned).collect(),
        }
    }
}

impl Reading {
    /// The name of its class.
    pub fn class(&self) -> &'static str {
        match self.amount {
            Amount::Counted { class, .. } => class,
            Amount::Modelled { .. } => "modelled",
            Amount::Unavailable => "unavailable",
        }
    }

    /// The number and its class, each joule worth `scale` of `name`: `J`, or `J/B` with the inverse
    /// of the bytes.
    pub fn told(&self, scale: f64, name: &str) -> String {
        let largest = match &self.amount {
            // Nothing, give or take something: what is given or taken has the unit.
            Amount::Counted { joules, .. } if joules.best == 0.0 => joules.hi,
            Amount::Counted { joules, .. } => joules.best,
            Amount::Modelled { hi, .. } => *hi,
            Amount::Unavailable => 0.0,
        };
        let (one, name) = unit(largest * scale, name);
        self.told_in(scale / one, &name)
    }

    /// The same, in a unit that is given.
    pub fn told_in(&self, scale: f64, unit: &str) -> String {
        match &self.amount {
            Amount::Counted { class, joules } => {
                let off = (joules.hi - joules.best).max(joules.best - joules.lo) * scale;
                let best = three(joules.best * scale);
                format!("{best} {unit} ± {}, {class}", like(&best, off))
            }
            Amount::Modelled { lo, hi } => {
                format!("~{}–{} {unit} ({MODEL})", two(lo * scale), two(hi * scale))
            }
            Amount::Unavailable => "unavailable".to_owned(),
        }
    }
}

/// With as many decimals as the number it belongs to, unless nothing would be left of it.
fn like(best: &str, off: f64) -> String {
    let decimals = best.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let text = format!("{off:.decimals$}");
    let nothing = text.bytes().all(|digit| matches!(digit, b'0' | b'.'));
    if best.contains('e') || (nothing && off > 0.0) { two(off) } else { text }
}
