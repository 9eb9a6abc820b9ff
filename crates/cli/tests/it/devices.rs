//! `wattlock calibrate` and `wattlock devices`: what is said before and after, and of files that
//! cannot be used. No time is asserted.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use crate::support::{assert_exit, names, stderr, stdout, wattlock};
use serde_json::Value;

const OPERATIONS: usize = 15;

/// A cache directory of its own.
struct Cache(tempfile::TempDir);

impl Cache {
    fn empty() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    /// With profiles of one operation.
    fn calibrated() -> Self {
        let cache = Self::empty();
        assert_exit(&cache.run(&["calibrate", "--quick", "--only=aes-128-gcm seal"]), 0);
        cache
    }

    fn file(&self) -> PathBuf {
        self.0.path().join("profiles.json")
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = wattlock();
        command.args(args).env("WATTLOCK_CACHE", self.0.path());
        command
    }

    /// `wattlock ARGS…`
    fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// The JSON that `wattlock ARGS…` prints, of its only device.
    fn device(&self, args: &[&str]) -> Value {
        let ran = self.run(args);
        assert_exit(&ran, 0);
        let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
        assert_eq!(document["schema"], "wattlock-devices/1");
        assert_eq!(document["profiles_path"], self.file().to_str().unwrap());
        let devices = document["devices"].as_array().unwrap();
        assert_eq!((devices.len(), &devices[0]["device"]), (1, &Value::from("cpu")));
        devices[0].clone()
    }
}

fn cpus() -> usize {
    std::thread::available_parallelism().unwrap().get()
}

#[test]
fn what_was_not_measured_has_no_figures() {
    let cache = Cache::empty();
    let said = stdout(&cache.run(&["devices"]));
    assert!(said.contains("not calibrated: nothing was measured yet\n"), "{said}");
    assert!(said.contains("run `wattlock calibrate`\n"), "{said}");
    let gpu = said.contains("GPU   none found; run `wattlock doctor`") || said.contains("cuda:0");
    assert!(gpu || said.contains("opencl:0"), "{said}");
    assert!(!said.contains("µs"), "{said}");
    let rows = said.lines().filter(|line| line.trim_end().ends_with("  not calibrated"));
    assert_eq!(rows.count(), OPERATIONS);
    assert!(
        said.contains("\n  stream policy: window occupancy from which each setting is used\n"),
        "{said}"
    );
    let device = cache.device(&["devices", "--json"]);
    assert_eq!(device["why_not_calibrated"], "nothing was measured yet");
    for key in ["cpu", "cpu_id"] {
        assert!(device[key].is_string(), "{key}");
    }
    assert_eq!((&device["cpus"], &device["workers"]), (&cpus().into(), &cpus().into()));
    let operations = device["operations"].as_array().unwrap();
    assert_eq!(operations.len(), OPERATIONS);
    assert!(operations.iter().all(|row| row["profiles"].as_array().unwrap().is_empty()));
    assert!(names(cache.0.path()).is_empty(), "to look changes nothing");
}

/// A folder with a library of OpenCL that aborts when it is asked for platforms.
fn aborting_opencl() -> Option<tempfile::TempDir> {
    if !wattlock_testing::has_program("cc") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("aborts.c");
    fs::write(&source, "void abort(void);\nint clGetPlatformIDs(void) { abort(); }\n").unwrap();
    let library = folder.path().join("libOpenCL.so.1");
    let mut compile = Command::new("cc");
    compile.args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source);
    assert!(compile.status().unwrap().success());
    Some(folder)
}

#[test]
fn a_library_that_aborts_is_left_out_and_named() {
    let Some(folder) = aborting_opencl() else { return };
    let cache = Cache::empty();
    for args in
        [&["doctor"][..], &["devices"], &["calibrate", "--quick", "--only=aes-128-gcm seal"]]
    {
        let ran = cache.command(args).env("LD_LIBRARY_PATH", folder.path()).output().unwrap();
        assert_exit(&ran, 0);
        let said = stderr(&ran) + &stdout(&ran);
        let why = "libOpenCL.so.1 ended the process that loaded it, with signal 6";
        // `doctor` asks only libraries that it finds in the system's folders.
        let system = Path::new("/usr/lib/x86_64-linux-gnu/libOpenCL.so.1").exists();
        assert!(said.contains(why) || (args == ["doctor"] && !system), "{args:?}: {said}");
    }
    let mut asked = cache.command(&["calibrate", "--quick", "--device", "opencl"]);
    let refused = asked.env("LD_LIBRARY_PATH", folder.path()).output().unwrap();
    assert_exit(&refused, 4);
    assert!(stderr(&refused).contains("with signal 6"), "{}", stderr(&refused));
}

