//! Section 5.1 of the paper: the experiment, Table 2 and Figure 7.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::claim::{BUILT, count, fact, series, stated, told};
use super::numbers::{Numbers, Unit};
use super::velocity::TABLE_1;
use crate::paper::table::Table;
use crate::simulation::platform::{self, MIB};
use crate::simulation::{Algorithm, Experiment};

const TABLE_2: Table = Table(include_str!("../../../papers/lecpaes_table2_platform.csv"));

/// Section 5.1, Table 2 and Figure 7.
pub fn sections(experiment: &Experiment) -> Vec<Section> {
    vec![
        Section::new("Section 5.1", "the experiment", text(experiment)),
        Section::new("Table 2", "the machine", table_2()),
        Section::new("Figure 7", "threads of the experiment", figure_7()),
    ]
}

fn text(experiment: &Experiment) -> Vec<Row> {
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
        count("users", 12_000.0, messages.len() as f64, "users"),
        told(
            "users submit their data cyclically",
            "12,000 users submitting their data cyclically",
            "read as one submission of each user: 1083.98 MiB agree with throughputs and joules",
        ),
        told(
            "lengths are random",
            "in typical web accesses randomly",
            "ours are evenly spaced and shuffled by the seed: their sum is the same for every seed",
        ),
        Row::number("shortest message", 35.0, kib(least), "KiB", Source::Exact).near(0.01),
        Row::number("longest message", 150.0, kib(most), "KiB", Source::Exact).near(0.01),
        Row::unprinted("all messages", all, "MiB", Source::Exact)
            .exempt("not printed: 12,000 x 92.5 KiB, the mean of the printed lengths"),
        units(),
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
            "twice the latency, and what a sleep takes longer (62 µs, fitted)",
            producers.iter().all(|right| *right),
        ),
        count("latencies", 7.0, Experiment::LATENCIES_US.len() as f64, ""),
        sampling(),
        told(
            "RAPL for the CPUs, CUDA events for the GPU's time",
            "PowerGadget, Event mechanism",
            "of its method: nothing of ours is compared",
        ),
        told(
            "energy is power times time, GPU and CPUs together",
            "Eg = gpower x gtime, Ec = cpower x ctime, E = Eg + Ec",
            "a definition; with power that changes, \"instant power times time\" needs a sum over samples",
        ),
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
    let per_value = |seconds: f64| seconds / 50e-9;
    let ours = format!(
        "{:.0e} reads in the 195 s of the longest run; RAPL renews its value every 1 ms, which are {:.0} \
reads, NVML every 10 to 100 ms, {:.0} to {:.0}",
        per_value(195.1),
        per_value(1e-3),
        per_value(10e-3),
        per_value(100e-3)
    );
    fact(
        "GPU and CPU power are read every 50 ns",
        "every 50 ns (text, twice, and Figure 7, twice)",
        &ours,
        false,
    )
    .exempt("false in print: 20,000 times as often as RAPL has a new value, and NVML far more")
}

/// What KB and MBps are, by what sleeps take longer: LECPAES' GPU keeps up from 500 µs on, so that a
/// message takes the latency and that.
fn units() -> Row {
    let printed = Numbers::printed();
    let late = |bytes: f64, mega: f64| {
        [500, 1000, 1500, 2000, 2500, 3000].map(|us: u64| {
            let rate = printed.of(Algorithm::Lecpaes, us, Unit::Mib) * mega;
            1e6 * bytes / rate - us as f64
        })
    };
    let (binary, decimal) = (late(92.5 * 1024.0, MIB), late(92.5 * 1e3, 1e6));
    let spread = |late: &[f64]| {
        late.iter().fold(f64::MIN, |most, us| most.max(*us))
            - late.iter().fold(f64::MAX, |least, us| least.min(*us))
    };
    let ours = format!(
        "a sleep takes {} µs longer at 500 to 3000 µs; with 1000 and 10^6 bytes {} µs",
        series(&binary, 0),
        series(&decimal, 0)
    );
    Row::claim(
        Rule::Shape,
        "KB and MBps are of 1024 and 2^20 bytes",
        &ours,
        spread(&binary) <= 15.0 && spread(&decimal) > 15.0,
        Source::Print,
    )
    .printed("35 KB, 150 KB, MBps")
    .bound("by the same within 15 µs at all six")
    .note("an inference: all MiB and MiB/s here rest on it, and that 30.31 is more than arrives")
}

fn table_2() -> Vec<Row> {
    let printed = |item: &str| TABLE_2.number(item, "core").unwrap_or(f64::NAN);
    // A multiprocessor of Kepler has 192 cores.
    let cores = printed("multiprocessors") * 192.0;
    let mut rows = vec![
        count("K20M: cores of 13 multiprocessors", printed("GPU cores"), cores, "cores"),
        count(
            "CPU cores of two E5-2640 v2",
            printed("CPU cores"),
            platform::parallel().lanes as f64,
            "cores",
        ),
        count(
            "CPU clock",
            printed("CPU clock"),
            platform::serial().ladder.rungs()[0].speed / 1000.0,
            "GHz",
        ),
    ];
    for of_table_1 in TABLE_1.lines() {
        let item = format!("pair {}", of_table_1.first());
        for (column, other) in [("core", "core_mhz"), ("memory", "mem_mhz")] {
            let here = TABLE_2.number(&item, column).unwrap_or(f64::NAN);
            let there = of_table_1.number(other).unwrap_or(f64::NAN);
            let row = Row::number(&item, here, there, "MHz", Source::Print).near(0.0);
            rows.push(row.column(column).note("beside Table 1"));
        }
    }
    rows
}

fn figure_7() -> Vec<Row> {
    vec![
        told(
            "threads: producer, encryption, CPU power, GPU power, end",
            "thread 0 to thread 4",
            "as it is drawn; ours are producer, encryption and end: what reads power is the meter's",
        ),
        stated(
            "without room the producer waits and tries again; with room it moves the tail",
            "Window has enough space?",
            "all messages of a run are sealed, in their order",
            BUILT,
        ),
    ]
}

#[cfg(test)]
mod tests {
    use wattlock_report::paper::Verdict;

    use super::*;

    #[test]
    fn table_2_agrees_with_table_1_and_with_the_model() {
        let rows = table_2();
        assert_eq!(rows.len(), 15);
        assert!(rows.iter().all(|row| row.verdict == Verdict::Held), "{rows:?}");
        assert_eq!(units().verdict, Verdict::Held);
    }
}
