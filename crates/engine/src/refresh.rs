//! Keeps profiles true while jobs run: each large one says a little about the devices that did it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use crate::case::Case;
use crate::profile::{Profile, Profiles, Residency};
use crate::report::DeviceReport;

impl Profile {
    /// The profile after a call of `bytes` of plaintext that took `took`.
    ///
    /// A quarter of the way to what was seen, which counts as at most twice and at least half the
    /// rate that was expected: a moment when the machine did something else moves it little, and a
    /// machine that has changed is believed after a few calls. The start-up stays.
    #[must_use]
    fn refreshed(&self, bytes: u64, took: Duration) -> Self {
        let moving = took.saturating_sub(self.startup).as_secs_f64();
        let expected = self.bytes_per_second;
        // Faster than its start-up: as fast as can be believed.
        let seen = if moving > 0.0 { bytes as f64 / moving } else { f64::INFINITY };
        let believed = seen.clamp(expected / CLAMP, expected * CLAMP);
        let mut refreshed = self.clone();
        refreshed.bytes_per_second = expected + WEIGHT * (believed - expected);
        refreshed
    }
}

impl Profiles {
    /// Refreshes the profile of `device` with one sample: `workers` did `bytes` of plaintext of
    /// `case` in `took`. Adds a profile if there was none.
    pub fn refresh(
        &mut self,
        device: &str,
        case: Case,
        workers: usize,
        bytes: u64,
        took: Duration,
    ) {
        if let Some(known) = self.find(device, case, workers, Residency::Host) {
            let refreshed = known.refreshed(bytes, took);
            self.add(refreshed);
            return;
        }
        let bytes_per_second = bytes as f64 / took.as_secs_f64();
        if !(bytes_per_second > 0.0 && bytes_per_second.is_finite()) {
            return;
        }
        let kernel = if device == crate::cpu::Cpu::NAME { case.kernel() } else { device };
        self.add(Profile {
            device: device.to_owned(),
            case,
            kernel: kernel.to_owned(),
            workers,
            residency: Residency::Host,
            startup: Duration::ZERO,
            bytes_per_second,
            spread: 0.0,
            samples: 1,
            joules: None,
            created_unix_s: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .unwrap_or_default()
                .as_secs(),
            wattlock: env!("CARGO_PKG_VERSION").to_owned(),
        });
    }

    /// Refreshes the profile with what `device` did of a run of `case`, with `plain` bytes of
    /// plaintext for each byte; ignores shares that are too small.
    pub(crate) fn learn(&mut self, device: &DeviceReport, case: Case, plain: f64) {
        if device.bytes < LEAST_SAMPLE || device.workers == 0 {
            return;
        }
        let bytes = (device.bytes as f64 * plain) as u64;
        let took = device.busy / u32::try_from(device.workers).unwrap_or(u32::MAX);
        self.refresh(&device.name, case, device.workers, bytes, took);
    }
}

/// How far a call may be from what was expected before it counts as that far.
const CLAMP: f64 = 2.0;
/// How much a call counts against all before it.
const WEIGHT: f64 = 0.25;
/// Bytes below which start-up takes too much of a call to measure its rate.
const LEAST_SAMPLE: u64 = 8 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::tests::profile;

    #[test]
    fn a_quarter_of_the_way_and_never_far() {
        // A profile of 1 GB/s after 20 µs, and a call of 1 MB.
        let before = profile("aes-128-ctr", 2, 20);
        let table = [
            // µs that it took, GB/s after it
            (1020, 1.0),
            (1020 + 250, 0.95),
            (520, 1.25),
            (21, 1.25),
            (3, 1.25),
            (2020, 0.875),
            (1_000_000, 0.875),
        ];
        for (us, rate) in table {
            let after = before.refreshed(1_000_000, Duration::from_micros(us));
            assert!((after.bytes_per_second / 1e9 - rate).abs() < 1e-3, "{us} µs: {after:?}");
            assert_eq!(after.startup, before.startup);
        }
    }

    #[test]
    fn a_changed_machine_is_believed_after_a_while() {
        let mut profiles: Profiles = [profile("aes-128-ctr", 2, 0)].into_iter().collect();
        let case = Case::named("aes-128-ctr").unwrap();
        for _ in 0..40 {
            profiles.refresh("cpu", case, 2, 1_000_000, Duration::from_micros(100));
        }
        let rate = profiles.find("cpu", case, 2, Residency::Host).unwrap().bytes_per_second;
        assert!((rate / 1e10 - 1.0).abs() < 0.01, "{rate}");
    }

    #[test]
    fn what_was_not_known_is_known() {
        let mut profiles = Profiles::default();
        let case = Case::named("aes-128-ctr").unwrap();
        let mut device = DeviceReport { name: "gpu".into(), ..DeviceReport::default() };
        (device.workers, device.bytes, device.busy) = (2, LEAST_SAMPLE, Duration::from_secs(4));
        profiles.learn(&DeviceReport { bytes: LEAST_SAMPLE - 1, ..device.clone() }, case, 1.0);
        profiles.refresh("gpu", case, 1, 7, Duration::ZERO);
        assert!(profiles.is_empty());
        profiles.learn(&device, case, 0.5);
        let found = profiles.find("gpu", case, 2, Residency::Host).unwrap();
        assert_eq!((found.samples, found.bytes_per_second), (1, LEAST_SAMPLE as f64 / 4.0));
    }
}
