//! `wattlock bench https` and `wattlock provider`: with OpenSSL's own ciphers alone, and what is
//! said where the provider is missing. No time is asserted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::{Place, assert_exit, installed, stderr, stdout, wattlock};
use serde_json::Value;
use wattlock_testing::wait_until;

const SUITE: &str = "ECDHE-RSA-AES256-GCM-SHA384";

/// True if pages can be served; else says why the test is skipped.
fn can_serve() -> bool {
    let nginx = installed("nginx") || Path::new("/usr/sbin/nginx").is_file();
    nginx && ["wrk", "curl", "openssl", "taskset"].into_iter().all(installed)
}

/// Command lines of all processes that name `directory`.
fn processes_in(directory: &Path) -> Vec<String> {
    let all = fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let line = fs::read(entry.unwrap().path().join("cmdline")).ok()?;
        Some(String::from_utf8_lossy(&line).replace('\0', " "))
    });
    all.filter(|line| line.contains(directory.to_str().unwrap())).collect()
}

#[test]
fn pages_are_served_and_told_and_nothing_is_left() {
    if !can_serve() {
        return;
    }
    let place = Place::new();
    let ran = wattlock()
        .args(["bench", "https", "--quick", "--sizes", "16K", "--suites", SUITE, "--json", "-"])
        .args(["--openssl-newest", "/nowhere"])
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
    // Whoever did not take part is named.
    let tools: Vec<_> =
        results["rows"].as_array().unwrap().iter().map(|row| &row["tool"]).collect();
    for tool in ["wattlock single records", "wattlock reconstruction", "wattlock EECA, simulated"] {
        // Absent if nothing was.
        let mut skipped = results["skipped"].as_array().into_iter().flatten();
        let said = skipped.any(|why| why.as_str().unwrap().contains(tool));
        assert!(said != tools.contains(&&Value::from(tool)), "{tool}: {results}");
    }
    let mut skipped = results["skipped"].as_array().unwrap().iter();
    let missing = "no nginx with OpenSSL at /nowhere/bin/nginx; `make openssl` builds it";
    assert!(skipped.any(|why| why.as_str().unwrap().contains(missing)), "{results}");
    assert_eq!(place.names(), [""; 0]);
    wait_until("nginx is gone", || processes_in(&place.path("d")).is_empty());
}

/// What `cargo xtask openssl` built; else says why the test is skipped.
fn newest_openssl() -> Option<PathBuf> {
    let program = Path::new(env!("CARGO_BIN_EXE_wattlock"));
    let mut folders = program.ancestors().map(|folder| folder.join("openssl-newest"));
    let found = folders.find(|folder| folder.join("stamp-nginx").is_file());
    if found.is_none() {
        wattlock_testing::skip("openssl-newest", "`cargo xtask openssl` has not built it");
    }
    found
}

#[test]
fn the_newest_openssl_serves_beside_the_installed_one() {
    let Some(newest) = newest_openssl().filter(|_| can_serve()) else { return };
    let place = Place::new();
    let ran = wattlock()
        .args(["bench", "https", "--quick", "--sizes", "128K", "--suites", SUITE, "--json", "-"])
        .arg("--openssl-newest")
        .arg(&newest)
        .env("TMPDIR", place.path("d"))
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    let results: Value = serde_json::from_str(&stdout(&ran)).unwrap();
    let told = Command::new(newest.join("bin/openssl")).arg("version").output().unwrap();
    let told = stdout(&told);
    let version = told.split(' ').nth(1).unwrap();
    assert_eq!(results["settings"]["openssl_newest"], version);
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
    // Where the provider is built, it works in both, and its counters tell that.
    let ours = format!("wattlock reconstruction, {version}");
    assert_eq!(has_row("wattlock reconstruction"), has_row(&ours), "{results}");
    if has_row(&ours) {
        let counted = &results["settings"]["counted"][format!("{SUITE}, {ours}")];
        let together = &counted["paths"]["gcm-multiblock"]["calls"];
        assert!(together.as_u64().unwrap() > 0, "{counted}");
    }
}

