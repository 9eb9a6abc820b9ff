//! `wattlock-lab bench https`: nginx with OpenSSL's own ciphers and with the provider's, in turns, and
//! with the newest OpenSSL where there is one.

mod client;
mod contenders;
mod guarded;
mod primitive;
mod printed;
mod server;
mod tables;

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};
use wattlock_energy::Metered;
use wattlock_engine::Fault;
use wattlock_file::Shown;
use wattlock_gpu::Named;
use wattlock_host::exit::{Ended, unavailable};
use wattlock_host::signals;
use wattlock_provider::configuration as provider;
use wattlock_report::results::Sample;
use wattlock_report::results::{Results, Row};

use super::joules::Counted;
use super::lab::{Lab, Windows};
use crate::args::{self, Suite};
use crate::bench::publish;
use client::{Clients, Load};
use contenders::{Contender, Hardware, Running};
use server::Place;

/// `wattlock-lab bench https`.
pub fn run(args: &args::BenchHttps) -> Ended {
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    let settings = Settings::new(args)?;
    let provider = provider::find(args.provider.as_deref());
    if let (Some(_), Err(why)) = (&args.provider, &provider) {
        return Err(unavailable(why.as_str()));
    }
    let directory = tempfile::Builder::new()
        .prefix("wattlock-bench-")
        .tempdir()
        .context("cannot make a temporary directory; set TMPDIR to a writable one")?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let (first, last) = cpus()?;
    let programs = Programs::find();
    let windows = if args.quick { Windows::QUICK } else { Windows::SHORT };
    let mut results = Results::new("https");
    settings.record(&mut results, (first, last));
    let newest = newest(args.openssl_newest.as_deref(), &mut results)?;
    match &programs {
        Ok(programs) => programs.record(&mut results),
        Err(why) => results.skipped.push(format!("pages by HTTPS: {why}")),
    }
    if let Err(why) = &provider {
        let ours = settings.contenders().filter(|contender| contender.is_ours());
        let ours: Vec<String> = ours.map(|contender| contender.tool(&results)).collect();
        results.skipped.push(format!("{}: {why}", ours.join(", ")));
    }
    let bench = programs.ok().map(|programs| Bench {
        place: Place {
            directory: directory.path().to_owned(),
            nginx: programs.nginx,
            newest,
            cpu: first,
        },
        clients: Clients { wrk: programs.wrk, ab: programs.ab, curl: programs.curl, cpu: last },
        provider,
        settings: &settings,
    });
    if let Some(bench) = &bench {
        bench.place.furnish(&settings.sizes)?;
    }
    let mut lab = Lab::new(results, &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        if let Some(bench) = &bench {
            settings.suites.iter().try_for_each(|suite| bench.suite(lab, *suite))?;
        }
        primitive::measure(lab, &settings.primitive, first)
    })?;
    let mut results = lab.results;
    results.skipped.dedup();
    results.ratios = tables::ratios(&results);
    if settings.is_quick {
        results.only_tell();
    }
    publish::publish(&results, args.json.as_deref(), &args.meters, |results| {
        let paper = if args.paper { printed::text(results) } else { String::new() };
        tables::text(results) + &paper + &results.foot()
    })
}

/// What was asked for, with `--quick` worked in.
struct Settings {
    sizes: Vec<u64>,
    suites: Vec<Suite>,
    seconds: u16,
    rounds: u16,
    is_quick: bool,
    /// Whether the study's client asks, too.
    with_ab: bool,
    primitive: primitive::Settings,
    /// Its setting for the provider, and its name.
    accelerator: String,
    hardware: Hardware,
}

impl Settings {
    fn new(args: &args::BenchHttps) -> anyhow::Result<Self> {
        let (accelerator, hardware) = accelerator(&args.accelerator)?;
        let (rounds, seconds) = if args.quick { (1, 1) } else { (3, 2) };
        let rounds = args.rounds.unwrap_or(rounds);
        let mut sizes: Vec<u64> = if !args.sizes.is_empty() {
            args.sizes.clone()
        } else if args.quick {
            vec![16 << 10, 512 << 10]
        } else {
            (10..=21).map(|power| 1 << power).collect()
        };
        sizes.sort_unstable();
        sizes.dedup();
        let all = vec![Suite::CbcSha384, Suite::CbcSha256, Suite::Gcm, Suite::Tls13];
        let kilobytes =
            if args.quick { vec![16, 64] } else { vec![1, 2, 4, 8, 16, 32, 64, 128, 256] };
        Ok(Self {
            sizes,
            suites: if args.suites.is_empty() { all } else { args.suites.clone() },
            seconds: args.seconds.unwrap_or(seconds),
            rounds,
            is_quick: args.quick,
            with_ab: args.paper,
            primitive: primitive::Settings { kilobytes, rounds, seconds: 1 },
            accelerator,
            hardware,
        })
    }

