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
    let places: [(&str, Vec<Row>); 6] = [
        (unit, throughputs(found)),
        ("watts", watts(&found.one)),
        (
            "what EECA gains in performance per watt, as it follows from the printed throughputs and watts",
            recomputed(&found.one, Which::One),
        ),
        (
            "what EECA gains in performance per watt, by the model at the watts of the instruction set",
            gains(found),
        ),
        ("where the ways change places, and what the algorithms give", crossings(found)),
        ("what the table contradicts", vec![fewer_watts(&found.one)]),
    ];
    let place = Which::One.place();
    places.into_iter().map(|(title, rows)| Section::new(place, title, rows)).collect()
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
        rows.extend(found.one.iter().map(|line| {
            let ours = found.machine.single(way, line.bytes()) / 1e3;
            Row::number(&line.size(), line.rate(way), ours, unit, Source::Model)
                .column(way.name())
                .exempt(FITTED)
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

/// Watts of EECA beside those of the instruction set, which the models take for them; those of the
/// others have no model.
pub fn watts(lines: &[Line]) -> Vec<Row> {
    let eeca = lines.iter().map(|line| {
        let set = line.watts(Way::InstructionSet);
        Row::number(&line.size(), line.watts(Way::Eeca), set, "W", Source::Print)
            .column("watts, EECA")
            .exempt("an input: the printed watts of the instruction set stand for EECA's")
    });
    let others = Way::SINGLE.into_iter().flat_map(|way| {
        lines.iter().map(move |line| {
            Row::number(&line.size(), line.watts(way), f64::NAN, "W", Source::Live)
                .column(&format!("watts, {}", way.name()))
                .not_here("the paper's server: its watts are used as printed")
        })
    });
    let of = |way| listed(lines.iter().map(|line| line.watts(way)), 1);
    let apart =
        lines.iter().map(|line| gain(line.watts(Way::Eeca), line.watts(Way::InstructionSet)));
    let most = apart.map(f64::abs).fold(0.0, f64::max);
    let trend = claim(
        (Rule::Shape, Source::Print),
        "how EECA's watts change with size",
        &format!("{} W", of(Way::Eeca)),
        format!("{} W, up to {most:.1} % apart", of(Way::InstructionSet)),
        false,
    )
    .exempt(
        "no model gives watts: the instruction set's stand for EECA's, and their trend is another",
    );
    eeca.chain(others).chain([trend]).collect()
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
            let row = sign(&line.size(), &column, line.improvement(over), ours, Source::Model);
            match (over, line.kb) {
                (_, 1) => row.exempt(CALIBRATED),
                (Way::InstructionSet, kb) if kb <= THRESHOLD_KB => row.note(WITH_CHECK),
                (Way::InstructionSet, _) => row,
                (Way::Accelerator, kb) if kb > THRESHOLD_KB => row.note(FOLLOWS_LESS),
                _ => row.exempt(AGAIN),
            }
        })
    });
    rows.collect()
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
    let both = |model, printed| {
        format!("{} by the model, {} by the printed cells", bracket(model), bracket(printed))
    };
    vec![
        claim(
            (Rule::Crossover, Source::Model),
            "EECA begins to gain over the instruction set",
            "\u{201c}when data size is larger than 8 kB\u{201d}",
            both(model, printed),
            printed == model,
        )
        .bound("the same two sizes"),
        claim(
            (Rule::Crossover, Source::Model),
            "the accelerator alone overtakes the instruction set",
            "\u{201c}efficient for large data blocks\u{201d}",
            both(device, printed_device),
            printed_device == device,
        )
        .bound("the same two sizes")
        .note("at 128 kB print has a tie: 6,032,583 and 6,051,503 kB/s"),
        rising(found),
        algorithm_2(found),
        alone(lines),
    ]
}

