//! Section 5.3: what the text says of Table 1.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::Found;
use super::printed::{Line, Way, gain};
use super::quotes::{quote, words};
use super::rows::{claim, contradicted, drawn, is_falling, is_rising, listed, stated};
use super::speed::THRESHOLD_KB;
use super::table_1::{self, OTHER_RUN};

/// The section, and Figure 9.
pub fn sections(found: &Found) -> Vec<Section> {
    let one = &found.one;
    let large = &one[4..];
    let mut rows: Vec<Row> = [(1, 0), (8, 3), (16, 4), (256, 8)]
        .into_iter()
        .map(|(kb, index)| ppw(&one[index], &format!("S5.3-ppw-{kb}")))
        .collect();
    rows.extend(ranges(one, one, "S5.3-sw", Way::Software));
    rows.extend(ranges(large, large, "S5.3-is", Way::InstructionSet));
    rows.extend(ranges(large, large, "S5.3-hw", Way::Accelerator));
    rows.push(larger_blocks(one));
    rows.extend(in_the_text(one));
    rows.push(over_software(one));
    rows.extend(over_the_set(found));
    rows.extend(over_the_accelerator(one));
    vec![
        Section::new("Section 5.3", "what the text says of Table 1", rows),
        drawn("Figure 9", one, &Way::ALL),
    ]
}

fn larger_blocks(one: &[Line]) -> Row {
    let eeca: Vec<f64> = one.iter().map(|line| line.ppw(Way::Eeca)).collect();
    claim(
        (Rule::Shape, Source::Print),
        "EECA does more for a joule the larger the block",
        "\u{201c}gradually increased\u{201d}",
        format!("{} kB a joule", listed(eeca.iter().copied(), 0)),
        is_rising(&eeca),
    )
}

/// What of the text can be compared with the table's head alone.
fn in_the_text(one: &[Line]) -> [Row; 4] {
    let sizes: Vec<String> = one.iter().map(|line| line.kb.to_string()).collect();
    let sizes = sizes.join(" ");
    [
        claim(
            (Rule::Value, Source::Print),
            "sizes of speed",
            words("S5.3-sizes"),
            format!("{sizes} in Table 1"),
            sizes == words("S5.3-sizes"),
        ),
        contradicted(
            Rule::Value,
            "what EECA does for a joule \u{201c}when data size is smaller than 8 kB\u{201d}",
            "39441.74 to 42612.48 kB/W",
            "contradicts itself: the second is the line of 8 kB",
        ),
        contradicted(
            Rule::Value,
            "the least gain over software",
            "766.85 %",
            "contradicts itself: Table 1 prints 766.84 %, and 766.85 % follows from its cells",
        ),
        contradicted(
            Rule::Value,
            "CPU and accelerator are used to the utmost at every size",
            "\u{201c}regardless of data size\u{201d}",
            "false in print: up to 8 kB the accelerator is not used at all, by T",
        ),
    ]
}

fn over_software(one: &[Line]) -> Row {
    let times: Vec<f64> =
        one.iter().map(|line| line.rate(Way::Eeca) / line.rate(Way::Software)).collect();
    claim(
        (Rule::Sign, Source::Print),
        "EECA's throughput is above that of software",
        "\u{201c}remarkably outperforms\u{201d}",
        format!("{} times", listed(times.iter().copied(), 1)),
        times.iter().all(|times| *times > 1.0),
    )
}

/// Up to the threshold. The line of 1 kB sets the check.
fn over_the_set(found: &Found) -> [Row; 3] {
    let (small, large) = found.one.split_at(4);
    let model = |line: &Line| gain(table_1::eeca(found, line), line.rate(Way::InstructionSet));
    let losses: Vec<f64> = small.iter().map(|line| line.improvement(Way::InstructionSet)).collect();
    let by_model: Vec<f64> = small.iter().map(model).collect();
    let above: Vec<f64> = large
        .iter()
        .map(|line| gain(line.rate(Way::Eeca), line.rate(Way::InstructionSet)))
        .collect();
    [
        claim(
            (Rule::Sign, Source::Print),
            "EECA's throughput is above that of the instruction set above 8 kB",
            "\u{201c}outperforms instruction set\u{201d}",
            format!("by {} %", listed(above.iter().copied(), 1)),
            above.iter().all(|gain| *gain > 0.0),
        ),
        claim(
            (Rule::Sign, Source::Model),
            "EECA is a little below the instruction set up to 8 kB",
            "\u{201c}a little bit lower\u{201d}",
            format!("{} % by the model from 2 kB on", listed(by_model[1..].iter().copied(), 1)),
            losses.iter().chain(&by_model[1..]).all(|loss| *loss < 0.0),
        )
        .note("given that a check takes time, which the line of 1 kB says"),
        claim(
            (Rule::Order, Source::Model),
            "that loss falls with size",
            &format!("{} %", listed(losses.iter().copied(), 2)),
            format!("{} % by the model", listed(by_model.iter().copied(), 1)),
            is_rising(&losses) && is_rising(&by_model),
        )
        .note("the check itself grows in print, from 102 to 167 ns a call"),
    ]
}

