//! `wattlock-lab simulate policies`: velocity policies on many streams, compared with a lower bound
//! on energy.

use std::fmt::Write;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::Path;
use std::process::ExitCode;

use anyhow::Context;
use wattlock_file::Shown;
use wattlock_host::exit::{Ended, usage};
use wattlock_report::columns::Columns;

use super::policies_document::Document;
use crate::args;
use crate::outlet::Outlet;
use crate::simulation::platform::MIB;
use crate::simulation::{
    Curve, MOST_REFUSALS, Mean, REPORTING, Row, Stream, Study, TUNING, Trial, means, trace, unseen,
};

/// `wattlock-lab simulate policies`.
pub fn run(args: &args::SimulatePolicies) -> Ended {
    let outlet = Outlet::open(args.json.as_deref())?;
    let study = Study::new(curve(&args.curve)?, f64::from(args.deadline) / 1e3, args.window);
    check_window(args, &study)?;
    let settle = study.curve.settle();
    if !study.velocities().iter().all(|velocity| velocity.has_time_to_settle(settle)) {
        say!(
            "the deadline of {:.0} ms is shorter than ten times the {:.1} ms that clocks take to \
             settle on {}: paced will set them too late",
            study.deadline * 1e3,
            settle * 1e3,
            Shown(&args.curve)
        );
    }
    let trials = trials(args, &study)?;
    let means = means(&trials);
    let document = Document::new(args, &study, &trials, &means);
    outlet.write(&text(args, &study, &trials, &means), &document)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a window that no message of the streams may fit into.
fn check_window(args: &args::SimulatePolicies, study: &Study) -> anyhow::Result<()> {
    if args.stream.is_some() || study.window >= Stream::LONGEST {
        return Ok(());
    }
    let why = if args.window.is_some() { "" } else { ", which follows from --deadline," };
    Err(usage(format!(
        "a window of {} bytes{why} cannot hold the longest message ({} bytes); choose a larger \
         --window",
        study.window,
        Stream::LONGEST
    )))
}

fn curve(name: &Path) -> anyhow::Result<Curve> {
    if name.as_os_str() == "k20m" {
        return Ok(Curve::k20m());
    }
    let text = read(name, LARGEST_CURVE_MIB).with_context(|| {
        format!("cannot read the curve {}; use k20m or a CSV file", Shown(name))
    })?;
    Curve::parse(&text).with_context(|| Shown(name).to_string())
}

fn trials(args: &args::SimulatePolicies, study: &Study) -> anyhow::Result<Vec<Trial>> {
    if let Some(name) = &args.stream {
        let text = read(name, LARGEST_TRACE_MIB)
            .with_context(|| format!("cannot read the trace {}", Shown(name)))?;
        let stream = trace(&text, study.window).with_context(|| Shown(name).to_string())?;
        let seconds = stream.last().map_or(0.0, |last| last.at);
        return Ok(vec![study.arrivals("trace", true, &stream, seconds)]);
    }
    let streams = match args.streams.as_str() {
        "tuning" => TUNING.to_vec(),
        "unseen" => unseen(args.seed, UNSEEN),
        _ => REPORTING.to_vec(),
    };
    let trial = |stream| study.stream(stream, args.seconds.into(), args.seed);
    Ok(streams.iter().map(trial).collect())
}

/// Reads a text of at most `most_mib` MiB, since a device file may never end.
fn read(name: &Path, most_mib: u64) -> io::Result<String> {
    let most = most_mib << 20;
    let mut bytes = Vec::new();
    File::open(name)?.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let what = format!("it is larger than {most_mib} MiB");
        return Err(io::Error::new(ErrorKind::FileTooLarge, what));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::new(ErrorKind::InvalidData, "it is not text"))
}

fn text(args: &args::SimulatePolicies, study: &Study, trials: &[Trial], means: &[Mean]) -> String {
    let what = match &args.stream {
        Some(name) => format!("the stream of {}", Shown(name)),
        None => format!("{} streams of {} s, seed {}", args.streams, args.seconds, args.seed),
    };
    let mut text = format!(
        "{what}; curve {}; window {:.2} MiB; deadline {:.0} ms\n\
         virtual time on a model of the machine: joules are MODELLED, NOT MEASURED\n\n",
        Shown(&args.curve),
        study.window as f64 / MIB,
        study.deadline * 1e3,
    );
    let mut table = Columns::new("<>><>");
    table.row([
        "stream",
        "MiB/s",
        "bound W",
        "policy",
        "J / bound",
        "p50 ms",
        "p99 ms",
        "refusals",
        "rungs set",
        "keeps both",
    ]);
    for trial in trials {
        let seconds = trial.seconds;
        let bound = trial.bound.map_or("none".into(), |joules| format!("{:.2}", joules / seconds));
        let mut head = [trial.stream.to_string(), format!("{:.1}", trial.load / MIB), bound];
        for row in &trial.rows {
            table.row(std::mem::take(&mut head).into_iter().chain(cells(row)));
        }
    }
    text += &table.to_string();
    if args.stream.is_none() {
        text += &summary(trials.len(), means);
    }
    let _ = write!(
        text,
        "\nThe bound is the least energy of any schedule that seals every message within the \
         deadline,\nrefuses none and changes rungs in no time; a late policy may use less. Refusals \
         are per message.\nBoth are kept if p99 is within the deadline and refusals are at most \
         {MOST_REFUSALS}.\n"
    );
    text
}

fn cells(row: &Row) -> [String; 7] {
    let [p50, p99, _] = row.delays.map(|delay| format!("{:.1}", delay * 1e3));
    let name = row.velocity.name().to_owned();
    let keeps = if row.keeps { "yes" } else { "no" };
    let (refusals, changes) = (format!("{:.5}", row.refusals), row.changes.to_string());
    [name, ratio(row.ratio), p50, p99, refusals, changes, keeps.to_owned()]
}

fn summary(streams: usize, means: &[Mean]) -> String {
    let mut table = Columns::new("<>");
    table.row(["policy", "J / bound, smooth", "J / bound, bursty", "worst", "streams kept"]);
    for mean in means {
        table.row([
            mean.velocity.name().to_owned(),
            ratio(mean.smooth),
            ratio(mean.bursty),
            ratio(mean.worst),
            format!("{} of {streams}", mean.kept),
        ]);
    }
    format!("\n{table}")
}

fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or("-".into(), |ratio| format!("{ratio:.4}"))
}

/// Streams that a seed draws.
const UNSEEN: usize = 32;

/// MiB of a curve, which has a line for each rung.
const LARGEST_CURVE_MIB: u64 = 1;

/// MiB of a trace: millions of messages, which take gigabytes of memory to study.
const LARGEST_TRACE_MIB: u64 = 64;