fn rising(found: &Found) -> Row {
    let lines = &found.one;
    let printed: Vec<f64> =
        lines.iter().map(|line| line.improvement(Way::InstructionSet)).collect();
    let ours: Vec<f64> =
        lines.iter().map(|line| gain(eeca(found, line), line.rate(Way::InstructionSet))).collect();
    claim(
        (Rule::Order, Source::Model),
        "EECA's gain over the instruction set rises with size",
        &format!("{} %", listed(printed.iter().copied(), 2)),
        format!("{} %", listed(ours.iter().copied(), 1)),
        is_rising(&printed) && is_rising(&ours),
    )
}

/// What the printed algorithm gives: the cells above are of a best split, which is no algorithm.
fn algorithm_2(found: &Found) -> Row {
    let machine = &found.machine;
    let errors = |ours: &dyn Fn(f64) -> f64| {
        let above = found.one.iter().filter(|line| line.kb > THRESHOLD_KB);
        listed(above.map(|line| gain(ours(line.bytes()), 1e3 * line.rate(Way::Eeca))), 1)
    };
    let letter = errors(&|bytes| events::throughput(machine, bytes, Queue::Letter));
    let waits = errors(&|bytes| events::throughput(machine, bytes, Queue::OneWaits));
    let whole = errors(&|bytes| machine.whole_split(bytes));
    claim(
        (Rule::Value, Source::Model),
        "Algorithm 2 as printed gives the throughputs from 16 kB on",
        "\u{201c}if hardware utilization is full\u{201d}",
        format!(
            "by the letter {letter} % off; if one call may wait {waits} %; if callers keep to a way {whole} %"
        ),
        false,
    )
    .exempt("\u{201c}full\u{201d} is undefined; no reading of it was found that gives all five cells within 7 %")
}

fn alone(lines: &[Line]) -> Row {
    let above = lines.iter().filter(|line| line.kb > THRESHOLD_KB);
    let gains = above.map(|line| gain(line.rate(Way::Accelerator), line.rate(Way::InstructionSet)));
    claim(
        (Rule::Value, Source::Print),
        "a threshold without migration explains the gain from 16 kB on",
        "18.02 to 84.82 %",
        format!("the accelerator alone gains {} %", listed(gains, 1)),
        false,
    )
    .exempt("the paper does not claim it: the row shows what its second algorithm adds")
}

/// EECA up to the threshold: the instruction set and a check, at fewer watts.
fn fewer_watts(lines: &[Line]) -> Row {
    let small = || lines.iter().filter(|line| line.kb <= THRESHOLD_KB);
    let over = |of: fn(&Line, Way) -> f64| {
        let gains =
            small().map(move |line| gain(of(line, Way::Eeca), of(line, Way::InstructionSet)));
        listed(gains, 1)
    };
    claim(
        (Rule::Value, Source::Print),
        "EECA up to 8 kB is the instruction set and a check",
        "a \u{201c}fraction of CPU resource is occupied\u{201d} by it",
        format!("throughput {} %, watts {} % over the instruction set", over(Line::rate), over(Line::watts)),
        false,
    )
    .exempt("contradicts itself: more work in fewer watts, so that the loss for a joule is less than that in throughput")
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

const FITTED: &str = "fitted to this column: no prediction";
const CALIBRATED: &str = "EECA's check of a call is set from this cell";
const WITH_CHECK: &str =
    "the printed cell of the instruction set, and the check that the 1 kB cell shows";
const BEST_SPLIT: &str =
    "predicted: as many callers as keep the accelerator full, the others by the instruction set";
const ONE_WAITS: &str = "each call decides by itself: one may wait for the accelerator";
const LETTER: &str = "\u{201c}full\u{201d} is undefined. If one call on the line counts as full, the accelerator idles \
                      between calls, and throughput is 4 to 17 % too low";
pub const OTHER_RUN: &str = "contradicts itself: the column does not follow from the table's throughputs and watts; it is \
                             perhaps of another run of the accelerator";
const FOLLOWS_LESS: &str =
    "its size is exempt: the printed column does not follow from the table's throughputs and watts";
const AGAIN: &str = "the throughput's row again, over another printed column";