    fn contenders(&self) -> impl Iterator<Item = Contender> {
        Contender::all(self.hardware).into_iter()
    }

    fn record(&self, results: &mut Results, (first, last): (usize, usize)) {
        let suites: Vec<_> = self.suites.iter().map(|suite| suite.openssl_name()).collect();
        for (name, value) in [
            ("page_bytes", json!(self.sizes)),
            ("suites", json!(suites)),
            ("seconds", json!(self.seconds)),
            ("rounds", json!(self.rounds)),
            ("connections", json!(client::CONNECTIONS)),
            ("server_cpu", json!(first)),
            ("client_cpu", json!(last)),
            ("accelerator", json!(self.accelerator)),
            ("negotiated", json!({})),
            ("counted", json!({})),
        ] {
            results.settings.insert(name.into(), value);
        }
        results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
        let siblings = format!("/sys/devices/system/cpu/cpu{first}/topology/thread_siblings_list");
        let siblings = list(&std::fs::read_to_string(siblings).unwrap_or_default());
        if first == last || siblings.contains(&last) {
            let note = "a core for the client: it shares that of the server, which takes from both";
            results.skipped.push(note.into());
        }
    }
}

/// The nginx in the folder of the newest OpenSSL, whose version is recorded; none if none was asked
/// for.
///
/// # Errors
/// Exit code 4: there is none in the folder.
fn newest(folder: Option<&Path>, results: &mut Results) -> anyhow::Result<Option<PathBuf>> {
    let Some(folder) = folder else {
        let why = "--openssl-newest names the folder of one, which `make openssl` builds";
        results.skipped.push(format!("the newest OpenSSL: {why}"));
        return Ok(None);
    };
    let nginx = folder.join("bin/nginx");
    let version = server::version(&nginx);
    let found = server::openssl_of(&version).map(str::to_owned).zip(nginx.canonicalize().ok());
    let (version, nginx) = found.ok_or_else(|| {
        let nginx = Shown(&nginx);
        unavailable(format!(
            "--openssl-newest: no nginx with OpenSSL at {nginx}; `make openssl` builds it"
        ))
    })?;
    results.settings.insert(contenders::NEWEST_VERSION.into(), json!(version));
    Ok(Some(nginx))
}

/// The programs without which no page is served.
struct Programs {
    nginx: PathBuf,
    wrk: PathBuf,
    ab: Option<PathBuf>,
    curl: PathBuf,
}

impl Programs {
    fn find() -> Result<Self, String> {
        let need = |name: &str, package: &str| {
            guarded::find(name).ok_or_else(|| {
                format!("{name} is not installed; Debian's package {package} has it")
            })
        };
        need("openssl", "openssl")?;
        need("taskset", "util-linux")?;
        Ok(Self {
            nginx: need("nginx", "nginx")?,
            wrk: need("wrk", "wrk")?,
            ab: guarded::find("ab"),
            curl: need("curl", "curl")?,
        })
    }

    fn record(&self, results: &mut Results) {
        let mut add = |name: &str, version| results.tools.insert(name.into(), version);
        add("nginx", server::version(&self.nginx));
        add("wrk", client::version(&self.wrk, &["-v"]));
        add("curl", client::version(&self.curl, &["--version"]));
        if let Some(ab) = &self.ab {
            add("ab", client::version(ab, &["-V"]));
        }
    }
}

struct Bench<'a> {
    place: Place,
    clients: Clients,
    provider: Result<PathBuf, String>,
    settings: &'a Settings,
}

/// What one round saw of one contender.
struct Turn {
    requests: u64,
    wall_ns: u64,
    cpu_ns: u64,
    window: Option<Metered>,
}

