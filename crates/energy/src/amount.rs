//! Amounts of energy that cannot be had without what they are worth.

mod json;

use std::collections::BTreeSet;
use std::fmt;
use std::iter::Sum;
use std::ops::Add;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::caveat::Caveat;
use crate::class::Class;
use crate::figure::Figure;
use json::Document;

/// Energy in µJ; 64 bits of them last for 18 TJ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Microjoules(pub u64);

impl Microjoules {
    /// As much, in J.
    pub fn joules(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// Rounds to µJ; negative values and NaN give 0.
    pub fn from_joules(joules: f64) -> Self {
        Self((joules * 1e6).round() as u64)
    }

    /// The power that spends this in `time`.
    pub fn over(self, time: Duration) -> Watts {
        Watts(self.joules() / time.as_secs_f64())
    }
}

impl Add for Microjoules {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Power in W.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Watts(pub f64);

impl Watts {
    /// The energy that is spent in `time`.
    pub(crate) fn during(self, time: Duration) -> Microjoules {
        Microjoules::from_joules(self.0 * time.as_secs_f64())
    }

    /// The time in which `energy` is spent.
    pub(crate) fn spends(self, energy: Microjoules) -> Duration {
        Duration::try_from_secs_f64(energy.joules() / self.0).unwrap_or(Duration::MAX)
    }
}

/// An amount of energy: an interval, a best value where there is one, and what they are worth.
///
/// The fields are private, so that no modelled amount can have a best value, and no sum a better
/// class than its weakest part. In JSON it has `energy_uj` where something was measured,
/// `energy_model_uj` where it was not, and neither where nothing is known; what contradicts that is
/// not read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Document", into = "Document")]
pub struct Energy {
    class: Class,
    lo: Microjoules,
    best: Option<Microjoules>,
    hi: Microjoules,
    covers: BTreeSet<String>,
    missing: BTreeSet<String>,
    gaps: Vec<String>,
    caveats: BTreeSet<Caveat>,
}

impl Energy {
    /// The reading of a domain's counter: `best`, with an error of at most `uncertainty`. The
    /// accuracy of the counter itself is unknown and not included.
    pub fn measured(domain: &str, best: Microjoules, uncertainty: Microjoules) -> Self {
        Self::of(Class::Measured, domain, best, uncertainty)
    }

    /// What samples of a domain's power add up to, off by `uncertainty` at most.
    pub fn integrated(domain: &str, best: Microjoules, uncertainty: Microjoules) -> Self {
        Self::of(Class::Integrated, domain, best, uncertainty)
    }

    /// What a model says of a domain: an interval, never a point.
    pub fn modelled(domain: &str, lo: Microjoules, hi: Microjoules) -> Self {
        let covers = BTreeSet::from([domain.to_owned()]);
        let (lo, hi) = (lo.min(hi), lo.max(hi));
        Self { lo, hi, covers, ..Self::nothing(Class::Modelled) }
    }

    /// That a domain's energy is not known.
    pub fn unavailable(caveat: Caveat) -> Self {
        Self { caveats: BTreeSet::from([caveat]), ..Self::nothing(Class::Unavailable) }
    }

    fn of(class: Class, domain: &str, best: Microjoules, uncertainty: Microjoules) -> Self {
        Self {
            lo: Microjoules(best.0.saturating_sub(uncertainty.0)),
            best: Some(best),
            hi: best + uncertainty,
            covers: BTreeSet::from([domain.to_owned()]),
            ..Self::nothing(class)
        }
    }

    fn nothing(class: Class) -> Self {
        Self {
            class,
            lo: Microjoules(0),
            best: None,
            hi: Microjoules(0),
            covers: BTreeSet::new(),
            missing: BTreeSet::new(),
            gaps: Vec::new(),
            caveats: BTreeSet::new(),
        }
    }

    /// Attributes a share of it, from 0 to 1; the class becomes attributed at best.
    #[must_use]
    pub fn share(mut self, share: f64) -> Self {
        let of =
            |whole: Microjoules| Microjoules::from_joules(whole.joules() * share.clamp(0.0, 1.0));
        self.class = self.class.min(Class::Attributed);
        (self.lo, self.best, self.hi) = (of(self.lo), self.best.map(of), of(self.hi));
        self
    }

    /// The same as a part that another energy may have already: from nothing to all of it.
    #[must_use]
    pub(crate) fn perhaps(mut self) -> Self {
        self.lo = Microjoules(0);
        self.best = self.best.map(|best| Microjoules(best.0 / 2));
        self
    }

