//! `cargo xtask docs`: checks the links, paths, `make` targets, data blocks and walks through the code of
//! the repository's Markdown; with `--book`, also builds the handbook with mdBook.
//!
//! Command lines of `wattlock` and `wattlock-lab` are checked by tests of these programs, which know
//! their flags.

mod book;
mod page;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, bail};
use walkdir::WalkDir;

use crate::pictures;
use page::{Located, Page};

/// Pages outside of `docs/`.
const PAGES: [&str; 5] =
    ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md"];

/// Names files and flags of its time, which may be gone.
const HISTORY: &str = "CHANGELOG.md";

/// Has walks through the code, a function and its file for each hop.
const WALKS: &str = "ARCHITECTURE.md";

/// The table of contents of the handbook.
const SUMMARY: &str = "docs/SUMMARY.md";

/// Folders whose files code spans name by their whole path.
const FOLDERS: [&str; 8] =
    [".ci/", "bench/", "crates/", "docs/", "fuzz/", "testing/", "vectors/", "xtask/"];

/// Checks everything, and builds the book if `options` say so.
///
/// # Errors
/// With all that is wrong.
pub fn run(options: &[String]) -> anyhow::Result<()> {
    let build = match options {
        [] => false,
        [option] if option == "--book" => true,
        _ => bail!("usage: cargo xtask docs [--book]"),
    };
    let root = Path::new(".");
    let pages = pages(root)?;
    let wrong = check(root, &pages)?;
    if !wrong.is_empty() {
        bail!("the documentation is broken:\n  {}", wrong.join("\n  "));
    }
    println!("docs: {} pages are in order", pages.len());
    if build {
        book::build(root, &pages)?;
    }
    Ok(())
}

/// All pages, by their path from the root.
fn pages(root: &Path) -> anyhow::Result<BTreeMap<PathBuf, Page>> {
    let mut paths: Vec<PathBuf> = PAGES.map(PathBuf::from).into();
    for entry in WalkDir::new(root.join("docs")) {
        let entry = entry?;
        if entry.path().extension().is_some_and(|extension| extension == "md") {
            paths.push(entry.path().strip_prefix(root)?.to_owned());
        }
    }
    paths.into_iter().map(|path| Ok((path.clone(), Page::read(root, &path)?))).collect()
}

/// Everything that is wrong, a line each.
fn check(root: &Path, pages: &BTreeMap<PathBuf, Page>) -> anyhow::Result<Vec<String>> {
    let targets = make_targets(&fs::read_to_string(root.join("Makefile"))?);
    let chapters = chapters(pages)?;
    let mut wrong = Vec::new();
    for page in pages.values() {
        let at = |line: usize, what: String| format!("{}:{line}: {what}", page.path.display());
        let is_chapter = chapters.contains(&page.path);
        if !is_chapter && page.path != Path::new(SUMMARY) {
            wrong.push(at(1, format!("it is no chapter of {SUMMARY}")));
        }
        for Located { line, text } in &page.links {
            if let Err(why) = link(root, pages, &chapters, page, text) {
                wrong.push(at(*line, format!("{text}: {why}")));
            }
        }
        if page.path != Path::new(HISTORY) {
            for Located { line, text } in &page.spans {
                if let Some(why) = span(root, &targets, text) {
                    wrong.push(at(*line, format!("`{text}`: {why}")));
                }
            }
        }
        for block in &page.blocks {
            let problem = match block.language.as_str() {
                "" => Some("a code block needs a language; `text` if it has none".to_owned()),
                "json" => serde_json::from_str::<serde_json::Value>(&block.text)
                    .err()
                    .map(|error| error.to_string()),
                "toml" => block.text.parse::<toml::Table>().err().map(|error| error.to_string()),
                "console" | "sh" => unknown_target(&targets, &block.text),
                _ => None,
            };
            wrong.extend(problem.map(|problem| at(block.line, problem)));
        }
    }
    wrong.extend(walks(root)?);
    if let Some(why) = pictures::outdated(root)? {
        wrong.push(why);
    }
    Ok(wrong)
}

