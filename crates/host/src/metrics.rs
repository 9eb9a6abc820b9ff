//! Metrics as text: in the form of OpenMetrics, and in Prometheus' classic one, as node_exporter's
//! textfile collector reads it.
//!
//! What was measured and what was modelled have different *names*: a label would be lost in the
//! first `sum()`. What is not known has no metric, rather than a zero.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::Path;
use std::sync::atomic::AtomicU64;

use anyhow::Context;
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::{ConstCounter, Counter};
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
    families: BTreeMap<String, Family<Labels, Gauge<f64, AtomicU64>>>,
    totals: BTreeMap<String, Family<Labels, Counter<f64, AtomicU64>>>,
}

type Labels = Vec<(String, String)>;

/// A form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus' classic form, 0.0.4.
    Classic,
}

impl Format {
    /// The one that the header `Accept` of a request prefers; the classic one where it names neither.
    pub fn accepted(accept: &str) -> Self {
        let quality = |wanted: &str| {
            let ranges = accept.split(',').filter_map(|range| {
                let mut parts = range.split(';').map(str::trim);
                parts.next().filter(|kind| kind.eq_ignore_ascii_case(wanted))?;
                let given = parts.find_map(|part| part.strip_prefix("q="));
                given.map_or(Some(1.0), |quality| quality.parse::<f64>().ok())
            });
            ranges.fold(0.0, f64::max)
        };
        let open = quality("application/openmetrics-text");
        let is_preferred = open > 0.0 && open >= quality("text/plain");
        if is_preferred { Self::OpenMetrics } else { Self::Classic }
    }

    /// The header `Content-Type` of the text.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Self::Classic => "text/plain; version=0.0.4; charset=utf-8",
        }
    }

    /// The same metrics as `text`, which is OpenMetrics', in this form. In the classic one a counter is
    /// described under the name of its sample, and nothing marks the end.
    pub fn of(self, text: &str) -> String {
        if self == Self::OpenMetrics {
            return text.to_owned();
        }
        let typed = text.lines().filter_map(|line| line.strip_prefix("# TYPE "));
        let counters: BTreeSet<&str> =
            typed.filter_map(|line| line.strip_suffix(" counter")).collect();
        let described = |line: &str| {
            ["# HELP ", "# TYPE "].into_iter().find_map(|word| {
                let (name, rest) = line.strip_prefix(word)?.split_once(' ')?;
                counters.contains(name).then(|| format!("{word}{name}_total {rest}"))
            })
        };
        let lines = text.lines().filter(|line| *line != "# EOF");
        lines.map(|line| described(line).unwrap_or_else(|| line.to_owned()) + "\n").collect()
    }
}

impl Metrics {
    /// One value.
    pub fn gauge(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let family = self.families.entry(name.to_owned()).or_insert_with(|| {
            let family = Family::default();
            self.registry.register(name, help, family.clone());
            family
        });
        family.get_or_create(&shown(labels)).set(value);
    }

    /// A number that has only risen since the beginning; its sample's name ends in `_total`.
    pub fn total(&mut self, name: &str, help: &str, labels: &[(&str, &str)], value: f64) {
        let family = self.totals.entry(name.to_owned()).or_insert_with(|| {
            let family = Family::default();
            self.registry.register(name, help, family.clone());
            family
        });
        family.get_or_create(&shown(labels)).inc_by(value.max(0.0));
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
        self.put(stem, unit, labels, figure, |metrics, name, help, labels, best| {
            metrics.gauge(name, help, labels, best);
        });
    }

    /// The same of an energy since the beginning: what was counted only rises, and is a counter. A
    /// model's ends may fall, and are gauges.
    pub fn figure_since(
        &mut self,
        (stem, unit): (&str, &str),
        labels: &[(&str, &str)],
        figure: Option<&Figure>,
    ) {
        self.put(stem, unit, labels, figure, |metrics, name, help, labels, best| {
            metrics.total(name, help, labels, best);
        });
    }

