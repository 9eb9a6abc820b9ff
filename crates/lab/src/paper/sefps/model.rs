//! The stage model of the SEFPS paper: a total is hash, AES and the rest, one after the other.
//!
//! The rest (input, output and all else) is what the serial algorithm's printed total leaves, per
//! size, and the same for all algorithms. AES speeds are the printed ones; where none is printed, AES
//! takes c + b bytes, fitted to the algorithm's own printed AES speeds. No total of a parallel
//! algorithm is an input. The hash cancels: a total is the serial total, less the serial AES, plus AES.

use super::printed::{AVERAGE, CASES, Case, SMALL, Stage, VARIANTS, decimal_bytes, files};
use super::{equations, printed::Platform};
use crate::sefps::format::Variant;

/// AES time as a line: microseconds, and microseconds a byte.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    pub start_us: f64,
    pub us_per_byte: f64,
}

impl Affine {
    /// Microseconds for a file.
    pub fn us(self, bytes: f64) -> f64 {
        self.start_us + self.us_per_byte * bytes
    }

    /// The bytes from which `other` takes less.
    pub fn crosses(self, other: Self) -> f64 {
        (other.start_us - self.start_us) / (self.us_per_byte - other.us_per_byte)
    }

    /// The line that leaves the least squares of relative errors of (bytes, microseconds).
    fn through(points: &[(f64, f64)]) -> Self {
        let mut sums = [0.0; 5];
        for &(x, y) in points {
            let w = 1.0 / (y * y);
            for (sum, part) in sums.iter_mut().zip([w, w * x, w * y, w * x * x, w * x * y]) {
                *sum += part;
            }
        }
        let [w, x, y, xx, xy] = sums;
        let us_per_byte = (w * xy - x * y) / (w * xx - x * x);
        Self { start_us: (y - us_per_byte * x) / w, us_per_byte }
    }

    /// The line through `us` at `bytes` whose mean speed over the ten larger files is `average`
    /// (Gbit/s); without a start if that would be negative.
    fn of_average(bytes: f64, us: f64, average: f64) -> Self {
        let large: Vec<f64> = large_files();
        let line = |us_per_byte: f64| Self { start_us: us - us_per_byte * bytes, us_per_byte };
        let (mut low, mut high) = (1e-4, 1.2 * us / bytes);
        for _ in 0..200 {
            let middle = f64::midpoint(low, high);
            let speeds = large.iter().map(|bytes| gbps(*bytes, line(middle).us(*bytes)));
            let mean = speeds.sum::<f64>() / large.len() as f64;
            *(if mean > average { &mut low } else { &mut high }) = middle;
        }
        let line = line(f64::midpoint(low, high));
        if line.start_us < 0.0 { Self { start_us: 0.0, us_per_byte: us / bytes } } else { line }
    }
}

/// The files that averages are of.
pub fn large_files() -> Vec<f64> {
    files().iter().skip(SMALL.len()).map(|file| decimal_bytes(&file.name)).collect()
}

fn gbps(bytes: f64, us: f64) -> f64 {
    8.0 * bytes / us / 1e3
}

fn us(bytes: f64, gbps: f64) -> f64 {
    8.0 * bytes / gbps / 1e3
}

/// Where the start of CPP's AES on platform 2 is from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// Platform 2's own two numbers: the model.
    Own,
    /// Platform 1's, put in after the model had missed: to show, and not to count.
    Platform1,
}

/// The AES lines of a case by algorithm; `None` where the paper prints too little.
fn lines(case: Case, start: Start) -> Option<[Affine; 4]> {
    let aes = |size: &str, variant| {
        let bytes = decimal_bytes(size);
        Some((bytes, us(bytes, case.speed(Stage::Aes, size, variant)?)))
    };
    let line = |variant: Variant| {
        let points: Vec<_> = SMALL.into_iter().filter_map(|size| aes(size, variant)).collect();
        match points[..] {
            [] => None,
            [(bytes, us)] if start == Start::Platform1 && variant == Variant::Parallel => {
                let first = lines(CASES[0], start)?[1].start_us;
                Some(Affine { start_us: first, us_per_byte: (us - first) / bytes })
            }
            [(bytes, us)] => {
                Some(Affine::of_average(bytes, us, case.gbps(Stage::Aes, AVERAGE, variant)))
            }
            _ => Some(Affine::through(&points)),
        }
    };
    let all: Vec<Affine> = VARIANTS.into_iter().filter_map(line).collect();
    all.try_into().ok()
}

