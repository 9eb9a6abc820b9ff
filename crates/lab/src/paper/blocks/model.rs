//! The study's times as a price for each byte and one for each call: `a + c / block`.

use wattlock_report::paper::{Constant, Model, Residual};

use super::printed::{CPU, GPU, GPU_BLOCKS, SIZES_MB, cpu_seconds, gpu_seconds, ns_per_byte};

/// Nanoseconds for each byte and for each call.
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    pub byte_ns: f64,
    pub call_ns: f64,
}

impl Affine {
    /// With the least sum of squares of relative errors; `points` are bytes of a call and ns a byte.
    pub fn fit(points: &[(usize, f64)]) -> Self {
        let [mut s11, mut s12, mut s22, mut r1, mut r2] = [0.0; 5];
        for (block, ns) in points {
            let (x1, x2) = (1.0 / ns, 1.0 / (*block as f64 * ns));
            s11 += x1 * x1;
            s12 += x1 * x2;
            s22 += x2 * x2;
            r1 += x1;
            r2 += x2;
        }
        let det = s11 * s22 - s12 * s12;
        Self { byte_ns: (r1 * s22 - r2 * s12) / det, call_ns: (s11 * r2 - s12 * r1) / det }
    }

    /// Nanoseconds a byte with calls of so many bytes.
    pub fn ns_per_byte(self, block: usize) -> f64 {
        self.byte_ns + self.call_ns / block as f64
    }

    /// How many times as fast as with 16 bytes a call.
    pub fn gain(self, block: usize) -> f64 {
        self.ns_per_byte(16) / self.ns_per_byte(block)
    }

    /// Relative errors against what it was fitted to, or what it predicts.
    pub fn errors(self, points: &[(usize, f64)]) -> impl Iterator<Item = f64> {
        points.iter().map(move |(block, ns)| self.ns_per_byte(*block) / ns - 1.0)
    }
}

/// Of the CPU, from its six cells with one thread.
pub fn cpu() -> Affine {
    Affine::fit(&cpu_points())
}

fn cpu_points() -> Vec<(usize, f64)> {
    let point =
        |megabytes, block| (block, ns_per_byte(cpu_seconds(megabytes, block, 1), megabytes));
    SIZES_MB
        .into_iter()
        .flat_map(|megabytes| [16, 1024].map(|block| point(megabytes, block)))
        .collect()
}

/// Of the GPU, from the row of Table II for so many MB.
pub fn gpu(megabytes: usize) -> Affine {
    Affine::fit(&gpu_points(megabytes))
}

/// A row of Table II.
pub fn gpu_points(megabytes: usize) -> Vec<(usize, f64)> {
    let blocks = [16].into_iter().chain(GPU_BLOCKS);
    blocks.map(|block| (block, ns_per_byte(gpu_seconds(megabytes, block), megabytes))).collect()
}

/// Cores of the study's CPU: more threads gain nothing.
pub const CORES: usize = 4;

/// The row of Table II that the GPU's constants are of.
pub const FITTED_MB: usize = 4;

/// Both, with what their fits leave.
pub fn models() -> Vec<Model> {
    let model = |name: &str, about: &str, fitted: Affine, from: &str, points: &[(usize, f64)]| {
        let constant = |name: &str, value, unit: &str| Constant {
            name: name.to_owned(),
            value,
            unit: unit.to_owned(),
            from: from.to_owned(),
        };
        Model {
            name: name.to_owned(),
            about: about.to_owned(),
            constants: vec![
                constant("for each byte", fitted.byte_ns, "ns"),
                constant("for each call", fitted.call_ns, "ns"),
            ],
            residuals: vec![Residual::of(from, fitted.errors(points))],
        }
    };
    vec![
        model(
            CPU,
            "Seconds are bytes times a price and calls times a price, over the threads or the four cores, \
             whichever are fewer. Two sizes of blocks are printed, so that the two constants only average the \
             printed cells; the one prediction is that four cores are four times as fast. It is the same for 4 and for 8 \
             threads, of which three cells with 8 are above four times, by 2, 2 and 12 %. The bound of 7 % was set after \
             the errors were seen, of 6.4 % at most.",
            cpu(),
            "Table I, the cells with one thread",
            &cpu_points(),
        ),
        model(
            GPU,
            "The same without threads. Five sizes of blocks are printed, so that the form itself is tested: on \
             the ten cells of 16 and 32 MB. The bound of 20 % was set after the errors were seen, of 16.8 % at most.",
            gpu(FITTED_MB),
            "Table II, the row of 4 MB",
            &gpu_points(FITTED_MB),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(errors: impl Iterator<Item = f64>) -> (f64, f64) {
        let percent = errors.map(|error| (1000.0 * error).round() / 10.0);
        percent
            .fold((f64::MAX, f64::MIN), |(least, most), error| (least.min(error), most.max(error)))
    }

    #[test]
    fn the_fits_are_those_of_the_printed_cells() {
        let cpu = cpu();
        assert!((cpu.byte_ns - 49.4).abs() < 0.05 && (cpu.call_ns - 218.0).abs() < 0.5, "{cpu:?}");
        assert_eq!(range(cpu.errors(&cpu_points())), (-3.1, 1.7));
        assert!((cpu.gain(1024) - 1.27).abs() < 0.005);
        let four = gpu(4);
        assert!((four.byte_ns - 1.56).abs() < 0.005 && (four.call_ns - 166.0).abs() < 0.5);
        let others = [gpu_points(16), gpu_points(32)].concat();
        assert_eq!(range(four.errors(&others)), (-3.2, 16.8));
        let others = [gpu_points(4), gpu_points(16)].concat();
        assert_eq!(range(gpu(32).errors(&others)), (-17.4, 5.2));
    }
}
