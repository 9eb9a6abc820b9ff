//! The numbers that the SEFPS paper prints, by platform, direction, stage, file and algorithm.

use wattlock_engine::Direction;

use crate::paper::table::Table;
use crate::sefps::format::Variant;

pub const PLATFORMS: Table = Table(include_str!("../../../papers/sefps_table1_platforms.csv"));
pub const FILES: Table = Table(include_str!("../../../papers/sefps_table2_files.csv"));
const SPEEDS: Table = Table(include_str!("../../../papers/sefps_speeds_Gbps.csv"));
const SPEEDUPS: Table = Table(include_str!("../../../papers/sefps_speedups.csv"));
const EFFICIENCIES: Table =
    Table(include_str!("../../../papers/sefps_parallel_efficiency_pct.csv"));
/// What its text prints outside tables.
pub const QUOTES: Table = Table(include_str!("../../../papers/sefps_quotes.csv"));

/// A platform and a direction: what one half of a results section of the paper is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Case {
    /// 1 or 2.
    pub platform: u8,
    pub direction: Direction,
}

/// The stages that the paper times.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    Total,
    Aes,
    Hash,
}

/// In the paper's order.
pub const CASES: [Case; 4] = [
    Case { platform: 1, direction: Direction::Encrypt },
    Case { platform: 1, direction: Direction::Decrypt },
    Case { platform: 2, direction: Direction::Encrypt },
    Case { platform: 2, direction: Direction::Decrypt },
];

/// The paper's algorithms, in its order.
pub const VARIANTS: [Variant; 4] =
    [Variant::Serial, Variant::Parallel, Variant::Gpu, Variant::HybridRatio];

/// Those that are compared with the serial one.
pub const PARALLEL: [Variant; 3] = [Variant::Parallel, Variant::Gpu, Variant::HybridRatio];

/// Files whose own speeds the text gives, as Table 2 spells them.
pub const SMALL: [&str; 4] = ["5.61 KB", "20.4 KB", "255 KB", "2.21 MB"];

/// The mean over the ten larger files.
pub const AVERAGE: &str = "mean of 12.5 to 598 MB";

/// All that speeds are printed for, smallest first.
pub const SIZES: [&str; 5] = [SMALL[0], SMALL[1], SMALL[2], SMALL[3], AVERAGE];

impl Case {
    /// The algorithm's name in print: "CPUP".
    pub fn name(self, variant: Variant) -> String {
        variant.name(self.direction).to_uppercase()
    }

    /// Its name in claims: "platform 1, unprotect".
    pub fn text(self) -> String {
        format!("platform {}, {}", self.platform, self.verb())
    }

    /// "protect" or "unprotect".
    pub fn verb(self) -> &'static str {
        if self.direction == Direction::Encrypt { "protect" } else { "unprotect" }
    }

    fn operation(self, stage: Stage) -> &'static str {
        match (stage, self.direction) {
            (Stage::Total, Direction::Encrypt) => "protect_total",
            (Stage::Aes, Direction::Encrypt) => "encrypt",
            (Stage::Hash, Direction::Encrypt) => "sha3_256_hash",
            (Stage::Total, Direction::Decrypt) => "unprotect_total",
            (Stage::Aes, Direction::Decrypt) => "decrypt",
            (Stage::Hash, Direction::Decrypt) => "sha3_256_hash_unprotect",
        }
    }

    /// Gbit/s of AES or of all stages.
    pub fn speed(self, stage: Stage, size: &str, variant: Variant) -> Option<f64> {
        let key = if size == AVERAGE { "avg12.5-598MB".to_owned() } else { size.replace(' ', "") };
        let (operation, name) = (self.operation(stage), self.name(variant));
        let line = SPEEDS.lines().find(|line| {
            line.first() == self.platform.to_string()
                && line.text("operation") == operation
                && line.text("file_size") == key
                && line.text("algorithm") == name
        });
        line?.number("Gbps")
    }

    /// As [`Case::speed`]; NaN, which no rule holds for, where none is printed.
    pub fn gbps(self, stage: Stage, size: &str, variant: Variant) -> f64 {
        self.speed(stage, size, variant).unwrap_or(f64::NAN)
    }

    /// Gbit/s of the hash: one number for all files and algorithms.
    pub fn hash(self) -> f64 {
        let operation = self.operation(Stage::Hash);
        let mut lines = SPEEDS.lines();
        let line = lines.find(|line| {
            line.first() == self.platform.to_string() && line.text("operation") == operation
        });
        line.and_then(|line| line.number("Gbps")).unwrap_or(f64::NAN)
    }

    /// The printed speedup over the serial algorithm, in sections 6 and 7.
    pub fn speedup(self, stage: Stage, variant: Variant) -> f64 {
        self.speedup_in("speedup", stage, variant)
    }

    /// The same in section 8.
    pub fn concluded_speedup(self, stage: Stage, variant: Variant) -> f64 {
        self.speedup_in("section_8", stage, variant)
    }

    fn speedup_in(self, column: &str, stage: Stage, variant: Variant) -> f64 {
        let (operation, name) = (self.operation(stage), self.name(variant));
        let line = SPEEDUPS.lines().find(|line| {
            line.first() == self.platform.to_string()
                && line.text("operation") == operation
                && line.text("algorithm") == name
        });
        line.and_then(|line| line.number(column)).unwrap_or(f64::NAN)
    }

    /// The printed parallel efficiency, in percent.
    pub fn efficiency(self, variant: Variant) -> f64 {
        let name = self.name(variant);
        let line = EFFICIENCIES.lines().find(|line| {
            line.first() == self.platform.to_string() && line.text("algorithm") == name
        });
        line.and_then(|line| line.number("pct")).unwrap_or(f64::NAN)
    }

    /// The ratio of the average speeds of an algorithm and the serial one.
    pub fn ratio_of_averages(self, stage: Stage, variant: Variant) -> f64 {
        self.gbps(stage, AVERAGE, variant) / self.gbps(stage, AVERAGE, Variant::Serial)
    }

    /// The sizes that have total speeds in print.
    pub fn sizes(self) -> impl Iterator<Item = &'static str> {
        let printed = move |size: &&str| self.speed(Stage::Total, size, Variant::Serial).is_some();
        SIZES.into_iter().filter(printed)
    }

    /// All four total or AES speeds of a size.
    pub fn speeds(self, stage: Stage, size: &str) -> [f64; 4] {
        VARIANTS.map(|variant| self.gbps(stage, size, variant))
    }
}

