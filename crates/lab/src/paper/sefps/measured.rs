//! What was measured for the SEFPS paper, by algorithm, stage and file.

use wattlock_engine::Direction;
use wattlock_report::results::{Results, Row};

use super::contenders::{IS_GPU, ONE_BLOCK};
use super::printed::{AVERAGE, Stage, files};
use super::runs::{SHARES, case};
use crate::sefps::format::Variant;
use crate::study::aes::Kernel;

/// A variant with a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Column {
    pub variant: Variant,
    pub kernel: &'static str,
}

impl Column {
    /// "CPP, aes-ttable-vartime".
    pub fn name(self, direction: Direction) -> String {
        let variant = self.variant.name(direction);
        let name = if self.variant == Variant::Overlapped {
            variant.into()
        } else {
            variant.to_uppercase()
        };
        format!("{name}, {}", self.kernel)
    }
}

/// The paper's four algorithms with its kind of kernel; its hybrid one runs with ours only.
pub fn papers() -> [Column; 4] {
    let best = Kernel::best().name();
    [
        Column { variant: Variant::Serial, kernel: Kernel::TTABLE },
        Column { variant: Variant::Parallel, kernel: Kernel::TTABLE },
        Column { variant: Variant::Gpu, kernel: ONE_BLOCK },
        Column { variant: Variant::HybridRatio, kernel: best },
    ]
}

/// All variants with the best kernel.
pub fn best() -> [Column; 5] {
    let kernel = Kernel::best().name();
    Variant::ALL.map(|variant| Column { variant, kernel })
}

/// The results of a run.
#[derive(Clone, Copy)]
pub struct Measured<'a>(pub &'a Results);

impl<'a> Measured<'a> {
    fn row(self, direction: Direction, column: Column, size: &str) -> Option<&'a Row> {
        let case = case(direction, column.variant, size);
        let mut rows = self.0.rows.iter();
        rows.find(|row| row.case == case && row.kernel.as_deref() == Some(column.kernel))
    }

    /// A row by its case alone.
    pub fn case(self, case: &str) -> Option<&'a Row> {
        self.0.rows.iter().find(|row| row.case == case)
    }

    /// Whether the accelerator is a GPU, and not the CPU by OpenCL.
    pub fn has_gpu(self) -> bool {
        self.0.settings.get(IS_GPU).and_then(serde_json::Value::as_bool).unwrap_or(false)
    }

    /// Names of the accelerators.
    pub fn device(self) -> Option<String> {
        self.0.rows.iter().find_map(|row| row.device.clone())
    }

    pub fn number(self, setting: &str) -> Option<f64> {
        self.0.settings.get(setting)?.as_f64()
    }

    /// Gbit/s in one stage, by the median.
    pub fn speed(
        self,
        direction: Direction,
        stage: Stage,
        column: Column,
        size: &str,
    ) -> Option<f64> {
        let row = self.row(direction, column, size)?;
        let ns = match stage {
            Stage::Total => row.wall_ns.median,
            Stage::Aes => row.cipher_ns.as_ref()?.median,
            Stage::Hash => row.hash_ns.as_ref()?.median,
        };
        (ns > 0).then(|| 8.0 * row.bytes as f64 / ns as f64)
    }

    /// Speeds of the files from 12.5 MB on that were measured.
    pub fn large(self, direction: Direction, stage: Stage, column: Column) -> Vec<f64> {
        let large = files().into_iter().filter(|file| file.bytes > 4 << 20);
        large.filter_map(|file| self.speed(direction, stage, column, &file.name)).collect()
    }

    /// Their mean, as the paper averages.
    pub fn average(self, direction: Direction, stage: Stage, column: Column) -> Option<f64> {
        let speeds = self.large(direction, stage, column);
        (!speeds.is_empty()).then(|| speeds.iter().sum::<f64>() / speeds.len() as f64)
    }

    /// What that mean is called: a quick look has fewer files.
    pub fn average_name(self) -> String {
        let large = files().into_iter().filter(|file| file.bytes > 4 << 20);
        let is_there =
            |name: &str| self.0.rows.iter().any(|row| row.case.ends_with(&format!(", {name}")));
        match large.filter(|file| is_there(&file.name)).count() {
            10 => AVERAGE.to_owned(),
            count => format!("mean from 12.5 MB on ({count} of 10 files)"),
        }
    }

    /// Files whose shares of the hybrid variant were noted, and how many of them gave both devices
    /// bytes.
    pub fn shared(self) -> (usize, usize) {
        let shares = self.0.settings.get(SHARES).and_then(serde_json::Value::as_object);
        let both = |shares: &serde_json::Value| {
            let share = |index: usize| shares.get(index).and_then(serde_json::Value::as_u64);
            share(0).is_some_and(|cpu| cpu > 0) && share(1).is_some_and(|gpu| gpu > 0)
        };
        shares.map_or((0, 0), |shares| {
            (shares.len(), shares.values().filter(|one| both(one)).count())
        })
    }
}
