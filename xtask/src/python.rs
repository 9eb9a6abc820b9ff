//! `cargo xtask python [PYTEST OPTIONS]`: builds the wheel of the Python package, installs it into a clean environment
//! without a compiler in reach, and runs the package's tests in `.venv`, which `.ci/prepare python` makes.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, bail};

use crate::command::ran;
use crate::test::list_skips;

/// Fails if the wheel cannot be built or installed, or a test fails.
pub fn run(options: &[String]) -> anyhow::Result<()> {
    let root = env::current_dir()?;
    let python = root.join(".venv/bin/python3");
    if !root.join(".venv/bin/maturin").exists() {
        let why = "the Python package is not tested: .ci/prepare python could not install maturin";
        let required = env::var("REQUIRE").unwrap_or_default();
        if required.split_whitespace().any(|word| word == "python-maturin") {
            bail!("{why}");
        }
        println!("\n1 skipped, all or in part\n  without maturin:\n    {why}");
        return Ok(());
    }
    let wheel = wheel(&root)?;
    in_clean_environment(&root, &wheel)?;
    let pip = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"];
    ran(Command::new(&python).args(pip).arg(&wheel))?;
    let store = ["build", "--workspace", "--example=serve", "--locked"];
    ran(Command::new("cargo").args(store))?;
    let skips = root.join("target/skips-python.tsv");
    fs::write(&skips, "")?;
    let tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "crates/python/tests"];
    let tested = ran(Command::new(&python).args(tests).args(options).env("WATTLOCK_SKIPS", &skips));
    list_skips(&fs::read_to_string(&skips)?);
    tested
}

/// Builds the wheel, without optimisation across crates: the dependencies are those of the other tests.
fn wheel(root: &Path) -> anyhow::Result<PathBuf> {
    let folder = root.join("target/wheels");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let mut build = Command::new(root.join(".venv/bin/maturin"));
    build.args(["build", "--quiet", "--locked", "--strip", "false", "--profile", "dev", "--out"]);
    ran(build.arg(&folder).current_dir(root.join("crates/python")))?;
    let mut made = fs::read_dir(&folder)?;
    Ok(made.next().context("maturin made no wheel")??.path())
}

/// Installs the wheel by itself where nothing can be compiled or fetched, and runs the lines of Python in the README and in
/// the package's.
fn in_clean_environment(root: &Path, wheel: &Path) -> anyhow::Result<()> {
    let clean = root.join("target/python-clean");
    let python = clean.join("bin/python3");
    let venv = ["-m", "venv", "--clear"];
    ran(Command::new(root.join(".venv/bin/python3")).args(venv).arg(&clean))?;
    let install = ["-m", "pip", "install", "--quiet", "--no-index"];
    ran(Command::new(&python).args(install).arg(wheel).env("PATH", "/nonexistent"))?;
    for readme in ["README.md", "crates/python/README.md"] {
        let text = fs::read_to_string(root.join(readme))?;
        let lines = blocks(&text).concat();
        if lines.is_empty() {
            bail!("{readme} has no lines of Python");
        }
        let folder = tempfile::tempdir()?;
        let run = ran(Command::new(&python)
            .args(["-c", &lines])
            .current_dir(folder.path())
            .env("PATH", "/nonexistent"));
        run.with_context(|| format!("the lines of Python in {readme}"))?;
    }
    println!("python: the wheel works in a clean environment");
    Ok(())
}

/// The blocks of Python in a text of Markdown.
fn blocks(text: &str) -> Vec<String> {
    let mut parts = text.split("```python\n");
    parts.next();
    parts.filter_map(|part| part.split_once("```").map(|(block, _)| unindented(block))).collect()
}

/// A block, without the spaces that all its lines begin with in a list.
fn unindented(block: &str) -> String {
    let starts = block.lines().filter(|line| !line.trim().is_empty());
    let least = starts.map(|line| line.len() - line.trim_start().len()).min().unwrap_or(0);
    block.lines().map(|line| format!("{}\n", line.get(least..).unwrap_or_default())).collect()
}
