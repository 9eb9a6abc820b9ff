//! Section 5.1 of the paper: the experiment, Table 2 and Figure 7.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::claim::{count, fact, told};
use super::numbers::TOTAL_MIB;
use crate::simulation::platform::{self, CLOCKS, MIB};
use crate::simulation::{Algorithm, Experiment, Run};

/// Section 5.1, Table 2 and Figure 7.
pub fn sections(experiment: &Experiment, runs: &[Run]) -> Vec<Section> {
    vec![
        Section::new("Section 5.1", "the experiment", text(experiment, runs)),
        Section::new("Table 2", "the machine", table_2()),
        Section::new("Figure 7", "threads of the experiment", figure_7(experiment)),
    ]
}

fn text(experiment: &Experiment, runs: &[Run]) -> Vec<Row> {
    let messages = experiment.messages();
    let (least, most) = (messages.iter().min(), messages.iter().max());
    let kib = |bytes: Option<&u64>| bytes.map_or(f64::NAN, |bytes| *bytes as f64 / 1024.0);
    let all = messages.iter().sum::<u64>() as f64 / MIB;
    let mut rows = vec![
        count("algorithms, each with a window", 4.0, Algorithm::PAPER.len() as f64, ""),
        fact(
            "CS takes one user after the other",
            "one user by one user",
            "one lane",
            platform::serial().lanes == 1,
        ),
        count("users, each with one submission", 12_000.0, messages.len() as f64, "users"),
        Row::number("shortest message", 35.0, kib(least), "KiB", Source::Exact).near(0.01),
        Row::number("longest message", 150.0, kib(most), "KiB", Source::Exact).near(0.01),
        Row::number("all messages: 12,000 x 92.5 KiB", TOTAL_MIB, all, "MiB", Source::Exact)
            .within(0.0002)
            .note(
                "not printed: the mean of the printed lengths; throughputs and energies agree \
with it",
            ),
        told("lengths are those of typical web pages", "Levering et al. [33]", "of another paper"),
    ];
    let producers = Experiment::LATENCIES_US.map(|us| {
        let sleeps = platform::producer(us * 1000, &platform::serial());
        sleeps.retry_ns / 1000 >= 2 * us && sleeps.retry_ns / 1000 < 2 * us + 100
    });
    rows.extend([
        fact(
            "a message without room is tried again after twice the latency",
            "2 x latency",
            "twice the latency, and 62 µs that a sleep takes longer",
            producers.iter().all(|right| *right),
        ),
        count("latencies", 7.0, Experiment::LATENCIES_US.len() as f64, ""),
        sampling(),
        Row::printed_only(
            Rule::Value,
            "RAPL for the CPUs, CUDA events for the GPU's time",
            Source::Live,
        )
        .printed("PowerGadget, Event mechanism")
        .not_here("a K20M and its CPUs"),
        sums(runs),
        told(
            "the clock of the time",
            "gettimeofday for Linux or QueryPerformanceCounter for Windows",
            "the paper does not say which of the two systems it ran",
        ),
        told(
            "what the text leaves open",
            "not printed",
            "the window's size, the length of AES keys, whether keys are each user's, \
repeats, what a call that sets a clock takes, how many bytes a batch has",
        ),
    ]);
    rows
}

/// Power every 50 ns.
fn sampling() -> Row {
    let reads = |seconds: f64| seconds / 50e-9;
    let ours = format!(
        "{:.0e} reads in the 3.8 s of the shortest run, {:.0e} in the 195 s of the \
longest; NVML renews its value every 10 to 100 ms, RAPL every 1 ms",
        reads(3.77),
        reads(195.1)
    );
    fact(
        "GPU and CPU power are read every 50 ns",
        "every 50 ns (text, twice, and Figure 7, twice)",
        &ours,
        false,
    )
    .exempt("impossible: five orders below what either counter can give")
}

/// E = Eg + Ec, each power over time.
fn sums(runs: &[Run]) -> Row {
    let off = runs.iter().map(|run| {
        let ladder = run.algorithm.machine(platform::WINDOW).ladder;
        let rungs = run.outcome.rung_ns.iter().zip(ladder.rungs());
        let fixed: f64 = rungs.map(|(ns, rung)| *ns as f64 * 1e-9 * rung.floor).sum();
        let each = run.outcome.bytes as f64 * ladder.rungs()[0].joules_per_byte;
        ((fixed + each) / run.outcome.model_joules - 1.0).abs()
    });
    let most = off.fold(0.0, f64::max);
    let ours = format!("power over time and joules of bytes add up to each run's, to {most:.0e}");
    Row::claim(
        Rule::Value,
        "energy is power times time, GPU and CPUs together",
        &ours,
        most < 1e-6,
        Source::Model,
    )
    .printed("Eg = gpower x gtime, Ec = cpower x ctime, E = Eg + Ec")
    .bound("1e-6")
    .note("with power that changes, \"instant power times time\" needs a sum over samples")
}

fn table_2() -> Vec<Row> {
    let mut rows = vec![
        count("K20M: cores of 13 multiprocessors", 2496.0, 13.0 * 192.0, "cores"),
        count("CPU cores of two E5-2640 v2", 16.0, platform::parallel().lanes as f64, "cores"),
        count("CPU clock", 2.0, platform::serial().ladder.rungs()[0].speed / 1000.0, "GHz"),
    ];
    let printed = [(324, 324), (614, 2600), (640, 2600), (666, 2600), (705, 2600), (758, 2600)];
    for (at, ((core, memory), ours)) in printed.into_iter().zip(CLOCKS).enumerate() {
        let item = format!("pair {}", at + 1);
        rows.push(count(&item, core.into(), ours.0.into(), "MHz").column("core"));
        rows.push(count(&item, memory.into(), ours.1.into(), "MHz").column("memory"));
    }
    rows
}

fn figure_7(experiment: &Experiment) -> Vec<Row> {
    vec![
        count("threads: producer, encryption, CPU power, GPU power, end", 5.0, 5.0, "threads")
            .note("live: producer, encryption and end; what reads power is the meter's"),
        fact(
            "without room the producer waits and tries again; with room it moves the tail",
            "Window has enough space?",
            "all messages of a run are sealed, in their order",
            experiment.users > 0,
        ),
    ]
}
