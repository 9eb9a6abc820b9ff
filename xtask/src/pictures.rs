//! `cargo xtask pictures`: the README's pictures in `docs/pictures`, a session of the program and a
//! chart of a committed result.

mod chart;
mod session;
mod svg;

use std::fs;
use std::path::Path;

use anyhow::Context;

/// The result that the chart shows.
const RESULT: &str = "bench/results/files.json";
const CHART: &str = "docs/pictures/files.svg";
const SESSION: &str = "docs/pictures/session.svg";

/// Draws both.
///
/// # Errors
/// No program in the release folder; no tmux; a result that lacks something.
pub fn draw() -> anyhow::Result<()> {
    let root = Path::new(".");
    fs::create_dir_all(root.join("docs/pictures"))?;
    fs::write(root.join(CHART), chart(root)?)?;
    fs::write(root.join(SESSION), session::draw()?)?;
    println!("pictures: {CHART} and {SESSION}");
    Ok(())
}

/// That the chart is not of the result that is committed, if so. The session is of its moment.
///
/// # Errors
/// A result that cannot be read.
pub fn outdated(root: &Path) -> anyhow::Result<Option<String>> {
    if !root.join(RESULT).exists() {
        return Ok(None);
    }
    let drawn = fs::read_to_string(root.join(CHART)).unwrap_or_default();
    let why = || format!("{CHART}: it does not show {RESULT}; run `make pictures`");
    Ok((drawn != chart(root)?).then(why))
}

fn chart(root: &Path) -> anyhow::Result<String> {
    let text = fs::read_to_string(root.join(RESULT))?;
    let result = serde_json::from_str(&text)?;
    chart::draw(&result).with_context(|| format!("{RESULT} is no result of `bench files`"))
}
