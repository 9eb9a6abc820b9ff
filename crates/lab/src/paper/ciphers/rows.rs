//! What was measured, and rows of claims.

use wattlock_energy::{Class, Energy, Figure};
use wattlock_report::paper::{Amount, Row, Rule, Source, Verdict};
use wattlock_report::results::{Results, Row as Measured};

use super::printed::{Cipher, said};
use crate::paper::live::NOT_MEASURED;

/// What was measured on this machine, if anything was.
#[derive(Clone, Copy)]
pub struct Live<'a>(pub Option<&'a Results>);

impl<'a> Live<'a> {
    /// The row at the default clock; of a parallel cipher that with the most threads.
    pub fn row(self, cipher: Cipher) -> Option<&'a Measured> {
        self.at(cipher, |clocks| clocks.is_none_or(|clocks| clocks == DEFAULT))
    }

    /// The row at a clock.
    pub fn at_clock(self, cipher: Cipher, clocks: &str) -> Option<&'a Measured> {
        self.at(cipher, |found| found == Some(clocks))
    }

    fn at(self, cipher: Cipher, is_it: impl Fn(Option<&str>) -> bool) -> Option<&'a Measured> {
        self.0?.rows.iter().rfind(|row| {
            row.case == cipher.case() && row.tool == OURS && is_it(row.clocks.as_deref())
        })
    }

    /// Decryption at the default clock.
    pub fn decryption(self, cipher: Cipher) -> Option<&'a Measured> {
        let case = format!("{} decrypt", cipher.case());
        self.0?.rows.iter().rfind(|row| {
            let clocks = row.clocks.as_deref().unwrap_or(DEFAULT);
            row.case == case && row.tool == OURS && clocks == DEFAULT
        })
    }

    /// The row of one thread at the default clock.
    pub fn one_thread(self, cipher: Cipher) -> Option<&'a Measured> {
        self.alone(cipher.case())
    }

    /// How much of PARC4's time on one thread is its key stream: what a form that only XORs saves.
    pub fn keystream_share(self) -> Option<f64> {
        let (whole, xor) = (self.one_thread(Cipher::Parc4)?, self.alone(XOR_ALONE)?);
        Some(1.0 - rate(whole) / rate(xor))
    }

    fn alone(self, case: &str) -> Option<&'a Measured> {
        self.0?.rows.iter().find(|row| {
            let clocks = row.clocks.as_deref().unwrap_or(DEFAULT);
            row.case == case && row.tool == OURS && row.threads == Some(1) && clocks == DEFAULT
        })
    }

    /// The row, if it may be held or missed: a quick look decides nothing.
    pub fn decided(self, row: Row) -> Row {
        let is_quick = self.0.is_some_and(|results| results.settings.contains_key("quick"));
        let has_verdict = matches!(row.verdict, Verdict::Held | Verdict::Missed);
        if is_quick && has_verdict {
            row.exempt("a quick look is too short for a verdict")
        } else {
            row
        }
    }

    /// The clocks other than the default.
    pub fn lowered(self) -> Vec<&'a str> {
        let mut clocks = Vec::new();
        for row in self.0.into_iter().flat_map(|results| &results.rows) {
            match row.clocks.as_deref() {
                Some(DEFAULT) | None => {}
                Some(name) if clocks.contains(&name) => {}
                Some(name) => clocks.push(name),
            }
        }
        clocks
    }

    /// CPUs of the machine.
    pub fn cpus(self) -> Option<usize> {
        Some(self.0?.machine.as_ref()?.processor.cpus)
    }
}

/// MB a second.
pub fn rate(row: &Measured) -> f64 {
    1000.0 * row.rate()
}

/// User and system time over wall time: how many CPUs were busy.
pub fn busy(row: &Measured) -> f64 {
    row.cpu_ns.median as f64 / row.wall_ns.median as f64
}

/// CPU time of a byte in nanoseconds: rows repeat messages of different lengths.
pub fn cpu_per_byte(row: &Measured) -> f64 {
    row.cpu_ns.median as f64 / row.bytes.max(1) as f64
}

/// Microjoules a byte, if they were counted and not modelled.
pub fn counted(row: &Measured) -> Option<Figure> {
    let class = row.joules.energy.as_ref().map_or(Class::Unavailable, Energy::class);
    if class > Class::Modelled { row.joules.per_byte("µJ/B", 1e6) } else { None }
}

/// A number of the text that ours has to be.
pub fn exact(id: &str, item: &str, ours: usize) -> Row {
    let (printed, unit) = said(id);
    let ours = ours.to_string();
    let row = Row::claim(Rule::Value, item, &ours, ours == printed, Source::Exact);
    row.printed(&format!("{printed} {unit}")).bound("the same")
}

/// A claim that is measured here: what was found, and whether that agrees; or what is missing.
pub fn held_live(
    rule: Rule,
    item: &str,
    printed: &str,
    found: Option<(String, bool)>,
    bound: &str,
    live: Live<'_>,
) -> Row {
    let row = match found {
        Some((ours, holds)) => Row::claim(rule, item, &ours, holds, Source::Live),
        None => {
            let missing = if live.0.is_some() { "rows of these ciphers" } else { NOT_MEASURED };
            Row::printed_only(rule, item, Source::Live).not_here(missing)
        }
    };
    row.printed(printed).bound(bound)
}

/// With what was found, and no bound.
pub fn found(row: Row, ours: String, why: &str) -> Row {
    Row { ours: Some(Amount::Text(ours)), ..row }.exempt(why)
}

/// What a joule meter is needed for.
pub const A_METER: &str = "a joule meter";

/// Why a claim of the headline has no verdict where it is repeated.
pub const SEE_HEADLINE: &str = "see Figures 3 to 6: the headline";

const OURS: &str = "wattlock";
/// PARC4 with a key stream that is not made, as rows name it.
const XOR_ALONE: &str = "parc4-reuse (no encryption)";
const DEFAULT: &str = "default";
