//! `wattlock-lab bench files`: one large file, many small ones, and a cold start, each tool in turn.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use serde_json::json;
use wattlock_file::NativeIdentity;
use wattlock_host::accelerators::Selection;
use wattlock_host::exit::Ended;
use wattlock_host::signals;
use wattlock_host::summary::human;
use wattlock_report::columns::Columns;
use wattlock_report::results::{Joules, Ratio, Results, Sample};

use super::child::{self, Cost};
use super::content::{random_file, same};
use super::lab::{Lab, Windows};
use super::rows::{Watched, add, watched};
use super::tools::{self, Keys, Tool};
use super::trees::{self, Tree};
use crate::args;
use crate::bench::publish;
use crate::wattlock;

/// `wattlock-lab bench files`.
pub fn run(args: &args::BenchFiles) -> Ended {
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    if !args.devices.names.is_empty() {
        // Each run of wattlock would refuse them; the first comes late.
        Selection::from(&args.devices).engine(1)?;
    }
    let settings = Settings::new(args);
    let directory =
        tempfile::Builder::new().prefix("wattlock-bench-").tempdir_in(&settings.dir).with_context(
            || format!("cannot write to {}; choose another --dir", settings.dir.display()),
        )?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let bench = Bench::new(settings, directory.path())?;
    let windows = if args.quick { Windows::QUICK } else { Windows::LONG };
    let mut lab = Lab::new(bench.results(), &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        bench.large_file(lab)?;
        bench.small_files(lab)?;
        bench.trees(lab)?;
        bench.cold_start(lab)
    })?;
    let mut results = lab.results;
    bench.ratios(&mut results);
    publish::publish(&results, args.json.as_deref(), &args.meters, text)
}

/// What was asked for, with `--quick` worked in.
struct Settings {
    size: u64,
    rounds: usize,
    files: usize,
    file_size: u64,
    dir: PathBuf,
    /// A folder on a disk.
    disk: PathBuf,
    /// Files of a tree in memory; on the disk there are a tenth of them.
    tree_files: usize,
    age: Option<PathBuf>,
    threads: usize,
    devices: args::Devices,
}

impl Settings {
    fn new(args: &args::BenchFiles) -> Self {
        let quick = |usual, quick| if args.quick { quick } else { usual };
        Self {
            size: if args.quick { args.size.min(64 << 20) } else { args.size },
            rounds: quick(args.rounds, 3),
            files: args.files.min(quick(usize::MAX, 100)),
            file_size: args.file_size,
            dir: args.dir.clone(),
            disk: args.disk.clone(),
            tree_files: args.files.min(quick(1000, 50)) * 20,
            age: args.age.clone(),
            threads: args.threads.unwrap_or_else(|| args::threads(None)),
            devices: args.devices.clone(),
        }
    }
}

struct Bench<'a> {
    settings: Settings,
    directory: &'a Path,
    tools: Vec<Tool>,
    keys: Keys,
}

impl<'a> Bench<'a> {
    fn new(settings: Settings, directory: &'a Path) -> anyhow::Result<Self> {
        let room = rustix::fs::statvfs(directory)?;
        let room = room.f_bavail * room.f_frsize;
        let small = settings.files as u64 * settings.file_size;
        let needed = (settings.size + small) * 31 / 10 + (16 << 20);
        if room < needed {
            bail!(
                "{} has {} free, but {} are needed; choose another --dir or a smaller --size",
                settings.dir.display(),
                human(room as f64),
                human(needed as f64)
            );
        }
        // gpg requires its own home directory, closed to other users.
        let home = directory.join("keys");
        fs::create_dir(&home)?;
        fs::set_permissions(&home, fs::Permissions::from_mode(0o700))?;
        let identity = NativeIdentity::generate();
        let keys = Keys {
            recipient: identity.recipient().text().unwrap_or_default().to_owned(),
            identity: home.join("identity"),
            passphrase: home.join("passphrase"),
            directory: home,
            threads: settings.threads,
            devices: settings.devices.words(),
        };
        let age = settings.age.clone();
        fs::write(&keys.identity, identity.to_text().as_bytes())?;
        fs::write(&keys.passphrase, "a passphrase for measuring")?;
        Ok(Self { settings, directory, tools: tools::installed(age.as_deref())?, keys })
    }

