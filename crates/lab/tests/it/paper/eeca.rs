//! `wattlock-lab paper eeca`: every printed cell has a row, and models say what they were fitted to.

use serde_json::Value;
use wattlock_testing::{Place, assert_exit, stderr, stdout};

use super::paper;
use crate::lab;

/// All rows of the sections with that place.
fn rows<'a>(document: &'a Value, place: &str) -> Vec<&'a Value> {
    let sections = document["sections"].as_array().unwrap().iter();
    let of_place = sections.filter(|section| section["place"] == place);
    of_place.flat_map(|section| section["rows"].as_array().unwrap()).collect()
}

fn compared() -> Value {
    let ran = paper(&["eeca", "--no-live", "--json"]);
    assert_exit(&ran, 0);
    serde_json::from_str(&stdout(&ran)).unwrap()
}

#[test]
fn every_place_of_the_paper_has_rows() {
    let ran = paper(&["eeca", "--no-live"]);
    assert_exit(&ran, 0);
    assert_eq!(stderr(&ran), "");
    let text = stdout(&ran);
    for place in [
        "Abstract",
        "Section 1",
        "Section 2.1",
        "Section 2.2",
        "Section 2.3.1",
        "Section 2.3.2",
        "Section 3",
        "Section 4.1",
        "Section 4.2",
        "Section 4.3",
        "Algorithm 1",
        "Algorithm 2",
        "Section 5.1",
        "Section 5.2",
        "Table 1",
        "Section 5.3",
        "Table 2",
        "Section 5.4",
        "Section 5.5",
        "Section 6",
    ] {
        assert!(text.contains(&format!("\n{place}: ")), "{place} is missing:\n{text}");
    }
    for printed in ["1637.13", "966.23", "900.66", "5506942", "40.47", "14189.82", "93.22"] {
        assert!(text.contains(printed), "{printed} is missing:\n{text}");
    }
    assert!(text.contains("none missed"), "{text}");
    assert!(text.contains("cannot be decided: how a call is reckoned changes the sign"), "{text}");
}

#[test]
fn cells_are_held_to_the_models_bounds() {
    let document = compared();
    assert_eq!((&document["paper"], &document["met"]), (&"eeca".into(), &true.into()));
    assert_eq!(document["live"], Value::Null);
    let one = rows(&document, "Table 1");
    let cell = |rows: &[&Value], item: &str, column: &str| {
        let mut found = rows.iter().filter(|row| row["item"] == item && row["column"] == column);
        (*found.next().unwrap_or_else(|| panic!("{item}, {column}"))).clone()
    };
    let predicted = cell(&one, "64 kB", "EECA");
    assert_eq!((&predicted["verdict"], &predicted["limit"]), (&"held".into(), &0.07.into()));
    assert_eq!(predicted["source"], "model");
    assert!((predicted["error"].as_f64().unwrap() + 0.058).abs() < 0.001, "{predicted}");
    let other_run = cell(&one, "1 kB", "over accelerator");
    assert_eq!(other_run["verdict"], "exempt");
    assert!(other_run["why"].as_str().unwrap().contains("another run"));
    let two = rows(&document, "Table 2");
    for (item, limit) in [("16 kB", 0.13), ("2 MB", 0.13)] {
        let row = cell(&two, item, "EECA");
        assert_eq!((&row["verdict"], &row["limit"]), (&"held".into(), &limit.into()), "{row}");
    }
    for item in ["16 kB", "32 kB"] {
        let row = cell(&two, item, "model over instruction set");
        assert!(row["why"].as_str().unwrap().contains("cannot be decided"), "{row}");
    }
}

#[test]
fn constants_are_of_the_single_columns_and_residuals_are_printed() {
    let document = compared();
    let models = document["models"].as_array().unwrap();
    let constants = models.iter().flat_map(|model| model["constants"].as_array().unwrap());
    let of_eeca: Vec<_> = constants
        .filter(|constant| constant["from"].as_str().unwrap().contains("EECA"))
        .map(|constant| constant["from"].as_str().unwrap().contains("one cell"))
        .collect();
    assert_eq!(of_eeca, [true, true], "one cell of each table, for the check");
    for model in models {
        let residuals = model["residuals"].as_array().unwrap();
        assert!(residuals.len() >= 2, "{model}");
        for residual in residuals {
            assert!(residual["largest"].as_f64().unwrap() < 0.1, "{residual}");
        }
    }
}

#[test]
fn a_report_draws_the_tables() {
    let place = Place::new();
    let file = place.path("eeca.json");
    assert_exit(&paper(&["eeca", "--no-live", "--json", file.to_str().unwrap()]), 0);
    let made = lab().args(["report", "-o", "-"]).arg(&file).output().unwrap();
    assert_exit(&made, 0);
    let page = stdout(&made);
    for title in ["<h3>Table 1</h3>", "<h3>Table 2</h3>"] {
        assert!(page.contains(title), "{title} is missing");
    }
    assert!(page.contains("model, not measured") && page.contains("none missed"));
}
