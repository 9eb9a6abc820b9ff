//! `wattlock doctor`: what can be used on this machine, why the rest cannot, and what would help.

use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use wattlock_energy::{Found, Sources};
use wattlock_file::Shown;

use crate::args;
use crate::cipher::list::{Kernel, kernels};
use crate::energy::{other, root};
use crate::exit::{Ended, print};

/// The report in JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    root: Option<String>,
    energy: Vec<Source<'a>>,
    kernels: Vec<Kernel>,
}

/// A source of energy in JSON.
#[derive(Serialize)]
struct Source<'a> {
    source: &'static str,
    domain: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    status: &'static str,
    why: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<&'a str>,
}

/// `wattlock doctor`.
pub fn run(args: &args::Doctor) -> Ended {
    let root = root();
    let sources = Sources::open(&root);
    let text = if args.json {
        let document = Document {
            schema: "wattlock-doctor/1",
            root: other(&root).map(|root| root.display().to_string()),
            energy: sources.found().iter().map(source).collect(),
            kernels: kernels(),
        };
        serde_json::to_string_pretty(&document)? + "\n"
    } else {
        energy_rows(sources.found()) + "\n" + &kernels_here()
    };
    print(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn source(found: &Found) -> Source<'_> {
    Source {
        source: found.source,
        domain: &found.domain,
        path: found.path.as_ref().map(|path| path.display().to_string()),
        status: found.status.name(),
        why: &found.why,
        fix: found.fix.as_deref(),
    }
}

fn energy_rows(found: &[Found]) -> String {
    let mut text = String::from("energy\n");
    for source in found {
        // A domain's name is a file's text, which a terminal might obey.
        let domain = Shown(Path::new(&source.domain)).to_string();
        let status = source.status.name();
        text += &format!("  {:<9} {domain:<22} {status}\n", source.source);
        if let Some(path) = &source.path {
            text += &format!("    where: {}\n", Shown(path));
        }
        text += &format!("    why:   {}\n", source.why);
        if let Some(fix) = &source.fix {
            text += &format!("    fix:   {fix}\n");
        }
    }
    text
}

fn kernels_here() -> String {
    let mut text = String::from("kernels\n");
    for kernel in kernels() {
        let here = match &kernel.why_not {
            Some(why) => format!("unavailable: {why}"),
            None if kernel.chosen => "used".into(),
            None => "available, not the fastest or not constant in time".into(),
        };
        text += &format!("  {:<32} {here}\n", kernel.name);
    }
    text
}
