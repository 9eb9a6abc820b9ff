//! The goals of `--goal`: which device does the work follows from what was measured.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;

use serde_json::{Value, json};
use wattlock_testing::{assert_exit, stderr};

use crate::gpu_faults::Machine;

/// A machine whose figures are set.
struct Measured(Machine);

impl Measured {
    /// Calibrates once, and then sets what a meter of the whole machine would have shown: bytes a
    /// second and watts at work of the CPU and of the GPU, and watts at rest.
    fn measures(&self, cpu: (f64, f64), gpu: (f64, f64), idle: f64) {
        let file = self.0.path("cache/profiles.json");
        if !file.exists() {
            let seal = ["calibrate", "--quick", "--device=cuda", "--only=aes-256-gcm seal"];
            assert_exit(&self.0.run(&seal), 0);
        }
        let mut document: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        let profiles = document["machines"][0]["profiles"].as_array_mut().unwrap();
        assert!(profiles.iter().any(|profile| profile["device"] == "cuda:0"), "{profiles:#?}");
        for profile in profiles {
            let (rate, watts) = if profile["device"] == "cpu" { cpu } else { gpu };
            let joules = 1e6 * watts;
            profile["startup_ns"] = json!(1000);
            profile["bytes_per_s"] = json!(rate as u64);
            profile["energy"] = json!({
                "class": "measured",
                "energy_uj": { "lo": joules as u64, "best": joules as u64, "hi": joules as u64 },
                "covers": ["outlet"],
                "bytes": rate as u64,
                "idle_uw": (1e6 * idle) as u64,
            });
        }
        fs::write(file, document.to_string()).unwrap();
    }

    /// The devices that took part in `protect` with this goal, and the bytes of each.
    fn devices(&self, goal: &str) -> Vec<(String, u64)> {
        let args = ["protect", "-f", "-i", "key", "--json", "--goal", goal, "plain"];
        let ran = self.0.run(&args);
        assert_exit(&ran, 0);
        assert_exit(&self.0.run(&["unprotect", "-f", "-i", "key", "-o", "again", "plain.wlk"]), 0);
        assert!(fs::read(self.0.path("again")).unwrap() == fs::read(self.0.path("plain")).unwrap());
        let summary: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let device = |device: &Value| {
            (device["name"].as_str().unwrap().to_owned(), device["bytes"].as_u64().unwrap())
        };
        let devices = summary["devices"].as_array().unwrap().iter().map(device);
        let devices: Vec<_> = devices.filter(|(_, bytes)| *bytes > 0).collect();
        assert!(!devices.is_empty(), "{}", stderr(&ran));
        devices
    }
}

#[test]
fn time_and_energy_choose_different_devices() {
    let Some(machine) = Machine::new().map(Measured) else { return };
    // The CPU is eight times as fast, at twenty times the power.
    machine.measures((8e9, 400.0), (1e9, 20.0), 15.0);
    let names = |goal| machine.devices(goal).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!(names("energy"), ["cuda:0"]);
    // Whether the GPU gets a piece before the CPU has done them all is not fixed.
    for goal in ["time", "edp"] {
        assert!(names(goal).contains(&"cpu".to_owned()), "{goal}: {:?}", names(goal));
    }
    // A GPU that needs as much is left out.
    machine.measures((8e9, 80.0), (1e9, 75.0), 15.0);
    assert_eq!(names("energy"), ["cpu"]);
}

/// A meter of a machine whose CPU takes 90 kW at work, whose GPU takes 5 W, and which takes 1 W at
/// rest. The GPU works if there were launches lately, and the CPU if the program used a fifth of one:
/// a device that stands still for one or two readings has not stopped.
const METER: &str = r#"--meter=
    before=0 used=0 gpu=0 cpu=0
    while sleep 0.1; do
        read -r launches < launches
        read -r stat < /proc/$PPID/stat
        set -- ${stat##*)}
        now=$((${12} + ${13}))
        [ "$launches" = "$before" ] || gpu=3
        [ $((now - used)) -lt 2 ] || cpu=3
        if [ $gpu -gt 0 ]; then
            echo "5 W ± 0"
        elif [ $cpu -gt 0 ]; then
            echo "90000 W ± 0"
        else
            echo "1 W ± 0"
        fi
        before=$launches used=$now gpu=$((gpu - 1)) cpu=$((cpu - 1))
    done"#;

#[test]
#[ignore = "for make test-all"]
fn soak_of_a_meter_by_which_time_and_energy_choose_different_devices() {
    let Some(machine) = Machine::new().map(Measured) else { return };
    fs::write(machine.0.path("launches"), "0\n").unwrap();
    let seal = ["calibrate", "--device=cuda", "--only=aes-256-gcm seal", METER];
    let ran = machine.0.run(&seal);
    assert_exit(&ran, 0);
    let names = |goal| machine.devices(goal).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    let measured = fs::read_to_string(machine.0.path("cache/profiles.json")).unwrap();
    assert_eq!(names("energy"), ["cuda:0"], "{measured}");
    assert!(names("time").contains(&"cpu".to_owned()));
}

#[test]
#[ignore = "for make test-all"]
fn soak_of_a_meter_whose_samples_profiles_keep() {
    let machine = tempfile::tempdir().unwrap();
    let meter = "--meter=while :; do echo 40 W; sleep 0.02; done";
    let mut command = crate::support::wattlock();
    command.args(["calibrate", "--device=cpu", "--only=aes-256-gcm seal", meter]);
    let ran = command.env("WATTLOCK_CACHE", machine.path()).output().unwrap();
    assert_exit(&ran, 0);
    let profiles = fs::read(machine.path().join("profiles.json")).unwrap();
    let document: Value = serde_json::from_slice(&profiles).unwrap();
    for profile in document["machines"][0]["profiles"].as_array().unwrap() {
        let energy = &profile["energy"];
        assert_eq!(
            (&energy["class"], &energy["covers"][0]),
            (&json!("integrated"), &json!("wall"))
        );
        assert!(energy["idle_uw"].as_u64().unwrap().abs_diff(40_000_000) < 2_000_000, "{energy:#}");
    }
}
