//! Instructions of RC4 and RC4A for each byte, beside what the bench measures.

use wattlock_report::paper::{Row, Rule, Source};
use wattlock_report::results::Results;

use super::printed::Cipher;
use super::printed::Cipher::{Rc4, Rc4a};
use super::rows::Live;
use crate::args;
use crate::bench::ciphers;
use crate::paper::blocks::count::Counter;
use crate::paper::live::NOT_MEASURED;

/// Measures the six ciphers, and counts the instructions of two of them.
///
/// # Errors
/// Those of [`ciphers::measure_study`].
pub fn measure(args: &args::PaperCiphers) -> anyhow::Result<Results> {
    let mut results = ciphers::measure_study(args)?;
    match Counter::find() {
        Ok(counter) => {
            results.settings.insert("instructions_by".to_owned(), counter.name().into());
            let bytes = if args.measured.quick { BYTES / 8 } else { BYTES };
            for cipher in [Rc4, Rc4a] {
                count(counter, cipher, bytes, &mut results);
            }
        }
        Err(why) => results.skipped.push(why),
    }
    Ok(results)
}

fn count(counter: Counter, cipher: Cipher, bytes: usize, results: &mut Results) {
    match counter.per_byte(cipher.case(), bytes) {
        Ok(count) => {
            for row in results.rows.iter_mut().filter(|row| row.case == cipher.case()) {
                row.instructions_per_byte = Some(count);
            }
        }
        Err(why) => results.skipped.push(format!("instructions of {cipher}: {why:#}")),
    }
}

/// Section II.A: RC4A takes fewer instructions.
pub fn fewer(live: Live<'_>) -> Row {
    let item = "RC4A takes fewer instructions a byte than RC4";
    let row = Row::printed_only(Rule::Sign, item, Source::Live).printed("fewer").bound("fewer");
    let Some(results) = live.0 else { return row.not_here(NOT_MEASURED) };
    let count = |cipher| live.row(cipher)?.instructions_per_byte;
    let Some((rc4, rc4a)) = count(Rc4).zip(count(Rc4a)) else {
        let missing = results.skipped.iter().find(|why| why.starts_with("instructions"));
        return row.not_here(missing.map_or("instructions were not counted", String::as_str));
    };
    let by = results.settings.get("instructions_by").and_then(|by| by.as_str()).unwrap_or_default();
    let ours = format!("RC4 {rc4:.1}, RC4A {rc4a:.1} ({by})");
    Row::claim(Rule::Sign, item, &ours, rc4a < rc4, Source::Live).printed("fewer").bound("fewer")
}

/// What is counted of each, but for a quick look.
const BYTES: usize = 512;
