//! Energies in JSON, which neither says nor takes what contradicts their class.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::{Class, Energy, Microjoules};
use crate::caveat::Caveat;

/// An energy as JSON has it.
#[derive(Serialize, Deserialize)]
pub struct Document {
    class: Class,
    #[serde(skip_serializing_if = "Option::is_none")]
    energy_uj: Option<Interval>,
    #[serde(skip_serializing_if = "Option::is_none")]
    energy_model_uj: Option<Interval>,
    #[serde(default)]
    covers: BTreeSet<String>,
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    missing: BTreeSet<String>,
    #[serde(default)]
    gaps: Vec<String>,
    #[serde(default)]
    caveats: BTreeSet<Caveat>,
}

/// Microjoules, in the order of the keys.
#[derive(Serialize, Deserialize)]
struct Interval {
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<u64>,
    hi: u64,
    lo: u64,
}

impl From<Energy> for Document {
    fn from(energy: Energy) -> Self {
        let interval = energy.interval().map(|(lo, hi)| Interval {
            best: energy.best.map(|best| best.0),
            hi: hi.0,
            lo: lo.0,
        });
        let (energy_uj, energy_model_uj) =
            if energy.class == Class::Modelled { (None, interval) } else { (interval, None) };
        let Energy { class, covers, missing, gaps, caveats, .. } = energy;
        Self { class, energy_uj, energy_model_uj, covers, missing, gaps, caveats }
    }
}

impl TryFrom<Document> for Energy {
    type Error = String;

    fn try_from(document: Document) -> Result<Self, String> {
        let Document { class, energy_uj, energy_model_uj, covers, missing, gaps, caveats } =
            document;
        let (key, wanted, other_key, other) = if class == Class::Modelled {
            ("energy_model_uj", energy_model_uj, "energy_uj", energy_uj)
        } else {
            ("energy_uj", energy_uj, "energy_model_uj", energy_model_uj)
        };
        let (lo, best, hi) = match (class, wanted) {
            (Class::Unavailable, None) => (0, None, 0),
            (Class::Unavailable, Some(_)) => {
                return Err(format!("an energy is {class} and has {key}"));
            }
            (_, None) => return Err(format!("an energy is {class} and has no {key}")),
            (Class::Modelled, Some(Interval { lo, hi, .. })) => (lo, None, hi),
            (_, Some(Interval { best: None, .. })) => {
                return Err(format!("an energy is {class}, and {key} has no best"));
            }
            (_, Some(Interval { lo, best, hi })) => (lo, best, hi),
        };
        if other.is_some() {
            return Err(format!("an energy is {class} and has {other_key}"));
        }
        let middle = best.unwrap_or(lo);
        if !(lo <= middle && middle <= hi) {
            return Err(format!("{key} is not an interval: lo {lo}, hi {hi}"));
        }
        let (lo, best, hi) = (Microjoules(lo), best.map(Microjoules), Microjoules(hi));
        Ok(Self { class, lo, best, hi, covers, missing, gaps, caveats })
    }
}
