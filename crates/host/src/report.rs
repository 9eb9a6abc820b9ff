//! The command `report` of both programs: one page of figures from results, or the summaries of several runs as one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use clap::{Args, ValueHint};
use wattlock_file::Shown;
use wattlock_report::{Document, Merged, page};

use crate::exit::{self, Ended};
use crate::replace;

/// Draw figures of `wattlock measure` and `wattlock-lab` results on one HTML page, or merge summaries.
///
/// The page is one self-contained file without scripts. Every figure names its machine and
/// versions; modelled values are hatched and never ranked.
#[derive(Debug, Args)]
#[command(after_help = crate::flags::EXIT_CODES)]
pub struct Report {
    /// Results of `wattlock measure`, or of `wattlock-lab bench`, `simulate` or `paper`, with --json; with --merge, summaries
    #[arg(value_name = "RESULT.json", required = true, value_hint = ValueHint::FilePath)]
    pub files: Vec<PathBuf>,
    /// Write to FILE ("-": standard output), replacing it
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(required_unless_present = "merge")]
    pub output: Option<PathBuf>,
    /// Merge the --json summaries of runs, such as shards, into one JSON document
    ///
    /// Summaries of protect, unprotect and verify, and of `wattlock measure` for their energy; the sum has the weakest
    /// class. Without -o, it goes to standard output. Exits with the highest exit code of the runs, of each shard the
    /// last one, and at least with 1 if a shard or a summary is missing.
    #[arg(long)]
    pub merge: bool,
}

/// Makes the page.
pub fn run(args: &Report) -> Ended {
    let output = args.output.as_ref().filter(|path| path.as_os_str() != "-");
    let place = output.map(|path| place(path, &args.files)).transpose()?;
    if args.merge {
        return merge(args, place.as_deref());
    }
    let documents: Vec<Document> =
        args.files.iter().map(|path| Document::read(path)).collect::<anyhow::Result<_>>()?;
    let page = page(&documents);
    put(place.as_deref(), &page)?;
    Ok(ExitCode::SUCCESS)
}

/// Merges summaries.
fn merge(args: &Report, place: Option<&Path>) -> Ended {
    let read = |path: &PathBuf| -> anyhow::Result<(String, String)> {
        let name = Shown(path).to_string();
        let text = std::fs::read_to_string(path);
        Ok((name.clone(), text.with_context(|| format!("cannot read {name}"))?))
    };
    let texts: Vec<_> = args.files.iter().map(read).collect::<anyhow::Result<_>>()?;
    let merged = Merged::new(&texts)?;
    let text = serde_json::to_string_pretty(&merged)? + "\n";
    put(place, &text)?;
    Ok(ExitCode::from(merged.exit_code()))
}

/// Writes to a file, or to standard output.
fn put(place: Option<&Path>, text: &str) -> anyhow::Result<()> {
    let Some(place) = place else { return exit::print(text) };
    replace::write(place, text.as_bytes()).with_context(|| format!("cannot write {}", Shown(place)))
}

/// Where the page goes; not over an input.
fn place(output: &Path, inputs: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let place = replace::place(output)?;
    if inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == place)) {
        return Err(exit::usage(format!("{} is also an input", Shown(output))));
    }
    Ok(place)
}
