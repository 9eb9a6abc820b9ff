//! The command `report` of both programs: one page of figures from results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueHint};
use wattlock_file::Shown;
use wattlock_report::{Document, Papers, page};

use crate::exit::{self, Ended};
use crate::replace;

/// Make one page of figures from `wattlock measure` and `wattlock-lab` results.
///
/// The page is a single HTML file, without scripts or external resources. Every figure names
/// its machine and versions; modelled values are hatched and never ranked.
#[derive(Debug, Args)]
pub struct Report {
    /// Results: the JSON line of `wattlock measure --json`, or what `wattlock-lab bench --json` or
    /// `wattlock-lab simulate --json` wrote
    #[arg(value_name = "RESULT.json", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Write the page to FILE, replacing it, or "-" for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
}

/// Makes the page, beside the numbers that papers print.
pub fn run(args: &Report, papers: &Papers) -> Ended {
    let output = Some(&args.output).filter(|path| path.as_os_str() != "-");
    let place = output.map(|path| place(path, &args.files)).transpose()?;
    let documents: Vec<Document> =
        args.files.iter().map(|path| Document::read(path)).collect::<anyhow::Result<_>>()?;
    let page = page(&documents, papers);
    match place {
        Some(place) => {
            replace::write(&place, page.as_bytes())
                .with_context(|| format!("cannot write {}", Shown(&args.output)))?;
        }
        None => exit::print(&page)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the page goes; not over an input.
fn place(output: &Path, inputs: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let place = replace::place(output)?;
    if inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == place)) {
        return Err(exit::usage(format!("{} is an input, too", Shown(output))));
    }
    Ok(place)
}
