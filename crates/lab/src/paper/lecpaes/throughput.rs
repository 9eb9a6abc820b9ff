//! Sections 5.2.2 and 5.2.3 of the paper: what its text says of Figure 9 and Table 3.

use wattlock_report::paper::{Row, Rule, Source};

use super::claim::{Claim, Found, at_each, falls, falls_but_ties, rises, rows_of, series, told};
use super::numbers::{Numbers, TOTAL_MIB, Unit, mean};
use super::printed::{self, CENT, difference, quote};
use super::quotes::{self, at, quoted};
use crate::simulation::platform::MIB;
use crate::simulation::{Algorithm, Experiment, Run};
use Algorithm::{Cp, Cs, Gp, Lecpaes};

/// Section 5.2.2, of Figure 9.
pub fn throughput(numbers: &[&Numbers<'_>], runs: &[Run]) -> Vec<Row> {
    let mut found = rows_of(&THROUGHPUT, numbers);
    for who in [Lecpaes, Gp, Cp] {
        for us in [100, 3000] {
            found.extend(at(numbers, who, us, Unit::Mib));
        }
    }
    for (name, pick) in [("min", f64::min as fn(f64, f64) -> f64), ("max", f64::max)] {
        let of = |numbers: &Numbers<'_>| match numbers.source {
            Source::Print => CS_US.map(cs_in_print).into_iter().reduce(pick).unwrap_or(f64::NAN),
            _ => numbers.all(Cs, Unit::Mib).into_iter().reduce(pick).unwrap_or(f64::NAN),
        };
        if let Some(printed) = quote("throughput_MBps", Cs, name) {
            found.extend(quoted(
                numbers,
                &format!("CS, {name}"),
                printed,
                of,
                (CENT, 0.03, "MiB/s"),
            ));
        }
    }
    let average = |who| quote("throughput_MBps", who, "avg");
    for who in Algorithm::PAPER {
        let of = |numbers: &Numbers<'_>| match numbers.source {
            Source::Print => {
                average(Lecpaes).unwrap_or(f64::NAN) - difference(who, Unit::Mib, "avg")
            }
            _ => mean(&numbers.all(who, Unit::Mib)),
        };
        let item = format!("{who}, mean of seven");
        let rows = average(who).map(|printed| {
            let rows = quoted(numbers, &item, printed, of, (CENT, 0.03, "MiB/s"));
            // The others' means are compared with it.
            let is_base = |row: &Row| who == Lecpaes && row.source == Source::Print;
            let base = || quotes::base(&item, printed, Unit::Mib).column("in print");
            rows.into_iter().map(|row| if is_base(&row) { base() } else { row }).collect::<Vec<_>>()
        });
        found.extend(rows.into_iter().flatten());
    }
    found.push(counted_once("calculated only one time", runs));
    found.push(told(
        "throughput is volume over the time from the first flow in to the last flow out",
        "throughput = dv/pt",
        "a definition",
    ));
    found
}

/// Where the text prints LECPAES' throughput, and CS' follows by Table 8.
const CS_US: [u64; 2] = [100, 3000];

fn cs_in_print(us: u64) -> f64 {
    printed::text(Lecpaes, us, Unit::Mib) - difference(Cs, Unit::Mib, &us.to_string())
}

/// What a run's throughput counts.
pub fn counted_once(printed: &str, runs: &[Run]) -> Row {
    let bytes = |run: &Run| run.outcome.bytes as f64 / MIB;
    let same = runs.iter().filter(|run| (bytes(run) - TOTAL_MIB).abs() < 0.01).count();
    let ours =
        format!("{same} of {} runs count {TOTAL_MIB:.2} MiB, whatever was sent again", runs.len());
    Row::claim(Rule::Value, "throughput counts a message once", &ours, true, Source::Model)
        .printed(printed)
        .exempt("a definition: the list of messages is fixed, and a run ends with the last of them")
}

