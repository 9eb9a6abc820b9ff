//! Section VI: why larger blocks are faster, which the paper says and does not measure.

use wattlock_report::paper::{Amount, Row, Rule, Section, Source, Verdict};

use super::cpu::form_over;
use super::form::Form;
use super::rows::{Live, held_live};
use crate::paper::claims::{noted, told};
use crate::paper::live::NOT_MEASURED;

/// The claims of Section VI, and what was measured of them.
pub fn sections(live: Live<'_>) -> Vec<Section> {
    let measured = live.0.and_then(|_| Measured::of(live));
    let rows = vec![
        told(
            "1.25 to 1.28, and 6.03 to 8.53",
            "as in Section V",
            "the same numbers as in Section V: see there",
        ),
        told(
            "the GPU's many cores are the cause",
            "as in Section V.B",
            "no test is printed: see Section V.B",
        ),
        calls(live, measured),
        instructions(live),
        overlap(live, measured),
        known(live, measured),
    ];
    vec![Section::new("Section VI", "what the gain is from, one thread of this CPU", rows)]
}

/// The least CPU time of the forms that tell, in parts of that of 16-byte blocks.
#[derive(Clone, Copy)]
struct Measured {
    inlined: f64,
    extended: f64,
    chained: f64,
    linked: f64,
}

impl Measured {
    fn of(live: Live<'_>) -> Option<Self> {
        let over = |form| form_over(live, form, Form::Called(16));
        Some(Self {
            inlined: over(Form::Inlined)?,
            extended: over(Form::Called(1024))?,
            chained: over(Form::Chained(1024))?,
            linked: over(Form::Linked(1024))?,
        })
    }

    /// What 1 KB saves of 16 bytes' time, as a share.
    fn saved(self) -> f64 {
        1.0 - self.extended
    }

    /// How much of that the form without a call saves.
    fn by_no_call(self) -> f64 {
        (1.0 - self.inlined) / self.saved()
    }

    /// How much of it is lost if units wait for each other; the linked form does the same work
    /// without the wait.
    fn by_overlap(self) -> f64 {
        (self.chained - self.linked) / self.saved()
    }

    /// Whether 1 KB saves enough for shares of it to mean something.
    fn tells(self) -> bool {
        self.saved() > 0.02
    }
}

/// The paper's cause. It is taken away by a form that has no call for a block.
fn calls(live: Live<'_>, measured: Option<Measured>) -> Row {
    let found = measured.map(|measured| {
        let ours = format!(
            "1 KB takes {}, 16 bytes without a call {} than 16 bytes: {}",
            changed(measured.extended),
            changed(measured.inlined),
            share(measured, measured.by_no_call())
        );
        (ours, measured.tells() && measured.by_no_call() >= 0.5)
    });
    let row = held_live(
        Rule::Value,
        "calls are what larger blocks save",
        "fewer procedure calls",
        found,
        live,
    );
    let row = row.bound("16 bytes without a call keep at least half of what 1 KB gains");
    noted(row, "on the study's Core 2 it is not known")
}

/// "8.4 % less time".
fn changed(over: f64) -> String {
    let percent = 100.0 * (over - 1.0);
    format!("{:.1} % {} time", percent.abs(), if percent < 0.0 { "less" } else { "more" })
}

fn share(measured: Measured, part: f64) -> String {
    if measured.tells() {
        format!("{:.0} % of the gain", 100.0 * part)
    } else {
        "the gain is too little to be divided".to_owned()
    }
}

fn instructions(live: Live<'_>) -> Row {
    let item = "a larger block executes fewer instructions";
    let row = Row::printed_only(Rule::Sign, item, Source::Live)
        .printed("less overhead of calls and scheduling")
        .bound("fewer with 1 KB than with 16 bytes");
    let Some(results) = live.0 else { return row.not_here(NOT_MEASURED) };
    let count = |form: Form| form.row(results)?.instructions_per_byte;
    let counted = count(Form::Called(16)).zip(count(Form::Inlined)).zip(count(Form::Called(1024)));
    let Some(((coarse, inlined), extended)) = counted else {
        let missing = results.skipped.iter().find(|why| why.starts_with("instructions"));
        return row.not_here(missing.map_or("not counted in so short a run", String::as_str));
    };
    let by = results.settings.get("instructions_by").and_then(|by| by.as_str()).unwrap_or_default();
    let ours = format!(
        "{coarse:.1} a byte with 16 bytes, {inlined:.1} without the call, {extended:.1} with 1 KB ({by})"
    );
    let verdict = if extended < coarse { Verdict::Held } else { Verdict::Missed };
    Row { ours: Some(Amount::Text(ours)), verdict, ..row }
}

/// Not the paper's claim, and the other cause there may be.
fn overlap(live: Live<'_>, measured: Option<Measured>) -> Row {
    let row = Row::printed_only(
        Rule::Value,
        "the CPU works on several units of a block at once",
        Source::Live,
    )
    .printed("not said");
    let Some(measured) = measured.filter(|_| live.0.is_some()) else {
        return row.not_here(NOT_MEASURED);
    };
    let ours = format!(
        "1 KB whose 16 bytes wait for each other in every round takes {} than the same work without the wait: {}",
        changed(measured.chained / measured.linked),
        share(measured, measured.by_overlap())
    );
    let why = match same_work(live) {
        Some(true) => "not a claim of the paper; the two forms execute as many instructions",
        Some(false) => {
            "not a claim of the paper; it tells nothing: the two forms differ in instructions by more than 3 %"
        }
        None => {
            "not a claim of the paper; whether the two forms execute as many instructions was not counted"
        }
    };
    Row { ours: Some(Amount::Text(ours)), ..row }.exempt(why)
}

/// Whether the chained and the linked form differ by the wait alone, as their instructions say.
fn same_work(live: Live<'_>) -> Option<bool> {
    let results = live.0?;
    let count = |form: Form| form.row(results)?.instructions_per_byte;
    let (chained, linked) = (count(Form::Chained(1024))?, count(Form::Linked(1024))?);
    Some((chained / linked - 1.0).abs() <= 0.03)
}

/// What follows.
fn known(live: Live<'_>, measured: Option<Measured>) -> Row {
    let row = Row::printed_only(Rule::Value, "what is known of the cause", Source::Live)
        .printed("more analyses are planned");
    let Some(measured) = measured.filter(|_| live.0.is_some()) else {
        return row.not_here(NOT_MEASURED);
    };
    let call = measured.by_no_call() >= 0.5;
    let overlap = same_work(live).filter(|same| *same).map(|_| measured.by_overlap() >= 0.5);
    let ours = match (measured.tells(), call, overlap) {
        (false, ..) => "on this CPU larger blocks save too little to have a cause",
        (true, true, Some(true)) => {
            "on this CPU without a call half of the gain is kept, without overlap half is lost"
        }
        (true, true, _) => "on this CPU the call, and what the compiler does around it",
        (true, false, Some(true)) => {
            "on this CPU not the call; units that overlap in the core have half of the gain or more"
        }
        (true, false, Some(false)) => {
            "on this CPU neither the call nor the overlap of units has half of the gain; instructions are above"
        }
        (true, false, None) => "on this CPU not the call; whether units overlap was not decided",
    };
    Row { ours: Some(Amount::Text(ours.to_owned())), ..row }
        .exempt("what is found here; the study's CPU and GPU may differ")
}