#[test]
fn rungs_are_clocks_where_they_can_be_set_and_workers_elsewhere() {
    let cache = Cache::empty();
    let root = tempfile::tempdir().unwrap();
    let rungs = |root: &Path| -> Vec<Value> {
        let ran =
            cache.command(&["devices", "--json"]).env("WATTLOCK_ROOT", root).output().unwrap();
        assert_exit(&ran, 0);
        assert!(stderr(&ran).contains("NOT from this machine"), "{}", stderr(&ran));
        let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
        let velocity = document["velocity"].as_array().unwrap();
        velocity.iter().filter(|ladder| ladder["device"] == "cpu").cloned().collect()
    };
    let workers = &rungs(root.path())[0];
    assert_eq!(workers["set_by"], "workers");
    assert_eq!(workers["rungs"].as_array().unwrap().len(), cpus());
    let policy = root.path().join("sys/devices/system/cpu/cpufreq/policy0");
    fs::create_dir_all(&policy).unwrap();
    for (name, text) in [
        ("cpuinfo_min_freq", "800000"),
        ("cpuinfo_max_freq", "2000000"),
        ("scaling_available_frequencies", "2000000 1500000 800000"),
        ("scaling_max_freq", "2000000"),
        ("scaling_min_freq", "800000"),
    ] {
        fs::write(policy.join(name), text).unwrap();
    }
    let clocks = &rungs(root.path())[0];
    assert_eq!(clocks["set_by"], "cpufreq");
    let rung = |name: &str, from: u64| serde_json::json!({ "name": name, "from_used_ppm": from });
    let expected = [rung("0.80 GHz", 0), rung("1.50 GHz", 400_000), rung("2.00 GHz", 750_000)];
    assert_eq!(clocks["rungs"].as_array().unwrap()[..], expected);
}

#[test]
fn what_was_measured_has_figures() {
    let cache = Cache::empty();
    let ran = cache.run(&["calibrate", "--quick"]);
    assert_exit(&ran, 0);
    assert!(stderr(&ran).contains("profiles are kept in "), "{}", stderr(&ran));
    let said = stdout(&cache.run(&["devices"]));
    assert_eq!(said, stdout(&ran), "both say the same");
    assert!(!said.contains("not calibrated") && !said.contains("nJ/B"), "{said}");
    assert!(said.contains(concat!("by wattlock ", env!("CARGO_PKG_VERSION"))), "{said}");
    let device = cache.device(&["devices", "--json"]);
    assert!(device.get("why_not_calibrated").is_none());
    let operations = device["operations"].as_array().unwrap();
    assert_eq!(operations.len(), OPERATIONS);
    for row in operations {
        let profiles = row["profiles"].as_array().unwrap();
        let workers: Vec<_> = profiles.iter().map(|p| p["workers"].as_u64().unwrap()).collect();
        let all = cpus() as u64;
        assert_eq!(workers, if all == 1 { vec![1] } else { vec![1, all] });
        for profile in profiles {
            assert_eq!(profile["device"], "cpu");
            assert_eq!(profile["residency"], "host");
            assert_eq!(profile["operation"], row["operation"]);
            assert_eq!(profile["kernel"], row["kernel"]);
            assert_eq!(profile["wattlock"], env!("CARGO_PKG_VERSION"));
            for key in ["bytes_per_s", "samples", "created_unix_s"] {
                assert!(profile[key].as_u64().unwrap() > 0, "{key}: {profile}");
            }
            for key in ["startup_ns", "spread_ppm"] {
                assert!(profile[key].is_u64(), "{key}: {profile}");
            }
            assert!(profile.get("energy").is_none(), "{profile}");
        }
    }
    assert_eq!(names(cache.0.path()), ["profiles.json"]);
}

#[test]
fn only_some_operations() {
    let cache = Cache::empty();
    assert_exit(&cache.run(&["calibrate", "--quick", "--only", "192-c"]), 0);
    let measured = cache.device(&["devices", "--json"]);
    let operations = measured["operations"].as_array().unwrap().iter();
    let operations = operations.filter(|row| !row["profiles"].as_array().unwrap().is_empty());
    let names: Vec<_> = operations.map(|row| row["operation"].as_str().unwrap()).collect();
    assert_eq!(names, ["aes-192-ctr", "aes-192-cbc decrypt"]);
    assert_exit(&cache.run(&["calibrate", "--quick", "--only=aes-192-ecb"]), 0);
    let device = cache.device(&["devices", "--json"]);
    let rows = device["operations"].as_array().unwrap();
    let known = rows.iter().filter(|row| !row["profiles"].as_array().unwrap().is_empty());
    assert_eq!(known.count(), 3, "what was measured before stays");
    let said = stdout(&cache.run(&["devices"]));
    assert!(said.contains("run `wattlock calibrate` for the rest"), "{said}");
    let wrong = cache.run(&["calibrate", "--only=rot13"]);
    assert_exit(&wrong, 2);
    assert!(stderr(&wrong).contains("the operations are aes-128-ctr, "), "{}", stderr(&wrong));
}

