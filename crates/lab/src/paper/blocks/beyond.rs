//! What the paper does not say: other fits of its cells, and the forms of the listing here.

use wattlock_report::paper::{Amount, Row, Rule, Section, Source};

use super::form::Form;
use super::model::{self, Affine, FITTED_MB};
use super::printed::{cpu_seconds, gpu_gain, gpu_seconds, ns_per_byte};
use super::rows::Live;
use crate::paper::claims::told;
use crate::paper::live::NOT_MEASURED;

/// After all that the paper says.
pub fn section(live: Live<'_>) -> Section {
    let mut rows = vec![cycles(), other_fits(), constants(), beside_the_cpu()];
    rows.extend(Form::ALL.map(|form| of_form(live, form)));
    Section::new(
        "Not in the paper",
        "what follows from its cells, and forms of the listing on one thread of this CPU",
        rows,
    )
}

fn cycles() -> Row {
    let cycles = |block| 2.2 * ns_per_byte(cpu_seconds(32, block, 1), 32);
    told(
        "cycles for a byte at 2.2 GHz, 32 MB, one thread",
        "not said",
        &format!(
            "16 bytes: {:.0}, 1 KB: {:.0}: as slow as this listing makes AES",
            cycles(16),
            cycles(1024)
        ),
    )
}

fn other_fits() -> Row {
    let range = |fitted: Affine, sizes: [usize; 2]| {
        let errors =
            sizes.map(|megabytes| fitted.errors(&model::gpu_points(megabytes)).collect::<Vec<_>>());
        let errors = errors.concat();
        let least = errors.iter().copied().fold(f64::MAX, f64::min);
        let most = errors.into_iter().fold(f64::MIN, f64::max);
        format!("{:+.0} to {:+.0} %", 100.0 * least, 100.0 * most)
    };
    let two = Affine::fit(&model::gpu_points(FITTED_MB)[..2]);
    let why = format!(
        "fitted to the row of 32 MB it is off by {} on the others; fitted to two cells (4 MB, 16 and 512 bytes) by {}",
        range(model::gpu(32), [4, 16]),
        range(two, [16, 32])
    );
    told("other fits of the GPU's model", "not said", &why)
}

fn constants() -> Row {
    let (cpu, gpu) = (model::cpu(), model::gpu(FITTED_MB));
    told(
        "the constants of the CPU give the GPU's gain",
        "not said",
        &format!(
            "no: the CPU's constants give {:.2} at 1 KB, the GPU has {}. A call costs the CPU as much time as {:.0} bytes, the \
             GPU as {:.0}",
            cpu.gain(1024),
            gpu_gain(32, 1024),
            cpu.call_ns / cpu.byte_ns,
            gpu.call_ns / gpu.byte_ns
        ),
    )
}

fn beside_the_cpu() -> Row {
    told(
        "the GPU beside the CPU, 32 MB",
        "not said",
        &format!(
            "16 bytes: {:.1} times one thread, {:.2} times four; 4 KB: {:.1} times four threads with 1 KB",
            cpu_seconds(32, 16, 1) / gpu_seconds(32, 16),
            cpu_seconds(32, 16, 4) / gpu_seconds(32, 16),
            cpu_seconds(32, 1024, 4) / gpu_seconds(32, 4096)
        ),
    )
}

/// A form's time, instructions and cycles.
fn of_form(live: Live<'_>, form: Form) -> Row {
    let item = format!("the form \u{201c}{}\u{201d}", form.name());
    let row = Row::printed_only(Rule::Value, &item, Source::Live).printed("not said");
    let Some(found) = live.0.and_then(|results| form.row(results)) else {
        return row.not_here(NOT_MEASURED);
    };
    let mut ours = format!("{:.2} ns a byte", found.cpu_ns.median as f64 / found.bytes as f64);
    if let Some(cycles) = found.cycles_per_byte {
        ours += &format!(", {cycles:.1} cycles");
    }
    if let Some(count) = found.instructions_per_byte {
        ours += &format!(", {count:.1} instructions");
    }
    Row { ours: Some(Amount::Text(ours)), ..row }.exempt("a time of this machine")
}
