//! The benches run, check their results' form, and never show a rate that was not measured.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use wattlock_engine::crypto::GcmKernel;
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

/// What each row of messages says: time by CPU, messages, and what the machine did meanwhile.
#[test]
fn messages_are_measured_by_the_time_of_their_thread() {
    let results = json(&["ciphers", "--quick", "--only", "aes-256-gcm"]);
    let rows = results["rows"].as_array().unwrap();
    let of = |case: &str| {
        let rows = rows.iter().filter(|row| row["case"] == case);
        rows.filter(|row| row["tool"] == "wattlock").collect::<Vec<_>>()
    };
    for case in ["aes-256-gcm seal", "aes-256-gcm open"] {
        for kernel in GcmKernel::all() {
            let rows = of(case).into_iter().filter(|row| row["kernel"] == kernel.name());
            let lengths: Vec<_> = rows.map(|row| row["call_bytes"].as_u64().unwrap()).collect();
            assert_eq!(lengths, [256, 16 << 10], "{case}, {}", kernel.name());
        }
        for row in of(case) {
            let number = |key: &str| row[key].as_u64().unwrap();
            assert_eq!(number("messages") * number("call_bytes"), number("bytes"), "{row}");
            assert_eq!(number("threads"), 1, "{row}");
            assert!(row["cpu_ns"]["median"].as_u64().unwrap() > 0, "{row}");
        }
    }
    for case in ["aes-256-gcm key", "aes-256-gcm key and seal"] {
        assert!(of(case)[0]["messages"].as_u64().unwrap() > 0, "{case}");
    }
    // Every peer opened what we sealed: one that differs would have no row.
    let skipped = results["skipped"].to_string();
    assert!(!skipped.contains("differs from wattlock"), "{skipped}");
    let load = &results["load_during"];
    assert!(load["others_cpus"].is_f64() && load["stolen_cpus"].is_f64(), "{load}");
    if cfg!(target_arch = "x86_64") && skipped.contains("aes-vaes512") {
        return wattlock_testing::skip("vaes512", &skipped);
    }
    // The bound names what it assumes, and no row of registers is called one.
    let bounds = results["bounds"].as_array().unwrap();
    let bound = bounds.iter().find(|bound| bound["instruction"] == "64-byte vaesenc").unwrap();
    assert_eq!((&bound["case"], &bound["rounds"]), (&"aes-256-gcm".into(), &13.into()));
    assert!(bound["per_cycle"].as_u64().unwrap() >= 1, "{bound}");
    assert!(bound["gb_per_s"].as_f64().unwrap() > 0.0, "{bound}");
    let seals = of("aes-256-gcm seal");
    let long = seals.iter().rfind(|row| row["kernel"] == GcmKernel::best().name()).unwrap();
    assert!(long["fraction_of_instructions"].as_f64().unwrap() > 0.0, "{long}");
}

/// How long a message may be for each kernel of AES-GCM, as the source has it.
#[test]
fn a_table_says_which_kernel_of_gcm_is_fast_for_which_messages() {
    let args = ["bench", "ciphers", "--quick", "--only", "aes-256-gcm seal"];
    let ran = lab().args(args).output().unwrap();
    assert_exit(&ran, 0);
    let text = stdout(&ran);
    assert!(text.contains("wattlock (aws-lc)"), "{text}");
    // On a CPU that runs none of them there is nothing to tell.
    let Some(table) = text.lines().find(|line| line.starts_with("longest message with")) else {
        return wattlock_testing::skip("cpu", "no kernel of AES-GCM of our own");
    };
    let (_, table) = table.split_once(": [").unwrap();
    for entry in table.trim_end_matches(']').split_inclusive("), ") {
        let entry = entry.trim_end_matches(", ").strip_prefix("(\"").unwrap();
        let (kernel, longest) = entry.split_once("\", ").unwrap();
        assert!(text.contains(&format!("wattlock ({kernel})")), "{text}");
        // Of the lengths that a quick run measures.
        assert!(["0)", "256)", "usize::MAX)"].contains(&longest), "{table}");
    }
}

/// The columns of the table, and that a bound is no row.
#[test]
fn the_table_shows_time_by_cpu_and_nanoseconds() {
    let ran = lab()
        .args(["bench", "ciphers", "--quick", "--only", "hmac-sha256, 8 records"])
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    let table = stdout(&ran);
    let head = table.lines().find(|line| line.contains("records, messages of 256 bytes")).unwrap();
    for column in ["threads", "GB/s", "CPU", "ns", "c/B", "isa", "registers", "memory"] {
        assert!(head.split_whitespace().any(|word| word == column), "{column}: {head}");
    }
    for column in ["GB/s ", "CPU ", "ns ", "c/B ", "isa ", "registers ", "memory "] {
        assert!(table.contains(&format!("\n{column}")), "no legend of {column}: {table}");
    }
    assert!(table.contains("\nload: other programs used "), "{table}");
    // A warning stands in the text, and not on standard error as well.
    assert!(!stderr(&ran).contains("warning: "), "{}", stderr(&ran));
    let without_optimisation =
        "warning: this is a build without optimisation: its times say nothing";
    let is_debug = cfg!(debug_assertions);
    assert_eq!(table.matches(without_optimisation).count(), usize::from(is_debug), "{table}");
    if table.contains("OpenSSL 4 (") {
        let absent = "\nnot measured: OpenSSL 4 (this build lacks the feature openssl-vendored)\n";
        assert!(table.contains(absent), "{table}");
    }
    assert!(table.contains("\ntook "), "{table}");
}

