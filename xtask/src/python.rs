//! `cargo xtask python [PYTEST OPTIONS]`: builds the wheels of the Python package, installs them into clean environments
//! without a compiler in reach, by `.venv`'s Python and newer ones in `PATH`, and runs the package's tests in `.venv`, which
//! `.ci/prepare python` makes.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs};

use anyhow::{Context, bail};

use crate::command::{ran, said};
use crate::test::list_skips;

/// Newer versions of Python, which the wheel is for too.
const NEWER: [&str; 3] = ["python3.12", "python3.13", "python3.14"];

/// The Python that needs a wheel of its own.
const FREE_THREADED: &str = "python3.14t";

/// What the builder would ask that Python, so that the wheel can be built without it.
const FREE_THREADED_CONFIG: &str = "implementation=CPython\nversion=3.14\nshared=true\npointer_width=64\n\
    target_abi=CPython-free_threaded-3.14\nbuild_flags=Py_GIL_DISABLED\nsuppress_build_script_link_lines=true\n";

/// Fails if a wheel cannot be built or installed, or a test fails.
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
    let mut missing = String::new();
    let free_threaded = free_threaded_wheel(&root)?;
    let wheel = wheel(&root, "wheels", |_| {})?;
    in_clean_environment(&root, &wheel, &python)?;
    let newer = NEWER.iter().map(|python| (&wheel, *python));
    for (wheel, python) in newer.chain([(&free_threaded, FREE_THREADED)]) {
        if works(python) {
            in_clean_environment(&root, wheel, Path::new(python))?;
        } else {
            missing += &format!("{python}\tthe wheel in a clean environment\tnot installed\n");
        }
    }
    let pip = ["-m", "pip", "install", "--quiet", "--force-reinstall", "--no-deps"];
    ran(Command::new(&python).args(pip).arg(&wheel))?;
    let store = ["build", "--workspace", "--example=serve", "--locked"];
    ran(Command::new("cargo").args(store))?;
    let skips = root.join("target/skips-python.tsv");
    fs::write(&skips, missing)?;
    let tests = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "crates/python/tests"];
    let tested = ran(Command::new(&python).args(tests).args(options).env("WATTLOCK_SKIPS", &skips));
    list_skips(&fs::read_to_string(&skips)?);
    tested
}

/// Builds the wheel for a Python whose threads run at the same time.
fn free_threaded_wheel(root: &Path) -> anyhow::Result<PathBuf> {
    let config = root.join("target/python-free-threaded.txt");
    fs::write(&config, FREE_THREADED_CONFIG)?;
    let wheel = wheel(root, "wheels-free-threaded", |build| {
        build.arg("--no-default-features").env("PYO3_CONFIG_FILE", config);
    })?;
    let name = wheel.file_name().unwrap_or_default().to_string_lossy().into_owned();
    if !name.contains("-cp314-cp314t-") {
        bail!("{name} is not for {FREE_THREADED}");
    }
    println!("python: {name} is built");
    Ok(wheel)
}

/// Builds a wheel, without optimisation across crates: the dependencies are those of the other tests.
fn wheel(root: &Path, folder: &str, set: impl FnOnce(&mut Command)) -> anyhow::Result<PathBuf> {
    let folder = root.join("target").join(folder);
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    // Both builds write this file, and Cargo does not notice which of them wrote it last.
    let module = root.join("target/debug/deps/lib_wattlock.so");
    if module.exists() {
        fs::remove_file(module)?;
    }
    let mut build = Command::new(root.join(".venv/bin/maturin"));
    set(build.arg("build"));
    build.args(["--quiet", "--locked", "--strip", "false", "--profile", "dev", "--out"]);
    ran(build.arg(&folder).current_dir(root.join("crates/python")))?;
    let mut made = fs::read_dir(&folder)?;
    Ok(made.next().context("maturin made no wheel")??.path())
}

fn works(python: &str) -> bool {
    let mut command = Command::new(python);
    command.args(["-c", "import venv"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

/// Installs the wheel by itself where nothing can be compiled or fetched, and runs the lines of Python in the README and
/// others that need nothing else.
fn in_clean_environment(root: &Path, wheel: &Path, from: &Path) -> anyhow::Result<()> {
    let clean = root.join("target/python-clean");
    let python = clean.join("bin/python3");
    let venv = ["-m", "venv", "--clear"];
    ran(Command::new(from).args(venv).arg(&clean))?;
    let install = ["-m", "pip", "install", "--quiet", "--no-index"];
    ran(Command::new(&python).args(install).arg(wheel).env("PATH", "/nonexistent"))?;
    for readme in ["README.md", "crates/python/README.md", "docs/fleets.md"] {
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
    let version =
        said(Command::new(&python).args(["-c", "import sys; print(sys.version.split()[0])"]))?;
    println!("python: the wheel works in a clean environment of Python {}", version.trim());
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
