//! `wattlock-lab simulate policies`: what it prints, what it reads, how it ends, and its JSON.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::process::Output;

use serde_json::Value;
use wattlock_testing::{Place, assert_exit, stderr, stdout};

use crate::lab;

const POLICIES: [&str; 5] = ["lecpaes-literal", "lecpaes", "fixed", "race-to-idle", "paced"];

fn policies(args: &[&str]) -> Output {
    lab().args(["simulate", "policies"]).args(args).output().unwrap()
}

fn json(ran: &Output) -> Value {
    assert_exit(ran, 0);
    serde_json::from_slice(&ran.stdout).unwrap()
}

#[test]
fn every_policy_has_a_row_on_every_stream_and_one_for_all() {
    let ran = policies(&["--seconds=4"]);
    assert_exit(&ran, 0);
    assert_eq!(stderr(&ran), "");
    let text = stdout(&ran);
    assert!(text.contains("MODELLED, NOT MEASURED"), "{text}");
    for policy in POLICIES {
        let rows = text.lines().filter(|line| line.split_whitespace().any(|word| word == policy));
        assert_eq!(rows.count(), 14, "{policy}:\n{text}");
    }
    let paced = text.lines().rfind(|line| line.starts_with("paced ")).unwrap();
    assert!(paced.ends_with("13 of 13"), "{paced}");
    assert_eq!(text, stdout(&policies(&["--seconds=4"])), "a seed repeats itself");
    assert_ne!(text, stdout(&policies(&["--seconds=4", "--seed=2"])));
}

#[test]
fn json_tells_the_machine_and_every_row() {
    let place = Place::new();
    let file = place.path("policies.json");
    let ran = policies(&[
        "--seconds=4",
        "--streams=tuning",
        "--seed=5",
        "--json",
        file.to_str().unwrap(),
    ]);
    assert_exit(&ran, 0);
    assert!(stdout(&ran).starts_with("tuning streams of 4 s, seed 5; curve k20m; "));
    let document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
    assert_eq!(document["schema"], "wattlock-policies/1");
    assert_eq!(document["class"], "modelled");
    let drawn = serde_json::json!({ "streams": "tuning", "seconds": 4, "seed": 5 });
    assert_eq!(document["settings"]["drawn"], drawn);
    assert_eq!(document["settings"]["deadline_ns"], 50_000_000);
    let rungs = document["rungs"].as_array().unwrap();
    let hull: Vec<_> = rungs.iter().map(|rung| rung["on_hull"].as_bool().unwrap()).collect();
    assert_eq!(hull, [true, false, false, false, false, true]);
    let trials = document["trials"].as_array().unwrap();
    assert_eq!(trials.len(), 13);
    for trial in trials {
        let bound = trial["model_bound_uj"].as_u64().unwrap();
        let rows = trial["policies"].as_array().unwrap();
        for (row, policy) in rows.iter().zip(POLICIES) {
            assert_eq!(row["policy"], policy);
            let delay = |name: &str| row["delay_ns"][name].as_u64().unwrap();
            assert!(delay("p50") <= delay("p99") && delay("p99") <= delay("max"), "{row}");
            if delay("max") <= 50_000_000 && row["refusals_per_message"] == 0.0 {
                assert!(row["model_energy_uj"].as_u64().unwrap() >= bound, "{row} {bound}");
            }
        }
    }
    let kept = |mean: &Value| mean["kept"].as_u64().unwrap();
    let means = document["means"].as_array().unwrap();
    assert!(kept(&means[4]) == 13 && kept(&means[4]) > kept(&means[1]), "{means:?}");
    let alone = json(&policies(&["--seconds=1", "--json"]));
    assert_eq!(alone["settings"]["drawn"]["seed"], 1);
}

