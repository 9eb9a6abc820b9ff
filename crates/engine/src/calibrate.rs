//! Measures what jobs take on this machine: through [`Engine`], as users have it, not through bare
//! kernels.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wattlock_energy::{Energy, Sources, Watts};

use crate::case::Case;
use crate::engine::Engine;
use crate::error::Error;
use crate::fit::{Fit, fit};
use crate::policy::Power;
use crate::profile::{Joules, Profile, Residency};
use subject::Subject;

mod subject;

/// What is to be measured, and for how long.
///
/// Every case is measured with one CPU worker and with all, at sizes from 4 KiB to 8 MiB and more,
/// and on every accelerator that supports it, from 1 to 16 MiB. All
/// of them take turns, round after round, so that a bad moment of a shared machine hits each a
/// little and none much; the first round does not count.
pub struct Calibration<'a> {
    /// The engine, whose CPU is measured, and whose chosen accelerators are.
    pub engine: &'a Engine,
    /// What is measured.
    pub cases: &'a [Case],
    /// How long times are measured, about: a slow machine takes longer for the fewest rounds.
    pub budget: Duration,
    /// Where joules are counted; `None` leaves them out.
    pub sources: Option<&'a mut Sources>,
    /// How long joules are counted, at least, for each case and number of workers, and of the
    /// machine at rest: counters need 2 s, slower meters get longer.
    pub window: Duration,
}

/// How far a calibration has come.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// What was spent.
    pub spent: Duration,
    /// What will be spent in all, about.
    pub expected: Duration,
    /// Whose joules are counted; `None` while times are measured.
    pub counting: Option<Case>,
}

impl Calibration<'_> {
    /// Measures, and says now and then how far it has come. A case whose times are no line has no
    /// profile among those that are returned.
    ///
    /// # Errors
    /// What the engine or the guard of the meters say.
    pub fn run(self, progress: impl FnMut(Step)) -> Result<Vec<Profile>, Error> {
        self.run_within(MOST_APART, progress)
    }

    /// The same; joules are void where calls took more than `most_apart` times another time than
    /// their line says.
    fn run_within(
        mut self,
        most_apart: f64,
        mut progress: impl FnMut(Step),
    ) -> Result<Vec<Profile>, Error> {
        let mut subjects = self.subjects()?;
        let mut buffer = vec![0; subjects.iter().map(Subject::buffer_len).max().unwrap_or(0)];
        crate::crypto::random::fill(&mut buffer)
            .map_err(|source| Error::Cipher { chunk: 0, source })?;
        self.sources.take_if(|sources| !sources.can_integrate());
        if let Some(sources) = &self.sources {
            self.window = sources.window(self.window);
        }
        let idle = match &mut self.sources {
            Some(sources) => {
                progress(Step { spent: Duration::ZERO, expected: self.window, counting: None });
                at_rest(sources, self.window)?
            }
            None => None,
        };
        let counted = match self.sources {
            Some(_) => subjects.iter().filter(|subject| subject.can_be_counted()).count(),
            None => 0,
        };
        let expected = self.budget + (lead(self.window) + self.window) * counted as u32;
        self.time(&mut subjects, &mut buffer, |spent| {
            progress(Step { spent, expected, counting: None });
        })?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let mut profiles = Vec::new();
        let mut spent = self.budget;
        for subject in &mut subjects {
            let counted = match &mut self.sources {
                Some(sources) if subject.can_be_counted() => {
                    progress(Step { spent, expected, counting: Some(subject.case()) });
                    spent += lead(self.window) + self.window;
                    Some(count(self.engine, subject, sources, self.window, &mut buffer)?)
                }
                _ => None,
            };
            profiles.extend(profile(subject, now, |line| {
                let joules = counted?.joules(line, most_apart);
                joules.map(|joules| joules.with_idle(idle))
            }));
        }
        Ok(profiles)
    }

    /// Each case with one worker, with all where there are more, and on each accelerator.
    fn subjects(&self) -> Result<Vec<Subject>, Error> {
        let all = self.engine.threads();
        let one = self.cases.iter().map(|&case| Subject::new(case, 1));
        let many = self.cases.iter().filter(|_| all > 1).map(|&case| Subject::new(case, all));
        let accelerators = self.engine.chosen_accelerators().flat_map(|device| {
            self.cases.iter().map(move |&case| Subject::of_accelerator(device, case))
        });
        one.chain(many).chain(accelerators.filter_map(Result::transpose)).collect()
    }

    fn time(
        &self,
        subjects: &mut [Subject],
        buffer: &mut [u8],
        mut progress: impl FnMut(Duration),
    ) -> Result<(), Error> {
        let started = Instant::now();
        for round in 0..MOST_ROUNDS {
            if round >= FEWEST_ROUNDS && started.elapsed() >= self.budget {
                break;
            }
            // Whichever ends it.
            let rounds = self.budget / MOST_ROUNDS as u32 * round as u32;
            progress(started.elapsed().max(rounds).min(self.budget));
            for subject in &mut *subjects {
                subject.time(self.engine, buffer)?;
                if round == 0 {
                    subject.forget();
                }
            }
        }
        Ok(())
    }
}

