//! Tables 1 and 2 as they come out on this machine.

use wattlock_energy::Class;
use wattlock_report::paper::{Row, Section, Source};
use wattlock_report::results::{self, Results};

use super::{CLIENT, kernel, speed};
use crate::args::Suite;
use crate::bench::https::case;
use crate::bench::https::contenders::{Contender, Hardware};
use crate::paper::eeca::printed::{Line, Way, Which, gain};
use crate::paper::eeca::rows::sign;
use crate::paper::eeca::speed::THRESHOLD_KB;
use crate::paper::live::NOT_MEASURED;

/// What was measured of a table.
pub struct Here<'a> {
    pub which: Which,
    pub results: Option<&'a Results>,
}

/// A table here: throughput, kilobytes a joule and what EECA gains, one row for each printed cell.
pub fn section(which: Which, results: Option<&Results>) -> Section {
    let here = Here { which, results };
    let lines = which.lines();
    let mut rows: Vec<Row> = Vec::new();
    for way in Way::ALL {
        rows.extend(lines.iter().map(|line| here.throughput(line, way)));
    }
    if which == Which::One {
        rows.extend(lines.iter().map(|line| here.by_kernel(line)));
    }
    for way in Way::ALL {
        rows.extend(lines.iter().map(|line| here.per_joule(line, way)));
    }
    for over in Way::SINGLE {
        rows.extend(lines.iter().map(|line| here.gained(line, over)));
    }
    let title = match which {
        Which::One => {
            "AES-256-CBC by `openssl speed -multi` here, a process for each CPU. EECA and the accelerator are the provider's; \
             each process has an accelerator of its own"
        }
        Which::Two => {
            "nginx with one worker and ab here. A page of T bytes counts as T: its header is added to the threshold. A call \
             of the provider is synchronous, so that the worker waits for the accelerator and answers nobody else"
        }
    };
    Section::new(&format!("{}, here", which.place()), title, rows)
}

impl<'a> Here<'a> {
    /// The row of a cell, and what its accelerator is if it has one.
    pub fn row(&self, line: &Line, way: Way) -> Option<(&'a results::Row, Hardware)> {
        let results = self.results?;
        Hardware::all().find_map(|hardware| {
            let contender = match way {
                Way::Eeca => Contender::Eeca(hardware),
                Way::Software => Contender::Software,
                Way::InstructionSet => Contender::InstructionSet,
                Way::Accelerator => Contender::Accelerator(hardware),
            };
            let bytes = line.kb << 10;
            let found = match self.which {
                Which::One => speed::row(results, contender, bytes),
                Which::Two => {
                    results.row(&contender.tool(results), &case(Suite::CbcSha384, bytes, CLIENT))
                }
            };
            found.map(|row| (row, hardware))
        })
    }

    /// Kilobytes or requests a second.
    pub fn rate(&self, row: &results::Row) -> f64 {
        match self.which {
            Which::One => 1e6 * row.rate(),
            Which::Two => 1e9 / row.wall_ns.median.max(1) as f64,
        }
    }

    fn throughput(&self, line: &Line, way: Way) -> Row {
        let found = self.row(line, way);
        let ours = found.map_or(f64::NAN, |(row, _)| self.rate(row));
        let row = Row::number(&line.size(), line.rate(way), ours, self.which.unit(), Source::Live)
            .column(way.name());
        match found {
            None => row.not_here(&self.missing()),
            Some((_, hardware)) if uses_model(line, way, hardware) => row.exempt(SIMULATED),
            Some(_) => row.exempt(OTHER_MACHINE),
        }
    }

    /// The accelerator's cell by the kernel's crypto interface.
    fn by_kernel(&self, line: &Line) -> Row {
        let found = match self.results {
            Some(results) => kernel::row(results, line.kb << 10),
            None => Err(NOT_MEASURED.to_owned()),
        };
        let ours = found.as_ref().map_or(f64::NAN, |row| self.rate(row));
        let printed = line.rate(Way::Accelerator);
        let row = Row::number(&line.size(), printed, ours, self.which.unit(), Source::Live)
            .column("the accelerator's, by AF_ALG");
        match found {
            Ok(_) => row.exempt(BY_KERNEL),
            Err(why) => row.not_here(&why),
        }
    }

