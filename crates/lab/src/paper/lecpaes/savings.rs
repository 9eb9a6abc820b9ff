//! Sections 5.2.4 and 5.3 of the paper: what its text says of Tables 4 to 8.

use wattlock_report::paper::{Row, Rule, Source};

use super::claim::{Claim, Found, at_each, falls, rises, rows_of, told};
use super::differences::{self, saving_bar};
use super::figures::Seed;
use super::numbers::{Numbers, Unit, mean};
use super::printed::{TABLE_4, TABLE_5, difference};
use super::throughput::{TIE, is_as_fast};
use crate::simulation::{Algorithm, Experiment};
use Algorithm::{Cp, Cs, Gp, Lecpaes};

/// Section 5.2.4, of Tables 4 and 5.
pub fn savings(numbers: &[&Numbers<'_>]) -> Vec<Row> {
    let mut found = vec![from_figure_8(), averages()];
    found.extend(rows_of(&SAVINGS, numbers));
    for (name, printed, (one, other)) in [
        ("L2G", 0.234, (Lecpaes, Gp)),
        ("L2CP", 0.337, (Lecpaes, Cp)),
        ("L2CS", 0.895, (Lecpaes, Cs)),
        ("G2CP", 0.085, (Gp, Cp)),
        ("G2CS", 0.853, (Gp, Cs)),
        ("CP2CS", 0.849, (Cp, Cs)),
    ] {
        let share = saving_bar(one, other, None);
        for numbers in numbers {
            let ours = mean(&numbers.saved(one, other));
            let row = Row::number(
                &format!("{name}, mean of seven"),
                printed,
                ours,
                "share",
                numbers.source,
            );
            let near = if numbers.source == Source::Print { 0.0006 } else { share };
            found.push(row.near(near).column(numbers.name()));
        }
    }
    found.push(mean_of_ratios());
    found
}

const SAVINGS: [Claim; 6] = [
    Claim::new(
        Rule::Shape,
        "L2G rises with latency",
        "increases as the latency increases",
        |numbers| rises(&numbers.saved(Lecpaes, Gp), 0.0, 3),
    )
    .bound("rises at each step"),
    saving("L2CP falls with latency", |numbers| falls(&numbers.saved(Lecpaes, Cp), 0.0, 3)),
    saving("L2CS falls with latency", |numbers| falls(&numbers.saved(Lecpaes, Cs), 0.0, 3)),
    saving("G2CP falls with latency", |numbers| falls(&numbers.saved(Gp, Cp), 0.0, 3)),
    saving("G2CS falls with latency", |numbers| falls(&numbers.saved(Gp, Cs), 0.0, 3)),
    saving("CP2CS falls with latency", |numbers| falls(&numbers.saved(Cp, Cs), 0.0, 5))
        .exempt("false in print: 0.87636 at 100 µs and 0.87647 at 500"),
];

const fn saving(item: &'static str, check: fn(&Numbers<'_>) -> Found) -> Claim {
    Claim::new(Rule::Shape, item, "decreases as the latency increases", check)
        .bound("falls at each step")
}

const COLUMNS: [(&str, Algorithm, Algorithm); 6] = [
    ("L2G", Lecpaes, Gp),
    ("L2CP", Lecpaes, Cp),
    ("L2CS", Lecpaes, Cs),
    ("G2CP", Gp, Cp),
    ("G2CS", Gp, Cs),
    ("CP2CS", Cp, Cs),
];

fn cell(name: &str, line: &str) -> f64 {
    TABLE_4.number(line, name).or_else(|| TABLE_5.number(line, name)).unwrap_or(f64::NAN)
}

/// GP's joules there are computed from Table 6 and this very column.
const L2G_FROM_TABLE_4: [u64; 3] = [1000, 2000, 2500];

/// Tables 4 and 5 are one less the quotients of Figure 8.
fn from_figure_8() -> Row {
    let printed = Numbers::printed();
    let off = COLUMNS.iter().flat_map(|(name, one, other)| {
        let saved = printed.saved(*one, *other);
        let latencies = Experiment::LATENCIES_US.iter().zip(saved);
        let others = latencies.filter(|(us, _)| *name != "L2G" || !L2G_FROM_TABLE_4.contains(us));
        others.map(|(us, saved)| (saved - cell(name, &us.to_string())).abs()).collect::<Vec<_>>()
    });
    let (count, most) =
        off.fold((0, 0.0), |(count, most): (i32, f64), off| (count + 1, most.max(off)));
    let ours = format!("{count} cells of Tables 4 and 5 are 1 - J/J of Figure 8, within {most:.5}");
    Row::claim(
        Rule::Value,
        "saving = (Ej - Ei) / Ej",
        &ours,
        count == 39 && most <= 0.000_04,
        Source::Print,
    )
    .printed("Esr = (EAj - EAi) / EAj")
    .bound("0.00004")
    .note("L2G at 1000, 2000 and 2500 µs has no second source")
}

/// Their last lines are the means of seven.
fn averages() -> Row {
    let off = COLUMNS.map(|(name, ..)| {
        (mean(&Experiment::LATENCIES_US.map(|us| cell(name, &us.to_string()))) - cell(name, "avg"))
            .abs()
    });
    let most = off.into_iter().fold(0.0, f64::max);
    let ours = format!("six averages are the means of their columns, within {most:.6}");
    Row::claim(
        Rule::Value,
        "the last lines of Tables 4 and 5 are means",
        &ours,
        most <= 0.000_006,
        Source::Print,
    )
    .printed("average ratios")
    .bound("0.000006")
}

