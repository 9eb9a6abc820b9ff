//! A simulated accelerator: the CPU does its work, in the time of a model.
//!
//! For machines without an accelerator, to run, test and measure the code around one. Its results
//! are right, its times come from a model, and it has no joules: reports name it `simulated`, and
//! none of its figures is a claim about hardware.

use std::collections::VecDeque;
use std::str::FromStr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::device::{Device, Fault, Stop};
use crate::fit::Fit;
use crate::job::Cipher;
use crate::lock::lock;
use crate::run::{Piece, Run};
use crate::self_test::self_test;
use crate::tally::Tally;

/// The model of an accelerator: one line on which pieces go one after the other, at a given rate,
/// each after a latency that overlaps with the pieces before it.
///
/// A waiting caller sleeps: the CPU time of the work is the caller's, and the system may wake the
/// caller some 50 µs late.
#[derive(Clone, Debug, PartialEq)]
pub struct Simulated {
    /// Bytes a second; `None` is as fast as the CPU beneath it.
    pub bytes_per_second: Option<f64>,
    /// What each piece takes before its first byte.
    pub latency: Duration,
    /// Pieces in flight at once, at least one.
    pub slots: usize,
    /// One in this many pieces fails.
    pub fault_every: Option<u64>,
    /// Pieces after which all fail.
    pub dies_after: Option<u64>,
    /// After this many pieces, the line stalls.
    pub stall_every: Option<u64>,
    /// For how long it does.
    pub stall: Duration,
}

impl Default for Simulated {
    /// The accelerator of EECA's Table 1: 6.1 GB/s, and 14.5 µs besides for each call, of the eight
    /// that eight cores have on their way. Both are fitted to its column of the accelerator alone.
    fn default() -> Self {
        Self {
            bytes_per_second: Some(6.1e9),
            latency: Duration::from_nanos(14_500),
            slots: 8,
            fault_every: None,
            dies_after: None,
            stall_every: None,
            stall: Duration::from_secs(1),
        }
    }
}

impl Simulated {
    /// The name in every report.
    pub const NAME: &'static str = "simulated";

    /// The model's own line, to be compared with a CPU's.
    pub fn line(&self) -> Fit {
        let bytes_per_second = self.bytes_per_second.unwrap_or(f64::MAX);
        Fit { startup: self.latency, bytes_per_second, spread: 0.0 }
    }

    /// The device, which has passed the test that every device has to pass; its faults and stalls
    /// are counted from there on.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(&self) -> Result<Box<dyn Device>, Fault> {
        // The test is of its results, not of its times.
        let model = Self { bytes_per_second: None, latency: Duration::ZERO, ..Self::default() };
        self_test(&Line { model, state: Mutex::default() })?;
        Ok(Box::new(Line { model: self.clone(), state: Mutex::default() }))
    }
}

impl FromStr for Simulated {
    type Err = SimulatedError;

    /// Reads settings such as `rate=2e9,latency_us=30,slots=8,fault_every=100`; the other names are
    /// `dies_after`, `stall_every` and `stall_ms`. What is not named is as in the default, and
    /// `rate=cpu` is no rate of its own.
    fn from_str(text: &str) -> Result<Self, SimulatedError> {
        let mut model = Self::default();
        for setting in text.split(',').map(str::trim).filter(|setting| !setting.is_empty()) {
            let wrong = || SimulatedError(setting.to_owned());
            let (name, value) = setting.split_once('=').ok_or_else(wrong)?;
            let number = || value.parse::<u64>().map_err(|_| wrong());
            let every = || number().and_then(|n| if n == 0 { Err(wrong()) } else { Ok(Some(n)) });
            match name {
                "rate" if value == "cpu" => model.bytes_per_second = None,
                "rate" => {
                    let rate =
                        value.parse().ok().filter(|rate: &f64| rate.is_normal() && *rate > 0.0);
                    model.bytes_per_second = Some(rate.ok_or_else(wrong)?);
                }
                "latency_us" => {
                    let micros: f64 = value.parse().map_err(|_| wrong())?;
                    let seconds = 1e-6 * micros;
                    model.latency = Duration::try_from_secs_f64(seconds).map_err(|_| wrong())?;
                }
                "slots" => {
                    model.slots = every()?.and_then(|n| n.try_into().ok()).ok_or_else(wrong)?;
                }
                "fault_every" => model.fault_every = every()?,
                "dies_after" => model.dies_after = Some(number()?),
                "stall_every" => model.stall_every = every()?,
                "stall_ms" => model.stall = Duration::from_millis(number()?),
                _ => return Err(wrong()),
            }
        }
        Ok(model)
    }
}

/// A setting that a [`Simulated`] device does not have, or a value that it does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is no setting of a simulated device: rate=BYTES_PER_SECOND|cpu, latency_us=N, slots=N, \
     fault_every=N, dies_after=N, stall_every=N and stall_ms=N are, with commas between them"
)]
pub struct SimulatedError(String);

/// The line itself, shared by all runs.
struct Line {
    model: Simulated,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    pieces: u64,
    /// When the last piece in line will be done.
    free: Option<Instant>,
}

/// What becomes of a piece.
struct Fate {
    at: Instant,
    fails: bool,
}

