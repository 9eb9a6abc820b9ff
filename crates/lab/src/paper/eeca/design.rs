//! Sections 3 and 4: how EECA is built, and its two algorithms beside ours.

use wattlock_engine::{Backlog, Lane, Migration, Threshold, Waiting};
use wattlock_report::paper::{Row, Rule, Section, Source};
use wattlock_report::results::Results;

use super::Found;
use super::challenges::used_alone;
use super::here;
use super::motivation::DRAWING;
use super::printed::{Line, Way, gain};
use super::quotes::quote;
use super::rows::{by_kernel, claim, listed, of, stated};
use super::server::writes;
use super::speed::THRESHOLD_KB;
use super::table_1::{bracket, crossing};
use super::table_2;

/// The rows of Sections 3 and 4.
pub fn sections(found: &Found, measured: Option<&Results>) -> Vec<Section> {
    let missing = here::kernel_missing(measured);
    vec![
        Section::new("Section 3", "related work", related()),
        Section::new("Section 4", "design", vec![less_than_software(found)]),
        Section::new("Section 4.1", "overview (Figure 5)", overview(found)),
        Section::new("Section 4.2", "reconstruction of requests (Figure 6)", reconstruction(found)),
        Section::new(
            "Section 4.2, requests",
            "gain over the instruction set (requests a second) if a request is a page, and if it is a write of libssl",
            table_2::requests(found),
        ),
        Section::new("Section 4.3", "the engine (Figure 7)", engine(missing.as_deref())),
        Section::new("Section 4.4", "why sizes are told apart", sizes(found)),
        Section::new("Algorithm 1", "RequestAllocation", allocation()),
        Section::new("Algorithm 2", "DynamicScheduler", scheduler(found)),
    ]
}

fn related() -> Vec<Row> {
    vec![
        stated(
            "others optimise the algorithm or the cluster",
            "\u{201c}concentrated more on the algorithm implementation itself\u{201d}",
            "of other studies; no result of this one",
        ),
        stated(
            "this one uses all ways \u{201c}efficiently with higher energy efficiency\u{201d}",
            "its contribution",
            "no number here; Tables 1 and 2 have them",
        ),
        stated(
            "the design can be used in other systems",
            "\u{201c}can be deployed in other encryption systems\u{201d}",
            "not tried in the paper",
        ),
    ]
}

fn less_than_software(found: &Found) -> Row {
    let better = |holds: fn(&Line) -> bool| found.one.iter().filter(|line| holds(line)).count();
    let ppw = better(|line| line.ppw(Way::InstructionSet) > line.ppw(Way::Software));
    let watts = better(|line| line.watts(Way::InstructionSet) < line.watts(Way::Software));
    claim(
        (Rule::Sign, Source::Print),
        "the instruction set does more for a joule than software, at fewer watts",
        "\u{201c}greater PPW and lower energy consumption\u{201d}",
        format!("{} and {} lines of Table 1", of(ppw, 9), of(watts, 9)),
        ppw == 9 && watts == 9,
    )
}

fn overview(found: &Found) -> Vec<Row> {
    let one = &found.one;
    let set: Vec<f64> = one.iter().map(|line| line.ppw(Way::InstructionSet)).collect();
    let least = set.iter().copied().fold(f64::MAX, f64::min);
    let spread = gain(set.iter().copied().fold(0.0, f64::max), least);
    let switches = |item: &str, id: &str| {
        Row::printed_only(Rule::Value, item, Source::Live)
            .printed(&quote(id).to_string())
            .not_here("a count of the kernel's switches in the runs by AF_ALG")
    };
    vec![
        claim(
            (Rule::Shape, Source::Print),
            "the instruction set does as much for a joule at every size",
            "\u{201c}stable and nice\u{201d}",
            format!("{spread:.1} % from the least to the most in Table 1"),
            spread <= 3.0,
        )
        .bound("3 % at most")
        .note("in Table 2 it rises 24 times with the page"),
        claim(
            (Rule::Crossover, Source::Model),
            "the accelerator has the edge for large blocks",
            "\u{201c}has an edge\u{201d}",
            format!("from {:.1} kB on", found.machine.crossing_kb()),
            found.machine.crossing_kb() < 16.0,
        )
        .bound("below 16 kB, the size of a record"),
        stated("observations that the design rests on", "3", "a definition"),
        stated("parts of EECA", "4", "a definition; Figure 3 has five phases"),
        stated("decisions of the design", "3", "a definition"),
        switches("mode switches of a call", "S4.1-mode-switches"),
        switches("context switches of a call", "S4.1-context-switches"),
        stated("an encryption by the instruction set takes one CPU", "1", ONE_CPU),
        stated("Figure 5: the parts of EECA", "a drawing", DRAWING),
    ]
}

const ONE_CPU: &str = "a definition; Table 1, here, has the share of the CPUs that it takes";

