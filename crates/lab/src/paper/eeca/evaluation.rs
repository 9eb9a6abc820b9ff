//! Sections 5 and 6: the setup, and what the text says of the tables.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::Found;
use super::motivation::{DRAWING, largest};
use super::printed::{Line, Way, gain};
use super::quotes::quote;
use super::rows::{claim, contradicted, drawn, is_falling, is_rising, listed, of, stated};
use super::speed::{CORES, THRESHOLD_KB};
use super::table_1;

/// Sections 5.1 and 5.2.
pub fn before_tables(found: &Found) -> Vec<Section> {
    vec![
        Section::new("Section 5.1", "setup (Figure 8)", setup(found)),
        Section::new("Section 5.2", "benchmarks", benchmarks()),
    ]
}

fn setup(found: &Found) -> Vec<Row> {
    let bits = |line: &Line| 8.0 * line.rate(Way::Eeca) * line.bytes();
    let most = found.two.iter().map(bits).fold(0.0, f64::max);
    let links = quote("S5.1-interfaces") * quote("S5.1-interface") * 1e9;
    let cycles = quote("S5.1-clock") * 1e9 / found.machine.core_rate;
    let crossing = found.machine.crossing_kb();
    let other = |name: &str, printed: &str| stated(name, printed, "another machine");
    vec![
        claim(
            (Rule::Value, Source::Print),
            "four interfaces of 10 Gbit/s are enough",
            "40 Gbit/s",
            format!("{:.1} % of them used at most", 100.0 * most / links),
            most < links,
        ),
        stated("servers", "2, of which one is the client", "models take one with 8 cores"),
        claim(
            (Rule::Value, Source::Model),
            "clock of the cores",
            "2.10 GHz",
            format!("AES-256-CBC takes {cycles:.2} cycles a byte at it"),
            (cycles / A57_CYCLES - 1.0).abs() < 0.05,
        )
        .bound("2.73 cycles in OpenSSL's notes on this core, within 5 %"),
        other("memory", "128 GB"),
        other("Linux", "4.1.27"),
        other("nginx", "1.11.6"),
        other("OpenSSL", "1.0.2j"),
        claim(
            (Rule::Value, Source::Model),
            "the threshold T",
            "8 kB",
            format!("{crossing:.1} kB: where the lines of a core and of the accelerator cross"),
            (8.0..=16.0).contains(&crossing),
        )
        .bound("within one size")
        .note("Section 2.3, from which T is said to follow, prints no number for it"),
        stated(
            "accuracy of the meter",
            "0.1 % of reading and 0.05 % of range",
            "the range is not printed",
        ),
        stated(
            "readings",
            "the maximum of each third of a second",
            "a maximum of watts is no energy; idle watts are not printed",
        ),
        stated("inputs of the meter", "2", "a definition"),
        stated("Figure 8: how energy is measured", "a drawing", DRAWING),
    ]
}

fn benchmarks() -> Vec<Row> {
    vec![
        stated("ab reports requests a second", "in words", "Table 2, here, is made of them"),
        stated("ab loads with several threads", "several", "ab has one thread"),
        stated("seconds of a measurement of speed", "3, raised to 10", "flags set them here"),
        stated("a kilobyte of speed", "1000 B", "Table 1's kB/s are taken so"),
    ]
}