#[test]
fn an_ended_bench_leaves_no_server() {
    if !can_serve() {
        return;
    }
    for signal in ["-INT", "-TERM", "-KILL"] {
        let place = Place::new();
        let mut bench = wattlock()
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
fn the_study_is_set_beside_ours() {
    let place = Place::new();
    let ran = wattlock()
        .args(["bench", "https", "--quick", "--paper", "--sizes", "1K"])
        .args(["--suites", "ECDHE-RSA-AES256-SHA384"])
        .env("TMPDIR", place.path("d"))
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    let text = stdout(&ran);
    assert!(text.contains("966.23      900.66"), "{text}");
    assert!(!can_serve() || text.contains("ECDHE-RSA-AES256-SHA384\n"), "{text}");
    if can_serve() && installed("ab") {
        assert!(text.contains("1 KiB, by ab    openssl "), "{text}");
    }
    assert!(text.contains("openssl speed") && text.contains("wattlock engine"), "{text}");
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
        assert_exit(&wattlock().args(["bench", "https"]).args(wrong).output().unwrap(), 2);
    }
    let missing = ["bench", "https", "--quick", "--provider", "/nowhere/provider.so"];
    let ran = wattlock().args(missing).output().unwrap();
    assert_exit(&ran, 4);
    assert!(stderr(&ran).contains("no provider at /nowhere/provider.so"), "{}", stderr(&ran));
}

#[test]
fn a_check_without_a_provider_says_so() {
    let place = Place::new();
    let check = |provider: &Path| {
        wattlock().args(["provider", "check", "--provider"]).arg(provider).output().unwrap()
    };
    let ran = check(&place.path("none.so"));
    assert_exit(&ran, 4);
    assert!(stderr(&ran).contains("no provider at "), "{}", stderr(&ran));
    let text = place.write("text.so", b"no module");
    let ran = wattlock()
        .args(["provider", "check", "--openssl", "/nowhere/openssl", "--provider"])
        .arg(&text)
        .output()
        .unwrap();
    assert_exit(&ran, 4);
    assert!(stderr(&ran).contains("no program at /nowhere/openssl"), "{}", stderr(&ran));
    if !installed("openssl") {
        return;
    }
    // A file that is no module, and a module that is no provider.
    let ran = check(&text);
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("does not load the provider"), "{}", stderr(&ran));
    assert!(stdout(&ran).is_empty());
}

#[test]
fn the_configuration_is_read_by_openssl() {
    if !installed("openssl") {
        return;
    }
    // Any provider will do, under a path with everything that means something in such a file.
    let told = Command::new("openssl").args(["version", "-m"]).output().unwrap();
    let Some(folder) = stdout(&told).split('"').nth(1).map(str::to_owned) else {
        return wattlock_testing::skip("openssl", "this OpenSSL has no folder of modules");
    };
    let Ok(module) = fs::read(Path::new(&folder).join("legacy.so")) else {
        return wattlock_testing::skip("openssl", format_args!("{folder} has no legacy.so"));
    };
    let place = Place::new();
    let provider = place.write("d/a $b #c\"'d.so", &module);
    let made = wattlock()
        .args(["provider", "config", "--statistics", "d $", "--provider"])
        .arg(&provider)
        .output()
        .unwrap();
    assert_exit(&made, 0);
    let text = stdout(&made);
    assert!(text.contains("?provider=wattlock") && text.contains("statistics = d \\$"), "{text}");
    let configuration = place.write("openssl.cnf", text.as_bytes());
    let listed = Command::new("openssl")
        .args(["list", "-providers"])
        .env("OPENSSL_CONF", configuration)
        .output()
        .unwrap();
    let said = stdout(&listed);
    assert!(said.contains("OpenSSL Default Provider"), "{said}");
    assert!(said.contains("OpenSSL Legacy Provider"), "{said}{}", stderr(&listed));
    assert!(said.lines().any(|line| line.trim() == "wattlock"), "{said}");
}

