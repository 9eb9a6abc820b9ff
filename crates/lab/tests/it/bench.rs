//! The benches run, check their results' form, and never show a rate that was not measured.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use wattlock_testing::{assert_exit, stderr, stdout};

use crate::lab;

fn json(args: &[&str]) -> serde_json::Value {
    let ran = lab().arg("bench").args(args).args(["--json", "-"]).output().unwrap();
    assert_exit(&ran, 0);
    serde_json::from_str(&stdout(&ran)).unwrap()
}

#[test]
fn ciphers_are_compared_with_their_peers() {
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
        wattlock_testing::skip("openssl", &skipped);
        assert!(skipped.contains("openssl"));
    }
}

#[test]
fn a_case_that_is_none_is_answered_with_those_that_are() {
    let refused = lab().args(["bench", "ciphers", "--quick", "--only", "zzz"]).output().unwrap();
    assert_exit(&refused, 2);
    let said = stderr(&refused);
    assert!(said.contains("no case has \"zzz\" in its name; the cases are"), "{said}");
    for name in ["aes-256-ctr", "sha3-256, 8 messages", "aes-128-gcm seal", "rc4"] {
        assert!(said.lines().any(|line| line == format!("  {name}")), "{name}: {said}");
    }
}

#[test]
fn what_a_bench_cannot_do_is_said_before_it_starts() {
    let narrow = "the window of 1024 bytes cannot hold the longest message (153600 bytes); choose a \
                  larger --window";
    for (args, code, why) in [
        (&["files", "--size", "0"][..], 2, "--size"),
        (&["files", "--rounds", "0"], 2, "give a whole number from 1 to"),
        (&["files", "--threads", "0"], 2, "give a whole number from 1 to"),
        (&["files", "--device", "abacus"], 2, "abacus"),
        (&["files", "--device", "cuda:99"], 4, "cuda"),
        (&["stream", "--window", "1K"], 2, narrow),
        (&["https", "--openssl-newest", "/nowhere"], 4, "no nginx with OpenSSL at /nowhere/bin"),
    ] {
        let refused = lab().arg("bench").args(args).output().unwrap();
        assert_exit(&refused, code);
        let said = stderr(&refused);
        assert!(said.contains(why) && !said.contains("warm-up"), "{args:?}: {said}");
    }
}

#[test]
fn streams_are_measured_by_latency_and_at_saturation() {
    let results = json(&["stream", "--quick", "--users", "30", "--check-all"]);
    assert_eq!(results["kind"], "stream");
    let rows = results["rows"].as_array().unwrap();
    let mut by_latency = 0;
    for row in rows {
        let number = |key: &str| row[key].as_u64().or(row[key]["median"].as_u64()).unwrap();
        if row["case"].as_str().unwrap().starts_with("latency") {
            assert_eq!((number("messages"), &row["tool"]), (30, &"wattlock paced".into()), "{row}");
            assert_eq!(row["bytes"], results["settings"]["bytes"], "{row}");
            assert!(number("cipher_ns") > 0 && row["refusals"].is_u64(), "{row}");
            by_latency += 1;
        }
        if row["case"] != "92 KiB, engine alone" {
            let delays = ["delay_p50_ns", "delay_p99_ns", "delay_p999_ns"].map(number);
            assert!(delays.is_sorted() && delays[0] > 0, "{row}");
        }
    }
    assert_eq!((by_latency, rows.len()), (2, 5));
    // A quick look gives no verdict.
    assert!(results["ratios"].as_array().unwrap().iter().all(|ratio| ratio["met"].is_null()));
    // Modelled joules have keys of their own.
    let text = results["rows"].to_string();
    assert!(!text.contains("\"class\":\"modelled\"") || text.contains("model_pj_per_byte"));
}

#[test]
fn a_report_is_made_of_a_stream() {
    let directory = tempfile::tempdir().unwrap();
    let [from, to] = ["stream.json", "page.html"].map(|name| directory.path().join(name));
    let ran = lab()
        .args(["bench", "stream", "--quick", "--users", "10", "--json"])
        .arg(&from)
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    assert!(stdout(&ran).contains("AES-256-GCM here / CS of LECPAES as printed"));
    let ran = lab().arg("report").arg(&from).arg("-o").arg(&to).output().unwrap();
    assert_exit(&ran, 0);
    let page = std::fs::read_to_string(to).unwrap();
    for title in ["Throughput", "CPU time", "Delay of 99 in 100 messages"] {
        assert!(page.contains(&format!("<h3>{title}</h3>")), "{title}");
    }
    assert!(page.contains("wattlock paced"), "who it was");
}
