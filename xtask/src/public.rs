//! Public items of a library that no program, example or other library uses.
//!
//! An item is used when another crate, a program, a bench or an example names it outside its tests, or
//! when the signature of one that is used mentions it. A method of a type that is used is found by its
//! name alone, so one that shares its name with another may escape.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use cargo_metadata::Metadata;
use quote::ToTokens;
use syn::{Fields, ImplItem, Item, ItemImpl, TraitItem, Type};

use crate::sources::{Meaning, Names, Sources, attributes, is_public, name};

/// Public items that only tests use, each with the reason why it is public all the same.
const ALLOWED: &[(&str, &str)] = &[
    ("wattlock_energy::Energy::with_gaps", "tests of other crates make joules of their own"),
    ("wattlock_energy::Microjoules::from_joules", "tests of other crates make joules of their own"),
    ("wattlock_energy::Sources::of_meters", "tests of other crates hand in fakes"),
    ("wattlock_energy::fake::FakeMeter", "a fake for the tests of other crates"),
    (
        "wattlock_energy::Gpu::observed_clock",
        "a driver takes the nearest clock that it has; a test looks which",
    ),
    ("wattlock_energy::Knob", "what `by_id` returns to tests"),
    ("wattlock_energy::Lease::guardian_pid", "a test kills the guardian"),
    ("wattlock_energy::Lease::leftover", "a test looks at what a lease put back before it began"),
    ("wattlock_energy::knobs::by_id", "tests set a knob alone, without the guardian of a lease"),
    ("wattlock_engine::fake::Fake", "a fake for the tests of other crates"),
    ("wattlock_gpu::cuda::Cuda::open_from", "tests bring a driver library of their own"),
];

/// Fails on a public item of a library that nothing but the library itself and tests use, and on an
/// entry of the lists above that has become wrong. Crates that are `for_tests` are left out.
///
/// # Errors
/// A file that cannot be read.
pub fn check(
    metadata: &Metadata,
    for_tests: &[&str],
    wrong: &mut Vec<String>,
) -> anyhow::Result<()> {
    let mut libraries = BTreeMap::new();
    let mut others = Vec::new();
    for package in metadata.workspace_packages() {
        if for_tests.contains(&package.name.as_str()) {
            continue;
        }
        for target in &package.targets {
            let root = target.src_path.as_std_path();
            if target.is_lib() || target.is_rlib() {
                libraries.insert(target.name.replace('-', "_"), Sources::read(root)?);
            } else if target.is_bin()
                || target.is_bench()
                || target.is_example()
                || target.is_cdylib()
            {
                others.push(Sources::read(root)?);
            }
        }
    }
    // A workspace of its own, whose programs use the libraries as others do.
    for target in fs::read_dir(metadata.workspace_root.join("fuzz/fuzz_targets"))? {
        others.push(Sources::read(&target?.path())?);
    }
    let unused = unused(&libraries, &others);
    let allowed = ALLOWED.iter().map(|(item, _)| *item);
    let listed: BTreeSet<&str> = allowed.collect();
    for item in unused.iter().filter(|item| !listed.contains(item.as_str())) {
        wrong.push(format!("{item} is public, but only its own crate and tests use it"));
    }
    for item in listed.iter().filter(|item| !unused.contains(**item)) {
        wrong.push(format!("{item} is used or gone, but still listed in xtask/src/public.rs"));
    }
    Ok(())
}

/// The public items of each library that nothing outside it uses, each as `library::item` or
/// `library::item::method`.
///
/// `libraries` are by their names in Rust; `others` are programs, benches and examples.
fn unused(libraries: &BTreeMap<String, Sources>, others: &[Sources]) -> BTreeSet<String> {
    let mut unused = BTreeSet::new();
    for (library, sources) in libraries {
        let siblings =
            libraries.iter().filter(|(name, _)| *name != library).map(|(_, other)| other);
        let outside: Vec<&Sources> = siblings.chain(others).collect();
        let mut members = BTreeSet::new();
        let mut used = BTreeSet::new();
        for outer in outside {
            for (path, module) in outer.modules() {
                let names = module.names();
                members.extend(names.members);
                for name in names.paths {
                    used.extend(named(libraries, library, outer.meaning(path, &name)));
                }
            }
        }
        let exports = sources.exports();
        let signatures = Signatures::of(sources, &members);
        used.extend(signatures.called_from_c.iter().cloned());
        let used = signatures.reached(used);
        for (item, shown) in &exports {
            if !used.contains(item) {
                unused.insert(format!("{library}::{shown}"));
            }
            for method in signatures.methods.get(item).into_iter().flatten() {
                if used.contains(item) && !members.contains(method) {
                    unused.insert(format!("{library}::{shown}::{method}"));
                }
            }
        }
    }
    unused
}

