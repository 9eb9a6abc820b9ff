//! Measures what jobs take on this machine: through [`Engine`], as users have it, not through bare
//! kernels.

use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use wattlock_energy::{Sources, Watts};

use crate::case::Case;
use crate::engine::Engine;
use crate::error::Error;
use crate::fit::fit;
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
    pub fn run(mut self, mut progress: impl FnMut(Step)) -> Result<Vec<Profile>, Error> {
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
            let joules = match &mut self.sources {
                Some(sources) if subject.can_be_counted() => {
                    progress(Step { spent, expected, counting: Some(subject.case()) });
                    spent += lead(self.window) + self.window;
                    count(self.engine, subject, sources, self.window, &mut buffer)?
                        .map(|joules| joules.with_idle(idle))
                }
                _ => None,
            };
            profiles.extend(profile(subject, joules, now));
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
) -> Result<Option<Joules>, Error> {
    let mut work = |window| {
        let started = Instant::now();
        let mut bytes = 0;
        while started.elapsed() < window {
            bytes += subject.once(engine, buffer)?;
        }
        Ok::<_, Error>(bytes)
    };
    work(lead(window))?;
    let (bytes, counted) = sources.measure(|| work(window))?;
    Ok(Joules::new(counted.sum(), bytes?))
}

/// How long the load runs before its window: four readings of the slowest meter, so that nothing of
/// the load before is counted.
fn lead(window: Duration) -> Duration {
    window / 10
}

fn profile(subject: &Subject, joules: Option<Joules>, now: u64) -> Option<Profile> {
    let fit = fit(subject.samples())?;
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
    /// readings: one to check that it can be read, then two at rest and two at work.
    fn joules(case: &str, readings: [Option<u64>; 5]) -> Option<(String, bool)> {
        let (engine, cases) = (Engine::new(1), [Case::named(case).unwrap()]);
        let profile = (0..30).find_map(|_| {
            let seconds = (0..).map(Duration::from_secs);
            let readings = seconds.zip(readings.map(|reading| reading.map(Microjoules)));
            let meter = FakeMeter::new("package-0", readings);
            let mut sources = Sources::of_meters(vec![Box::new(meter)]);
            let mut calibration = calibration(&engine, &cases);
            calibration.sources = Some(&mut sources);
            calibration.run(drop).unwrap().pop()
        });
        let joules = profile.unwrap().joules?;
        assert!(joules.bytes() > 0);
        Some((joules.energy().to_string(), joules.idle().is_some()))
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