    /// What is left of it without `idle`, what the same domains would have taken at rest: at best
    /// attributed. Where the two do not cover the same domains, nothing is known.
    #[must_use]
    pub(crate) fn above(mut self, idle: Self) -> Self {
        self.caveats.extend(idle.caveats.iter().copied());
        if self.covers != idle.covers {
            return Self { caveats: self.caveats, ..Self::nothing(Class::Unavailable) }
                .with_caveat(Caveat::DomainMissing);
        }
        if idle.lo > self.hi {
            // The machine did something at rest that it did not do at work.
            return Self { caveats: self.caveats, ..Self::nothing(Class::Unavailable) }
                .with_caveat(Caveat::IdleDrift);
        }
        let less =
            |whole: Microjoules, part: Microjoules| Microjoules(whole.0.saturating_sub(part.0));
        self.class = self.class.min(idle.class).min(Class::Attributed);
        self.gaps.extend(idle.gaps);
        self.missing.extend(idle.missing);
        (self.lo, self.hi) = (less(self.lo, idle.hi), less(self.hi, idle.lo));
        let both = self.best.zip(idle.best).map(|(whole, part)| less(whole, part));
        self.best = both.filter(|_| self.class > Class::Modelled);
        self
    }

    /// As much for another time: `times` as long, under the same power.
    #[must_use]
    pub fn scaled(mut self, times: f64) -> Self {
        let of = |whole: Microjoules| Microjoules::from_joules(whole.joules() * times.max(0.0));
        (self.lo, self.best, self.hi) = (of(self.lo), self.best.map(of), of(self.hi));
        self
    }

    /// The sum of a time and of the next, which begins where it ends. Counters show at the end of the
    /// one what they show at the beginning of the next, so the sum of two that were measured is off
    /// by what one of them is. Other sums are off by both.
    #[must_use]
    pub fn followed_by(self, next: Self) -> Self {
        let off = |energy: &Self| {
            let (lo, hi) = (energy.lo, energy.hi);
            energy.best.map(|best| (hi.0 - best.0).max(best.0 - lo.0))
        };
        let off = off(&self).zip(off(&next)).map(|(one, other)| one.max(other));
        let both = self + next;
        match off.zip(both.best).filter(|_| both.class == Class::Measured) {
            Some((off, best)) => Self {
                lo: Microjoules(best.0.saturating_sub(off)),
                hi: best + Microjoules(off),
                ..both
            },
            None => both,
        }
    }

    /// The mean of two of the same domains. That they differ is added to what it may be off by.
    #[must_use]
    pub fn mean(self, other: Self) -> Self {
        let (lo, hi) = (self.lo.min(other.lo), self.hi.max(other.hi));
        let both = (self + other).scaled(0.5);
        Self { lo, hi, ..both }
    }

    /// The same domains, doubts and gaps with another value, which is no model's.
    pub(crate) fn replaced(self, class: Class, best: f64, (lo, hi): (f64, f64)) -> Self {
        let (lo, hi) = (Microjoules::from_joules(lo.max(0.0)), Microjoules::from_joules(hi));
        Self { class, lo, best: Some(Microjoules::from_joules(best)), hi, ..self }
    }

    /// The same as a part of a sum whose other domains, these, could not be read.
    #[must_use]
    pub(crate) fn without(mut self, missing: impl IntoIterator<Item = String>) -> Self {
        self.missing.extend(missing);
        if self.missing.is_empty() { self } else { self.with_caveat(Caveat::DomainMissing) }
    }

    /// The same, with a doubt.
    #[must_use]
    pub fn with_caveat(mut self, caveat: Caveat) -> Self {
        self.caveats.insert(caveat);
        self
    }

    /// The same, with the reasons of reads that failed.
    #[must_use]
    pub fn with_gaps(mut self, gaps: impl IntoIterator<Item = String>) -> Self {
        self.gaps.extend(gaps);
        if !self.gaps.is_empty() {
            self.caveats.insert(Caveat::Gap);
        }
        self
    }

    /// What it is worth.
    pub fn class(&self) -> Class {
        self.class
    }

    /// The least and the most that it can be; `None` where nothing is known.
    pub fn interval(&self) -> Option<(Microjoules, Microjoules)> {
        (self.class > Class::Unavailable).then_some((self.lo, self.hi))
    }

