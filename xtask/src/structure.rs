//! `cargo xtask structure`: the arrows between the crates, where unsafe code may live, that the product
//! knows nothing of the laboratory, that a public item has a user, that modules do not import by way of
//! their crate's root, and that no crate or file becomes a place for everything.

use std::fs;
use std::path::Path;

use anyhow::{Context, bail};
use cargo_metadata::{DepKindInfo, DependencyKind, Metadata, MetadataCommand, Package};
use walkdir::WalkDir;

use crate::imports;
use crate::modules;
use crate::public;
use crate::sources::Sources;

/// Who may depend on whom. An arrow that is not here is a mistake, or a decision for
/// `docs/design/`.
const ARROWS: &[(&str, &[&str])] = &[
    ("wattlock-crypto", &[]),
    ("wattlock-energy", &[]),
    ("wattlock-engine", &["wattlock-crypto", "wattlock-energy"]),
    ("wattlock-tls", &["wattlock-crypto", "wattlock-engine"]),
    ("wattlock-gpu", &["wattlock-engine"]),
    ("wattlock-file", &["wattlock-engine"]),
    ("wattlock-object", &["wattlock-file"]),
    ("wattlock-record", &["wattlock-crypto"]),
    ("wattlock-kafka", &["wattlock-record"]),
    ("wattlock-stream", &["wattlock-engine", "wattlock-energy", "wattlock-record"]),
    // EECA's interaction unit: GPUs as the accelerator (design 0006).
    ("wattlock-provider", &["wattlock-crypto", "wattlock-tls", "wattlock-engine", "wattlock-gpu"]),
    (
        "wattlock-python",
        &["wattlock-energy", "wattlock-engine", "wattlock-file", "wattlock-record"],
    ),
    ("wattlock-report", &["wattlock-energy", "wattlock-engine", "wattlock-file"]),
    (
        "wattlock-host",
        &["wattlock-energy", "wattlock-engine", "wattlock-gpu", "wattlock-file", "wattlock-report"],
    ),
    (
        "wattlock",
        &[
            "wattlock-energy",
            "wattlock-engine",
            "wattlock-gpu",
            "wattlock-file",
            "wattlock-object",
            "wattlock-record",
            "wattlock-kafka",
            "wattlock-stream",
            "wattlock-provider",
            "wattlock-host",
            "wattlock-report",
        ],
    ),
    (
        "wattlock-lab",
        &[
            "wattlock-tls",
            "wattlock-energy",
            "wattlock-engine",
            "wattlock-gpu",
            "wattlock-file",
            "wattlock-object",
            "wattlock-stream",
            "wattlock-record",
            "wattlock-provider",
            "wattlock-host",
            "wattlock-report",
            "wattlock-peers",
            "wattlock-af-alg",
        ],
    ),
    ("wattlock-peers", &[]),
    ("wattlock-af-alg", &["wattlock-engine"]),
    // It reads the frozen corpus.
    ("wattlock-testing", &["wattlock-vectors"]),
    ("wattlock-testing-store", &[]),
    ("wattlock-vectors", &[]),
    ("xtask", &[]),
];

/// For tests only, from every crate.
const TESTS_ONLY: [&str; 3] = ["wattlock-testing", "wattlock-testing-store", "wattlock-vectors"];

/// For benches and tests only: what measures the joules of a device is no part of it.
const ENERGY_OF_BENCHES: (&str, &str) = ("wattlock-gpu", "wattlock-energy");

/// Folders that may hold unsafe code; every other crate root forbids it.
const UNSAFE_CRATES: &[&str] = &[
    "wattlock-gpu",
    "wattlock-energy",
    "wattlock-provider",
    "wattlock-python",
    "wattlock-peers",
    "wattlock-af-alg",
];

/// Names under which anything could be put.
const NAMES_FOR_EVERYTHING: &[&str] =
    &["common", "core", "util", "utils", "types", "helpers", "misc"];

/// Lines of a source file above which it has to say at its top why.
const MOST_LINES: usize = 500;

/// What people install.
const PRODUCT: [&str; 2] = ["wattlock", "wattlock-provider"];

/// Crates of the laboratory: the product must not depend on them, directly or indirectly.
const LABORATORY: [&str; 5] =
    ["wattlock-lab", "wattlock-peers", "wattlock-af-alg", "rc4", "openssl-src"];

/// Fails with everything that is wrong.
pub fn check() -> anyhow::Result<()> {
    let mut command = MetadataCommand::new();
    command.other_options(vec!["--locked".into()]);
    let metadata = command.exec().context("reading cargo metadata")?;
    let mut wrong = Vec::new();
    product(&metadata, &mut wrong)?;
    for package in metadata.workspace_packages() {
        arrows(package, &mut wrong);
        unsafe_code(package, &mut wrong)?;
        names(package, &mut wrong);
        files(package, &mut wrong)?;
        cycles(package, &mut wrong)?;
        through_root(package, &mut wrong)?;
    }
    public::check(&metadata, &TESTS_ONLY, &mut wrong)?;
    if wrong.is_empty() {
        println!("structure: {} crates are in order", metadata.workspace_packages().len());
        return Ok(());
    }
    bail!("the structure is broken:\n  {}", wrong.join("\n  "))
}

