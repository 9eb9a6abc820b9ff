//! Figure 3 here: where the time of a page goes, with a connection for each page and with one for all.

use std::collections::BTreeMap;
use std::fs;
use std::time::{Duration, Instant};

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};
use serde_json::json;
use wattlock_report::paper::{Row, Rule, Section, Source};
use wattlock_report::results::Results;

use super::page_server::{Phase, REPORT, Spent};
use crate::bench::https::contenders::MASK;
use crate::bench::https::{Site, guarded};
use crate::bench::lab::Lab;
use crate::paper::eeca::printed::size_name;
use crate::paper::eeca::quotes::quote;
use crate::paper::eeca::rows::{claim, listed};
use crate::paper::live::NOT_MEASURED;

/// What a page took, with a connection of its own and without.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
struct Both {
    alone: Spent,
    kept: Spent,
}

/// The setting that holds what was measured, by size in kilobytes.
const SETTING: &str = "phases";

/// The suite of Figure 3.
const SUITE: &str = "ECDHE-RSA-AES256-SHA";

/// Measures all sizes by software, as the paper's figure most likely is.
///
/// # Errors
/// Never for what cannot be run: that is skipped and said.
pub fn measure(lab: &mut Lab<'_>, site: &Site, sizes: &[u64], seconds: u16) -> anyhow::Result<()> {
    match all(site, sizes, seconds) {
        Ok(found) => {
            lab.results.settings.insert(SETTING.into(), json!(found));
        }
        Err(why) => lab.results.skipped.push(format!("Figure 3: {why:#}")),
    }
    Ok(())
}

fn all(site: &Site, sizes: &[u64], seconds: u16) -> anyhow::Result<BTreeMap<u64, Both>> {
    let (server, port) = start(site)?;
    let mut found = BTreeMap::new();
    for &bytes in sizes {
        let spent = |keeps: bool| -> anyhow::Result<Spent> {
            load(site, port, (bytes, seconds, keeps))?;
            report(site, port)
        };
        report(site, port)?;
        found.insert(bytes >> 10, Both { alone: spent(false)?, kept: spent(true)? });
        tell!("{SUITE}, {}, phases", size_name(bytes >> 10));
    }
    drop(server);
    Ok(found)
}