    /// The best value; `None` if it is unknown or a model contributed to it.
    pub fn best(&self) -> Option<Microjoules> {
        self.best
    }

    /// The domains whose energy is in it.
    pub fn covers(&self) -> impl Iterator<Item = &str> {
        self.covers.iter().map(String::as_str)
    }

    /// The domains that belong to it and could not be read.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        self.missing.iter().map(String::as_str)
    }

    /// Why reads failed.
    pub fn gaps(&self) -> &[String] {
        &self.gaps
    }

    /// The doubts about it.
    pub fn caveats(&self) -> impl Iterator<Item = Caveat> {
        self.caveats.iter().copied()
    }

    /// A figure that follows from the joules, rising or falling all the way: a power, a price per
    /// byte. Its class is this one's; `None` where nothing is known, or it has no end.
    pub fn figure(&self, unit: &'static str, of_joules: impl Fn(f64) -> f64) -> Option<Figure> {
        let (lo, hi) = self.interval()?;
        let ends = (of_joules(lo.joules()), of_joules(hi.joules()));
        if !(ends.0.is_finite() && ends.1.is_finite()) {
            return None;
        }
        let best = self.best.map(|best| of_joules(best.joules()));
        Some(Figure::new(self.class, unit, (ends.0.min(ends.1), ends.0.max(ends.1)), best))
    }
}

impl Add for Energy {
    type Output = Self;

    /// The sum of two domains or of two times. It is worth what its weaker part is worth.
    fn add(mut self, other: Self) -> Self {
        self.class = self.class.min(other.class);
        self.lo = self.lo + other.lo;
        self.hi = self.hi + other.hi;
        let both = self.best.zip(other.best).map(|(one, other)| one + other);
        self.best = both.filter(|_| self.class > Class::Modelled);
        self.covers.extend(other.covers);
        self.missing.extend(other.missing);
        self.gaps.extend(other.gaps);
        self.caveats.extend(other.caveats);
        self
    }
}

impl Sum for Energy {
    /// The sum of all; of nothing, that nothing is known, for a zero would say otherwise.
    fn sum<I: Iterator<Item = Self>>(parts: I) -> Self {
        parts
            .reduce(|sum, part| sum + part)
            .unwrap_or_else(|| Self::unavailable(Caveat::DomainMissing))
    }
}

impl fmt::Display for Energy {
    /// `2.31 J ± 0.04` measured, `~2-5 J (model, not measured)` modelled.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.figure("J", |joules| joules) {
            Some(figure) => figure.fmt(f),
            None => f.pad("unavailable"),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn uj(joules: f64) -> Microjoules {
        Microjoules::from_joules(joules)
    }

    #[test]
    fn golden_texts() {
        let measured = Energy::measured("package-0", uj(2.314_9), uj(0.038));
        assert_eq!(measured.to_string(), "2.31 J ± 0.04");
        let modelled = Energy::modelled("cpu", uj(2.3), uj(4.17));
        assert_eq!(modelled.to_string(), "~2.3-4.2 J (model, not measured)");
        assert_eq!(
            Energy::modelled("cpu", uj(2.0), uj(5.0)).to_string(),
            "~2-5 J (model, not measured)"
        );
        let mixed = measured.clone() + modelled;
        assert_eq!(mixed.to_string(), "~4.5-6.6 J (model, not measured)");
        let unknown = measured.clone() + Energy::unavailable(Caveat::DomainMissing);
        assert_eq!(unknown.to_string(), "unavailable");
        let sampled = measured + Energy::integrated("hwmon", uj(1.0), uj(0.5));
        assert_eq!(sampled.to_string(), "3.3 J ± 0.6 (integrated)");
    }

    #[test]
    fn the_uncertainty_of_adjoining_times_does_not_grow() {
        let window = || Energy::measured("package-0", uj(10.0), uj(0.1));
        let day = (0..1000).fold(window(), |sum, _| sum.followed_by(window()));
        assert_eq!(day.to_string(), "10010.0 J ± 0.1");
        // What was sampled is off in each time by itself.
        let sampled = || Energy::integrated("hwmon", uj(10.0), uj(0.1));
        assert_eq!(sampled().followed_by(sampled()).to_string(), "20.0 J ± 0.2 (integrated)");
        let unknown = window().followed_by(Energy::unavailable(Caveat::Gap));
        assert_eq!(unknown.interval(), None);
    }

