//! Metrics in Prometheus' text form, as node_exporter's textfile collector reads them.
//!
//! What was measured and what was modelled have different *names*: a label would be lost in the
//! first `sum()`. What is not known has no metric, rather than a zero.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use anyhow::Context;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::{ConstGauge, Gauge};
use prometheus_client::registry::Registry;
use wattlock_energy::{Class, Figure};
use wattlock_file::Shown;

use crate::replace;

/// Gauges by name and labels, counters and histograms.
#[derive(Default)]
pub struct Metrics {
    registry: Registry,
    families: BTreeMap<String, Family<Vec<(String, String)>, Gauge<f64, AtomicU64>>>,
}

impl Metrics {
    /// One value.
    pub fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let family = self.families.entry(name.to_owned()).or_insert_with(|| {
            let family = Family::default();
            self.registry.register(name, help, family.clone());
            family
        });
        // A domain's name is a file's text, which a terminal might obey.
        let shown = |value: &str| value.replace(char::is_control, "\u{fffd}");
        let labels: Vec<_> =
            labels.iter().map(|(name, value)| ((*name).to_owned(), shown(value))).collect();
        family.get_or_create(&labels).set(value);
    }

    /// A count since the beginning.
    pub fn counter(&mut self, name: &str, help: &str, value: u64) {
        self.registry.register(name, help, ConstCounter::new(value));
    }

    /// A whole number that may fall as well.
    pub fn whole(&mut self, name: &str, help: &str, value: u64) {
        let value = i64::try_from(value).unwrap_or(i64::MAX);
        self.registry.register(name, help, ConstGauge::new(value));
    }

    /// How many of `count` values are at most each of the bounds, and the sum of all.
    pub fn histogram(
        &mut self,
        name: &str,
        help: &str,
        up_to: &[(f64, u64)],
        count: u64,
        sum: f64,
    ) {
        self.registry.register(name, help, Histogram { up_to: up_to.to_vec(), count, sum });
    }

    /// A figure of an energy, under the name of its class: one value and how far off it may be of
    /// what was measured, two ends of what was modelled.
    pub fn figure(
        &mut self,
        (stem, unit): (&str, &str),
        labels: &[(&str, &str)],
        figure: Option<&Figure>,
    ) {
        let Some(figure) = figure.filter(|figure| figure.class() > Class::Unavailable) else {
            return;
        };
        let class = figure.class();
        let (lo, hi) = figure.interval();
        let mut gauge = |what: &str, help: String, value| {
            self.gauge(&format!("wattlock_{class}_{stem}{what}_{unit}"), &help, labels, value);
        };
        let words = stem.replace('_', " ");
        match figure.best() {
            Some(best) => {
                gauge("", format!("The {words}, {class}"), best);
                let off = (best - lo).max(hi - best);
                gauge("_uncertainty", format!("How far off the {words} may be"), off);
            }
            None => {
                gauge("_lower", format!("The least {words} by any model; not measured"), lo);
                gauge("_upper", format!("The most {words} by any model; not measured"), hi);
            }
        }
    }

    /// Fails early where [`Metrics::write`] would fail late.
    ///
    /// # Errors
    /// That the file cannot be written.
    pub fn can_write(to: Option<&Path>) -> anyhow::Result<()> {
        let Some(path) = to else { return Ok(()) };
        let place = replace::place(path)?;
        replace::can_write(&place).with_context(|| format!("cannot write {}", Shown(path)))
    }

    /// The text itself.
    ///
    /// # Errors
    /// That a name or a value cannot be written.
    pub fn text(&self) -> anyhow::Result<String> {
        let mut text = String::new();
        encode(&mut text, &self.registry).context("cannot write metrics")?;
        Ok(text)
    }

    /// Replaces the file in one step, so that no reader sees half of it.
    ///
    /// # Errors
    /// Fails if it cannot be written.
    pub fn write(&self, to: Option<&Path>) -> anyhow::Result<()> {
        let Some(path) = to else { return Ok(()) };
        let text = self.text()?;
        let place = replace::place(path)?;
        replace::write(&place, text.as_bytes())
            .with_context(|| format!("cannot write {}", Shown(path)))
    }
}

