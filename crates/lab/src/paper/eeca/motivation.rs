//! The abstract and Sections 1, 2.1 and 2.2: what is claimed, and how requests go today.

use wattlock_report::paper::{Row, Rule, Section, Source};

use wattlock_report::results::Results;

use super::Found;
use super::challenges;
use super::here;
use super::printed::{Line, Way, Which, gain};
use super::quotes::quote;
use super::rows::{by_kernel, claim, count, drawn, listed, of, stated};
use super::server::RECORD;
use super::speed::THRESHOLD_KB;
use super::table_1::{OTHER_RUN, bracket, crossing};

/// The rows up to Figure 4.
pub fn sections(found: &Found, measured: Option<&Results>) -> Vec<Section> {
    let missing = here::kernel_missing(measured);
    let missing = missing.as_deref();
    vec![
        Section::new("Abstract", "the largest gains", largest(found, "abstract")),
        Section::new("Section 1", "introduction", introduction(found)),
        Section::new("Section 2.1", "TLS and its records (Figure 1)", records_of_tls(found)),
        Section::new("Section 2.2", "the way of a request (Figure 2)", flow(missing)),
        Section::new("Section 2.3.1", "where the time goes (Figure 3)", challenges::phases(found)),
        here::figure_3(measured),
        Section::new(
            "Section 2.3.2",
            "three ways alone (Figure 4)",
            challenges::three_ways(found, missing),
        ),
        drawn("Figure 4", &found.one, &Way::SINGLE),
    ]
}

/// The six gains that the abstract and the conclusion print: the largest of each column.
pub fn largest(found: &Found, place: &str) -> Vec<Row> {
    let tables = [(Which::One, &found.one, "speed"), (Which::Two, &found.two, "https")];
    let rows = tables.into_iter().flat_map(|(which, lines, name)| {
        let heads = ["sw", "is", "hw"];
        Way::SINGLE.into_iter().zip(heads).map(move |(over, head)| {
            let item = format!("largest gain over {}, {}", over.name(), which.place());
            let most = lines
                .iter()
                .max_by(|one, other| one.improvement(over).total_cmp(&other.improvement(over)));
            let printed = quote(&format!("abstract-{name}-{head}"));
            let (follows, room) =
                most.map_or((f64::NAN, 0.0), |line| (line.follows(over), line.rounding(over)));
            let row = Row::number(&item, printed, follows, "%", Source::Print);
            if which == Which::One && over == Way::Accelerator {
                return row.in_units().exempt(OTHER_RUN);
            }
            row.near(room)
        })
    });
    let mut rows: Vec<Row> = rows.collect();
    let gaining = Way::SINGLE.map(|over| {
        let gains = found.lines().filter(|line| line.follows(over) > 0.0);
        (over, gains.count())
    });
    let words = gaining.map(|(over, gains)| format!("{} over {}", of(gains, 20), over.name()));
    rows.push(
        claim(
            (Rule::Sign, Source::Print),
            if place == "abstract" { "co-design saves energy" } else { "EECA saves energy" },
            "over each of the three ways, in both experiments, by \u{201c}up to\u{201d} the above",
            format!("{} lines", words.join(", ")),
            gaining.iter().all(|(_, gains)| *gains > 10),
        )
        .bound("more than half of the lines of both tables"),
    );
    rows
}

