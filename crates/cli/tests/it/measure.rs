//! `wattlock measure` and `wattlock doctor`, on machines made of files. It is long because it lists what a
//! report may hold.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use crate::support::{assert_exit, stderr, stdout, wattlock, with_input};
use serde_json::Value;
use wattlock_testing::wait_until;

const RANGE: u64 = 262_143_328_850;

/// A machine with one socket, whose counter stands close before its end.
struct Machine(tempfile::TempDir);

impl Machine {
    fn without_sensors() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn with_a_counter() -> Self {
        let machine = Self::without_sensors();
        fs::create_dir_all(machine.zone()).unwrap();
        fs::write(machine.zone().join("name"), "package-0\n").unwrap();
        fs::write(machine.zone().join("max_energy_range_uj"), format!("{RANGE}\n")).unwrap();
        machine.set(&(RANGE - 400_000).to_string());
        machine
    }

    fn zone(&self) -> PathBuf {
        self.0.path().join("sys/class/powercap/intel-rapl:0")
    }

    fn set(&self, uj: &str) {
        fs::write(self.zone().join("energy_uj"), format!("{uj}\n")).unwrap();
    }

    /// `wattlock measure ARGS…` on this machine.
    fn measure(&self, args: &[&str]) -> Command {
        let mut command = wattlock();
        command.arg("measure").args(args).env("WATTLOCK_ROOT", self.0.path());
        command
    }

    /// A command that makes the counter go on by 1 J, and wrap.
    fn one_joule(&self) -> String {
        let file = self.zone().join("energy_uj");
        let file = file.display();
        format!("sleep 0.1; read v < {file}; echo $(((v + 1000000) % {RANGE})) > {file}")
    }
}

/// The JSON that a measurement ends with.
fn json(output: &Output) -> Value {
    serde_json::from_str(stderr(output).lines().last().unwrap()).unwrap()
}

#[test]
fn the_command_is_left_alone() {
    let machine = Machine::with_a_counter();
    let ran = with_input(
        &mut machine.measure(&["--", "sh", "-c", "cat; echo talk >&2; exit 7"]),
        b"in and out",
    );
    assert_eq!((ran.status.code(), stdout(&ran).as_str()), (Some(7), "in and out"));
    assert!(stderr(&ran).contains("\ntalk\n"), "{}", stderr(&ran));
    let flags = machine.measure(&["echo", "-n", "--json"]).output().unwrap();
    assert_eq!(stdout(&flags), "--json");
}

#[test]
fn exit_codes() {
    let machine = Machine::without_sensors();
    let code = |args: &[&str]| machine.measure(args).output().unwrap().status.code().unwrap();
    assert_eq!(code(&["--", "true"]), 0);
    assert_eq!(code(&["--", "false"]), 1);
    assert_eq!(code(&["--", "sh", "-c", "kill -9 $$"]), 128 + 9);
    assert_eq!(code(&["--", "sh", "-c", "kill -15 $$"]), 128 + 15);
    assert_eq!(code(&["--", "/no/such/program"]), 127);
    assert_eq!(code(&["--", "/etc/passwd"]), 126);
    assert_eq!(code(&[]), 2);
    assert_eq!(code(&["--bytes", "0", "--", "true"]), 2);
}

#[test]
fn joules_are_right_across_a_wrap() {
    let machine = Machine::with_a_counter();
    let work = machine.one_joule();
    let args = ["--require=measured", "--json", "--bytes=1M", "--", "sh", "-c", &work];
    let ran = machine.measure(&args).output().unwrap();
    assert_exit(&ran, 0);
    let report = json(&ran);
    assert_eq!(report["schema"], "wattlock-measure/1");
    assert_eq!(report["bytes"], 1 << 20);
    assert_eq!(report["root"], machine.0.path().to_str().unwrap());
    let run = &report["runs"][0];
    assert_eq!(run["sum"]["class"], "measured");
    assert_eq!(run["sum"]["energy_uj"]["best"], 1_000_000);
    assert_eq!(run["domains"]["package-0"]["energy_uj"]["best"], 1_000_000);
    assert!(run["sum"]["energy_uj"]["lo"].as_u64().unwrap() < 1_000_000);
    assert_eq!(run["pj_per_byte"]["best"], 953_674);
    assert_eq!(run["bytes_per_j"]["best"], 1 << 20);
    let wall = run["wall_ns"].as_u64().unwrap() as f64;
    let product = run["edp_ujs"]["best"].as_f64().unwrap();
    assert!((product - wall / 1e3).abs() < 2.0, "1 J for {wall} ns: {product}");
    let mean = run["mean_mw"]["best"].as_f64().unwrap();
    assert!(mean > 0.0 && mean <= 1e12 / wall + 1.0, "{mean}");
    assert!(run.get("model").is_none() && !run.to_string().contains("model"), "{report}");
}

