//! The rungs that velocity policies can choose from here, and when they are chosen.

use serde::Serialize;
use wattlock_energy::{Gpu, Root, cpufreq};
use wattlock_stream::Ladder;

/// What can be set on a device, from slow to fast.
#[derive(Debug, Serialize)]
pub struct Rungs {
    /// `cpu`, or the name of a GPU.
    device: String,
    set_by: &'static str,
    rungs: Vec<Rung>,
}

#[derive(Debug, Serialize)]
struct Rung {
    name: String,
    /// The share of a stream's window from which on it is chosen (Eq. 9 of LECPAES), in millionths.
    from_used_ppm: u64,
}

/// Of the CPUs their clocks, or numbers of workers where no clock can be set; and of each GPU of
/// NVIDIA.
pub fn ladders(root: &Root, workers: usize) -> Vec<Rungs> {
    let clocks = cpufreq::ladder(&cpufreq::policies(root)).unwrap_or_default();
    let clocks = clocks.iter().map(|clock| (clock.to_string(), f64::from(clock.0)));
    let counts = (1..=workers).map(|workers| (of_workers(workers), workers as f64));
    let cpu = Rungs::new("cpu", "cpufreq", clocks).or_else(|| Rungs::new("cpu", "workers", counts));
    let gpus = Gpu::all(root).unwrap_or_default();
    let gpu = |gpu: Gpu| {
        let pairs = gpu.clock_pairs().ok()?;
        let clocks = pairs.iter().map(|pair| (pair.to_string(), f64::from(pair.core.0)));
        Rungs::new(&gpu.name().unwrap_or_else(|_| gpu.uuid().into()), "nvml", clocks)
    };
    cpu.into_iter().chain(gpus.into_iter().filter_map(gpu)).collect()
}

impl Rungs {
    /// `None` where there is nothing to set.
    fn new(
        device: &str,
        set_by: &'static str,
        speeds: impl Iterator<Item = (String, f64)>,
    ) -> Option<Self> {
        let ladder = Ladder::of_speeds(speeds)?;
        let shares = std::iter::once(0.0).chain(ladder.thresholds());
        let rung = |(rung, share): (&wattlock_stream::Rung, f64)| Rung {
            name: rung.name.clone(),
            from_used_ppm: (share * 1e6).round() as u64,
        };
        let rungs = ladder.rungs().iter().zip(shares).map(rung).collect();
        Some(Self { device: device.to_owned(), set_by, rungs })
    }

    /// For people: of a long ladder, some rungs at even distances.
    fn text(&self) -> String {
        let last = self.rungs.len() - 1;
        let shown = last.min(MOST_SHOWN - 1);
        let at = |place: usize| (place * last).checked_div(shown).unwrap_or(0);
        let rung = |place| {
            let Rung { name, from_used_ppm } = &self.rungs[at(place)];
            // What is counted is said before.
            let name = if self.set_by == "workers" {
                name.split(' ').next().unwrap_or(name)
            } else {
                name
            };
            format!("{name} from {:.1} %", *from_used_ppm as f64 / 1e4)
        };
        let rungs: Vec<_> = (0..=shown).map(rung).collect();
        let rest = if last > shown {
            format!(" ({} of {}; --json has all)", shown + 1, last + 1)
        } else {
            String::new()
        };
        format!("  {}, {}: {}{rest}\n", self.device, self.set_by, rungs.join(", "))
    }
}

/// For people: nothing where there are no rungs.
pub fn text(ladders: &[Rungs]) -> String {
    if ladders.is_empty() {
        return String::new();
    }
    let rungs: String = ladders.iter().map(Rungs::text).collect();
    format!("\n  stream policy: window occupancy from which each setting is used\n{rungs}")
}

/// A number of workers, as people say it.
pub fn of_workers(workers: usize) -> String {
    format!("{workers} worker{}", if workers == 1 { "" } else { "s" })
}

const MOST_SHOWN: usize = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_have_the_papers_thresholds() {
        let clocks =
            [324, 614, 640, 666, 705, 758].map(|mhz| (format!("{mhz} MHz"), f64::from(mhz)));
        let rungs = Rungs::new("K20M", "nvml", clocks.into_iter()).unwrap();
        let expected = "  K20M, nvml: 324 MHz from 0.0 %, 614 MHz from 42.7 %, 640 MHz from 81.0 %, \
                        666 MHz from 84.4 %, 705 MHz from 87.9 %, 758 MHz from 93.0 %\n";
        assert_eq!(rungs.text(), expected);
    }

    #[test]
    fn workers_are_rungs_where_no_clock_can_be_set() {
        let nothing = tempfile::tempdir().unwrap();
        for (workers, expected) in [(1, "1 from 0.0 %\n"), (2, "1 from 0.0 %, 2 from 50.0 %\n")] {
            let text = text(&ladders(&Root::new(nothing.path()), workers));
            assert!(text.contains(&format!("  cpu, workers: {expected}")), "{text}");
        }
    }

    #[test]
    fn long_ladders_are_shown_from_end_to_end() {
        let speeds = (1..=100).map(|speed| (format!("{speed} MHz"), f64::from(speed)));
        let text = Rungs::new("gpu", "nvml", speeds).unwrap().text();
        assert!(
            text.contains(": 1 MHz from 0.0 %") && text.contains("100 MHz from 99.0 %"),
            "{text}"
        );
        assert!(text.ends_with(" (6 of 100; --json has all)\n"), "{text}");
        assert_eq!(text.matches("from").count(), 6);
    }
}