/// A histogram that was counted elsewhere.
#[derive(Debug)]
struct Histogram {
    up_to: Vec<(f64, u64)>,
    count: u64,
    sum: f64,
}

impl EncodeMetric for Histogram {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), fmt::Error> {
        // Each bucket is without the ones below; the last is that of all larger values.
        let ends = self.up_to.iter().copied().chain([(f64::INFINITY, self.count)]);
        let mut below = 0;
        let buckets = ends.map(|(bound, up_to)| {
            let within = up_to.saturating_sub(below);
            below = up_to;
            (bound, within)
        });
        let buckets: Vec<_> = buckets.collect();
        encoder.encode_histogram::<NoLabelSet>(self.sum, self.count, &buckets, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

#[cfg(test)]
mod tests {
    use wattlock_energy::{Energy, Microjoules};

    use super::*;

    fn text(metrics: &Metrics) -> String {
        let mut text = String::new();
        encode(&mut text, &metrics.registry).expect("a string takes everything");
        text
    }

    #[test]
    fn a_histogram_counts_all_values_in_its_last_bucket() {
        let mut metrics = Metrics::default();
        metrics.counter("events", "Events", 7);
        metrics.whole("open", "Open", 0);
        metrics.histogram("delay", "Delay", &[(0.5, 2), (1.0, 3)], 7, 12.5);
        assert_eq!(
            text(&metrics),
            "\
# HELP events Events.
# TYPE events counter
events_total 7
# HELP open Open.
# TYPE open gauge
open 0
# HELP delay Delay.
# TYPE delay histogram
delay_sum 12.5
delay_count 7
delay_bucket{le=\"0.5\"} 2
delay_bucket{le=\"1.0\"} 3
delay_bucket{le=\"+Inf\"} 7
# EOF
"
        );
    }

    #[test]
    fn classes_never_share_a_name() {
        let measured = Energy::measured("package-0", Microjoules(2_000_000), Microjoules(250_000));
        let modelled = Energy::modelled("cpu", Microjoules(2_000_000), Microjoules(5_000_000));
        let mut metrics = Metrics::default();
        let labels = [("domain", "package-0")];
        for energy in [&measured, &modelled, &measured.clone().share(0.5)] {
            let figure = energy.figure("J", |joules| joules);
            metrics.figure(("energy", "joules"), &labels, figure.as_ref());
        }
        assert_eq!(
            text(&metrics),
            "\
# HELP wattlock_measured_energy_joules The energy, measured.
# TYPE wattlock_measured_energy_joules gauge
wattlock_measured_energy_joules{domain=\"package-0\"} 2.0
# HELP wattlock_measured_energy_uncertainty_joules How far off the energy may be.
# TYPE wattlock_measured_energy_uncertainty_joules gauge
wattlock_measured_energy_uncertainty_joules{domain=\"package-0\"} 0.25
# HELP wattlock_modelled_energy_lower_joules The least energy by any model; not measured.
# TYPE wattlock_modelled_energy_lower_joules gauge
wattlock_modelled_energy_lower_joules{domain=\"package-0\"} 2.0
# HELP wattlock_modelled_energy_upper_joules The most energy by any model; not measured.
# TYPE wattlock_modelled_energy_upper_joules gauge
wattlock_modelled_energy_upper_joules{domain=\"package-0\"} 5.0
# HELP wattlock_attributed_energy_joules The energy, attributed.
# TYPE wattlock_attributed_energy_joules gauge
wattlock_attributed_energy_joules{domain=\"package-0\"} 1.0
# HELP wattlock_attributed_energy_uncertainty_joules How far off the energy may be.
# TYPE wattlock_attributed_energy_uncertainty_joules gauge
wattlock_attributed_energy_uncertainty_joules{domain=\"package-0\"} 0.125
# EOF
"
        );
    }
}
