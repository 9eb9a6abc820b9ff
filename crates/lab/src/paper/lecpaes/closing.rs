//! Sections 6 and 7 of the paper: its discussion and its conclusion.

use wattlock_report::paper::{Rule, Section, Source};

use super::claim::{Claim, Found, among, at_each, falls, rows_of, told};
use super::numbers::{Numbers, TOTAL_MIB, Unit, mean};
use super::printed::difference;
use super::throughput;
use crate::simulation::{Algorithm, Experiment, Run};
use Algorithm::{Cp, Cs, Gp, Lecpaes};

/// Sections 6 and 7.
pub fn sections(numbers: &[&Numbers<'_>], runs: &[Run]) -> Vec<Section> {
    vec![
        Section::new("Section 6", "discussion", {
            let mut rows = rows_of(&DISCUSSION, numbers);
            rows.push(told(
                "\"CP and LECPAES produce higher throughput than CP\"",
                "CP and LECPAES",
                "contradicts itself: GP and LECPAES are meant",
            ));
            rows.push(throughput::counted_once(
                "only the successfully encrypted data are used",
                runs,
            ));
            rows
        }),
        Section::new("Section 7", "conclusion", {
            let mut rows = rows_of(&CONCLUSION, numbers);
            rows.extend([
                told(
                    "a server with one K20M and two Xeons",
                    "one K20M GPU and two Xeon CPUs",
                    "as Table 2",
                ),
                told(
                    "only streams of a fixed inflow were looked at",
                    "stable streams with fixed inflow speed",
                    "true, so that bursts, of the abstract and Section 3.1, were not tested",
                ),
                told(
                    "future work: streams of a changing inflow",
                    "complicated inflow speed",
                    "done here: `simulate policies`, 13 streams",
                ),
            ]);
            rows
        }),
    ]
}

fn saving(numbers: &Numbers<'_>, us: u64) -> f64 {
    1.0 - numbers.of(Lecpaes, us, Unit::Joules) / numbers.of(Gp, us, Unit::Joules)
}

/// What LECPAES saves of GP's joules where streams are fast; the fastest has to.
pub fn saves_when_fast(numbers: &Numbers<'_>) -> Found {
    let [first, second, third] = [100, 500, 1000].map(|us| 100.0 * saving(numbers, us));
    Found {
        text: format!("saves {first:.1} % at 100 µs, {second:.1} % at 500, {third:.1} % at 1000"),
        holds: first > 0.0,
    }
}

const SLOW: &[u64] = &[500, 1000, 1500, 2000, 2500, 3000];
const FAST: &[u64] = &[100, 500, 1000];

const DISCUSSION: [Claim; 11] = [
    Claim::new(
        Rule::Sign,
        "fast streams: LECPAES takes a little more than GP",
        "little more energy than GP",
        |numbers| {
            let more = -saving(numbers, 100);
            Found {
                text: format!("{:+.1} % at 100 µs", 100.0 * more),
                holds: more > 0.0 && more <= 0.10,
            }
        },
    )
    .bound("0 to 10 % at 100 µs"),
    Claim::new(
        Rule::Order,
        "slow streams: LECPAES takes the least of four",
        "the least energy",
        |numbers| {
            among(SLOW, |us| {
                let joules = |who| numbers.of(who, us, Unit::Joules);
                joules(Lecpaes) < joules(Gp).min(joules(Cp)).min(joules(Cs))
            })
        },
    )
    .bound("6 of 6 from 500 µs on"),
    Claim::new(
        Rule::Sign,
        "fast streams: more retransmissions and less throughput offset the gain",
        "cannot offset them",
        |numbers| {
            let more = numbers.of(Lecpaes, 100, Unit::Retransmissions)
                - numbers.of(Gp, 100, Unit::Retransmissions);
            let less = numbers.of(Gp, 100, Unit::Mib) - numbers.of(Lecpaes, 100, Unit::Mib);
            let text = format!("at 100 µs {more:+.3} retransmissions, {less:.1} MiB/s less");
            Found { text, holds: more > 0.0 && less > 0.0 }
        },
    )
    .note(
        "in the model the cause is different: the window is full, so the clock never falls, and each \
call that sets it costs 1 ms",
    ),
    Claim::new(
        Rule::Sign,
        "as velocity rises, LECPAES gains more",
        "gets more profits from scaling frequency",
        |numbers| falls(&Experiment::LATENCIES_US.map(|us| saving(numbers, us)), 0.0, 3),
    )
    .bound("the gain falls with latency")
    .exempt(
        "false in print: the gain falls from 30.5 % at the lowest velocity to -3.8 % \
at the highest",
    ),
    Claim::new(
        Rule::Shape,
        "LECPAES, GP and CP take more at higher velocity",
        "consume more energy with the increase of the velocity",
        |numbers| {
            let found = [Lecpaes, Gp, Cp].map(|who| falls(&numbers.all(who, Unit::Joules), 0.0, 0));
            Found {
                text: format!("GP by latency: {} J", found[1].text),
                holds: found.iter().all(|found| found.holds),
            }
        },
    )
    .bound("joules fall with latency")
    .exempt("false in print: they take less"),
    Claim::new(
        Rule::Order,
        "CS is slower than the slowest stream, so that draining rules its energy",
        "even the slowest stream is still faster",
        |numbers| {
            let arrivals = TOTAL_MIB / (12_000.0 * 3000e-6);
            let cs = numbers.all(Cs, Unit::Mib);
            let most = cs.into_iter().fold(f64::NAN, f64::max);
            let seconds = Experiment::LATENCIES_US.map(|us| numbers.seconds(Cs, us));
            let (least, longest) =
                seconds.iter().fold((f64::MAX, f64::MIN), |(l, m), s| (l.min(*s), m.max(*s)));
            let text = format!(
                "CS {most:.2} MiB/s at most, {arrivals:.2} arrive; its runs take {least:.1} to \
{longest:.1} s"
            );
            Found { text, holds: most < arrivals }
        },
    ),
    Claim::new(
        Rule::Order,
        "throughput falls with latency: CS lowest and steady, CP second lowest",
        "CP produces the second lowest",
        |numbers| {
            at_each(|us| {
                let [cs, cp, gp, lecpaes] =
                    [Cs, Cp, Gp, Lecpaes].map(|who| numbers.of(who, us, Unit::Mib));
                cs < cp && cp < gp.min(lecpaes)
            })
        },
    )
    .bound("the order, 7 of 7")
    .note("that it falls, and CS' does not: see Section 5.2.2"),
    Claim::new(
        Rule::Order,
        "LECPAES encrypts a little slower than GP because it scales the clock",
        "a little slower encryption speed",
        |numbers| {
            let [gp, lecpaes] = [Gp, Lecpaes].map(|who| numbers.of(who, 100, Unit::Mib));
            Found {
                text: format!("at 100 µs {lecpaes:.2} and {gp:.2} MiB/s"), holds: lecpaes < gp
            }
        },
    )
    .note(
        "by Eq. 7 its clock is higher there (758 MHz); in the model it loses the time in calls that \
set the clock",
    ),
    Claim::new(
        Rule::Order,
        "fast streams: GP and LECPAES beat CP and CS in all three",
        "less energy, higher throughput, and lower retransmission rate",
        |numbers| {
            among(FAST, |us| {
                let of = |who, unit| numbers.of(who, us, unit);
                [Gp, Lecpaes].iter().all(|gpu| {
                    [Cp, Cs].iter().all(|cpu| {
                        of(*gpu, Unit::Joules) < of(*cpu, Unit::Joules)
                            && of(*gpu, Unit::Mib) > of(*cpu, Unit::Mib)
                            && of(*gpu, Unit::Retransmissions) < of(*cpu, Unit::Retransmissions)
                    })
                })
            })
        },
    )
    .bound("100, 500 and 1000 µs"),
    Claim::new(
        Rule::Value,
        "fast streams: the GPU's full work makes GP and LECPAES more efficient",
        "the GPU undertakes full workload and produces better energy efficiency",
        |numbers| {
            let each = |who, us| numbers.of(who, us, Unit::Joules) / TOTAL_MIB;
            let at = |us| [Gp, Lecpaes, Cp].map(|who| each(who, us));
            let [gp, lecpaes, cp] = at(100);
            Found {
                text: format!(
                    "at 100 µs GP {gp:.2}, LECPAES {lecpaes:.2} and CP {cp:.2} J for each MiB"
                ),
                holds: FAST.iter().map(|us| at(*us)).all(|[gp, lecpaes, cp]| gp.max(lecpaes) < cp),
            }
        },
    )
    .bound("fewer joules for a MiB than CP at 100, 500 and 1000 µs"),
    Claim::new(
        Rule::Sign,
        "fast streams: LECPAES takes less than GP, and is the best of four",
        "LECPAES is the best algorithm among them for fast",
        saves_when_fast,
    )
    .bound("saves at 100 µs")
    .exempt(
        "false in print: it costs 3.8 % more there, as the first point of the same \
section says",
    ),
];

/// The signs of the mean differences: joules, throughput, retransmissions. In print they are the last
/// lines of Tables 6 to 8.
fn signs(numbers: &Numbers<'_>, other: Algorithm, wanted: [f64; 3]) -> Found {
    let units = [Unit::Joules, Unit::Mib, Unit::Retransmissions];
    let means = units.map(|unit| match numbers.source {
        Source::Print => difference(other, unit, "avg"),
        _ => mean(&numbers.less(Lecpaes, other, unit)),
    });
    let holds = means.iter().zip(wanted).all(|(mean, sign)| mean * sign > 0.0);
    Found {
        text: format!(
            "{:+.1} J, {:+.2} MiB/s, {:+.5} retransmissions in the mean",
            means[0], means[1], means[2]
        ),
        holds,
    }
}

const CONCLUSION: [Claim; 4] = [
    Claim::new(
        Rule::Sign,
        "less energy than GP, slightly less throughput, slightly more retransmissions",
        "(1) LECPAES can reduce energy consumption, slightly reduce throughput, and slightly increase \
retransmission rate",
        |numbers| signs(numbers, Gp, [-1.0, -1.0, 1.0]),
    )
    .bound("three signs of means")
    .note("at 100 µs it takes more energy; by Table 3 retransmissions grow by 0.01283 in the mean"),
    Claim::new(
        Rule::Sign,
        "less energy than CP, more throughput, fewer retransmissions",
        "(2) LECPAES can reduce energy consumption, increase throughput, and reduce retransmission \
rate",
        |numbers| signs(numbers, Cp, [-1.0, 1.0, -1.0]),
    )
    .bound("three signs of means"),
    Claim::new(
        Rule::Sign,
        "much less energy than CS, more throughput, fewer retransmissions",
        "(3) LECPAES can reduce energy consumption largely, increase throughput largely, and reduce \
retransmission rate largely",
        |numbers| signs(numbers, Cs, [-1.0, 1.0, -1.0]),
    )
    .bound("three signs of means"),
    Claim::new(
        Rule::Sign,
        "suitable for fast streams",
        "suitable for fast stream encryption in energy saving manner",
        saves_when_fast,
    )
    .bound("saves at 100 µs")
    .exempt("false in print: at 100 µs it costs more than GP"),
];
