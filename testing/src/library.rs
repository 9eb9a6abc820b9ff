//! Libraries that stand for a driver, built once for all test programs of a target folder.

use std::collections::hash_map::DefaultHasher;
use std::env;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Compiles `source` into a C library of that name, and returns the library's file.
///
/// Each test is a process of its own, so the library is kept in `folder` and made again only when a
/// Rust file has changed in the folder above that of `source`, where its modules are.
///
/// # Panics
/// If it does not compile.
pub fn rust_library(name: &str, source: &Path, folder: &Path) -> PathBuf {
    fs::create_dir_all(folder).expect("the target folder can be written");
    let above = source.ancestors().nth(2).expect("a source lies in a folder");
    let mut state = DefaultHasher::new();
    hash_sources(above, &mut state);
    let library = folder.join(format!("lib{name}-{:016x}.so", state.finish()));
    let lock = fs::File::create(folder.join(format!("{name}.lock"))).expect("it can be written");
    lock.lock().expect("a lock can be waited for");
    if library.exists() {
        return library;
    }
    let beside_cargo = env::var_os("CARGO").map(|cargo| Path::new(&cargo).with_file_name("rustc"));
    let rustc = beside_cargo.filter(|rustc| rustc.exists()).unwrap_or_else(|| "rustc".into());
    let unfinished = folder.join(format!("{name}.unfinished.so"));
    let compiled = Command::new(rustc)
        .args(["--edition", "2024", "--crate-type", "cdylib", "--crate-name", name])
        .args(["-O", "-D", "warnings", "-A", "non_snake_case", "-o"])
        .args([&unfinished, source])
        .output()
        .expect("rustc can be started");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    fs::rename(unfinished, &library).expect("both are in one folder");
    library
}

/// Hashes all Rust files below `folder`, in the order of their names.
fn hash_sources(folder: &Path, state: &mut DefaultHasher) {
    let entries = fs::read_dir(folder).expect("a folder of sources can be read");
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("it can be read").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            hash_sources(&path, state);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            path.hash(state);
            fs::read(&path).expect("a source can be read").hash(state);
        }
    }
}