impl Line {
    /// Puts a piece of `bytes` bytes in line.
    fn enter(&self, bytes: usize) -> Fate {
        let mut state = lock(&self.state);
        let now = Instant::now();
        state.pieces += 1;
        let is_the = |every: Option<u64>| every.is_some_and(|n| state.pieces.is_multiple_of(n));
        let Simulated { bytes_per_second, latency, stall, .. } = self.model;
        let moving =
            bytes_per_second.and_then(|rate| Duration::try_from_secs_f64(bytes as f64 / rate).ok());
        let stall = if is_the(self.model.stall_every) { stall } else { Duration::ZERO };
        let takes = moving.unwrap_or_default().saturating_add(stall);
        let begins = now.checked_add(latency).unwrap_or(now).max(state.free.unwrap_or(now));
        let at = begins.checked_add(takes).unwrap_or(begins);
        let dead = self.model.dies_after.is_some_and(|limit| state.pieces > limit);
        let fails = dead || is_the(self.model.fault_every);
        state.free = Some(at);
        Fate { at, fails }
    }

    /// Works on a piece, which is done when its fate says so, or fails with its input untouched.
    fn process(&self, run: &Run<'_, '_>, piece: &mut Piece<'_>, fate: &Fate) -> Result<(), Stop> {
        if let Some(deadline) = run.deadline().filter(|deadline| fate.at > *deadline) {
            sleep_until(deadline);
            return Err(Stop::Fault(Fault("the simulated device was late".into())));
        }
        if !fate.fails {
            run.job().apply(piece.first(), piece.is_last(), piece.slots())?;
        }
        sleep_until(fate.at);
        if fate.fails {
            return Err(Stop::Fault(Fault("the simulated device failed on demand".into())));
        }
        Ok(())
    }
}

impl Device for Line {
    fn name(&self) -> &str {
        Simulated::NAME
    }

    fn workers(&self) -> usize {
        1
    }

    fn slots(&self) -> usize {
        self.model.slots.max(1)
    }

    fn supports(&self, _: &Cipher<'_>) -> bool {
        true
    }

    /// It is used only if named: no plan should rely on a device that does not exist.
    fn only_by_name(&self) -> bool {
        true
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let mut in_flight = VecDeque::new();
        let mut buffers = Vec::new();
        loop {
            while in_flight.len() < self.slots() {
                let buffer = buffers.pop().unwrap_or_else(Zeroizing::default);
                let Some(mut piece) = run.take_as(Simulated::NAME, usize::MAX, buffer)? else {
                    break;
                };
                let fate = self.enter(piece.slots().len());
                in_flight.push_back((piece, fate));
            }
            let Some((mut piece, fate)) = in_flight.pop_front() else { return Ok(()) };
            if let Err(stop) = self.process(run, &mut piece, &fate) {
                if matches!(stop, Stop::Fault(_)) {
                    let rest = in_flight.into_iter().map(|(piece, _)| piece);
                    std::iter::once(piece).chain(rest).for_each(|piece| run.hand_back(piece));
                }
                return Err(stop);
            }
            let len = piece.slots().len();
            buffers.push(run.finish(piece)?);
            tally.count(len);
        }
    }
}

fn sleep_until(at: Instant) {
    std::thread::sleep(at.saturating_duration_since(Instant::now()));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_in_text() {
        assert_eq!("".parse(), Ok(Simulated::default()));
        let all = "rate=2e9, latency_us=30,slots=8,fault_every=100,dies_after=0,stall_every=7,\
                   stall_ms=250";
        let expected = Simulated {
            bytes_per_second: Some(2e9),
            latency: Duration::from_micros(30),
            slots: 8,
            fault_every: Some(100),
            dies_after: Some(0),
            stall_every: Some(7),
            stall: Duration::from_millis(250),
        };
        assert_eq!(all.parse(), Ok(expected));
        let fraction = "latency_us=14.5".parse::<Simulated>().unwrap();
        assert_eq!(fraction.latency, Simulated::default().latency);
        assert_eq!("rate=cpu".parse::<Simulated>().unwrap().bytes_per_second, None);
        let wrong = [
            "rate",
            "rate=",
            "rate=0",
            "rate=-1",
            "rate=nan",
            "rate=inf",
            "latency_us=-1",
            "latency_us=nan",
            "slots=0",
            "fault_every=0",
            "stall_every=0",
            "speed=1",
            "=",
            "slots=8;rate=1",
        ];
        for text in wrong {
            let error = text.parse::<Simulated>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("{text:?} is no setting")), "{error}");
        }
    }

    #[test]
    fn pieces_stand_in_line() {
        let model = Simulated {
            bytes_per_second: Some(1e3),
            latency: Duration::from_secs(10),
            stall_every: Some(2),
            stall: Duration::from_secs(100),
            fault_every: Some(3),
            dies_after: Some(4),
            ..Simulated::default()
        };
        let line = Line { model, state: Mutex::default() };
        let before = Instant::now();
        let fates: Vec<_> = (0..5).map(|_| line.enter(2000)).collect();
        assert!(fates[0].at >= before + Duration::from_secs(12));
        let apart: Vec<_> = fates.windows(2).map(|two| (two[1].at - two[0].at).as_secs()).collect();
        assert_eq!(apart, [102, 2, 102, 2], "the latency is that of the first");
        let fails: Vec<_> = fates.iter().map(|fate| fate.fails).collect();
        assert_eq!(fails, [false, false, true, false, true]);
    }

    #[test]
    fn what_no_clock_can_hold_is_no_panic() {
        let model = Simulated {
            bytes_per_second: Some(f64::MIN_POSITIVE),
            latency: Duration::MAX,
            stall_every: Some(1),
            stall: Duration::MAX,
            ..Simulated::default()
        };
        let line = Line { model, state: Mutex::default() };
        line.enter(usize::MAX);
        line.enter(usize::MAX);
    }
}