/// The same within a share.
pub fn is_as_fast(
    numbers: &Numbers<'_>,
    one: Algorithm,
    other: Algorithm,
    us: u64,
    slack: f64,
) -> bool {
    numbers.of(one, us, Unit::Mib) >= (1.0 - slack) * numbers.of(other, us, Unit::Mib)
}

/// Ties that the model has, where arrivals are the limit of both.
pub const TIE: f64 = 0.001;

/// Who is faster than whom.
pub const FASTEST: Claim = Claim::new(
    Rule::Order,
    "GP is the fastest, LECPAES a little slower, CS the slowest",
    "GP has the highest throughput",
    |numbers| {
        at_each(|us| is_fastest(numbers, us, TIE) && is_as_fast(numbers, Lecpaes, Gp, us, LITTLE))
    },
)
.bound("7 of 7; ties within 0.1 %; LECPAES at most 6 % below GP");

/// The same of what is measured here.
pub const FASTEST_HERE: Claim = Claim::new(
    Rule::Order,
    "GP is the fastest, LECPAES a little slower, CS the slowest",
    "GP has the highest throughput",
    |numbers| at_each(|us| is_fastest(numbers, us, HERE_TIE)),
)
.bound("7 of 7; ties within 5 %");

/// "Only a little less", as the abstract's "slightly".
const LITTLE: f64 = 0.06;

fn is_fastest(numbers: &Numbers<'_>, us: u64, slack: f64) -> bool {
    [(Gp, Lecpaes), (Lecpaes, Cp), (Cp, Cs)]
        .iter()
        .all(|(one, other)| is_as_fast(numbers, *one, *other, us, slack))
}

const THROUGHPUT: [Claim; 5] = [
    falling("LECPAES' throughput falls with latency", |numbers| {
        falls_but_ties(&numbers.all(Lecpaes, Unit::Mib), 1)
    }),
    falling("GP's throughput falls with latency", |numbers| {
        falls_but_ties(&numbers.all(Gp, Unit::Mib), 1)
    }),
    CP_FALLS,
    CS_IS_STEADY,
    FASTEST,
];

/// What CS does at all latencies.
pub const CS_IS_STEADY: Claim = Claim::new(
    Rule::Shape,
    "CS' throughput is the same at all latencies",
    "keeps stable",
    |numbers| {
        let rates = match numbers.source {
            Source::Print => CS_US.map(cs_in_print).to_vec(),
            _ => numbers.all(Cs, Unit::Mib).to_vec(),
        };
        let (least, most) =
            rates.iter().fold((f64::MAX, f64::MIN), |(l, m), r| (l.min(*r), m.max(*r)));
        Found { text: series(&rates, 2), holds: (most - least) / mean(&rates) <= 0.013 }
    },
)
.bound("1.3 %")
.note("in print at 100 and 3000 µs, by Table 8: the other five are not printed");

/// What CP does as arrivals get slower.
pub const CP_FALLS: Claim = falling("CP's throughput falls with latency", |numbers| {
    falls_but_ties(&numbers.all(Cp, Unit::Mib), 1)
});

/// Whether threads help.
pub const CP_BEATS_CS: Claim =
    Claim::new(Rule::Order, "CP is faster than CS", "CS has the lowest throughput", |numbers| {
        at_each(|us| is_as_fast(numbers, Cp, Cs, us, HERE_TIE))
    })
    .bound("7 of 7; ties within 5 %, where arrivals are the limit of both");

/// Ties of what is measured: where arrivals are the limit, it varies by a few percent.
const HERE_TIE: f64 = 0.05;

const fn falling(item: &'static str, check: fn(&Numbers<'_>) -> Found) -> Claim {
    Claim::new(Rule::Shape, item, "decreases as the latency increases", check)
        .bound("falls at each step; a rise within 2.5 % is a tie")
}