/// The model of a case.
#[derive(Clone, Copy, Debug)]
pub struct Stages {
    pub case: Case,
    pub lines: Option<[Affine; 4]>,
}

impl Stages {
    /// From the case's own numbers.
    pub fn of(case: Case) -> Self {
        Self::started(case, Start::Own)
    }

    /// With that start.
    pub fn started(case: Case, start: Start) -> Self {
        Self { case, lines: lines(case, start) }
    }

    /// Microseconds of AES: printed, or by the line.
    fn aes_us(&self, size: &str, variant: Variant) -> f64 {
        let bytes = decimal_bytes(size);
        match self.case.speed(Stage::Aes, size, variant) {
            Some(speed) => us(bytes, speed),
            None => self.line_us(size, variant),
        }
    }

    /// Microseconds of AES by the line.
    pub fn line_us(&self, size: &str, variant: Variant) -> f64 {
        let line = self.lines.and_then(|lines| lines.get(index(variant)).copied());
        line.map_or(f64::NAN, |line| line.us(decimal_bytes(size)))
    }

    /// Microseconds that an algorithm's total leaves beside hash and AES.
    pub fn rest_us(&self, size: &str, variant: Variant) -> f64 {
        let bytes = decimal_bytes(size);
        let total = us(bytes, self.case.gbps(Stage::Total, size, variant));
        total - us(bytes, self.case.hash()) - self.aes_us(size, variant)
    }

    /// What all algorithms' totals of a file leave beside hash and AES, in words.
    pub fn rests(&self, size: &str) -> String {
        let rests = VARIANTS.map(|variant| {
            format!("{} {:.0}", self.case.name(variant), self.rest_us(size, variant))
        });
        format!("{} µs", rests.join(", "))
    }

    /// The same of the averages, in nanoseconds a bit.
    pub fn rest_of_averages(&self, variant: Variant) -> f64 {
        let speed = |stage| self.case.gbps(stage, AVERAGE, variant);
        1.0 / speed(Stage::Total) - 1.0 / self.case.hash() - 1.0 / speed(Stage::Aes)
    }

    /// Gbit/s of all stages.
    pub fn total(&self, size: &str, variant: Variant) -> f64 {
        if size == AVERAGE {
            return self.total_with(self.case.gbps(Stage::Aes, AVERAGE, variant), self.case.hash());
        }
        let bytes = decimal_bytes(size);
        let hash = us(bytes, self.case.hash());
        let rest = self.rest_us(size, Variant::Serial);
        gbps(bytes, hash + self.aes_us(size, variant) + rest)
    }

    /// Average Gbit/s of all stages, if AES and the hash have these speeds.
    pub fn total_with(&self, aes: f64, hash: f64) -> f64 {
        1.0 / (1.0 / hash + 1.0 / aes + self.rest_of_averages(Variant::Serial))
    }

    /// Whether that total rests on a line in the place of a printed AES speed.
    pub fn is_affine(&self, size: &str, variant: Variant) -> bool {
        self.case.speed(Stage::Aes, size, variant).is_none()
    }
}

/// The algorithm's place in [`VARIANTS`].
pub fn index(variant: Variant) -> usize {
    VARIANTS.iter().position(|one| *one == variant).unwrap_or(0)
}

/// Average AES speed of CPP by that of CSP: as many times as there are cores.
pub fn parallel_aes(case: Case) -> f64 {
    Platform::printed(case.platform).cores * case.gbps(Stage::Aes, AVERAGE, Variant::Serial)
}

/// How Eq. 1 splits the averages' AES: Gbit/s of the file, if the GPU alone or the CPU alone were
/// waited for. The GPU works at GPP's rate, the CPU at CPP's less the core that serves the GPU.
#[derive(Clone, Copy, Debug)]
pub struct Split {
    pub gpu: f64,
    pub cpu: f64,
    /// The rate of the CPU without that core.
    pub cpu_rate: f64,
    pub gpu_rate: f64,
}

impl Split {
    pub fn of(case: Case) -> Self {
        let platform = Platform::printed(case.platform);
        let ratio = equations::ratio(platform);
        let gpu_rate = case.gbps(Stage::Aes, AVERAGE, Variant::Gpu);
        let cpu_rate = case.gbps(Stage::Aes, AVERAGE, Variant::Parallel) * (platform.cores - 1.0)
            / platform.cores;
        let (gpu, cpu) = (gpu_rate * (ratio + 1.0) / ratio, cpu_rate * (ratio + 1.0));
        Self { gpu, cpu, cpu_rate, gpu_rate }
    }

