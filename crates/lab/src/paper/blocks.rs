//! `wattlock-lab paper blocks`: AES-CTR with extended blocks, the paper beside models of its machines
//! and the same granularities on this one.

mod aes;
mod beyond;
pub mod count;
mod cpu;
mod device;
mod form;
mod forms;
mod gpu;
mod granularity;
mod measure;
mod model;
mod printed;
mod rows;
mod text;
mod why;

use wattlock_host::exit::Ended;
use wattlock_report::paper::{Paper, Section};
use wattlock_report::results::Results;

use super::live;
use crate::args;
use crate::bench::publish;
use crate::outlet::Outlet;
use rows::Live;

/// `wattlock-lab paper blocks`.
pub fn run(args: &args::PaperBlocks) -> Ended {
    if let [name, lengths @ ..] = &args.count_steps[..] {
        return stepped(name, lengths);
    }
    let outlet = Outlet::open(args.measured.json.as_deref())?;
    publish::can_publish(None, &args.meters)?;
    let live = live::measured(&args.measured, "blocks", || measure::measure(args))?;
    if let Some(live) = &live {
        publish::write_metrics(live, &args.meters)?;
    }
    super::publish(&compared(live), outlet)
}

fn compared(live: Option<Results>) -> Paper {
    let sections = sections(Live(live.as_ref()));
    Paper { models: model::models(), ..live::compared("blocks", TITLE, sections, live) }
}

/// In the paper's order.
fn sections(live: Live<'_>) -> Vec<Section> {
    let mut sections = text::before(live);
    sections.extend(cpu::sections(live));
    sections.extend(device::sections(live));
    sections.extend(why::sections(live));
    sections.extend(text::after());
    sections.push(beyond::section(live));
    sections
}

/// What the child does that is executed one instruction at a time.
fn stepped(name: &str, lengths: &[String]) -> Ended {
    let lengths: Vec<usize> =
        lengths.iter().map(|length| length.parse()).collect::<Result<_, _>>()?;
    count::be_stepped(name, &lengths)?;
    Ok(0.into())
}

const TITLE: &str = "Extended blocks: Nhat-Phuong Tran, Myungho Lee, Sugwon Hong, Seung-Jae Lee, \u{201c}Parallel Execution \
                     of AES-CTR Algorithm Using Extended Block Size\u{201d}, whose copy prints no proceedings or year";