/// Starts this program as a server of pages, and waits for its port.
fn start(site: &Site) -> anyhow::Result<(guarded::Guarded, u16)> {
    let own = std::env::current_exe().context("this program does not know where it is")?;
    let mut command = guarded::command(site.server_cpu(), &own);
    command.args(["serve-pages", "--suite", SUITE, "--directory"]).arg(site.directory());
    if cfg!(target_arch = "x86_64") {
        command.env(MASK.0, MASK.1);
    }
    let said = site.directory().join("phases-said");
    let mut server = guarded::Guarded::start(command, &said)?;
    let started = Instant::now();
    loop {
        let text = fs::read_to_string(&said).unwrap_or_default();
        if let Some(port) = text.lines().next().and_then(|line| line.parse().ok()) {
            return Ok((server, port));
        }
        if server.has_ended() || started.elapsed() > PATIENCE {
            bail!("the page server does not answer: {}", text.trim());
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Asks for a page again and again, one at a time.
fn load(site: &Site, port: u16, (bytes, seconds, keeps): (u64, u16, bool)) -> anyhow::Result<()> {
    let ab = site.ab()?;
    let mut command = guarded::command(site.client_cpu(), ab);
    command.args(["-q", "-c", "1", "-n", "1000000", "-t", &seconds.to_string()]);
    command.args(["-f", "TLS1.2", "-Z", SUITE]);
    if keeps {
        command.arg("-k");
    }
    command.arg(format!("https://127.0.0.1:{port}/{bytes}"));
    let output = guarded::run(command).context("cannot run ab")?;
    if !output.status.success() {
        bail!("ab: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

/// What the server spent since it was last asked.
fn report(site: &Site, port: u16) -> anyhow::Result<Spent> {
    let url = format!("https://127.0.0.1:{port}/{REPORT}");
    let text = site.fetch(&url)?;
    serde_json::from_str(&text).context("the page server's report")
}

/// The figure: every share, and what the text says of them.
pub fn section(results: Option<&Results>) -> Section {
    let found = results.and_then(|results| results.settings.get(SETTING));
    let found: Option<BTreeMap<u64, Both>> =
        found.and_then(|found| serde_json::from_value(found.clone()).ok());
    let missing = match results {
        None => NOT_MEASURED.to_owned(),
        Some(results) => {
            let why = results.skipped.iter().find(|why| why.starts_with("Figure 3"));
            why.cloned().unwrap_or_else(|| "not in this run".to_owned())
        }
    };
    let found = found.unwrap_or_default();
    let mut rows = shares(&found);
    rows.extend(
        claims(&found).into_iter().map(
            |row| {
                if found.is_empty() { row.not_here(&missing) } else { row }
            },
        ),
    );
    Section::new(
        "Figure 3, here",
        "where the CPU time of a page goes, on a server of our own with libssl in memory and without AES \
         instructions, by ab with one connection at a time",
        rows,
    )
}

/// One row for each phase of each size; the paper draws them and prints two.
fn shares(found: &BTreeMap<u64, Both>) -> Vec<Row> {
    let ways: [(&str, fn(&Both) -> Spent); 2] =
        [("a connection each", |both| both.alone), ("keep-alive", |both| both.kept)];
    let rows = ways.into_iter().flat_map(|(way, of)| {
        Phase::ALL.into_iter().flat_map(move |phase| {
            found.iter().map(move |(kb, both)| {
                let share = of(both).share(phase);
                Row::unprinted(&size_name(*kb), share, "%", Source::Live)
                    .column(&format!("{}, {way}", phase.name()))
                    .exempt("the figure prints no number but those of 2 MB")
            })
        })
    });
    rows.collect()
}

fn claims(found: &BTreeMap<u64, Both>) -> Vec<Row> {
    let of = |phase: Phase, kept: bool| -> Vec<f64> {
        let spent = found.values().map(|both| if kept { both.kept } else { both.alone });
        spent.map(|spent| spent.share(phase)).collect()
    };
    let [alone, kept] = [false, true].map(|kept| of(Phase::Handshake, kept));
    let [crypto, crypto_kept] = [false, true].map(|kept| of(Phase::Crypto, kept));
    let [network, network_kept] = [false, true].map(|kept| of(Phase::Network, kept));
    let small = found.range(..32).map(|(_, both)| both.alone.share(Phase::Handshake));
    let small: Vec<f64> = small.collect();
    let above = |one: &[f64], other: &[f64]| one.iter().zip(other).all(|(one, other)| one > other);
    let words = |values: &[f64]| format!("{} %", listed(values.iter().copied(), 1));
    let last = |values: &[f64]| values.last().copied().unwrap_or(f64::NAN);
    let largest = Phase::ALL
        .into_iter()
        .max_by(|one, other| last(&of(*one, true)).total_cmp(&last(&of(*other, true))));
    let row = |rule, item: &str, printed: &str, ours: String, holds: bool| {
        claim((rule, Source::Live), item, printed, ours, holds)
    };
    let number = |kept: bool, id: &str, values: &[f64]| {
        let column = if kept { "keep-alive" } else { "a connection each" };
        let has_it = found.contains_key(&2048);
        let ours = if has_it { last(values) } else { f64::NAN };
        let row = Row::number("2 MB, crypto", quote(id), ours, "%", Source::Live).column(column);
        if has_it { row.in_units().exempt(OTHER) } else { row.not_here("not in this run") }
    };
    vec![
        number(false, "F3-a-2048", &crypto),
        number(true, "F3-b-2048", &crypto_kept),
        row(
            Rule::Order,
            "crypto's share of the largest page rises with keep-alive",
            "40.47 to 62.82 %",
            format!("{:.1} to {:.1} %", last(&crypto), last(&crypto_kept)),
            last(&crypto_kept) > last(&crypto),
        ),
        row(
            Rule::Shape,
            "the handshake's share falls as pages grow",
            "falls",
            words(&alone),
            alone.windows(2).all(|pair| pair[1] <= pair[0] + TIE),
        )
        .bound("no page is more than a point above the one before"),
        row(
            Rule::Value,
            "the handshake takes more than half below 32 kB",
            "more than half",
            words(&small),
            !small.is_empty() && small.iter().all(|share| *share > 50.0),
        ),
        row(
            Rule::Shape,
            "crypto's share grows with the page",
            "grows",
            words(&crypto),
            crypto.windows(2).all(|pair| pair[1] >= pair[0] - TIE),
        )
        .bound("no page is more than a point below the one before"),
        row(
            Rule::Sign,
            "the handshake's share drops with keep-alive",
            "dramatically",
            words(&kept),
            above(&alone, &kept) && kept.iter().all(|share| *share < 5.0),
        )
        .bound("below 5 %"),
        row(
            Rule::Sign,
            "crypto's share is larger with keep-alive",
            "larger",
            words(&crypto_kept),
            above(&crypto_kept, &crypto),
        ),
        row(
            Rule::Sign,
            "the network's share is larger with keep-alive",
            "larger",
            format!("{}; without {}", words(&network_kept), words(&network)),
            above(&network_kept, &network),
        ),
        row(
            Rule::Order,
            "crypto takes the most of the largest page",
            "time-consuming",
            largest.map_or("nothing", Phase::name).to_owned(),
            largest == Some(Phase::Crypto),
        ),
    ]
}

/// Points by which neighbours may differ and be the same.
const TIE: f64 = 1.0;

const OTHER: &str = "another machine, another OpenSSL and a server of our own; the order is held";

/// How long the server may take until it answers.
const PATIENCE: Duration = Duration::from_secs(20);
