//! Figures 8 and 9 and Tables 3 to 8 of the paper: which numbers are held, how closely, and which
//! are not and why.

use wattlock_report::paper::{Row, Rule, Section, Source};

use super::numbers::{FIGURE_8, FIGURE_9, Numbers, TABLE_3, Unit};
use super::printed::{MORE_THAN_ARRIVES, TABLE_4, TABLE_5, TABLE_6, TABLE_7, TABLE_8, TRANSPOSED};
use super::quotes::quote;
use crate::paper::table::Table;
use crate::simulation::{Algorithm, Experiment, Run};

/// Each algorithm's own rate: LECPAES' of Table 3, less the differences of Tables 6 to 8.
const RATES: Table =
    Table(include_str!("../../../papers/lecpaes_retransmissions_from_tables6_8.csv"));

/// The mean of the relative errors of Figure 8 is held to this.
const FIGURE_8_MEAN: f64 = 0.015;

const AGAINST_FIGURE_9: &str = "a producer that waits 2 x latency after each of these retransmissions would need \
                                longer than Figure 9 allows";
const OTHER_RUN: &str = "Table 3 is of another run than Tables 6 to 8; the rates that follow from those are held \
                         instead";
const DIFFERENCE: &str = "a difference of two numbers, each of which is held itself";

/// How closely the numbers of a seed are held to the printed ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seed {
    /// The one that the bounds are for.
    Default,
    /// Another, whose order of messages may suit less: Figure 8 may be off by 6 % rather than by
    /// 5 %, and CP's own rate below 1000 µs by 7.5 % rather than by 5 %. There the window splits
    /// into two batches that take turns, and how their users divide among 16 cores differs from
    /// seed to seed.
    Other,
}

impl Seed {
    /// What holds for that seed.
    pub fn of(seed: u64) -> Self {
        if seed == Experiment::SEED { Self::Default } else { Self::Other }
    }
}

/// What the runs give.
pub struct Simulated<'a> {
    pub runs: &'a [Run],
    pub seed: Seed,
}

impl Simulated<'_> {
    fn of(&self, algorithm: Algorithm, latency_us: u64, unit: Unit) -> f64 {
        Numbers::simulated(self.runs).of(algorithm, latency_us, unit)
    }
}

/// How near a number has to be to the printed one.
#[derive(Clone, Copy)]
enum Bar {
    /// Within a share of the printed number.
    Relative(f64),
    /// Within so much, in its unit.
    Absolute(f64),
    /// It is not held to it; the error is a share.
    Exempt(&'static str),
    /// The same, its error in the unit.
    ExemptUnits(&'static str),
}

impl Bar {
    fn judge(self, row: Row) -> Row {
        match self {
            Self::Relative(limit) => row.within(limit),
            Self::Absolute(limit) => row.near(limit),
            Self::Exempt(why) => row.exempt(why),
            Self::ExemptUnits(why) => row.in_units().exempt(why),
        }
    }
}

/// What a number at a latency is held to, for such a seed; the mean has no latency.
type Held = fn(Option<u64>, Seed) -> Bar;

/// A column of a printed table: its name there and here, and ours and the bound for a latency.
struct Column<'a> {
    csv: &'static str,
    name: &'static str,
    unit: Unit,
    simulated: Box<dyn Fn(u64) -> f64 + 'a>,
    held: Held,
}

/// The rows of a table, line by line.
fn table(seed: Seed, csv: Table, columns: &[Column<'_>]) -> Vec<Row> {
    let rows = csv.lines().flat_map(|line| {
        let latency_us = line.first().parse::<u64>().ok();
        let item = latency_us.map_or_else(|| "mean".to_owned(), |us| format!("{us} µs"));
        let rows = columns.iter().filter_map(move |column| {
            let simulated = match latency_us {
                Some(us) => (column.simulated)(us),
                None => mean(Experiment::LATENCIES_US.into_iter().map(&column.simulated)),
            };
            let printed = line.number(column.csv)?;
            let row = Row::number(&item, printed, simulated, column.unit.name(), Source::Model);
            Some((column.held)(latency_us, seed).judge(row.column(column.name)))
        });
        rows.collect::<Vec<_>>()
    });
    rows.collect()
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), value| (sum + value, count + 1.0));
    sum / count
}

