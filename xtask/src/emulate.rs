//! `cargo xtask emulate`: runs the tests of the crates that have code for ARM, and that read and write
//! formats, on ARM CPUs that QEMU emulates. Before that the lints for ARM, and afterwards a look whether AES is
//! compiled as ARM's cores want it.
//!
//! Emulation shows that the code is right, and not how fast it is. It covers both sides of each choice
//! of a kernel: QEMU's `max` has everything, and the CPUs of older cores have no SHA-3.
//!
//! With `--kernels`, for each change: only the tests of the primitives in [`SHORT`], on `max`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, bail, ensure};

use crate::test::{count, list_skips};

/// Cross compiles and runs; an error if a test fails. Says so, and nothing more, where QEMU, the C compiler
/// or Rust's standard library for ARM is missing, unless the variable `REQUIRE` lists `arm`.
pub fn run(options: &[String]) -> anyhow::Result<()> {
    let kernels_only = match options {
        [] => false,
        [option] if option == "--kernels" => true,
        _ => bail!("usage: cargo xtask emulate [--kernels]"),
    };
    if let Some(missing) = missing() {
        let required = env::var("REQUIRE").unwrap_or_default();
        let is_required = required.split([',', ' ']).any(|need| ["arm", "all"].contains(&need));
        ensure!(!is_required, "emulate needs {missing}, which REQUIRE lists as arm");
        println!("\n1 run skipped: the tests on an emulated ARM CPU");
        println!("  without {missing}: `.ci/prepare emulate` installs it");
        return Ok(());
    }
    let (cpus, packages) = if kernels_only {
        // Most of the time goes into building AWS-LC, which these tests hardly run.
        let quick = ["--config", "profile.dev.package.aws-lc-sys.opt-level=0"];
        (&CPUS[..1], [&quick[..], &["-p", KERNELS, "--test", "it", "-E", SHORT]].concat())
    } else {
        lints()?;
        (&CPUS[..], PACKAGES.map(|package| ["-p", package]).concat())
    };
    let mut failed = Vec::new();
    for &cpu in cpus {
        let skips = env::current_dir()?.join(format!("target/skips-{cpu}.tsv"));
        fs::create_dir_all("target")?;
        fs::write(&skips, "")?;
        println!("\n{TARGET}, {cpu}");
        if !tests(cpu, &skips, &packages)? {
            failed.push(cpu);
        }
        list_skips(&fs::read_to_string(&skips)?);
    }
    if !kernels_only {
        let loops = assembly()?;
        println!("\n{} of AES: no states in memory, and each round fused", count(loops, "loop"));
    }
    if !failed.is_empty() {
        bail!("tests failed on {}", failed.join(", "));
    }
    Ok(())
}

const TARGET: &str = "aarch64-unknown-linux-gnu";

/// All that QEMU can do; and a core with AES and SHA-2, and without SHA-3 and SVE.
const CPUS: [&str; 2] = ["max", "cortex-a57"];

/// Those with kernels, and those that a kernel's mistake would show in.
const PACKAGES: [&str; 4] = [KERNELS, "wattlock-file", "wattlock-stream", "wattlock-tls"];

const KERNELS: &str = "wattlock-crypto";

/// Published vectors through each kernel that has code for ARM, and what vectors do not reach: seconds.
const SHORT: &str =
    "test(/^aes_vectors::|^hash_vectors::sha3_256|^agreement::(cbc_of_many|ctr_from|parts)/)";

const COMPILER: &str = "aarch64-linux-gnu-gcc";
const EMULATOR: &str = "qemu-aarch64-static";

fn missing() -> Option<&'static str> {
    let runs = |program: &str| Command::new(program).arg("--version").output().is_ok();
    let library = || {
        let mut rustc = Command::new("rustc");
        let told = rustc.args(["--print", "target-libdir", "--target", TARGET]).output().ok()?;
        Some(PathBuf::from(String::from_utf8(told.stdout).ok()?.trim()))
    };
    [EMULATOR, COMPILER].into_iter().find(|program| !runs(program)).or_else(|| {
        (!library().is_some_and(|folder| folder.is_dir())).then_some("Rust's library for ARM")
    })
}

/// Cargo, for ARM.
fn cargo(arguments: &[&str]) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(arguments).args(["--locked", "--target", TARGET]);
    cargo.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", COMPILER);
    cargo.env("CC_aarch64_unknown_linux_gnu", COMPILER);
    cargo
}

/// Code that is compiled for ARM only, and what is left without use there, in the crate that has kernels.
fn lints() -> anyhow::Result<()> {
    let mut command = cargo(&["clippy", "-p", KERNELS, "--all-targets"]);
    if !command.args(["--", "-D", "warnings"]).status()?.success() {
        bail!("lints for {TARGET} failed");
    }
    Ok(())
}