fn introduction(found: &Found) -> Vec<Row> {
    let one = &found.one;
    let slower = one.iter().map(|line| line.rate(Way::InstructionSet) / line.rate(Way::Software));
    let inferior = |other| count(one, |line| line.ppw(Way::Software) < line.ppw(other));
    let pairs = inferior(Way::InstructionSet) + inferior(Way::Accelerator);
    let best = |line: &Line| Way::SINGLE.map(|way| line.ppw(way)).into_iter().fold(0.0, f64::max);
    let behind = found.lines().filter(|line| line.ppw(Way::Eeca) < best(line)).count();
    vec![
        claim(
            (Rule::Order, Source::Print),
            "software is slow: AES is bound by computing",
            "\u{201c}extremely compute-intensive\u{201d}",
            format!("the instruction set does {} times as much in Table 1", listed(slower, 1)),
            count(one, |line| line.rate(Way::InstructionSet) > line.rate(Way::Software)) == 9,
        ),
        claim(
            (Rule::Sign, Source::Print),
            "software saves less energy than the instruction set and the accelerator",
            "\u{201c}not so energy-efficient\u{201d}",
            format!("{} pairs of Table 1", of(pairs, 18)),
            false,
        )
        .exempt("false in print: at 1 kB software does 4,550 kB a joule and the accelerator 3,942"),
        each_suits(found),
        starting(found),
        stated(
            "data centre load from 2015 to 2020",
            "more than doubles",
            "another study's forecast",
        ),
        stated("servers installed in that time", "25 % more", "another study's forecast"),
        stated(
            "suites that suit small and large packets",
            "ECC-3DES-SHA, RSA-RC5-SHA",
            "another study's result",
        ),
        fewer_calls(found),
        claim(
            (Rule::Order, Source::Print),
            "the scheduler chooses the best way for the performance per watt",
            "\u{201c}the optimal encryption approach\u{201d}",
            format!(
                "EECA is behind the best single way in {} lines of Tables 1 and 2",
                of(behind, 20)
            ),
            false,
        )
        .exempt(
            "false in print: up to T it is the instruction set and a check, and 16 kB of Table 2 is behind, too",
        ),
        migration(found),
        stated(
            "what Sections 2 to 6 are about",
            "3 design, 4 evaluation, 5 related work",
            "contradicts itself: 3 is related work, 4 the design and 5 the evaluation",
        ),
    ]
}

fn each_suits(found: &Found) -> Row {
    let ahead = |line: &Line| gain(line.ppw(Way::Accelerator), line.ppw(Way::InstructionSet));
    let crosses = crossing(&found.one, ahead);
    let in_two = count(&found.two, |line| ahead(line) < 0.0);
    claim(
        (Rule::Crossover, Source::Print),
        "instruction set and accelerator each suit some sizes",
        "\u{201c}limited capacity\u{201d} in serving \u{201c}diversity data sizes\u{201d}",
        format!("the accelerator overtakes for a joule between {} in Table 1", bracket(crosses)),
        crosses.is_some(),
    )
    .bound("in Table 1")
    .note(&format!(
        "in Table 2 the instruction set does more for a joule in {} lines",
        of(in_two, 11)
    ))
}

fn starting(found: &Found) -> Row {
    let crossing = found.machine.crossing_kb();
    let below = || found.one.iter().filter(move |line| (line.kb as f64) < crossing);
    let slower =
        below().filter(|line| line.rate(Way::Accelerator) < line.rate(Way::InstructionSet));
    claim(
        (Rule::Sign, Source::Model),
        "starting the accelerator costs more than it gains at small sizes",
        "\u{201c}when the data size is small\u{201d}",
        format!(
            "below {crossing:.1} kB a core finishes first; in print in {} sizes below that",
            of(slower.count(), below().count())
        ),
        below().count() == 4
            && below().all(|line| line.rate(Way::Accelerator) < line.rate(Way::InstructionSet)),
    )
    .bound("the four sizes of print in which the accelerator is slower")
}

fn fewer_calls(found: &Found) -> Row {
    let last = &found.two[found.two.len() - 1];
    let set = last.rate(Way::InstructionSet);
    let main = found.server.main();
    let with = gain(found.server.eeca(last, main), set);
    let without = gain(found.server.without_reconstruction(last, main), set);
    claim(
        (Rule::Sign, Source::Model),
        "reconstruction gains by fewer calls",
        "\u{201c}helps reduce the invocation overhead greatly\u{201d}",
        format!(
            "requests a second at 2 MB: {with:+.1} % with it and {without:+.1} % without, over the instruction set"
        ),
        with > 0.0,
    )
}

