//! `wattlock-lab bench https`: with OpenSSL's own ciphers alone, and what is said where the provider is
//! missing. No time is asserted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use wattlock_testing::{Place, assert_exit, has_program, stderr, stdout, wait_until};

use crate::lab;

const SUITE: &str = "ECDHE-RSA-AES256-GCM-SHA384";

/// True if pages can be served; else says why the test is skipped.
fn can_serve() -> bool {
    let nginx = has_program("nginx") || Path::new("/usr/sbin/nginx").is_file();
    nginx && ["wrk", "curl", "openssl", "taskset"].into_iter().all(has_program)
}

/// Command lines of all processes that name `directory`.
pub fn processes_in(directory: &Path) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = fs::read(entry.unwrap().path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    all.filter(|line| line.contains(directory.to_str().unwrap())).collect()
}

#[test]
fn pages_are_served_and_reported_and_nothing_is_left() {
    if !can_serve() {
        return;
    }
    let place = Place::new();
    let ran = lab()
        .args(["bench", "https", "--quick", "--sizes", "16K", "--suites", SUITE, "--json", "-"])
        .env("TMPDIR", place.path("d"))
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    let results: Value = serde_json::from_str(&stdout(&ran)).unwrap();
    assert_eq!(
        (&results["schema"], &results["kind"]),
        (&Value::from("wattlock-results/1"), &Value::from("https"))
    );
    let row = |tool: &str, case: &str| {
        let rows = results["rows"].as_array().unwrap().iter();
        rows.clone().find(|row| row["tool"] == tool && row["case"] == case).unwrap().clone()
    };
    let page = row("openssl", &format!("{SUITE}, 16 KiB"));
    assert_eq!(page["bytes"], 16384);
    for key in ["wall_ns", "requests"] {
        assert!(page[key]["median"].as_u64().unwrap() > 0, "{page}");
    }
    let negotiated = &results["settings"]["negotiated"][format!("{SUITE}, openssl")];
    assert!(negotiated.as_str().unwrap().contains("TLSv1.2"), "{negotiated}");
    for tool in ["openssl speed", "wattlock engine"] {
        assert!(row(tool, "aes-256-cbc, 64 KiB")["wall_ns"]["median"].as_u64().unwrap() > 0);
    }
    // The results name each contender that did not take part.
    let tools: Vec<_> =
        results["rows"].as_array().unwrap().iter().map(|row| &row["tool"]).collect();
    for tool in ["wattlock single records", "wattlock reconstruction", "wattlock EECA, simulated"] {
        // Absent if nothing was.
        let mut skipped = results["skipped"].as_array().into_iter().flatten();
        let said = skipped.any(|why| why.as_str().unwrap().contains(tool));
        assert!(said != tools.contains(&&Value::from(tool)), "{tool}: {results}");
    }
    let mut skipped = results["skipped"].as_array().unwrap().iter();
    let missing = "--openssl names the folder of one, which `make openssl-all` builds";
    assert!(skipped.any(|why| why.as_str().unwrap().contains(missing)), "{results}");
    assert_eq!(place.names(), [""; 0]);
    wait_until("nginx is gone", || processes_in(&place.path("d")).is_empty());
}

/// What `cargo xtask openssl` built; else says why the test is skipped.
fn other_openssl() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_wattlock-lab"));
    let mut folders = program.ancestors().map(|folder| folder.join("openssl-3.5"));
    let found = folders.find(|folder| folder.join("stamp-nginx").is_file());
    if found.is_none() {
        wattlock_testing::skip("openssl-3.5", "`cargo xtask openssl` has not built it");
    }
    found
}

#[test]
fn another_openssl_serves_as_well_as_the_installed_one() {
    let Some(other) = other_openssl().filter(|_| can_serve()) else { return };
    let place = Place::new();
    let ran = lab()
        .args(["bench", "https", "--quick", "--sizes", "128K", "--suites", SUITE, "--json", "-"])
        .arg("--openssl")
        .arg(&other)
        .env("TMPDIR", place.path("d"))
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    let results: Value = serde_json::from_str(&stdout(&ran)).unwrap();
    let output = Command::new(other.join("bin/openssl")).arg("version").output().unwrap();
    let line = stdout(&output);
    let version = line.split(' ').nth(1).unwrap();
    assert_eq!(results["settings"]["openssl_others"][0], version);
    let has_row = |tool: &str| {
        let mut rows = results["rows"].as_array().unwrap().iter();
        rows.any(|row| row["tool"] == tool && row["case"] == format!("{SUITE}, 128 KiB"))
    };
    for tool in
        ["openssl", &format!("openssl {version}"), &format!("openssl {version}, 124k buffers")]
    {
        assert!(has_row(tool), "{tool}: {results}");
    }
    let ran_with = results["tools"][format!("openssl {version}")].as_str().unwrap();
    assert!(ran_with.contains(&format!("OpenSSL {version} ")), "{ran_with}");
    // If the provider is built, both use it, as its counters show.
    let single = format!("wattlock single records, {version}");
    let ours = format!("wattlock reconstruction, {version}");
    for tool in [&ours, &single] {
        assert_eq!(has_row("wattlock reconstruction"), has_row(tool), "{tool}: {results}");
    }
    if has_row(&ours) {
        let counted = &results["settings"]["counted"][format!("{SUITE}, {ours}")];
        let together = &counted["paths"]["gcm-multiblock"]["calls"];
        assert!(together.as_u64().unwrap() > 0, "{counted}");
    }
}