/// Whether all tests passed. What `.config/nextest.toml` leaves out is counted at the end.
fn tests(cpu: &str, skips: &Path, packages: &[&str]) -> anyhow::Result<bool> {
    let mut command = cargo(&["nextest", "run", "--profile", "emulated"]);
    command.args(packages);
    let runner = format!("{EMULATOR} -cpu {cpu} -L /usr/aarch64-linux-gnu");
    command.env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER", runner);
    let status = command.env("WATTLOCK_SKIPS", skips).status();
    Ok(status.context("starting cargo nextest, which `.ci/prepare test` installs")?.success())
}

/// Looks at the assembly of the AES kernel, and returns how many of its loops are right.
///
/// AESE and AESMC run as one if they follow each other on one register. All states of a loop fit into
/// registers.
fn assembly() -> anyhow::Result<usize> {
    let mut command = cargo(&["rustc", "-p", "wattlock-crypto", "--lib"]);
    // This crate as users get it, without building the ones below it anew.
    for option in ["opt-level=3", "debug-assertions=false", "overflow-checks=false"] {
        command.args(["--config", &format!("profile.dev.package.wattlock-crypto.{option}")]);
    }
    let file = env::current_dir()?.join("target").join("armv8.s");
    let emit = format!("--emit=asm={}", file.display());
    if !command.args(["--", "-C", "codegen-units=1", &emit]).status()?.success() {
        bail!("cannot compile for {TARGET}");
    }
    let text = fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
    let mut loops = 0;
    for (name, body) in functions(&text).filter(|(name, _)| name.contains("aes_armv8")) {
        // The key schedule's, which is no round.
        if name.contains("inv_mix_columns") {
            continue;
        }
        loops += right_loops(&body).with_context(|| name.to_owned())?;
    }
    if loops < FEWEST_LOOPS {
        bail!("found {} of AES in {}", count(loops, "loop"), file.display());
    }
    Ok(loops)
}

/// Three key sizes, in four modes.
const FEWEST_LOOPS: usize = 12;

/// Names and instructions of the functions in an assembler file; labels among them.
fn functions(text: &str) -> impl Iterator<Item = (&str, Vec<&str>)> {
    text.split("\n\t.type\t").skip(1).filter_map(|part| {
        let (name, rest) = part.split_once(",@function")?;
        let body = rest.split("\n.Lfunc_end").next()?;
        let is_code = |line: &&str| line.starts_with(".LBB") || !line.trim_start().starts_with('.');
        Some((name, body.lines().skip(1).filter(is_code).map(str::trim).collect()))
    })
}

/// The innermost loops of a function that have a group of AES in them, once each is found right.
fn right_loops(lines: &[&str]) -> anyhow::Result<usize> {
    for (line, before) in lines.iter().skip(1).zip(lines) {
        let Some(mixed) = operands(line, "aesmc").or_else(|| operands(line, "aesimc")) else {
            continue;
        };
        let round = operands(before, "aese").or_else(|| operands(before, "aesd"));
        let register = |operands: Vec<&str>| operands.first().map(|first| (*first).to_owned());
        let fused = mixed[0] == mixed[1] && round.and_then(register).as_deref() == Some(mixed[0]);
        if !fused {
            bail!("{before} and {line} do not fuse");
        }
    }
    let place = |label: &str| lines.iter().position(|line| line.strip_suffix(':') == Some(label));
    let mut loops = 0;
    for (end, line) in lines.iter().enumerate() {
        let target = line.starts_with('b').then(|| line.split_whitespace().last()).flatten();
        let Some(start) = target.and_then(place).filter(|start| *start < end) else { continue };
        let body = &lines[start..end];
        let aes = body.iter().filter(|line| operands(line, "aese").is_some()).count()
            + body.iter().filter(|line| operands(line, "aesd").is_some()).count();
        // A group of eight with ten rounds or more.
        if aes < 80 {
            continue;
        }
        let stored =
            |line: &&&str| line.starts_with("st") && line.contains("\tq") && line.contains("[sp");
        if let Some(line) = body.iter().find(stored) {
            bail!("a state goes to memory: {line}");
        }
        if let Some(line) = body.iter().find(|line| line.starts_with("bl\t")) {
            bail!("a call between rounds: {line}");
        }
        loops += 1;
    }
    Ok(loops)
}

/// The operands of `line`, if its instruction is `name`.
fn operands<'l>(line: &'l str, name: &str) -> Option<Vec<&'l str>> {
    let (instruction, operands) = line.split_once('\t')?;
    (instruction == name).then(|| operands.split(", ").collect())
}
