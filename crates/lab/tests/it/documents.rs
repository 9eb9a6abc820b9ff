//! What the program says of itself, and that its bench runs.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use wattlock_testing::{Place, assert_exit, stdout};

use crate::lab;

#[test]
fn help_names_the_exit_codes() {
    for command in [&["--help"][..], &["sefps", "protect", "--help"], &["sefps", "unprotect", "-h"]]
    {
        let help = lab().args(command).output().unwrap();
        assert_exit(&help, 0);
        assert!(stdout(&help).contains("3 wrong key or tampered"));
    }
}

#[test]
fn completions_and_manual_pages() {
    let made = lab().args(["completions", "bash"]).output().unwrap();
    assert_exit(&made, 0);
    assert!(stdout(&made).contains("complete -F _wattlock__lab"));
    let place = Place::new();
    assert_exit(&lab().arg("man").arg(place.path("man")).output().unwrap(), 0);
    assert!(place.path("man/wattlock-lab-bench-files.1").is_file());
}

#[test]
fn the_bench_runs_and_its_json_is_what_the_spec_says() {
    let place = Place::new();
    let json = place.path("results.json");
    let ran = lab()
        .args(["bench", "files", "--size=3M", "--rounds=1", "--files=5", "--dir"])
        .arg(place.path("d"))
        .arg("--disk")
        .arg(place.path("d"))
        .arg("--json")
        .arg(&json)
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    let results: serde_json::Value = serde_json::from_slice(&std::fs::read(json).unwrap()).unwrap();
    assert_eq!(results["schema"], "wattlock-results/1");
    assert_eq!(results["kind"], "files");
    assert!(results["machine"]["cpu"].is_string());
    for row in results["rows"].as_array().unwrap() {
        assert!(row["wall_ns"]["median"].as_u64().unwrap() > 0, "{row}");
        assert!(results["tools"][row["tool"].as_str().unwrap()].is_string());
    }
    assert!(stdout(&ran).contains("wattlock / cp"));
    assert!(place.names().is_empty(), "the bench removes what it made");
}
