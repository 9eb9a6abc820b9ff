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
mod svg;
mod table;

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Context;
use wattlock_file::Shown;

use crate::args;
use crate::exit::{self, Ended};
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
            write(&place, &page)
                .with_context(|| format!("cannot write {}", Shown(&args.output)))?;
        }
        None => exit::print(&page)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Where the page goes, behind a link if it is one; not over an input, nor over what is no file.
fn place(output: &Path, inputs: &[PathBuf]) -> anyhow::Result<PathBuf> {
    let Ok(there) = output.canonicalize() else { return Ok(output.to_owned()) };
    if !there.is_file() {
        return Err(exit::usage(format!("{} is there and is not a file", Shown(output))));
    }
    if inputs.iter().any(|input| input.canonicalize().is_ok_and(|input| input == there)) {
        return Err(exit::usage(format!("{} is an input, too", Shown(output))));
    }
    Ok(there)
}

/// All of it, or nothing.
fn write(place: &Path, page: &str) -> std::io::Result<()> {
    let directory = place.parent().filter(|directory| !directory.as_os_str().is_empty());
    let everyone = fs::Permissions::from_mode(0o666);
    let mut file = tempfile::Builder::new()
        .prefix(".wattlock-report-")
        .permissions(everyone)
        .tempfile_in(directory.unwrap_or(Path::new(".")))?;
    file.write_all(page.as_bytes())?;
    file.persist(place)?;
    Ok(())
}
