//! Cycles of modules: two files of a crate that name each other, directly or indirectly.
//!
//! A file names a module by a path that begins with `crate` or `super`. What a parent does with its own
//! children, and what a child takes from its parent, is no cycle; nor is what tests do.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::Context;
use walkdir::WalkDir;

/// A module by its path below the crate's root, which is empty.
type Module = Vec<String>;

/// Groups of modules of the crate in `source` that name each other, each in the order of their names.
///
/// # Errors
/// A file that cannot be read.
pub fn cycles(source: &Path) -> anyhow::Result<Vec<BTreeSet<String>>> {
    let mut texts = BTreeMap::new();
    for entry in WalkDir::new(source) {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_some_and(|extension| extension == "rs") {
            let module = module(path.strip_prefix(source)?).context("a name that is not text")?;
            if !module.iter().any(|part| part == "tests") {
                texts.insert(module, code(&fs::read_to_string(path)?));
            }
        }
    }
    let names: BTreeMap<&Module, BTreeSet<&Module>> =
        texts.iter().map(|(module, text)| (module, named(module, text, &texts))).collect();
    let mut groups: Vec<BTreeSet<String>> = Vec::new();
    let mut grouped = BTreeSet::new();
    for &module in names.keys() {
        if grouped.contains(module) {
            continue;
        }
        let there = reached(module, &names);
        let both: BTreeSet<&Module> = there
            .into_iter()
            .filter(|other| reached(other, &names).contains(module))
            .chain([module])
            .collect();
        grouped.extend(both.iter().copied());
        if both.len() > 1 {
            groups.push(both.into_iter().map(|module| module.join("::")).collect());
        }
    }
    Ok(groups)
}

/// The module of a file.
fn module(file: &Path) -> Option<Module> {
    let mut parts: Module = file
        .with_extension("")
        .iter()
        .map(|part| Some(part.to_str()?.to_owned()))
        .collect::<Option<_>>()?;
    if parts.last().is_some_and(|last| last == "mod") || parts == ["lib"] || parts == ["main"] {
        parts.pop();
    }
    Some(parts)
}

/// The text without comments, and without tests at its end.
fn code(text: &str) -> String {
    let text = text.split("#[cfg(test)]\nmod ").next().unwrap_or_default();
    let text = text.split("#[cfg(test)]\npub(").next().unwrap_or_default();
    text.lines().map(|line| line.split("//").next().unwrap_or_default().to_owned() + "\n").collect()
}

/// The other modules that `text` names, parents and children left out.
fn named<'a>(
    module: &Module,
    text: &str,
    all: &'a BTreeMap<Module, String>,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    for start in ["crate::", "super::"] {
        for (at, _) in text.match_indices(start) {
            let before = text[..at].chars().next_back();
            if before.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == ':') {
                continue;
            }
            let (mut base, mut rest) = match start {
                "crate::" => (Vec::new(), &text[at + start.len()..]),
                _ => (module[..module.len().saturating_sub(1)].to_vec(), &text[at + start.len()..]),
            };
            while let Some(behind) = rest.strip_prefix("super::") {
                base.pop();
                rest = behind;
            }
            tree(&base, rest, &mut |path| {
                let mut path = path;
                while !path.is_empty() && !all.contains_key(path) {
                    path = &path[..path.len() - 1];
                }
                found.extend(all.get_key_value(path).map(|(module, _)| module));
            });
        }
    }
    found.retain(|other| !other.starts_with(module) && !module.starts_with(other));
    found
}

/// Calls `each` for every path of the use-tree, or path, at the beginning of `text`. Returns how
/// many bytes it has.
fn tree(base: &[String], text: &str, each: &mut dyn FnMut(&[String])) -> usize {
    let mut path = base.to_vec();
    let mut at = 0;
    loop {
        let rest = &text[at..];
        if let Some(inner) = rest.strip_prefix('{') {
            at += 1 + list(&path, inner, each);
            return at;
        }
        let len = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        path.push(rest[..len].to_owned());
        at += len;
        if len == 0 || !text[at..].starts_with("::") {
            each(&path);
            return at;
        }
        at += 2;
    }
}

/// The same for a list in braces, behind the first of them.
fn list(base: &[String], text: &str, each: &mut dyn FnMut(&[String])) -> usize {
    let mut at = 0;
    while let Some(next) = text[at..].chars().next() {
        match next {
            '}' => return at + 1,
            c if c.is_alphanumeric() || c == '_' => {
                at += tree(base, &text[at..], each);
                // `as` and its name.
                at += text[at..].find([',', '}']).unwrap_or(text.len() - at);
            }
            c => at += c.len_utf8(),
        }
    }
    at
}

fn reached<'a>(
    from: &Module,
    names: &BTreeMap<&'a Module, BTreeSet<&'a Module>>,
) -> BTreeSet<&'a Module> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Module> = names[from].iter().copied().collect();
    while let Some(module) = next.pop() {
        if found.insert(module) {
            next.extend(names[module].iter().copied());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn crate_of(files: &[(&str, &str)]) -> Vec<BTreeSet<String>> {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        cycles(place.path()).unwrap()
    }

    #[test]
    fn files_that_name_each_other_are_a_cycle() {
        let groups = crate_of(&[
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
            ("a.rs", "use std::io;\nuse crate::{A, b::{self, B}};"),
            ("b.rs", "use super::c::deep::C as Other;"),
            ("c/mod.rs", "mod deep; use deep::C;"),
            ("c/deep.rs", "fn f() { crate::a::g(); }"),
        ]);
        assert_eq!(groups, [BTreeSet::from(["a", "b", "c::deep"].map(str::to_owned))]);
    }

    #[test]
    fn families_comments_and_tests_are_none() {
        let groups = crate_of(&[
            ("lib.rs", "mod a; mod b;"),
            ("a.rs", "mod child; use crate::b::B; // crate::a::child\n"),
            ("a/child.rs", "use super::A; use crate::a::Other;"),
            ("b.rs", "struct B;\n#[cfg(test)]\nmod tests { use crate::a::A; }"),
        ]);
        assert!(groups.is_empty(), "{groups:?}");
    }
}