    fn results(&self) -> Results {
        let mut results = Results::new("files");
        for tool in &self.tools {
            results.tools.insert(tool.name.into(), tool.version.clone());
        }
        if self.settings.tree_files > 0 {
            let trees = trees::versions(&self.tools);
            results.tools.extend(trees.into_iter().map(|(name, version)| (name.into(), version)));
        }
        let Settings {
            size,
            rounds,
            files,
            file_size,
            dir,
            disk,
            tree_files,
            threads,
            devices,
            ..
        } = &self.settings;
        results.settings = [
            ("size_bytes", json!(size)),
            ("rounds", json!(rounds)),
            ("files", json!(files)),
            ("file_size_bytes", json!(file_size)),
            ("dir", json!(dir)),
            ("disk", json!(disk)),
            ("tree_files", json!(tree_files)),
            ("threads", json!(threads)),
            ("devices", json!(devices.words())),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into();
        results
    }

    /// Every tool protects and unprotects one large file, in turn, round after round.
    fn large_file(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        let plain = self.path("plain");
        random_file(&plain, self.settings.size)?;
        let mut costs = vec![(Vec::new(), Vec::new()); self.tools.len()];
        // Round 0 warms up and checks that each tool gives back what it was given.
        for round in 0..=self.settings.rounds {
            // Each round starts with another tool: what one leaves behind in caches and in the
            // host's memory must not always meet the same one.
            for turn in 0..self.tools.len() {
                let index = (round + turn) % self.tools.len();
                let tool = &self.tools[index];
                let (there, back) = self.there_and_back(lab, tool, &plain, round == 0)?;
                if round > 0 {
                    costs[index].0.push(there);
                    costs[index].1.extend(back);
                }
            }
            tell!("large file: {}", self.round(round));
        }
        for (tool, (there, back)) in self.tools.iter().zip(costs) {
            let first = if back.is_empty() { "copy" } else { "protect" };
            add(lab, tool.name, first, self.settings.size, there);
            if !back.is_empty() {
                add(lab, tool.name, "unprotect", self.settings.size, back);
            }
        }
        fs::remove_file(plain)?;
        Ok(())
    }

    /// A round's name; the first warms up.
    fn round(&self, round: usize) -> String {
        match round {
            0 => "warm-up".to_owned(),
            _ => format!("round {round} of {}", self.settings.rounds),
        }
    }

    fn there_and_back(
        &self,
        lab: &mut Lab<'_>,
        tool: &Tool,
        plain: &Path,
        check: bool,
    ) -> anyhow::Result<(Watched, Option<Watched>)> {
        let (sealed, opened) = (self.path("sealed"), self.path("opened"));
        let mut protect = tool.protect(&self.keys, plain, &sealed);
        let there = watched(lab, || child::run(&mut protect))?;
        let back = tool.unprotect(&self.keys, &sealed, &opened);
        let back = back.map(|mut command| watched(lab, || child::run(&mut command))).transpose()?;
        let result = if back.is_some() { &opened } else { &sealed };
        if check && !same(plain, result)? {
            bail!("{}: the decrypted file differs from the original", tool.name);
        }
        fs::remove_file(&sealed)?;
        if back.is_some() {
            fs::remove_file(&opened)?;
        }
        Ok((there, back))
    }

    /// Many small files: wattlock in one run, age once for each.
    fn small_files(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        if self.settings.files == 0 {
            return Ok(());
        }
        let (plain, sealed, opened) = (self.path("many"), self.path("ours"), self.path("back"));
        fs::create_dir(&plain)?;
        let files: Vec<PathBuf> =
            (0..self.settings.files).map(|index| plain.join(format!("{index:05}"))).collect();
        for file in &files {
            random_file(file, self.settings.file_size)?;
        }
        let recipient = [OsStr::new("-r"), OsStr::new(&self.keys.recipient)];
        let identity = [OsStr::new("-i"), self.keys.identity.as_os_str()];
        let age = self.tools.iter().find(|tool| tool.name == "age");
        let (mut there, mut back, mut once_each) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..=self.settings.rounds {
            let costs = (
                watched(lab, || self.many("protect", recipient, &plain, &sealed))?,
                watched(lab, || self.many("unprotect", identity, &sealed.join("many"), &opened))?,
                age.map(|age| watched(lab, || self.one_by_one(age, &files))).transpose()?,
            );
            if round > 0 {
                there.push(costs.0);
                back.push(costs.1);
                once_each.extend(costs.2);
            } else if !files.iter().all(|file| {
                let name = file.file_name().unwrap_or_default();
                same(file, &opened.join("many").join(name)).unwrap_or(false)
            }) {
                bail!("wattlock: the decrypted small files differ from the originals");
            }
            fs::remove_dir_all(&sealed)?;
            fs::remove_dir_all(&opened)?;
            tell!("small files: {}", self.round(round));
        }
        let bytes = self.settings.file_size * files.len() as u64;
        add(lab, "wattlock", "protect many, one run", bytes, there);
        add(lab, "wattlock", "unprotect many, one run", bytes, back);
        if !once_each.is_empty() {
            add(lab, "age", "protect many, once each", bytes, once_each);
        }
        fs::remove_dir_all(plain)?;
        Ok(())
    }

    fn many(
        &self,
        command: &str,
        key: [&OsStr; 2],
        from: &Path,
        to: &Path,
    ) -> anyhow::Result<Cost> {
        let mut wattlock = Command::new(wattlock::program()?);
        wattlock.arg(command).args(key).arg("--recursive").arg(from).arg("--out-dir").arg(to);
        wattlock.args(self.settings.devices.words());
        child::run(wattlock.arg(format!("--threads={}", self.settings.threads)))
    }

    fn one_by_one(&self, tool: &Tool, files: &[PathBuf]) -> anyhow::Result<Cost> {
        let sealed = self.path("one");
        let mut total = Cost::default();
        for file in files {
            total = total.then(child::run(&mut tool.protect(&self.keys, file, &sealed))?);
            fs::remove_file(&sealed)?;
        }
        Ok(total)
    }

    /// Trees of small files, in memory and on a disk.
    fn trees(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        let Settings { tree_files, disk, rounds, .. } = &self.settings;
        if *tree_files == 0 {
            return Ok(());
        }
        let age = self.tools.iter().find(|tool| tool.name == "age");
        let on_disk =
            tempfile::Builder::new().prefix("wattlock-bench-").tempdir_in(disk).with_context(
                || format!("cannot write to {}; choose another --disk", disk.display()),
            )?;
        let memory = self.path("trees");
        for (place, directory, files) in
            [("memory", &*memory, *tree_files), ("disk", on_disk.path(), tree_files / 10)]
        {
            let directory = &directory.join("tree");
            fs::create_dir_all(directory)?;
            let tree = Tree { place, directory, files, file_size: 4096, rounds: *rounds };
            trees::run(lab, &tree, &self.keys, age)?;
        }
        Ok(())
    }

    /// `wattlock inspect` of a small container, from nothing to the end.
    fn cold_start(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        let (plain, sealed) = (self.path("small"), self.path("small.wlk"));
        random_file(&plain, 20_000)?;
        child::run(&mut self.tools[0].protect(&self.keys, &plain, &sealed))?;
        let own = wattlock::program()?;
        let costs = (0..50)
            .map(|_| Ok((child::run(Command::new(&own).arg("inspect").arg(&sealed))?, None)))
            .collect::<anyhow::Result<Vec<_>>>()?;
        add(lab, "wattlock", "inspect, cold start", 0, costs);
        Ok(())
    }

    fn ratios(&self, results: &mut Results) {
        let mut ratios = Vec::new();
        let wall =
            |tool: &str, case: &str| results.row(tool, case).map(|row| row.wall_ns.median as f64);
        let cpu =
            |tool: &str, case: &str| results.row(tool, case).map(|row| row.cpu_ns.median as f64);
        for case in ["protect", "unprotect"] {
            let quotients = [
                ("wall", "cp", wall("wattlock", case), wall("cp", "copy"), 1.0),
                ("wall", "age", wall("wattlock", case), wall("age", case), 0.5),
                ("CPU", "age", cpu("wattlock", case), cpu("age", case), 0.8),
            ];
            for (what, peer, ours, theirs, limit) in quotients {
                if let (Some(ours), Some(theirs)) = (ours, theirs) {
                    let name = format!("{case}: {what}, wattlock / {peer}");
                    ratios.push(Ratio::at_most(name, ours / theirs, limit));
                }
            }
            if let Some(peak) = results.row("wattlock", case).and_then(|row| row.peak_rss_bytes) {
                let mib = peak as f64 / f64::from(1 << 20);
                ratios.push(Ratio::at_most(format!("{case}: peak memory, MiB"), mib, 64.0));
            }
        }
        let ours = wall("wattlock", "protect many, one run");
        let theirs = wall("age", "protect many, once each");
        if let (Some(ours), Some(theirs)) = (ours, theirs) {
            let name = "small files: wall, age once each / wattlock in one run".to_owned();
            ratios.push(Ratio::at_least(name, theirs / ours, 20.0));
        }
        for (place, limit) in [("memory", 2.0), ("disk", 1.5)] {
            let ours = wall("wattlock", &format!("protect tree, {place}"));
            let theirs = wall("cp -r", &format!("copy tree, {place}"));
            if let (Some(ours), Some(theirs)) = (ours, theirs) {
                let name = format!("tree, {place}: wall, wattlock / cp -r");
                ratios.push(Ratio::at_most(name, ours / theirs, limit));
            }
        }
        if let Some(start) = wall("wattlock", "inspect, cold start") {
            ratios.push(Ratio::at_most("inspect: cold start, ms".into(), start / 1e6, 5.0));
        }
        results.ratios = ratios;
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }
}

/// The table for people. Medians, and in brackets the median distance from them.
pub fn text(results: &Results) -> String {
    let seconds = |sample: &Sample| {
        let digits = if sample.median < 100_000_000 { 4 } else { 2 };
        let (median, mad) = (sample.median as f64 / 1e9, sample.mad as f64 / 1e9);
        format!("{median:.digits$} ({mad:.digits$})")
    };
    let mut table = Columns::new("<<>>>>><");
    let heads = ["tool", "case", "wall s", "CPU s", "GB/s", "peak memory"];
    table.row(heads.into_iter().chain(Joules::HEADS));
    for row in &results.rows {
        let rate = match row.bytes {
            0 => String::new(),
            bytes => format!("{:.2}", bytes as f64 / row.wall_ns.median as f64),
        };
        let cells = [
            row.tool.clone(),
            row.case.clone(),
            seconds(&row.wall_ns),
            seconds(&row.cpu_ns),
            rate,
            row.peak_rss_bytes.map_or_else(String::new, |peak| human(peak as f64)),
        ];
        table.row(cells.into_iter().chain(row.joules.cells()));
    }
    table.to_string() + &results.foot()
}
