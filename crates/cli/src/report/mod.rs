//! `wattlock report`: one page of figures from the results of benches and measurements. It holds its
//! style, its drawings and its data, and asks for nothing from elsewhere.

mod amounts;
mod at;
mod blocks;
mod compared;
mod document;
mod energy;
mod figure;
mod html;
mod kinds;
mod measure;
mod page;
mod printed;
mod reading;
mod simulation;
mod svg;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use wattlock_file::Shown;

use crate::args;
use crate::exit::{self, Ended};
use crate::replace;
use document::Document;

/// `wattlock report`.
pub fn run(args: &args::Report) -> Ended {
    let output = Some(&args.output).filter(|path| path.as_os_str() != "-");
    let place = output.map(|path| place(path, &args.files)).transpose()?;
    let documents: Vec<Document> =
        args.files.iter().map(|path| Document::read(path)).collect::<anyhow::Result<_>>()?;
    let page = page::page(&documents);
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