/// The item of `library` that a path of another crate leads to, by way of what crates export of
/// each other.
fn named(
    libraries: &BTreeMap<String, Sources>,
    library: &str,
    meaning: Option<Meaning>,
) -> Option<Vec<String>> {
    let Some(Meaning::Elsewhere(path)) = meaning else { return None };
    let (first, rest) = path.split_first()?;
    let meaning = libraries.get(first)?.meaning(&[], rest);
    match meaning {
        Some(Meaning::Item(item)) if first == library => Some(item),
        Some(Meaning::Elsewhere(next)) if next != rest => {
            named(libraries, library, Some(Meaning::Elsewhere(next)))
        }
        _ => None,
    }
}

/// What the public signatures of a library mention.
#[derive(Default)]
struct Signatures {
    mentions: BTreeMap<Vec<String>, BTreeSet<Vec<String>>>,
    /// Public methods and constants of each type.
    methods: BTreeMap<Vec<String>, BTreeSet<String>>,
    called_from_c: BTreeSet<Vec<String>>,
}

impl Signatures {
    /// Those of `sources`; methods are read if they are among `members`.
    fn of(sources: &Sources, members: &BTreeSet<String>) -> Self {
        let mut signatures = Self::default();
        for (path, module) in sources.modules() {
            for item in &module.items {
                if let Item::Impl(block) = item {
                    signatures.block(sources, path, block, members);
                } else if let Some(name) = name(item) {
                    let key: Vec<String> = path.iter().cloned().chain([name]).collect();
                    if attributes(item)
                        .iter()
                        .any(|a| a.to_token_stream().to_string().contains("no_mangle"))
                    {
                        signatures.called_from_c.insert(key.clone());
                    }
                    signatures.mention(sources, path, &key, &of_item(item));
                }
            }
        }
        signatures
    }

    fn block(
        &mut self,
        sources: &Sources,
        path: &[String],
        block: &ItemImpl,
        members: &BTreeSet<String>,
    ) {
        let Type::Path(of) = &*block.self_ty else { return };
        let words: Vec<String> = of.path.segments.iter().map(|s| s.ident.to_string()).collect();
        let Some(Meaning::Item(key)) = sources.meaning(path, &words) else { return };
        let mut names = Names::default();
        names.add(block.generics.to_token_stream());
        names.add(block.self_ty.to_token_stream());
        if let Some((of, _)) = &block.trait_ {
            names.add(of.to_token_stream());
        }
        for item in &block.items {
            let (name, text) = match item {
                ImplItem::Type(item) => {
                    names.add(item.to_token_stream());
                    continue;
                }
                ImplItem::Fn(item) if is_public(&item.vis) => {
                    (item.sig.ident.to_string(), item.sig.to_token_stream())
                }
                ImplItem::Const(item) if is_public(&item.vis) => {
                    (item.ident.to_string(), item.ty.to_token_stream())
                }
                _ => continue,
            };
            if members.contains(&name) {
                names.add(text);
            }
            self.methods.entry(key.clone()).or_default().insert(name);
        }
        self.mention(sources, path, &key, &names);
    }

    fn mention(&mut self, sources: &Sources, path: &[String], key: &[String], names: &Names) {
        let found = names.paths.iter().filter_map(|name| match sources.meaning(path, name) {
            Some(Meaning::Item(item)) => Some(item),
            _ => None,
        });
        self.mentions.entry(key.to_vec()).or_default().extend(found);
    }

    /// `used`, and what can be reached from there.
    fn reached(&self, used: BTreeSet<Vec<String>>) -> BTreeSet<Vec<String>> {
        let mut found = BTreeSet::new();
        let mut next: Vec<Vec<String>> = used.into_iter().collect();
        while let Some(item) = next.pop() {
            if found.insert(item.clone()) {
                next.extend(self.mentions.get(&item).into_iter().flatten().cloned());
            }
        }
        found
    }
}