/// What the savings are of all joules together.
fn mean_of_ratios() -> Row {
    let printed = Numbers::printed();
    let sum = |who| printed.all(who, Unit::Joules).iter().sum::<f64>();
    let all = COLUMNS
        .map(|(name, one, other)| format!("{name} {:.1} %", 100.0 * (1.0 - sum(one) / sum(other))));
    let ours = format!("of the sums of joules: {}", all.join(", "));
    Row::claim(Rule::Value, "savings of all joules together", &ours, true, Source::Print)
        .printed("its average value is 8.5 %")
        .exempt(
            "the averages are true; a mean of ratios makes GP's saving over CP three times as large as \
that of all joules",
        )
}

/// Where LECPAES is compared with another: below it in joules, not above it in retransmissions, and
/// above it in throughput.
fn is_better(numbers: &Numbers<'_>, other: Algorithm, us: u64) -> bool {
    let less = |unit| numbers.of(Lecpaes, us, unit) - numbers.of(other, us, unit);
    less(Unit::Joules) < 0.0 && less(Unit::Mib) > 0.0 && less(Unit::Retransmissions) <= 0.0
}

/// Section 5.3, of Tables 6 to 8.
pub fn summary(numbers: &[&Numbers<'_>], seed: Seed) -> Vec<Row> {
    let mut found = rows_of(&SUMMARY, numbers);
    for other in [Gp, Cp, Cs] {
        for unit in [Unit::Joules, Unit::Mib, Unit::Retransmissions] {
            let model = numbers.iter().filter(|numbers| numbers.source == Source::Model);
            found.extend(model.map(|numbers| mean_difference(numbers, other, unit, seed)));
        }
    }
    found.push(told(
        "statistics of ratios mean nothing",
        "its statistical difference is meaningless",
        "Tables 4 and 5 have averages of them all the same",
    ));
    found
}

/// A mean of the text, which is that of Tables 6 to 8 too.
fn mean_difference(numbers: &Numbers<'_>, other: Algorithm, unit: Unit, seed: Seed) -> Row {
    let quantity = match unit {
        Unit::Joules | Unit::Saving => "joules",
        Unit::Mib => "throughput",
        Unit::Retransmissions => "retransmissions",
    };
    let printed = difference(other, unit, "avg");
    let ours = mean(&numbers.less(Lecpaes, other, unit));
    let item = format!("LECPAES minus {other}: {quantity}, mean");
    let row = Row::number(&item, printed, ours, unit.name(), numbers.source)
        .column(numbers.name())
        .note(differences::told(other, unit));
    differences::bar(other, unit, None, seed).judge(row)
}

const SUMMARY: [Claim; 6] = [
    Claim::new(Rule::Sign, "LECPAES takes less energy than GP", "costs less energy", |numbers| {
        at_each(|us| numbers.of(Lecpaes, us, Unit::Joules) < numbers.of(Gp, us, Unit::Joules))
    })
    .bound("7 of 7")
    .exempt("false in print: at 100 µs 14.65 J more"),
    Claim::new(
        Rule::Sign,
        "it has lower throughput and more retransmissions than GP",
        "with a little lower throughput and a little higher retransmission rate",
        |numbers| {
            at_each(|us| {
                let more = numbers.of(Lecpaes, us, Unit::Retransmissions)
                    - numbers.of(Gp, us, Unit::Retransmissions);
                // Table 3 has none of either from 2500 µs on.
                let is_more = more > 0.0 || (us >= 2500 && more >= 0.0);
                is_as_fast(numbers, Gp, Lecpaes, us, TIE) && is_more
            })
        },
    )
    .bound("7 of 7; the same retransmissions from 2500 µs on, as in Table 3")
    .model_exempt(
        "the model does not give it: from 500 µs on GP and LECPAES have the same stall, and the same \
retransmissions but for one or two",
    ),
    Claim::new(
        Rule::Shape,
        "these differences become smaller with latency",
        "becomes smaller with higher latency",
        |numbers| {
            let sizes = |unit| numbers.less(Lecpaes, Gp, unit).map(f64::abs);
            let joules = falls(&sizes(Unit::Joules), 0.0, 1);
            let rates = falls(&sizes(Unit::Mib), 0.0, 2);
            let again = falls(&sizes(Unit::Retransmissions), 0.0, 5);
            Found {
                text: format!(
                    "{} J; {} MiB/s; {} retransmissions",
                    joules.text, rates.text, again.text
                ),
                holds: joules.holds && rates.holds && again.holds,
            }
        },
    )
    .bound("each of the three falls")
    .exempt(
        "false in print: joules grow 59-fold, throughput and retransmissions go up and \
down",
    ),
    Claim::new(
        Rule::Sign,
        "LECPAES is better than CP in all three",
        "less energy, but with higher throughput and lower retransmission rate",
        |numbers| at_each(|us| is_better(numbers, Cp, us)),
    )
    .bound("7 of 7")
    .model_exempt(
        "the model does not give it: from 1500 to 2500 µs LECPAES has 24, 20 and 7 retransmissions of \
12,000 messages more than CP, of the GPU's stall",
    ),
    Claim::new(
        Rule::Sign,
        "LECPAES is better than CS in all three",
        "same with that in Table 7",
        |numbers| at_each(|us| is_better(numbers, Cs, us)),
    )
    .bound("7 of 7"),
    Claim::new(
        Rule::Order,
        "its advantage over CS is larger than over CP",
        "with larger different value",
        |numbers| {
            at_each(|us| {
                let less =
                    |other, unit| numbers.of(Lecpaes, us, unit) - numbers.of(other, us, unit);
                less(Cs, Unit::Joules) < less(Cp, Unit::Joules)
                    && less(Cs, Unit::Mib) > less(Cp, Unit::Mib)
                    && less(Cs, Unit::Retransmissions) < less(Cp, Unit::Retransmissions)
            })
        },
    )
    .bound("all three, 7 of 7"),
];
