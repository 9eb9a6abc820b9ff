//! `wattlock-lab simulate lecpaes`: what it prints, how it ends, and its JSON.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::process::Output;

use serde_json::Value;
use wattlock_testing::{Place, assert_exit, stderr, stdout};

use crate::lab;

fn lecpaes(args: &[&str]) -> Output {
    lab().args(["simulate", "lecpaes"]).args(args).output().unwrap()
}

fn json(ran: &Output) -> Value {
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn json_goes_to_standard_output_alone_and_a_seed_repeats_itself() {
    let once = |seed| {
        let ran = lecpaes(&[
            "--users=200",
            "--latency=100,250",
            "--algorithm=cs,paced",
            "--seed",
            seed,
            "--json",
        ]);
        assert_exit(&ran, 0);
        json(&ran)
    };
    let (first, again, other) = (once("1"), once("1"), once("2"));
    assert_eq!(first["runs"], again["runs"]);
    assert_ne!(first["runs"], other["runs"]);
    let case = |run: &Value| (run["algorithm"].clone(), run["latency_us"].clone());
    let cases: Vec<_> = first["runs"].as_array().unwrap().iter().map(case).collect();
    let expected = [("cs", 100), ("cs", 250), ("paced", 100), ("paced", 250)];
    assert_eq!(cases, expected.map(|(name, us)| (name.into(), us.into())));
}

#[test]
fn an_experiment_of_ones_own_is_printed() {
    let ran =
        lecpaes(&["--users=500", "--window=1M", "--latency=1000", "--algorithm=race-to-idle"]);
    assert_exit(&ran, 0);
    let text = stdout(&ran);
    assert!(text.contains("500 users") && text.contains("window 1.00 MiB"), "{text}");
    assert!(text.contains("MODELLED, NOT MEASURED") && text.contains("race-to-idle"), "{text}");
    assert!(!text.contains("printed"), "{text}");
}

#[test]
fn what_makes_no_sense_is_refused() {
    let narrow = lecpaes(&["--window=100K"]);
    assert_exit(&narrow, 2);
    assert!(stderr(&narrow).contains("choose a larger --window"), "{}", stderr(&narrow));
    for wrong in [&["--algorithm=fastest"][..], &["--users=0"], &["--latency=soon"]] {
        assert_exit(&lecpaes(wrong), 2);
    }
    let nowhere = lecpaes(&["--users=10", "--json", "/nowhere/runs.json"]);
    assert_exit(&nowhere, 1);
    assert!(stderr(&nowhere).contains("/nowhere/runs.json"), "{}", stderr(&nowhere));
    assert_eq!(stdout(&nowhere), "");
}

#[test]
fn json_tells_every_run() {
    let place = Place::new();
    let file = place.path("runs.json");
    let ran = lecpaes(&["--seed", "7", "--json", file.to_str().unwrap()]);
    assert_exit(&ran, 0);
    assert!(stdout(&ran).contains("seed 7"));
    let document: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert_eq!(document["schema"], "wattlock-simulation/1");
    assert_eq!((&document["kind"], &document["class"]), (&"lecpaes".into(), &"modelled".into()));
    assert_eq!(document["settings"]["seed"], 7);
    every_run_is_whole(&document);
}

#[test]
fn a_report_draws_modelled_joules_hatched() {
    let place = Place::new();
    let file = place.path("runs.json");
    let ran = lecpaes(&["--json", file.to_str().unwrap()]);
    assert_exit(&ran, 0);
    let made = lab().args(["report", "-o", "-"]).arg(&file).output().unwrap();
    assert_exit(&made, 0);
    let page = stdout(&made);
    let figures: Vec<&str> =
        page.split("<figure").skip(1).map(|rest| rest.split("</figure>").next().unwrap()).collect();
    let [joules, rates] = figures[..] else { panic!("{} figures", figures.len()) };
    assert!(joules.contains("Modelled joules") && joules.contains("model, not measured"));
    assert!(!joules.contains("class=\"bar ours\""), "modelled joules are no solid bars");
    assert!(rates.contains("class=\"bar ours\"") && rates.contains("276 MiB/s"));
    assert!(page.contains("joules by a model, not measured"), "the summary says so, too");
}

/// The 28 runs of the paper's experiment, each with all messages and the time at each clock.
pub fn every_run_is_whole(document: &Value) {
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 28);
    for run in runs {
        assert_eq!(run["messages"], 12_000, "{run}");
        assert_eq!(run["bytes"], runs[0]["bytes"], "{run}");
        assert!(run["model_energy_uj"].as_u64().unwrap() > 100_000_000, "{run}");
        let set: u64 = run["rungs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|rung| rung["set_ns"].as_u64().unwrap())
            .sum();
        assert_eq!(set, run["elapsed_ns"].as_u64().unwrap(), "{run}");
    }
}
