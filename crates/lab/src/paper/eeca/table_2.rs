//! Table 2: the web server, by the model and as it follows from print.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::Found;
use super::printed::{Line, Way, Which, gain};
use super::rows::{claim, listed, of, sign};
use super::server::{Variant, core_us, large_writes, records, writes};
use super::speed::{CORES, THRESHOLD_KB};
use super::table_1::{bracket, crossing, recomputed, watts};

/// The sections of the table.
pub fn sections(found: &Found) -> Vec<Section> {
    let places: [(&str, Vec<Row>); 6] = [
        ("the web server: requests a second, by the model", throughputs(found)),
        ("watts", watts(&found.two)),
        (
            "what EECA gains in performance per watt, as it follows from the printed throughputs and watts",
            recomputed(&found.two, Which::Two),
        ),
        (
            "what EECA gains in performance per watt, by the main model at the watts of the instruction set",
            gains(found),
        ),
        ("where EECA begins to gain, and what decides it", crossings(found)),
        ("what the table contradicts", contradictions(found)),
    ];
    let place = Which::Two.place();
    places.into_iter().map(|(title, rows)| Section::new(place, title, rows)).collect()
}

fn throughputs(found: &Found) -> Vec<Row> {
    let (server, unit) = (&found.server, Which::Two.unit());
    let row = |line: &Line, way: Way, ours| {
        Row::number(&line.size(), line.rate(way), ours, unit, Source::Model).column(way.name())
    };
    let mut rows: Vec<Row> = Vec::new();
    for way in Way::SINGLE {
        rows.extend(found.two.iter().map(|line| {
            let row = row(line, way, server.single(way, line));
            match way {
                Way::InstructionSet => row.exempt(INPUT),
                _ => row.exempt(FITTED),
            }
        }));
    }
    rows.extend(found.two.iter().map(|line| {
        let row = row(line, Way::Eeca, server.eeca(line, server.main()));
        match line.kb {
            1 => row.exempt(CALIBRATED),
            kb if kb <= THRESHOLD_KB => row.note(WITH_CHECK).within(0.01),
            _ => row.note(MAIN).within(0.13),
        }
    }));
    rows
}

fn gains(found: &Found) -> Vec<Row> {
    let server = &found.server;
    let rows = Way::SINGLE.into_iter().flat_map(|over| {
        found.two.iter().map(move |line| {
            let rate = server.eeca(line, server.main());
            let ours = gain(line.per_joule(rate, line.watts(Way::InstructionSet)), line.ppw(over));
            let column = format!("model over {}", over.name());
            let printed = line.improvement(over);
            let row = sign(&line.size(), &column, printed, ours, Source::Model);
            match (over, line.kb) {
                (_, 1) => row.exempt(CALIBRATED),
                (Way::InstructionSet, 16 | 32) => row.exempt(UNDECIDED),
                (Way::InstructionSet, kb) if kb <= THRESHOLD_KB => row.note(WITH_CHECK),
                (Way::InstructionSet, _) => row,
                (Way::Accelerator, kb) if kb > THRESHOLD_KB => row,
                _ => row.exempt(AGAIN),
            }
        })
    });
    rows.collect()
}

/// What a way to reckon gains over the printed cell of the instruction set.
fn over_set(found: &Found, line: &Line, variant: Variant) -> f64 {
    gain(found.server.eeca(line, variant), line.rate(Way::InstructionSet))
}

