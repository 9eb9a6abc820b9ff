//! Tables 1 and 2 as they come out on this machine.

use wattlock_energy::Class;
use wattlock_report::paper::{Row, Rule, Section, Source};
use wattlock_report::results::{self, Results};

use super::{CLIENT, kernel, speed};
use crate::args::Suite;
use crate::bench::https::case;
use crate::bench::https::contenders::{Contender, Hardware, Release};
use crate::paper::eeca::printed::{Line, Way, Which, gain};
use crate::paper::eeca::quotes::quote;
use crate::paper::eeca::rows::sign;
use crate::paper::eeca::speed::THRESHOLD_KB;
use crate::paper::live::NOT_MEASURED;

/// What was measured of a table.
pub struct Here<'a> {
    pub which: Which,
    pub results: Option<&'a Results>,
}

/// A table here: throughput, kilobytes a joule and what EECA gains, one row for each printed cell; and
/// what was measured of those that the paper only draws.
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
        rows.extend(here.joules(&lines, way));
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
            let tool = contender(way, hardware).tool(results);
            results.row(&tool, &self.case(line)).map(|row| (row, hardware))
        })
    }

    /// What a row of that size is called.
    fn case(&self, line: &Line) -> String {
        match self.which {
            Which::One => speed::case(line.kb << 10),
            Which::Two => case(Suite::CbcSha384, line.kb << 10, CLIENT),
        }
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
            None => row.not_here(&self.missing(line, way)),
            Some((_, hardware)) if uses_model(line, way, hardware) => row.exempt(SIMULATED),
            Some((_, Hardware::Real(name))) if uses_device(line, way) => {
                row.exempt(&format!("the accelerator is {name}; {OTHER_MACHINE}"))
            }
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

    /// Kilobytes for a joule of a way: the sizes that the text prints, and those that were measured.
    fn joules(&self, lines: &[Line], way: Way) -> Vec<Row> {
        let rows: Vec<Row> = lines.iter().filter_map(|line| self.per_joule(line, way)).collect();
        if !rows.is_empty() {
            return rows;
        }
        let measured = lines.iter().find(|line| self.row(line, way).is_some());
        let why = measured.or(lines.first()).map(|line| self.kilobytes_of(line, way));
        let missing = why.and_then(Result::err).unwrap_or_else(|| METER.to_owned());
        let item = format!("{} for a joule", way.name());
        vec![Row::printed_only(Rule::Value, &item, Source::Live).not_here(&missing)]
    }

    /// None where neither the text prints nor this machine measured anything.
    fn per_joule(&self, line: &Line, way: Way) -> Option<Row> {
        let found = self.kilobytes_of(line, way);
        let row = match (printed_per_joule(self.which, line, way), &found) {
            (Some(printed), found) => {
                let ours = found.as_ref().map_or(f64::NAN, |ours| *ours);
                Row::number(&line.size(), printed, ours, "kB/J", Source::Live)
            }
            (None, Ok(ours)) => Row::unprinted(&line.size(), *ours, "kB/J", Source::Live),
            (None, Err(_)) => return None,
        };
        let row = row.column(&format!("{} for a joule", way.name()));
        Some(match found {
            Ok(_) => row.exempt(OTHER_MACHINE),
            Err(why) => row.not_here(&why),
        })
    }

    /// Kilobytes for a joule of a way, or what is missing.
    fn kilobytes_of(&self, line: &Line, way: Way) -> Result<f64, String> {
        let Some((row, hardware)) = self.row(line, way) else {
            return Err(self.missing(line, way));
        };
        if uses_model(line, way, hardware) {
            return Err(NO_DEVICE.to_owned());
        }
        self.kilobytes(row).ok_or_else(|| METER.to_owned())
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
        let printed = line.improvement(over);
        let (eeca, other) = (self.row(line, Way::Eeca), self.row(line, over));
        let column = format!("over {}", over.name());
        let Some(((one, hardware), (two, _))) = eeca.zip(other) else {
            let way = if self.row(line, Way::Eeca).is_some() { over } else { Way::Eeca };
            return sign(&line.size(), &column, printed, f64::NAN, Source::Live)
                .not_here(&self.missing(line, way));
        };
        let is_model = [Way::Eeca, over].iter().any(|way| uses_model(line, *way, hardware));
        let joules = self.kilobytes(one).zip(self.kilobytes(two)).filter(|_| !is_model);
        let (ours, what) = match joules {
            Some((one, two)) => (gain(one, two), "for a joule"),
            None => (gain(self.rate(one), self.rate(two)), "in throughput: no meter counts joules"),
        };
        let by_cpu = if line.kb <= THRESHOLD_KB { OWN_CODE } else { "" };
        let row = sign(&line.size(), &column, printed, ours, Source::Live);
        let row = row.note(&format!("{what}{by_cpu}"));
        let spread = spread(one) + spread(two);
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

    /// Why a way has no row of that size: what was said of it, or that it was not asked for.
    pub fn missing(&self, line: &Line, way: Way) -> String {
        let Some(results) = self.results else { return NOT_MEASURED.to_owned() };
        let said = Hardware::all().find_map(|hardware| {
            let tool = contender(way, hardware).tool(results);
            results.skipped.iter().find(|why| is_about(why, &tool, &self.case(line)))
        });
        let of_pages = results.skipped.iter().find(|why| why.starts_with("pages by HTTPS: "));
        let said = said.or(of_pages.filter(|_| self.which == Which::Two));
        said.cloned().unwrap_or_else(|| NOT_ASKED.to_owned())
    }
}

/// Who is measured for a way.
fn contender(way: Way, hardware: Hardware) -> Contender {
    match way {
        Way::Eeca => Contender::Eeca(hardware),
        Way::Software => Contender::Software,
        Way::InstructionSet => Contender::InstructionSet(Release::Installed),
        Way::Accelerator => Contender::Accelerator(hardware),
    }
}

/// Whether a line about what was skipped is about that tool, and that case or all of its kind:
/// "TOOL, CASE: why", "TOOL, SUITE: why", or "TOOL, TOOL: why" of those that need the provider.
fn is_about(line: &str, tool: &str, case: &str) -> bool {
    let Some((what, _)) = line.split_once(": ") else { return false };
    let of_tool = what.strip_prefix(tool).and_then(|rest| rest.strip_prefix(", "));
    if of_tool.is_some_and(|rest| rest == case || case.starts_with(&format!("{rest}, "))) {
        return true;
    }
    let all_ours = tool.starts_with("wattlock ") && what.starts_with("wattlock ");
    all_ours && (what.ends_with(tool) || what.starts_with(&format!("{tool}, wattlock ")))
}

/// Kilobytes for a joule that the text prints of a cell.
fn printed_per_joule(which: Which, line: &Line, way: Way) -> Option<f64> {
    let section = if which == Which::One { "S5.3" } else { "S5.4" };
    let printed = quote(&format!("{section}-ppw-{}", line.kb));
    Some(printed).filter(|printed| printed.is_finite() && way == Way::Eeca)
}

/// Whether an accelerator has part in a cell.
fn uses_device(line: &Line, way: Way) -> bool {
    match way {
        Way::Accelerator => true,
        Way::Eeca => line.kb > THRESHOLD_KB,
        Way::Software | Way::InstructionSet => false,
    }
}

/// Whether a model of an accelerator has part in a cell, or a driver that makes one of the CPU.
fn uses_model(line: &Line, way: Way, hardware: Hardware) -> bool {
    uses_device(line, way) && !matches!(hardware, Hardware::Real(_))
}

/// Half of the rounds are within so many percent of the median.
pub fn spread(row: &results::Row) -> f64 {
    100.0 * row.wall_ns.mad as f64 / row.wall_ns.median.max(1) as f64
}

/// Rounds from which on their spread says something.
const LEAST_ROUNDS: u64 = 3;

const OTHER_MACHINE: &str = "another machine: compare the columns, not absolute numbers";
const SIMULATED: &str = "the accelerator is a model, or a driver that makes one of the CPU, and every process has its own: \
                         no queue is shared";
const BLOCKED: &str = "the accelerator is a model, or a driver that makes one of the CPU, and a synchronous call stops \
                       the only worker while it works; the paper's processes sleep and others run";
const OWN_CODE: &str =
    "; up to T this sets the provider's code beside OpenSSL's, not a check beside none";
const NO_DEVICE: &str =
    "an accelerator that draws power: this one is a model, or a driver on the CPU";
const NOT_ASKED: &str = "not in this run";
const BY_KERNEL: &str = "another machine, one thread with eight messages in flight: the kernel's fastest AES-CBC, on the CPU unless an \
     accelerator has a driver";
const METER: &str = "a meter that counts joules";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_that_of_its_own_tool_and_case() {
        let case = "aes-256-cbc, 1 KiB";
        let (model, eeca) = ("wattlock simulated accelerator", "wattlock EECA, simulated");
        for (line, tool, is_about_it) in [
            ("openssl, software, aes-256-cbc, 1 KiB: masked", "openssl, software", true),
            ("openssl, software, aes-256-cbc, 1 KiB: masked", "openssl", false),
            ("openssl, software, aes-256-cbc, 2 KiB: masked", "openssl, software", false),
            ("wattlock EECA, simulated, aes-256-cbc, 1 KiB: calls", eeca, true),
            ("wattlock EECA, simulated, aes-256-cbc, 2 KiB: calls", eeca, false),
            ("wattlock simulated accelerator, wattlock EECA, simulated: none", eeca, true),
            ("wattlock simulated accelerator, wattlock EECA, simulated: none", model, true),
            ("wattlock simulated accelerator, wattlock EECA, simulated: none", "openssl", false),
        ] {
            assert_eq!(is_about(line, tool, case), is_about_it, "{line}, {tool}");
        }
        let page = "ECDHE-RSA-AES256-SHA384, 1 KiB, by ab";
        assert!(is_about("openssl, ECDHE-RSA-AES256-SHA384: no nginx", "openssl", page));
    }
}
