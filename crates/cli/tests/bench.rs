//! The benches run, check their results' form, and never show a rate that was not measured.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use support::{assert_exit, stdout, wattlock};

fn json(args: &[&str]) -> serde_json::Value {
    let ran = wattlock().arg("bench").args(args).args(["--json", "-"]).output().unwrap();
    assert_exit(&ran, 0);
    serde_json::from_str(&stdout(&ran)).unwrap()
}

#[test]
fn ciphers_beside_their_peers() {
    let results = json(&["ciphers", "--quick", "--only", "aes-256-ctr"]);
    assert_eq!(results["schema"], "wattlock-results/1");
    let rows = results["rows"].as_array().unwrap();
    for tool in ["wattlock", "aws-lc", "rustcrypto"] {
        assert!(rows.iter().any(|row| row["tool"] == tool), "no row of {tool}");
    }
    for row in rows {
        assert!(row["wall_ns"]["median"].as_u64().unwrap() > 0, "{row}");
        assert!(row["bytes"].as_u64().unwrap() > 0, "{row}");
    }
    assert!(results["machine"]["cpu"].as_str().is_some());
    let peers = results["tools"].as_object().unwrap();
    let skipped = results["skipped"].to_string();
    if !peers.contains_key("openssl") {
        println!("skipped: {skipped}");
        assert!(skipped.contains("openssl"));
    }
}

#[test]
fn papers_are_set_beside_ours() {
    let run = |args: &[&str]| {
        let ran = wattlock().arg("bench").args(args).output().unwrap();
        assert_exit(&ran, 0);
        stdout(&ran)
    };
    let study = run(&["ciphers", "--quick", "--paper", "energy"]);
    assert!(study.contains("PARC4-I         51.72     0.3454     131.28     0.0678"), "{study}");
    if study.contains("(model, not measured)") {
        assert!(study.contains("/////") && study.contains("no order is given"), "{study}");
        assert!(!study.contains("the least first") && !study.contains("█"), "{study}");
    }
    let blocks = run(&["blocks", "--quick", "--paper", "--threads", "1,2"]);
    assert!(blocks.contains("1.9900 / 1.5600 / 1.28"), "{blocks}");
    assert!(blocks.contains("fine, inside a block"), "{blocks}");
}

#[test]
fn every_algorithm_of_sefps_is_measured_or_skipped() {
    let results = json(&["files", "--quick", "--paper", "sefps", "--rounds", "1"]);
    assert_eq!(results["kind"], "sefps");
    for row in results["rows"].as_array().unwrap() {
        let case = row["case"].as_str().unwrap();
        assert!(row["hash_ns"]["median"].as_u64().unwrap() > 0, "{case}");
        assert!(row["cipher_ns"]["median"].as_u64().unwrap() > 0, "{case}");
    }
    let ran = |name: &str| results["rows"].to_string().contains(&format!(", {name}, 12.5 MB"));
    let skipped = |name: &str| results["skipped"].to_string().contains(name);
    // What ran on the CPU by OpenCL says so.
    let by_opencl = results["settings"]["devices"].to_string().contains("opencl");
    assert!(!by_opencl || results["skipped"].to_string().contains("by OpenCL") || skipped("GPU"));
    for name in ["csp", "cpp", "gpp", "hpp", "csup", "cpup", "gpup", "hpup"] {
        assert!(ran(name) || skipped(name), "{name} is neither measured nor skipped");
    }
}