/// A platform of Table 1.
#[derive(Clone, Copy, Debug)]
pub struct Platform {
    pub multiprocessors: f64,
    pub gpu_mhz: f64,
    pub gpu_cores: f64,
    /// Of all CPUs.
    pub cores: f64,
    pub cpu_ghz: f64,
    /// Gbit/s to or from the GPU, by section 7.1.5.
    pub copy_gbps: f64,
}

impl Platform {
    /// Platform 1 or 2.
    pub fn printed(number: u8) -> Self {
        let cell = |column| PLATFORMS.number(&number.to_string(), column).unwrap_or(f64::NAN);
        Self {
            multiprocessors: cell("gpu_sm"),
            gpu_mhz: cell("gpu_mhz"),
            gpu_cores: cell("gpu_cores"),
            cores: cell("cpu_cores_total"),
            cpu_ghz: cell("cpu_ghz"),
            copy_gbps: cell("pcie_transfer_Gbps_quoted"),
        }
    }
}

/// A file of Table 2.
#[derive(Clone, Debug)]
pub struct File {
    /// Its size as it is printed: "5.61 KB".
    pub name: String,
    /// Its bytes here, where KB and MB are powers of 1024: the files are those of a Windows machine.
    pub bytes: u64,
}

/// Table 2.
pub fn files() -> Vec<File> {
    FILES.lines().filter_map(|line| file(line.text("size"))).collect()
}

fn file(name: &str) -> Option<File> {
    let bytes = (number(name)? * unit(name, 1024.0)).round() as u64;
    Some(File { name: name.to_owned(), bytes })
}

/// The bytes of a size as the model takes it, with KB and MB as powers of 1000. Only its constants
/// depend on that, and no verdict.
pub fn decimal_bytes(size: &str) -> f64 {
    number(size).map_or(f64::NAN, |number| number * unit(size, 1000.0))
}

/// "5.61 KB" without its unit.
pub fn number(size: &str) -> Option<f64> {
    size.split_once(' ')?.0.parse().ok()
}

fn unit(size: &str, thousand: f64) -> f64 {
    if size.ends_with("KB") { thousand } else { thousand * thousand }
}

/// Of a number in the text, by its identity in the table.
pub fn quoted(id: &str) -> f64 {
    QUOTES.number(id, "printed").unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_speed_speedup_and_efficiency_is_found() {
        let stages = [Stage::Total, Stage::Aes];
        let of_case = |case: Case| {
            let cells = SIZES.into_iter().flat_map(|size| VARIANTS.map(|variant| (size, variant)));
            let cells = cells.flat_map(|cell| stages.map(|stage| (stage, cell)));
            cells
                .filter(|(stage, (size, variant))| case.speed(*stage, size, *variant).is_some())
                .count()
        };
        assert_eq!(CASES.map(of_case), [40, 40, 28, 8]);
        assert!(CASES.iter().all(|case| case.hash().is_finite()));
        for case in CASES {
            for variant in PARALLEL {
                for stage in stages {
                    assert!(case.speedup(stage, variant) > 1.0);
                    assert!(case.concluded_speedup(stage, variant) > 1.0);
                }
                assert!(case.efficiency(variant) > 10.0);
            }
        }
        assert_eq!(quoted("S6.1.3-ratio"), 3.19);
    }

    #[test]
    fn files_are_those_of_table_2() {
        let files = files();
        assert_eq!(files.len(), 14);
        assert_eq!((files[0].name.as_str(), files[0].bytes), ("5.61 KB", 5745));
        assert_eq!(files[13].bytes, 598 << 20);
    }
}