impl Bench<'_> {
    /// All pages over one suite.
    fn suite(&self, lab: &mut Lab<'_>, suite: Suite) -> anyhow::Result<()> {
        let name = suite.openssl_name();
        let mut running = Vec::new();
        let provider = self.provider.as_deref().ok();
        for contender in self.settings.contenders() {
            let nginx = self.place.nginx(contender.is_newest());
            let Some(nginx) = nginx.filter(|_| !contender.is_ours() || provider.is_some()) else {
                // Said once for all suites.
                continue;
            };
            let tool = contender.tool(&lab.results);
            let given = (provider, self.settings.accelerator.as_str());
            let started = Running::start(&self.place, contender, suite, given);
            let checked = started.and_then(|one| {
                let negotiated = self.check(&one, suite)?;
                Ok((one, negotiated))
            });
            match checked {
                Ok((one, negotiated)) => {
                    note(lab, "negotiated", &format!("{name}, {tool}"), json!(negotiated));
                    lab.results.tools.entry(tool).or_insert_with(|| server::version(nginx));
                    running.push(one);
                }
                Err(why) => {
                    lab.results.skipped.push(format!("{tool}, {name}: {why:#}"));
                }
            }
        }
        for &size in &self.settings.sizes {
            self.page(lab, suite, size, Load::Wrk, &running)?;
            if self.settings.with_ab && suite == Suite::CbcSha384 {
                self.page(lab, suite, size, Load::Ab, &running)?;
            }
            tell!("{}", case(suite, size, Load::Wrk));
        }
        for one in &running {
            if let Some(counted) = one.counted()? {
                let key = format!("{name}, {}", one.contender.tool(&lab.results));
                note(lab, "counted", &key, json!(counted));
            }
        }
        Ok(())
    }

    /// Asks for the largest page until the accelerator has done something, if it has a driver.
    fn warm_up(&self, one: &Running, suite: Suite) -> anyhow::Result<()> {
        let largest = self.settings.sizes.iter().copied().max().unwrap_or(0);
        if matches!(one.contender.hardware(), None | Some(Hardware::Simulated)) {
            return Ok(());
        }
        let started = std::time::Instant::now();
        while !one.has_accelerated()? && started.elapsed() < PATIENCE {
            self.clients.check(&self.place, &one.nginx, suite, largest)?;
        }
        Ok(())
    }

    /// Every page once by curl, and what the provider counts of it. Returns what was negotiated.
    fn check(&self, one: &Running, suite: Suite) -> anyhow::Result<String> {
        self.warm_up(one, suite)?;
        let before = one.counted()?;
        let mut negotiated = String::new();
        let sizes = &self.settings.sizes;
        for &size in sizes {
            negotiated = self.clients.check(&self.place, &one.nginx, suite, size)?;
        }
        let largest = sizes.iter().copied().max().unwrap_or(0);
        one.prove(before.as_ref(), sizes.iter().sum(), largest)?;
        Ok(negotiated)
    }

    /// One page by all contenders, in turns that start with another each round.
    fn page(
        &self,
        lab: &mut Lab<'_>,
        suite: Suite,
        size: u64,
        load: Load,
        running: &[Running],
    ) -> anyhow::Result<()> {
        let mut turns: Vec<anyhow::Result<Vec<Turn>>> =
            running.iter().map(|_| Ok(Vec::new())).collect();
        for round in 0..usize::from(self.settings.rounds) {
            for turn in 0..running.len() {
                let index = (round + turn) % running.len();
                let Ok(so_far) = &mut turns[index] else { continue };
                match self.turn(lab, suite, size, load, &running[index]) {
                    Ok(turn) => so_far.push(turn),
                    Err(why) => turns[index] = Err(why),
                }
            }
        }
        for (one, turns) in running.iter().zip(turns) {
            match turns {
                Ok(turns) => add(lab, one.contender, &case(suite, size, load), size, turns),
                Err(why) => {
                    let tool = one.contender.tool(&lab.results);
                    let what = format!("{tool}, {}", case(suite, size, load));
                    lab.results.skipped.push(format!("{what}: {why:#}"));
                }
            }
        }
        Ok(())
    }

    fn turn(
        &self,
        lab: &mut Lab<'_>,
        suite: Suite,
        size: u64,
        load: Load,
        one: &Running,
    ) -> anyhow::Result<Turn> {
        let asked = (size, self.settings.seconds);
        let before = one.nginx.cpu()?;
        let (seen, window) =
            lab.watch(|| self.clients.load(load, &self.place, &one.nginx, suite, asked))?;
        let seen = seen?;
        let cpu = one.nginx.cpu()?.saturating_sub(before);
        let each = |time: std::time::Duration| (time.as_nanos() / u128::from(seen.requests)) as u64;
        Ok(Turn { requests: seen.requests, wall_ns: each(seen.wall), cpu_ns: each(cpu), window })
    }
}

