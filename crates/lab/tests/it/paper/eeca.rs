//! `wattlock-lab paper eeca`: every printed cell has a row, and models say what they were fitted to.

use std::path::Path;

use serde_json::Value;
use wattlock_testing::{Place, assert_exit, has_program, stderr, stdout, wait_until};

use super::paper;
use crate::https::processes_in;
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
        "Section 4",
        "Section 4.1",
        "Section 4.2",
        "Section 4.3",
        "Section 4.4",
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
    for (rows, item, column) in
        [(&one, "64 kB", "accelerator"), (&one, "1 kB", "software"), (&two, "2 MB", "software")]
    {
        let row = cell(rows, item, column);
        assert_eq!(row["verdict"], "exempt", "{row}");
        assert!(row["why"].as_str().unwrap().starts_with("fitted"), "{row}");
    }
    for rows in [&one, &two] {
        let row = cell(rows, "1 kB", "model over instruction set");
        assert_eq!(row["verdict"], "exempt", "it sets the check: {row}");
    }
    for item in ["16 kB", "32 kB"] {
        let row = cell(&two, item, "model over instruction set");
        assert!(row["why"].as_str().unwrap().contains("cannot be decided"), "{row}");
    }
}

/// What print has wrong is said in the same words in every row, so that it can be counted.
#[test]
fn contradictions_in_print_are_named_alike() {
    let document = compared();
    let sections = document["sections"].as_array().unwrap().iter();
    let rows = sections.flat_map(|section| section["rows"].as_array().unwrap());
    let whys: Vec<&str> = rows.filter_map(|row| row["why"].as_str()).collect();
    let count = |start: &str| whys.iter().filter(|why| why.starts_with(start)).count();
    assert!(count("false in print: ") >= 10, "{whys:?}");
    assert!(count("contradicts itself: ") >= 20, "{whys:?}");
    let printed = |place: &str| {
        let of_place = self::rows(&document, place).into_iter();
        of_place.filter(|row| row["printed"].is_number()).count()
    };
    assert_eq!(printed("Section 4.2, requests"), 0, "the paper prints no such ratios");
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

/// True if pages can be served to ab; else says why the test is skipped.
fn can_serve() -> bool {
    let nginx = has_program("nginx") || Path::new("/usr/sbin/nginx").is_file();
    nginx && ["ab", "curl", "openssl", "taskset"].into_iter().all(has_program)
}

#[test]
fn both_tables_and_the_phases_are_measured() {
    if !can_serve() {
        return;
    }
    let place = Place::new();
    let file = place.path("eeca.json");
    let ran = lab()
        .args(["paper", "eeca", "--quick", "--meter", "echo 140 W", "--json"])
        .arg(&file)
        .env("TMPDIR", place.path("d"))
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    let text = stdout(&ran);
    let document: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let live = &document["live"];
    assert_eq!((&live["kind"], &live["settings"]["quick"]), (&"eeca".into(), &true.into()));
    wait_until("no process is left", || processes_in(&place.path("d")).is_empty());

    // Of the ways, those without the provider run everywhere.
    for (section, item) in [("Table 1, here", "16 kB"), ("Table 2, here", "8 kB")] {
        let here = rows(&document, section);
        for way in ["software", "instruction set"] {
            let find = |column: &str| {
                let mut found = here.iter().filter(|row| row["item"] == item);
                found.find(|row| row["column"] == column).unwrap()
            };
            let rate = find(way);
            assert!(rate["ours"].as_f64().unwrap() > 0.0, "{rate}");
            assert_eq!((&rate["verdict"], &rate["source"]), (&"exempt".into(), &"live".into()));
            let joules = find(&format!("{way} for a joule"));
            assert!(joules["ours"].as_f64().unwrap() > 0.0, "{joules}");
        }
    }
    // Kilobytes for a joule have rows where they are printed or were measured.
    let cells = |section: &str| {
        let here = rows(&document, section).into_iter();
        let of_joules = |text: &Value| text.as_str().unwrap_or_default().contains("for a joule");
        here.filter(|row| !of_joules(&row["item"]) && !of_joules(&row["column"])).count()
    };
    assert_eq!((cells("Table 1, here"), cells("Table 2, here")), (9 * 8 + 4, 11 * 7 + 4));

    // A page of T bytes counts as T, whatever its header adds.
    let skipped = live["skipped"].to_string();
    if !skipped.contains("no provider") {
        let counted = &live["settings"]["counted"];
        let eeca = &counted["ECDHE-RSA-AES256-SHA384, wattlock EECA, simulated"]["accelerator"];
        let header = live["settings"]["header_bytes"].as_u64().unwrap();
        assert_eq!(eeca["threshold_bytes"], 8192 + header, "{eeca}");
        assert_eq!(eeca["lanes"]["accelerator"]["calls"], 0, "{eeca}");
        assert!(eeca["lanes"]["cpu"]["calls"].as_u64().unwrap() > 0, "{eeca}");
    }

    let phases = &live["settings"]["phases"]["8"];
    let spent = |how: &str| -> Vec<u64> {
        let ns = phases[how]["ns"].as_array().unwrap();
        assert!(phases[how]["pages"].as_u64().unwrap() > 0, "{phases}");
        ns.iter().map(|ns| ns.as_u64().unwrap()).collect()
    };
    let (alone, kept) = (spent("alone"), spent("kept"));
    assert!(alone.iter().chain(&kept).all(|ns| *ns > 0), "{phases}");
    assert!(
        text.contains("8 kB, crypto, keep-alive") && text.contains("too short for a verdict"),
        "{text}"
    );
}

#[test]
fn a_file_without_measurements_is_refused() {
    let place = Place::new();
    let file = place.path("eeca.json");
    assert_exit(&paper(&["eeca", "--no-live", "--json", file.to_str().unwrap()]), 0);
    let again = paper(&["eeca", "--measured", file.to_str().unwrap()]);
    assert_exit(&again, 1);
    assert!(stderr(&again).contains("holds no measurements"), "{}", stderr(&again));
}
