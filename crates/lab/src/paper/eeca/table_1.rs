//! Table 1: `openssl speed` of AES-256-CBC, by the model and as it follows from print.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::Found;
use super::events::{self, Rule as Queue};
use super::printed::{Line, Way, Which, gain};
use super::rows::{claim, is_rising, listed, sign};
use super::speed::{CORES, THRESHOLD_KB, check_ns};

/// The sections of the table.
pub fn sections(found: &Found) -> Vec<Section> {
    let unit = "AES-256-CBC by `openssl speed`: kB/s, by the model";
    let places: [(&str, Vec<Row>); 4] = [
        (unit, throughputs(found)),
        ("watts", watts(&found.one, Which::One)),
        (
            "what EECA gains in performance per watt, as it follows from the printed throughputs and watts",
            recomputed(&found.one, Which::One),
        ),
        (
            "what EECA gains in performance per watt, by the model at the watts of the instruction set",
            gains(found),
        ),
    ];
    let place = Which::One.place();
    let mut sections: Vec<Section> =
        places.into_iter().map(|(title, rows)| Section::new(place, title, rows)).collect();
    sections.push(Section::new(place, "where the ways change places", crossings(found)));
    sections
}

/// EECA's throughput by the model, kB/s.
pub fn eeca(found: &Found, line: &Line) -> f64 {
    if line.kb > THRESHOLD_KB {
        return found.machine.best_split(line.bytes()) / 1e3;
    }
    // The printed cell of the instruction set, and the check of the 1 kB cell in each call.
    let ns = 1e9 * CORES * line.bytes() / (1e3 * line.rate(Way::InstructionSet));
    1e6 * CORES * line.bytes() / (ns + check_ns(&found.one[0]))
}

fn throughputs(found: &Found) -> Vec<Row> {
    let unit = Which::One.unit();
    let mut rows = Vec::new();
    for way in Way::SINGLE {
        let limit = if way == Way::Accelerator { 0.03 } else { 0.005 };
        rows.extend(found.one.iter().map(|line| {
            let ours = found.machine.single(way, line.bytes()) / 1e3;
            Row::number(&line.size(), line.rate(way), ours, unit, Source::Model)
                .column(way.name())
                .note(FITTED)
                .within(limit)
        }));
    }
    rows.extend(found.one.iter().map(|line| {
        let row =
            Row::number(&line.size(), line.rate(Way::Eeca), eeca(found, line), unit, Source::Model)
                .column(Way::Eeca.name());
        match line.kb {
            1 => row.exempt(CALIBRATED),
            kb if kb <= THRESHOLD_KB => row.note(WITH_CHECK).within(0.01),
            _ => row.note(BEST_SPLIT).within(0.07),
        }
    }));
    let above = found.one.iter().filter(|line| line.kb > THRESHOLD_KB);
    rows.extend(above.flat_map(|line| {
        let row = |rule| {
            let ours = events::throughput(&found.machine, line.bytes(), rule) / 1e3;
            Row::number(&line.size(), line.rate(Way::Eeca), ours, unit, Source::Model)
        };
        [
            row(Queue::OneWaits).column("EECA, events").note(ONE_WAITS).within(0.12),
            row(Queue::Letter).column("EECA, Algorithm 2's letter").exempt(LETTER),
        ]
    }));
    rows
}

/// Watts of EECA beside those of the instruction set; those of the others have no model.
pub fn watts(lines: &[Line], which: Which) -> Vec<Row> {
    let limit = if which == Which::One { 0.012 } else { 0.02 };
    let eeca = lines.iter().map(|line| {
        let set = line.watts(Way::InstructionSet);
        Row::number(&line.size(), line.watts(Way::Eeca), set, "W", Source::Print)
            .column("watts, EECA")
            .note("ours are the printed watts of the instruction set")
            .within(limit)
    });
    let others = Way::SINGLE.into_iter().flat_map(|way| {
        lines.iter().map(move |line| {
            Row::number(&line.size(), line.watts(way), f64::NAN, "W", Source::Live)
                .column(&format!("watts, {}", way.name()))
                .not_here("the paper's server: its watts are used as printed")
        })
    });
    eeca.chain(others).collect()
}

/// Each improvement, from the throughputs and watts beside it.
pub fn recomputed(lines: &[Line], which: Which) -> Vec<Row> {
    let rows = Way::SINGLE.into_iter().flat_map(|over| {
        lines.iter().map(move |line| {
            let follows = line.follows(over);
            let row =
                Row::number(&line.size(), line.improvement(over), follows, "%", Source::Print)
                    .column(&format!("over {}", over.name()))
                    .in_units();
            if line.is_consistent(over) {
                row.near(line.rounding(over))
            } else if which == Which::One && over == Way::Accelerator {
                row.exempt(OTHER_RUN)
            } else {
                row.near(0.0)
            }
        })
    });
    rows.collect()
}

