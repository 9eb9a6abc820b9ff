//! `wattlock report`: a page of what `wattlock measure` said, and of results without papers. All that a page
//! can hold is in the tests of `wattlock-lab report`.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::support::{Place, assert_exit, stderr, stdout, wattlock};
use serde_json::{Value, json};
use wattlock_testing::results::{document, row};

/// What `wattlock measure --json` says of two runs on a machine without sensors.
fn measured() -> Value {
    let sensors = tempfile::tempdir().unwrap();
    let ran = wattlock()
        .args(["measure", "--json", "--bytes=1M", "--repeat=2", "--", "true"])
        .env("WATTLOCK_ROOT", sensors.path())
        .output()
        .unwrap();
    serde_json::from_str(stderr(&ran).lines().last().unwrap()).unwrap()
}

/// `wattlock report` of a document, and where its page would be.
fn report(place: &Place, document: &Value) -> (Output, PathBuf) {
    let (input, output) = (place.path("in.json"), place.path("page.html"));
    fs::write(&input, document.to_string()).unwrap();
    (wattlock().arg("report").arg(&input).arg("-o").arg(&output).output().unwrap(), output)
}

#[track_caller]
fn page(document: &Value) -> String {
    let place = Place::new();
    let (made, output) = report(&place, document);
    assert_exit(&made, 0);
    fs::read_to_string(output).unwrap()
}

/// What people see of a page: all but the data.
fn seen(page: &str) -> &str {
    page.split("<script").next().unwrap()
}

#[test]
fn a_measurement_of_a_command() {
    let page = page(&measured());
    assert!(page.contains("run 2") && page.contains("url(#hatching)"), "{page}");
    assert!(seen(&page).contains("the model knows time and utilisation only"), "{page}");
}

#[test]
fn results_of_the_laboratory_are_drawn_too() {
    for (kind, case) in [("blocks", "x"), ("energy", "parc4")] {
        let page = page(&document(kind, &[row("wattlock", case, 100)]));
        assert!(seen(&page).contains("<figure"), "{page}");
    }
}

#[test]
fn the_page_is_written_whole_or_not_at_all() {
    let place = Place::new();
    let mut wrong = measured();
    let (made, output) = report(&place, &wrong);
    assert_exit(&made, 0);
    let page = fs::read(&output).unwrap();
    wrong["runs"][1]["wall_ns"] = json!(-1);
    let (refused, _) = report(&place, &wrong);
    assert_exit(&refused, 1);
    assert!(stderr(&refused).contains("in.json"), "{}", stderr(&refused));
    assert_eq!(fs::read(&output).unwrap(), page, "it is as it was");
    let input = place.path("in.json");
    for (output, code) in [(&*input, 2), (Path::new("/dev/null"), 2), (Path::new("/no/page"), 1)] {
        let ran = wattlock().arg("report").arg(&input).arg("-o").arg(output).output().unwrap();
        assert_exit(&ran, code);
        assert_eq!(stdout(&ran), "");
    }
}