    fn per_joule(&self, line: &Line, way: Way) -> Row {
        let found = self.row(line, way).and_then(|(row, _)| self.kilobytes(row));
        let ours = found.unwrap_or(f64::NAN);
        let printed = hundredths(line.ppw(way));
        let row = Row::number(&line.size(), printed, ours, "kB/J", Source::Live)
            .column(&format!("{} for a joule", way.name()));
        match found {
            None if self.row(line, way).is_none() => row.not_here(&self.missing()),
            None => row.not_here(METER),
            Some(_) => row.exempt(OTHER_MACHINE),
        }
    }

    /// Kilobytes for a joule, where joules were measured.
    fn kilobytes(&self, row: &results::Row) -> Option<f64> {
        let figure = row.joules.per_byte("J/B", 1.0)?;
        // A meter at the plug gives watts, as the paper's does.
        let is_measured = matches!(figure.class(), Class::Measured | Class::Integrated);
        let best = figure.best().filter(|best| *best > 0.0 && is_measured)?;
        let kilobyte = if self.which == Which::One { 1000.0 } else { 1024.0 };
        Some(1.0 / best / kilobyte)
    }

    /// What EECA gains over another way: for a joule, or in throughput where no joules were measured.
    fn gained(&self, line: &Line, over: Way) -> Row {
        let printed =
            if line.is_consistent(over) { line.improvement(over) } else { line.follows(over) };
        let printed = hundredths(printed);
        let (eeca, other) = (self.row(line, Way::Eeca), self.row(line, over));
        let column = format!("over {}", over.name());
        let Some(((one, hardware), (two, _))) = eeca.zip(other) else {
            return sign(&line.size(), &column, printed, f64::NAN, Source::Live)
                .not_here(&self.missing());
        };
        let joules = self.kilobytes(one).zip(self.kilobytes(two));
        let (ours, what) = match joules {
            Some((one, two)) => (gain(one, two), "for a joule"),
            None => (gain(self.rate(one), self.rate(two)), "in throughput: no meter counts joules"),
        };
        let row = sign(&line.size(), &column, printed, ours, Source::Live).note(what);
        let spread = spread(one) + spread(two);
        let is_model = [Way::Eeca, over].iter().any(|way| uses_model(line, *way, hardware));
        if is_model {
            row.exempt(match self.which {
                Which::One => SIMULATED,
                Which::Two => BLOCKED,
            })
        } else if self.rounds() < LEAST_ROUNDS {
            row.exempt("cannot be decided: fewer than three rounds")
        } else if ours.abs() <= 2.0 * spread {
            row.exempt(&format!("cannot be decided: rounds differ by {spread:.1} %"))
        } else {
            row
        }
    }

    fn rounds(&self) -> u64 {
        let rounds = self.results.and_then(|results| results.settings.get("rounds")?.as_u64());
        rounds.unwrap_or(0)
    }

    /// Why there is no row: what was skipped, or that this size was not asked for.
    pub fn missing(&self) -> String {
        let Some(results) = self.results else { return NOT_MEASURED.to_owned() };
        let mut skipped = results.skipped.iter();
        let why = skipped.find(|why| why.contains("not installed") || why.contains("provider"));
        why.cloned().unwrap_or_else(|| "not in this run".to_owned())
    }
}

/// To two decimals, as improvements are printed.
fn hundredths(value: f64) -> f64 {
    (100.0 * value).round() / 100.0
}

/// Whether a model of an accelerator takes part.
fn uses_model(line: &Line, way: Way, hardware: Hardware) -> bool {
    let by_device = match way {
        Way::Accelerator => true,
        Way::Eeca => line.kb > THRESHOLD_KB,
        Way::Software | Way::InstructionSet => false,
    };
    by_device && hardware == Hardware::Simulated
}

/// Half of the rounds are within so many percent of the median.
pub fn spread(row: &results::Row) -> f64 {
    100.0 * row.wall_ns.mad as f64 / row.wall_ns.median.max(1) as f64
}

/// Rounds from which on their spread says something.
const LEAST_ROUNDS: u64 = 3;

const OTHER_MACHINE: &str = "another machine: columns compare, numbers do not";
const SIMULATED: &str =
    "the accelerator is a model, and every process has its own: no queue is shared";
const BLOCKED: &str = "the accelerator is a model, and a synchronous call stops the only worker while it works; the \
                       paper's processes sleep and others run";
const BY_KERNEL: &str = "another machine, one thread with eight messages in flight: the kernel's fastest AES-CBC, on the CPU unless an \
     accelerator has a driver";
const METER: &str = "a meter that counts joules";
