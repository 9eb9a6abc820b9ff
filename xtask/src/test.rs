//! `cargo xtask test [NEXTEST OPTIONS]`: runs the tests, repeats each failed one once and alone, and ends
//! with lists of the failed, the flaky and the skipped.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, bail};

/// Runs the tests; an error if one fails twice.
pub fn run(options: &[String]) -> anyhow::Result<()> {
    let skips = env::current_dir()?.join("target/skips.tsv");
    fs::create_dir_all("target")?;
    fs::write(&skips, "")?;
    let profile = profile(options);
    // Two for each core: many tests wait for other programs.
    let threads = 2 * std::thread::available_parallelism()?.get();
    let threads = [format!("--test-threads={threads}")];
    let report = Path::new("target/nextest").join(&profile).join("junit.xml");
    // An earlier run's must not stand for one that did not begin.
    if report.exists() {
        fs::remove_file(&report)?;
    }
    let passed = nextest(&[&threads, options].concat(), &skips)?;
    if !report.exists() {
        bail!(
            "cargo nextest wrote no report, so the tests may not have run; see what it says above"
        );
    }
    let reasons = failed_tests(&report)?;
    let failed: BTreeSet<_> = reasons.keys().cloned().collect();
    if !passed && failed.is_empty() {
        bail!("cargo nextest failed, and its report has no failed test");
    }
    let broken = repeat_alone(&failed, &skips)?;
    let flaky: Vec<_> = failed.difference(&broken).collect();

    println!("\n{} flaky: failed, and passed when repeated alone", count(flaky.len(), "test"));
    flaky.iter().for_each(|test| println!("  {test}"));
    list_skips(&fs::read_to_string(&skips)?);
    if !broken.is_empty() {
        println!("\n{} failed", count(broken.len(), "test"));
        for test in &broken {
            println!("  {test}");
            reasons.get(test).into_iter().flatten().for_each(|line| println!("    {line}"));
        }
        bail!("tests failed");
    }
    Ok(())
}

/// Runs nextest; whether all tests passed.
fn nextest(options: &[String], skips: &Path) -> anyhow::Result<bool> {
    let status = Command::new("cargo")
        .args(["nextest", "run", "--workspace", "--locked"])
        .args(options)
        .env("WATTLOCK_SKIPS", skips)
        .status()
        .context("starting cargo nextest, which `.ci/prepare test` installs")?;
    Ok(status.success())
}

/// The profile that `options` choose.
fn profile(options: &[String]) -> String {
    let mut options = options.iter();
    while let Some(option) = options.next() {
        if let Some(name) = option.strip_prefix("--profile=") {
            return name.to_owned();
        }
        if option == "--profile" || option == "-P" {
            return options.next().cloned().unwrap_or_default();
        }
    }
    "default".to_owned()
}

/// A test, as nextest names it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Test {
    binary: String,
    name: String,
}

impl std::fmt::Display for Test {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.binary, self.name)
    }
}

/// The tests with a `<failure>` or `<error>` in nextest's report, and the first lines of why they failed.
fn failed_tests(report: &Path) -> anyhow::Result<BTreeMap<Test, Vec<String>>> {
    let text = fs::read_to_string(report)
        .with_context(|| format!("reading nextest's report {}", report.display()))?;
    let cases = text.split("<testcase ").skip(1);
    let cases = cases.map(|case| case.split("</testcase>").next().unwrap_or(case));
    let failed = cases.filter(|case| case.contains("<failure") || case.contains("<error"));
    failed
        .map(|case| {
            let attribute = |name: &str| {
                let (_, value) = case.split_once(&format!("{name}=\""))?;
                Some(value.split('"').next()?.to_owned())
            };
            // " name" because "classname" ends the same.
            let (name, binary) = (case.split_once("name=\""), attribute("classname"));
            let name = name.and_then(|(_, value)| value.split('"').next()).map(str::to_owned);
            let (name, binary) = name.zip(binary).context("a test case without a name")?;
            Ok((Test { binary, name }, reason(case)))
        })
        .collect()
}

/// The first lines of what a failed test said; if it said nothing, how it ended.
fn reason(case: &str) -> Vec<String> {
    let failure = case.split_once("<failure").or_else(|| case.split_once("<error"));
    let Some((attributes, text)) = failure.and_then(|(_, failure)| failure.split_once('>')) else {
        return Vec::new();
    };
    let text = if attributes.ends_with('/') { attributes } else { text };
    let text = text.split("</").next().unwrap_or(text);
    let characters =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&amp;", "&")];
    let text = characters.iter().fold(text.to_owned(), |text, (name, one)| text.replace(name, one));
    let lines = text.lines().filter(|line| !line.trim().is_empty()).take(REASON);
    lines.map(|line| line.chars().take(WIDTH).collect()).collect()
}

/// Runs each of `failed` once more, one at a time, and returns those that fail again.
fn repeat_alone(failed: &BTreeSet<Test>, skips: &Path) -> anyhow::Result<BTreeSet<Test>> {
    let mut broken = BTreeSet::new();
    // With this number, the machine or the change is broken, and not a test flaky.
    if failed.len() > MOST_REPEATED {
        return Ok(failed.clone());
    }
    for test in failed {
        println!("\nrepeating {test} alone");
        let filter = format!("binary_id(={}) & test(={})", test.binary, test.name);
        let options = ["--profile", "repeat", "-j1", "--run-ignored", "all", "-E", filter.as_str()];
        if !nextest(&options.map(str::to_owned), skips)? {
            broken.insert(test.clone());
        }
    }
    Ok(broken)
}

/// Prints the skips by what they need.
pub(crate) fn list_skips(recorded: &str) {
    let mut by_need: BTreeMap<&str, BTreeSet<(&str, &str)>> = BTreeMap::new();
    for line in recorded.lines() {
        let mut fields = line.splitn(3, '\t');
        if let (Some(need), Some(test), Some(why)) = (fields.next(), fields.next(), fields.next()) {
            by_need.entry(need).or_default().insert((test, why));
        }
    }
    let tests: BTreeSet<&str> = by_need.values().flatten().map(|(test, _)| *test).collect();
    println!("\n{} skipped, all or in part", count(tests.len(), "test"));
    for (need, skips) in by_need {
        println!("  without {need}:");
        for (test, why) in skips {
            println!("    {test}: {why}");
        }
    }
}

pub(crate) fn count(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

const MOST_REPEATED: usize = 10;

/// Lines, and characters of each, that say why a test failed.
const REASON: usize = 4;
const WIDTH: usize = 300;