fn gains(found: &Found) -> Vec<Row> {
    let rows = Way::SINGLE.into_iter().flat_map(|over| {
        found.one.iter().map(move |line| {
            let per_watt = line.per_joule(eeca(found, line), line.watts(Way::InstructionSet));
            let ours = gain(per_watt, line.ppw(over));
            let column = format!("model over {}", over.name());
            let target =
                if over == Way::Accelerator { line.follows(over) } else { line.improvement(over) };
            if over == Way::InstructionSet && line.kb <= THRESHOLD_KB {
                return sign(&line.size(), &column, target, ours, Source::Model).note(WITH_CHECK);
            }
            let row = Row::number(&line.size(), target, ours, "%", Source::Model)
                .column(&column)
                .near(points(0.07, target));
            if over == Way::Accelerator { row.note(TARGET) } else { row }
        })
    });
    rows.collect()
}

/// A share of what an improvement is a percentage over, in points, to a tenth.
pub fn points(share: f64, improvement: f64) -> f64 {
    (10.0 * share * (100.0 + improvement)).round() / 10.0
}

/// The sizes between which `ours` turns from a loss into a gain.
pub fn crossing(lines: &[Line], gains: impl Fn(&Line) -> f64) -> Option<(u64, u64)> {
    let pairs = lines.windows(2);
    let mut found = pairs.filter(|pair| gains(&pair[0]) <= 0.0 && gains(&pair[1]) > 0.0);
    found.next().map(|pair| (pair[0].kb, pair[1].kb))
}

/// "8 to 16 kB"
pub fn bracket(found: Option<(u64, u64)>) -> String {
    found.map_or_else(|| "nowhere".to_owned(), |(from, to)| format!("{from} to {to} kB"))
}

fn crossings(found: &Found) -> Vec<Row> {
    let lines = &found.one;
    let printed = crossing(lines, |line| line.improvement(Way::InstructionSet));
    let model = crossing(lines, |line| gain(eeca(found, line), line.rate(Way::InstructionSet)));
    let single = |line: &Line, way| found.machine.single(way, line.bytes());
    let printed_device =
        crossing(lines, |line| gain(line.rate(Way::Accelerator), line.rate(Way::InstructionSet)));
    let device = crossing(lines, |line| {
        gain(single(line, Way::Accelerator), single(line, Way::InstructionSet))
    });
    let gains: Vec<f64> =
        lines.iter().map(|line| gain(eeca(found, line), line.rate(Way::InstructionSet))).collect();
    let threshold_alone = lines
        .iter()
        .filter(|line| line.kb > THRESHOLD_KB)
        .map(|line| gain(line.rate(Way::Accelerator), line.rate(Way::InstructionSet)));
    vec![
        claim(
            (Rule::Crossover, Source::Model),
            "EECA begins to gain over the instruction set",
            &bracket(printed),
            bracket(model),
            printed == model,
        )
        .bound("the same two sizes"),
        claim(
            (Rule::Crossover, Source::Model),
            "the accelerator alone overtakes the instruction set",
            &bracket(printed_device),
            bracket(device),
            printed_device == device,
        )
        .bound("the same two sizes"),
        claim(
            (Rule::Order, Source::Model),
            "EECA's gain over the instruction set rises with size",
            "in all nine",
            format!("{} %", listed(gains.iter().copied(), 1)),
            is_rising(&gains),
        ),
        claim(
            (Rule::Value, Source::Print),
            "a threshold without migration explains the gain from 16 kB on",
            "18 to 85 %",
            format!("the accelerator alone gains {} %", listed(threshold_alone, 1)),
            false,
        )
        .exempt("the paper does not claim it: the row shows what its second algorithm adds"),
    ]
}

/// Whether a row is of a printed cell rather than of a second look at it.
#[cfg(test)]
pub fn is_cell(row: &Row) -> bool {
    let ways = Way::ALL.map(Way::name);
    let column = row.column.as_str();
    column.starts_with("watts, ")
        || column.starts_with("over ")
        || ways.contains(&column) && row.printed.is_some()
}

const FITTED: &str = "fitted to this column";
const CALIBRATED: &str = "EECA's check of a call is set from this cell";
const WITH_CHECK: &str =
    "the printed cell of the instruction set, and the check that the 1 kB cell shows";
const BEST_SPLIT: &str =
    "predicted: as many callers as keep the accelerator full, the others by the instruction set";
const ONE_WAITS: &str = "each call decides by itself: one may wait for the accelerator";
const LETTER: &str = "\u{201c}full\u{201d} is not defined; if it means that the line is taken, the accelerator \
                      idles between calls and the column is 4 to 17 % low";
const OTHER_RUN: &str = "the column does not follow from the table's throughputs and watts: it is of another run of \
                         the accelerator";
const TARGET: &str = "beside what follows from the table's throughputs and watts";
