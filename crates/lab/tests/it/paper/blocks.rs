//! `wattlock-lab paper blocks`.

use std::process::Command;

use serde_json::Value;
use wattlock_testing::{Place, assert_exit, stderr, stdout};

use super::{paper, rows};
use crate::lab;

fn json(args: &[&str]) -> Value {
    let ran = paper(&[&["blocks"], args, &["--json", "-"]].concat());
    assert_exit(&ran, 0);
    serde_json::from_str(&stdout(&ran)).unwrap()
}

fn verdicts<'a>(rows: &'a [Value], verdict: &str) -> Vec<&'a str> {
    let those = rows.iter().filter(|row| row["verdict"] == verdict);
    those.map(|row| row["item"].as_str().unwrap()).collect()
}

#[test]
fn tables_are_held_by_models_without_a_measurement() {
    let document = json(&["--no-live"]);
    assert_eq!((&document["met"], &document["counts"]["missed"]), (&true.into(), &0.into()));
    let table = rows(&document, "Table I");
    // Those with 4 and 8 threads; the model is made of the others.
    assert_eq!(verdicts(table, "held").len(), 11);
    let exempt =
        table.iter().find(|row| row["column"] == "1 KB, 8 threads" && row["item"] == "16 MB");
    let exempt = exempt.unwrap();
    assert_eq!((&exempt["printed"], &exempt["verdict"]), (&0.178.into(), &"exempt".into()));
    assert!(exempt["why"].as_str().unwrap().contains("4.50 times"), "{exempt}");
    assert_eq!(verdicts(rows(&document, "Table II"), "held").len(), 10);
    assert_eq!(verdicts(rows(&document, "Table III"), "held").len(), 12);
    for figure in ["Figure 7", "Figure 8"] {
        let rows = rows(&document, figure);
        assert_eq!(verdicts(rows, "exempt").len(), rows.len(), "{figure} follows from the tables");
    }
    for place in ["Table I, here", "Table II, here", "Figure 7, here", "Figure 8, here"] {
        let rows = rows(&document, place);
        assert_eq!(verdicts(rows, "not-here").len(), rows.len(), "{place}");
        assert!(rows.iter().all(|row| row["why"] == "--no-live was given"));
    }
    let models = document["models"].as_array().unwrap();
    let largest: Vec<f64> =
        models.iter().map(|model| model["residuals"][0]["largest"].as_f64().unwrap()).collect();
    assert!((0.030..0.032).contains(&largest[0]) && (0.10..0.11).contains(&largest[1]));
    assert!(document.get("live").is_none());
}

#[test]
fn claims_that_the_print_contradicts_say_why() {
    let ran = paper(&["blocks", "--no-live"]);
    assert_exit(&ran, 0);
    assert_eq!(stderr(&ran), "");
    let text = stdout(&ran);
    for said in [
        "3 of 9 cells are within 1.25 to 1.28",
        "Table III gives 5.58 to 8.53, and 11 of 12 cells are within",
        "in 16 of 18 pairs",
        "contradicts itself: a Core 2 Duo has two cores",
        "reads round key 0 in every round",
        "more with four in 1 of 3",
        "false in print: FIPS 197's example, appendix C.1, is not encrypted so",
        "it has one key; the counters differ",
        "none missed",
    ] {
        assert!(text.contains(said), "{said}:\n{text}");
    }
}

#[test]
fn a_quick_look_measures_forms_and_counts_instructions_and_has_no_verdict() {
    let place = Place::new();
    let file = place.path("blocks.json");
    let ran = paper(&["blocks", "--quick", "--rounds", "1", "--json", file.to_str().unwrap()]);
    assert_exit(&ran, 0);
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let live = &document["live"];
    assert_eq!((&live["kind"], &live["settings"]["quick"]), (&"blocks".into(), &true.into()));
    let row = |case: &str| {
        let rows = live["rows"].as_array().unwrap();
        rows.iter().find(|row| row["case"] == case).unwrap_or_else(|| panic!("no row of {case}"))
    };
    for case in [
        "coarse, 16 bytes, 1 MB",
        "extended, 4096 bytes, 1 MB",
        "fine, inside a block, 1 KiB",
        "coarse, the message of fine, 1 KiB",
        "form inlined, 16 bytes, 1 MB",
        "form chained, 1024 bytes, 1 MB",
    ] {
        assert!(row(case)["cpu_ns"]["median"].as_u64().unwrap() > 0, "{case}");
    }
    let skipped = live["skipped"].to_string();
    match row("form called, 16 bytes, 1 MB")["instructions_per_byte"].as_f64() {
        Some(count) => assert!((50.0..5000.0).contains(&count), "{count}"),
        None => {
            assert!(skipped.contains("no hardware counter"), "{skipped}");
            wattlock_testing::skip("instructions", &skipped);
        }
    }
    let why = rows(&document, "Section VI");
    let calls = why.iter().find(|row| row["item"] == "calls are what larger blocks save").unwrap();
    assert_eq!(calls["verdict"], "exempt", "{calls}");
    assert!(calls["ours"].as_str().unwrap().contains("without a call"), "{calls}");
    assert!(!rows(&document, "Table II, here").iter().any(|row| row["verdict"] == "held"));

    // What was measured is compared again without measuring.
    let again = json(&["--measured", file.to_str().unwrap()]);
    assert_eq!(again["live"]["rows"], live["rows"]);
    assert_eq!(again["sections"], document["sections"]);
}

