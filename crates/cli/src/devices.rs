//! `wattlock devices`: what can encrypt here, with which code, and how fast it was measured to be.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use serde::Serialize;
use wattlock_energy::Root;
use wattlock_engine::Uncalibrated;
use wattlock_engine::{Case, Cpu, Device, Processor, Profile, Profiles, Residency, Store};
use wattlock_file::Shown;
use wattlock_host::accelerators::{Seen, seen};
use wattlock_host::energy;
use wattlock_host::exit::{Ended, print};
use wattlock_report::columns::Columns;
use wattlock_report::date::utc;

use crate::args;
use crate::velocity::{self, Rungs, of_workers};

/// `wattlock devices`.
pub fn run(args: &args::Devices) -> Ended {
    let store = Store::of_user()?;
    let report = Report::new(&store, &Case::ALL, store.load(), &energy::root());
    print(&if args.json { report.json()? } else { report.text() })?;
    Ok(ExitCode::SUCCESS)
}

/// What is known of the devices.
pub struct Report<'a> {
    store: &'a Store,
    cpu: Cpu,
    rows: Vec<Row>,
    accelerators: Vec<Accelerator>,
    velocity: Vec<Rungs>,
    /// Why nothing is known.
    why_not: Option<String>,
}

/// A device that is no CPU, or is it by another way, and what is known of it.
#[derive(Serialize)]
struct Accelerator {
    #[serde(flatten)]
    seen: Seen,
    profiles: Vec<Profile>,
}

/// What is known of one operation on the CPU.
#[derive(Serialize)]
struct Row {
    operation: String,
    kernel: &'static str,
    /// With one worker and with all; none where it was not measured.
    profiles: Vec<Profile>,
}

/// The report in JSON.
#[derive(Serialize)]
struct Document<'a> {
    schema: &'static str,
    profiles_path: String,
    devices: [DeviceDocument<'a>; 1],
    accelerators: &'a [Accelerator],
    velocity: &'a [Rungs],
}

/// A device in JSON.
#[derive(Serialize)]
struct DeviceDocument<'a> {
    device: &'a str,
    #[serde(flatten)]
    processor: &'a Processor,
    workers: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not_calibrated: Option<&'a str>,
    operations: &'a [Row],
}

impl<'a> Report<'a> {
    /// Of these cases; clocks are looked for below `root`.
    pub fn new(
        store: &'a Store,
        cases: &[Case],
        loaded: Result<Profiles, Uncalibrated>,
        root: &Root,
    ) -> Self {
        let cpu = Cpu::new(args::threads(None));
        let (profiles, why_not) = match loaded {
            Ok(profiles) => (profiles, None),
            Err(why) => (Profiles::default(), Some(why.to_string())),
        };
        let row = |&case: &Case| {
            let workers = BTreeSet::from([1, cpu.workers()]);
            let find = |workers| profiles.find(cpu.name(), case, workers, Residency::Host).cloned();
            Row {
                operation: case.to_string(),
                kernel: case.kernel(),
                profiles: workers.into_iter().filter_map(find).collect(),
            }
        };
        let rows = cases.iter().map(row).collect();
        let accelerator = |seen: Seen| {
            let of_it = |profile: &&Profile| profile.device == seen.device;
            let profiles = profiles.iter().filter(of_it).cloned().collect();
            Accelerator { seen, profiles }
        };
        let accelerators = seen().into_iter().map(accelerator).collect();
        let velocity = velocity::ladders(root, cpu.workers());
        Self { store, cpu, rows, accelerators, velocity, why_not }
    }

    /// For programs.
    pub fn json(&self) -> anyhow::Result<String> {
        let device = DeviceDocument {
            device: self.cpu.name(),
            processor: self.store.processor(),
            workers: self.cpu.workers(),
            why_not_calibrated: self.why_not.as_deref(),
            operations: &self.rows,
        };
        let document = Document {
            schema: "wattlock-devices/1",
            profiles_path: self.store.path().display().to_string(),
            devices: [device],
            accelerators: &self.accelerators,
            velocity: &self.velocity,
        };
        Ok(serde_json::to_string_pretty(&document)? + "\n")
    }

    /// For people.
    pub fn text(&self) -> String {
        let processor = self.store.processor().to_string();
        let mut text = format!("{}   {}\n", self.cpu.name(), shown(&processor));
        text += &format!("      {}\n\n", self.when());
        text += &self.rates();
        text += &self.joules();
        if self.accelerators.iter().all(|accelerator| accelerator.seen.is_cpu) {
            text += "\nGPU   none found; run `wattlock doctor`\n";
        }
        for Accelerator { seen, profiles } in &self.accelerators {
            text += &format!("\n{}   {}\n", seen.device, shown(&seen.what));
            if profiles.is_empty() {
                let device = &seen.device;
                text += &format!("      no profile: run `wattlock calibrate --device {device}`\n");
            }
            let mut table = Columns::new("<<>").indented();
            for profile in profiles {
                let cells = [profile.case.to_string(), profile.kernel.to_string()];
                table.row(cells.into_iter().chain(rate(profile)));
            }
            text += &table.to_string();
        }
        text + &velocity::text(&self.velocity)
    }

    fn profiles(&self) -> impl Iterator<Item = &Profile> {
        self.rows.iter().flat_map(|row| &row.profiles)
    }

