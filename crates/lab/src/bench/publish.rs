//! Where the results of a bench go: text, JSON and metrics.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use wattlock_host::exit::{self, Ended};
use wattlock_host::metrics::Metrics;
use wattlock_report::results::Results;

use crate::args;

/// Fails early where [`publish`] would fail late.
///
/// # Errors
/// That a file cannot be written.
pub fn can_publish(json: Option<&Path>, meters: &args::Meters) -> anyhow::Result<()> {
    Metrics::can_write(meters.prometheus.as_deref())?;
    let Some(path) = json.filter(|path| path.as_os_str() != "-") else { return Ok(()) };
    let is_new = !fs::exists(path).unwrap_or(true);
    let opened = fs::OpenOptions::new().append(true).create(true).open(path);
    opened.with_context(|| format!("cannot write {}", path.display()))?;
    if is_new {
        // A bench that fails leaves no empty results.
        fs::remove_file(path).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Prints them as `text` says, and writes what flags ask for: JSON to a file, or for "-" to
/// standard output in place of the text, and metrics.
pub fn publish(
    results: &Results,
    json: Option<&Path>,
    meters: &args::Meters,
    text: impl FnOnce(&Results) -> String,
) -> Ended {
    let document = || Ok::<_, anyhow::Error>(serde_json::to_string_pretty(results)? + "\n");
    match json {
        Some(path) if path.as_os_str() == "-" => {
            // The text has them at its end.
            for warning in &results.warnings {
                tell!("warning: {warning}");
            }
            exit::print(&document()?)?;
        }
        path => {
            exit::print(&text(results))?;
            if let Some(path) = path {
                fs::write(path, document()?)
                    .with_context(|| format!("cannot write {}", path.display()))?;
            }
        }
    }
    write_metrics(results, meters)?;
    Ok(ExitCode::SUCCESS)
}

/// Writes the metrics that a flag asks for.
///
/// # Errors
/// That the file cannot be written.
pub fn write_metrics(results: &Results, meters: &args::Meters) -> anyhow::Result<()> {
    metrics(results).write(meters.prometheus.as_deref())
}

/// The same as metrics.
pub fn metrics(results: &Results) -> Metrics {
    let mut metrics = Metrics::default();
    for row in &results.rows {
        let threads = row.threads.map_or_else(String::new, |threads| threads.to_string());
        let call = row.call_bytes.map_or_else(String::new, |call| call.to_string());
        let labels = [
            ("bench", results.kind.as_str()),
            ("tool", &row.tool),
            ("case", &row.case),
            ("kernel", row.kernel.as_deref().unwrap_or_default()),
            ("threads", &threads),
            ("call_bytes", &call),
            ("clocks", row.clocks.as_deref().unwrap_or("default")),
        ];
        if row.bytes > 0 {
            let help = "Plaintext a second, the median";
            metrics.gauge("wattlock_rate_bytes_per_second", help, &labels, 1e9 * row.rate());
        }
        if let Some(cpu) = row.joules.cpu_s_per_gb {
            let help = "User and system time for a byte of plaintext";
            metrics.gauge("wattlock_cpu_seconds_per_byte", help, &labels, cpu / 1e9);
        }
        let unit = ("energy", "joules_per_byte");
        metrics.figure(unit, &labels, row.joules.per_byte("J/B", 1.0).as_ref());
    }
    metrics
}
