//! `wattlock-lab paper eeca`: the EECA paper beside models of its server in virtual time.

mod challenges;
mod design;
mod evaluation;
mod events;
mod here;
mod motivation;
mod printed;
mod quotes;
mod rows;
mod server;
mod speed;
mod table_1;
mod table_2;
mod text_1;
mod text_2;

use wattlock_host::exit::Ended;
use wattlock_report::paper::{Constant, Model, Paper, Residual, Section};

use wattlock_report::results::Results;

use super::live;
use crate::args;
use crate::bench::publish;
use crate::outlet::Outlet;
pub use here::page_server::run as serve_pages;
use printed::{Line, Way, Which};
use server::Server;
use speed::Machine;

/// `wattlock-lab paper eeca`.
pub fn run(args: &args::PaperEeca) -> Ended {
    let outlet = Outlet::open(args.measured.json.as_deref())?;
    publish::can_publish(None, &args.meters)?;
    let measured = live::measured(&args.measured, here::KIND, || here::measure(args))?;
    if let Some(results) = &measured {
        publish::metrics(results).write(args.meters.prometheus.as_deref())?;
    }
    super::publish(&compared(measured), outlet)
}

/// What the rows are made of.
struct Found {
    one: Vec<Line>,
    two: Vec<Line>,
    machine: Machine,
    server: Server,
}

impl Found {
    fn new() -> Self {
        let [one, two] = [Which::One, Which::Two].map(Which::lines);
        let machine = Machine::fitted(&one);
        Self { one, two, machine, server: Server::printed(&machine) }
    }

    /// The lines of both tables.
    fn lines(&self) -> impl Iterator<Item = &Line> {
        self.one.iter().chain(&self.two)
    }
}

/// The paper, place by place.
fn compared(measured: Option<Results>) -> Paper {
    let found = Found::new();
    let results = measured.as_ref();
    let mut sections: Vec<Section> = motivation::sections(&found, results);
    sections.extend(design::sections(&found, results));
    sections.extend(evaluation::before_tables(&found));
    sections.extend(table_1::sections(&found));
    sections.push(here::section(Which::One, results));
    sections.extend(text_1::sections(&found));
    sections.extend(table_2::sections(&found));
    sections.push(here::section(Which::Two, results));
    sections.extend(text_2::sections(&found));
    let mut paper = live::compared("eeca", TITLE, sections, measured);
    paper.models = vec![speed_model(&found), server_model(&found)];
    paper
}

const TITLE: &str = "EECA: Chunhua Xiao, Lei Zhang, Weichen Liu, Neil Bergmann, Yuhua Xie, \u{201c}Energy-efficient crypto \
                     acceleration with HW/SW co-design for HTTPS\u{201d}, Future Generation Computer Systems 96, 2019";

const STEP: &str = "chosen: callers of equal durations fall into step";

fn constant(name: &str, value: f64, unit: &str, from: &str) -> Constant {
    let [name, unit, from] = [name, unit, from].map(str::to_owned);
    Constant { name, value, unit, from }
}

fn speed_model(found: &Found) -> Model {
    let Machine { start_ns, core_rate, software_rate, device } = found.machine;
    let errors = |way: Way| {
        let error = move |line: &Line| {
            found.machine.single(way, line.bytes()) / speed::per_second(line, way) - 1.0
        };
        Residual::of(&format!("Table 1, {}", way.name()), found.one.iter().map(error))
    };
    let set = "Table 1, instruction set: 9 cells";
    let accelerator = "Table 1, accelerator: 9 cells";
    Model {
        name: "Table 1: `openssl speed` of 8 processes, with 8 cores and an accelerator".to_owned(),
        about: "Every process makes one call after the other. A call of the accelerator is on its one line for size / \
                rate and costs its caller the call's time besides. EECA above 8 kB: as many callers as keep the line \
                full use it, the others the instruction set (best split; their number is a mean in time, 2.3 at 64 kB), \
                or each call decides by itself (events). \
                Fitted to the columns of software, instruction set and accelerator alone, whose cells are not \
                judged; below 8 kB EECA's check is that of its 1 kB cell. The accelerator's column cannot tell 6 \
                callers from 10 (free fit 7.5): 8 are those of the cores. Bounds were set after the errors were \
                known; they guard against changes."
            .to_owned(),
        constants: vec![
            constant("cores, and processes", speed::CORES, "", "printed: Sections 2.3.2 and 5.1"),
            constant("instruction set, start of a call", start_ns, "ns", set),
            constant("instruction set, a core", core_rate / 1e6, "MB/s", set),
            constant("software, a core", software_rate / 1e6, "MB/s", "Table 1, software: 9 cells"),
            constant("accelerator, a call", device.call_ns / 1e3, "µs", accelerator),
            constant("accelerator, its line", device.rate / 1e9, "GB/s", accelerator),
            constant(
                "EECA's check of a call",
                speed::check_ns(&found.one[0]),
                "ns",
                "Table 1, EECA and instruction set at 1 kB: one cell of EECA's column",
            ),
            constant("events, durations vary by", 100.0 * events::JITTER, "%", STEP),
            constant("events, calls of a run", f64::from(events::CALLS), "", "chosen"),
            constant("events, runs", events::SEEDS as f64, "", "chosen"),
        ],
        residuals: Way::SINGLE.map(errors).into(),
    }
}

