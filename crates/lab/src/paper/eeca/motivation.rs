//! The abstract and Sections 1 and 2: what is claimed, and why it was built.

use wattlock_report::paper::{Row, Rule, Section, Source};

use wattlock_report::results::Results;

use super::Found;
use super::here;
use super::printed::{Line, Way, Which, gain};
use super::quotes::quote;
use super::rows::{claim, drawn, is_falling, is_rising, listed, of, stated};
use super::server::{RECORD, records};
use super::speed::CORES;
use super::table_1::{bracket, crossing};
use super::table_2::aes_share;

/// The rows up to Figure 4.
pub fn sections(found: &Found, measured: Option<&Results>) -> Vec<Section> {
    vec![
        Section::new("Abstract", "the largest gains", largest(found, "abstract")),
        Section::new("Section 1", "introduction", introduction(found)),
        Section::new("Section 2.1", "TLS and its records (Figure 1)", records_of_tls(found)),
        Section::new("Section 2.2", "the way of a request (Figure 2)", flow()),
        Section::new("Section 2.3.1", "where the time goes (Figure 3)", phases(found)),
        here::figure_3(measured),
        Section::new("Section 2.3.2", "three ways alone (Figure 4)", challenges(found)),
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
            let most = lines.iter().max_by(|one, other| {
                one.improvement(over).total_cmp(&other.improvement(over))
            });
            let printed = quote(&format!("abstract-{name}-{head}"));
            let (follows, room) =
                most.map_or((f64::NAN, 0.0), |line| (line.follows(over), line.rounding(over)));
            let row = Row::number(&item, printed, follows, "%", Source::Print);
            if which == Which::One && over == Way::Accelerator {
                return row.in_units().exempt(
                    "the column over the accelerator does not follow from Table 1: it is of another run",
                );
            }
            row.near(room)
        })
    });
    let mut rows: Vec<Row> = rows.collect();
    let gains = tables_of(found).into_iter().flat_map(|lines| {
        Way::SINGLE.map(|over| lines.iter().any(|line| line.follows(over) > 0.0))
    });
    let count = gains.filter(|gains| *gains).count();
    rows.push(claim(
        (Rule::Sign, Source::Print),
        if place == "abstract" { "co-design saves energy" } else { "EECA saves energy" },
        "over each of the three ways, in both experiments",
        of(count, 6),
        count == 6,
    ));
    rows
}

fn tables_of(found: &Found) -> [&[Line]; 2] {
    [&found.one, &found.two]
}

/// How many of the single ways' cells agree.
fn count(lines: &[Line], holds: impl Fn(&Line) -> bool) -> usize {
    lines.iter().filter(|line| holds(line)).count()
}

