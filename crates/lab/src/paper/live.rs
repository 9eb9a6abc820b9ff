//! What was measured on this machine for a paper.

use std::fs;
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use serde_json::json;
use wattlock_file::Shown;
use wattlock_host::exit::usage;
use wattlock_report::paper::{Paper, Row, Section, Source, Verdict};
use wattlock_report::results::Results;

use crate::args;

/// What `measure` measures, what an earlier run measured, or nothing, as the flags say.
///
/// # Errors
/// Those of `measure`, and that the file of an earlier run holds no such measurements.
pub fn measured(
    flags: &args::Measured,
    kind: &str,
    measure: impl FnOnce() -> anyhow::Result<Results>,
) -> anyhow::Result<Option<Results>> {
    if flags.no_live {
        return Ok(None);
    }
    if let Some(file) = &flags.measured {
        if flags.json.as_ref().is_some_and(|json| same_file(file, json)) {
            return Err(usage("--json would replace the --measured file; choose another"));
        }
        return read(file, kind).with_context(|| format!("--measured {}", Shown(file))).map(Some);
    }
    let mut results = measure()?;
    if flags.quick {
        results.settings.insert(QUICK.to_owned(), json!(true));
    }
    Ok(Some(results))
}

fn same_file(one: &Path, other: &Path) -> bool {
    let found = [one, other].map(|path| path.canonicalize().ok());
    found[0].is_some() && found[0] == found[1]
}

/// The measurements in the JSON of an earlier comparison with the same paper.
fn read(file: &Path, kind: &str) -> anyhow::Result<Results> {
    let paper: Paper = serde_json::from_str(&fs::read_to_string(file)?)
        .map_err(|_| anyhow!("this is not JSON of `wattlock-lab paper`"))?;
    match paper.live {
        Some(live) if live.kind == kind => Ok(live),
        Some(_) => bail!("it is of `wattlock-lab paper {}`", paper.paper),
        None => bail!("it holds no measurements: it was written with --no-live"),
    }
}

/// The comparison of these sections with what was measured. A quick look has no verdicts on it.
pub fn compared(
    name: &str,
    title: &str,
    mut sections: Vec<Section>,
    live: Option<Results>,
) -> Paper {
    let is_quick = live.as_ref().is_some_and(|live| live.settings.contains_key(QUICK));
    if is_quick {
        let rows = sections.iter_mut().flat_map(|section| {
            // Models of what was measured, too.
            let is_here = section.place.ends_with(", here");
            section.rows.iter_mut().map(move |row| (is_here, row))
        });
        for (is_here, row) in rows {
            if !is_here && row.source != Source::Live {
                continue;
            }
            if matches!(row.verdict, Verdict::Held | Verdict::Missed) {
                *row = Row { limit: None, ..row.clone() }.exempt(TOO_SHORT);
            }
        }
    }
    Paper { live, ..Paper::new(name, title, sections) }
}

/// The setting of a quick look.
const QUICK: &str = "quick";

const TOO_SHORT: &str = "a quick look is too short for a verdict";

/// What is missing where nothing was measured.
pub const NOT_MEASURED: &str = "--no-live was given";