#[test]
fn curves_and_traces_come_from_files() {
    let place = Place::new();
    let (curve, trace) = (place.path("curve.csv"), place.path("trace.txt"));
    let header = "name,speed,rate_mib_per_s,floor_w,joules_per_mib,settle_ms";
    fs::write(&curve, format!("# two\n{header}\nslow,1,100,10,0.1,1\nfast,2,200,30,0.1,1\n"))
        .unwrap();
    // A message of 1 MiB each 20 ms, for 2 s: the slow rung does.
    let messages: String =
        (0..=100).map(|at| format!("{} 1048576\n", f64::from(at) * 0.02)).collect();
    fs::write(&trace, format!("# seconds bytes\n{messages}")).unwrap();
    let (curve_name, trace_name) = (curve.to_str().unwrap(), trace.to_str().unwrap());
    let document = json(&policies(&["--curve", curve_name, "--stream", trace_name, "--json"]));
    assert_eq!(
        (&document["platform"], &document["settings"]["trace"]),
        (&curve_name.into(), &trace_name.into())
    );
    let trials = document["trials"].as_array().unwrap();
    assert_eq!((trials.len(), &trials[0]["messages"]), (1, &101.into()));
    // 2.05 s at 10 W, and 101 MiB.
    assert_eq!(trials[0]["model_bound_uj"], 20_500_000 + 10_100_000);
    let lecpaes = &trials[0]["policies"][1];
    assert_eq!((&lecpaes["clock_calls"], &lecpaes["keeps"]), (&0.into(), &true.into()));
    fs::write(&curve, format!("{header}\nslow,1,100,10,0.1,6\nfast,2,200,30,0.1,6\n")).unwrap();
    let ran = policies(&["--curve", curve_name, "--stream", trace_name]);
    assert_exit(&ran, 0);
    assert!(stderr(&ran).contains("shorter than ten times the 6.0 ms"), "{}", stderr(&ran));
}

#[test]
fn what_cannot_be_read_is_named_by_file_and_line() {
    let place = Place::new();
    let (curve, trace) = (place.path("curve.csv"), place.path("trace.txt"));
    fs::write(&curve, "name,speed\n").unwrap();
    fs::write(&trace, "0 1000\n1 many\n").unwrap();
    let (curve, trace) = (curve.to_str().unwrap(), trace.to_str().unwrap());
    for (args, exit, said) in [
        (&["--curve", curve][..], 1, "curve.csv: line 1: is not \"name,"),
        (&["--stream", trace], 1, "trace.txt: line 2: does not end with a number of bytes\n"),
        (&["--curve", "k40"], 1, "cannot read the curve k40; use k20m or a CSV file"),
        (&["--stream", "nowhere"], 1, "cannot read the trace nowhere"),
        (
            &["--stream", "/dev/zero"],
            1,
            "cannot read the trace /dev/zero: it is larger than 64 MiB",
        ),
        (&["--curve", "/dev/zero"], 1, "CSV file: it is larger than 1 MiB"),
        (&["--stream", trace, "--seed", "1"], 2, "cannot be used with"),
        (&["--seconds", "0"], 2, "give a whole number from 1 to 3600"),
        (&["--json", "/nowhere/policies.json"], 1, "cannot write /nowhere/policies.json"),
    ] {
        let ran = policies(args);
        assert_exit(&ran, exit);
        assert!(stderr(&ran).contains(said), "{args:?}: {}", stderr(&ran));
        assert_eq!(stdout(&ran), "");
    }
}

#[test]
fn what_a_file_holds_is_not_repeated() {
    let place = Place::new();
    let file = place.path("file");
    let header = "name,speed,rate_mib_per_s,floor_w,joules_per_mib,settle_ms";
    for (flag, text, expected) in [
        (
            "--stream",
            "0 \x1b[2J\u{202e}\n".to_owned(),
            "line 1: does not end with a number of bytes",
        ),
        ("--stream", "AGE-SECRET-KEY-1QQ\n".to_owned(), "line 1: is not \"seconds bytes\""),
        ("--stream", "0 4000000000\n".to_owned(), "line 1: a message has 1 to "),
        ("--curve", "AGE-SECRET-KEY-1QQ\n".to_owned(), "line 1: is not \"name,"),
        ("--curve", format!("{header}\na,\x1b[2J,1,1,1,1\n"), "line 2: speed is not a number"),
    ] {
        fs::write(&file, text).unwrap();
        let ran = policies(&[flag, file.to_str().unwrap()]);
        assert_exit(&ran, 1);
        let said = stderr(&ran);
        assert!(said.contains(expected), "{said:?}");
        for held in ["\x1b", "[2J", "\u{202e}", "AGE-SECRET-KEY", "4000000000"] {
            assert!(!said.contains(held), "{said:?}");
        }
    }
}