/// All figures and tables with numbers, in the paper's order.
pub fn sections(simulated: &Simulated<'_>) -> Vec<Section> {
    use Algorithm::{Cp, Cs, Gp};
    vec![
        Section::new(
            "Figure 8",
            "joules (ours modelled; the paper's by NVML and RAPL)",
            figure_8(simulated),
        ),
        Section::new("Figure 9", "throughput in MiB/s", figure_9(simulated)),
        Section::new("Table 3", "retransmissions for each message", table_3(simulated)),
        Section::new(
            "Table 4",
            "what LECPAES saves of the others' joules (ours modelled)",
            table_4(simulated),
        ),
        Section::new(
            "Table 5",
            "what GP saves of CP's and CS's joules, and CP of CS's (ours modelled)",
            table_5(simulated),
        ),
        Section::new(
            "Table 6",
            "LECPAES less GP: joules (ours modelled), MiB/s, retransmissions",
            less(simulated, TABLE_6, Gp),
        ),
        Section::new("Table 7", "LECPAES less CP, and the rate of CP that follows with Table 3", {
            let mut rows = less(simulated, TABLE_7, Cp);
            rows.extend(own_rate(simulated, Cp, ("CP", "CP's own rate"), |us, seed| match us {
                Some(..1000) => Bar::Relative(if seed == Seed::Default { 0.05 } else { 0.075 }),
                Some(1000) => Bar::Relative(0.25),
                _ => Bar::Absolute(0.01),
            }));
            rows
        }),
        Section::new("Table 8", "LECPAES less CS, and the rate of CS that follows with Table 3", {
            let mut rows = less(simulated, TABLE_8, Cs);
            rows.extend(own_rate(simulated, Cs, ("CS", "CS's own rate"), |_, _| {
                Bar::Relative(0.015)
            }));
            rows
        }),
    ]
}

/// Columns of the four algorithms.
fn algorithms<'a>(
    simulated: &'a Simulated<'a>,
    unit: Unit,
    columns: [(&'static str, Held); 4],
) -> Vec<Column<'a>> {
    let names = ["CS", "CP", "GP", "LECPAES"];
    let all = Algorithm::PAPER.into_iter().zip(names).zip(columns);
    let column = |((algorithm, name), (csv, held))| Column {
        csv,
        name,
        unit,
        simulated: Box::new(move |us| simulated.of(algorithm, us, unit)),
        held,
    };
    all.map(column).collect()
}

fn figure_8(simulated: &Simulated<'_>) -> Vec<Row> {
    let held = |_, seed| Bar::Relative(if seed == Seed::Default { 0.05 } else { 0.06 });
    let columns = ["CS_J", "CP_J", "GP_J", "LECPAES_J"].map(|csv| (csv, held as Held));
    let columns = algorithms(simulated, Unit::Joules, columns);
    let mut rows = table(simulated.seed, FIGURE_8, &columns);
    let errors = || rows.iter().filter_map(|row| row.error);
    let error = mean(errors().map(f64::abs));
    let all = Row::claim(
        Rule::Value,
        "the mean of these errors",
        &format!("{:.2} %", 100.0 * error),
        error <= FIGURE_8_MEAN,
        Source::Model,
    );
    let all = all.bound(&format!("{} % at most", 100.0 * FIGURE_8_MEAN));
    rows.extend(quote("energy_J", Algorithm::Cp, "100").map(|printed| {
        let ours = simulated.of(Algorithm::Cp, 100, Unit::Joules);
        Row::number("100 µs", printed, ours, "J", Source::Model)
            .column("CP in the text")
            .exempt(TRANSPOSED)
    }));
    rows.push(all);
    rows
}

