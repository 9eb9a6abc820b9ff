//! Where benches measure: rows and their joules, at the clocks that were asked for.
//!
//! Times are taken in short turns, for which a counter of joules is too coarse. Where one counts,
//! each contender works for longer windows afterwards, in turns that go there and back (ABBA), so
//! that a drift meets all alike. Where none does, models give an interval.

use std::time::{Duration, Instant};

use wattlock_energy::{Energy, Idle, Metered, Sources};
use wattlock_host::clocks::{Plan, Step};
use wattlock_host::energy;
use wattlock_report::results::{Results, Row};

use super::joules::{self, Counted};
use super::rates::{Case, Contender, Effort, Turns, take_turns};
use crate::args;

/// How joules are counted, where they can be.
#[derive(Clone, Copy)]
pub struct Windows {
    /// Windows of each contender.
    pub count: usize,
    /// How long each is.
    pub length: Duration,
}

impl Windows {
    /// For tables of hundreds of rows: a reading is off by 1 % at most.
    pub const SHORT: Self = Self { count: 2, length: Duration::from_millis(500) };
    /// For claims about joules.
    pub const LONG: Self = Self { count: 10, length: Duration::from_secs(2) };
    /// For a quick look.
    pub const QUICK: Self = Self { count: 2, length: Duration::from_millis(200) };
}

/// What is measured with, and what was measured.
pub struct Lab<'a> {
    pub results: Results,
    meters: &'a args::Meters,
    sources: Sources,
    counts: bool,
    windows: Windows,
    /// Windows of the rows of this clock, by their index.
    counted: Vec<(usize, Counted)>,
}

impl<'a> Lab<'a> {
    /// Looks for what counts joules.
    ///
    /// # Errors
    /// That the meter which was asked for cannot be read.
    pub fn new(
        results: Results,
        meters: &'a args::Meters,
        windows: Windows,
    ) -> anyhow::Result<Self> {
        let root = energy::root();
        let mut sources = energy::sources(&root, meters)?;
        let counts = sources.can_read();
        let mut results = results;
        results.root = energy::other(&root).map(|root| root.display().to_string());
        Ok(Self { results, meters, sources, counts, windows, counted: Vec::new() })
    }

    /// Lets the contenders take turns on one buffer, each round starting with another, and adds
    /// their rows in their order.
    pub fn measure(
        &mut self,
        effort: Effort,
        case: &Case,
        buffer: &mut [u8],
        contenders: Vec<Contender<'_>>,
    ) {
        let mut turns = take_turns(effort, buffer, contenders);
        let mut counted: Vec<_> = turns.iter().map(|_| Counted::default()).collect();
        for pass in 0..self.windows.count {
            for turn in 0..turns.len() {
                let index = if pass % 2 == 0 { turn } else { turns.len() - 1 - turn };
                // Without bytes, energies of contenders would be of different numbers of calls.
                if self.counts && case.call_bytes > 0 {
                    self.count(&mut turns[index], buffer, &mut counted[index]);
                }
            }
        }
        for (turns, counted) in turns.into_iter().zip(counted) {
            self.add(turns.row(case), counted);
        }
    }

    fn count(&mut self, turns: &mut Turns<'_>, buffer: &mut [u8], counted: &mut Counted) {
        let length = self.windows.length;
        let work = || {
            let start = Instant::now();
            let mut bytes = 0;
            while start.elapsed() < length {
                bytes += turns.work(buffer);
            }
            bytes
        };
        match self.sources.measure(work) {
            Ok((bytes, window)) => counted.push(window, bytes),
            Err(error) => {
                self.counts = false;
                self.results.skipped.push(format!("joules: {error}"));
            }
        }
    }

    /// Runs something that is a window of its own.
    pub fn watch<T>(&mut self, work: impl FnOnce() -> T) -> anyhow::Result<(T, Option<Metered>)> {
        if !self.counts {
            return Ok((work(), None));
        }
        let (done, window) = self.sources.measure(work)?;
        Ok((done, Some(window)))
    }

    /// Adds a row and the windows in which it was counted, if it was.
    pub fn add(&mut self, row: Row, counted: Counted) {
        if !counted.is_empty() {
            self.counted.push((self.results.rows.len(), counted));
        }
        self.results.rows.push(row);
    }

    /// Lets `bench` add rows at each of the clocks that were asked for, between two looks at the
    /// machine at rest, and gives each row its joules.
    pub fn run(
        &mut self,
        clocks: &args::Clocks,
        mut bench: impl FnMut(&mut Self) -> anyhow::Result<()>,
    ) -> anyhow::Result<()> {
        let mut plan = Plan::new(&energy::quiet_root(), clocks, &mut self.results.skipped)?;
        for step in plan.steps() {
            if let Some(why) = plan.set(&step)? {
                self.results.skipped.push(why);
                continue;
            }
            let first = self.results.rows.len();
            let before = self.rest()?;
            bench(self)?;
            if let Some(why) = plan.was_kept(&step) {
                self.results.rows.truncate(first);
                self.counted.clear();
                self.results.skipped.push(why);
                continue;
            }
            let after = self.rest()?;
            self.price(first, &step, before.zip(after));
            if plan.varies() {
                let rows = &mut self.results.rows[first..];
                rows.iter_mut().for_each(|row| row.clocks = Some(step.name.clone()));
            }
        }
        plan.end()?;
        let rows = self.results.rows.iter();
        let energies = rows.flat_map(|row| [&row.joules.energy, &row.joules.net]).flatten();
        let caveats = energies.flat_map(Energy::caveats);
        self.results.advice =
            caveats.map(|caveat| (caveat.name().into(), caveat.advice().into())).collect();
        Ok(())
    }

    /// Gives the rows from `first` on their joules: what was counted, or what models say.
    fn price(&mut self, first: usize, step: &Step, rest: Option<(Metered, Metered)>) {
        let idle = rest.map(|(before, after)| Idle::new(before, after));
        for (index, counted) in self.counted.drain(..) {
            let row = &mut self.results.rows[index];
            row.joules = counted.joules(row, idle.as_ref());
        }
        for row in &mut self.results.rows[first..] {
            if row.joules.energy.is_none() && row.call_bytes != Some(0) {
                row.joules = joules::modelled(row, self.meters, step.share);
            }
        }
    }

    fn rest(&mut self) -> anyhow::Result<Option<Metered>> {
        let length = self.windows.length;
        Ok(self.watch(|| std::thread::sleep(length))?.1)
    }
}
