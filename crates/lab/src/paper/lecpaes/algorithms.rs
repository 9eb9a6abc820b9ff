//! Section 4 of the paper: Algorithms 1 to 4, line by line.

use wattlock_report::paper::{Constant, Model, Residual, Row, Rule, Section, Source};

use super::claim::{BUILT, count, fact, stated, told};
use super::numbers::{Numbers, Unit};
use crate::simulation::platform::{self, MIB};
use crate::simulation::{Algorithm, Experiment};

/// Section 4 and Algorithms 1 to 4.
pub fn sections(experiment: &Experiment) -> Vec<Section> {
    vec![
        Section::new(
            "Section 4",
            "what the text says of the lines",
            vec![
                told(
                    "lines of Algorithms 2, 3 and 4 are as the text numbers them",
                    "2: 1, 3, 4, 5; 3: 3, 4; 4: 3",
                    LISTED,
                ),
                told(
                    "NVML gives a GPU's energy",
                    "setting frequencies of GPUs and retrieving the energy consumption",
                    "contradicts itself: Section 5.1 reads power (nvmlDeviceGetPowerUsage), times time",
                ),
            ],
        ),
        Section::new("Algorithm 1", "LECPAES", algorithm_1(experiment)),
        Section::new(
            "Algorithm 2",
            "GP",
            vec![
                told("lines", "6", LISTED),
                fact(
                    "no NVML, no sensing, the default clock",
                    "does not need to scale GPU frequencies",
                    "a fixed rung",
                    is_fixed(Algorithm::Gp),
                ),
            ],
        ),
        Section::new("Algorithm 3", "CP", algorithm_3()),
        Section::new(
            "Algorithm 4",
            "CS",
            vec![
                told("lines", "6", LISTED),
                fact(
                    "encrypts what is buffered in serial",
                    "serially performs encryption",
                    "one thread, one message after the other",
                    platform::serial().lanes == 1,
                ),
            ],
        ),
    ]
}

const LISTED: &str = "of the listings: nothing of ours has lines to compare";

fn is_fixed(algorithm: Algorithm) -> bool {
    let machine = algorithm.machine(platform::WINDOW);
    machine.velocity == wattlock_stream::Velocity::Fixed(machine.first_rung)
}

fn algorithm_1(experiment: &Experiment) -> Vec<Row> {
    let machine = Algorithm::Lecpaes.machine(experiment.window);
    let thresholds = machine.ladder.thresholds().count();
    vec![
        told("lines", "13", LISTED),
        stated(
            "lines 1 and 2: NVML, and a handle of the GPU",
            "initialize nvml; get GPU device handle",
            "the crate energy opens NVML and finds a GPU by its UUID",
            BUILT,
        ),
        fact(
            "line 3: all core and memory clocks",
            "n kinds of frequencies fc and fm",
            &format!("{} pairs in the model", machine.ladder.rungs().len()),
            machine.ladder.rungs().len() == 6,
        ),
        count("line 4: ratios by Eq. 9", 5.0, thresholds as f64, ""),
        told(
            "line 5: a window of a fixed size",
            "a sliding window with size",
            &format!(
                "the size is not printed; the model's {} MiB are fitted",
                experiment.window >> 20
            ),
        ),
        literal(experiment),
        fact(
            "line 8: the clock is set in each round",
            "nvmlDeviceSetApplicationsClocks",
            "before each batch, which waits for it; the model's 1 ms is fitted",
            machine.calls == platform::INLINE,
        ),
        fact(
            "lines 9 to 11: all that is in the window is encrypted, flows out, and makes \
room",
            "current window",
            "a batch is all that is buffered",
            machine.batch_most == u64::MAX,
        ),
    ]
}

/// Line 7 after line 11: what was just encrypted does not count.
fn literal(experiment: &Experiment) -> Row {
    let found = experiment.grid(&[Algorithm::LecpaesLiteral], &[100]).unwrap_or_default();
    let ours = found.first().map_or_else(String::new, |run| {
        format!(
            "read to the letter, {:.0} MiB/s and {:.0} J at 100 µs; with what is in flight \
counted, Figures 8 and 9",
            run.outcome.rate() / MIB,
            run.outcome.model_joules
        )
    });
    Row::claim(
        Rule::Shape,
        "line 7 looks at the window after line 11 moved its head",
        &ours,
        false,
        Source::Model,
    )
    .printed("282.13 MBps and 395.95 J at 100 µs")
    .exempt("contradicts itself: its numbers are not of the letter: what is in flight has to count")
}

fn algorithm_3() -> Vec<Row> {
    vec![
        told("lines", "7", LISTED),
        stated(
            "threads are started in every round",
            "line 3, inside the loop",
            "the live loop starts them in each round; the model has no cost for it",
            BUILT,
        ),
        told(
            "two E5-2640 v2 have hyper-threading and 16 cores",
            "support hyper-threading and have 16 cores totally",
            "as Table 2",
        ),
        count("threads, twice the cores", 32.0, 2.0 * platform::parallel().lanes as f64, "threads")
            .note(
                "the model has 16 lanes: 16 cores with two of the paper's 32 threads on each, \
threads t and t + 16; a model of 32 independent threads fits this seed as well, other seeds worse",
            ),
        stated("each thread has as many whole users", "even users' data", "dealt in turns", BUILT),
        told("what starting 32 threads takes", "not printed", "the model has no cost for it"),
    ]
}

/// CP with 32 lanes rather than 16.
pub fn threads_apart(experiment: &Experiment) -> Model {
    let machine = platform::parallel_of(32, THREADS_APART_RATE);
    let printed = Numbers::printed();
    let error = |unit: Unit| {
        Experiment::LATENCIES_US.map(|us| {
            let ours = experiment.on(&machine, us).map_or(f64::NAN, |outcome| match unit {
                Unit::Joules => outcome.model_joules,
                _ => outcome.rate() / MIB,
            });
            ours / printed.of(Algorithm::Cp, us, unit) - 1.0
        })
    };
    Model {
        name: "CP with 32 threads apart, a note: the runs have 16 lanes".to_owned(),
        about: "Each of the paper's 32 threads has its part of a higher rate of its own. It \
fits this seed as well as 16 cores with two threads each; other seeds fit \
worse."
            .to_owned(),
        constants: vec![
            constant("threads", 32.0, "", "printed"),
            constant(
                "rate of all threads",
                THREADS_APART_RATE / MIB,
                "MiB/s",
                "Figure 9, CP; Table 7",
            ),
        ],
        residuals: vec![
            Residual::of("Figure 8, CP", error(Unit::Joules)),
            Residual::of("Figure 9, CP", error(Unit::Mib)),
        ],
    }
}

/// Bytes a second.
const THREADS_APART_RATE: f64 = 117e6;

fn constant(name: &str, value: f64, unit: &str, from: &str) -> Constant {
    Constant { name: name.to_owned(), value, unit: unit.to_owned(), from: from.to_owned() }
}