/// What the owner of another machine sends: the machine, but not whose it is or where.
#[test]
fn a_submission_names_the_cpu_and_nobody() {
    let directory = tempfile::Builder::new().prefix("trillian").tempdir().unwrap();
    let file = directory.path().join("zaphod.json");
    let ran = lab()
        .args(["bench", "ciphers", "--quick", "--only", "aes-128-gcm key", "--submit"])
        .arg(&file)
        .env("USER", "marvin")
        .env("HOME", "/home/marvin")
        .env("HOSTNAME", "magrathea")
        .output()
        .unwrap();
    assert_exit(&ran, 0);
    assert!(stderr(&ran).contains("wrote "), "{}", stderr(&ran));
    let part = "this file holds only a quick look at the cases of --only \"aes-128-gcm key\"; before you share \
                it, run without --only and --quick";
    assert!(stderr(&ran).contains(part), "{}", stderr(&ran));
    let text = std::fs::read_to_string(&file).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let machine = &document["machine"];
    for key in ["cpu", "cpu_id", "architecture", "kernel"] {
        assert!(!machine[key].as_str().unwrap().is_empty(), "{key}");
    }
    assert!(machine["features"].is_array() && machine["cpus"].is_u64(), "{machine}");
    assert!(document["load_during"]["others_cpus"].is_f64());
    let settings = &document["settings"];
    assert!(settings["aes"].as_str().unwrap().starts_with("aes-"));
    assert!(["gcm-vaes512", "aws-lc"].contains(&settings["gcm"].as_str().unwrap()), "{settings}");
    assert_eq!((&settings["quick"], &settings["only"]), (&true.into(), &"aes-128-gcm key".into()));
    assert!(settings["threads"].is_array(), "{settings}");
    assert!(document["build"]["rustc"].as_str().unwrap().starts_with("rustc "));
    let is_warned = document["warnings"].to_string().contains("without optimisation");
    assert_eq!(is_warned, cfg!(debug_assertions), "{}", document["warnings"]);
    // A key has no bytes, and the number of keys differs: no energy is of them.
    let rows = document["rows"].as_array().unwrap();
    let keys = rows.iter().filter(|row| row["case"] == "aes-128-gcm key");
    keys.for_each(|row| assert!(row["energy"].is_null(), "{row}"));
    assert!(document["tools"]["aws-lc"].is_string());
    // Every kernel of this CPU, those that have to be asked for by name as well.
    let rows = document["rows"].as_array().unwrap();
    for kernel in GcmKernel::all() {
        assert!(rows.iter().any(|row| row["kernel"] == kernel.name()), "{}", kernel.name());
    }

    let of_this_machine = ["/proc/sys/kernel/hostname", "/etc/machine-id"]
        .into_iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|name| name.trim().to_owned())
        // A name that is also a word of ciphers or systems would be found.
        .filter(|name| name.len() > 6);
    let given = ["marvin", "magrathea", "trillian", "zaphod"].map(str::to_owned);
    for name in of_this_machine.chain(given) {
        assert!(!text.contains(&name), "{name}");
    }
    no_paths(&document);

    // It is a document of the same schema: a report can be made of it.
    let page = directory.path().join("page.html");
    let ran = lab().arg("report").arg(&file).arg("-o").arg(&page).output().unwrap();
    assert_exit(&ran, 0);
}

fn no_paths(value: &serde_json::Value) {
    match value {
        serde_json::Value::String(text) => {
            let is_path = |word: &str| word.starts_with(['/', '~']) && word.len() > 1;
            assert!(!text.split([' ', '(', '"', ':']).any(is_path), "{text}");
        }
        serde_json::Value::Array(values) => values.iter().for_each(no_paths),
        serde_json::Value::Object(values) => values.values().for_each(no_paths),
        _ => {}
    }
}

#[test]
fn a_case_that_is_none_is_answered_with_those_that_are() {
    let refused = lab().args(["bench", "ciphers", "--quick", "--only", "zzz"]).output().unwrap();
    assert_exit(&refused, 2);
    let said = stderr(&refused);
    assert!(
        said.ends_with("no word in a name starts with \"zzz\", which --only asks for\n"),
        "{said}"
    );
    for name in ["aes-256-ctr", "sha3-256, 8 messages", "aes-128-gcm seal", "rc4"] {
        assert!(said.lines().any(|line| line == format!("  {name}")), "{name}: {said}");
    }
}