fn introduction(found: &Found) -> Vec<Row> {
    let one = &found.one;
    let slower = one.iter().map(|line| line.rate(Way::InstructionSet) / line.rate(Way::Software));
    let inferior = |other| count(one, |line| line.ppw(Way::Software) < line.ppw(other));
    let pairs = inferior(Way::InstructionSet) + inferior(Way::Accelerator);
    let set_first =
        crossing(one, |line| gain(line.ppw(Way::Accelerator), line.ppw(Way::InstructionSet)));
    let best = |line: &Line| Way::SINGLE.map(|way| line.ppw(way)).into_iter().fold(0.0, f64::max);
    let behind = found.lines().filter(|line| line.ppw(Way::Eeca) < best(line)).count();
    let last = &found.two[found.two.len() - 1];
    let set = last.rate(Way::InstructionSet);
    let [main, ..] = found.server.variants();
    let with = gain(found.server.eeca(last, main), set);
    let without = gain(found.server.without_reconstruction(last, main), set);
    vec![
        claim(
            (Rule::Order, Source::Print),
            "software is slow: AES is bound by computing",
            "the instruction set is faster",
            format!("{} times in Table 1", listed(slower, 1)),
            count(one, |line| line.rate(Way::InstructionSet) > line.rate(Way::Software)) == 9,
        ),
        claim(
            (Rule::Sign, Source::Print),
            "software saves less energy than the instruction set and the accelerator",
            "at every size",
            format!("{} pairs of Table 1", of(pairs, 18)),
            false,
        )
        .exempt("at 1 kB software does 4,550 kB a joule and the accelerator 3,942"),
        claim(
            (Rule::Crossover, Source::Print),
            "instruction set and accelerator each suit some sizes",
            "small, and large",
            format!("the accelerator gives more for a joule from {}", bracket(set_first)),
            set_first.is_some(),
        ),
        claim(
            (Rule::Sign, Source::Model),
            "starting the accelerator costs more than it gains at small sizes",
            "small sizes",
            format!("below {:.1} kB a core is sooner done", found.machine.crossing_kb()),
            found.machine.crossing_kb() > 0.0,
        ),
        stated("data centre load from 2015 to 2020", "more than doubles", "another study's forecast"),
        stated("servers installed in that time", "25 % more", "another study's forecast"),
        stated("suites that suit small and large packets", "ECC-3DES-SHA, RSA-RC5-SHA", "another study's result"),
        claim(
            (Rule::Sign, Source::Model),
            "reconstruction saves energy by fewer calls",
            "for large requests",
            format!("at 2 MB {with:+.1} % with it and {without:+.1} % without, over the instruction set"),
            with > 0.0 && with > without,
        ),
        claim(
            (Rule::Order, Source::Print),
            "the scheduler chooses the best way for the performance per watt",
            "for each request",
            format!("EECA is behind the best single way in {} lines of Tables 1 and 2", of(behind, 20)),
            false,
        )
        .exempt("below the threshold EECA is the instruction set and a check, so that it is behind there"),
        claim(
            (Rule::Sign, Source::Model),
            "migration uses the cores that the accelerator leaves idle",
            "gains over the accelerator alone",
            format!("{} % from 16 kB on", listed(
                one.iter().filter(|line| line.kb >= 16).map(|line| {
                    gain(found.machine.best_split(line.bytes()), 1e3 * line.rate(Way::Accelerator))
                }),
                0,
            )),
            one.iter().filter(|line| line.kb >= 16).all(|line| {
                found.machine.best_split(line.bytes()) > 1e3 * line.rate(Way::Accelerator)
            }),
        ),
        stated(
            "what Sections 2 to 6 are about",
            "3 design, 4 evaluation, 5 related work",
            "in the paper 3 is related work, 4 the design and 5 the evaluation",
        ),
    ]
}

fn records_of_tls(found: &Found) -> Vec<Row> {
    let device = found.machine.device;
    let kilobytes = quote("S2.1-fragment") * 1024.0;
    let share = device.call_ns / device.line_ns(kilobytes);
    vec![
        stated("sublayers of TLS", "2", "a definition"),
        Row::number(
            "largest record",
            quote("S2.1-fragment"),
            RECORD as f64 / 1024.0,
            "kB",
            Source::Exact,
        )
        .near(0.0)
        .note("records of libssl's multiblock, which the provider seals together, have 15.5 kB"),
        stated(
            "steps of the record protocol",
            "6",
            "a definition; compression is gone from OpenSSL",
        ),
        stated(
            "what the MAC is over",
            "message, key and padding",
            "padding is added after the MAC, as the paper's own fourth step says",
        ),
        claim(
            (Rule::Value, Source::Model),
            "a call of the accelerator is a large overhead for 16 kB",
            "large",
            format!("{share:.1} times as long beside the line as on it"),
            share > 1.0,
        ),
        stated(
            "buffers are encrypted one by one",
            "one by one",
            "how libssl works; the provider's single records are that",
        ),
        stated("Figure 1: the record protocol", "a drawing", DRAWING),
    ]
}

