//! Sections 6 and 7 of the paper: its discussion and its conclusion.

use wattlock_report::paper::{Rule, Section};

use super::claim::{Claim, Found, among, at_each, falls, rows_of, told};
use super::numbers::{Numbers, TOTAL_MIB, Unit, mean};
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
                "a slip: GP and LECPAES are meant",
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

const SLOW: &[u64] = &[500, 1000, 1500, 2000, 2500, 3000];
const FAST: &[u64] = &[100, 500, 1000];

const DISCUSSION: [Claim; 10] = [
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
        "in the model the cause is another: no lower clock to be at, and 1 ms for each \
call that sets one",
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
        "its clock there is the higher one, 758 MHz: by the model the calls that set \
it take the time",
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
        Rule::Sign,
        "fast streams: LECPAES takes less than GP, and is the best of four",
        "LECPAES is the best algorithm among them for fast",
        |numbers| {
            let saved = saving(numbers, 100);
            Found { text: format!("saves {:.1} % at 100 µs", 100.0 * saved), holds: saved > 0.0 }
        },
    )
    .bound("saves at 100 µs")
    .exempt(
        "false in print: it costs 3.8 % more there, as the first point of the same \
section says",
    ),
];

/// The signs of the mean differences: joules, throughput, retransmissions.
fn signs(numbers: &Numbers<'_>, other: Algorithm, wanted: [f64; 3]) -> Found {
    let units = [Unit::Joules, Unit::Mib, Unit::Retransmissions];
    let means = units.map(|unit| mean(&numbers.less(Lecpaes, other, unit)));
    let holds = means.iter().zip(wanted).all(|(mean, sign)| mean * sign > 0.0);
    Found {
        text: format!(
            "{:+.1} J, {:+.2} MiB/s, {:+.4} retransmissions in the mean",
            means[0], means[1], means[2]
        ),
        holds,
    }
}

const CONCLUSION: [Claim; 4] = [
    Claim::new(
        Rule::Sign,
        "less energy than GP, slightly less throughput, slightly more retransmissions",
        "result (1)",
        |numbers| signs(numbers, Gp, [-1.0, -1.0, 1.0]),
    )
    .bound("three signs of means")
    .note("at 100 µs it takes more energy"),
    Claim::new(
        Rule::Sign,
        "less energy than CP, more throughput, fewer retransmissions",
        "result (2)",
        |numbers| signs(numbers, Cp, [-1.0, 1.0, -1.0]),
    )
    .bound("three signs of means"),
    Claim::new(
        Rule::Sign,
        "much less energy than CS, more throughput, fewer retransmissions",
        "result (3)",
        |numbers| signs(numbers, Cs, [-1.0, 1.0, -1.0]),
    )
    .bound("three signs of means"),
    Claim::new(
        Rule::Sign,
        "suitable for fast streams",
        "suitable for fast stream encryption in energy saving manner",
        |numbers| {
            let saved = saving(numbers, 100);
            Found { text: format!("saves {:.1} % at 100 µs", 100.0 * saved), holds: saved > 0.0 }
        },
    )
    .bound("saves at 100 µs")
    .exempt("false in print: at 100 µs it costs more than GP"),
];
