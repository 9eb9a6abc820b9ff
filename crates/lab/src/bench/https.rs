//! `wattlock-lab bench https`: nginx with OpenSSL's own ciphers and with the provider's, in turns, with other releases of
//! OpenSSL too, and servers in Rust and Go.

mod client;
pub mod contenders;
pub mod guarded;
mod primitive;
mod server;
mod site;
mod tables;

use std::path::PathBuf;

use anyhow::{Context, bail};
use serde_json::{Value, json};
use wattlock_energy::Metered;
use wattlock_engine::Fault;
use wattlock_file::Shown;
use wattlock_gpu::Named;
use wattlock_host::exit::{Ended, unavailable, usage};
use wattlock_host::signals;
use wattlock_report::results::Sample;
use wattlock_report::results::{Results, Row};

use super::joules::Counted;
use super::lab::{Lab, Windows};
use crate::args::{self, Suite};
use crate::bench::publish;
use client::Clients;
pub use client::{Load, version};
use contenders::{Contender, Given, Hardware, Running};
use server::Place;
pub use site::Site;

/// `wattlock-lab bench https`.
pub fn run(args: &args::BenchHttps) -> Ended {
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    let settings = Settings::new(args)?;
    let directory = tempfile::Builder::new()
        .prefix("wattlock-bench-")
        .tempdir()
        .context("cannot make a temporary directory; set TMPDIR to a writable one")?;
    signals::clean_up_and_remove(directory.path().to_owned())?;
    let windows = if args.quick { Windows::QUICK } else { Windows::SHORT };
    let mut results = Results::new("https");
    let others = others(&args.openssl, &mut results)?;
    let site = Site::new(directory.path(), &settings, args.provider.as_deref(), &mut results)?
        .with_others(others);
    let rounds = settings.rounds;
    let kilobytes = if args.quick { vec![16, 64] } else { vec![1, 2, 4, 8, 16, 32, 64, 128, 256] };
    let primitive = primitive::Settings { kilobytes, rounds, seconds: 1 };
    let mut lab = Lab::new(results, &args.meters, windows)?;
    lab.run(&args.clocks, |lab| {
        site.pages(lab, &settings)?;
        primitive::measure(lab, &primitive, site.server_cpu())
    })?;
    let mut results = lab.results;
    results.skipped.dedup();
    results.ratios = tables::ratios(&results);
    if args.quick {
        results.only_tell();
    }
    publish::publish(&results, args.json.as_deref(), &args.meters, |results| {
        tables::text(results) + &results.foot()
    })
}

/// `wattlock-lab serve-rustls`: until it is killed.
pub fn serve_rustls(args: &args::ServeRustls) -> Ended {
    wattlock_peers::rustls_serve(&args.directory, args.port, &args.suite)?;
    Ok(std::process::ExitCode::SUCCESS)
}

/// What was asked for, with `--quick` worked in.
pub struct Settings {
    pub sizes: Vec<u64>,
    suites: Vec<Suite>,
    /// Who asks for pages.
    loads: Vec<Load>,
    contenders: Vec<Contender>,
    pub seconds: u16,
    pub rounds: u16,
    /// Its setting for the provider, and its name.
    pub accelerator: String,
    pub hardware: Hardware,
}

impl Settings {
    fn new(args: &args::BenchHttps) -> anyhow::Result<Self> {
        let (accelerator, hardware) = accelerator(&args.accelerator)?;
        let (rounds, seconds) = if args.quick { (1, 1) } else { (3, 2) };
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
        Ok(Self {
            sizes,
            suites: if args.suites.is_empty() { all } else { args.suites.clone() },
            loads: vec![Load::Wrk],
            contenders: Contender::all(hardware, args.openssl.len()),
            seconds: args.seconds.unwrap_or(seconds),
            rounds: args.rounds.unwrap_or(rounds),
            accelerator,
            hardware,
        })
    }

    /// What EECA's paper measured: its suite by its client, its four ways.
    ///
    /// # Errors
    /// Exit code 4: this machine does not have the accelerator.
    pub fn study(asked: &str, sizes: Vec<u64>) -> anyhow::Result<Self> {
        let (accelerator, hardware) = accelerator(asked)?;
        Ok(Self {
            sizes,
            suites: vec![Suite::CbcSha384],
            loads: vec![Load::Ab],
            contenders: Contender::study(hardware).into(),
            seconds: 2,
            rounds: 3,
            accelerator,
            hardware,
        })
    }

