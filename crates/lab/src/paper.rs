//! `wattlock-lab paper`: each number and claim that a paper prints, and ours.

pub mod blocks;
pub mod ciphers;
mod claims;
pub mod eeca;
pub mod lecpaes;
mod live;
pub mod sefps;
mod table;

use wattlock_host::exit::{self, Ended};
use wattlock_report::paper::Paper;

use crate::outlet::Outlet;

/// Prints a comparison and writes its JSON; the exit code says whether anything is missed.
fn publish(paper: &Paper, outlet: Outlet) -> Ended {
    outlet.write(&paper.text(), paper)?;
    if paper.met {
        return Ok(0.into());
    }
    let missed: Vec<String> = paper
        .missed()
        .map(|(section, row)| format!("\n  {}: {}", section.place, row.name()))
        .collect();
    say!("{} of {} rows missed:{}", missed.len(), paper.rows().count(), missed.concat());
    Ok(exit::FAILURE.into())
}
