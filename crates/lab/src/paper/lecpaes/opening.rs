//! What the paper says before its models: abstract, Sections 1 to 3.1, and Figure 1.

use wattlock_report::paper::{Row, Rule, Section, Source};
use wattlock_stream::{Ladder, Sense, Velocity};

use super::bursts::bursts;
use super::claim::{BUILT, Claim, Found, among, at_each, count, fact, rows_of, stated, told};
use super::closing::saves_when_fast;
use super::fits::{gp_over_time, low_over_time};
use super::numbers::{Numbers, TOTAL_MIB, Unit, mean};
use super::printed::difference;
use crate::simulation::platform::{MIB, k20m};
use crate::simulation::{Algorithm, Experiment, Run};
use Algorithm::{Cp, Cs, Gp, Lecpaes};

/// Abstract, Sections 1.1 to 3.1, and Figure 1.
pub fn sections(numbers: &[&Numbers<'_>], runs: &[Run]) -> Vec<Section> {
    let bursts = bursts();
    vec![
        Section::new("Abstract", "what it says of LECPAES", {
            let mut rows = rows_of(&ABSTRACT, numbers);
            rows.push(stated(
                "four parts make it up",
                "parallelizes AES, adopts a sliding window, senses the velocity …, scales the \
frequency",
                "AES-CTR in parallel, the window, thresholds by clock ratios, the six clock settings of a K20M",
                BUILT,
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
                told(
                    "AES is stronger and faster than its rivals, by [3]",
                    "higher security and performance compared to its competitors",
                    "of another paper",
                ),
                told(
                    "CTR runs fully in parallel and is provably secure, by [4]",
                    "can be parallelized fully and have the property of provable security",
                    "of another paper; that it runs in parallel is held in Section 3.2",
                ),
            ]);
            rows
        }),
        Section::new(
            "Section 1.2",
            "contributions",
            vec![
                told(
                    "contributions",
                    "four aspects",
                    "a list: scaling, the window, LECPAES, and the comparison",
                ),
                count("other algorithms", 3.0, Algorithm::PAPER.len() as f64 - 1.0, ""),
                told(
                    "quantities compared",
                    "energy consumption, throughput, and retransmission rate",
                    "a list: Sections 5.2.1 to 5.2.3",
                ),
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
    .note("what one thread of this machine does is in Figure 9, here"),
    Claim::new(Rule::Sign, "LECPAES lowers energy", "can reduce energy consumption", |numbers| {
        let Found { text, .. } = at_each(|us| saving(numbers, us) > 0.0);
        let joules = mean(&numbers.less(Lecpaes, Gp, Unit::Joules));
        Found { text: format!("{text}; {joules:+.1} J in the mean"), holds: joules < 0.0 }
    })
    .bound("less than GP in the mean, as Section 7 (1)")
    .note("at 100 µs it takes 3.8 % more"),
    Claim::new(
        Rule::Value,
        "retransmissions grow only slightly",
        "only slightly increases retransmission rate",
        |numbers| {
            let more = mean(&numbers.less(Lecpaes, Gp, Unit::Retransmissions));
            let text = if numbers.source == Source::Print {
                let of_text = difference(Gp, Unit::Retransmissions, "avg");
                format!("by {of_text:.5} for each message in the mean; by Table 3 by {more:.5}")
            } else {
                format!("by {more:.5} for each message in the mean")
            };
            Found { text, holds: false }
        },
    )
    .exempt(
        "contradicts itself: Table 3 gives twelve times the 0.00109 of Table 6; by it the rate grows by \
13 % at 100 µs and by 94 % at 2000 µs",
    )
    .model_exempt("the model does not give it: all of it comes from 100 µs (see Table 6)"),
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
        saves_when_fast,
    )
    .bound("saves at 100 µs")
    .exempt("false in print: at 100 µs it costs more than GP"),
];

const MOTIVATION: [Claim; 7] = [
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
    .exempt("false in print: it takes more from 1500 µs on (Table 5)"),
    Claim::new(
        Rule::Sign,
        "higher clocks take more energy",
        "with the increase of frequencies …, energy consumption increases",
        |numbers| among(&Experiment::LATENCIES_US[1..], |us| saving(numbers, us) > 0.0),
    )
    .bound("GP above LECPAES from 500 µs on, where its clock is the higher")
    .note("by power at rest, not by Eq. 13: see Section 3.5"),
    Claim::new(
        Rule::Sign,
        "more cores draw more power",
        "the number of cores, … problems of heat dissipation, system stability",
        |numbers| {
            let watts = |who, us| numbers.of(who, us, Unit::Joules) / numbers.seconds(who, us);
            let Found { text, holds } = at_each(|us| watts(Cp, us) > watts(Cs, us));
            let (cp, cs) = (watts(Cp, 100), watts(Cs, 100));
            Found { text: format!("CP {cp:.1} W, CS {cs:.1} W at 100 µs; more {text}"), holds }
        },
    )
    .bound("CP above CS, 7 of 7"),
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

fn related() -> Vec<Row> {
    const OTHER: &str = "of another paper";
    vec![
        told(
            "scaling GPU clocks saves energy, scaling CPU clocks hardly, by [5]",
            "trivial using voltage and frequency scaling of CPUs",
            OTHER,
        ),
        told(
            "takes voltage and frequency scaling from [5]",
            "we adopt the idea of scaling voltage and frequency of GPUs",
            "contradicts itself: Algorithm 1 sets clocks alone; no voltage is printed, and Eq. 10 to 13 \
need it to fall",
        ),
        linear(),
        own_policy(),
        told(
            "Nagasaka's model fails with texture reads, by [12]",
            "invalid for kernels with texture accesses",
            OTHER,
        ),
        told("Wu: mean error", "15 %", OTHER),
        told(
            "Kasichayanula: power of a Tesla C2075, by [15]",
            "three kernels on Nvidia Tesla C2075",
            OTHER,
        ),
        told(
            "Manavski: AES on a GPU",
            "about 20 times compared to the serial AES",
            "of another paper; in this one GP over CS is 51 at 100 µs and 17.8 in the mean",
        ),
        told(
            "Iwai: bytes a thread, and where tables lie",
            "16 byte/thread and storing T tables in shared memory",
            "of another paper; `paper blocks` measures that grain",
        ),
        told(
            "[18] to [29] encrypt single files, not streams",
            "only deal with single data file",
            OTHER,
        ),
        told(
            "a stream that is encrypted as a single file fails",
            "lack of efficiency and even to cause service failure",
            "not tested: the paper runs no such form",
        ),
        told(
            "what [1], [8] to [11], [13], [16], [17], [19], [30] and [31] found",
            "power gating, ECC, models of power and time, SpMV, the formulas of Section 3.5",
            OTHER,
        ),
    ]
}

/// Whether energy goes with a GPU's clock, by the lines of joules over time.
fn linear() -> Row {
    let printed = Numbers::printed();
    let (gp, low) = (gp_over_time(&printed), low_over_time(&printed));
    let ours = format!(
        "all bytes cost {:.0} J at 324 MHz and {:.0} J ({:.0} to {:.0}) at 705",
        low.intercept, gp.intercept, gp.without_one.0, gp.without_one.1
    );
    Row::claim(
        Rule::Shape,
        "AES is bound by computing, so that lower clocks save by [6]",
        &ours,
        low.intercept / gp.intercept <= 0.5,
        Source::Print,
    )
    .printed("GPU frequencies and energy consumption have a linear relationship")
    .bound("half the joules or fewer at 324 MHz")
    .exempt(
        "false in print: the bytes cost about as much at less than half the clock (Section 3.5)",
    )
}

/// Whether the policy looks at anything but the window.
fn own_policy() -> Row {
    let ladder: Ladder = k20m();
    let rung = |used, rung, asked| {
        let sense = Sense { buffered: used, in_flight: 0, unread: 0, size: 758, rung, asked };
        Velocity::Lecpaes.rung(&sense, &ladder)
    };
    let same = (0..=758).filter(|&used| rung(used, 0, 0.0) == rung(used, 5, 1e12)).count();
    fact(
        "differs from [7]: clocks follow the stream's velocity",
        "based on the current velocity of stream",
        &format!("in {same} of 759 states of the window nothing else changes the clock"),
        same == 759,
    )
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
        .exempt("contradicts itself: its own experiment blocks its producer, and loses nothing"),
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
        let bytes = match numbers.source {
            Source::Print => gp_over_time(numbers).intercept,
            _ => k20m().rungs()[0].joules_per_byte * MIB * TOTAL_MIB,
        };
        let share = 1.0 - bytes / numbers.of(Gp, 3000, Unit::Joules);
        let text = format!("{:.0} % of GP's joules at 3000 µs are power at rest", 100.0 * share);
        Found { text, holds: share > 0.5 }
    },
)
.bound("more than half")
.note(
    "by what does not grow with time (Section 3.5), or the model's 0.098 J for a MiB; Figure 6 has \
it otherwise",
);

/// Whether one thread keeps up with arrivals.
pub const SLOWER_THAN_STREAMS: Claim = Claim::new(
    Rule::Order,
    "serial encryption is slower than usual streams",
    "lower than the mainstream velocity",
    |numbers| {
        let arrivals = TOTAL_MIB / (12_000.0 * 3000e-6);
        // At 100 µs CS is not bound by what arrives.
        let cs = numbers.of(Cs, 100, Unit::Mib);
        let text = format!("CS {cs:.2} MiB/s; of the slowest stream {arrivals:.2} MiB/s arrive");
        Found { text, holds: cs < arrivals }
    },
)
.note("today's CPUs are faster: see what is measured here");

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
