//! `wattlock-lab paper sefps`: the SEFPS paper beside a model of its stages and this machine.

mod attacks;
mod causes;
mod conclusions;
mod container;
mod contenders;
mod efficiencies;
mod equations;
mod experiment;
mod figures;
mod front;
mod future;
mod future_runs;
mod here;
mod listings;
mod measured;
mod measuring;
mod model;
mod orders;
mod printed;
mod results;
mod rows;
mod runs;
mod security;
mod speeds;

use wattlock_host::exit::Ended;
use wattlock_host::metrics::Metrics;
use wattlock_report::paper::{Constant, Model, Residual, Section};

use super::live;
use crate::args;
use crate::bench::publish;
use crate::outlet::Outlet;
use measured::Measured;
use model::{Affine, Stages, Start};
use printed::{CASES, Case, SMALL, Stage, VARIANTS, decimal_bytes};
use security::Victim;

/// `wattlock-lab paper sefps`.
pub fn run(args: &args::PaperSefps) -> Ended {
    let prometheus = args.meters.prometheus.as_deref();
    Metrics::can_write(prometheus)?;
    let outlet = Outlet::open(args.measured.json.as_deref())?;
    let live = live::measured(&args.measured, runs::KIND, || measuring::measure(args))?;
    let sections = sections(live.as_ref().map(Measured))?;
    if let Some(live) = &live {
        publish::metrics(live).write(prometheus)?;
    }
    let mut paper = live::compared("sefps", TITLE, sections, live);
    paper.models = models();
    super::publish(&paper, outlet)
}

const TITLE: &str = "SEFPS: Xiongwei Fei, Kenli Li, Wangdong Yang, Keqin Li, \u{201c}A secure and efficient file protecting \
                     system based on SHA3 and parallel AES\u{201d}, Parallel Computing 52, 2016";

/// All places, in the paper's order.
fn sections(measured: Option<Measured<'_>>) -> anyhow::Result<Vec<Section>> {
    let directory = tempfile::Builder::new().prefix("wattlock-paper-").tempdir()?;
    let victim = Victim::new(directory.path())?;
    let mut sections = front::sections();
    sections.extend(container::sections(&victim)?);
    sections.extend(listings::sections(&victim)?);
    sections.extend(security::sections(&victim)?);
    sections.extend(experiment::sections());
    sections.extend(results::sections());
    sections.extend(orders::sections());
    sections.extend(here::sections(measured));
    sections.extend([conclusions::section(), conclusions::future(), future::section(measured)]);
    Ok(sections)
}

/// What gives totals, and the lines that stand where no AES speed is printed.
fn models() -> Vec<Model> {
    vec![stages(), lines()]
}

/// Totals by stages: its constants are printed numbers.
fn stages() -> Model {
    let rests = CASES.into_iter().flat_map(|case| {
        let model = Stages::of(case);
        let sizes = SMALL
            .into_iter()
            .filter(move |size| case.speed(Stage::Total, size, VARIANTS[0]).is_some());
        let small = sizes.map(move |size| Constant {
            name: format!("rest, {}, {size}", case.text()),
            value: model.rest_us(size, VARIANTS[0]),
            unit: "µs".to_owned(),
            from: format!("{}'s total, hash and AES", case.name(VARIANTS[0])),
        });
        let average = Constant {
            name: format!("rest, {}, from 12.5 MB", case.text()),
            value: 8.0 * Stages::of(case).rest_of_averages(VARIANTS[0]),
            unit: "ns/B".to_owned(),
            from: format!("{}'s averages", case.name(VARIANTS[0])),
        };
        small.chain([average])
    });
    Model {
        name: "stages: a total is hash, AES and the rest, one after the other".to_owned(),
        about: "The rest (input, output and all else) is what the serial algorithm's printed total leaves, the same for \
                all algorithms. AES is each algorithm's own printed speed; on platform 2 up to 255 KB, where none is printed, \
                it is the line below. 72 printed numbers go in (the four hash speeds cancel), 48 totals come out: this tests \
                that stages add up, no more. The totals of the averages are Eq. 5 written otherwise, and winners follow from \
                the totals: count these once. Bounds and the one exempt cell were set after seeing the residuals: they guard \
                against regressions, and are no blind predictions. A tie (closer than 2.5 %) is marked, and judged like any \
                other order."
            .to_owned(),
        constants: rests.collect(),
        residuals: Vec::new(),
    }
}

/// AES where no speed is printed: platform 2 up to 255 KB, and crossovers.
fn lines() -> Model {
    let mut constants = Vec::new();
    let mut residuals = Vec::new();
    for case in CASES {
        let model = Stages::of(case);
        let Some(lines) = model.lines else { continue };
        for (variant, line) in VARIANTS.into_iter().zip(lines) {
            let name = format!("{}, platform {}", case.name(variant), case.platform);
            constants.extend(constants_of(&name, line, &from(case)));
            let errors = SMALL.into_iter().filter_map(|size| {
                let speed = case.speed(Stage::Aes, size, variant)?;
                let printed = 8.0 * decimal_bytes(size) / speed / 1e3;
                Some(model.line_us(size, variant) / printed - 1.0)
            });
            residuals.push(Residual::of(&format!("{name}, AES up to 2.21 MB"), errors));
        }
    }
    let [own, other] = [Start::Own, Start::Platform1].map(|start| {
        let lines = Stages::started(CASES[2], start).lines;
        lines.map_or(f64::NAN, |lines| lines[1].start_us)
    });
    Model {
        name: "AES as a line: a start, and a time for each byte".to_owned(),
        about: format!(
            "Least squares of relative errors through the algorithm's own printed AES times up to 2.21 MB (KB = 1000 bytes); \
             on platform 2, which prints 2.21 MB and the mean of the larger files only, the line through both. CPP's start \
             on platform 2, {own:.0} µs, is the difference of two numbers near 60 ms, and misses CPP's totals at 5.61 and \
             20.4 KB. Platform 1's ({other:.0} µs) was tried after seeing that: rows tell it, and none counts it."
        ),
        constants,
        residuals,
    }
}

fn from(case: Case) -> String {
    match case.platform {
        1 => "its four printed AES speeds up to 2.21 MB".to_owned(),
        _ => "its printed AES speeds of 2.21 MB and of the mean".to_owned(),
    }
}

fn constants_of(name: &str, line: Affine, from: &str) -> [Constant; 2] {
    let constant = |what: &str, value: f64, unit: &str| Constant {
        name: format!("{name}: {what}"),
        value,
        unit: unit.to_owned(),
        from: from.to_owned(),
    };
    [constant("start", line.start_us, "µs"), constant("each byte", 1e3 * line.us_per_byte, "ns")]
}
