//! An energy as a document tells it. A model's interval has no `best`, and nothing here makes one.

use anyhow::{Context, bail, ensure};

use crate::amounts::{three, two, unit};
use crate::at::{At, scalar};

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
    /// From nobody.
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

impl Reading {
    /// Reads `{class, energy_uj | energy_model_uj, covers, gaps, caveats}`.
    ///
    /// # Errors
    /// That class and numbers contradict each other.
    pub fn read(at: &At<'_>) -> anyhow::Result<Self> {
        let class = at.text("class")?.with_context(|| format!("{at} has no class"))?;
        let (counted, modelled) = (at.child("energy_uj"), at.child("energy_model_uj"));
        let amount = match class.as_str() {
            "measured" => counted_as("measured", at)?,
            "integrated" => counted_as("integrated", at)?,
            "attributed" => counted_as("attributed", at)?,
            "modelled" => {
                let interval = modelled.as_ref();
                let interval = interval.with_context(|| format!("{at} has no energy_model_uj"))?;
                let (lo, hi) = (joules(interval, "lo")?, joules(interval, "hi")?);
                ensure!(lo <= hi, "{interval} is not an interval");
                Amount::Modelled { lo, hi }
            }
            "unavailable" => Amount::Unavailable,
            other => bail!("{at} has class {other:?}, which is not known"),
        };
        let is_counted = matches!(amount, Amount::Counted { .. });
        ensure!(is_counted || counted.is_none(), "{at} is {class} and has energy_uj");
        let is_modelled = matches!(amount, Amount::Modelled { .. });
        ensure!(is_modelled || modelled.is_none(), "{at} is {class} and has energy_model_uj");
        let mut covers = names(at, "covers")?;
        covers.sort();
        Ok(Self { amount, covers, gaps: names(at, "gaps")?, caveats: names(at, "caveats")? })
    }

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

fn counted_as(class: &'static str, at: &At<'_>) -> anyhow::Result<Amount> {
    let interval = at.child("energy_uj");
    let interval = interval.with_context(|| format!("{at} is {class} and has no energy_uj"))?;
    let [lo, best, hi] = ["lo", "best", "hi"].map(|key| joules(&interval, key));
    let joules = Spread { lo: lo?, best: best?, hi: hi? };
    ensure!(joules.lo <= joules.best && joules.best <= joules.hi, "{interval} is not an interval");
    Ok(Amount::Counted { class, joules })
}

fn joules(at: &At<'_>, key: &str) -> anyhow::Result<f64> {
    let microjoules = at.whole(key)?.with_context(|| format!("{at} has no {key}"))?;
    Ok(microjoules as f64 / 1e6)
}

fn names(at: &At<'_>, key: &str) -> anyhow::Result<Vec<String>> {
    Ok(at.list(key)?.iter().map(|entry| scalar(entry.value)).collect())
}