/// The power of the idle machine, if it can be measured.
fn at_rest(sources: &mut Sources, window: Duration) -> Result<Option<Watts>, Error> {
    thread::sleep(lead(window));
    let ((), counted) = sources.measure(|| thread::sleep(window))?;
    let power = Power::new(&counted.sum(), counted.wall);
    Ok(power.map(|power| power.watts()))
}

/// Counts the joules of calls of the largest size for as long as `window`.
fn count(
    engine: &Engine,
    subject: &mut Subject,
    sources: &mut Sources,
    window: Duration,
    buffer: &mut [u8],
) -> Result<Counted, Error> {
    let mut work = |window| {
        let started = Instant::now();
        let (mut bytes, mut calls) = (0, 0);
        while started.elapsed() < window {
            bytes += subject.once(engine, buffer)?;
            calls += 1;
        }
        Ok::<_, Error>(Counted { energy: None, bytes, calls, took: started.elapsed() })
    };
    work(lead(window))?;
    let (counted, metered) = sources.measure(|| work(window))?;
    Ok(Counted { energy: Some(metered.sum()), ..counted? })
}

/// What was done while joules were counted.
struct Counted {
    energy: Option<Energy>,
    bytes: u64,
    calls: u32,
    took: Duration,
}

impl Counted {
    /// The joules, unless the calls took another time than the line of their times says: beside other
    /// programs they take longer, and the joules are also those of the others.
    fn joules(self, line: &Fit, most_apart: f64) -> Option<Joules> {
        let of_one = self.bytes.checked_div(self.calls.into())?;
        let expected = line.time(of_one).as_secs_f64() * f64::from(self.calls);
        let slower = self.took.as_secs_f64() / expected;
        let agrees = (1.0 / most_apart..=most_apart).contains(&slower);
        self.energy.filter(|_| agrees).and_then(|energy| Joules::new(energy, self.bytes))
    }
}

/// How long the load runs before its window: four readings of the slowest meter, so that nothing of
/// the load before is counted.
fn lead(window: Duration) -> Duration {
    window / 10
}

fn profile(
    subject: &Subject,
    now: u64,
    joules: impl FnOnce(&Fit) -> Option<Joules>,
) -> Option<Profile> {
    let fit = fit(subject.samples())?;
    let joules = joules(&fit);
    Some(Profile {
        device: subject.device().to_owned(),
        case: subject.case(),
        kernel: subject.kernel().to_owned(),
        workers: subject.workers(),
        residency: Residency::Host,
        startup: fit.startup,
        bytes_per_second: fit.bytes_per_second,
        spread: fit.spread,
        samples: subject.samples().len(),
        joules,
        created_unix_s: now,
        wattlock: env!("CARGO_PKG_VERSION").to_owned(),
    })
}

/// How many times as long as the line says calls may take, or the line as they: clocks that fall
/// under a steady load are within it.
const MOST_APART: f64 = 1.25;
/// Below this, a bad moment could be most of what a size is judged by.
const FEWEST_ROUNDS: usize = 4;
/// Above this, more of them add nothing.
const MOST_ROUNDS: usize = 100;

#[cfg(test)]
mod tests {
    use wattlock_energy::Microjoules;
    use wattlock_energy::fake::FakeMeter;

    use super::*;
    use crate::fake::Fake;
    use crate::job::Cipher;
    use crate::profile::Profiles;

    fn calibration<'a>(engine: &'a Engine, cases: &'a [Case]) -> Calibration<'a> {
        let (budget, window) = (Duration::from_millis(50), Duration::from_millis(5));
        Calibration { engine, cases, budget, sources: None, window }
    }

    /// Calibrates until there are `count` profiles; returns them and the steps. On a busy machine the
    /// times of a case may fit no line, so that it has no profile until another run.
    fn measured(engine: &Engine, cases: &[Case], count: usize) -> (Profiles, Vec<Step>) {
        let (mut profiles, mut steps) = (Profiles::default(), Vec::new());
        for _ in 0..30 {
            let found = calibration(engine, cases).run(|step| steps.push(step)).unwrap();
            found.into_iter().for_each(|profile| profiles.add(profile));
            if profiles.iter().count() >= count {
                break;
            }
        }
        assert_eq!(profiles.iter().count(), count);
        (profiles, steps)
    }

