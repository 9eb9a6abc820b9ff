//! What a run did: for a person on a terminal, or as JSON.

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde::Serialize;
use wattlock_engine::Doubt;
use wattlock_file::{Done, Error, Found, Outcome, Shard, Shown, Skip, name_bytes};

use crate::exit::{self, Ended};
use crate::lock::lock;

/// Collects how each file ended, and says it.
pub struct Summary {
    started: Instant,
    threads: usize,
    json: bool,
    quiet: bool,
    /// True if each file is named when it is done.
    verbose: bool,
    /// The name of what was to be least, and whether anything was measured that says how.
    goal: Option<(&'static str, bool)>,
    lines: Mutex<Vec<Line>>,
    /// The exit code where no file failed.
    least: AtomicU8,
    /// The part of the files that this run does, if it is not all of them.
    shard: OnceLock<Shard>,
}

/// One file in the JSON summary.
#[derive(Serialize)]
struct Line {
    input: String,
    /// In base64, if the name is not UTF-8, as of the output.
    #[serde(skip_serializing_if = "Option::is_none")]
    input_name_bytes: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_name_bytes: Option<String>,
    #[serde(skip)]
    input_path: PathBuf,
    #[serde(skip)]
    output_path: Option<PathBuf>,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'static str>,
    in_bytes: u64,
    out_bytes: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    signed_by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    /// The first byte of each part that could not be salvaged, and the first behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lost: Vec<[u64; 2]>,
    #[serde(skip)]
    exit_code: u8,
    #[serde(skip)]
    devices: Vec<Device>,
    /// Why its devices may not be those of the goal.
    #[serde(skip)]
    doubt: Option<Doubt>,
}

/// What a device did, over all files.
#[derive(Clone, Serialize)]
struct Device {
    name: String,
    bytes: u64,
    pieces: u64,
    busy_ns: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
}

/// The JSON summary of a run.
#[derive(Serialize)]
struct Document<'a> {
    command: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
    exit_code: u8,
    wall_ns: u64,
    cpu_ns: u64,
    threads: usize,
    in_bytes: u64,
    out_bytes: u64,
    devices: Vec<Device>,
    files: &'a [Line],
    skipped: Vec<Skipped>,
}

#[derive(Serialize)]
struct Skipped {
    input: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_name_bytes: Option<String>,
    why: &'static str,
}

impl Summary {
    /// Starts the clock.
    pub fn new(threads: usize, json: bool, quiet: bool) -> Self {
        let (started, lines) = (Instant::now(), Mutex::default());
        let least = AtomicU8::new(0);
        let shard = OnceLock::new();
        Self { started, threads, json, quiet, verbose: false, goal: None, lines, least, shard }
    }

    /// The same, and each file is named when it is done if `verbose`.
    #[must_use]
    pub(crate) fn with_verbose(self, verbose: bool) -> Self {
        Self { verbose, ..self }
    }

    /// The same for a run whose devices are chosen by a goal of that name; `is_measured` if there
    /// are profiles to choose by.
    pub(crate) fn with_goal(self, name: &'static str, is_measured: bool) -> Self {
        Self { goal: Some((name, is_measured)), ..self }
    }

    /// Notes how a file ended; an error is said at once.
    pub fn add(&self, input: &Path, planned: Option<&Path>, ended: Result<Outcome, Error>) {
        let mut line = Line {
            input: input.display().to_string(),
            input_name_bytes: name_bytes(input),
            output: None,
            output_name_bytes: None,
            input_path: input.to_owned(),
            output_path: None,
            status: "failed",
            format: None,
            in_bytes: 0,
            out_bytes: 0,
            signed_by: None,
            error: None,
            lost: Vec::new(),
            exit_code: 0,
            devices: Vec::new(),
            doubt: None,
        };
        if let Some(output) = planned {
            line.set_output(output);
        }
        let mut removed_signature = None;
        match ended {
            Ok(Outcome::Made(done)) => {
                line.fill("done", &done);
                removed_signature = done.removed_signature;
            }
            Ok(Outcome::Kept(done)) => line.fill("kept", &done),
            Err(error) => {
                exit::say_file_error(input, &error);
                line.exit_code = exit::code_of(&error);
                line.error = Some(error.to_string());
                if let Error::Salvaged { lost, .. } = &error {
                    line.lost = lost.iter().map(|range| [range.start, range.end]).collect();
                }
            }
        }
        if let Some(signature) = removed_signature.filter(|_| !self.quiet) {
            tell!("{}: removed: it was made for the former payload", Shown(&signature));
        }
        if self.verbose && line.error.is_none() {
            tell!("{}: {}", line.status, line.way());
        }
        lock(&self.lines).push(line);
    }

