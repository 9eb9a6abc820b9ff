//! Sections 5.4, 5.5 and 6: what the text says of Table 2, and what it concludes.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::Found;
use super::motivation::largest;
use super::printed::{Line, Way, gain};
use super::rows::{claim, contradicted, count, drawn, is_rising, listed, of, stated};
use super::speed::THRESHOLD_KB;
use super::text_1::{ppw, ranges};

/// The sections, with Figure 10.
pub fn sections(found: &Found) -> Vec<Section> {
    let two = &found.two;
    let mut rows = vec![
        contradicted(
            Rule::Value,
            "sizes of pages",
            "1, 2, 8 and so on, without 512 kB",
            "contradicts itself: Table 2 has a line of 512 kB",
        ),
        contradicted(
            Rule::Value,
            "the suite",
            "ECDHE-RSA-AES256-SHA384; ECDHE-RSA-AES256-SHA below Figure 10",
            "contradicts itself: the text and the caption differ",
        ),
        ppw(&two[0], "S5.4-ppw-1"),
        ppw(&two[10], "S5.4-ppw-2048"),
    ];
    rows.extend(ranges(two, two, "S5.4-sw", Way::Software));
    let from_32: Vec<Line> = two.iter().filter(|line| line.kb >= 32).cloned().collect();
    rows.extend(ranges(&from_32, two, "S5.4-is", Way::InstructionSet));
    rows.extend(ranges(two, two, "S5.4-hw", Way::Accelerator));
    rows.push(larger_pages(two));
    rows.extend(over_the_set(found));
    rows.extend(over_the_accelerator(found));
    vec![
        Section::new("Section 5.4", "what the text says of Table 2", rows),
        drawn("Figure 10", two, &Way::ALL),
        Section::new("Section 5.5", "conclusion of the experiments", conclusion(found)),
        Section::new("Section 6", "conclusion", last(found)),
    ]
}

fn larger_pages(two: &[Line]) -> Row {
    let eeca: Vec<f64> = two.iter().map(|line| line.ppw(Way::Eeca)).collect();
    claim(
        (Rule::Shape, Source::Print),
        "EECA does more for a joule the larger the page",
        "\u{201c}increased from 418.37 kB/W to 14189.82 kB/W\u{201d}",
        format!("{} kB a joule", listed(eeca.iter().copied(), 0)),
        is_rising(&eeca),
    )
}

fn over_the_set(found: &Found) -> [Row; 4] {
    let two = &found.two;
    let main = found.server.main();
    let over = |line: &Line| gain(found.server.eeca(line, main), line.rate(Way::InstructionSet));
    let small: Vec<f64> = two[1..3].iter().map(over).collect();
    let losses: Vec<f64> =
        two[..4].iter().map(|line| line.improvement(Way::InstructionSet)).collect();
    let used = two
        .iter()
        .filter(|line| line.kb > THRESHOLD_KB)
        .map(|line| 100.0 * line.rate(Way::Eeca) * line.bytes() / found.machine.device.rate);
    [
        contradicted(
            Rule::Value,
            "the gain over the instruction set begins above 32 kB",
            "\u{201c}larger than 32 kB\u{201d}: 1.25 %",
            "contradicts itself: 1.25 % is the cell of 32 kB; that of 64 kB is 6.80 %",
        ),
        claim(
            (Rule::Value, Source::Model),
            "CPU and accelerator are used to the utmost",
            "\u{201c}regardless of page size\u{201d}",
            format!("from 16 kB on {} % of the accelerator's rate", listed(used, 0)),
            false,
        )
        .exempt(
            "false in print: a third of the accelerator at most, and up to 8 kB none of it, by T",
        ),
        claim(
            (Rule::Sign, Source::Model),
            "EECA is a little below the instruction set for small pages",
            "\u{201c}a little bit lower\u{201d}",
            format!("{} % by the model at 2 and 8 kB", listed(small.iter().copied(), 1)),
            small.iter().chain(&losses[..3]).all(|loss| *loss < 0.0),
        )
        .note(
            "given that a check takes time, which the line of 1 kB says; 16 kB cannot be decided",
        ),
        claim(
            (Rule::Order, Source::Print),
            "that loss falls with the page",
            "\u{201c}decreased with the increase of page size\u{201d}",
            format!("{} %", listed(losses.iter().copied(), 2)),
            false,
        )
        .exempt("false in print: 8 kB loses more than 2 kB"),
    ]
}