fn reconstruction(found: &Found) -> Vec<Row> {
    let device = found.machine.device;
    let full = device.throughput(16.0 * 1024.0, 8.0) / device.rate;
    let last = &found.two[found.two.len() - 1];
    let over_device =
        gain(found.server.eeca(last, found.server.main()), last.rate(Way::Accelerator));
    vec![
        claim(
            (Rule::Value, Source::Model),
            "records are too small to fill the accelerator, even with many requests at once",
            "\u{201c}too small to fully utilize hardware accelerator\u{201d}",
            format!(
                "8 callers of 16 kB fill {:.0} % of it in Table 1; in Table 2 pages fill {} %",
                100.0 * full,
                listed(used_alone(found), 0)
            ),
            false,
        )
        .exempt("false in print: Table 1's accelerator is full from 16 kB on, the size of a record; in Table 2 it is right"),
        stated("differences to the record protocol", "3", "a definition"),
        stated(
            "only step 5 can be optimised",
            "\u{201c}fragment size is defined in SSL/TLS protocol\u{201d}",
            "a definition",
        ),
        stated(
            "the order of the fragments stays",
            "\u{201c}appear in the fragmentation order\u{201d}",
            "a definition; the provider's tests open its records one by one",
        ),
        stated(
            "the ciphertext cannot be sent at once",
            "\u{201c}the maximum packet size for each SSL record\u{201d}",
            "a definition; that clients can decrypt it is in Table 2, here",
        ),
        claim(
            (Rule::Value, Source::Exact),
            "one call for a request, however large",
            "1",
            format!(
                "{} for the page of 2 MB",
                writes(2048).iter().filter(|bytes| **bytes > 8192).count()
            ),
            false,
        )
        .exempt(
            "a provider sees writes of at most 124 KiB, not pages: the section below models both",
        ),
        claim(
            (Rule::Sign, Source::Model),
            "reconstruction helps the accelerator greatly",
            "\u{201c}can greatly improve\u{201d}",
            format!("{over_device:+.0} % requests a second over the accelerator alone at 2 MB"),
            over_device >= 50.0,
        )
        .bound("50 % at least")
        .note("print has 94.98 % for a joule"),
        stated("Figure 6: records with reconstruction", "a drawing", DRAWING),
    ]
}

fn engine(missing: Option<&str>) -> Vec<Row> {
    let units = "a definition; our provider's are in docs/spec/provider.md: the fourth reaches a GPU or a model, and \
                 crate af_alg the kernel's crypto interface";
    vec![
        stated(
            "ENGINE is in OpenSSL since",
            "0.9.6",
            "of another project; OpenSSL 4.0 has it no more",
        ),
        stated(
            "`no-asm` leaves the instructions out",
            "\u{201c}.configure [no-asm]\u{201d}",
            "here OPENSSL_ia32cap masks them; Table 1, here, shows both",
        ),
        stated(
            "ENGINE supports either hardware or software",
            "\u{201c}can only support either\u{201d}",
            "how other engines were written: the paper's own does both in the same framework",
        ),
        stated(
            "ciphers of the engine",
            "ac_crypto_aes_cbc, ac_crypto_aes_192_cbc and ac_crypto_aes_256_cbc",
            "the provider has these and more",
        ),
        stated("units of the engine", "4", units),
        stated(
            "an error of the accelerator",
            "the instruction set does the request",
            "so does the provider: `fault_every` of the simulated accelerator, in the provider's tests",
        ),
        by_kernel(
            "the interaction unit hands requests to the kernel's interface",
            "Crypto API",
            missing,
        ),
        Row::printed_only(
            Rule::Value,
            "the accelerator's driver registers with the highest priority",
            Source::Live,
        )
        .printed("highest")
        .not_here("an accelerator with a driver in the kernel"),
        Row::printed_only(Rule::Value, "the process sleeps until an interrupt", Source::Live)
            .printed("asynchronous")
            .not_here("an accelerator with interrupts"),
        stated("Figure 7: the engine", "a drawing", DRAWING),
    ]
}

fn sizes(found: &Found) -> Vec<Row> {
    let one = &found.one;
    let [software, set, device] = Way::SINGLE;
    let faster = crossing(one, |line| gain(line.rate(device), line.rate(software)));
    let below = one[..4].iter().filter(|line| line.rate(device) < line.rate(set)).count();
    let large = one.iter().filter(|line| line.kb > THRESHOLD_KB);
    let better = large.filter(|line| {
        [software, set]
            .iter()
            .all(|way| line.ppw(device) > line.ppw(*way) && line.watts(device) < line.watts(*way))
    });
    vec![
        claim(
            (Rule::Sign, Source::Print),
            "for large blocks the accelerator does more for a joule, at fewer watts",
            "\u{201c}better PPW\u{201d} and \u{201c}advantages of energy consumption\u{201d}",
            format!("{} lines of Table 1 from 16 kB on", of(better.count(), 5)),
            false,
        )
        .exempt("false in print: at 16 kB it takes 141.003 W, the instruction set 140.762; in Table 2 it does less in all lines"),
        claim(
            (Rule::Crossover, Source::Print),
            "for small blocks even software is faster than the accelerator",
            "\u{201c}even software encryption has advantages\u{201d}",
            format!("the accelerator overtakes software between {}", bracket(faster)),
            faster == Some((1, 2)),
        ),
        claim(
            (Rule::Sign, Source::Print),
            "for small blocks the accelerator is slower than the instruction set",
            "\u{201c}inferior to instruction set\u{201d}",
            format!("in {} lines up to 8 kB", of(below, 4)),
            below == 4,
        ),
    ]
}