    fn record(&self, results: &mut Results, (first, last): (usize, usize)) {
        let loads: Vec<_> = self.loads.iter().map(|load| load.name()).collect();
        let suites: Vec<_> = self.suites.iter().map(|suite| suite.openssl_name()).collect();
        for (name, value) in [
            ("page_bytes", json!(self.sizes)),
            ("suites", json!(suites)),
            ("loads", json!(loads)),
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

/// The nginx in each folder of another OpenSSL; the versions are recorded.
///
/// # Errors
/// Exit code 4: there is none in a folder.
fn others(folders: &[PathBuf], results: &mut Results) -> anyhow::Result<Vec<PathBuf>> {
    if folders.is_empty() {
        let why = "--openssl names the folder of one, which `make openssl-all` builds";
        results.skipped.push(format!("another OpenSSL: {why}"));
    }
    let mut versions = Vec::new();
    let mut others = Vec::new();
    for folder in folders {
        let nginx = folder.join("bin/nginx");
        let version = server::version(&nginx);
        let found = server::openssl_of(&version).map(str::to_owned).zip(nginx.canonicalize().ok());
        let (version, nginx) = found.ok_or_else(|| {
            let nginx = Shown(&nginx);
            unavailable(format!(
                "--openssl: no nginx with OpenSSL at {nginx}; `make openssl-all` builds it"
            ))
        })?;
        if versions.contains(&version) {
            return Err(usage(format!("--openssl: two of them are OpenSSL {version}")));
        }
        versions.push(version);
        others.push(nginx);
    }
    results.settings.insert(contenders::OTHER_VERSIONS.into(), json!(versions));
    Ok(others)
}

/// What one round saw of one contender.
struct Turn {
    requests: u64,
    wall_ns: u64,
    cpu_ns: u64,
    window: Option<Metered>,
}

/// A server for each contender, and their client.
struct Bench<'a> {
    site: &'a Site,
    place: &'a Place,
    clients: &'a Clients,
    settings: &'a Settings,
}

impl Bench<'_> {
    /// All pages over one suite.
    fn suite(&self, lab: &mut Lab<'_>, suite: Suite) -> anyhow::Result<()> {
        let name = suite.openssl_name();
        let mut running = Vec::new();
        let provider = self.site.provider().ok();
        let mut header = 0;
        for &contender in &self.settings.contenders {
            if contender.is_ours() && provider.is_none() {
                // Said once for all suites.
                continue;
            }
            let tool = contender.tool(&lab.results);
            let given = Given { provider, accelerator: &self.settings.accelerator, header };
            let started = Running::start(self.place, contender, suite, given);
            let checked = started.and_then(|one| {
                let negotiated = self.check(&one, suite, &mut header)?;
                Ok((one, negotiated))
            });
            match checked {
                Ok((one, negotiated)) => {
                    note(lab, "negotiated", &format!("{name}, {tool}"), json!(negotiated));
                    let version = || contender.version(self.place);
                    lab.results.tools.entry(tool).or_insert_with(version);
                    running.push(one);
                }
                Err(why) => {
                    lab.results.skipped.push(format!("{tool}, {name}: {why:#}"));
                }
            }
        }
        for &size in &self.settings.sizes {
            for &load in &self.settings.loads {
                self.page(lab, suite, size, load, &running)?;
                tell!("{}", case(suite, size, load));
            }
        }
        lab.results.settings.insert("header_bytes".into(), json!(header));
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
            self.clients.check(self.place, &one.server, suite, largest)?;
        }
        Ok(())
    }

    /// Every page once by curl, and what the provider counts of it. Returns what was negotiated, and
    /// notes the longest header of an answer.
    fn check(&self, one: &Running, suite: Suite, header: &mut u64) -> anyhow::Result<String> {
        self.warm_up(one, suite)?;
        let before = one.counted()?;
        let mut negotiated = String::new();
        let sizes = &self.settings.sizes;
        for &size in sizes {
            let answer = self.clients.check(self.place, &one.server, suite, size)?;
            negotiated = answer.negotiated;
            *header = (*header).max(answer.header_bytes);
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
        let before = one.server.cpu()?;
        let (seen, window) =
            lab.watch(|| self.clients.load(load, self.place, &one.server, suite, asked))?;
        let seen = seen?;
        let cpu = one.server.cpu()?.saturating_sub(before);
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
pub fn case(suite: Suite, size: u64, load: Load) -> String {
    let by = if load == Load::Ab { ", by ab" } else { "" };
    format!("{}, {}{by}", suite.openssl_name(), size_name(size))
}

/// "512 KiB"
pub fn size_name(size: u64) -> String {
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
        for contender in Contender::all(Hardware::Simulated, 2) {
            let tool = contender.tool(&results);
            assert_eq!(tool.contains("simulated"), contender.hardware().is_some(), "{tool}");
        }
        for hardware in Hardware::all().skip(1) {
            for contender in Contender::all(hardware, 2) {
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