fn flow() -> Vec<Row> {
    let kernel = |item: &str, printed: &str| {
        Row::printed_only(Rule::Value, item, Source::Live)
            .printed(printed)
            .not_here("an accelerator behind the kernel's crypto interface")
    };
    vec![
        stated("parts of the way of a request", "5", "a definition"),
        kernel("a request goes into the kernel by a system call", "with key, IV and address"),
        kernel(
            "the kernel's interface takes the accelerator or the instruction set",
            "by priority",
        ),
        stated("works of the driver", "4", "a definition"),
        kernel("an interrupt ends a request", "then the result goes up"),
        stated("Figure 2: the way of a request", "a drawing", DRAWING),
    ]
}

/// What the models say of Figure 3; what is measured is in the section of the figure.
fn phases(found: &Found) -> Vec<Row> {
    let shares: Vec<f64> = found.two.iter().map(|line| aes_share(found, line)).collect();
    let last = &found.two[found.two.len() - 1];
    let share = shares[shares.len() - 1];
    let software_us = CORES * 1e6 / last.rate(Way::Software);
    let printed = (quote("F3-a-2048"), quote("F3-b-2048"));
    let handshake_ms = software_us * (share / printed.0 - 1.0) / 1e3;
    vec![
        claim(
            (Rule::Shape, Source::Model),
            "crypto's share grows with the page",
            "with every page",
            format!("AES takes {} % of Table 2's time by software", listed(shares.iter().copied(), 1)),
            is_rising(&shares[..9]) && shares[9] > shares[8] - 1.0 && shares[10] > shares[9],
        )
        .bound("375 requests of 1 MB are rounded by 0.1 %, and differ from the neighbours by 0.9 points"),
        Row::number("2 MB", printed.1, share, "%", Source::Model)
            .column("crypto's share with keep-alive")
            .near(1.0)
            .note("AES alone at Table 1's rate; with the MAC it is 97 %, and the suite is another: perhaps chance"),
        Row::number("2 MB", printed.0, share, "%", Source::Model)
            .column("crypto's share without keep-alive")
            .in_units()
            .exempt(&format!(
                "it needs {handshake_ms:.1} ms more for each connection, more than RSA with 2048 bits takes"
            )),
        claim(
            (Rule::Value, Source::Print),
            "the handshake takes more than half below 32 kB",
            "half at 32 kB, 40.47 % crypto at 2 MB",
            format!("{handshake_ms:.1} ms, or {:.2} ms", CORES * 1e3 / found.two[4].rate(Way::Software)),
            false,
        )
        .exempt("the two numbers do not fit one handshake: that of 2 MB would be more than half up to 1 MB"),
        Row::number("phases", quote("S2.3.1-phases"), here::PHASES as f64, "", Source::Exact)
            .near(0.0)
            .note("handshake, file, crypto, network and the rest are measured below"),
        stated(
            "the suite of Figure 3",
            "ECDHE-RSA-AES256-SHA",
            "with SHA-1, while Table 2 has SHA-384",
        ),
        stated("the network's energy is hard to reduce", "hard", "no number could contradict it"),
    ]
}