/// The provider's setting for an accelerator and its name, if this machine has it.
fn accelerator(asked: &str) -> anyhow::Result<(String, Hardware)> {
    // `parse_accelerator` lets only these and models pass.
    let Some(named) = Named::parse(asked) else {
        return Ok((asked.to_owned(), Hardware::Simulated));
    };
    let missing =
        |why: Fault| unavailable(format!("--accelerator {asked}: {why}; see wattlock devices"));
    named.runtime.list().map_err(missing)?;
    let offer = named.choose_even_cpu().map_err(missing)?;
    let name = named.runtime.name;
    let hardware = if offer.is_cpu { Hardware::OnTheCpu(name) } else { Hardware::Real(name) };
    Ok((offer.id, hardware))
}

/// For a driver to compile, in a server that waits for nothing.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A row of which a repetition is one request.
fn add(lab: &mut Lab<'_>, contender: Contender, case: &str, size: u64, turns: Vec<Turn>) {
    let sample = |of: fn(&Turn) -> u64| Sample::of(turns.iter().map(of).collect());
    let row = Row {
        tool: contender.tool(&lab.results),
        case: case.into(),
        call_bytes: Some(size),
        bytes: size,
        wall_ns: sample(|turn| turn.wall_ns),
        cpu_ns: sample(|turn| turn.cpu_ns),
        requests: Some(sample(|turn| turn.requests)),
        ..Row::default()
    };
    let mut counted = Counted::default();
    for turn in turns {
        if let Some(window) = turn.window {
            counted.push(window, turn.requests * size);
        }
    }
    lab.add(row, counted);
}

/// What a row is called.
fn case(suite: Suite, size: u64, load: Load) -> String {
    let by = if load == Load::Ab { ", by ab" } else { "" };
    format!("{}, {}{by}", suite.openssl_name(), size_name(size))
}

/// "512 KiB"
fn size_name(size: u64) -> String {
    match size {
        size if size > 0 && size % (1 << 20) == 0 => format!("{} MiB", size >> 20),
        size if size > 0 && size % (1 << 10) == 0 => format!("{} KiB", size >> 10),
        size => format!("{size} B"),
    }
}

/// Puts something under a key of one of the settings.
fn note(lab: &mut Lab<'_>, setting: &str, key: &str, value: Value) {
    if let Some(object) = lab.results.settings.get_mut(setting).and_then(Value::as_object_mut) {
        object.insert(key.into(), value);
    }
}

/// The first and the last CPU that this program may use.
fn cpus() -> anyhow::Result<(usize, usize)> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = list(allowed.unwrap_or_default());
    let (Some(first), Some(last)) = (allowed.iter().min(), allowed.iter().max()) else {
        bail!("/proc/self/status does not list the allowed CPUs");
    };
    Ok((*first, *last))
}

/// "0-3,8" as the kernel writes it.
fn list(text: &str) -> Vec<usize> {
    let number = |text: &str| text.trim().parse::<usize>().ok();
    let range = |part: &str| match part.split_once('-') {
        Some((from, to)) => Some(number(from)?..=number(to)?),
        None => Some(number(part)?..=number(part)?),
    };
    text.split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(list(" 0-2,8\n"), [0, 1, 2, 8]);
        assert_eq!(list("5"), [5]);
        assert_eq!(list(""), [0usize; 0]);
    }

    #[test]
    fn a_model_is_never_called_anything_else() {
        let results = Results::new("https");
        for contender in Contender::all(Hardware::Simulated) {
            let tool = contender.tool(&results);
            assert_eq!(tool.contains("simulated"), contender.hardware().is_some(), "{tool}");
        }
        for hardware in Hardware::all().skip(1) {
            for contender in Contender::all(hardware) {
                let tool = contender.tool(&results);
                assert!(!tool.contains("simulated"));
                assert!(tool.len() <= 32, "the column of the table");
            }
        }
    }

    #[test]
    fn sizes_have_names() {
        assert_eq!(size_name(2 << 20), "2 MiB");
        assert_eq!(size_name(1536), "1536 B");
        assert_eq!(size_name(16 << 10), "16 KiB");
    }
}