    /// AES with Eq. 1: the slower part is waited for.
    pub fn by_equation_1(self) -> f64 {
        self.gpu.min(self.cpu)
    }

    /// AES if both parts end at the same time, as measured rates split it.
    pub fn by_rates(self) -> f64 {
        self.gpu_rate + self.cpu_rate
    }
}

#[cfg(test)]
mod tests {
    use super::super::printed::PARALLEL;
    use super::*;

    fn close(value: f64, expected: f64, within: f64) {
        assert!((value - expected).abs() <= within, "{value} is not {expected}");
    }

    #[test]
    fn lines_of_aes() {
        let expected = [
            (0, [(43.0, 172.9), (69.0, 14.1), (1243.0, 3.92), (1258.0, 3.68)]),
            (1, [(229.0, 337.2), (242.0, 27.6), (2563.0, 8.37), (2608.0, 7.67)]),
            (2, [(0.0, 213.1), (1306.0, 26.8), (2029.0, 9.79), (2633.0, 9.28)]),
        ];
        for (case, lines) in expected {
            let model = Stages::of(CASES[case]);
            for (line, (start_us, ns)) in model.lines.unwrap().into_iter().zip(lines) {
                close(line.start_us, start_us, 0.55);
                close(1e3 * line.us_per_byte, ns, 0.055);
            }
        }
        assert!(Stages::of(CASES[3]).lines.is_none());
    }

    #[test]
    fn rests_of_the_serial_algorithms() {
        let expected = [
            [164.0, 193.0, 368.0, 5129.0],
            [429.0, 440.0, 650.0, 4852.0],
            [5054.0, 4211.0, 4283.0, 12075.0],
        ];
        for (case, rests) in CASES.into_iter().zip(expected) {
            let model = Stages::of(case);
            for (size, rest) in SMALL.into_iter().zip(rests) {
                close(model.rest_us(size, Variant::Serial), rest, 0.51);
            }
        }
        let rests = VARIANTS.map(|variant| Stages::of(CASES[0]).rest_of_averages(variant));
        for (rest, expected) in rests.into_iter().zip([0.623, 0.630, 0.606, 0.612]) {
            close(rest, expected, 0.0006);
        }
    }

    #[test]
    fn totals_are_the_sum_of_their_stages() {
        let error = |case: Case, size, variant, start| {
            let model = Stages::started(case, start).total(size, variant);
            100.0 * (model / case.gbps(Stage::Total, size, variant) - 1.0)
        };
        let p1 = |size, variant| error(CASES[0], size, variant, Start::Platform1);
        close(p1("20.4 KB", Variant::Parallel), 19.2, 0.05);
        close(p1("20.4 KB", Variant::Gpu), 2.83, 0.005);
        for case in CASES {
            for variant in PARALLEL {
                assert!(error(case, AVERAGE, variant, Start::Platform1).abs() < 0.73);
            }
        }
        let p2 = |start| error(CASES[2], "5.61 KB", Variant::Parallel, start);
        close(p2(Start::Platform1), 1.0, 0.05);
        close(p2(Start::Own), -17.3, 0.05);
    }

    #[test]
    fn rules_for_aes() {
        let errors = CASES.map(|case| {
            let printed = |variant| case.gbps(Stage::Aes, AVERAGE, variant);
            let parallel = parallel_aes(case) / printed(Variant::Parallel) - 1.0;
            let hybrid = Split::of(case).by_equation_1() / printed(Variant::HybridRatio) - 1.0;
            (parallel, hybrid)
        });
        let expected = [(4.7, -1.3), (5.0, -1.4), (0.2, -0.9), (4.0, 1.1)];
        for ((parallel, hybrid), expected) in errors.into_iter().zip(expected) {
            close(100.0 * parallel, expected.0, 0.051);
            close(100.0 * hybrid, expected.1, 0.051);
        }
        let gains = CASES.map(|case| {
            let hybrid = case.gbps(Stage::Aes, AVERAGE, Variant::HybridRatio);
            Split::of(case).by_rates() / hybrid - 1.0
        });
        close(100.0 * gains[0], 21.9, 0.05);
        close(100.0 * gains[3], 28.7, 0.05);
    }
}