#[test]
fn the_text_of_a_measurement() {
    let machine = Machine::with_a_counter();
    let work = machine.one_joule();
    let args = ["--bytes=1M", "--", "sh", "-c", &work];
    let said = stderr(&machine.measure(&args).output().unwrap());
    let first = said.lines().next().unwrap();
    assert!(first.contains("WATTLOCK_ROOT is set") && first.contains("NOT from this machine"));
    let row = |name: &str| {
        let row = said.lines().find(|line| line.trim_start().starts_with(name));
        row.unwrap_or_else(|| panic!("no {name} in {said}")).to_owned()
    };
    assert!(row("package-0 ").contains(" 1.0"), "{said}");
    assert!(row("energy ").ends_with("measured: package-0"), "{said}");
    assert!(row("mean power ").contains(" W ± "), "{said}");
    assert!(row("per byte ").contains(" nJ/B ± "), "{said}");
    assert!(row("per joule ").contains(" 1.0"), "{said}");
    assert!(row("energy × wall").contains(" J·s ± "), "{said}");
    row("wall time ");
    row("CPU time ");
    assert!(row("overhead ").contains(" ms wall, "), "{said}");
    assert!(!said.contains("model"), "{said}");
}

#[test]
fn without_sensors_there_is_a_model_that_says_so() {
    let machine = Machine::without_sensors();
    let args = ["--tdp=100", "--bytes=1M", "--", "sleep", "0.1"];
    let ran = machine.measure(&args).output().unwrap();
    assert_exit(&ran, 0);
    let said = stderr(&ran);
    assert!(said.contains("no energy was measured"), "{said}");
    assert!(!said.contains('±') && !said.contains("measured:"), "{said}");
    for line in said.lines().filter(|line| line.contains(" J") || line.contains("nJ/B")) {
        let modelled = line.contains("(model, not measured)") && line.contains('~');
        assert!(modelled || line.contains("note:"), "{line}");
    }
    let args = ["--json", "--tdp=100", "--bytes=1M", "--", "sleep", "0.1"];
    let ran = machine.measure(&args).output().unwrap();
    let report = json(&ran);
    let run = &report["runs"][0];
    assert_eq!(run["sum"]["class"], "unavailable");
    let interval = &run["model"]["energy_model_uj"];
    let [lo, hi] = ["lo", "hi"].map(|end| interval[end].as_u64().unwrap());
    // 0.1 s of an idle CPU of 100 W: at least a joule.
    assert!(1_000_000 <= lo && lo < hi, "{interval}");
    assert!(interval.get("best").is_none());
    let keys: Vec<_> = run.as_object().unwrap().keys().map(String::as_str).collect();
    let expected = [
        "cpu_ns",
        "domains",
        "exit_code",
        "model",
        "model_bytes_per_j",
        "model_edp_ujs",
        "model_mean_mw",
        "model_net",
        "model_net_bytes_per_j",
        "model_net_edp_ujs",
        "model_net_mean_mw",
        "model_net_pj_per_byte",
        "model_pj_per_byte",
        "overhead_cpu_ns",
        "overhead_wall_ns",
        "sum",
        "wall_ns",
    ];
    assert_eq!(keys, expected);
    assert!(!report.to_string().contains("\"energy_uj\""), "{report}");
    assert!(report["advice"]["utilisation-only"].is_string());
    assert!(report["advice"].get("tdp-assumed").is_none());
}

