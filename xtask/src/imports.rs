//! Imports by way of the crate's root: a module names a thing where it is defined, and not where the
//! root passes it on to other crates.

use std::collections::BTreeSet;

use crate::sources::{Meaning, Sources};

/// What the modules of a crate name by way of its root, each with the module and where it is defined.
pub fn through_root(sources: &Sources) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (module, scope) in sources.modules().filter(|(module, _)| !module.is_empty()) {
        for path in scope.names().paths {
            let Some(name) = behind_root(module, &path) else { continue };
            // Of a module and a function of one name, the path may mean either.
            let is_module = sources.modules().any(|(module, _)| module == [name]);
            let passed_on = sources.is_imported(&[], name) && !is_module;
            if let (true, Some(Meaning::Item(item))) = (passed_on, sources.meaning(module, &path)) {
                let (module, path) = (module.join("::"), path.join("::"));
                found.insert(format!("{module} names {path}, which is crate::{}", item.join("::")));
            }
        }
    }
    found
}

/// The name behind the crate's root, in a path that begins there.
fn behind_root<'a>(module: &[String], path: &'a [String]) -> Option<&'a str> {
    let ups = path.iter().take_while(|part| *part == "super").count();
    let begins = match path.first()?.as_str() {
        "crate" => 1,
        "super" if ups == module.len() => ups,
        _ => return None,
    };
    path.get(begins).map(String::as_str)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn what_the_root_passes_on_is_found_and_what_it_defines_is_not() {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in [
            (
                "lib.rs",
                "mod a; mod b; pub use a::{A, a, b as c}; pub use other::Other; pub struct Own;",
            ),
            (
                "a.rs",
                "pub struct A; pub fn a() {} pub fn b() {} use crate::{Own, Other, b::{self, B}};",
            ),
            (
                "b.rs",
                "use crate::{A, a::A as Right}; pub struct B; mod d;
                fn f() { super::c(); crate::a::b(); crate::a(); }
                #[cfg(test)] mod tests { use super::B; use super::super::A; }",
            ),
            ("b/d.rs", "use super::B; use super::super::{Own, A};"),
        ] {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let found = through_root(&Sources::with_tests(&place.path().join("lib.rs")).unwrap());
        let expected = [
            "b names crate::A, which is crate::a::A",
            "b names super::c, which is crate::a::b",
            "b::d names super::super::A, which is crate::a::A",
            "b::tests names super::super::A, which is crate::a::A",
        ];
        assert_eq!(found, expected.map(str::to_owned).into());
    }
}