#[test]
fn what_was_measured_decides_and_a_miss_is_the_exit_code() {
    let place = Place::new();
    let measured = |inlined_ns: u64| {
        let file = place.path(format!("{inlined_ns}.json"));
        let mut document = json(&["--no-live"]);
        document["live"] = results(inlined_ns);
        std::fs::write(&file, document.to_string()).unwrap();
        let made =
            lab_blocks().arg("--measured").arg(&file).args(["--json", "-"]).output().unwrap();
        let document: Value = serde_json::from_str(&stdout(&made)).unwrap();
        let calls = rows(&document, "Section VI")[2]["verdict"].as_str().unwrap().to_owned();
        let best = rows(&document, "Section V.A")
            .iter()
            .find(|row| row["item"] == "1 KB is the best block")
            .unwrap();
        assert_eq!(best["verdict"], "missed", "{best}");
        assert_exit(&made, 1);
        assert!(stderr(&made).contains("1 KB is the best block"), "{}", stderr(&made));
        calls
    };
    assert_eq!(measured(1100), "held", "without a call most of the gain is there");
    assert_eq!(measured(1240), "missed");
}

#[test]
fn overlap_is_told_only_of_forms_that_do_the_same_work() {
    let place = Place::new();
    let file = place.path("blocks.json");
    let told = |chained: f64, linked: f64| {
        let mut document = json(&["--no-live"]);
        document["live"] = results(1240);
        for row in document["live"]["rows"].as_array_mut().unwrap() {
            let case = row["case"].as_str().unwrap();
            let count = if case.starts_with("form chained, 1024") { chained } else { linked };
            row["instructions_per_byte"] = count.into();
        }
        std::fs::write(&file, document.to_string()).unwrap();
        let made =
            lab_blocks().arg("--measured").arg(&file).args(["--json", "-"]).output().unwrap();
        let document: Value = serde_json::from_str(&stdout(&made)).unwrap();
        let find = |item: &str| {
            let rows = rows(&document, "Section VI");
            rows.iter().find(|row| row["item"] == item).unwrap().clone()
        };
        let overlap = find("the CPU works on several units of a block at once");
        let known = find("what is known of the cause");
        [overlap["why"].to_string(), known["ours"].to_string()]
    };
    let [why, known] = told(100.0, 99.0);
    assert!(why.contains("execute as many instructions"), "{why}");
    assert!(known.contains("units that overlap in the core have half"), "{known}");
    let [why, known] = told(88.0, 98.0);
    assert!(why.contains("it tells nothing"), "{why}");
    assert!(known.contains("whether units overlap was not decided"), "{known}");
}

fn lab_blocks() -> Command {
    let mut command = lab();
    command.args(["paper", "blocks"]);
    command
}

/// Times of a made-up machine, where 16 bytes take 1250 ns and all larger blocks 1000.
fn results(inlined_ns: u64) -> Value {
    let row = |case: &str, ns: u64| {
        let sample =
            serde_json::json!({"median": ns, "min": ns, "max": ns, "mad": 0, "values": [ns]});
        serde_json::json!({
            "tool": "wattlock", "case": case, "kernel": "listing", "threads": 1, "bytes": 100,
            "wall_ns": sample, "cpu_ns": sample,
        })
    };
    let mut rows = vec![
        row("form called, 16 bytes, 4 MB", 1250),
        row("form inlined, 16 bytes, 4 MB", inlined_ns),
        row("form chained, 1024 bytes, 4 MB", 1200),
        row("form linked, 1024 bytes, 4 MB", 1010),
    ];
    for block in [512, 1024, 2048, 4096] {
        rows.push(row(&format!("form called, {block} bytes, 4 MB"), 1000));
    }
    serde_json::json!({"schema": "wattlock-results/1", "kind": "blocks", "rows": rows})
}
