//! What the paper says before its models: abstract, Sections 1 to 3.1, and Figure 1.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::claim::{Claim, Found, among, at_each, count, fact, rows_of, told};
use super::numbers::{Numbers, TOTAL_MIB, Unit, mean};
use crate::simulation::platform::{MIB, k20m};
use crate::simulation::{Algorithm, Curve, Experiment, REPORTING, Run, Study};
use Algorithm::{Cp, Cs, Gp, Lecpaes};

/// Abstract, Sections 1.1 to 3.1, and Figure 1.
pub fn sections(numbers: &[&Numbers<'_>], runs: &[Run]) -> Vec<Section> {
    let bursts = bursts();
    vec![
        Section::new("Abstract", "what it says of LECPAES", {
            let mut rows = rows_of(&ABSTRACT, numbers);
            rows.push(fact(
                "four parts make it up",
                "parallelizes AES, adopts a sliding window, senses the velocity …, scales the \
frequency",
                "AES-CTR in parallel, the window, thresholds by clock ratios, the K20M's \
six clock settings: all four here",
                true,
            ));
            rows.push(bursts.clone().printed("adopts a sliding window to stabilize burst flows"));
            rows
        }),
        Section::new("Section 1.1", "motivation", {
            let mut rows = rows_of(&MOTIVATION, numbers);
            rows.extend([
                told(
                    "Titan, K20x, second of the TOP500 of November 2015",
                    "8.208 MW",
                    "of another source: TOP500 says 8.21",
                ),
                told("AES is stronger and faster than its rivals", "[3]", "of another paper"),
                told(
                    "CTR runs fully in parallel and is provably secure",
                    "[4]",
                    "of another paper; that it runs in parallel is held in Section 3.2",
                ),
            ]);
            rows
        }),
        Section::new(
            "Section 1.2",
            "contributions",
            vec![
                count("contributions", 4.0, 4.0, "").note("scaling, window, LECPAES, comparison"),
                count("other algorithms", 3.0, Algorithm::PAPER.len() as f64 - 1.0, ""),
                count("quantities compared", 3.0, 3.0, "")
                    .note("joules, throughput, retransmissions"),
            ],
        ),
        Section::new(
            "Section 1.3",
            "organization",
            vec![told("Sections 2 to 7 follow", "Section 2 … Section 7", "of its own layout")],
        ),
        Section::new("Section 2", "related work", related()),
        Section::new("Section 3.1", "streams of a server", streams(numbers, runs, bursts)),
        Section::new(
            "Figure 1",
            "users, a server, a stream",
            vec![told(
                "users' streams become one, which is encrypted",
                "a drawing",
                "without a number",
            )],
        ),
    ]
}

/// "-3.8 %", the saving at a latency.
fn saving(numbers: &Numbers<'_>, us: u64) -> f64 {
    1.0 - numbers.of(Lecpaes, us, Unit::Joules) / numbers.of(Gp, us, Unit::Joules)
}

const ABSTRACT: [Claim; 5] = [
    Claim::new(
        Rule::Order,
        "serial encryption is slow and takes more energy",
        "poor in performance and consume more energy",
        |numbers| {
            let others = [Cp, Gp, Lecpaes];
            at_each(|us| {
                others.iter().all(|other| {
                    numbers.of(Cs, us, Unit::Mib) < numbers.of(*other, us, Unit::Mib)
                        && numbers.of(Cs, us, Unit::Joules) > numbers.of(*other, us, Unit::Joules)
                })
            })
        },
    )
    .bound("lowest throughput and most joules, 7 of 7")
    .note(
        "the printed CS does 5.6 MiB/s; one thread with the same tables does 250 MB/s \
here",
    ),
    Claim::new(Rule::Sign, "LECPAES lowers energy", "can reduce energy consumption", |numbers| {
        at_each(|us| saving(numbers, us) > 0.0)
    })
    .bound("less than GP")
    .exempt("false in print at 100 µs: 3.8 % more"),
    Claim::new(
        Rule::Value,
        "retransmissions grow only slightly",
        "only slightly increases retransmission rate",
        |numbers| {
            let more = mean(&numbers.less(Lecpaes, Gp, Unit::Retransmissions));
            Found { text: format!("by {more:.4} for each message in the mean"), holds: true }
        },
    )
    .exempt(
        "a difference; by Table 3 it is +13 % at 100 µs and +94 % at 2000 µs, by the \
model all of it comes from 100 µs",
    ),
    Claim::new(
        Rule::Value,
        "throughput falls only slightly",
        "slightly decreases throughput",
        |numbers| {
            let lost = Experiment::LATENCIES_US
                .map(|us| 1.0 - numbers.of(Lecpaes, us, Unit::Mib) / numbers.of(Gp, us, Unit::Mib));
            let most = lost.into_iter().fold(f64::NAN, f64::max);
            Found { text: format!("by {:.1} % at most", 100.0 * most), holds: most <= 0.06 }
        },
    )
    .bound("6 % at most at each latency"),
    Claim::new(
        Rule::Sign,
        "it is excellent for fast streams",
        "an excellent algorithm for fast and energy-saving stream encryption",
        |numbers| {
            let saved = saving(numbers, 100);
            Found { text: format!("saves {:.1} % at 100 µs", 100.0 * saved), holds: saved > 0.0 }
        },
    )
    .bound("saves at 100 µs")
    .exempt("false in print: at 100 µs it costs more than GP"),
];

const MOTIVATION: [Claim; 5] = [
    Claim::new(
        Rule::Order,
        "a CPU with a GPU is faster than a CPU alone",
        "better performance",
        |numbers| at_each(|us| numbers.of(Gp, us, Unit::Mib) > numbers.of(Cp, us, Unit::Mib)),
    )
    .bound("7 of 7"),
    Claim::new(
        Rule::Order,
        "a CPU with a GPU takes less energy than a CPU alone",
        "and energy efficiency",
        |numbers| at_each(|us| numbers.of(Gp, us, Unit::Joules) < numbers.of(Cp, us, Unit::Joules)),
    )
    .bound("7 of 7")
    .exempt("false in print from 1500 µs on (Table 5)"),
    Claim::new(
        Rule::Sign,
        "more cores take more energy",
        "with the increase of … the number of cores, energy consumption increases",
        |numbers| {
            let ratio = |us| numbers.of(Cs, us, Unit::Joules) / numbers.of(Cp, us, Unit::Joules);
            let text = format!(
                "CP's 16 cores take {:.1} times less than CS at 100 µs, {:.1} times at 3000 µs",
                ratio(100),
                ratio(3000)
            );
            Found { text, holds: ratio(100) < 1.0 }
        },
    )
    .exempt("false in print: the same work takes less on more cores"),
    Claim::new(
        Rule::Sign,
        "slow streams waste energy",
        "slow streams will waste energy",
        |numbers| {
            let (fast, slow) =
                (numbers.of(Gp, 100, Unit::Joules), numbers.of(Gp, 3000, Unit::Joules));
            let text = format!(
                "GP takes {fast:.0} J at 100 µs and {slow:.0} J at 3000 µs for the same bytes"
            );
            Found { text, holds: slow > fast }
        },
    ),
    Claim::new(
        Rule::Sign,
        "clocks that follow the velocity save it",
        "scale the frequencies of GPUs correspondingly",
        |numbers| among(&Experiment::LATENCIES_US[1..], |us| saving(numbers, us) > 0.0),
    )
    .bound("from 500 µs on")
    .note("by power at rest, not by Eq. 13: see Section 3.5"),
];

/// Bursty streams through a window of a GPU at its default clock.
fn bursts() -> Row {
    let study = Study::new(Curve::k20m(), 0.05, None);
    let bursty = REPORTING.iter().filter(|stream| stream.bursty);
    let kept: Vec<bool> = bursty
        .map(|stream| {
            let trial = study.stream(stream, 10.0, 1);
            trial.rows.iter().any(|row| row.velocity.name() == "fixed" && row.keeps)
        })
        .collect();
    let ours = format!(
        "{} of {} bursty streams of `simulate policies` keep 50 ms and a refusal in a \
thousand messages, at the default clock",
        kept.iter().filter(|kept| **kept).count(),
        kept.len()
    );
    Row::claim(
        Rule::Sign,
        "a window steadies bursts",
        &ours,
        kept.iter().all(|kept| *kept),
        Source::Model,
    )
    .note("the paper runs no burst: its streams have a fixed inflow (Section 7)")
}

fn related() -> Vec<Row> {
    const OTHER: &str = "of another paper";
    vec![
        told("scaling GPU clocks saves energy, scaling CPU clocks hardly", "[5]", OTHER),
        told(
            "AES is bound by computing, so that lower clocks save by [6]",
            "a linear relationship",
            "false in print here: all bytes cost 105 J at 324 MHz and 105 to 134 J at 705 \
(Section 3.5)",
        ),
        fact(
            "differs from [7]: clocks follow the stream's velocity",
            "based on the current velocity",
            "the policy looks at the window alone",
            true,
        ),
        told("Nagasaka's model fails with texture reads", "[12]", OTHER),
        told("Wu: mean error", "15 %", OTHER),
        told("Kasichayanula: a Tesla C2075", "[15]", OTHER),
        told(
            "Manavski: AES on a GPU",
            "20 times a CPU",
            "of another paper; GP over CS is 51 at 100 µs and 17.8 in the mean here",
        ),
        told(
            "Iwai: bytes a thread",
            "16 bytes",
            "of another paper; `paper blocks` measures that grain",
        ),
        told("[18] to [29] encrypt single files, not streams", "Subsection 2.3", OTHER),
    ]
}

fn streams(numbers: &[&Numbers<'_>], runs: &[Run], bursts: Row) -> Vec<Row> {
    let sealed = runs.iter().filter(|run| run.outcome.messages == 12_000).count();
    let ours = format!(
        "{sealed} of {} runs of the model seal all 12,000 messages: the producer waits",
        runs.len()
    );
    let mut rows = vec![
        Row::claim(
            Rule::Value,
            "inflow that is faster in the mean is not all encrypted",
            &ours,
            false,
            Source::Model,
        )
        .printed("will not achieve all the encryption … part failure of services")
        .exempt("its own experiment blocks its producer, and loses nothing"),
        bursts.printed("buffering the burst throughput to stabilize"),
    ];
    let claims = [REST, SLOWER_THAN_STREAMS, PARALLEL_ANSWERS];
    rows.extend(rows_of(&claims, numbers));
    rows
}

const REST: Claim = Claim::new(
    Rule::Value,
    "with slow inflow, servers draw energy at rest",
    "idle but still consume energy",
    |numbers| {
        let bytes = k20m().rungs()[0].joules_per_byte * MIB * TOTAL_MIB;
        let share = 1.0 - bytes / numbers.of(Gp, 3000, Unit::Joules);
        let text = format!("{:.0} % of GP's joules at 3000 µs are power at rest", 100.0 * share);
        Found { text, holds: share > 0.5 }
    },
)
.bound("more than half")
.note("with the model's 0.098 J for a MiB; it contradicts Figure 6");

/// Whether one thread keeps up with arrivals.
pub const SLOWER_THAN_STREAMS: Claim = Claim::new(
    Rule::Order,
    "serial encryption is slower than usual streams",
    "lower than the mainstream velocity",
    |numbers| {
        let arrivals = TOTAL_MIB / (12_000.0 * 3000e-6);
        let cs = numbers.of(Cs, 3000, Unit::Mib);
        let text = format!("CS {cs:.2} MiB/s; at 3000 µs {arrivals:.2} MiB/s arrive");
        Found { text, holds: cs < arrivals }
    },
)
.note("not so on today's CPUs: see what is measured here");

const PARALLEL_ANSWERS: Claim = Claim::new(
    Rule::Order,
    "parallel encryption keeps up better",
    "improve the velocity of encryption by parallel encryption",
    |numbers| {
        at_each(|us| {
            let [cs, cp, gp] = [Cs, Cp, Gp].map(|who| numbers.of(who, us, Unit::Mib));
            cs < cp && cp < gp
        })
    },
)
.bound("CS < CP < GP, 7 of 7");