    #[test]
    fn every_case_gets_its_profiles() {
        let engine = Engine::new(3);
        let (profiles, steps) = measured(&engine, &Case::ALL, 2 * Case::ALL.len());
        for case in Case::ALL {
            for workers in [1, 3] {
                let found = profiles.find("cpu", case, workers, Residency::Host).unwrap();
                assert!(found.bytes_per_second > 0.0 && found.joules.is_none(), "{found:?}");
                assert_eq!(found.kernel, case.kernel());
            }
        }
        assert!(steps.iter().all(|step| step.spent <= step.expected && step.counting.is_none()));
    }

    #[test]
    fn accelerators_get_profiles_of_what_they_support() {
        let fake = |name, pieces_before_fault| {
            let supports = |cipher: &Cipher<'_>| matches!(cipher, Cipher::Ctr { .. });
            Box::new(Fake { name, pieces_before_fault, supports, ..Fake::default() })
        };
        let engine = Engine::new(1);
        let engine = engine.with_device(fake("gpu", None)).with_device(fake("dying", Some(2)));
        let cases = ["aes-128-ctr", "aes-128-ecb encrypt", "aes-256-gcm open"];
        let cases = cases.map(|name| Case::named(name).unwrap());
        let (profiles, _) = measured(&engine, &cases, 4);
        let of = |device| profiles.iter().filter(move |profile| profile.device == device);
        assert_eq!(of("cpu").count(), 3);
        let gpu: Vec<_> = of("gpu").map(|p| (p.case, p.workers, p.kernel.as_str())).collect();
        assert_eq!(gpu, [(cases[0], 1, "gpu")]);
        assert_eq!(of("dying").count(), 0, "the CPU's time is not its own");
    }

    #[test]
    fn one_worker_is_all() {
        let cases = [Case::named("aes-128-ctr").unwrap()];
        let (profiles, _) = measured(&Engine::new(1), &cases, 1);
        assert_eq!(profiles.iter().map(|profile| profile.workers).collect::<Vec<_>>(), [1]);
    }

    /// Whether there are joules, and whether the idle power is known, when a counter shows these
    /// readings: one to check that it can be read, then two at rest and two at work. How long the calls
    /// took does not count, for the machine may be busy.
    fn joules(case: &str, readings: [Option<u64>; 5]) -> Option<(String, bool)> {
        let (engine, cases) = (Engine::new(1), [Case::named(case).unwrap()]);
        let profile = (0..30).find_map(|_| {
            // Of a time to come: a reading that is due is taken, and these are all there are.
            let seconds = (1000..).map(Duration::from_secs);
            let readings = seconds.zip(readings.map(|reading| reading.map(Microjoules)));
            let meter = FakeMeter::new("package-0", readings);
            let mut sources = Sources::of_meters(vec![Box::new(meter)]);
            let mut calibration = calibration(&engine, &cases);
            calibration.sources = Some(&mut sources);
            calibration.run_within(f64::INFINITY, drop).unwrap().pop()
        });
        let joules = profile.unwrap().joules?;
        assert!(joules.bytes() > 0);
        Some((joules.energy().to_string(), joules.idle().is_some()))
    }

    #[test]
    fn joules_are_void_where_the_calls_took_another_time_than_their_line() {
        let line = Fit { startup: Duration::from_millis(1), bytes_per_second: 1e9, spread: 0.01 };
        // A call of 9 MB takes 10 ms.
        let counted = |calls: u32, took: u64| {
            let energy = Energy::measured("package-0", Microjoules(20_000_000), Microjoules(1));
            let bytes = u64::from(calls) * 9_000_000;
            Counted { energy: Some(energy), bytes, calls, took: Duration::from_millis(took) }
        };
        let joules = |calls, took| counted(calls, took).joules(&line, MOST_APART);
        assert_eq!(joules(200, 2000).unwrap().bytes(), 1_800_000_000);
        // At lower clocks under load; beside another program, and where the line itself was.
        assert!(joules(200, 2400).is_some());
        assert_eq!(joules(200, 4000), None);
        assert_eq!(joules(200, 1000), None);
        assert_eq!(joules(0, 2000), None);
    }

    #[test]
    fn joules_only_where_they_were_counted() {
        let from_zero = |rest, work| [Some(0), Some(0), Some(rest), Some(rest), Some(work)];
        let seal = |readings| joules("aes-256-gcm seal", readings);
        let counted = seal(from_zero(5_000_000, 25_000_000));
        assert_eq!(counted, Some(("20.00 J ± 0.05".into(), true)));
        assert_eq!(seal([None; 5]), None, "unreadable");
        assert_eq!(seal(from_zero(7, 7)), None, "at work as at rest");
        let open = joules("aes-256-gcm open", from_zero(5_000_000, 25_000_000));
        assert_eq!(open, None, "an open has to seal, which costs joules of its own");
    }
}