fn over_the_accelerator(found: &Found) -> [Row; 4] {
    let two = &found.two;
    let main = found.server.main();
    let by_model = two.iter().filter(|line| line.kb > THRESHOLD_KB).map(|line| {
        let rate = found.server.eeca(line, main);
        let ours = line.per_joule(rate, line.watts(Way::InstructionSet));
        gain(ours, line.ppw(Way::Accelerator))
    });
    let by_model: Vec<f64> = by_model.collect();
    let follows: Vec<f64> = two.iter().map(|line| line.follows(Way::Accelerator)).collect();
    let rising = &follows[3..];
    let most = two
        .iter()
        .max_by(|one, other| {
            one.follows(Way::Accelerator).total_cmp(&other.follows(Way::Accelerator))
        })
        .map(Line::size)
        .unwrap_or_default();
    [
        claim(
            (Rule::Sign, Source::Model),
            "EECA does more for a joule than the accelerator",
            "\u{201c}greater PPW\u{201d}",
            format!("by {} % from 16 kB on by the model", listed(by_model.iter().copied(), 0)),
            by_model.iter().chain(&follows).all(|gain| *gain > 0.0),
        )
        .note("in print at every size"),
        claim(
            (Rule::Order, Source::Print),
            "and the more the larger the page",
            "\u{201c}more obvious for large page sizes\u{201d}",
            format!("{} % from 16 kB on", listed(rising.iter().copied(), 0)),
            is_rising(&rising[..7]),
        )
        .bound("up to 1 MB")
        .note("2 MB and 1 MB are a tie"),
        claim(
            (Rule::Order, Source::Print),
            "the largest gain over the accelerator",
            "\u{201c}96.05% for case page 1 MB\u{201d}",
            format!("at {most}"),
            most == "1 MB",
        )
        .note("by half a percent of the performance per watt; the model's is at 2 MB"),
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
    let below = count(&found.two, |line| line.improvement(Way::InstructionSet) < 0.0);
    let others = found.lines().filter(|line| {
        line.improvement(Way::Software) > 0.0 && line.improvement(Way::Accelerator) > 0.0
    });
    let others = others.count();
    vec![
        claim(
            (Rule::Sign, Source::Print),
            "EECA improves the web server whatever the size",
            "\u{201c}regardless of the request data size\u{201d}",
            format!("below the instruction set in {} lines of Table 2", of(below, 11)),
            false,
        )
        .exempt("false in print: up to T it is the instruction set and a check, and 16 kB is behind, too"),
        claim(
            (Rule::Sign, Source::Print),
            "over software and over the accelerator it does",
            "\u{201c}regardless of the request data size\u{201d}",
            format!("{} lines of both tables", of(others, 20)),
            others == 20,
        ),
        stated(
            "reconstruction improves it further by one call for a request",
            "\u{201c}invoke the hardware accelerator one time\u{201d}",
            "no number; Sections 1 and 4.2 have what the model says of it",
        ),
    ]
}

fn last(found: &Found) -> Vec<Row> {
    let mut rows = largest(found, "conclusion");
    rows.push(stated(
        "other algorithms and applications gain as well",
        "\u{201c}could be applicable to other applications\u{201d}",
        "not tried in the paper",
    ));
    rows.push(stated(
        "records of 16 kB are one cause, the CPU the other",
        "\u{201c}no more than 16 kB\u{201d}, \u{201c}the limited CPU resource\u{201d}",
        "rows of Section 2.3.2",
    ));
    rows
}