#[test]
fn joules_net_of_idle_are_attributed() {
    let machine = Machine::with_a_counter();
    // 2 W at rest, and 90 J more for the work, by one process: two would lose each other's.
    let file = machine.zone().join("energy_uj").display().to_string();
    let other = machine.zone().join("new").display().to_string();
    let flag = machine.0.path().join("flag").display().to_string();
    let rest = format!(
        "while sleep 0.05; do joules=100000; [ -e {flag} ] && joules=90000000; read v < {file}; \
         echo $(((v + joules) % {RANGE})) > {other}; mv {other} {file}; \
         [ $joules = 100000 ] || rm {flag}; done"
    );
    let mut resting = Command::new("sh").args(["-c", &rest]).spawn().unwrap();
    let work = format!("sleep 0.5; touch {flag}; while [ -e {flag} ]; do sleep 0.01; done");
    let prometheus = machine.0.path().join("out.prom");
    let args = [
        "--idle-baseline=1",
        "--json",
        "--prometheus",
        prometheus.to_str().unwrap(),
        "--bytes=1M",
        "--",
        "sh",
        "-c",
        &work,
    ];
    let ran = machine.measure(&args).output().unwrap();
    resting.kill().unwrap();
    resting.wait().unwrap();
    assert_exit(&ran, 0);
    let run = &json(&ran)["runs"][0];
    let of = |energy: &Value| energy["energy_uj"]["best"].as_u64().unwrap();
    assert_eq!(run["sum"]["class"], "measured");
    assert_eq!(run["net"]["class"], "attributed");
    assert_eq!(run["net_domains"]["package-0"]["class"], "attributed");
    assert!(of(&run["net"]) < of(&run["sum"]), "{run}");
    assert!(of(&run["sum"]) >= 90_000_000, "{run}");
    assert!(run["net_pj_per_byte"]["best"].as_u64() < run["pj_per_byte"]["best"].as_u64());
    assert!(run["overhead_wall_ns"].is_u64() && run["overhead_cpu_ns"].is_u64());
    let metrics = fs::read_to_string(prometheus).unwrap();
    for name in ["measured_energy", "attributed_net_energy", "measured_domain_energy"] {
        assert!(metrics.contains(&format!("\nwattlock_{name}_joules{{")), "{name}: {metrics}");
    }
    assert!(!metrics.contains("modelled") && !metrics.contains("sleep"), "{metrics}");
}