#[test]
fn what_the_provider_is_told_is_what_it_takes() {
    let place = Place::new();
    let module = place.write("d/provider.so", b"not looked at");
    let config = |args: &[&str]| {
        let mut command = wattlock();
        command.args(["provider", "config", "--provider"]).arg(&module).args(args);
        command.output().unwrap()
    };
    let all = config(&[
        "--accelerator",
        "simulated:rate=6e9,latency_us=29",
        "--threshold",
        "8192",
        "--migration",
        "paper",
        "--multiblock",
        "off",
        "--paper-mode",
    ]);
    assert_exit(&all, 0);
    for line in [
        "accelerator = simulated:rate=6e9,latency_us=29",
        "threshold = 8192",
        "migration = paper",
        "multiblock = 0",
        "paper_mode = 1",
    ] {
        assert!(stdout(&all).lines().any(|found| found == line), "{line}: {}", stdout(&all));
    }
    let none = config(&[]);
    assert_exit(&none, 0);
    for name in ["accelerator", "threshold", "migration", "multiblock", "paper_mode"] {
        assert!(!stdout(&none).contains(&format!("{name} =")), "{}", stdout(&none));
    }
    for (args, reason) in [
        (["--accelerator", "abacus"], "the setting accelerator is"),
        (["--accelerator", "simulated:speed=1"], "the setting accelerator is"),
        (["--threshold", "much"], "the setting threshold is neither"),
        (["--threshold", "8k"], "the setting threshold is neither"),
        (["--migration", "later"], "possible values: sooner, paper, never"),
        (["--multiblock", "1"], "possible values: on, off"),
    ] {
        let refused = config(&args);
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains(reason), "{args:?}: {}", stderr(&refused));
    }
    let both = config(&["--nginx"]);
    assert_exit(&both, 2);
}

#[test]
fn nginx_reads_its_settings() {
    let made = wattlock().args(["provider", "config", "--nginx"]).output().unwrap();
    assert_exit(&made, 0);
    let settings = stdout(&made);
    assert!(settings.contains("ssl_buffer_size 124k;"), "{settings}");
    if !can_serve() {
        return;
    }
    let place = Place::new();
    let text = format!(
        "pid {0}/pid;\nerror_log stderr;\nevents {{}}\nhttp {{\naccess_log off;\n{settings}\n\
         server {{ listen 127.0.0.1:1 ssl; ssl_certificate {1}/cert.pem; ssl_certificate_key {1}/key.pem; }}\n}}\n",
        place.path("d").display(),
        wattlock_testing::certificate().display()
    );
    let conf = place.write("d/nginx.conf", text.as_bytes());
    let mut path = std::env::var_os("PATH").unwrap();
    path.push(":/usr/sbin");
    let tested =
        Command::new("nginx").env("PATH", path).arg("-t").arg("-c").arg(conf).output().unwrap();
    // The port is not opened by a test of the configuration on every version.
    assert!(stderr(&tested).contains("syntax is ok"), "{}", stderr(&tested));
}

#[test]
fn an_accelerator_that_is_not_there_is_said_before_anything_runs() {
    let bench = |accelerator: &str| {
        let mut command = wattlock();
        command.args(["bench", "https", "--quick", "--accelerator", accelerator]);
        command.output().unwrap()
    };
    let unknown = bench("gpu");
    assert_exit(&unknown, 2);
    assert!(
        stderr(&unknown).contains("an accelerator is simulated, opencl"),
        "{}",
        stderr(&unknown)
    );
    let absent = bench("opencl:no such device");
    assert_exit(&absent, 4);
    assert!(stderr(&absent).contains("--accelerator opencl:no such device"), "{}", stderr(&absent));
}
