//! Section 2.3: where the time of a page goes, and what each of three ways does alone.

use wattlock_report::paper::{Row, Rule, Source};

use super::Found;
use super::here;
use super::printed::{Line, Way, gain};
use super::quotes::quote;
use super::rows::{by_kernel, claim, count, listed, number_only, of, stated};
use super::server::records;
use super::speed::CORES;
use super::table_1::{bracket, crossing};
use super::table_2::aes_share;

/// What the models say of Figure 3; what is measured is in the section of the figure.
pub fn phases(found: &Found) -> Vec<Row> {
    let shares: Vec<f64> = found.two.iter().map(|line| aes_share(found, line)).collect();
    let last = &found.two[found.two.len() - 1];
    let share = shares[shares.len() - 1];
    let software_us = CORES * 1e6 / last.rate(Way::Software);
    let printed = (quote("F3-a-2048"), quote("F3-b-2048"));
    let handshake_ms = software_us * (share / printed.0 - 1.0) / 1e3;
    let page_ms = CORES * 1e3 / found.two[4].rate(Way::Software);
    vec![
        claim(
            (Rule::Shape, Source::Model),
            "crypto's share grows with the page",
            "\u{201c}increases as the page size grows\u{201d}",
            format!(
                "AES takes {} % of Table 2's time by software",
                listed(shares.iter().copied(), 1)
            ),
            false,
        )
        .exempt(OF_TABLE_2),
        Row::number("2 MB", printed.1, share, "%", Source::Model)
            .column("crypto's share with keep-alive")
            .in_units()
            .exempt("AES alone; with the MAC it is 97 %, and the suite is another: near by chance, perhaps"),
        number_only("2 MB", "crypto's share without keep-alive", printed.0, "%", OF_TABLE_2),
        claim(
            (Rule::Value, Source::Model),
            "the handshake takes more than half below 32 kB",
            "\u{201c}more than half of the time for small pages (less than 32 kB)\u{201d}",
            format!(
                "{page_ms:.2} ms by half of Table 2's page of 32 kB; {handshake_ms:.1} ms by 40.47 % at 2 MB"
            ),
            false,
        )
        .exempt("the two do not fit one handshake, if AES takes as long as in Table 2; the figure is measured below"),
        Row::number("phases", quote("S2.3.1-phases"), here::PHASES as f64, "", Source::Exact)
            .exempt("a definition: handshake, file, crypto, network and others, as measured below"),
        stated(
            "the suite of Figure 3",
            "ECDHE-RSA-AES256-SHA",
            "with SHA-1, while Table 2 has SHA-384",
        ),
        stated("the network's energy is hard to reduce", "hard", "no number could contradict it"),
        stated(
            "Figure 3: five phases of a page, by size, with and without keep-alive",
            "a drawing",
            "a drawing without numbers but the two of 2 MB; all of it is measured below",
        ),
    ]
}

/// Section 2.3.2.
pub fn three_ways(found: &Found, missing: Option<&str>) -> Vec<Row> {
    let mut rows = vec![
        cores(found),
        stated(
            "what the cores have instructions for",
            "AES, SHA-1, SHA-256",
            "SHA-384 of Table 2's suite is not among them: about 7.5 ms of 11.3 ms for 2 MB",
        ),
        stated(
            "performance per watt",
            "\u{201c}maximum performance divided by its energy consumption\u{201d}",
            "it is throughput by watts, as Section 5.3's numbers show",
        ),
    ];
    rows.extend(for_a_joule(&found.one));
    rows.extend([
        suits(found),
        bottleneck(&found.one),
        stated(
            "a large request is many records",
            "\u{201c}multiple 16 kB small fragments\u{201d}",
            &format!(
                "a definition: {} for the pages of Table 2 with nginx's header",
                listed(found.two.iter().map(|line| records(line.kb) as f64), 0)
            ),
        ),
        small_blocks(found),
        stated(
            "OpenSSL uses one way at a time",
            "\u{201c}because the kernel uses\u{201d} the highest priority",
            "contradicts itself: by Section 5.1 OpenSSL uses instructions without the kernel, whose priority says nothing of them",
        ),
        by_kernel(
            "the kernel takes the driver of the highest priority",
            "the accelerator's",
            missing,
        ),
        idle_cores(found),
    ]);
    rows
}