fn figure_9(simulated: &Simulated<'_>) -> Vec<Row> {
    let three: Held = |_, _| Bar::Relative(0.03);
    let gp: Held = |us, _| match us {
        Some(3000) => Bar::Exempt(MORE_THAN_ARRIVES),
        _ => Bar::Relative(0.03),
    };
    let columns = [
        ("CS_MBps", three),
        ("CP_MBps", |_, _| Bar::Relative(0.10)),
        ("GP_MBps", gp),
        ("LECPAES_MBps", three),
    ];
    table(simulated.seed, FIGURE_9, &algorithms(simulated, Unit::Mib, columns))
}

fn table_3(simulated: &Simulated<'_>) -> Vec<Row> {
    let gpu: Held = |us, _| match us {
        Some(500..) => Bar::Absolute(0.004),
        _ => Bar::Relative(0.25),
    };
    let cp: Held = |us, _| match us {
        Some(1000..) => Bar::ExemptUnits(AGAINST_FIGURE_9),
        _ => Bar::ExemptUnits(OTHER_RUN),
    };
    let columns = [
        ("CS", (|_, _| Bar::ExemptUnits(OTHER_RUN)) as Held),
        ("CP", cp),
        ("GP", gpu),
        ("LECPAES", gpu),
    ];
    table(simulated.seed, TABLE_3, &algorithms(simulated, Unit::Retransmissions, columns))
}

/// A column of Tables 4 and 5: what one algorithm saves of another's joules.
fn saved<'a>(
    simulated: &'a Simulated<'a>,
    name: &'static str,
    one: Algorithm,
    other: Algorithm,
) -> Column<'a> {
    Column {
        csv: name,
        name,
        unit: Unit::Saving,
        simulated: Box::new(move |us| {
            let joules = |algorithm| simulated.of(algorithm, us, Unit::Joules);
            1.0 - joules(one) / joules(other)
        }),
        held: |_, _| Bar::Absolute(0.035),
    }
}

fn table_4(simulated: &Simulated<'_>) -> Vec<Row> {
    use Algorithm::{Cp, Cs, Gp, Lecpaes};
    let near: Held = |_, _| Bar::Absolute(0.01);
    let l2g = Column { held: near, ..saved(simulated, "L2G", Lecpaes, Gp) };
    let columns =
        [l2g, saved(simulated, "L2CP", Lecpaes, Cp), saved(simulated, "L2CS", Lecpaes, Cs)];
    table(simulated.seed, TABLE_4, &columns)
}

fn table_5(simulated: &Simulated<'_>) -> Vec<Row> {
    use Algorithm::{Cp, Cs, Gp};
    let columns = [
        saved(simulated, "G2CP", Gp, Cp),
        saved(simulated, "G2CS", Gp, Cs),
        saved(simulated, "CP2CS", Cp, Cs),
    ];
    table(simulated.seed, TABLE_5, &columns)
}

/// A table of differences: LECPAES less another.
fn less(simulated: &Simulated<'_>, csv: Table, other: Algorithm) -> Vec<Row> {
    let column = |csv, name, unit| Column {
        csv,
        name,
        unit,
        simulated: Box::new(move |us| {
            simulated.of(Algorithm::Lecpaes, us, unit) - simulated.of(other, us, unit)
        }),
        held: |_, _| Bar::ExemptUnits(DIFFERENCE),
    };
    let columns = [
        column("energy_diff_J", "energy", Unit::Joules),
        column("throughput_diff_MBps", "throughput", Unit::Mib),
        column("retrans_diff", "retransmissions", Unit::Retransmissions),
    ];
    table(simulated.seed, csv, &columns)
}

fn own_rate(
    simulated: &Simulated<'_>,
    algorithm: Algorithm,
    (csv, name): (&'static str, &'static str),
    held: Held,
) -> Vec<Row> {
    let unit = Unit::Retransmissions;
    let rate = move |us| simulated.of(algorithm, us, unit);
    table(simulated.seed, RATES, &[Column { csv, name, unit, simulated: Box::new(rate), held }])
}

#[cfg(test)]
mod tests {
    use wattlock_report::paper::Verdict;

    use super::*;

    fn sections_of(seed: u64, held: Seed) -> Vec<Section> {
        let grid = Experiment::paper(seed).grid(&Algorithm::PAPER, &Experiment::LATENCIES_US);
        sections(&Simulated { runs: &grid.unwrap(), seed: held })
    }

