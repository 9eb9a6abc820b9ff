//! Builds the handbook: chapters lie in `docs/` and at the root of the repository, and mdBook wants
//! one folder, so the chapters and the files they link are copied to `target/handbook/src`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use super::page::Page;
use super::{SUMMARY, chapters, is_external, resolve, split};

/// Where mdBook reads and writes: `docs/book.toml` names both.
const SOURCE: &str = "target/handbook/src";
const INDEX: &str = "target/handbook/html/index.html";

/// Builds the book in `target/handbook/html`.
///
/// # Errors
/// No mdBook; what mdBook says.
pub fn build(root: &Path, pages: &BTreeMap<PathBuf, Page>) -> anyhow::Result<()> {
    let source = root.join(SOURCE);
    if source.exists() {
        fs::remove_dir_all(&source)?;
    }
    for path in chapters(pages)? {
        copy(root, &source, &path)?;
        let Some(page) = pages.get(&path) else { continue };
        let links = page.links.iter().map(|link| link.text.as_str());
        for link in links.filter(|link| !is_external(link)) {
            let target = resolve(&page.path, split(link).0);
            if let Some(target) = target.filter(|target| !pages.contains_key(target)) {
                copy(root, &source, &target)?;
            }
        }
    }
    // Seen from the root of the copies.
    let summary = fs::read_to_string(root.join(SUMMARY))?;
    let summary = summary.replace("](", "](docs/").replace("](docs/../", "](");
    fs::write(source.join("SUMMARY.md"), summary)?;
    let status = Command::new("mdbook")
        .args(["build", "docs"])
        .current_dir(root)
        .status()
        .context("starting mdbook, which `.ci/prepare docs` installs")?;
    if !status.success() {
        bail!("mdbook ended with {status}");
    }
    println!("docs: the handbook is {INDEX}");
    Ok(())
}

fn copy(root: &Path, source: &Path, path: &Path) -> anyhow::Result<()> {
    let to = source.join(path);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::copy(root.join(path), to).with_context(|| format!("cannot copy {}", path.display()))?;
    Ok(())
}
