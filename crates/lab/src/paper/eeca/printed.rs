//! Tables 1 and 2 as the paper prints them, and what follows from their throughputs and watts.

use crate::paper::table::{Line as Cells, Table};

const TABLE_1: Table = Table(include_str!("../../../papers/eeca_table1_openssl_aes256cbc.csv"));
const TABLE_2: Table = Table(include_str!("../../../papers/eeca_table2_https.csv"));

/// What encrypts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    Eeca,
    Software,
    InstructionSet,
    Accelerator,
}

impl Way {
    pub const ALL: [Self; 4] =
        [Self::Eeca, Self::Software, Self::InstructionSet, Self::Accelerator];
    /// Those that EECA is compared with.
    pub const SINGLE: [Self; 3] = [Self::Software, Self::InstructionSet, Self::Accelerator];

    pub fn name(self) -> &'static str {
        match self {
            Self::Eeca => "EECA",
            Self::Software => "software",
            Self::InstructionSet => "instruction set",
            Self::Accelerator => "accelerator",
        }
    }

    /// In the heads of the CSV.
    fn head(self) -> &'static str {
        match self {
            Self::Eeca => "eeca",
            Self::Software => "sw",
            Self::InstructionSet => "is",
            Self::Accelerator => "hw",
        }
    }
}

/// Which of the two tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// `openssl speed`: kilobytes (1000 bytes) a second.
    One,
    /// nginx: requests a second.
    Two,
}

impl Which {
    pub fn place(self) -> &'static str {
        match self {
            Self::One => "Table 1",
            Self::Two => "Table 2",
        }
    }

    pub fn unit(self) -> &'static str {
        match self {
            Self::One => "kB/s",
            Self::Two => "requests/s",
        }
    }

    /// Its lines, from the smallest size.
    pub fn lines(self) -> Vec<Line> {
        let table = if self == Self::One { TABLE_1 } else { TABLE_2 };
        table.lines().filter_map(|cells| Line::read(self, &cells)).collect()
    }
}

/// A line of a table.
#[derive(Clone, Debug)]
pub struct Line {
    /// Size of a message or a page, in kilobytes of 1024 bytes.
    pub kb: u64,
    /// Throughput and watts of each way, in the order of [`Way::ALL`].
    cells: [(f64, f64); 4],
    /// What EECA gains over each of [`Way::SINGLE`], percent.
    improvements: [f64; 3],
    table: Which,
}

impl Line {
    fn read(table: Which, cells: &Cells) -> Option<Self> {
        let rate = if table == Which::One { "kBps" } else { "rps" };
        let cell = |way: Way| {
            let head = way.head();
            cells.number(&format!("{head}_{rate}")).zip(cells.number(&format!("{head}_W")))
        };
        let improvement = |way: Way| cells.number(&format!("eeca_over_{}_pct_printed", way.head()));
        let [eeca, software, set, accelerator] = Way::ALL.map(cell);
        let [over_software, over_set, over_accelerator] = Way::SINGLE.map(improvement);
        Some(Self {
            kb: cells.first().parse().ok()?,
            cells: [eeca?, software?, set?, accelerator?],
            improvements: [over_software?, over_set?, over_accelerator?],
            table,
        })
    }

    /// Size in bytes.
    pub fn bytes(&self) -> f64 {
        (self.kb << 10) as f64
    }

    /// "16 kB", "1 MB".
    pub fn size(&self) -> String {
        size_name(self.kb)
    }

    /// Printed throughput: kB/s, or requests a second.
    pub fn rate(&self, way: Way) -> f64 {
        self.cells[way as usize].0
    }

    pub fn watts(&self, way: Way) -> f64 {
        self.cells[way as usize].1
    }

    /// The printed improvement of performance per watt, percent. Zero for EECA itself.
    pub fn improvement(&self, over: Way) -> f64 {
        (over as usize).checked_sub(1).map_or(0.0, |index| self.improvements[index])
    }

    /// Kilobytes that a throughput moves for a joule at these watts: of 1000 bytes in Table 1 and of
    /// 1024 in Table 2, as the paper counts them.
    pub fn per_joule(&self, rate: f64, watts: f64) -> f64 {
        let kilobytes = if self.table == Which::One { 1.0 } else { self.kb as f64 };
        rate * kilobytes / watts
    }

    /// Printed throughput by printed watts.
    pub fn ppw(&self, way: Way) -> f64 {
        self.per_joule(self.rate(way), self.watts(way))
    }

    /// The least and the largest performance per watt of cells that round to the printed ones.
    pub fn ppw_range(&self, way: Way) -> (f64, f64) {
        let (rate, watts) = (self.rate(way), self.watts(way));
        (
            self.per_joule(rate - HALF_RATE, watts + HALF_WATT),
            self.per_joule(rate + HALF_RATE, watts - HALF_WATT),
        )
    }

    /// The improvement over another way that follows from throughputs and watts, percent.
    pub fn follows(&self, over: Way) -> f64 {
        gain(self.ppw(Way::Eeca), self.ppw(over))
    }

    /// How far the improvement that follows may be from the printed one by rounding alone, points.
    pub fn rounding(&self, over: Way) -> f64 {
        let (eeca, other) = (self.ppw_range(Way::Eeca), self.ppw_range(over));
        let half = (gain(eeca.1, other.0) - gain(eeca.0, other.1)) / 2.0 + HALF_PERCENT;
        (100.0 * half).ceil() / 100.0
    }

    /// Whether cells that round to the printed ones give an improvement that rounds to the printed
    /// one.
    pub fn is_consistent(&self, over: Way) -> bool {
        let (eeca, other) = (self.ppw_range(Way::Eeca), self.ppw_range(over));
        let printed = self.improvement(over);
        gain(eeca.0, other.1) <= printed + HALF_PERCENT
            && printed - HALF_PERCENT <= gain(eeca.1, other.0)
    }
}

/// How much more one is than the other, percent.
pub fn gain(one: f64, other: f64) -> f64 {
    100.0 * (one / other - 1.0)
}

/// "16 kB", "1 MB".
pub fn size_name(kb: u64) -> String {
    if kb >= 1024 { format!("{} MB", kb >> 10) } else { format!("{kb} kB") }
}

/// Half of the last printed digit.
const HALF_RATE: f64 = 0.5;
const HALF_WATT: f64 = 0.0005;
const HALF_PERCENT: f64 = 0.005;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_tables_are_read_whole() {
        let [one, two] = [Which::One, Which::Two].map(Which::lines);
        assert_eq!((one.len(), two.len()), (9, 11));
        assert_eq!((one[0].rate(Way::Accelerator), one[0].watts(Way::Eeca)), (556_045.0, 139.622));
        assert_eq!(two[10].improvement(Way::InstructionSet), 39.18);
        assert_eq!((one[0].improvement(Way::Eeca), two[10].size()), (0.0, "2 MB".to_owned()));
    }

    #[test]
    fn improvements_follow_but_for_table_1_over_the_accelerator() {
        let wrong = |which: Which, over: Way| {
            let lines = which.lines();
            lines.iter().filter(|line| !line.is_consistent(over)).count()
        };
        assert_eq!(Way::SINGLE.map(|over| wrong(Which::One, over)), [0, 0, 9]);
        assert_eq!(Way::SINGLE.map(|over| wrong(Which::Two, over)), [0, 0, 0]);
        let first = &Which::One.lines()[0];
        assert!((first.follows(Way::Accelerator) - 900.66).abs() < 0.01);
    }
}