fn over_the_accelerator(one: &[Line]) -> [Row; 6] {
    let device: Vec<f64> = one[..5].iter().map(|line| line.ppw(Way::Accelerator)).collect();
    let above: Vec<f64> =
        one.iter().map(|line| gain(line.rate(Way::Eeca), line.rate(Way::Accelerator))).collect();
    let small = one.iter().filter(|line| line.kb < THRESHOLD_KB);
    let more: Vec<f64> = small.map(|line| line.follows(Way::Accelerator) / 100.0).collect();
    let words = || format!("{} times more for a joule", listed(more.iter().copied(), 1));
    [
        claim(
            (Rule::Order, Source::Print),
            "the accelerator does less for a joule the smaller the block",
            "\u{201c}smaller the data block, worse the energy efficiency\u{201d}",
            format!("{} kB a joule up to 16 kB", listed(device.iter().copied(), 0)),
            is_rising(&device),
        ),
        claim(
            (Rule::Sign, Source::Print),
            "EECA's throughput is above the accelerator's",
            "\u{201c}remarkably outperforms\u{201d}",
            format!("by {} %", listed(above.iter().copied(), 0)),
            above.iter().all(|gain| *gain > 0.0),
        ),
        claim(
            (Rule::Value, Source::Print),
            "EECA does several times more for a joule than the accelerator below 8 kB",
            "\u{201c}several times PPW improvement\u{201d}",
            words(),
            false,
        )
        .exempt("contradicts itself: the table's column gives 9.7, 4.8 and 2.0 times, which do not follow from it"),
        claim(
            (Rule::Order, Source::Print),
            "and the more the smaller the block",
            "\u{201c}smaller the data block, bigger the improvement\u{201d}",
            words(),
            is_falling(&more),
        ),
        stated(
            "the cause below 8 kB is \u{201c}adaptive scheduling\u{201d}",
            "\u{201c}avoiding low performance of accelerators\u{201d}",
            "by Algorithm 1 nothing of these sizes goes to the accelerator",
        ),
        stated(
            "the cause above is the best use of the system",
            "\u{201c}Dynamic Management Mechanism\u{201d}",
            "Table 1's best split is that; without migration the accelerator alone gains 4 % at most",
        ),
    ]
}

/// Kilobytes a joule of EECA, as the text prints them.
pub fn ppw(line: &Line, id: &str) -> Row {
    let (least, most) = line.ppw_range(Way::Eeca);
    let room = 0.005 + (most - least) / 2.0;
    Row::number(&line.size(), quote(id), line.ppw(Way::Eeca), "kB/J", Source::Print)
        .column("EECA, performance per watt")
        .near((1e3 * room).ceil() / 1e3)
}

/// The least and the largest improvement that the text gives for some lines. The line that has the
/// extreme follows from the table; the bound is its rounding.
pub fn ranges(least_of: &[Line], most_of: &[Line], id: &str, over: Way) -> Vec<Row> {
    let by = |one: &&Line, other: &&Line| one.improvement(over).total_cmp(&other.improvement(over));
    let extremes = [
        ("least", "min", least_of.iter().min_by(by)),
        ("largest", "max", most_of.iter().max_by(by)),
    ];
    let rows = extremes.into_iter().filter_map(|(word, end, line)| {
        let (line, printed) = (line?, quote(&format!("{id}-{end}")));
        let item = format!("{word} gain over {}", over.name());
        let row = Row::number(&item, printed, line.follows(over), "%", Source::Print);
        let (in_table, size) = (line.improvement(over), line.size());
        Some(if !line.is_consistent(over) {
            row.in_units().exempt(OTHER_RUN)
        } else if (printed - in_table).abs() < 0.015 {
            row.near(line.rounding(over) + 0.01)
        } else {
            let why = format!("contradicts itself: the table prints {in_table:.2} % at {size}");
            row.in_units().exempt(&why)
        })
    });
    rows.collect()
}