/// Pages that curl compared with the files, by the suites that each of them has.
#[test]
fn servers_without_openssl_take_part() {
    if !can_serve() {
        return;
    }
    let place = Place::new();
    let cbc = "ECDHE-RSA-AES256-SHA384";
    let suites = format!("{SUITE},TLS_AES_256_GCM_SHA384,{cbc}");
    let ran = lab()
        .args(["bench", "https", "--quick", "--sizes", "512K", "--suites", &suites])
        .args(["--json", "-"])
        .env("TMPDIR", place.path("d"))
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    let results: Value = serde_json::from_str(&stdout(&ran)).unwrap();
    let has = |tool: &str, suite: &str| {
        let mut rows = results["rows"].as_array().unwrap().iter();
        rows.any(|row| row["tool"] == tool && row["case"] == format!("{suite}, 512 KiB"))
    };
    let says = |start: &str| {
        let mut skipped = results["skipped"].as_array().unwrap().iter();
        skipped.any(|why| why.as_str().unwrap().starts_with(start))
    };
    for suite in [SUITE, "TLS_AES_256_GCM_SHA384"] {
        assert!(has("rustls", suite), "{results}");
        assert!(
            has("Go", suite) || says(&format!("Go, {suite}: go is not installed")),
            "{results}"
        );
    }
    for tool in ["rustls", "Go"] {
        assert!(!has(tool, cbc) && says(&format!("{tool}, {cbc}: ")), "{tool}: {results}");
    }
    assert!(results["tools"]["rustls"].as_str().unwrap().starts_with("rustls 0."), "{results}");
    wait_until("no process is left", || processes_in(&place.path("d")).is_empty());
}

#[test]
fn an_ended_bench_leaves_no_server() {
    if !can_serve() {
        return;
    }
    for signal in ["-INT", "-TERM", "-KILL"] {
        let place = Place::new();
        let mut bench = lab()
            .args(["bench", "https", "--suites", SUITE, "--sizes", "1K", "--seconds", "600"])
            .env("TMPDIR", place.path("d"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let is_serving = || {
            let all = processes_in(&place.path("d"));
            all.iter().any(|line| line.contains("wrk"))
        };
        wait_until("a page is asked for", || is_serving() || bench.try_wait().unwrap().is_some());
        let sent = Command::new("kill").args([signal, &bench.id().to_string()]).status().unwrap();
        assert!(sent.success());
        let ended = bench.wait().unwrap();
        assert!(!ended.success(), "{signal}");
        wait_until("no process is left", || processes_in(&place.path("d")).is_empty());
        if signal != "-KILL" {
            assert_eq!(place.names(), [""; 0], "{signal}");
        }
    }
}

#[test]
fn flags_that_make_no_sense_are_refused() {
    for wrong in [
        &["--sizes", "0"][..],
        &["--sizes", "1T"],
        &["--suites", "ECDHE-RSA-RC4-SHA"],
        &["--seconds", "0"],
        &["--rounds", "0"],
    ] {
        assert_exit(&lab().args(["bench", "https"]).args(wrong).output().unwrap(), 2);
    }
    let missing = ["bench", "https", "--quick", "--provider", "/nowhere/provider.so"];
    let ran = lab().args(missing).output().unwrap();
    assert_exit(&ran, 4);
    assert!(stderr(&ran).contains("no provider at /nowhere/provider.so"), "{}", stderr(&ran));
}

#[test]
fn an_accelerator_that_is_not_there_is_said_before_anything_runs() {
    let bench = |accelerator: &str| {
        let mut command = lab();
        command.args(["bench", "https", "--quick", "--accelerator", accelerator]);
        command.output().unwrap()
    };
    let unknown = bench("gpu");
    assert_exit(&unknown, 2);
    assert!(
        stderr(&unknown).contains("an accelerator is simulated, cuda, cuda:N, opencl"),
        "{}",
        stderr(&unknown)
    );
    let absent = bench("opencl:no such device");
    assert_exit(&absent, 4);
    assert!(stderr(&absent).contains("--accelerator opencl:no such device"), "{}", stderr(&absent));
}
