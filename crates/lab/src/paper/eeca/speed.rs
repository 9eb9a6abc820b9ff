//! Table 1 in virtual time: `openssl speed` of eight processes on the paper's server.
//!
//! The constants are fitted to the columns of software, instruction set and accelerator alone. EECA's
//! column is predicted: from 16 kB on nothing of it enters; below, one of its cells does.

use super::printed::{Line, Way, gain};

/// Cores of the server, and processes that call.
pub const CORES: f64 = 8.0;

/// Sizes above this are the accelerator's (Section 5.1).
pub const THRESHOLD_KB: u64 = 8;

/// The paper's server, as Table 1 shows it.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// What a core takes for a message by the instruction set: nanoseconds before the first byte.
    pub start_ns: f64,
    /// Then so many bytes a second.
    pub core_rate: f64,
    /// Bytes a second of a core by software.
    pub software_rate: f64,
    pub device: Device,
}

/// The accelerator: one line on which calls go one after the other, and time that each caller spends
/// beside it.
#[derive(Clone, Copy, Debug)]
pub struct Device {
    /// Nanoseconds of a call that are not on the line.
    pub call_ns: f64,
    /// Bytes a second on the line.
    pub rate: f64,
}

impl Device {
    /// Nanoseconds on the line.
    pub fn line_ns(self, bytes: f64) -> f64 {
        1e9 * bytes / self.rate
    }

    /// Bytes a second by that many callers, each of which waits for its call.
    pub fn throughput(self, bytes: f64, callers: f64) -> f64 {
        let line_ns = self.line_ns(bytes);
        1e9 * bytes * (1.0 / line_ns).min(callers / (self.call_ns + line_ns))
    }

    /// Callers that keep it full.
    pub fn full_callers(self, bytes: f64) -> f64 {
        (1.0 + self.call_ns / self.line_ns(bytes)).min(CORES)
    }

    /// The call time and the rate that are nearest to Table 1's column, for so many callers: the
    /// least sum of squared relative errors, in steps of 10 ns and 1 MB/s. The two hardly depend on
    /// each other, so that four turns of the one and the other find the least of the grid.
    pub fn fitted(lines: &[Line], callers: f64) -> Self {
        let mut best = Self { call_ns: 14_500.0, rate: 6.1e9 };
        let cost = |device: Self| {
            let errors = lines.iter().map(|line| {
                device.throughput(line.bytes(), callers) / per_second(line, Way::Accelerator) - 1.0
            });
            errors.map(|error| error * error).sum::<f64>()
        };
        let least = |all: &mut dyn Iterator<Item = Self>| {
            all.map(|device| (cost(device), device)).min_by(|one, other| one.0.total_cmp(&other.0))
        };
        for _ in 0..4 {
            let calls = (500..=4000).map(|tens| Self { call_ns: f64::from(tens) * 10.0, ..best });
            best = least(&mut calls.into_iter()).map_or(best, |(_, device)| device);
            let rates = (6000..=6200).map(|mb| Self { rate: f64::from(mb) * 1e6, ..best });
            best = least(&mut rates.into_iter()).map_or(best, |(_, device)| device);
        }
        best
    }
}

impl Machine {
    /// Fitted to Table 1's single columns.
    pub fn fitted(lines: &[Line]) -> Self {
        let core_ns =
            |line: &Line| 1e9 * CORES * line.bytes() / per_second(line, Way::InstructionSet);
        let (start_ns, ns_per_byte) =
            straight(lines.iter().map(|line| (line.bytes(), core_ns(line), core_ns(line))));
        let software = lines.iter().map(|line| per_second(line, Way::Software)).sum::<f64>();
        Self {
            start_ns,
            core_rate: 1e9 / ns_per_byte,
            software_rate: software / lines.len() as f64 / CORES,
            device: Device::fitted(lines, CORES),
        }
    }

    /// The machine of the printed table.
    #[cfg(test)]
    pub fn printed() -> Self {
        Self::fitted(&super::printed::Which::One.lines())
    }

    /// Nanoseconds of a core for a message by the instruction set.
    pub fn core_ns(&self, bytes: f64) -> f64 {
        self.start_ns + 1e9 * bytes / self.core_rate
    }

    /// Bytes a second of all cores, or of all callers of the accelerator, by that alone.
    pub fn single(&self, way: Way, bytes: f64) -> f64 {
        match way {
            Way::Software => CORES * self.software_rate,
            Way::Accelerator => self.device.throughput(bytes, CORES),
            Way::InstructionSet | Way::Eeca => 1e9 * CORES * bytes / self.core_ns(bytes),
        }
    }

    /// As many callers as keep the accelerator full, the others by the instruction set: bytes a
    /// second.
    pub fn best_split(&self, bytes: f64) -> f64 {
        self.split(bytes, self.device, CORES)
    }

    /// The best of all numbers of callers that keep to the accelerator: bytes a second.
    pub fn whole_split(&self, bytes: f64) -> f64 {
        let of = |on_device: f64| {
            let others = (CORES - on_device) * 1e9 * bytes / self.core_ns(bytes);
            self.device.throughput(bytes, on_device) + others
        };
        (0..=CORES as u32).map(|callers| of(callers.into())).fold(0.0, f64::max)
    }