/// Section 5.2.3, of Table 3.
pub fn retransmissions(numbers: &[&Numbers<'_>]) -> Vec<Row> {
    let mut found = rows_of(&RETRANSMISSIONS, numbers);
    found.push(
        Row::claim(
            Rule::Value,
            "the rate is a share of all transmissions",
            &format!(
                "61.13 at 100 µs is above 1; as a share it would be {:.3}",
                61.13075 / 62.13075
            ),
            false,
            Source::Print,
        )
        .printed("the ratio of retransmission to all transmission")
        .bound("1 at most")
        .exempt("false in print: it is retransmissions for each message"),
    );
    found.push(whole());
    found.push(told(
        "retransmissions reduce the quality of service",
        "reduce the QoS",
        "a judgement: no quality is measured",
    ));
    found
}

/// How retransmissions go with latency.
pub const FALL_WITH_LATENCY: Claim = Claim::new(
    Rule::Shape,
    "retransmissions fall as latency rises",
    "Table 3: 61.13075 to 2.02175, 4.60500 to 0.03786, 0.64567 to 0, 0.73242 to 0",
    |numbers| {
        let columns = [Cs, Cp, Gp, Lecpaes].map(|who| numbers.all(who, Unit::Retransmissions));
        let there = || columns.iter().filter(|column| !column[0].is_nan());
        let falling = there().filter(|column| falls(*column, 0.005, 2).holds).count();
        let text =
            format!("{falling} of {} columns; CS {}", there().count(), series(&columns[0], 2));
        Found { text, holds: falling == there().count() }
    },
)
.bound("each column; by 0.005 it may rise");

const RETRANSMISSIONS: [Claim; 3] = [
    Claim::new(
        Rule::Shape,
        "rates fall as latencies fall",
        "decrease as the latencies decrease",
        |numbers| {
            let who = [Cs, Cp, Gp, Lecpaes];
            let rising = who
                .iter()
                .filter(|who| rises(&numbers.all(**who, Unit::Retransmissions), 0.0, 2).holds)
                .count();
            Found { text: format!("{rising} of 4 columns fall with it"), holds: rising == 4 }
        },
    )
    .bound("4 of 4 columns")
    .exempt("false in print: they rise in all four"),
    FALL_WITH_LATENCY,
    Claim::new(
        Rule::Order,
        "CS has the highest rate, GP the lowest",
        "CS has the highest retransmission rate, and GP has the lowest",
        |numbers| {
            at_each(|us| {
                let [cs, cp, gp, lecpaes] =
                    [Cs, Cp, Gp, Lecpaes].map(|who| numbers.of(who, us, Unit::Retransmissions));
                cs >= cp.max(lecpaes) && gp <= cp.min(lecpaes)
            })
        },
    )
    .bound("7 of 7")
    .model_exempt(
        "the model does not give it from 1500 to 2500 µs: there GP's stall gives it more than CP has; CS \
has the highest everywhere",
    ),
];

/// A rate times 12,000 messages is a count.
fn whole() -> Row {
    let printed = Numbers::printed();
    let all =
        Algorithm::PAPER.into_iter().flat_map(|who| Experiment::LATENCIES_US.map(|us| (who, us)));
    let odd: Vec<String> = all
        .filter(|(who, us)| {
            let count = 12_000.0 * printed.of(*who, *us, Unit::Retransmissions);
            (count - count.round()).abs() > 0.06
        })
        .map(|(who, us)| format!("{who} at {us} µs"))
        .collect();
    let ours = format!("{} of 28 are; not {}", 28 - odd.len(), odd.join(", "));
    Row::claim(
        Rule::Value,
        "12,000 times each rate is a whole number",
        &ours,
        odd.is_empty(),
        Source::Print,
    )
    .printed("Table 3: 28 cells")
    .bound("within 0.06")
    .exempt("contradicts itself: two cells are no count: 1025.16 and 454.32 retransmissions")
}

/// The axes of Figure 9.
pub fn axes() -> Row {
    told("its axes", "0 to 3000 µs, from -100 MBps on", "no throughput is below 0")
}