/// "sha384" holds "sha3" too, and is another algorithm.
#[test]
fn a_case_is_chosen_by_the_words_of_its_name() {
    let results = json(&["ciphers", "--quick", "--only", "SHA3"]);
    let rows = results["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["case"] == "sha3-256, 8 messages"));
    for row in rows {
        assert!(row["case"].as_str().unwrap().starts_with("sha3-256"), "{row}");
    }
}

#[test]
fn options_without_effect_are_named() {
    let options = ["--device", "cpu", "--policy", "serial", "--threads", "2"];
    let bench = ["ciphers", "--quick", "--only", "aes-128-gcm key"];
    let skipped = json(&[&bench[..], &options].concat())["skipped"].clone();
    for option in ["--device cpu (no effect", "--policy (no effect", "--threads (no effect"] {
        assert!(skipped.to_string().contains(option), "{option}: {skipped}");
    }
    let skipped = json(&bench)["skipped"].clone();
    assert!(!skipped.to_string().contains("no effect"), "{skipped}");
}

#[test]
fn a_submission_has_a_file_of_its_own() {
    let place = wattlock_testing::Place::new();
    let run = |args: &[&str]| {
        let bench = ["bench", "ciphers", "--quick", "--only", "aes-128-gcm key"];
        lab().current_dir(place.path("")).args(bench).args(args).output().unwrap()
    };
    for (args, why) in [
        (&["--submit", "-"][..], "--submit requires a file"),
        (&["--json", "new", "--submit", "./new"], "--json and --submit name the same file"),
    ] {
        let refused = run(args);
        assert_exit(&refused, 2);
        let said = stderr(&refused);
        assert!(said.contains(why) && !said.contains("0 bytes"), "before it starts: {said}");
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
    let ran = run(&["--json", "-"]);
    assert_exit(&ran, 0);
    assert!(serde_json::from_slice::<serde_json::Value>(&ran.stdout).is_ok());
    assert!(place.names().is_empty(), "no file is named \"-\": {:?}", place.names());
    let help = stdout(&lab().args(["bench", "ciphers", "--help"]).output().unwrap());
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(help.contains("[default: wattlock-ciphers.json]"), "{help}");
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
        (&["https", "--openssl", "/nowhere"], 4, "no nginx with OpenSSL at /nowhere/bin"),
        (&["provider", "--provider", "/nowhere"], 4, "no provider at /nowhere"),
        (&["provider", "--only", "RC4"], 2, "none starts with \"RC4\""),
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

/// The provider that cargo built beside the tests; else says why the test is skipped.
fn provider() -> Option<std::path::PathBuf> {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_wattlock-lab"));
    let name = "libwattlock_provider.so";
    let folders = [program.with_file_name(name), program.with_file_name("deps").join(name)];
    let found = folders.into_iter().find(|file| file.is_file());
    if found.is_none() {
        wattlock_testing::skip("provider", "cargo has not built it");
    }
    found
}

#[test]
fn calls_into_libcrypto_are_measured_with_the_provider_and_without() {
    let Some(provider) = provider() else { return };
    let mut arguments = vec!["provider", "--quick", "--provider", provider.to_str().unwrap()];
    let built = std::path::Path::new(env!("CARGO_BIN_EXE_wattlock-lab")).ancestors();
    let built = built.map(|folder| folder.join("openssl-3.5"));
    let other = built.into_iter().find(|folder| folder.join("stamp-openssl").is_file());
    if let Some(other) = &other {
        arguments.extend(["--openssl", other.to_str().unwrap()]);
    }
    let results = json(&arguments);
    assert_eq!(results["kind"], "provider");
    let rows = results["rows"].as_array().unwrap();
    let versions = if other.is_some() { 2 } else { 1 };
    // AES-GCM is left to OpenSSL on CPUs without AVX-512.
    let skipped = results["skipped"].as_array().unwrap();
    assert!(skipped.iter().all(|why| why.as_str().unwrap().contains("-GCM")), "{skipped:?}");
    // 17 cases of two lengths by two sides.
    assert_eq!(rows.len() + 2 * skipped.len(), versions * 17 * 2 * 2, "{skipped:?}");
    for pair in rows.chunks(2) {
        let [theirs, ours] = pair else { panic!("every row has another side") };
        assert_eq!((&theirs["case"], &theirs["call_bytes"]), (&ours["case"], &ours["call_bytes"]));
        let version = theirs["tool"].as_str().unwrap().strip_prefix("openssl ").unwrap();
        assert_eq!(ours["tool"], format!("wattlock, openssl {version}"));
        assert!(theirs["bytes"].as_u64() > Some(0) && ours["bytes"].as_u64() > Some(0), "{ours}");
    }
    let ratios = results["ratios"].as_array().unwrap();
    assert_eq!(ratios.len(), rows.len() / 2);
    // A quick look gives no verdict.
    assert!(ratios.iter().all(|ratio| ratio["met"].is_null()));
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