    /// The same of another number of callers, of which at most one a core uses the instruction set.
    pub fn split(&self, bytes: f64, device: Device, callers: f64) -> f64 {
        let on_device = callers.min(1.0 + device.call_ns / device.line_ns(bytes));
        let others = (callers - on_device).min(CORES);
        device.throughput(bytes, on_device) + others * 1e9 * bytes / self.core_ns(bytes)
    }

    /// The least and the largest error of EECA's column above the threshold, percent, if so many
    /// callers are assumed.
    pub fn errors_with(&self, lines: &[Line], callers: f64) -> (f64, f64) {
        let device = Device::fitted(lines, callers);
        let above = lines.iter().filter(|line| line.kb > THRESHOLD_KB);
        let errors = above.map(|line| {
            gain(self.split(line.bytes(), device, callers), per_second(line, Way::Eeca))
        });
        errors
            .fold((f64::MAX, f64::MIN), |(least, most), error| (least.min(error), most.max(error)))
    }

    /// Kilobytes from which on the accelerator, if it is idle, is sooner done than a core.
    pub fn crossing_kb(&self) -> f64 {
        let gain_ns = 1e9 / self.core_rate - 1e9 / self.device.rate;
        (self.device.call_ns - self.start_ns) / gain_ns / 1024.0
    }
}

/// Nanoseconds that EECA's check adds to a call of the instruction set, from one line's cells.
pub fn check_ns(line: &Line) -> f64 {
    let ns = |way| 1e9 * CORES * line.bytes() / per_second(line, way);
    ns(Way::Eeca) - ns(Way::InstructionSet)
}

/// Printed kB/s as bytes a second.
pub fn per_second(line: &Line, way: Way) -> f64 {
    1000.0 * line.rate(way)
}

/// The line `a + b x` through points `(x, y, scale)` with the least sum of squares of errors over
/// `scale`, as `(a, b)`.
pub fn straight(points: impl Iterator<Item = (f64, f64, f64)>) -> (f64, f64) {
    let mut sums = [0.0; 5];
    for (x, y, scale) in points {
        let weight = 1.0 / (scale * scale);
        let terms = [weight, weight * x, weight * x * x, weight * y, weight * x * y];
        sums.iter_mut().zip(terms).for_each(|(sum, term)| *sum += term);
    }
    let [s0, s1, s2, y0, y1] = sums;
    let slope = (s0 * y1 - s1 * y0) / (s0 * s2 - s1 * s1);
    ((y0 - slope * s1) / s0, slope)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::eeca::printed::Which;

    fn near(found: f64, wanted: f64, by: f64) {
        assert!((found - wanted).abs() <= by, "{found} instead of {wanted}");
    }

    #[test]
    fn constants_follow_from_the_single_columns() {
        let lines = Which::One.lines();
        let machine = Machine::fitted(&lines);
        near(machine.start_ns, 31.0, 0.5);
        near(machine.core_rate / 1e6, 756.3, 0.05);
        near(machine.software_rate / 1e6, 81.0, 0.05);
        near(machine.device.call_ns, 14_500.0, 50.0);
        near(machine.device.rate / 1e9, 6.10, 0.005);
        near(machine.crossing_kb(), 12.2, 0.05);
        let errors = |way| {
            let machine = &machine;
            lines.iter().map(move |line| {
                gain(machine.single(way, line.bytes()), per_second(line, way)).abs()
            })
        };
        assert!(errors(Way::InstructionSet).all(|error| error <= 0.3));
        assert!(errors(Way::Software).all(|error| error <= 0.5));
        assert!(errors(Way::Accelerator).take(8).all(|error| error <= 1.25));
    }

    #[test]
    fn the_split_predicts_eeca_from_16_kb_on() {
        let machine = Machine::printed();
        let lines = Which::One.lines();
        let found = lines[4..].iter().map(|line| {
            let split = machine.best_split(line.bytes());
            [
                gain(split, per_second(line, Way::InstructionSet)),
                gain(split, per_second(line, Way::Eeca)),
            ]
        });
        let wanted = [[21.0, 2.8], [54.6, 4.0], [71.5, -5.8], [79.9, -2.0], [84.6, -0.1]];
        for (found, wanted) in found.zip(wanted) {
            near(found[0], wanted[0], 0.06);
            near(found[1], wanted[1], 0.06);
        }
    }

    #[test]
    fn whole_callers_would_miss_64_kb() {
        let machine = Machine::printed();
        let lines = Which::One.lines();
        let wanted = [1.7, 1.4, -10.2, -4.3, -4.6];
        for (line, wanted) in lines[4..].iter().zip(wanted) {
            let ours = machine.whole_split(line.bytes());
            near(gain(ours, per_second(line, Way::Eeca)), wanted, 0.2);
        }
    }

    #[test]
    fn eight_callers_are_the_cores_and_not_a_fit() {
        let lines = Which::One.lines();
        let machine = Machine::fitted(&lines);
        for (callers, least, most) in [(7.0, -11.4, -0.4), (9.0, -0.1, 9.4), (16.0, 8.9, 35.0)] {
            let errors = machine.errors_with(&lines, callers);
            near(errors.0, least, 0.06);
            near(errors.1, most, 0.06);
        }
    }

    #[test]
    fn the_check_costs_100_to_170_ns_a_call() {
        let lines = Which::One.lines();
        let wanted = [102.0, 105.0, 151.0, 167.0];
        for (line, wanted) in lines.iter().zip(wanted) {
            near(check_ns(line), wanted, 0.5);
        }
    }
}
