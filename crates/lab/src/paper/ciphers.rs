//! `wattlock-lab paper ciphers`: joules a byte of six serial and parallel ciphers, the paper's numbers
//! beside models, each other, and this machine.

mod algorithms;
mod claims;
mod conclusion;
mod headline;
mod here;
mod instructions;
mod lowered;
mod model;
mod printed;
mod rows;
mod tables;
mod text;

use wattlock_host::exit::Ended;
use wattlock_report::paper::{Paper, Section};
use wattlock_report::results::Results;

use super::live;
use crate::args;
use crate::bench::publish;
use crate::outlet::Outlet;
use rows::Live;

/// `wattlock-lab paper ciphers`.
pub fn run(args: &args::PaperCiphers) -> Ended {
    let outlet = Outlet::open(args.measured.json.as_deref())?;
    publish::can_publish(None, &args.meters)?;
    let live = live::measured(&args.measured, "energy", || instructions::measure(args))?;
    if let Some(live) = &live {
        publish::write_metrics(live, &args.meters)?;
    }
    super::publish(&compared(live), outlet)
}

fn compared(live: Option<Results>) -> Paper {
    let sections = sections(Live(live.as_ref()));
    Paper { models: model::models(), ..live::compared("ciphers", TITLE, sections, live) }
}

/// In the paper's order.
fn sections(live: Live<'_>) -> Vec<Section> {
    let mut sections = text::sections(live);
    sections.extend(tables::sections(live));
    sections.push(Section::new("Section IV", "what the text says of the tables", claims::rows()));
    sections.push(Section::new(
        "Section IV, here",
        "the same on this machine",
        here::results(live),
    ));
    sections.push(Section::new(
        "Figures 3 to 6",
        "parallel at a low clock against serial at the default: the headline",
        headline::rows(live),
    ));
    sections.push(Section::new(
        "Section V",
        "conclusions, by the printed tables",
        conclusion::rows(),
    ));
    sections.push(Section::new(
        "Section V, here",
        "the same on this machine",
        here::conclusion(live),
    ));
    sections.push(Section::new(
        "Not in the paper",
        "ratios of joules on which all models of a CPU's power agree (modelled, not measured)",
        here::agreed(live),
    ));
    sections
}

/// The copy at hand has no title.
const TITLE: &str = "Six ciphers: a study of joules a byte of serial and parallel ciphers (our words; its title is not \
                     known), International Journal of Innovative Research in Computer Science & Technology";
