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
        let Some(page) = pages.get(&path) else { continue };
        write(&source, &index(&path), &chapter(root, page)?)?;
        let links = page.links.iter().map(|link| link.text.as_str());
        for link in links.filter(|link| !is_external(link)) {
            let target = resolve(&page.path, split(link).0);
            if let Some(target) = target.filter(|target| !pages.contains_key(target)) {
                write(&source, &target, &fs::read(root.join(&target))?)?;
            }
        }
    }
    // Seen from the root of the copies.
    let summary = String::from_utf8(chapter(root, &pages[Path::new(SUMMARY)])?)?;
    let summary = summary.replace("](", "](docs/").replace("](docs/../", "](");
    write(&source, Path::new("SUMMARY.md"), summary.as_bytes())?;
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

/// The text of a chapter, with links to `README.md` as links to `index.md`: mdBook makes index.html of
/// either, and follows links to the second only.
fn chapter(root: &Path, page: &Page) -> anyhow::Result<Vec<u8>> {
    let mut text = fs::read_to_string(root.join(&page.path))?;
    for link in page.links.iter().map(|link| &link.text).filter(|link| !is_external(link)) {
        let (path, anchor) = split(link);
        if let Some(index) = index(Path::new(path)).to_str().filter(|index| *index != path) {
            let anchor = anchor.map(|anchor| format!("#{anchor}")).unwrap_or_default();
            text = text.replace(&format!("]({link})"), &format!("]({index}{anchor})"));
        }
    }
    Ok(text.into_bytes())
}

/// The path of a chapter in the book.
fn index(path: &Path) -> PathBuf {
    match path.file_name().is_some_and(|name| name == "README.md") {
        true => path.with_file_name("index.md"),
        false => path.to_owned(),
    }
}

fn write(source: &Path, path: &Path, content: &[u8]) -> anyhow::Result<()> {
    let to = source.join(path);
    if let Some(folder) = to.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&to, content).with_context(|| format!("cannot write {}", to.display()))
}
