//! Figures 6, 7 and their like on this machine: speedups, and Eqs. 5 and 6 with them.

use wattlock_report::paper::{Row, Rule, Source};

use super::super::equations::{amdahl, efficiency};
use super::super::measured::{Measured, best, papers};
use super::super::printed::{Case, Stage};
use super::{OTHER_MACHINE, claim};
use crate::paper::live::NOT_MEASURED;

/// Speedups over one thread with the same kind of kernel.
pub fn rows(case: Case, measured: Option<Measured<'_>>, stage: Stage) -> Vec<Row> {
    let direction = case.direction;
    let [csp, cpp, gpp, _] = papers();
    let mut rows = Vec::new();
    let name = measured.map(Measured::average_name).unwrap_or_default();
    let ratio = |stage, column, one| {
        Some(
            measured?.average(direction, stage, column)?
                / measured?.average(direction, stage, one)?,
        )
    };
    for column in [cpp, gpp].into_iter().chain(best()[1..4].iter().copied()) {
        let one = if [cpp, gpp].contains(&column) { csp } else { best()[0] };
        let Some(ours) = ratio(stage, column, one) else { continue };
        let row =
            Row::number(&name, case.speedup(stage, column.variant), ours, "times", Source::Live);
        rows.push(row.column(&column.name(direction)).exempt(OTHER_MACHINE));
    }
    let threads = measured.and_then(|measured| measured.number("threads"));
    let of_aes = || ratio(Stage::Aes, cpp, csp);
    let of_all = || ratio(Stage::Total, cpp, csp);
    if stage == Stage::Aes {
        let efficiency = of_aes()
            .zip(threads)
            .and_then(|(speedup, threads)| efficiency(cpp.variant, speedup, threads, f64::NAN));
        rows.extend(efficiency.map(|ours| {
            let row = Row::number(
                "parallel efficiency, Eq. 6, a thread for a core",
                case.efficiency(cpp.variant),
                ours,
                "%",
                Source::Live,
            );
            row.column(&cpp.name(direction)).exempt(OTHER_MACHINE)
        }));
        rows.push(claim(
            Rule::Sign,
            "AES gains more than the whole",
            match case.verb() {
                "protect" => "a larger speedup of encrypting than the speedup of protecting",
                _ => "a higher speedup of decrypting than its speedup of unprotecting",
            },
            "CPP with tables",
            NOT_MEASURED,
            || {
                let (aes, all) = (of_aes()?, of_all()?);
                Some((format!("{aes:.2} and {all:.2}"), aes > all))
            },
        ));
    } else {
        rows.push(claim(
            Rule::Value,
            "Eq. 5 with our own shares gives our speedup of CPP",
            "Amdahl's law works",
            "within 5 %",
            NOT_MEASURED,
            || {
                let speed = |stage| measured?.average(direction, stage, csp);
                let share = speed(Stage::Total)? / speed(Stage::Aes)?;
                let (n, found) = (of_aes()?, of_all()?);
                let law = amdahl(share, n);
                let ours = format!(
                    "AES is {share:.3} of one thread's time and {n:.2} times as fast: {law:.3} by Eq. 5, {found:.3} measured"
                );
                Some((ours, (found / law - 1.0).abs() <= 0.05))
            },
        ));
    }
    rows
}