/// How many cores: the accelerator's column alone does not tell.
fn cores(found: &Found) -> Row {
    let errors = |callers: f64| found.machine.errors_with(&found.one, callers);
    let most = |(least, most): (f64, f64)| least.abs().max(most.abs());
    let [seven, eight, nine] = [CORES - 1.0, CORES, CORES + 1.0].map(errors);
    let words = |(least, most): (f64, f64)| format!("{least:+.1} to {most:+.1} %");
    claim(
        (Rule::Order, Source::Model),
        "cores of the server",
        &quote("S2.3.2-cores").to_string(),
        format!(
            "EECA from 16 kB on is {} off with 8 callers, {} with 7, {} with 9",
            words(eight),
            words(seven),
            words(nine)
        ),
        most(eight) < most(seven) && most(eight) < most(nine),
    )
    .bound("8 has the smallest error")
    .note("the accelerator's own column cannot tell 6 from 10; free fit 7.5")
}

/// What Figure 4 is said to show, by Table 1.
fn for_a_joule(one: &[Line]) -> Vec<Row> {
    let [software, set, device] = Way::SINGLE;
    let above = |way, other| count(one, |line| line.ppw(way) > line.ppw(other));
    let watts = |way, other| count(one, |line| line.watts(way) > line.watts(other));
    let (small, large) = one.split_at(4);
    let less_small = count(small, |line| line.ppw(device) < line.ppw(set));
    let less_large = count(large, |line| line.ppw(set) < line.ppw(device));
    vec![
        claim(
            (Rule::Order, Source::Print),
            "software does less for a joule than both others",
            "\u{201c}inferior\u{201d}",
            format!(
                "{} than the instruction set, {} than the accelerator",
                of(above(set, software), 9),
                of(above(device, software), 9)
            ),
            false,
        )
        .exempt("false in print: at 1 kB software does 4,550 kB a joule and the accelerator 3,942; in Table 2 at 1 and 2 kB, too"),
        claim(
            (Rule::Order, Source::Print),
            "software takes the most watts",
            "\u{201c}inferior\u{201d}",
            format!(
                "more than the instruction set in {}, than the accelerator in {}",
                of(watts(software, set), 9),
                of(watts(software, device), 9)
            ),
            watts(software, set) == 9 && watts(software, device) == 9,
        ),
        claim(
            (Rule::Order, Source::Print),
            "the accelerator takes the most energy at small sizes",
            "\u{201c}takes the highest energy consumption\u{201d}",
            format!(
                "software takes more watts in {}",
                of(count(small, |line| line.watts(software) > line.watts(device)), 4)
            ),
            false,
        )
        .exempt("false in print: software takes more in all nine lines; the accelerator does take more than the instruction set up to 16 kB"),
        claim(
            (Rule::Sign, Source::Print),
            "the accelerator does less for a joule than the instruction set at small sizes",
            "\u{201c}for small data size\u{201d}",
            format!("in {} lines up to 8 kB", of(less_small, 4)),
            less_small == 4,
        ),
        claim(
            (Rule::Sign, Source::Print),
            "the instruction set takes more watts than the accelerator at large sizes",
            "\u{201c}for large data size\u{201d}",
            format!("in {} lines from 16 kB on", of(count(large, |line| line.watts(set) > line.watts(device)), 5)),
            false,
        )
        .exempt("false in print: at 16 kB it is 140.762 against 141.003 W; in Table 2 the accelerator takes more in all eleven lines"),
        claim(
            (Rule::Sign, Source::Print),
            "the instruction set does less for a joule at large sizes",
            "\u{201c}for large data size\u{201d}",
            format!("in {} lines of Table 1 from 16 kB on", of(less_large, 5)),
            less_large == 5,
        )
        .note("in Table 2 the instruction set does more in all eleven lines"),
    ]
}