/// Follows the dependencies of the product, those of builds and tests left out.
fn product(metadata: &Metadata, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let nodes = &metadata.resolve.as_ref().context("cargo metadata resolves nothing")?.nodes;
    let named = |package: &&Package| PRODUCT.contains(&package.name.as_str());
    let mut found: Vec<_> = metadata.packages.iter().filter(named).map(|p| &p.id).collect();
    let mut next = 0;
    while let Some(id) = found.get(next).copied() {
        next += 1;
        if LABORATORY.contains(&metadata[id].name.as_str()) {
            wrong.push(format!("the product depends on {}", metadata[id].name));
        }
        let dependencies = nodes.iter().filter(|node| node.id == *id).flat_map(|node| &node.deps);
        for dependency in dependencies {
            let normal = |kind: &DepKindInfo| kind.kind == DependencyKind::Normal;
            if dependency.dep_kinds.iter().any(normal) && !found.contains(&&dependency.pkg) {
                found.push(&dependency.pkg);
            }
        }
    }
    Ok(())
}

fn arrows(package: &Package, wrong: &mut Vec<String>) {
    let Some((_, allowed)) = ARROWS.iter().find(|(name, _)| *name == package.name.as_str()) else {
        wrong.push(format!("{} is not in the list of xtask/src/structure.rs", package.name));
        return;
    };
    for dependency in &package.dependencies {
        let ours = ARROWS.iter().any(|(name, _)| *name == dependency.name);
        let for_tests = dependency.kind == DependencyKind::Development
            && (TESTS_ONLY.contains(&dependency.name.as_str())
                // Its own features, for its tests.
                || dependency.name == package.name.as_str()
                || (package.name.as_str(), dependency.name.as_str()) == ENERGY_OF_BENCHES);
        if ours && !for_tests && !allowed.contains(&dependency.name.as_str()) {
            wrong.push(format!("{} may not depend on {}", package.name, dependency.name));
        }
    }
}

fn unsafe_code(package: &Package, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    if UNSAFE_CRATES.contains(&package.name.as_str()) {
        return Ok(());
    }
    for target in &package.targets {
        let is_root = target.is_lib() || target.is_bin();
        let text = fs::read_to_string(&target.src_path)?;
        // The kernels are the one module of their crate that may hold unsafe code.
        let forbids = text.contains("#![forbid(unsafe_code)]")
            || package.name.as_str() == "wattlock-crypto" && text.contains("#![deny(unsafe_code)]");
        if is_root && !forbids {
            wrong.push(format!("{} does not forbid unsafe code", target.src_path));
        }
    }
    Ok(())
}

fn names(package: &Package, wrong: &mut Vec<String>) {
    let last = package.name.rsplit('-').next().unwrap_or_default();
    if NAMES_FOR_EVERYTHING.contains(&last) {
        wrong
            .push(format!("{}: a crate of that name becomes a place for everything", package.name));
    }
}

fn files(package: &Package, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let root = package.manifest_path.parent().context("a manifest has a folder")?;
    let rust = WalkDir::new(root).into_iter().filter_entry(|entry| entry.file_name() != "target");
    for entry in rust {
        let entry = entry?;
        let path = entry.path();
        if path.extension().is_none_or(|extension| extension != "rs") {
            continue;
        }
        let text = fs::read_to_string(path)?;
        file(path, &text, wrong);
    }
    Ok(())
}

/// Fails on a cycle of modules.
fn cycles(package: &Package, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    let root = package.manifest_path.parent().context("a manifest has a folder")?.join("src");
    for cycle in modules::cycles(root.as_std_path())? {
        let modules = cycle.into_iter().collect::<Vec<_>>().join(", ");
        wrong.push(format!("{}: modules name each other: {modules}", package.name));
    }
    Ok(())
}

/// Fails on a module that names what the crate's root only passes on.
fn through_root(package: &Package, wrong: &mut Vec<String>) -> anyhow::Result<()> {
    for target in package.targets.iter().filter(|t| t.is_lib() || t.is_rlib() || t.is_bin()) {
        let sources = Sources::with_tests(target.src_path.as_std_path())?;
        let found = imports::through_root(&sources);
        wrong.extend(found.into_iter().map(|import| format!("{}: {import}", package.name)));
    }
    Ok(())
}

fn file(path: &Path, text: &str, wrong: &mut Vec<String>) {
    let shown = path.display();
    if !text.starts_with("//!") {
        wrong.push(format!("{shown} does not say in its first line what it is for"));
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    if NAMES_FOR_EVERYTHING.contains(&stem.as_ref()) {
        wrong.push(format!("{shown}: a file of that name becomes a place for everything"));
    }
    let lines = text.lines().count();
    let argued =
        text.lines().take_while(|line| line.starts_with("//!")).any(|l| l.contains("long"));
    if lines > MOST_LINES && !argued {
        wrong.push(format!("{shown} has {lines} lines, and does not say at its top why"));
    }
}