    fn put(
        &mut self,
        stem: &str,
        unit: &str,
        labels: &[(&str, &str)],
        figure: Option<&Figure>,
        put_best: impl FnOnce(&mut Self, &str, &str, &[(&str, &str)], f64),
    ) {
        let Some(figure) = figure.filter(|figure| figure.class() > Class::Unavailable) else {
            return;
        };
        let class = figure.class();
        let (lo, hi) = figure.interval();
        let name = |what: &str| format!("wattlock_{class}_{stem}{what}_{unit}");
        let words = format!("{} in {}", stem.replace('_', " "), unit.replace('_', " "));
        match figure.best() {
            Some(best) => {
                put_best(&mut *self, &name(""), &format!("The {words}, {class}"), labels, best);
                let off = (best - lo).max(hi - best);
                let help = format!("How far off the {words} may be");
                self.gauge(&name("_uncertainty"), &help, labels, off);
            }
            None => {
                for (what, end, value) in [("_lower", "least", lo), ("_upper", "most", hi)] {
                    let help = format!("The {end} {words} by any model; not measured");
                    self.gauge(&name(what), &help, labels, value);
                }
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

    /// The text itself, in the form of OpenMetrics.
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
        let text = Format::Classic.of(&self.text()?);
        let place = replace::place(path)?;
        replace::write(&place, text.as_bytes())
            .with_context(|| format!("cannot write {}", Shown(path)))
    }
}

/// Labels without what a terminal might obey: a domain's name is a file's text.
fn shown(labels: &[(&str, &str)]) -> Labels {
    let shown = |value: &str| value.replace(char::is_control, "\u{fffd}");
    labels.iter().map(|(name, value)| ((*name).to_owned(), shown(value))).collect()
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
    fn the_classic_form_describes_counters_by_their_samples() {
        let mut metrics = Metrics::default();
        metrics.counter("events", "Events", 7);
        metrics.gauge("open", "Open", &[("of", "a")], 2.0);
        metrics.histogram("delay", "Delay", &[(0.5, 2)], 2, 0.5);
        let energy = Energy::measured("package-0", Microjoules(2_000_000), Microjoules(250_000));
        let figure = energy.figure("J", |joules| joules);
        metrics.figure_since(("stream_energy", "joules"), &[], figure.as_ref());
        assert_eq!(
            Format::Classic.of(&text(&metrics)),
            "\
# HELP events_total Events.
# TYPE events_total counter
events_total 7
# HELP open Open.
# TYPE open gauge
open{of=\"a\"} 2.0
# HELP delay Delay.
# TYPE delay histogram
delay_sum 0.5
delay_count 2
delay_bucket{le=\"0.5\"} 2
delay_bucket{le=\"+Inf\"} 2
# HELP wattlock_measured_stream_energy_joules_total The stream energy in joules, measured.
# TYPE wattlock_measured_stream_energy_joules_total counter
wattlock_measured_stream_energy_joules_total{} 2.0
# HELP wattlock_measured_stream_energy_uncertainty_joules How far off the stream energy in joules may be.
# TYPE wattlock_measured_stream_energy_uncertainty_joules gauge
wattlock_measured_stream_energy_uncertainty_joules{} 0.25
"
        );
    }

    #[test]
    fn the_form_is_the_one_that_accept_prefers() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;\
                          q=0.3,*/*;q=0.2";
        for (accept, format) in [
            (prometheus, Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("Application/OpenMetrics-Text; q=0.1", Format::OpenMetrics),
            ("text/plain, application/openmetrics-text;q=0.5", Format::Classic),
            ("application/openmetrics-text;q=0", Format::Classic),
            ("text/plain", Format::Classic),
            ("*/*", Format::Classic),
            ("application/json; q=x, ;;,", Format::Classic),
            ("", Format::Classic),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
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
# HELP wattlock_measured_energy_joules The energy in joules, measured.
# TYPE wattlock_measured_energy_joules gauge
wattlock_measured_energy_joules{domain=\"package-0\"} 2.0
# HELP wattlock_measured_energy_uncertainty_joules How far off the energy in joules may be.
# TYPE wattlock_measured_energy_uncertainty_joules gauge
wattlock_measured_energy_uncertainty_joules{domain=\"package-0\"} 0.25
# HELP wattlock_modelled_energy_lower_joules The least energy in joules by any model; not measured.
# TYPE wattlock_modelled_energy_lower_joules gauge
wattlock_modelled_energy_lower_joules{domain=\"package-0\"} 2.0
# HELP wattlock_modelled_energy_upper_joules The most energy in joules by any model; not measured.
# TYPE wattlock_modelled_energy_upper_joules gauge
wattlock_modelled_energy_upper_joules{domain=\"package-0\"} 5.0
# HELP wattlock_attributed_energy_joules The energy in joules, attributed.
# TYPE wattlock_attributed_energy_joules gauge
wattlock_attributed_energy_joules{domain=\"package-0\"} 1.0
# HELP wattlock_attributed_energy_uncertainty_joules How far off the energy in joules may be.
# TYPE wattlock_attributed_energy_uncertainty_joules gauge
wattlock_attributed_energy_uncertainty_joules{domain=\"package-0\"} 0.125
# EOF
"
        );
    }
}
