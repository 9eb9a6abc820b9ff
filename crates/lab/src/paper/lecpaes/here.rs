//! What this machine says of the paper's figures, tables and claims. Absolute numbers are of another
//! machine; orders and shapes are held.

use wattlock_energy::Class;
use wattlock_report::paper::{Row, Rule, Section, Source, Verdict};
use wattlock_report::results::{self, Results};

use super::claim::Claim;
use super::energy::{CS_TAKES_MOST, GP_CROSSES_CP, LECPAES_CROSSES_GP};
use super::live::{BY_OPENCL, length_case};
use super::numbers::{Numbers, Unit};
use super::opening::SLOWER_THAN_STREAMS;
use super::throughput::{CP_BEATS_CS, CP_FALLS, CS_IS_STEADY, FALL_WITH_LATENCY, FASTEST_HERE};
use crate::bench::stream_rows::{case, tool};
use crate::paper::live::NOT_MEASURED;
use crate::simulation::platform::MIB;
use crate::simulation::{Algorithm, Experiment};
use Algorithm::{Cp, Cs, Gp, Lecpaes};

/// What was measured, if anything was.
pub struct Here<'a>(pub Option<&'a Results>);

const OTHER_MACHINE: &str = "another machine";
const OTHER_CODE: &str = "another machine and other code: the printed CS takes 340 cycles a byte of its \
2 GHz, tables take 10 to 20";
const OPENCL: &str = "of OpenCL on the CPU, not of a GPU";
const NO_GPU: &str = "a GPU; name one with --device";
const OPENCL_HERE: &str = "a GPU: OpenCL runs on the CPU here";
const THREADS: &str =
    "of the kernel, which has a thread for each block: throughput does not count threads";
const NO_METER: &str = "a meter of joules";

