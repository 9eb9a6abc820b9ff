//! `wattlock calibrate`: measures how fast this machine encrypts, and keeps it.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use wattlock_engine::{Calibration, Case, Engine, Goal, Step, Store};
use wattlock_file::Shown;
use wattlock_host::accelerators::{Rule, Selection};
use wattlock_host::energy;
use wattlock_host::exit::{Ended, print, usage};
use wattlock_host::flags::Meters;

use crate::args;
use crate::devices::Report;

/// `wattlock calibrate`.
pub fn run(args: &args::Calibrate) -> Ended {
    let cases = cases(args.only.as_deref())?;
    let store = Store::of_user()?;
    store.prepare()?;
    let meters = Meters { meter: args.meter.clone(), ..Meters::default() };
    let sources = (!args.quick).then(|| energy::sources(&energy::root(), &meters));
    let mut sources = sources.transpose()?;
    let engine = engine(args)?;
    let bar = bar();
    let calibration = Calibration {
        engine: &engine,
        cases: &cases,
        budget: if args.quick { QUICK } else { BUDGET },
        sources: sources.as_mut(),
        window: WINDOW,
    };
    let profiles = calibration.run(|step| show(&bar, step))?;
    bar.finish_and_clear();
    for case in &cases {
        if !profiles.iter().any(|profile| profile.case == *case) {
            say!("{case}: the times do not fit a line, so no profile was saved");
            tell!("  calibrate again when the machine is idle");
        }
    }
    if sources.is_some() && profiles.iter().all(|profile| profile.joules.is_none()) {
        say!("no energy was measured reliably; `wattlock doctor` shows what helps");
    }
    if let Some(aside) = store.save(&profiles)? {
        say!("moved unusable profiles to {}", Shown(&aside));
    }
    let report =
        Report::new(&store, &cases, Ok(profiles.into_iter().collect()), &energy::quiet_root());
    print(&report.text())?;
    tell!("profiles are kept in {}", Shown(store.path()));
    Ok(ExitCode::SUCCESS)
}

/// The CPU, and the GPUs that were asked for, or all.
fn engine(args: &args::Calibrate) -> anyhow::Result<Engine> {
    let mut names = args.devices.clone();
    if !names.is_empty() {
        names.push("cpu".into());
    }
    let selection = Selection { names, rule: Rule::Auto(Goal::Time), ..Selection::default() };
    selection.engine(args::threads(None))
}

/// The cases whose name contains `only`.
fn cases(only: Option<&str>) -> anyhow::Result<Vec<Case>> {
    let names = |case: &Case| only.is_none_or(|only| case.to_string().contains(only));
    let cases: Vec<_> = Case::ALL.into_iter().filter(names).collect();
    if cases.is_empty() {
        let all: Vec<_> = Case::ALL.iter().map(Case::to_string).collect();
        return Err(usage(format!(
            "no operation has {:?} in its name; the operations are {}",
            only.unwrap_or_default(),
            all.join(", ")
        )));
    }
    Ok(cases)
}

/// A bar on a terminal, and nothing elsewhere.
fn bar() -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::with_draw_target(Some(1), ProgressDrawTarget::stderr_with_hz(10));
    match ProgressStyle::with_template("  {bar:30} {percent} %  {msg}") {
        Ok(style) => bar.with_style(style.progress_chars("=> ")),
        Err(_) => bar,
    }
}

fn show(bar: &ProgressBar, step: Step) {
    bar.set_length(step.expected.as_millis() as u64);
    bar.set_position(step.spent.as_millis() as u64);
    bar.set_message(match step.counting {
        None => "measuring times".into(),
        Some(case) => format!("counting joules of {case}"),
    });
}

const BUDGET: Duration = Duration::from_secs(10);
const QUICK: Duration = Duration::from_secs(2);
/// RAPL is refreshed each ms, so that 2 s are known to 0.1 %.
const WINDOW: Duration = Duration::from_secs(2);