/// Hops of the walks through the code whose file has no such function.
fn walks(root: &Path) -> anyhow::Result<Vec<String>> {
    let text = fs::read_to_string(root.join(WALKS))?;
    let mut wrong = Vec::new();
    for (number, line) in text.lines().enumerate() {
        // | `function` | `file.rs` | what happens |
        let mut cells = line.split('|').skip(1).map(|cell| cell.trim().trim_matches('`'));
        let (Some(function), Some(file)) = (cells.next(), cells.next()) else { continue };
        if !file.ends_with(".rs") {
            continue;
        }
        let code = fs::read_to_string(root.join(file)).unwrap_or_default();
        if !["(", "<"].iter().any(|bracket| code.contains(&format!("fn {function}{bracket}"))) {
            wrong.push(format!("{WALKS}:{}: {file} has no function {function}", number + 1));
        }
    }
    Ok(wrong)
}

/// Checks a link of `page`.
fn link(
    root: &Path,
    pages: &BTreeMap<PathBuf, Page>,
    chapters: &BTreeSet<PathBuf>,
    page: &Page,
    link: &str,
) -> Result<(), String> {
    if is_external(link) {
        return Ok(());
    }
    let (path, anchor) = split(link);
    let path = resolve(&page.path, path).ok_or("it leaves the repository")?;
    if !root.join(&path).exists() {
        return Err("there is no such file".into());
    }
    let Some(target) = pages.get(&path) else {
        // A folder has no page in the book, and a page that is no chapter has none either.
        let is_page = path.extension().is_some_and(|extension| extension == "md");
        return match root.join(&path).is_dir() || is_page {
            true => Err("link a file or a chapter of the handbook".into()),
            false if anchor.is_some() => Err("only pages have anchors".into()),
            false => Ok(()),
        };
    };
    if !chapters.contains(&target.path) && page.path != Path::new(SUMMARY) {
        return Err(format!("link a chapter of {SUMMARY}"));
    }
    match anchor {
        Some(anchor) if !target.anchors.contains(anchor) => Err("there is no such heading".into()),
        _ => Ok(()),
    }
}

/// What is wrong with a code span that names a file or a `make` target; most name neither.
fn span(root: &Path, targets: &BTreeSet<String>, text: &str) -> Option<String> {
    let is_path = FOLDERS.iter().any(|folder| text.starts_with(folder));
    let is_pattern = text.contains(['*', '<', '{', ' ', '…', '$']) || text.contains("NNNN");
    if is_path && !is_pattern && !root.join(text).exists() {
        return Some("there is no such file".into());
    }
    text.starts_with("make ").then(|| unknown_target(targets, text)).flatten()
}

/// The first target that lines like `make check` name and the Makefile has not.
fn unknown_target(targets: &BTreeSet<String>, text: &str) -> Option<String> {
    let commands = text.lines().map(|line| line.trim_start_matches("$ "));
    let named = commands.filter_map(|line| line.strip_prefix("make ")).flat_map(|line| {
        let words = line.split_whitespace().take_while(|word| !word.starts_with('#'));
        words.filter(|word| !word.contains('=')).map(str::to_owned).collect::<Vec<_>>()
    });
    let mut unknown = named.filter(|word| !targets.contains(word));
    unknown.next().map(|word| format!("the Makefile has no target {word}"))
}

/// The targets of a Makefile.
fn make_targets(makefile: &str) -> BTreeSet<String> {
    let rules = makefile.lines().filter(|line| !line.starts_with(['\t', '#', '.', ' ']));
    let named = rules.filter_map(|line| line.split_once(':'));
    named.flat_map(|(names, _)| names.split_whitespace()).map(str::to_owned).collect()
}

