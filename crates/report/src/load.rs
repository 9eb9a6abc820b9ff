//! What else a machine does while a bench runs on it: a rate of a busy machine is none.

use std::fmt;
use std::fs;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

/// What others took from a run, as averages over all of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Load {
    /// CPUs that other processes kept busy.
    pub others_cpus: f64,
    /// CPUs that the hypervisor gave to other machines, as far as it says so.
    pub stolen_cpus: f64,
    /// The share of time in which some thread waited for a CPU, where the kernel counts it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<f64>,
}

impl Load {
    /// What to be careful of, if others took a noticeable part.
    pub fn warning(&self) -> Option<String> {
        let taken = self.others_cpus + self.stolen_cpus;
        (taken > NOTICEABLE).then(|| {
            format!(
                "the machine was busy: others took {taken:.2} CPUs during this run; rates by wall time \
                 are too low; repeat on an idle machine"
            )
        })
    }
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { others_cpus, stolen_cpus, waiting } = self;
        write!(
            f,
            "load: other programs used {others_cpus:.2} CPUs; the hypervisor took {stolen_cpus:.2}"
        )?;
        match waiting {
            Some(share) => {
                write!(f, "; threads waited for a CPU {:.0} % of the time", 100.0 * share)
            }
            None => Ok(()),
        }
    }
}

/// A run of which the load is watched.
#[derive(Debug)]
pub struct LoadWatch {
    began: Instant,
    counts: Option<Counts>,
}

impl LoadWatch {
    /// Begins to watch.
    pub fn begin() -> Self {
        Self { began: Instant::now(), counts: Counts::now() }
    }

    /// The load since then, beside the CPU time that the run itself took. `None` where the kernel does
    /// not count it.
    pub fn end(self, own: Duration) -> Option<Load> {
        let wall = self.began.elapsed();
        Some(Counts::now()?.since(self.counts.as_ref()?, wall, own))
    }
}

/// Sums since the machine was started.
#[derive(Debug)]
struct Counts {
    busy_s: f64,
    stolen_s: f64,
    waited_s: Option<f64>,
}

impl Counts {
    fn now() -> Option<Self> {
        let pressure = fs::read_to_string("/proc/pressure/cpu").unwrap_or_default();
        Self::of(&fs::read_to_string("/proc/stat").ok()?, &pressure)
    }

    /// The first line of `/proc/stat` counts in hundredths of a second; of `/proc/pressure/cpu`, "some"
    /// ends with microseconds.
    fn of(stat: &str, pressure: &str) -> Option<Self> {
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks: Vec<f64> = line.split_whitespace().map_while(|word| word.parse().ok()).collect();
        let [user, nice, system, _idle, _iowait, irq, softirq, stolen, ..] = *ticks else {
            return None;
        };
        let some = pressure.lines().find_map(|line| line.strip_prefix("some "));
        let total = some.and_then(|line| line.split_once("total="));
        let waited = total.and_then(|(_, total)| total.trim().parse::<f64>().ok());
        Some(Self {
            busy_s: (user + nice + system + irq + softirq) / 100.0,
            stolen_s: stolen / 100.0,
            waited_s: waited.map(|us| us / 1e6),
        })
    }

    fn since(&self, before: &Self, wall: Duration, own: Duration) -> Load {
        let of_wall = |seconds: f64| {
            let share = (seconds / wall.as_secs_f64().max(1e-3)).max(0.0);
            (share * 1000.0).round() / 1000.0
        };
        let waited = self.waited_s.zip(before.waited_s);
        Load {
            others_cpus: of_wall(self.busy_s - before.busy_s - own.as_secs_f64()),
            stolen_cpus: of_wall(self.stolen_s - before.stolen_s),
            waiting: waited.map(|(now, before)| of_wall(now - before)),
        }
    }
}

/// CPUs of others that show in a table.
const NOTICEABLE: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_others_take_is_what_is_left_of_the_counts() {
        let before = Counts::of(
            "cpu  1000 0 200 9000 10 0 0 50 0 0\ncpu0 1 2 3\n",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\nfull total=0\n",
        );
        let after = Counts::of(
            "cpu  2500 0 300 9000 10 50 50 150 0 0\n",
            "some avg10=0.00 avg60=0.00 avg300=0.00 total=3000000\n",
        );
        let (before, after) = (before.expect("counts"), after.expect("counts"));
        let load = after.since(&before, Duration::from_secs(10), Duration::from_secs(10));
        let expected = Load { others_cpus: 0.7, stolen_cpus: 0.1, waiting: Some(0.2) };
        assert_eq!(load, expected);
        assert!(load.warning().expect("busy").contains("0.80 CPUs"));
        let text = "load: other programs used 0.70 CPUs; the hypervisor took 0.10; threads waited for a CPU \
                    20 % of the time";
        assert_eq!(load.to_string(), text);

        let quiet = before.since(&before, Duration::from_secs(10), Duration::from_secs(1));
        assert_eq!((quiet.others_cpus, quiet.warning()), (0.0, None), "never below zero");
        assert!(Counts::of("", "").is_none());
    }
}