    /// When it was calibrated and by whom, and what speaks for doing it again.
    fn when(&self) -> String {
        let times = BTreeSet::from_iter(self.profiles().map(|profile| profile.created_unix_s));
        let (Some(&oldest), Some(&newest)) = (times.first(), times.last()) else {
            let why = self.why_not.as_deref().unwrap_or("nothing of this was measured yet");
            return format!("not calibrated: {}\n      run `wattlock calibrate`", shown(why));
        };
        let until =
            if newest - oldest < 60 { String::new() } else { format!(" to {}", utc(newest)) };
        let versions: BTreeSet<_> = self.profiles().map(|p| p.wattlock.as_str()).collect();
        let versions = Vec::from_iter(versions).join(", ");
        let by = shown(&versions);
        let mut text = format!("calibrated {}{until} by wattlock {by}", utc(oldest));
        let other_kernel = |row: &Row| row.profiles.iter().any(|p| p.kernel != row.kernel);
        if versions != env!("CARGO_PKG_VERSION") || self.rows.iter().any(other_kernel) {
            text += "\n      this version may differ: run `wattlock calibrate` again";
        } else if self.rows.iter().any(|row| row.profiles.is_empty()) {
            text += "\n      run `wattlock calibrate` for the rest";
        }
        text
    }

    /// The numbers of workers that there are columns for.
    fn workers(&self) -> BTreeSet<usize> {
        BTreeSet::from([1, self.cpu.workers()])
    }

    fn rates(&self) -> String {
        let mut table = Columns::new("<<>").indented();
        let workers = self.workers();
        let over = workers.iter().flat_map(|n| [String::new(), String::new(), of_workers(*n)]);
        table.row([String::new(), String::new()].into_iter().chain(over));
        let heads = workers.iter().flat_map(|_| ["GB/s", "±", "start"]);
        table.row(["operation", "kernel"].into_iter().chain(heads));
        for row in &self.rows {
            let rates = workers.iter().flat_map(|workers| {
                let profile = row.profiles.iter().find(|profile| profile.workers == *workers);
                profile.map_or([String::new(), String::new(), "not calibrated".into()], rate)
            });
            let cells = [row.operation.to_string(), row.kernel.to_string()];
            table.row(cells.into_iter().chain(rates));
        }
        let mut text = table.to_string();
        if self.profiles().next().is_some() {
            text += "\n  A call of n bytes takes start + n / rate, give or take ±.\n";
        }
        text
    }

    /// Joules where they were counted, and nothing elsewhere.
    fn joules(&self) -> String {
        let mut table = Columns::new("<").indented();
        for profile in self.profiles() {
            let Some(figure) = profile.joules.as_ref().and_then(|joules| joules.per_byte()) else {
                continue;
            };
            let workers = of_workers(profile.workers);
            table.row([profile.case.to_string(), workers, figure.to_string()]);
        }
        if table.is_empty() {
            return String::new();
        }
        format!("\n  energy, gross: all that the counters saw meanwhile\n{table}")
    }
}

/// Rate, spread and start-up.
fn rate(profile: &Profile) -> [String; 3] {
    let rate = format!("{:.2}", profile.bytes_per_second / 1e9);
    let spread = format!("{:.0} %", (profile.spread * 100.0).ceil());
    let start = format!("{:.2} µs", profile.startup.as_secs_f64() * 1e6);
    [rate, spread, start]
}

/// Text of a file, which a terminal might obey.
fn shown(text: &str) -> Shown<'_> {
    Shown(Path::new(text))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use wattlock_energy::{Energy, Microjoules};
    use wattlock_engine::Joules;

    use super::*;

    #[test]
    fn joules_stand_in_rows_of_their_own() {
        let cpu_id = "family 6 model 143 stepping 8".to_owned();
        let processor = Processor { cpu: "A CPU".into(), cpu_id, cpus: 8, virtual_machine: false };
        let store = Store::new(Path::new("nowhere"), processor);
        // On every CPU AWS-LC does it.
        let case = Case::named("chacha20-poly1305 seal").unwrap();
        let energy = Energy::measured("package-0", Microjoules(20_000_000), Microjoules(50_000));
        let profile = Profile {
            device: "cpu".into(),
            case,
            kernel: case.kernel().into(),
            workers: 1,
            residency: Residency::Host,
            startup: Duration::from_nanos(250),
            bytes_per_second: 15.2e9,
            spread: 0.013,
            samples: 1200,
            joules: Joules::new(energy, 30_000_000_000),
            created_unix_s: 1_709_251_200,
            wattlock: env!("CARGO_PKG_VERSION").into(),
        };
        let report = Report::new(
            &store,
            &[case],
            Ok([profile].into_iter().collect()),
            &Root::new("nowhere"),
        );
        let text = report.text();
        for line in [
            "cpu   A CPU (family 6 model 143 stepping 8), 8 CPUs\n",
            concat!(
                "calibrated 2024-03-01 00:00 UTC by wattlock ",
                env!("CARGO_PKG_VERSION"),
                "\n"
            ),
            "  chacha20-poly1305 seal  aws-lc  15.20  2 %   0.25 µs",
            "  energy, gross: all that the counters saw meanwhile\n",
            "  chacha20-poly1305 seal  1 worker  0.667 nJ/B ± 0.002\n",
        ] {
            assert!(text.contains(line), "{line}\n{text}");
        }
        let json = report.json().unwrap();
        assert!(
            json.contains("\"energy_uj\"") && json.contains("\"bytes\": 30000000000"),
            "{json}"
        );
    }
}