fn migration(found: &Found) -> Row {
    let large = || found.one.iter().filter(|line| line.kb > THRESHOLD_KB);
    let printed = large().map(|line| gain(line.rate(Way::Eeca), line.rate(Way::Accelerator)));
    let printed: Vec<f64> = printed.collect();
    let ours = large().map(|line| {
        gain(found.machine.best_split(line.bytes()), 1e3 * line.rate(Way::Accelerator))
    });
    let ours: Vec<f64> = ours.collect();
    let mut pairs = ours.iter().zip(&printed);
    claim(
        (Rule::Value, Source::Model),
        "migration uses the cores that the accelerator leaves idle",
        "\u{201c}full utilization of both\u{201d}",
        format!(
            "throughput over the accelerator alone from 16 kB on: {} % by the model, {} % by the printed cells",
            listed(ours.iter().copied(), 0),
            listed(printed.iter().copied(), 0)
        ),
        printed.iter().all(|gain| *gain > 0.0)
            && pairs.all(|(ours, printed)| gain(100.0 + ours, 100.0 + printed).abs() <= 7.0),
    )
    .bound("gains, and throughputs within 7 %")
}

fn records_of_tls(found: &Found) -> Vec<Row> {
    let device = found.machine.device;
    let (call_us, line_us) = (device.call_ns / 1e3, device.line_ns(RECORD as f64) / 1e3);
    vec![
        stated("sublayers of TLS", "2", "a definition"),
        Row::number(
            "largest record",
            quote("S2.1-fragment"),
            RECORD as f64 / 1024.0,
            "kB",
            Source::Exact,
        )
        .exempt("a definition; records of libssl's multiblock, which the provider seals together, have 15.5 kB"),
        stated(
            "steps of the record protocol",
            "6",
            "a definition; compression is gone from OpenSSL",
        ),
        stated(
            "what the MAC is over",
            "\u{201c}the message, a secret key, and some padding\u{201d}",
            "a definition: this padding is the MAC's own; the cipher's is added after it, in step 4",
        ),
        claim(
            (Rule::Value, Source::Model),
            "a call of the accelerator is a large overhead for 16 kB",
            "\u{201c}a large overhead\u{201d}",
            format!(
                "the call's overhead ({call_us:.1} µs) is {:.1} times the transfer of 16 kB ({line_us:.1} µs)",
                call_us / line_us
            ),
            call_us > line_us,
        )
        .bound("longer than the transfer"),
        stated(
            "buffers are encrypted one by one",
            "one by one",
            "how libssl works; the provider's single records are that",
        ),
        stated(
            "where the header of a record is",
            "\u{201c}appended to the ciphertext\u{201d}; \u{201c}pre-appended\u{201d} in Section 4.2",
            "contradicts itself: a record begins with its header",
        ),
        stated("Figure 1: the record protocol", "a drawing", DRAWING),
    ]
}

fn flow(missing: Option<&str>) -> Vec<Row> {
    vec![
        stated("parts of the way of a request", "5", "a definition"),
        by_kernel(
            "a request goes into the kernel by a system call",
            "\u{201c}the key, IV, and source data address\u{201d}",
            missing,
        ),
        by_kernel(
            "the kernel's interface takes the accelerator or the instruction set",
            "\u{201c}through device driver or directly\u{201d}",
            missing,
        ),
        stated(
            "the instruction set is reached through the kernel's interface",
            "Figure 2",
            "contradicts itself: by Section 5.1 OpenSSL uses it through libcrypto, in user space",
        ),
        stated("works of the driver", "4", "a definition"),
        Row::printed_only(Rule::Value, "an interrupt ends a request", Source::Live)
            .printed("then the result goes up")
            .not_here("an accelerator with interrupts"),
        stated("Figure 2: the way of a request", "a drawing", DRAWING),
    ]
}

pub const DRAWING: &str = "a drawing without numbers";