/// What Section 5.3 says of Table 1.
pub fn of_table_1(found: &Found) -> Vec<Section> {
    let one = &found.one;
    let (small, large) = one.split_at(4);
    let mut rows: Vec<Row> = [(1, 0), (8, 3), (16, 4), (256, 8)]
        .into_iter()
        .map(|(kb, index)| ppw(&one[index], &format!("S5.3-ppw-{kb}")))
        .collect();
    let eeca = |lines: &[Line]| lines.iter().map(|line| line.ppw(Way::Eeca)).collect::<Vec<f64>>();
    rows.extend(ranges(one, one, "S5.3-sw", Way::Software));
    rows.extend(ranges(large, large, "S5.3-is", Way::InstructionSet));
    rows.extend(ranges(large, large, "S5.3-hw", Way::Accelerator));
    let model = |line: &Line| gain(table_1::eeca(found, line), line.rate(Way::InstructionSet));
    let losses: Vec<f64> = small.iter().map(|line| line.improvement(Way::InstructionSet)).collect();
    let losses_by_model: Vec<f64> = small.iter().map(model).collect();
    let device: Vec<f64> = one[..5].iter().map(|line| line.ppw(Way::Accelerator)).collect();
    let above: Vec<f64> =
        one.iter().map(|line| gain(line.rate(Way::Eeca), line.rate(Way::Accelerator))).collect();
    let times: Vec<f64> =
        one[..3].iter().map(|line| line.ppw(Way::Eeca) / line.ppw(Way::Accelerator)).collect();
    rows.extend([
        claim(
            (Rule::Shape, Source::Print),
            "EECA does more for a joule the larger the block",
            "rises below 8 kB and above",
            format!("{} kB a joule", listed(eeca(one), 0)),
            is_rising(&eeca(one)),
        ),
        contradicted(
            Rule::Value,
            "CPU and accelerator are used to the utmost at every size",
            "at every size",
            "up to 8 kB the accelerator is not used at all, by T",
        ),
        claim(
            (Rule::Sign, Source::Model),
            "EECA is a little below the instruction set up to 8 kB",
            "a little",
            format!("{} % by the model", listed(losses_by_model.iter().copied(), 1)),
            losses_by_model.iter().all(|loss| *loss < 0.0),
        )
        .note("given that a check takes time"),
        claim(
            (Rule::Order, Source::Model),
            "that loss falls with size",
            &format!("{} %", listed(losses.iter().copied(), 2)),
            format!("{} % by the model", listed(losses_by_model.iter().copied(), 1)),
            is_rising(&losses) && is_rising(&losses_by_model),
        )
        .note("the check itself grows in print, from 102 to 167 ns a call"),
        claim(
            (Rule::Order, Source::Print),
            "the accelerator does less for a joule the smaller the block",
            "up to 16 kB",
            format!("{} kB a joule", listed(device.iter().copied(), 0)),
            is_rising(&device),
        ),
        claim(
            (Rule::Sign, Source::Print),
            "EECA's throughput is above the accelerator's",
            "at every size",
            format!("by {} %", listed(above.iter().copied(), 0)),
            above.iter().all(|gain| *gain > 0.0),
        ),
        claim(
            (Rule::Value, Source::Print),
            "EECA does several times as much as the accelerator below 8 kB",
            "several times",
            format!("{} times", listed(times.iter().copied(), 1)),
            times.iter().all(|times| *times >= 2.0),
        )
        .bound("twice at least"),
        claim(
            (Rule::Order, Source::Print),
            "and the more the smaller the block",
            "up to 16 kB",
            format!("{} times", listed(times.iter().copied(), 1)),
            is_falling(&above[..5]),
        ),
        stated("sizes of speed", "1, 2, 4 and so on to 256 kB", "Table 1's lines"),
    ]);
    vec![
        Section::new("Section 5.3", "what the text says of Table 1", rows),
        drawn("Figure 9", one, &Way::ALL),
    ]
}

/// Kilobytes a joule of EECA, as the text prints them.
fn ppw(line: &Line, id: &str) -> Row {
    let (least, most) = line.ppw_range(Way::Eeca);
    let room = 0.005 + (most - least) / 2.0;
    Row::number(&line.size(), quote(id), line.ppw(Way::Eeca), "kB/J", Source::Print)
        .column("EECA, performance per watt")
        .near((1e3 * room).ceil() / 1e3)
}

/// The least and the largest improvement that the text gives for some lines. The line that has the
/// extreme follows from the table; the bound is its rounding.
fn ranges(least_of: &[Line], most_of: &[Line], id: &str, over: Way) -> Vec<Row> {
    let extremes = [
        (
            "least",
            "min",
            least_of.iter().min_by(|a, b| a.improvement(over).total_cmp(&b.improvement(over))),
        ),
        (
            "largest",
            "max",
            most_of.iter().max_by(|a, b| a.improvement(over).total_cmp(&b.improvement(over))),
        ),
    ];
    let rows = extremes.into_iter().filter_map(|(word, end, line)| {
        let (line, printed) = (line?, quote(&format!("{id}-{end}")));
        let item = format!("{word} gain over {}", over.name());
        let row = Row::number(&item, printed, line.follows(over), "%", Source::Print);
        Some(if line.is_consistent(over) && (printed - line.improvement(over)).abs() < 0.015 {
            row.near(line.rounding(over) + 0.01)
        } else if line.is_consistent(over) {
            row.in_units().exempt(&format!("the table prints {:.2} % at {}", line.improvement(over), line.size()))
        } else {
            row.in_units().exempt("the column over the accelerator does not follow from Table 1: it is of another run")
        })
    });
    rows.collect()
}