fn lane(lane: Lane) -> &'static str {
    if lane == Lane::Accelerator { "accelerator" } else { "instruction set" }
}

fn allocation() -> Vec<Row> {
    let threshold = Threshold(THRESHOLD_KB << 10);
    let at = |bytes: u64, item: &str, printed: Lane| {
        let ours = threshold.allocate(bytes);
        claim((Rule::Value, Source::Exact), item, lane(printed), lane(ours), ours == printed)
    };
    vec![
        at(8 << 10, "a request of T", Lane::Cpu),
        at((8 << 10) + 1, "a request of more than T", Lane::Accelerator),
        stated(
            "the size is that of the request",
            "plaintext",
            "here the size of the page: the bench adds the header's bytes to T, because nginx writes both at once",
        ),
        stated(
            "the page of 16 kB in Table 2",
            "accelerator, by T = 8 kB",
            "3.8 µs slower than by the instruction set, like the pages up to T: apparently the CPU encrypted it",
        ),
    ]
}

/// A queue of requests of these kilobytes.
fn queue(kilobytes: &[u64]) -> Vec<Waiting> {
    (0..).zip(kilobytes).map(|(ticket, kb)| Waiting { ticket, bytes: kb << 10 }).collect()
}

fn backlog(waiting: &[Waiting], in_flight: usize, capacity: usize) -> Backlog<'_> {
    Backlog { waiting, in_flight, in_flight_bytes: 0, capacity }
}

fn scheduler(found: &Found) -> Vec<Row> {
    // Two CPUs; an accelerator that does three requests at once.
    let next = |cpu: &[u64], device: &[u64], busy: (usize, usize)| {
        let (cpu, device) = (queue(cpu), queue(device));
        let (cpu, device) = (backlog(&cpu, busy.0, 2), backlog(&device, busy.1, 3));
        let moved = Migration::Paper.next(Threshold(THRESHOLD_KB << 10), None, &cpu, &device);
        match moved {
            None => "stays".to_owned(),
            Some(one) => {
                format!("number {} leaves the queue of the {}", one.index + 1, lane(one.from))
            }
        }
    };
    let row = |item: &str, printed: &str, ours: String| {
        let holds = printed == ours;
        claim((Rule::Value, Source::Exact), item, printed, ours, holds)
    };
    let from_device = "number 1 leaves the queue of the accelerator";
    let above: Vec<f64> = found.one.iter().filter(|line| line.kb >= 16).map(Line::bytes).collect();
    let full = above.iter().map(|bytes| {
        let device = found.machine.device;
        100.0 * device.throughput(*bytes, device.full_callers(*bytes)) / device.rate
    });
    let full: Vec<f64> = full.collect();
    vec![
        row("full, and requests wait for it", from_device, next(&[], &[64, 128], (0, 3))),
        row("full, and nothing waits for it", "stays", next(&[64], &[], (2, 3))),
        row("a request is migrated even if no CPU is free", from_device, next(&[64], &[64, 128], (2, 3))),
        row(
            "not full, and the CPU's queue begins with a large request",
            "number 1 leaves the queue of the instruction set",
            next(&[64, 128], &[], (2, 2)),
        ),
        row(
            "a small one at the head keeps the large ones behind it",
            "stays",
            next(&[1, 64], &[], (2, 0)),
        ),
        row("not full, and the CPU's queue is empty", "stays", next(&[], &[64], (0, 2))),
        claim(
            (Rule::Value, Source::Model),
            "the accelerator is fully used first, then the rest of the CPU",
            "\u{201c}be fully used first\u{201d}",
            format!(
                "{} % of its rate from 16 kB on, by the best split",
                listed(full.iter().copied(), 0)
            ),
            false,
        )
        .exempt("by construction of the best split; by Algorithm 2's letter the accelerator idles between calls"),
        stated(
            "the loop looks again and again",
            "while 1",
            "its period is not printed; ours acts at each request",
        ),
        stated(
            "a daemon watches the accelerator",
            "\u{201c}continuously monitor the utilization rate\u{201d}",
            "ours looks at each request instead",
        ),
    ]
}
