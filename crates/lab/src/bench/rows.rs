//! Rows of results from runs of programs.

use wattlock_energy::Metered;
use wattlock_report::results::{Row, Sample};

use super::child::Cost;
use super::joules::Counted;
use super::lab::Lab;

/// What something cost, and what the meters saw of it.
pub type Watched = (Cost, Option<Metered>);

/// Does `work` while the meters look.
///
/// # Errors
/// Those of `work`.
pub fn watched(
    lab: &mut Lab<'_>,
    work: impl FnOnce() -> anyhow::Result<Cost>,
) -> anyhow::Result<Watched> {
    let (cost, window) = lab.watch(work)?;
    Ok((cost?, window))
}

/// Adds the row of a tool and a case.
pub fn add(lab: &mut Lab<'_>, tool: &str, case: &str, bytes: u64, costs: Vec<Watched>) {
    let nanoseconds = |what: fn(&Cost) -> std::time::Duration| {
        let values = costs.iter().map(|(cost, _)| what(cost).as_nanos());
        Sample::of(values.map(|ns| ns.try_into().unwrap_or(u64::MAX)).collect())
    };
    let row = Row {
        tool: tool.to_owned(),
        case: case.to_owned(),
        bytes,
        wall_ns: nanoseconds(|cost| cost.wall),
        cpu_ns: nanoseconds(|cost| cost.cpu),
        peak_rss_bytes: costs
            .iter()
            .map(|(cost, _)| cost.peak_rss_bytes)
            .max()
            .filter(|max| *max > 0),
        ..Row::default()
    };
    let mut counted = Counted::default();
    for window in costs.into_iter().filter_map(|(_, window)| window) {
        counted.push(window, bytes);
    }
    lab.add(row, counted);
}