#[test]
fn metrics_of_models_have_names_of_their_own() {
    let machine = Machine::without_sensors();
    let file = machine.0.path().join("out.prom");
    let args = ["--prometheus", file.to_str().unwrap(), "--", "sleep", "0.1"];
    assert_exit(&machine.measure(&args).output().unwrap(), 0);
    let metrics = fs::read_to_string(&file).unwrap();
    assert!(metrics.contains("\nwattlock_modelled_energy_lower_joules{"), "{metrics}");
    assert!(metrics.contains("\nwattlock_modelled_energy_upper_joules{"), "{metrics}");
    assert!(!metrics.contains("measured_energy"), "{metrics}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(&file).unwrap().permissions());
    assert_eq!(mode & 0o444, 0o444, "the collector is another user");
    let mark = machine.0.path().join("mark");
    for wrong in ["/no/such/folder/x.prom", "/tmp"] {
        let args = ["--prometheus", wrong, "--", "touch", mark.to_str().unwrap()];
        let refused = machine.measure(&args).output().unwrap();
        assert!(matches!(refused.status.code(), Some(1 | 2)), "{}", stderr(&refused));
        assert!(stderr(&refused).contains(wrong) && !mark.exists());
    }
}

#[test]
fn metrics_replace_files_and_nothing_else() {
    let machine = Machine::without_sensors();
    let pipe = machine.0.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    for other in [pipe.to_str().unwrap(), "/dev/null"] {
        let refused = machine.measure(&["--prometheus", other, "--", "true"]).output().unwrap();
        assert_exit(&refused, 2);
        assert!(stderr(&refused).contains("is not a file"));
        assert!(!fs::metadata(other).unwrap().is_file());
    }
    let (file, link) = (machine.0.path().join("file.prom"), machine.0.path().join("link.prom"));
    fs::write(&file, "old").unwrap();
    std::os::unix::fs::symlink(&file, &link).unwrap();
    let args = ["--prometheus", link.to_str().unwrap(), "--", "true"];
    assert_exit(&machine.measure(&args).output().unwrap(), 0);
    assert!(link.is_symlink() && fs::read_to_string(&file).unwrap().contains("wattlock_"));
    // What the command said is not lost with the metrics.
    let folder = machine.0.path().join("gone");
    fs::create_dir(&folder).unwrap();
    let work = format!("rmdir {}; exit 7", folder.display());
    let to = folder.join("x.prom");
    let args = ["--prometheus", to.to_str().unwrap(), "--", "sh", "-c", &work];
    let ran = machine.measure(&args).output().unwrap();
    assert_eq!(ran.status.code(), Some(7));
    assert!(stderr(&ran).contains("cannot write"));
}

#[test]
fn keys_and_escapes_are_not_shown() {
    let machine = Machine::with_a_counter();
    fs::write(machine.zone().join("name"), "package-\u{1b}[31mred\n").unwrap();
    let metrics = machine.0.path().join("out.prom");
    let work = machine.one_joule();
    let key = "AGE-SECRET-KEY-1QQQQQQQQQQ";
    for json in [&["--json"][..], &[]] {
        let mut command = machine.measure(json);
        command.arg("--prometheus").arg(&metrics).args(["--", "sh", "-c", &work]);
        command.args([
            &format!("k={key}"),
            &key.to_lowercase(),
            "--password",
            "hunter2",
            "--pin=1",
        ]);
        let ran = command.output().unwrap();
        assert_exit(&ran, 0);
        let output = stderr(&ran).to_owned() + &fs::read_to_string(&metrics).unwrap();
        for secret in ["KEY-1Q", "key-1q", "hunter2", "\u{1b}"] {
            assert!(!output.contains(secret), "{secret}: {output}");
        }
    }
}

#[test]
fn pipes_in_place_of_counters_are_not_waited_for() {
    for file in ["energy_uj", "name", "max_energy_range_uj"] {
        let machine = Machine::with_a_counter();
        let pipe = machine.zone().join(file);
        fs::remove_file(&pipe).unwrap();
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert_exit(&machine.measure(&["--", "true"]).output().unwrap(), 0);
    }
}

#[test]
fn two_domains_of_one_name_are_two() {
    let machine = Machine::with_a_counter();
    let second = machine.0.path().join("sys/class/powercap/intel-rapl:1");
    fs::create_dir(&second).unwrap();
    for file in ["name", "max_energy_range_uj", "energy_uj"] {
        fs::copy(machine.zone().join(file), second.join(file)).unwrap();
    }
    let args = ["--json", "--", "sh", "-c", &machine.one_joule()];
    let report = json(&machine.measure(&args).output().unwrap());
    let domains = report["runs"][0]["domains"].as_object().unwrap();
    let names: Vec<_> = domains.keys().map(String::as_str).collect();
    assert_eq!(names, ["package-0 (intel-rapl:0)", "package-0 (intel-rapl:1)"]);
}

#[test]
fn an_external_meter() {
    let machine = Machine::without_sensors();
    let meter = "while :; do echo '40 W ± 1'; sleep 0.05; done";
    let args = ["--meter", meter, "--json", "--", "sleep", "1"];
    let run = &json(&machine.measure(&args).output().unwrap())["runs"][0];
    assert_eq!(run["sum"]["class"], "integrated");
    assert_eq!(run["sum"]["covers"][0], "wall");
    // 1 s and what it took to start.
    assert!(run["sum"]["energy_uj"]["best"].as_u64().unwrap() >= 40_000_000, "{run}");
    for wrong in ["echo nonsense", "exit 3", "echo -5 W", ""] {
        let refused = machine.measure(&["--meter", wrong, "--", "true"]).output().unwrap();
        assert_exit(&refused, 4);
        assert!(stderr(&refused).contains("--meter cannot be read"), "{}", stderr(&refused));
    }
}

#[test]
fn a_meter_ends_with_the_program_that_started_it() {
    for signal in ["KILL", "TERM", "INT"] {
        let machine = Machine::without_sensors();
        let beat = machine.0.path().join("beat");
        let meter = format!("echo $$ > {}; while :; do echo 5 W; sleep 0.02; done", beat.display());
        let mut command = machine.measure(&["--meter", &meter, "--", "sleep", "100"]);
        let mut child = command.stderr(std::process::Stdio::null()).spawn().unwrap();
        let number = || fs::read_to_string(&beat).unwrap_or_default().trim().to_owned();
        wait_until("the meter runs", || !number().is_empty());
        let kill = format!("kill -{signal} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        child.wait().unwrap();
        // One that has ended may not have been waited for yet.
        let runs = |number: &str| {
            let stat = fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
            stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with(['Z', 'X']))
        };
        wait_until("the meter has ended", || !runs(&number()));
    }
}

#[test]
fn a_required_measurement_that_cannot_be_had_runs_nothing() {
    let machine = Machine::without_sensors();
    let mark = machine.0.path().join("mark");
    let args = ["--require", "measured", "--", "touch", mark.to_str().unwrap()];
    let refused = machine.measure(&args).output().unwrap();
    assert_exit(&refused, 4);
    assert!(stderr(&refused).contains("wattlock doctor"));
    assert!(!mark.exists());
    let garbled = Machine::with_a_counter();
    garbled.set("garbage");
    assert_exit(&garbled.measure(&args).output().unwrap(), 4);
    assert!(!mark.exists());
}

#[test]
fn a_required_measurement_that_failed_meanwhile_ends_with_4_too() {
    let machine = Machine::with_a_counter();
    let dead = machine.measure(&["--require=measured", "--", "sleep", "0.4"]).output().unwrap();
    assert_exit(&dead, 4);
    assert!(stderr(&dead).contains("the counter does not count"), "{}", stderr(&dead));
    assert!(stderr(&dead).contains("(model, not measured)"));
    let failed = machine.measure(&["--require=measured", "--", "sh", "-c", "exit 9"]);
    let mut failed = failed;
    assert_eq!(failed.output().unwrap().status.code(), Some(9));
}

#[test]
fn all_repetitions_are_reported_and_end_at_a_failure() {
    let machine = Machine::with_a_counter();
    let work = machine.one_joule();
    let ran = machine.measure(&["--repeat=3", "--json", "--", "sh", "-c", &work]).output().unwrap();
    assert_exit(&ran, 0);
    let report = json(&ran);
    let runs = report["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    assert!(runs.iter().all(|run| run["sum"]["energy_uj"]["best"] == 1_000_000), "{report}");
    assert!(report["median_run"].as_u64().unwrap() < 3);
    let text = machine.measure(&["--repeat=3", "--", "sh", "-c", &work]).output().unwrap();
    assert!(stderr(&text).contains("run 3 ") && stderr(&text).contains(" (median):"));
    let failed = machine.measure(&["--repeat=3", "--json", "--", "false"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(1));
    assert_eq!(json(&failed)["runs"].as_array().unwrap().len(), 1);
}

#[test]
fn repetitions_have_a_mean_an_interval_and_a_range() {
    let machine = Machine::with_a_counter();
    machine.set("0");
    let file = machine.zone().join("energy_uj").display().to_string();
    let next = machine.0.path().join("next").display().to_string();
    fs::write(&next, "12500000\n31000000\n20100000\n38600000\n27300000\n36200000\n29500000\n")
        .unwrap();
    // Each run takes the joules of the first line, and removes it.
    let work = format!(
        "sleep 0.05; read joules < {next}; sed -i 1d {next}; read v < {file}; \
         echo $((v + joules)) > {file}"
    );
    let again = fs::read(&next).unwrap();
    let args = ["--repeat=7", "--json", "--", "sh", "-c", &work];
    let ran = machine.measure(&args).output().unwrap();
    assert_exit(&ran, 0);
    let report = json(&ran);
    let over = &report["over_runs"];
    assert_eq!((&over["count"], &over["sum"]["class"]), (&7.into(), &"measured".into()));
    let joules = |key: &str| over["sum"]["energy_uj"][key].as_f64().unwrap() / 1e6;
    assert_eq!([joules("min"), joules("max")], [12.5, 38.6]);
    assert!((joules("mean") - 27.886).abs() < 0.001 && (joules("sd") - 9.073).abs() < 0.001);
    // Student's t gives 19.5 to 36.3; what the readings hide is added.
    assert!(joules("lo") < 19.5 && joules("hi") > 36.2, "{over}");
    assert!(over["wall_ns"]["mean"].is_u64() && over.get("net").is_none());

    fs::write(&next, again).unwrap();
    let ran = machine.measure(&["--repeat=7", "--", "sh", "-c", &work]).output().unwrap();
    let said = stderr(&ran);
    let row = said.lines().find(|line| line.contains("energy, mean of 7 runs")).unwrap_or_default();
    assert!(row.contains("27.9 J (95 % interval "), "{said}");
    assert!(row.ends_with("runs from 12.5 to 38.6 J, measured"), "{said}");
}

#[test]
fn the_json_names_its_date_machine_version_and_sources() {
    let machine = Machine::with_a_counter();
    let work = machine.one_joule();
    let report = json(&machine.measure(&["--json", "--", "sh", "-c", &work]).output().unwrap());
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_secs();
    let created = report["created_unix_s"].as_u64().unwrap();
    assert!(created <= now && now - created < 600, "{created}, and now it is {now}");
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    assert_eq!(report["machine"]["kernel"], kernel.trim());
    assert!(report["machine"]["cpu"].is_string());
    assert_eq!(report["wattlock"], env!("CARGO_PKG_VERSION"));
    assert_eq!(report["sources"], serde_json::json!({"package-0": "powercap"}));
    assert!(report.get("over_runs").is_none(), "one run has no range");
    let bare = Machine::without_sensors();
    let report = json(&bare.measure(&["--json", "--", "true"]).output().unwrap());
    assert_eq!(report["sources"], serde_json::json!({"cpu": "model"}));
}

#[test]
fn a_signal_is_passed_on_and_the_report_still_comes() {
    for signal in ["TERM", "INT", "HUP"] {
        passed_on(signal);
    }
}

fn passed_on(signal: &str) {
    let machine = Machine::without_sensors();
    let started = machine.0.path().join("started");
    let work = format!(
        "trap 'exit 5' {signal}; touch {}; while :; do sleep 0.05; done",
        started.display()
    );
    let mut command = machine.measure(&["--", "sh", "-c", &work]);
    let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
    wait_until("the command runs", || started.exists());
    let kill = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
    assert!(kill.unwrap().success());
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(5), "{}", stderr(&ended));
    assert!(stderr(&ended).contains("(model, not measured)"));
}

#[test]
fn the_doctor_says_why_and_what_would_help() {
    let machine = Machine::with_a_counter();
    let doctor = |machine: &Machine, args: &[&str]| {
        let root = machine.0.path();
        wattlock().arg("doctor").args(args).env("WATTLOCK_ROOT", root).output().unwrap()
    };
    let text = doctor(&machine, &[]);
    assert_exit(&text, 0);
    assert!(stderr(&text).contains("WATTLOCK_ROOT is set"));
    assert!(stdout(&text).contains("package-0") && stdout(&text).contains("aes-soft"));
    machine.set("garbage");
    let report: Value = serde_json::from_slice(&doctor(&machine, &["--json"]).stdout).unwrap();
    assert_eq!(report["schema"], "wattlock-doctor/1");
    let energy = report["energy"].as_array().unwrap();
    let of = |domain: &str| energy.iter().find(|source| source["domain"] == domain).unwrap();
    let source = of("package-0");
    assert_eq!(source["status"], "unavailable");
    assert!(source["why"].as_str().unwrap().contains("garbage"));
    assert!(source["fix"].is_string());
    assert_eq!(report["energy"].as_array().unwrap().last().unwrap()["source"], "model");
    let kernels = report["kernels"].as_array().unwrap();
    assert!(kernels.iter().any(|kernel| kernel["name"] == "aes-vaes512"));
    let named = |name: &str| kernels.iter().find(|kernel| kernel["name"] == name).unwrap();
    assert_eq!(named("gcm-vaes512")["algorithm"], "AES-GCM");
    // A class of CPU is measured or not, with all kernels. On one that is not, none of ours does AES-GCM.
    let measured = &named("aes-soft")["measured"];
    assert_eq!(&named("keccak-soft")["measured"], measured);
    assert_eq!(named("gcm-vaes512")["chosen"] == true, measured == true);
    let listed = stdout(&text);
    assert_eq!(listed.contains("unmeasured on this class of CPU"), measured == false);
    for line in listed.lines().filter(|line| line.contains("keccak-soft")) {
        assert!(line.trim_start().starts_with("Keccak "), "{line}");
    }
    assert!(!listed.contains("not the fastest") && !listed.contains("without a faster one"));
    let features = report["cpu_features"].as_array().unwrap();
    if let Some(vaes) = features.iter().find(|feature| feature["name"] == "vaes") {
        assert!(vaes["used_by"].as_str().unwrap().contains("gcm-vaes512"), "{vaes}");
    }
    assert!(
        kernels.iter().all(|kernel| kernel["runs_here"] == true || kernel["why_not"].is_string())
    );
    let bare = stdout(&doctor(&Machine::without_sensors(), &[]));
    assert!(
        bare.contains("why:   the kernel shows no RAPL zones") && bare.contains("fix:"),
        "{bare}"
    );
}