    /// Leaves of what was found what is in `shard`, if there is one, and notes that.
    pub fn retain_shard(&self, found: &mut Found, shard: Option<Shard>, inputs: &[PathBuf]) {
        if let Some(shard) = shard {
            found.retain_shard(shard, inputs);
            let _ = self.shard.set(shard);
        }
    }

    /// Notes that the run failed, although no file did.
    pub fn fail(&self) {
        self.least.store(exit::FAILURE, Ordering::Relaxed);
    }

    /// True if no file was added.
    pub fn is_empty(&self) -> bool {
        lock(&self.lines).is_empty()
    }

    /// Says the whole, and gives the exit code: that of the gravest error.
    pub fn finish(
        &self,
        command: &str,
        skipped: &[(PathBuf, Skip)],
        stdout_is_data: bool,
    ) -> Ended {
        let lines = lock(&self.lines);
        let sum = |bytes: fn(&Line) -> u64| lines.iter().map(bytes).sum();
        let document = Document {
            command,
            shard: self.shard.get().map(Shard::to_string),
            exit_code: lines
                .iter()
                .map(|line| line.exit_code)
                .fold(self.least.load(Ordering::Relaxed), u8::max),
            wall_ns: nanoseconds(self.started.elapsed()),
            cpu_ns: nanoseconds(process_cpu_time()),
            threads: self.threads,
            in_bytes: sum(|line| line.in_bytes),
            out_bytes: sum(|line| line.out_bytes),
            devices: devices(&lines),
            files: &lines,
            skipped: skipped
                .iter()
                .map(|(path, why)| Skipped {
                    input: path.display().to_string(),
                    input_name_bytes: name_bytes(path),
                    why: reason(*why),
                })
                .collect(),
        };
        if self.json {
            let mut text = serde_json::to_string_pretty(&document)?;
            text.push('\n');
            if stdout_is_data {
                std::io::stderr().write_all(text.as_bytes())?;
            } else {
                exit::print(&text)?;
            }
        } else if !self.quiet && std::io::stderr().is_terminal() {
            document.print();
        }
        // Said even to those who asked for no summary: such a device needs a look.
        for device in &document.devices {
            if let Some(fault) = &device.fault {
                exit::say_fault(&device.name, fault);
            }
        }
        if let Some((goal, is_measured)) = self.goal.filter(|_| !self.quiet) {
            // A short input is not compared either, but there is nothing to choose.
            let found = || lines.iter().find_map(|line| line.doubt);
            let doubt = if is_measured { found() } else { Some(Doubt::NoProfiles) };
            if let Some(doubt) = doubt {
                say!("--goal {goal}: {}", doubt.advice());
            }
        }
        // Printed even without a terminal: a backup without its links may surprise its owner.
        let passed_over = |why| skipped.iter().filter(|(_, skip)| *skip == why).count();
        for why in [Skip::Link, Skip::Special, Skip::NotAContainer, Skip::Temporary] {
            let count = passed_over(why);
            if count > 0 && !self.quiet {
                say!("{}", told(why, count));
            }
        }
        Ok(ExitCode::from(document.exit_code))
    }
}

impl Line {
    /// From where to where.
    fn way(&self) -> String {
        let input = Shown(&self.input_path);
        match &self.output_path {
            Some(output) => format!("{input} → {}", Shown(output)),
            None => input.to_string(),
        }
    }

    fn set_output(&mut self, output: &Path) {
        self.output = Some(output.display().to_string());
        self.output_name_bytes = name_bytes(output);
        self.output_path = Some(output.to_owned());
    }