impl Here<'_> {
    fn row(&self, who: Algorithm, case: &str) -> Option<&results::Row> {
        self.0?.row(&tool(who.name()), case)
    }

    fn number(&self, who: Algorithm, us: u64, unit: Unit) -> Option<f64> {
        let row = self.row(who, &case(us as u32))?;
        match unit {
            Unit::Mib => Some(row.rate() * 1e9 / MIB),
            Unit::Retransmissions => Some(row.refusals? as f64 / row.messages?.max(1) as f64),
            Unit::Joules | Unit::Saving => {
                let energy = row.joules.energy.as_ref();
                let energy = energy.filter(|energy| energy.class() >= Class::Attributed)?;
                Some(energy.best()?.0 as f64 * 1e-6)
            }
        }
    }

    fn by_opencl(&self) -> bool {
        self.0.is_some_and(|results| results.settings.contains_key(BY_OPENCL))
    }

    /// What is missing for that number.
    fn missing(&self, who: Algorithm, unit: Unit) -> &'static str {
        let was_run = self.0.is_some_and(|results| results.tools.contains_key(&tool(who.name())));
        match (self.0, was_run) {
            (None, _) => NOT_MEASURED,
            (_, false) => NO_GPU,
            (_, true) if unit == Unit::Joules => NO_METER,
            (_, true) => "a full run: a quick look has two latencies",
        }
    }

    /// A number of a figure or table beside the printed one.
    fn cell(&self, printed: &Numbers<'_>, who: Algorithm, us: u64, unit: Unit) -> Row {
        let item = format!("{us} µs");
        let printed = printed.of(who, us, unit);
        let ours = self.number(who, us, unit);
        let row = Row::number(&item, printed, ours.unwrap_or(f64::NAN), unit.name(), Source::Live)
            .column(&who.to_string());
        let is_gpu = matches!(who, Gp | Lecpaes);
        match ours {
            None => row.not_here(self.missing(who, unit)),
            Some(_) if is_gpu && self.by_opencl() => row.exempt(OPENCL),
            Some(_) => row.exempt(OTHER_MACHINE),
        }
    }

    fn cells(&self, unit: Unit) -> Vec<Row> {
        let printed = Numbers::printed();
        let all = Experiment::LATENCIES_US
            .iter()
            .flat_map(|us| Algorithm::PAPER.map(|who| self.cell(&printed, who, *us, unit)));
        all.collect()
    }

    /// A claim about these algorithms' numbers.
    fn claim(&self, claim: &Claim, about: &[Algorithm], unit: Unit) -> Row {
        let opencl = self.by_opencl();
        let numbers = Numbers::new(Source::Live, |who, us, unit| {
            let is_none = opencl && matches!(who, Gp | Lecpaes);
            let number = if is_none { None } else { self.number(who, us, unit) };
            number.unwrap_or(f64::NAN)
        });
        let row = claim.row(&numbers);
        let lacks = |who: &&Algorithm| numbers.all(**who, unit).iter().any(|n| n.is_nan());
        let is_of_gpu = about.iter().any(|who| matches!(who, Gp | Lecpaes));
        match about.iter().find(lacks) {
            None => row,
            Some(_) if is_of_gpu && opencl => row.not_here(OPENCL_HERE),
            Some(who) => row.not_here(self.missing(*who, unit)),
        }
    }

    /// Sections that stand behind those of print and model, by the place that they stand behind.
    pub fn sections(&self) -> Vec<(&'static str, Section)> {
        let of = |place: &'static str, title: &str, rows| {
            (place, Section::new(&format!("{place}, here"), title, rows))
        };
        vec![
            of(
                "Section 3.1",
                "on this machine",
                vec![not_held(self.claim(&SLOWER_THAN_STREAMS, &[Cs], Unit::Mib), OTHER_CODE)],
            ),
            of(
                "Section 3.2",
                "on this machine",
                vec![self.gpu(
                    Rule::Order,
                    "a GPU suits AES",
                    "suitable to be executed on GPUs",
                    "as fast as CP at 100 µs, or faster",
                )],
            ),
            of(
                "Section 7",
                "on this machine",
                vec![self.gpu(
                    Rule::Value,
                    "the GPU encrypts in many threads",
                    "in many threads fashion",
                    "",
                )],
            ),
            of("Equation 1", "one message on this machine", vec![self.slope()]),
            of("Figure 8", "joules, measured on this machine", {
                let mut rows = self.cells(Unit::Joules);
                rows.push(self.claim(&CS_TAKES_MOST, &Algorithm::PAPER, Unit::Joules));
                rows.push(self.claim(&LECPAES_CROSSES_GP, &[Lecpaes, Gp], Unit::Joules));
                rows.push(self.claim(&GP_CROSSES_CP, &[Gp, Cp], Unit::Joules));
                rows
            }),
            of("Figure 9", "throughput in MiB/s, measured on this machine", {
                let mut rows = self.cells(Unit::Mib);
                rows.push(self.claim(&CP_BEATS_CS, &[Cs, Cp], Unit::Mib));
                rows.push(self.claim(&FASTEST_HERE, &Algorithm::PAPER, Unit::Mib));
                rows.push(self.claim(&CP_FALLS, &[Cp], Unit::Mib));
                rows.push(not_held(self.claim(&CS_IS_STEADY, &[Cs], Unit::Mib), OTHER_CODE));
                rows.push(self.per_cpu_second());
                rows
            }),
            of("Table 3", "retransmissions for each message, on this machine", {
                let mut rows = self.cells(Unit::Retransmissions);
                rows.push(self.claim(&FALL_WITH_LATENCY, &[Cs, Cp], Unit::Retransmissions));
                rows
            }),
        ]
    }

    /// What a GPU does at 100 µs, beside CP.
    fn gpu(&self, rule: Rule, item: &str, printed: &str, bound: &str) -> Row {
        let rate = |who| self.number(who, 100, Unit::Mib);
        let row = |ours: &str, holds| {
            Row::claim(rule, item, ours, holds, Source::Live).printed(printed).bound(bound)
        };
        match rate(Gp).zip(rate(Cp)) {
            None => row("", false).not_here(self.missing(Gp, Unit::Mib)),
            Some(_) if self.by_opencl() => row("", false).not_here(OPENCL_HERE),
            Some((gp, cp)) => {
                let ours = format!("GP {gp:.0} MiB/s at 100 µs, CP {cp:.0}");
                let row = row(&ours, gp >= cp);
                if bound.is_empty() { row.exempt(THREADS) } else { row }
            }
        }
    }

    /// How the time of a message grows with its length.
    fn slope(&self) -> Row {
        let lengths = (0..6).map(|step| 16_u64 << 10 << (2 * step));
        let points: Vec<(f64, f64)> = lengths
            .filter_map(|length| {
                let row = self.row(Cs, &length_case(length))?;
                Some(((length as f64).ln(), (row.wall_ns.min.max(1) as f64).ln()))
            })
            .collect();
        let item = "time over length of a message, exponent";
        let claim = |ours: &str, holds| {
            Row::claim(Rule::Shape, item, ours, holds, Source::Live)
                .printed("N^2.46")
                .bound("1 ± 0.05")
                .note("the paper's exponent is not held: the work grows linearly")
        };
        if points.len() < 2 {
            return claim("", false).not_here(NOT_MEASURED);
        }
        let slope = super::fits::Line::through(&points).slope;
        claim(&format!("{slope:.3} from 16 KiB on"), (slope - 1.0).abs() <= 0.05)
    }

    /// What CS does in a CPU second.
    fn per_cpu_second(&self) -> Row {
        let rates = Experiment::LATENCIES_US.iter().filter_map(|us| {
            let row = self.row(Cs, &case(*us as u32))?;
            Some(row.bytes as f64 / row.cpu_ns.median.max(1) as f64 * 1e9 / MIB)
        });
        let mut rates: Vec<f64> = rates.collect();
        rates.sort_by(f64::total_cmp);
        let ours = rates.get(rates.len() / 2).copied();
        let row = Row::number(
            "CS, in a CPU second, the producer's among them",
            5.57,
            ours.unwrap_or(f64::NAN),
            "MiB/s",
            Source::Live,
        );
        if ours.is_some() {
            row.exempt(OTHER_CODE)
        } else {
            row.not_here(self.missing(Cs, Unit::Mib))
        }
    }
}

/// Not held, but for rows that something is missing for.
fn not_held(row: Row, why: &str) -> Row {
    if row.verdict == Verdict::NotHere { row } else { row.exempt(why) }
}