/// The names in what others see of an item.
fn of_item(item: &Item) -> Names {
    let mut names = Names::default();
    let fields = |fields: &Fields, all: bool, names: &mut Names| {
        for field in fields.iter().filter(|field| all || is_public(&field.vis)) {
            names.add(field.ty.to_token_stream());
        }
    };
    match item {
        Item::Const(item) => names.add(item.ty.to_token_stream()),
        Item::Enum(item) => {
            names.add(item.generics.to_token_stream());
            item.variants.iter().for_each(|variant| fields(&variant.fields, true, &mut names));
        }
        Item::Fn(item) => names.add(item.sig.to_token_stream()),
        Item::Macro(item) => names.add(item.mac.tokens.clone()),
        Item::Static(item) => names.add(item.ty.to_token_stream()),
        Item::Struct(item) => {
            names.add(item.generics.to_token_stream());
            names.add(item.generics.where_clause.to_token_stream());
            fields(&item.fields, false, &mut names);
        }
        Item::Trait(item) => {
            names.add(item.generics.to_token_stream());
            names.add(item.supertraits.to_token_stream());
            for item in &item.items {
                names.add(match item {
                    TraitItem::Fn(item) => item.sig.to_token_stream(),
                    item => item.to_token_stream(),
                });
            }
        }
        Item::Type(item) => names.add(item.to_token_stream()),
        _ => {}
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is unused in libraries and programs of these names and texts. A file of a library is
    /// named `library/file.rs`.
    fn unused_in(files: &[(&str, &str)], programs: &[&str]) -> Vec<String> {
        let place = tempfile::tempdir().unwrap();
        let mut libraries = BTreeMap::new();
        for (name, text) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        for (name, _) in files.iter().filter(|(name, _)| name.ends_with("/lib.rs")) {
            let library = name.strip_suffix("/lib.rs").unwrap().to_owned();
            libraries.insert(library, Sources::read(&place.path().join(name)).unwrap());
        }
        let mut others = Vec::new();
        for text in programs {
            let path = place.path().join("main.rs");
            fs::write(&path, text).unwrap();
            others.push(Sources::read(&path).unwrap());
        }
        unused(&libraries, &others).into_iter().collect()
    }

    #[test]
    fn unused_items_are_found() {
        let lib = "mod inner; pub mod open; pub use inner::{Named, Other as Shown}; pub fn f() {}";
        let inner = "pub struct Named; pub struct Other; pub struct Hidden;";
        let open = "pub const USED: u8 = 1; pub const UNUSED: u8 = 2; pub(crate) const OWN: u8 = 3;
            #[cfg(test)] pub fn for_tests() {}";
        let files = [("a/lib.rs", lib), ("a/inner.rs", inner), ("a/open.rs", open)];
        let program = "use a::{open, Named}; fn main() { println!(\"{}\", open::USED); }
            #[cfg(test)] mod tests { use a::Shown; fn t() { a::f(); } }";
        assert_eq!(unused_in(&files, &[program]), ["a::Shown", "a::f", "a::open::UNUSED"]);
    }

    #[test]
    fn what_a_used_signature_mentions_is_used() {
        let lib = "mod types; pub use types::*;
            pub fn f(of: &Taken) -> Result<Returned, Error> { Unseen::new(of) }";
        let types = "pub struct Taken { pub field: Vec<Field>, own: Own } pub struct Field;
            pub struct Own; pub struct Unseen; pub struct Error;
            pub enum Returned { One(Inside), Two { name: Inside } } pub struct Inside;
            pub trait Source { fn read(&self) -> Read; } pub struct Read;
            impl<S: Source> From<S> for Returned { fn from(s: S) -> Self { Own::of(s) } }";
        let files = [("a/lib.rs", lib), ("a/types.rs", types)];
        assert_eq!(unused_in(&files, &["fn main() { a::f(); }"]), ["a::Own", "a::Unseen"]);
    }

    #[test]
    fn methods_are_found_by_their_names() {
        let lib = "pub struct A; pub struct B;
            impl A { pub const MOST: u8 = 1; pub fn new() -> Self { A } pub fn called(&self) {}
                pub fn by_path(&self) {} pub fn unused(&self) -> B { B } pub(crate) fn own() {}
                #[cfg(test)] pub fn for_tests(&self) {} }
            impl Drop for A { fn drop(&mut self) {} }";
        let program = "fn main() { let unused = a::A::new().called(); x.map(a::A::by_path); }";
        let found = unused_in(&[("a/lib.rs", lib)], &[program]);
        assert_eq!(found, ["a::A::MOST", "a::A::unused", "a::B"]);
    }

    #[test]
    fn one_library_passes_on_what_another_has() {
        let files = [
            ("a/lib.rs", "pub struct A; pub struct Lost; mod f; pub use f::f;"),
            ("a/f.rs", "pub fn f() {} fn own() { super::Lost; crate::f::f(); }"),
            (
                "b/lib.rs",
                "pub use a as below; #[macro_export] macro_rules! m { () => { $crate::used() } }
                pub fn used() {}",
            ),
        ];
        let program =
            "#[macro_use(m)] extern crate b; use b::below::{A, f}; fn main() { m!(); f() }";
        assert_eq!(unused_in(&files, &[program]), ["a::Lost"]);
    }

    #[test]
    fn what_c_calls_is_used() {
        let lib = "#[unsafe(no_mangle)] pub extern \"C\" fn init() {}";
        assert!(unused_in(&[("a/lib.rs", lib)], &[]).is_empty());
    }
}