fn crossings(found: &Found) -> Vec<Row> {
    let (server, lines) = (&found.server, &found.two);
    let printed = crossing(lines, |line| line.improvement(Way::InstructionSet));
    let model = crossing(lines, |line| over_set(found, line, server.main()));
    let place = |pair: Option<(u64, u64)>| {
        pair.and_then(|(from, _)| lines.iter().position(|line| line.kb == from))
    };
    let is_near =
        place(printed).zip(place(model)).is_some_and(|(one, other)| one.abs_diff(other) <= 1);
    let from_64 = || lines.iter().filter(|line| line.kb >= 64);
    let gaining = server
        .variants()
        .into_iter()
        .filter(|variant| from_64().all(|line| over_set(found, line, *variant) > 0.0));
    let mut rows = vec![
        claim(
            (Rule::Crossover, Source::Model),
            "EECA begins to gain over the instruction set",
            "\u{201c}when data size is larger than 32 kB\u{201d}",
            format!("{} by the model, {} by the printed cells", bracket(model), bracket(printed)),
            is_near,
        )
        .bound("within one size"),
        claim(
            (Rule::Sign, Source::Model),
            "EECA gains from 64 kB on in all variants of the call-cost model",
            "6.80 to 40.14 %",
            format!("{} variants", of(gaining.count(), server.variants().len())),
            server
                .variants()
                .into_iter()
                .all(|variant| from_64().all(|line| over_set(found, line, variant) > 0.0)),
        ),
    ];
    let above = lines.iter().filter(|line| line.kb > THRESHOLD_KB);
    let printed = listed(above.map(|line| line.improvement(Way::InstructionSet)), 2);
    rows.extend(server.variants().into_iter().skip(1).map(|variant| {
        let gains = lines.iter().filter(|line| line.kb > THRESHOLD_KB);
        let gains = listed(gains.map(|line| over_set(found, line, variant)), 1);
        claim(
            (Rule::Sign, Source::Model),
            &format!("gain from 16 kB to 2 MB: {}", variant.name),
            &format!("{printed} % (performance per watt)"),
            format!("{gains} % (requests a second)"),
            true,
        )
        .exempt("for comparison: only the main model is judged")
    }));
    rows
}

fn contradictions(found: &Found) -> Vec<Row> {
    let (server, lines) = (&found.server, &found.two);
    let row = |source, item: &str, printed: &str, ours: String, why: &str| {
        claim((Rule::Value, source), item, printed, ours, false).exempt(why)
    };
    let large = || lines.iter().filter(|line| line.kb >= 256);
    let free = large().map(|line| {
        gain(core_us(line, Way::InstructionSet) - server.aes_us(line), core_us(line, Way::Eeca))
    });
    let clients = lines.iter().filter(|line| line.kb >= 512).map(|line| {
        let client_us = line.bytes() * CLIENT_CYCLES_PER_BYTE / CYCLES_PER_US;
        gain(client_us, core_us(line, Way::Eeca))
    });
    let small = lines.iter().filter(|line| line.kb <= 16);
    let checks = small.map(|line| core_us(line, Way::Eeca) - core_us(line, Way::InstructionSet));
    let used = lines
        .iter()
        .map(|line| 100.0 * line.rate(Way::Eeca) * line.bytes() / found.machine.device.rate)
        .fold(0.0, f64::max);
    vec![
        row(
            Source::Print,
            "heading of the throughputs",
            "kB/s",
            "requests a second".into(),
            "contradicts itself: 59,241 requests of 1 kB at 141.6 W are the 418.37 kB a joule of Section 5.4",
        ),
        row(
            Source::Print,
            "1 kB over software, second copy of the column",
            "29.42 %",
            format!("{:.2} %", lines[0].follows(Way::Software)),
            "contradicts itself: the column stands twice; the copies agree but here, where the cell of 2 kB is repeated",
        ),
        row(
            Source::Model,
            "EECA from 256 kB on, compared with the instruction set if AES cost nothing",
            "only AES is done elsewhere",
            format!("{} % faster", listed(free, 1)),
            "contradicts itself: no scheduling of AES can do that; more than AES changed between the two columns",
        ),
        row(
            Source::Model,
            "EECA from 512 kB on, compared with what a client with 8 such cores can hash and decrypt",
            "the other of two equal servers is the client",
            format!("{} % faster", listed(clients, 1)),
            "by 7.51 cycles a byte for SHA-384 and 1.19 for AES-256-CBC in OpenSSL's notes on the A57",
        ),
        row(
            Source::Print,
            "what EECA adds to a page of 1, 2, 8 and 16 kB",
            "16 kB is larger than T",
            format!("{} µs", listed(checks, 1)),
            "16 kB costs what the pages below T cost: apparently the CPU encrypted it, or a call of 25 µs replaced it by chance",
        ),
        row(
            Source::Model,
            "what a call of the accelerator costs, and what a check costs, compared with Table 1",
            "the same servers",
            format!(
                "{:.1} and {:.1} µs a call; {:.2} and {:.1} µs a check",
                server.speed_call_us,
                server.call_us,
                super::speed::check_ns(&found.one[0]) / 1e3,
                server.check_us
            ),
            "the two tables give costs that differ four and forty times",
        ),
        row(
            Source::Model,
            "watts of EECA with the accelerator in use",
            "144.417 W in Table 2, 141.811 W in Table 1",
            format!(
                "the accelerator is used {used:.0} % at most in Table 2, and all of it in Table 1 by the best split"
            ),
            "more watts at a third of the use",
        ),
    ]
}

