//! Papers on a machine with a GPU, whose driver is a library that stands for NVIDIA's.

use std::fs;

use serde_json::Value;
use wattlock_testing::{Place, stdout};

use super::rows;
use crate::gpu_faults::library;
use crate::lab;

/// What `paper` writes with such a GPU, if its kernels can be built here.
fn with_gpu(args: &[&str]) -> Option<(i32, Value)> {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::copy(library::fake(), path("libcuda.so.1")).unwrap();
    fs::copy(library::kernels()?, path("kernels.so")).unwrap();
    let mut command = lab();
    command.arg("paper").args(args).args(["--quick", "--rounds", "1", "--json", "-"]);
    command.env("WATTLOCK_LIBCUDA", path("libcuda.so.1")).env("WATTLOCK_CACHE", path("cache"));
    let ran = command.output().unwrap();
    let document = serde_json::from_str(&stdout(&ran)).unwrap();
    Some((ran.status.code().unwrap(), document))
}

#[test]
fn sefps_is_measured_on_a_gpu() {
    let Some((code, document)) = with_gpu(&["sefps"]) else { return };
    assert_eq!(code, 1, "two claims are missed by print alone");
    let live = &document["live"];
    assert_eq!(live["settings"]["is_gpu"], true);
    let measured = live["rows"].as_array().unwrap();
    for name in ["protect, gpp", "protect, hpp", "unprotect, gpup", "unprotect, hpup"] {
        let case = format!("{name}, 255 KB");
        let on_it = |row: &&Value| row["case"] == case.as_str() && row["device"] == "cuda:0";
        assert!(measured.iter().any(|row| on_it(&row)), "{case}: {measured:?}");
    }
    let judged = judged("sefps", document, ", 255 KB", ", 12.5 MB");
    let totals = rows(&judged, "Figures 3 and 13, here");
    let hybrid = totals.iter().find(|row| row["item"] == "HPP outperforms GPP").unwrap();
    assert!(hybrid["verdict"] == "held" || hybrid["verdict"] == "missed", "{hybrid}");
}

/// What is said of the same measurements if the quick run had been a whole one, of larger data.
fn judged(paper: &str, mut document: Value, small: &str, large: &str) -> Value {
    for row in document["live"]["rows"].as_array_mut().unwrap() {
        let case = row["case"].as_str().unwrap().replace(small, large);
        row["case"] = case.into();
    }
    document["live"]["settings"].as_object_mut().unwrap().remove("quick");
    let place = Place::new();
    let file = place.path("measured.json");
    fs::write(&file, document.to_string()).unwrap();
    let ran = super::paper(&[paper, "--measured", file.to_str().unwrap(), "--json", "-"]);
    serde_json::from_str(&stdout(&ran)).unwrap()
}

#[test]
fn blocks_are_measured_on_a_gpu() {
    let Some((code, document)) = with_gpu(&["blocks", "--device", "cuda:0"]) else { return };
    assert_eq!(code, 0);
    let measured = document["live"]["rows"].as_array().unwrap();
    let on_it = measured.iter().filter(|row| row["device"] == "cuda:0");
    assert_eq!(on_it.count(), 5, "16 bytes a thread, and four extended blocks");
    let judged = judged("blocks", document, ", 1 MB", ", 4 MB");
    let of_4_mb = |place: &str| {
        let rows = rows(&judged, place).iter();
        let rows = rows.filter(|row| row["item"].as_str().unwrap().starts_with("4 MB"));
        rows.map(|row| row["verdict"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of_4_mb("Table II, here"), ["exempt"; 5], "another machine");
    let gains = of_4_mb("Figure 8, here");
    assert_eq!(gains.len(), 5, "a gain for each block, and whether larger ones gain more");
    assert!(
        gains.iter().all(|verdict| ["held", "missed"].contains(&verdict.as_str())),
        "{gains:?}"
    );
}