/// The chapters that the table of contents names.
fn chapters(pages: &BTreeMap<PathBuf, Page>) -> anyhow::Result<BTreeSet<PathBuf>> {
    let summary =
        pages.get(Path::new(SUMMARY)).with_context(|| format!("there is no {SUMMARY}"))?;
    let named = summary.links.iter().filter_map(|link| resolve(&summary.path, &link.text));
    Ok(named.collect())
}

fn is_external(link: &str) -> bool {
    link.contains("://") || link.starts_with("mailto:")
}

/// A link's path and its anchor.
fn split(link: &str) -> (&str, Option<&str>) {
    link.split_once('#').map_or((link, None), |(path, anchor)| (path, Some(anchor)))
}

/// The path from the root that a link of `page` leads to; `None` if it leads out of the repository.
fn resolve(page: &Path, link: &str) -> Option<PathBuf> {
    if link.is_empty() {
        return Some(page.to_owned());
    }
    let mut resolved = page.parent()?.to_owned();
    for component in Path::new(link).components() {
        match component {
            Component::ParentDir if !resolved.pop() => return None,
            Component::ParentDir | Component::CurDir => {}
            Component::Normal(name) => resolved.push(name),
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(resolved)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A repository of a few files, and what is wrong with it.
    fn broken(files: &[(&str, &str)]) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let whole = [
            ("README.md", "# Wattlock\n"),
            ("ARCHITECTURE.md", ""),
            ("CONTRIBUTING.md", ""),
            ("SECURITY.md", ""),
            ("CHANGELOG.md", "`crates/gone`"),
            ("Makefile", ".PHONY: check\n# Checks: all.\ncheck: prepare\n\techo\n"),
            ("docs/files.md", "# Files\n"),
            (
                "docs/SUMMARY.md",
                "[a](../README.md) [b](../ARCHITECTURE.md) [c](../CONTRIBUTING.md) \
                 [d](../SECURITY.md) [e](../CHANGELOG.md) [f](files.md)",
            ),
        ];
        for (path, text) in whole.iter().chain(files) {
            let path = place.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        check(place.path(), &pages(place.path()).unwrap()).unwrap()
    }

    #[test]
    fn a_repository_in_order_has_nothing_wrong() {
        let text = "[a](docs/files.md#files) [b](Makefile) [c](https://example.org) `make check` \
                    `docs/files.md` [d](#x)\n# X\n\n```toml\na = 1\n```\n\n```console\n$ make check\n```\n";
        assert_eq!(broken(&[("README.md", text)]), [""; 0]);
    }

    #[test]
    fn each_fault_is_found_with_its_line() {
        for (text, found) in [
            ("[a](docs/gone.md)", "README.md:1: docs/gone.md: there is no such file"),
            ("\n[a](docs/files.md#x)", "README.md:2: docs/files.md#x: there is no such heading"),
            ("[a](#x)", "README.md:1: #x: there is no such heading"),
            ("[a](docs)", "README.md:1: docs: link a file or a chapter of the handbook"),
            ("[a](../x)", "README.md:1: ../x: it leaves the repository"),
            ("`docs/gone`", "README.md:1: `docs/gone`: there is no such file"),
            ("`make checks`", "README.md:1: `make checks`: the Makefile has no target checks"),
            ("```sh\nmake all # it\n```", "README.md:1: the Makefile has no target all"),
            ("```json\n{\n```", "README.md:1: EOF while parsing an object at line 2 column 0"),
            ("```\na\n```", "README.md:1: a code block needs a language; `text` if it has none"),
        ] {
            assert_eq!(broken(&[("README.md", text)]), [found]);
        }
        assert_eq!(
            broken(&[
                ("ARCHITECTURE.md", "| `b` | `crates/a.rs` | x |"),
                ("crates/a.rs", "fn a() {}")
            ]),
            ["ARCHITECTURE.md:1: crates/a.rs has no function b"]
        );
        assert_eq!(
            broken(&[("docs/apart.md", "")]),
            ["docs/apart.md:1: it is no chapter of docs/SUMMARY.md"]
        );
    }
}