    fn missed(sections: &[Section]) -> Vec<(String, String)> {
        let rows =
            sections.iter().flat_map(|section| section.rows.iter().map(move |row| (section, row)));
        rows.filter(|(_, row)| row.verdict == Verdict::Missed)
            .map(|(section, row)| (section.place.clone(), row.name()))
            .collect()
    }

    #[test]
    fn three_seeds_meet_the_bounds() {
        for seed in [Experiment::SEED, 2, 3] {
            assert_eq!(missed(&sections_of(seed, Seed::Default)), [], "seed {seed}");
        }
    }

    #[test]
    fn many_seeds_meet_what_holds_for_others() {
        for seed in 100..130 {
            assert_eq!(missed(&sections_of(seed, Seed::of(seed))), [], "seed {seed}");
        }
    }

    #[test]
    fn every_printed_number_is_there() {
        let sections = sections_of(1, Seed::Default);
        let find = |place| sections.iter().find(|section| section.place == place).unwrap();
        let count = |place| find(place).rows.iter().filter(|row| !row.column.is_empty()).count();
        // Tables 4 to 8 have a row of averages; two have a rate of seven latencies that follows.
        let places = ["Figure 8", "Figure 9", "Table 3", "Table 4", "Table 5", "Table 6"];
        assert_eq!(places.map(count), [29, 28, 28, 24, 24, 24]);
        assert_eq!(["Table 7", "Table 8"].map(count), [31, 31]);
        let rows = || sections.iter().flat_map(|section| &section.rows);
        assert!(rows().all(|row| row.ours.is_some()));
        let exempt = |why| rows().filter(move |row| row.why == why);
        let latencies: Vec<&str> = exempt(AGAINST_FIGURE_9).map(|row| row.item.as_str()).collect();
        assert_eq!(latencies, ["1000 µs", "1500 µs", "2000 µs", "2500 µs", "3000 µs"]);
        let printed =
            |why| exempt(why).map(|row| row.printed.as_ref()?.number()).collect::<Vec<_>>();
        assert_eq!(printed(MORE_THAN_ARRIVES), [Some(30.31)]);
        assert_eq!(printed(TRANSPOSED), [Some(1259.91)]);
    }

    #[test]
    fn another_machine_misses_the_bounds() {
        // Algorithm 1 to the letter in the place of what the numbers are of.
        let experiment = Experiment::paper(1);
        let mut runs = experiment.grid(&Algorithm::PAPER, &Experiment::LATENCIES_US).unwrap();
        for run in runs.iter_mut().filter(|run| run.algorithm == Algorithm::Lecpaes) {
            run.outcome = experiment.run(Algorithm::LecpaesLiteral, run.latency_us).unwrap();
        }
        let missed = missed(&sections(&Simulated { runs: &runs, seed: Seed::Default }));
        for place in ["Figure 8", "Figure 9"] {
            let row = (place.to_owned(), "100 µs, LECPAES".to_owned());
            assert!(missed.contains(&row), "{missed:?}");
        }
    }

    #[test]
    fn what_is_exempt_cannot_be_met() {
        let number = |csv: Table, row: u64, column| csv.number(&row.to_string(), column).unwrap();
        for us in [1000, 1500, 2000, 2500, 3000] {
            let waits = us as f64 * (1.0 + 2.0 * number(TABLE_3, us, "CP")) * 1e-6 * 12_000.0;
            let takes = 1083.98 / number(FIGURE_9, us, "CP_MBps");
            assert!(waits > takes, "CP at {us} µs would wait {waits} s of {takes} s");
        }
        assert!(number(FIGURE_9, 3000, "GP_MBps") > 1083.98 / (12_000.0 * 3000e-6));
        let cp = number(FIGURE_8, 100, "CP_J");
        let saved = 1.0 - number(FIGURE_8, 100, "LECPAES_J") / cp;
        assert!((saved - number(TABLE_4, 100, "L2CP")).abs() < 1e-5, "{cp} J agrees with Table 4");
    }
}