fn challenges(found: &Found) -> Vec<Row> {
    let one = &found.one;
    let [software, set, device] = Way::SINGLE;
    let above = |way, other| count(one, |line| line.ppw(way) > line.ppw(other));
    let watts = |way, other| count(one, |line| line.watts(way) > line.watts(other));
    let (small, large) = one.split_at(4);
    let mut fragments = found.two.iter().map(|line| records(line.kb));
    let crosses = crossing(one, |line| gain(line.ppw(device), line.ppw(set)));
    vec![
        Row::number("cores of the server", quote("S2.3.2-cores"), CORES, "", Source::Model)
            .near(0.0)
            .note("Section 5.1's two servers with 8 cores are the server and its client"),
        stated(
            "what the cores have instructions for",
            "AES, SHA-1, SHA-256",
            "SHA-384 of Table 2's suite is not among them: about 7.5 ms of 11.3 ms for 2 MB",
        ),
        claim(
            (Rule::Order, Source::Print),
            "software does less for a joule than both others",
            "at every size",
            format!("{} over the instruction set, {} over the accelerator", of(9 - above(software, set), 9), of(9 - above(software, device), 9)),
            false,
        )
        .exempt("at 1 kB software does 4,550 kB a joule and the accelerator 3,942; in Table 2 at 1 and 2 kB, too"),
        claim(
            (Rule::Order, Source::Print),
            "software takes the most watts",
            "at every size",
            format!("more than the instruction set in {}, than the accelerator in {}", of(watts(software, set), 9), of(watts(software, device), 9)),
            watts(software, set) == 9 && watts(software, device) == 9,
        ),
        claim(
            (Rule::Order, Source::Print),
            "the accelerator takes the most energy at small sizes",
            "at small sizes",
            format!("software takes more watts in {}", of(count(small, |line| line.watts(software) > line.watts(device)), 4)),
            false,
        )
        .exempt("software takes more in all nine lines; the accelerator does take more than the instruction set up to 16 kB"),
        claim(
            (Rule::Sign, Source::Print),
            "the accelerator does less for a joule than the instruction set at small sizes",
            "up to 8 kB",
            of(count(small, |line| line.ppw(device) < line.ppw(set)), 4),
            count(small, |line| line.ppw(device) < line.ppw(set)) == 4,
        ),
        claim(
            (Rule::Sign, Source::Print),
            "the instruction set takes more watts than the accelerator at large sizes",
            "from 16 kB on",
            of(count(large, |line| line.watts(set) > line.watts(device)), 5),
            false,
        )
        .exempt("at 16 kB it is 140.762 against 141.003 W; in Table 2 the accelerator takes more in all eleven lines"),
        claim(
            (Rule::Sign, Source::Print),
            "the instruction set does less for a joule at large sizes",
            "from 16 kB on",
            format!("{} in Table 1", of(count(large, |line| line.ppw(set) < line.ppw(device)), 5)),
            count(large, |line| line.ppw(set) < line.ppw(device)) == 5,
        )
        .note("in Table 2 the instruction set does more in all eleven lines"),
        claim(
            (Rule::Crossover, Source::Model),
            "the instruction set suits small requests and the accelerator large ones",
            &bracket(crosses),
            format!("a call is sooner done on the accelerator from {:.1} kB on", found.machine.crossing_kb()),
            crosses.is_some_and(|(from, to)| (from as f64..=to as f64).contains(&found.machine.crossing_kb())),
        )
        .bound("between the same two sizes"),
        claim(
            (Rule::Value, Source::Exact),
            "a large request is many records",
            "16 kB each",
            format!("{} for the pages of Table 2", listed(fragments.by_ref().map(|count| count as f64), 0)),
            records(2048) == 129 && records(8) == 1,
        ),
        stated("performance per watt", "performance by energy", "it is throughput by watts, as Section 5.3's numbers show"),
        stated("OpenSSL uses one way at a time", "one", "without an engine or a provider"),
        Row::printed_only(Rule::Value, "the accelerator frees the CPU", Source::Live)
            .printed("a large part")
            .not_here("an accelerator: the simulated one works on the CPU"),
        Row::printed_only(Rule::Order, "the kernel takes the driver of the highest priority", Source::Live)
            .printed("the accelerator's")
            .not_here("an accelerator behind the kernel's crypto interface"),
        claim(
            (Rule::Sign, Source::Model),
            "cores that are idle beside the accelerator can be used",
            "for more performance",
            format!("{} of 8 callers keep it full", listed(large.iter().map(|line| found.machine.device.full_callers(line.bytes())), 1)),
            is_falling(&large.iter().map(|line| found.machine.device.full_callers(line.bytes())).collect::<Vec<_>>()),
        ),
    ]
}

pub const DRAWING: &str = "a drawing without numbers";