#[test]
fn a_cache_that_cannot_be_written_is_reported_before_anything_is_measured() {
    let cache = Cache::empty();
    fs::write(cache.0.path().join("file"), "").unwrap();
    let place = cache.0.path().join("file/below");
    let ran = cache.command(&["calibrate"]).env("WATTLOCK_CACHE", &place).output().unwrap();
    assert_exit(&ran, 1);
    let said = stderr(&ran);
    assert!(said.contains("cannot keep profiles in ") && said.contains("file/below"), "{said}");
    assert!(stdout(&ran).is_empty());
    let ran = cache.command(&["devices"]).env("WATTLOCK_CACHE", &place).output().unwrap();
    assert_exit(&ran, 0);
    let mut homeless = cache.command(&["calibrate"]);
    for name in ["WATTLOCK_CACHE", "XDG_CACHE_HOME", "HOME"] {
        homeless.env_remove(name);
    }
    let ran = homeless.output().unwrap();
    assert_exit(&ran, 1);
    assert!(stderr(&ran).contains("set WATTLOCK_CACHE"), "{}", stderr(&ran));
}

#[test]
fn unusable_profiles_are_reported_and_kept() {
    let cache = Cache::calibrated();
    let good: Value = serde_json::from_slice(&fs::read(cache.file()).unwrap()).unwrap();
    let mut other = good.clone();
    other["machines"][0]["cpu"] = "\u{1b}[31mAn abacus".into();
    let mut newer = good.clone();
    newer["schema"] = "wattlock-profiles/2".into();
    for (text, why) in [
        (good.to_string()[..100].to_owned(), "not calibrated: the profiles are damaged: "),
        (newer.to_string(), "the schema \"wattlock-profiles/2\", which this version"),
        (other.to_string(), "the profiles are of another machine: \\u{1b}[31mAn abacus ("),
    ] {
        fs::write(cache.file(), &text).unwrap();
        let ran = cache.run(&["devices"]);
        assert_exit(&ran, 0);
        let said = stdout(&ran);
        assert!(said.contains(why) && said.contains("run `wattlock calibrate`\n"), "{said}");
        assert!(cache.device(&["devices", "--json"])["why_not_calibrated"].is_string());
        assert_eq!(fs::read_to_string(cache.file()).unwrap(), text);
    }
    fs::write(cache.file(), "[]").unwrap();
    let ran = cache.run(&["calibrate", "--quick", "--only=aes-128-ctr"]);
    assert_exit(&ran, 0);
    assert!(stderr(&ran).contains("moved unusable profiles to "), "{}", stderr(&ran));
    assert_eq!(fs::read_to_string(cache.0.path().join("profiles.1.json")).unwrap(), "[]");
}

#[test]
fn figures_of_another_version_are_doubted() {
    let cache = Cache::calibrated();
    let mut old: Value = serde_json::from_slice(&fs::read(cache.file()).unwrap()).unwrap();
    for profile in old["machines"][0]["profiles"].as_array_mut().unwrap() {
        profile["wattlock"] = "0.0.1".into();
    }
    fs::write(cache.file(), old.to_string()).unwrap();
    let said = stdout(&cache.run(&["devices"]));
    assert!(said.contains("by wattlock 0.0.1\n"), "{said}");
    assert!(said.contains("run `wattlock calibrate` again"), "{said}");
}

#[test]
fn joules_from_files_in_place_of_sensors_are_not_kept() {
    let cache = Cache::empty();
    let root = tempfile::tempdir().unwrap();
    let zone = root.path().join("sys/class/powercap/intel-rapl:0");
    fs::create_dir_all(&zone).unwrap();
    fs::write(zone.join("name"), "package-0\n").unwrap();
    fs::write(zone.join("max_energy_range_uj"), "262143328850\n").unwrap();
    fs::write(zone.join("energy_uj"), "0\n").unwrap();
    let (done, ended) = mpsc::channel::<()>();
    let ran = std::thread::scope(|scope| {
        let zone = &zone;
        scope.spawn(move || {
            // A new value each 10 ms, until the sender is dropped.
            let next = || ended.recv_timeout(Duration::from_millis(10));
            for ms in (0u64..).step_by(10).take_while(|_| next() == Err(RecvTimeoutError::Timeout))
            {
                // 20 W, renamed into place so that no read finds half of it.
                fs::write(zone.join("next"), format!("{}\n", ms * 20_000)).unwrap();
                fs::rename(zone.join("next"), zone.join("energy_uj")).unwrap();
            }
        });
        let args = ["calibrate", "--only=aes-256-gcm seal"];
        let ran = cache.command(&args).env("WATTLOCK_ROOT", root.path()).output().unwrap();
        drop(done);
        ran
    });
    assert_exit(&ran, 0);
    let said = stderr(&ran);
    assert!(said.contains("NOT from this machine"), "{said}");
    assert!(said.contains("no energy was measured reliably"), "{said}");
    assert!(!fs::read_to_string(cache.file()).unwrap().contains("energy"));
}