/// What Sections 5.4 to 6 say of Table 2.
pub fn of_table_2(found: &Found) -> Vec<Section> {
    let two = &found.two;
    let mut rows = vec![
        contradicted(
            Rule::Value,
            "sizes of pages",
            "1, 2, 8 and so on, without 512 kB",
            "Table 2 has a line of 512 kB",
        ),
        contradicted(
            Rule::Value,
            "the suite",
            "ECDHE-RSA-AES256-SHA384; ECDHE-RSA-AES256-SHA below Figure 10",
            "the text and the caption differ",
        ),
        ppw(&two[0], "S5.4-ppw-1"),
        ppw(&two[10], "S5.4-ppw-2048"),
    ];
    rows.extend(ranges(two, two, "S5.4-sw", Way::Software));
    let from_32: Vec<Line> = two.iter().filter(|line| line.kb >= 32).cloned().collect();
    rows.extend(ranges(&from_32, two, "S5.4-is", Way::InstructionSet));
    rows.extend(ranges(two, two, "S5.4-hw", Way::Accelerator));
    rows.extend(claims_of_table_2(found));
    vec![
        Section::new("Section 5.4", "what the text says of Table 2", rows),
        drawn("Figure 10", two, &Way::ALL),
        Section::new("Section 5.5", "conclusion of the experiments", conclusion(found)),
        Section::new("Section 6", "conclusion", {
            let mut rows = largest(found, "conclusion");
            rows.push(stated(
                "other algorithms and applications gain as well",
                "in words",
                "not tried in the paper",
            ));
            rows.push(stated(
                "records of 16 kB are one cause, the CPU the other",
                "in words",
                "rows of Section 2.3.2",
            ));
            rows
        }),
    ]
}

fn claims_of_table_2(found: &Found) -> Vec<Row> {
    let two = &found.two;
    let main = found.server.main();
    let over = |line: &Line, way| gain(found.server.eeca(line, main), line.rate(way));
    let used = two
        .iter()
        .map(|line| 100.0 * line.rate(Way::Eeca) * line.bytes() / found.machine.device.rate);
    let losses: Vec<f64> =
        two[..4].iter().map(|line| line.improvement(Way::InstructionSet)).collect();
    let device: Vec<f64> = two.iter().map(|line| over(line, Way::Accelerator)).collect();
    let rising: Vec<f64> = two[3..].iter().map(|line| line.follows(Way::Accelerator)).collect();
    vec![
        contradicted(
            Rule::Value,
            "the gain over the instruction set begins above 32 kB",
            "\u{201c}larger than 32 kB\u{201d}: 1.25 %",
            "1.25 % is the cell of 32 kB itself; that of 64 kB is 6.80 %",
        ),
        claim(
            (Rule::Value, Source::Print),
            "CPU and accelerator are used to the utmost",
            "at every size",
            format!("{} % of the accelerator's rate", listed(used, 0)),
            false,
        )
        .exempt("a third of the accelerator at most"),
        claim(
            (Rule::Sign, Source::Model),
            "EECA is a little below the instruction set for small pages",
            "small",
            format!(
                "{} % by the model",
                listed(two[..3].iter().map(|line| over(line, Way::InstructionSet)), 1)
            ),
            two[..3].iter().all(|line| over(line, Way::InstructionSet) < 0.0),
        )
        .note("given that a check takes time; 16 kB cannot be decided"),
        claim(
            (Rule::Order, Source::Print),
            "that loss falls with the page",
            "with every page",
            format!("{} %", listed(losses.iter().copied(), 2)),
            false,
        )
        .exempt("8 kB loses more than 2 kB"),
        claim(
            (Rule::Sign, Source::Model),
            "EECA does more for a joule than the accelerator",
            "at every size",
            format!("by {} % by the model", listed(device.iter().copied(), 0)),
            device.iter().all(|gain| *gain > 0.0),
        ),
        claim(
            (Rule::Order, Source::Print),
            "and the more the larger the page",
            "for large pages",
            format!("{} % from 16 kB on", listed(rising.iter().copied(), 0)),
            is_rising(&rising[..7]),
        )
        .note("1 and 2 MB differ by half a percent"),
        stated(
            "the largest gain over the accelerator",
            "at 1 MB",
            "1 and 2 MB differ by half a percent of what they are over: a tie; the model's is at 2 MB",
        ),
        claim(
            (Rule::Value, Source::Model),
            "the cause is reconstruction and dynamic management",
            "both",
            "by the model reconstruction alone: bytes fill a third of the accelerator",
            false,
        )
        .exempt("with a third of the accelerator used, migration has nothing to do"),
    ]
}

fn conclusion(found: &Found) -> Vec<Row> {
    let below = found.lines().filter(|line| line.improvement(Way::InstructionSet) < 0.0).count();
    let others = found.lines().filter(|line| {
        line.improvement(Way::Software) > 0.0 && line.improvement(Way::Accelerator) > 0.0
    });
    let others = others.count();
    vec![
        claim(
            (Rule::Sign, Source::Print),
            "EECA improves the web server whatever the size",
            "at every size",
            format!("below the instruction set in {} lines of both tables", of(below, 20)),
            false,
        )
        .exempt("below the threshold it is the instruction set and a check"),
        claim(
            (Rule::Sign, Source::Print),
            "over software and over the accelerator it does",
            "at every size",
            of(others, 20),
            others == 20,
        ),
    ]
}

/// AES-256-CBC on a Cortex-A57 in OpenSSL's notes: 1.95 cycles for 128-bit keys, 14 rounds for 10.
const A57_CYCLES: f64 = 1.95 * 1.4;

const _: () = assert!(THRESHOLD_KB == 8 && CORES == 8.0, "the texts name them");