    #[test]
    fn golden_json_never_mixes_classes() {
        let measured = Energy::measured("package-0", Microjoules(2_310_000), Microjoules(40_000));
        let modelled = Energy::modelled("cpu", Microjoules(2_000_000), Microjoules(5_000_000));
        let json = |energy: &Energy| serde_json::to_string(energy).unwrap();
        assert_eq!(
            json(&measured),
            r#"{"class":"measured","energy_uj":{"best":2310000,"hi":2350000,"lo":2270000},"covers":["package-0"],"gaps":[],"caveats":[]}"#
        );
        assert_eq!(
            json(&(measured + modelled)),
            r#"{"class":"modelled","energy_model_uj":{"hi":7350000,"lo":4270000},"covers":["cpu","package-0"],"gaps":[],"caveats":[]}"#
        );
        assert_eq!(
            json(&Energy::unavailable(Caveat::Stuck)),
            r#"{"class":"unavailable","covers":[],"gaps":[],"caveats":["stuck"]}"#
        );
    }

    #[test]
    fn a_share_is_attributed_and_never_better() {
        let measured = Energy::measured("package-0", uj(10.0), uj(1.0));
        assert_eq!(measured.share(0.25).to_string(), "2.5 J ± 0.3 (attributed)");
        let modelled = Energy::modelled("cpu", uj(2.0), uj(4.0)).share(0.5);
        assert_eq!((modelled.class(), modelled.best()), (Class::Modelled, None));
        assert_eq!(modelled.interval(), Some((uj(1.0), uj(2.0))));
    }

    #[test]
    fn what_is_above_idle_is_attributed_too() {
        let gross = Energy::measured("package-0", uj(10.0), uj(1.0));
        let idle = Energy::measured("package-0", uj(4.0), uj(0.5));
        let net = gross.clone().above(idle.clone());
        assert_eq!((net.class(), net.best()), (Class::Attributed, Some(uj(6.0))));
        assert_eq!(net.interval(), Some((uj(4.5), uj(7.5))));
        let more = idle.clone().mean(Energy::measured("package-0", uj(5.0), uj(0.5)));
        assert_eq!((more.best(), more.interval()), (Some(uj(4.5)), Some((uj(3.5), uj(5.5)))));
        assert_eq!(more.class(), Class::Measured);
        // More at rest than at work is no zero.
        let none = idle.above(gross.clone());
        assert_eq!((none.class(), none.interval()), (Class::Unavailable, None));
        assert!(none.caveats().any(|caveat| caveat == Caveat::IdleDrift));
        let other = Energy::measured("package-1", uj(4.0), uj(0.5));
        assert_eq!(gross.clone().above(other).interval(), None);
        let modelled = gross.above(Energy::modelled("package-0", uj(1.0), uj(2.0)));
        assert_eq!((modelled.class(), modelled.best()), (Class::Modelled, None));
    }

    #[test]
    fn a_sum_of_nothing_is_not_zero() {
        let sum: Energy = std::iter::empty().sum();
        assert_eq!((sum.class(), sum.interval()), (Class::Unavailable, None));
    }

    fn any_energy() -> impl Strategy<Value = Energy> {
        (0..4, 0..1u64 << 40, 0..1u64 << 40).prop_map(|(class, a, b)| match class {
            0 => Energy::measured("a", Microjoules(a), Microjoules(b)),
            1 => Energy::integrated("b", Microjoules(a), Microjoules(b)),
            2 => Energy::modelled("c", Microjoules(a), Microjoules(b)),
            _ => Energy::unavailable(Caveat::Gap),
        })
    }

    proptest! {
        #[test]
        fn a_sum_is_worth_what_its_weakest_part_is(parts in prop::collection::vec(any_energy(), 1..6)) {
            let weakest = parts.iter().map(Energy::class).min().unwrap();
            let sum: Energy = parts.into_iter().sum();
            prop_assert_eq!(sum.class(), weakest);
            prop_assert_eq!(sum.best().is_some(), weakest > Class::Modelled);
            let json = serde_json::to_value(&sum).unwrap();
            let read: Energy = serde_json::from_value(json.clone()).unwrap();
            prop_assert_eq!(&serde_json::to_value(read).unwrap(), &json);
            prop_assert_eq!(json.get("energy_uj").is_some(), weakest > Class::Modelled);
            prop_assert_eq!(json.get("energy_model_uj").is_some(), weakest == Class::Modelled);
            prop_assert_eq!(sum.to_string().contains("model"), weakest == Class::Modelled);
        }
    }
}