fn suits(found: &Found) -> Row {
    let crosses = crossing(&found.one, |line| {
        gain(line.ppw(Way::Accelerator), line.ppw(Way::InstructionSet))
    });
    let crossing = found.machine.crossing_kb();
    claim(
        (Rule::Crossover, Source::Model),
        "the instruction set suits small requests and the accelerator large ones",
        "\u{201c}efficient for small blocks\u{201d}, \u{201c}efficient for large data blocks\u{201d}",
        format!(
            "a call is sooner done on the accelerator from {crossing:.1} kB on; for a joule between {} by the printed cells",
            bracket(crosses)
        ),
        crosses.is_some_and(|(from, to)| (from as f64..=to as f64).contains(&crossing)),
    )
    .bound("between the same two sizes")
}

/// Both columns are flat where the CPU is full, while the accelerator lets EECA go on.
fn bottleneck(one: &[Line]) -> Row {
    let change = |way| {
        let rates = || one[1..].iter().map(move |line| line.rate(way));
        gain(rates().fold(0.0, f64::max), rates().fold(f64::MAX, f64::min))
    };
    let (software, set) = (change(Way::Software), change(Way::InstructionSet));
    let last = &one[one.len() - 1];
    claim(
        (Rule::Value, Source::Print),
        "the CPU is the bottleneck of software and instruction set",
        "\u{201c}limited CPU resource becomes the bottleneck\u{201d}",
        format!(
            "from 2 kB on throughput changes by {software:.1} % and {set:.1} %; EECA does {:.2} times the instruction set's",
            last.rate(Way::Eeca) / last.rate(Way::InstructionSet)
        ),
        software <= 2.0 && set <= 2.0,
    )
    .bound("flat within 2 % from 2 kB on")
}

/// Percent of the accelerator's rate that it does alone in Table 2.
pub fn used_alone(found: &Found) -> Vec<f64> {
    let used = found
        .two
        .iter()
        .map(|line| 100.0 * line.rate(Way::Accelerator) * line.bytes() / found.machine.device.rate);
    used.collect()
}

fn small_blocks(found: &Found) -> Row {
    let used = used_alone(found);
    claim(
        (Rule::Value, Source::Model),
        "small blocks keep the CPU busy with the accelerator",
        "\u{201c}the CPU has to spend more time managing hardware\u{201d}",
        format!(
            "alone, the accelerator does {} % of its rate in Table 2",
            listed(used.iter().copied(), 1)
        ),
        used.iter().all(|used| *used < 50.0),
    )
    .bound("less than half of its rate in every line")
    .note("its interrupts cannot be counted here")
}

fn idle_cores(found: &Found) -> Row {
    let large = &found.one[4..];
    let callers: Vec<f64> =
        large.iter().map(|line| found.machine.device.full_callers(line.bytes())).collect();
    let gains: Vec<f64> =
        large.iter().map(|line| gain(line.rate(Way::Eeca), line.rate(Way::Accelerator))).collect();
    claim(
        (Rule::Sign, Source::Model),
        "cores that are idle beside the accelerator can be used",
        "\u{201c}underused CPU resource\u{201d}",
        format!(
            "{} of 8 callers keep it full from 16 kB on; EECA's throughput is {} % above its in print",
            listed(callers.iter().copied(), 1),
            listed(gains.iter().copied(), 0)
        ),
        callers.iter().all(|callers| *callers < CORES) && gains.iter().all(|gain| *gain > 0.0),
    )
    .bound("fewer than 8 callers, and gains")
}

const OF_TABLE_2: &str = "only AES of Table 2 has a model, with keep-alive and SHA-384: another suite than Figure 3's, which is \
                          measured below";
