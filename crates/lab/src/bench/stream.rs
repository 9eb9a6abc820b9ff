//! `wattlock-lab bench stream`: the study's users through what wattlock does.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::bail;
use serde_json::json;
use wattlock_engine::crypto::GcmKernel;
use wattlock_host::exit::Ended;
use wattlock_host::summary::process_cpu_time;
use wattlock_report::results::Sample;
use wattlock_report::results::{Results, Row};
use wattlock_stream::{Live, Settings, Stats, Summary};

use super::joules::Counted;
use super::lab::{Lab, Windows};
use super::stream_rows::{PACED, case, of_streams, tool};
use super::stream_saturation::Saturation;
use super::stream_text::text;
use super::stream_users::{Check, How, Users, check_window, produce};
use crate::args;
use crate::bench::{gateway, publish};

/// `wattlock-lab bench stream`.
pub fn run(args: &args::BenchStream) -> Ended {
    if args.gateway || args.relay_to.is_some() {
        return gateway::run(args);
    }
    publish::can_publish(args.json.as_deref(), &args.meters)?;
    check_window(args.window)?;
    let threads = args::threads(args.threads);
    let users = if args.quick { args.users.min(200) } else { args.users };
    let bench = Bench {
        users: Arc::new(Users::new(users as usize)),
        latencies: if args.quick { vec![100, 1000] } else { args.latency.clone() },
        threads,
        window: args.window,
        verify: args.check_all,
        saturation: Saturation::new(threads, args.window, args.quick)?,
    };
    let windows = if args.quick { Windows::QUICK } else { Windows::SHORT };
    let mut lab = Lab::new(bench.results(), &args.meters, windows)?;
    lab.run(&args.clocks, |lab| bench.rows(lab))?;
    let mut results = lab.results;
    results.ratios = super::stream_text::ratios(&results);
    if args.quick {
        results.only_tell();
    }
    publish::publish(&results, args.json.as_deref(), &args.meters, text)
}

struct Bench {
    users: Arc<Users>,
    latencies: Vec<u32>,
    threads: usize,
    window: u64,
    verify: bool,
    saturation: Saturation,
}

impl Bench {
    fn results(&self) -> Results {
        let mut results = Results::new("stream");
        results.tools.insert("wattlock".into(), env!("CARGO_PKG_VERSION").into());
        results.tools.insert(tool(PACED), env!("CARGO_PKG_VERSION").into());
        for (name, value) in [
            ("users", json!(self.users.len())),
            ("bytes", json!(self.users.bytes())),
            ("latency_us", json!(self.latencies)),
            ("algorithms", json!([PACED])),
            ("window_bytes", json!(self.window)),
            ("threads", json!(self.threads)),
            ("verify", json!(if self.verify { "all, within the time" } else { "a sample" })),
        ] {
            results.settings.insert(name.into(), value);
        }
        results
    }

    fn rows(&self, lab: &mut Lab<'_>) -> anyhow::Result<()> {
        let rate = self.saturation.rows(lab)?;
        for &latency in &self.latencies {
            tell!("{PACED}, {}", case(latency));
            self.row(lab, latency, rate)?;
        }
        Ok(())
    }

    /// All users at a latency; one worker seals `rate` bytes a second.
    fn row(&self, lab: &mut Lab<'_>, latency_us: u32, rate: f64) -> anyhow::Result<()> {
        let check = Arc::new(Check::new(&self.users, How::Gcm, self.verify));
        let run = self.paced(lab, Duration::from_micros(latency_us.into()), rate, &check)?;
        let checked = check.end()?;
        if self.verify && checked != self.users.len() {
            bail!("{checked} of {} outputs were checked", self.users.len());
        }
        let once = |time: Duration| Sample::of(vec![time.as_nanos() as u64]);
        let Stats { messages, bytes, refusals, working, delays, .. } = &run.stats;
        let row = Row {
            tool: tool(PACED),
            case: case(latency_us),
            kernel: Some(GcmKernel::best().name().into()),
            threads: Some(self.threads),
            bytes: *bytes,
            wall_ns: once(run.wall),
            cpu_ns: once(run.cpu),
            cipher_ns: Some(once(*working)),
            messages: Some(*messages),
            refusals: Some(*refusals),
            delays: Some(of_streams(std::slice::from_ref(delays))),
            ..Row::default()
        };
        let mut counted = Counted::default();
        if let Some(window) = run.window {
            counted.push(window, row.bytes);
        }
        lab.add(row, counted);
        Ok(())
    }

    /// What wattlock does.
    // A message that finds no room is what makes the error large, and it has to go back.
    #[allow(clippy::result_large_err)]
    fn paced(
        &self,
        lab: &mut Lab<'_>,
        latency: Duration,
        rate: f64,
        check: &Arc<Check>,
    ) -> anyhow::Result<Run> {
        let settings = Settings::continuous(self.window, self.threads, rate)?;
        let keys = self.users.gcm_keys()?;
        let sink = {
            let check = Arc::clone(check);
            move |done: &mut wattlock_stream::Done| {
                let failed = |error: &dyn std::fmt::Display| io::Error::other(error.to_string());
                done.outcome.as_ref().map_err(|error| failed(error))?;
                let output = std::mem::take(&mut done.message.buffer);
                let user = done.message.user as usize;
                done.message.buffer = check.take(user, output).map_err(|error| failed(&error))?;
                Ok(())
            }
        };
        let live = Live::start(settings, sink)?;
        let cpu = process_cpu_time();
        let started = Instant::now();
        let (summary, window) = lab.watch(|| {
            let keys = keys.iter().cloned().enumerate();
            let message = |(index, cipher)| self.users.gcm_message(live.pool(), index, cipher);
            let produced = produce(latency, keys.map(message), |message| live.try_put(message));
            let summary = live.finish(None);
            produced.map(|()| summary)
        })?;
        let (wall, cpu) = (started.elapsed(), process_cpu_time() - cpu);
        let Summary { stats, undelivered, failure } = summary?;
        if let Some(failure) = failure {
            return Err(anyhow::Error::new(failure).context(format!("{undelivered} messages lost")));
        }
        Ok(Run { wall, cpu, window, stats })
    }
}

/// What a run at one latency gave.
struct Run {
    wall: Duration,
    cpu: Duration,
    window: Option<wattlock_energy::Metered>,
    stats: Stats,
}