fn server_model(found: &Found) -> Model {
    let server = &found.server;
    let errors = |way: Way| {
        let error = |line: &Line| server.single(way, line) / line.rate(way) - 1.0;
        Residual::of(
            &format!("Table 2, {}, requests a second", way.name()),
            server.lines.iter().map(error),
        )
    };
    let [set, aes] = ["Table 1, instruction set: 9 cells", "Table 1, software: 9 cells"];
    let (free_call, free) = server.fitted_saving(&server.lines, 0.0);
    let accelerator = "Table 2, accelerator: 11 cells";
    let software = "Table 2, software: 11 cells";
    Model {
        name: "Table 2: CPU time of a page on the web server, 8 busy cores".to_owned(),
        about: "A page costs what the printed cell of the instruction set says; an accelerator takes AES at Table 1's rate \
                off it and adds a call for each record, with reconstruction one for the page (main model, chosen \
                before it was compared; its bound was set afterwards). Constants of the columns of software and \
                accelerator alone, whose cells are not judged; up to 8 kB EECA's check is that of its 1 kB cell."
            .to_owned(),
        constants: vec![
            constant("pages, by the instruction set", 11.0, "", "Table 2, instruction set: every cell"),
            constant("AES by the instruction set, a core", found.machine.core_rate / 1e6, "MB/s", set),
            constant("AES by software, a core", found.machine.software_rate / 1e6, "MB/s", aes),
            constant("a call of the accelerator", server.call_us, "µs", accelerator),
            constant("software, beside AES, a page", server.software_us, "µs", software),
            constant(
                "software, beside AES, a byte",
                1e3 * server.software_us_per_byte,
                "ns",
                software,
            ),
            constant("variants that fit the saving, a call", free_call, "µs", accelerator),
            constant("variants that fit the saving, of AES' time", free, "", accelerator),
            constant("header of an answer", server::HEADER as f64, "B", "nginx 1.22: counted here"),
            constant(
                "EECA's check of a page",
                server.check_us,
                "µs",
                "Table 2, EECA and instruction set at 1 kB: one cell of EECA's column",
            ),
        ],
        residuals: vec![errors(Way::Software), errors(Way::Accelerator)],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wattlock_report::paper::Verdict;

    #[test]
    fn models_miss_nothing_and_every_cell_has_a_row() {
        let paper = compared(None);
        let missed: Vec<_> = paper.missed().map(|(at, row)| (&at.place, row.name())).collect();
        assert!(missed.is_empty(), "{missed:?}");
        for (which, cells) in [(Which::One, 99), (Which::Two, 121)] {
            let sections = paper.sections.iter().filter(|at| at.place == which.place());
            let rows = sections.flat_map(|section| &section.rows);
            let of_cells = rows.filter(|row| table_1::is_cell(row));
            assert_eq!(of_cells.count(), cells, "{}", which.place());
        }
        let without_reason = paper.sections.iter().flat_map(|at| &at.rows).filter(|row| {
            matches!(row.verdict, Verdict::Exempt | Verdict::NotHere) && row.why.is_empty()
        });
        assert_eq!(without_reason.count(), 0);
    }
}
