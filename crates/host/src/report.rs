//! The command `report` of both programs: one page of figures from results.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueHint};
use wattlock_file::Shown;
use wattlock_report::{Document, page};

use crate::exit::{self, Ended};
use crate::replace;

/// Draw figures of `wattlock measure` and `wattlock-lab` results on one HTML page.
///
/// The page is one self-contained file without scripts. Every figure names its machine and
/// versions; modelled values are hatched and never ranked.
#[derive(Debug, Args)]
#[command(after_help = crate::flags::EXIT_CODES)]
pub struct Report {
    /// Results of `wattlock measure`, or of `wattlock-lab bench`, `simulate` or `paper`, with --json
    #[arg(value_name = "RESULT.json", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Write the page to FILE ("-": standard output), replacing it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub output: PathBuf,
}

/// Makes the page.
pub fn run(args: &Report) -> Ended {
    let output = Some(&args.output).filter(|path| path.as_os_str() != "-");
    let place = output.map(|path| place(path, &args.files)).transpose()?;
    let documents: Vec<Document> =
        args.files.iter().map(|path| Document::read(path)).collect::<anyhow::Result<_>>()?;
    let page = page(&documents);
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
        return Err(exit::usage(format!("{} is also an input", Shown(output))));
    }
    Ok(place)
}
