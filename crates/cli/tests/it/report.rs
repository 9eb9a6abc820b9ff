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

/// `wattlock measure ARGS… --json -- true` on a machine without sensors.
fn modelled(args: &[&str]) -> Value {
    let sensors = tempfile::tempdir().unwrap();
    let mut command = wattlock();
    command.arg("measure").args(args).args(["--json", "--", "sleep", "0.1"]);
    let ran = command.env("WATTLOCK_ROOT", sensors.path()).output().unwrap();
    serde_json::from_str(stderr(&ran).lines().last().unwrap()).unwrap()
}

#[test]
fn the_page_of_a_measurement_holds_its_net_energy() {
    // The handbook's own two commands; their net energy is by a model where nothing counts.
    let of_model = page(&modelled(&["--idle-baseline=0.1", "--tdp=100"]));
    assert!(seen(&of_model).contains("Joules, net of idle: model, not measured"), "{of_model}");
    let mut counted = measured();
    let energy = |class: &str, best: u64| {
        json!({
            "class": class, "covers": ["package-0"], "gaps": [], "caveats": [],
            "energy_uj": {"lo": best - 100_000, "best": best, "hi": best + 100_000},
        })
    };
    for (run, gross) in [(0, 12_500_000), (1, 38_600_000)] {
        let run = &mut counted["runs"][run];
        run["sum"] = energy("measured", gross);
        run["net"] = energy("attributed", gross - 2_200_000);
        run.as_object_mut().unwrap().retain(|key, _| !key.starts_with("model"));
    }
    let page = page(&counted);
    let seen = seen(&page);
    assert!(seen.contains("Joules per byte, net of idle"), "{seen}");
    assert!(seen.contains("10.3 J ± 0.1, attributed"), "{seen}");
    assert!(seen.contains("energy, mean of 2 runs") && seen.contains("runs from 12.5 to 38.6 J"));
    assert!(seen.contains("net of idle, mean of 2 runs"), "{seen}");
    for given in ["Linux ", env!("CARGO_PKG_VERSION"), " UTC"] {
        assert!(seen.contains(given), "{given}");
    }
    assert!(!seen.contains("not in the document"), "{seen}");
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
