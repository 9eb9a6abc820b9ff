//! Sections 3 and 4: how EECA is built, and its two algorithms beside ours.

use wattlock_engine::{Backlog, Lane, Migration, Threshold, Waiting};
use wattlock_report::paper::{Row, Rule, Section, Source};

use super::Found;
use super::motivation::DRAWING;
use super::printed::{Way, gain};
use super::quotes::quote;
use super::rows::{claim, listed, of, stated};
use super::server::writes;
use super::speed::THRESHOLD_KB;
use super::table_1::{bracket, crossing};
use super::table_2;

/// The rows of Sections 3 and 4.
pub fn sections(found: &Found) -> Vec<Section> {
    vec![
        Section::new(
            "Section 3",
            "related work",
            vec![stated(
                "others optimise the algorithm or the cluster",
                "in words",
                "of other studies; no result of this one",
            )],
        ),
        Section::new("Section 4.1", "overview (Figure 5)", overview(found)),
        Section::new("Section 4.2", "reconstruction of requests (Figure 6)", reconstruction(found)),
        Section::new(
            "Section 4.2, requests",
            "gain over the instruction set (requests a second) if a request is a page, and if it is a write of libssl",
            table_2::requests(found),
        ),
        Section::new("Section 4.3", "the engine (Figure 7)", engine()),
        Section::new("Section 4.4", "why sizes are told apart", sizes(found)),
        Section::new("Algorithm 1", "RequestAllocation", allocation()),
        Section::new("Algorithm 2", "DynamicScheduler", scheduler(found)),
    ]
}

fn overview(found: &Found) -> Vec<Row> {
    let one = &found.one;
    let set: Vec<f64> = one.iter().map(|line| line.ppw(Way::InstructionSet)).collect();
    let least = set.iter().copied().fold(f64::MAX, f64::min);
    let spread = gain(set.iter().copied().fold(0.0, f64::max), least);
    let better =
        |holds: &dyn Fn(&super::Line) -> bool| one.iter().filter(|line| holds(line)).count();
    let ppw = better(&|line| line.ppw(Way::InstructionSet) > line.ppw(Way::Software));
    let watts = better(&|line| line.watts(Way::InstructionSet) < line.watts(Way::Software));
    let switches = |item: &str, id: &str| {
        Row::printed_only(Rule::Value, item, Source::Live)
            .printed(&format!("{}", quote(id)))
            .not_here("an accelerator behind the kernel's crypto interface")
    };
    vec![
        claim(
            (Rule::Sign, Source::Print),
            "the instruction set does more for a joule than software, at fewer watts",
            "at every size",
            format!("{} and {}", of(ppw, 9), of(watts, 9)),
            ppw == 9 && watts == 9,
        ),
        claim(
            (Rule::Shape, Source::Print),
            "the instruction set does as much for a joule at every size",
            "stable",
            format!("{spread:.1} % from the least to the most in Table 1"),
            spread <= 3.0,
        )
        .bound("3 % at most")
        .note("in Table 2 it rises 24 times with the page"),
        claim(
            (Rule::Crossover, Source::Model),
            "the accelerator has the edge for large blocks",
            "large",
            format!("from {:.1} kB on", found.machine.crossing_kb()),
            found.machine.crossing_kb() < 16.0,
        ),
        stated("parts of EECA", "4", "a definition; Figure 3 has five phases"),
        stated("decisions of the design", "3", "a definition"),
        switches("mode switches of a call", "S4.1-mode-switches"),
        switches("context switches of a call", "S4.1-context-switches"),
        stated("an encryption by the instruction set takes one CPU", "1", "a definition"),
        stated("Figure 5: the parts of EECA", "a drawing", DRAWING),
    ]
}

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
            "too small",
            format!("8 callers of 16 kB fill {:.0} % of it in Table 1", 100.0 * full),
            false,
        )
        .exempt(
            "Table 1's own column over the accelerator is flat from 16 kB on, the size of a record",
        ),
        stated("differences to the record protocol", "3", "a definition"),
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
            "greatly",
            format!("{over_device:+.0} % over the accelerator alone at 2 MB (printed 98 %)"),
            over_device > 0.0,
        ),
        stated("Figure 6: records with reconstruction", "a drawing", DRAWING),
    ]
}

fn engine() -> Vec<Row> {
    let units = "our provider's are in docs/spec/provider.md; the fourth reaches a GPU or a model instead of the \
                 kernel's crypto interface";
    vec![
        stated(
            "ENGINE is in OpenSSL since",
            "0.9.6",
            "of another project; OpenSSL 4.0 has it no more",
        ),
        stated(
            "`no-asm` leaves the instructions out",
            "in words",
            "here OPENSSL_ia32cap masks them; Table 1, here, shows both",
        ),
        stated(
            "ciphers of the engine",
            "AES-CBC with keys of 128, 192 and 256 bits",
            "the provider has these and more",
        ),
        stated("units of the engine", "4", units),
        stated(
            "an error of the accelerator",
            "the instruction set does the request",
            "so does the provider: `fault_every` of the simulated accelerator, in the provider's tests",
        ),
        Row::printed_only(
            Rule::Value,
            "the interaction unit hands requests to the kernel's interface",
            Source::Live,
        )
        .printed("Crypto API")
        .not_here("an accelerator behind the kernel's crypto interface"),
        Row::printed_only(
            Rule::Value,
            "the accelerator's driver registers with the highest priority",
            Source::Live,
        )
        .printed("highest")
        .not_here("an accelerator behind the kernel's crypto interface"),
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
            "than software and instruction set",
            format!("{} lines of Table 1 from 16 kB on", of(better.count(), 5)),
            false,
        )
        .exempt("at 16 kB it takes 141.003 W, the instruction set 140.762; in Table 2 it does less in all lines"),
        claim(
            (Rule::Crossover, Source::Print),
            "for small blocks even software is faster than the accelerator",
            "small",
            format!("the accelerator overtakes software between {}", bracket(faster)),
            faster == Some((1, 2)),
        ),
        claim(
            (Rule::Sign, Source::Print),
            "for small blocks the accelerator is slower than the instruction set",
            "up to 8 kB",
            of(below, 4),
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
            "of a page here: nginx writes page and header at once, so that the bench adds the header to T",
        ),
        stated(
            "the page of 16 kB in Table 2",
            "accelerator, by T = 8 kB",
            "it costs 3.8 µs more than by the instruction set, as pages below T do: the table has it done by the CPU",
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
    let above: Vec<f64> =
        found.one.iter().filter(|line| line.kb >= 16).map(super::Line::bytes).collect();
    let full = above.iter().map(|bytes| {
        let device = found.machine.device;
        100.0 * device.throughput(*bytes, device.full_callers(*bytes)) / device.rate
    });
    let full: Vec<f64> = full.collect();
    vec![
        row("full, and requests wait for it", from_device, next(&[], &[64, 128], (0, 3))),
        row("whether a CPU is free is not asked", from_device, next(&[64], &[64, 128], (2, 3))),
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
        claim(
            (Rule::Value, Source::Model),
            "the accelerator is fully used first, then the rest of the CPU",
            "fully",
            format!(
                "{} % of its rate from 16 kB on, by the best split",
                listed(full.iter().copied(), 0)
            ),
            full.iter().all(|share| *share >= 95.0),
        )
        .bound("95 % at least"),
        stated(
            "the loop looks again and again",
            "while 1",
            "its period is not printed; ours acts at each request",
        ),
        stated(
            "a daemon watches the accelerator",
            "in words",
            "ours looks at each request instead",
        ),
    ]
}