    fn fill(&mut self, status: &'static str, done: &Done) {
        self.status = status;
        self.format = Some(done.format);
        (self.in_bytes, self.out_bytes) = (done.bytes_in, done.bytes_out);
        if let Some(output) = &done.output {
            self.set_output(output);
        }
        self.signed_by.clone_from(&done.signed_by);
        self.doubt = done.report.chosen.doubt;
        self.devices = done
            .report
            .devices()
            .map(|device| Device {
                name: device.name.to_string(),
                bytes: device.bytes,
                pieces: device.pieces,
                busy_ns: nanoseconds(device.busy),
                fault: device.fault.as_ref().map(ToString::to_string),
            })
            .collect();
    }
}

impl Document<'_> {
    fn print(&self) {
        let seconds = self.wall_ns as f64 / 1e9;
        // What was released: of a range, little of the container is read and less comes out.
        let bytes = match self.command {
            "unprotect" => self.out_bytes,
            _ => self.in_bytes.max(self.out_bytes),
        };
        let what = match self.files {
            [line @ Line { error: None, .. }] if self.command != "verify" => line.way(),
            [line] => Shown(&line.input_path).to_string(),
            lines => format!("{} files", lines.len()),
        };
        let failed = self.files.iter().filter(|line| line.error.is_some()).count();
        let ended = match (failed, self.command) {
            (0, "verify") => "authentic".to_owned(),
            (0, _) => "done".to_owned(),
            (failed, _) => format!("{failed} failed"),
        };
        tell!(
            "{what}: {ended}, {} in {seconds:.2} s, {}/s, {:.2} CPU seconds",
            human(bytes as f64),
            human(bytes as f64 / seconds),
            self.cpu_ns as f64 / 1e9,
        );
        if self.devices.iter().any(|device| device.name != "cpu") {
            let shares = self.devices.iter();
            let shares =
                shares.map(|device| format!("{} {}", device.name, human(device.bytes as f64)));
            tell!("  by {}", shares.collect::<Vec<_>>().join(", "));
        }
    }
}

fn devices(lines: &[Line]) -> Vec<Device> {
    let mut devices: Vec<Device> = Vec::new();
    for device in lines.iter().flat_map(|line| &line.devices) {
        match devices.iter_mut().find(|known| known.name == device.name) {
            Some(known) => {
                known.bytes += device.bytes;
                known.pieces += device.pieces;
                known.busy_ns += device.busy_ns;
                known.fault = known.fault.take().or_else(|| device.fault.clone());
            }
            None => devices.push(device.clone()),
        }
    }
    devices
}

/// Why a file is skipped.
pub fn reason(skip: Skip) -> &'static str {
    match skip {
        Skip::Link => "a symbolic link",
        Skip::Special => "neither a file nor a directory",
        Skip::Container => "a container already",
        Skip::NotAContainer => "not a container",
        Skip::Temporary => "the unfinished output of another run",
        Skip::Excluded => "it matches --exclude",
    }
}

/// As many files were skipped: what they are, and what to do.
fn told(skip: Skip, count: usize) -> String {
    let (one, many, advice) = match skip {
        Skip::Link => {
            ("symbolic link", "symbolic links", "to include them, name the files that they lead to")
        }
        Skip::Special => (
            "entry that is neither a file nor a folder",
            "entries that are neither files nor folders",
            "only files are worked on",
        ),
        Skip::Container => ("container", "containers", "it is protected already"),
        Skip::NotAContainer => (
            "file that is not a container",
            "files that are not containers",
            "only what `wattlock protect` or age made can be opened",
        ),
        Skip::Temporary => (
            "unfinished output of another run",
            "unfinished outputs of other runs",
            "that run removes it, or the next one that writes to its folder",
        ),
        Skip::Excluded => ("entry", "entries", "--exclude leaves it out"),
    };
    format!("skipped {count} {}: {advice}", if count == 1 { one } else { many })
}

/// User and system time of the whole process so far.
pub fn process_cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), time.tv_nsec.unsigned_abs() as u32)
}

fn nanoseconds(duration: Duration) -> u64 {
    duration.as_nanos().try_into().unwrap_or(u64::MAX)
}

/// Bytes with a binary prefix, to three digits.
pub fn human(bytes: f64) -> String {
    const PREFIXES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
    let mut value = bytes;
    let mut prefix = 0;
    while value >= 999.5 && prefix + 1 < PREFIXES.len() {
        value /= 1024.0;
        prefix += 1;
    }
    let digits = if prefix == 0 || value >= 99.5 { 0 } else { 1 };
    format!("{value:.digits$} {}", PREFIXES[prefix])
}