/// What a request is: a page to the paper, a write of libssl to a provider.
pub fn requests(found: &Found) -> Vec<Row> {
    let server = &found.server;
    let mut rows: Vec<Row> = Vec::new();
    for line in &found.two {
        let set = line.rate(Way::InstructionSet);
        let by_page = hundredths(gain(server.eeca(line, server.main()), set));
        let by_writes = hundredths(gain(server.by_writes(line, server.call_us), set));
        let why = format!(
            "records: {}; requests of libssl: {}, of them above T: {}; print gives {:+.2} %",
            records(line.kb),
            writes(line.kb).len(),
            large_writes(line.kb).len(),
            gain(line.rate(Way::Eeca), set)
        );
        let row = |column: &str, ours| {
            Row::unprinted(&line.size(), ours, "%", Source::Model).column(column)
        };
        rows.push(row("request is a page", by_page).exempt(PAGE));
        rows.push(row("request is a write of libssl", by_writes).exempt(&why));
    }
    let last = &found.two[found.two.len() - 1];
    let by_writes = gain(server.by_writes(last, server.call_us), last.rate(Way::InstructionSet));
    rows.push(claim(
        (Rule::Sign, Source::Model),
        "gain at 2 MB if a request is what a provider sees",
        &format!("{} % (performance per watt)", last.improvement(Way::InstructionSet)),
        format!("{by_writes:.1} % (requests a second)"),
        by_writes > 0.0,
    ));
    rows
}

/// To two decimals.
fn hundredths(value: f64) -> f64 {
    (100.0 * value).round() / 100.0
}

/// What AES takes of the server's time by software, percent.
pub fn aes_share(found: &Found, line: &Line) -> f64 {
    100.0 * found.server.software_aes_us(line) * line.rate(Way::Software) / (CORES * 1e6)
}

const FITTED: &str = "fitted to this column: no prediction";
const INPUT: &str = "an input: a straight line fitted to this column is off by up to 7 %";
const CALIBRATED: &str = "EECA's check of a page is set from this cell";
const AGAIN: &str = "the throughput's row again, over another printed column";
const WITH_CHECK: &str =
    "the printed cell of the instruction set, and the check that the 1 kB cell shows";
const MAIN: &str = "predicted: AES off the core, one call a page";
const UNDECIDED: &str = "cannot be decided: how a call is reckoned changes the sign";
const PAGE: &str =
    "the main model without its watts; what print gives is in the rows of libssl's writes";

/// SHA-384 and AES-256-CBC decryption on a Cortex-A57, in OpenSSL's notes: 0.85 cycles a byte for
/// 128-bit keys, and 14 rounds instead of 10.
const CLIENT_CYCLES_PER_BYTE: f64 = 7.51 + 0.85 * 1.4;
const CYCLES_PER_US: f64 = 2100.0;
