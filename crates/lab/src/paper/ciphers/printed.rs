//! What the paper prints: Tables 2 and 3, and the numbers of its text.

use std::fmt;

use crate::paper::table::Table;

const TABLES: Table = Table(include_str!("../../../papers/energy_study_tables2_3.csv"));
const QUOTES: Table = Table(include_str!("../../../papers/energy_study_quotes.csv"));
const TEXT: &str = include_str!("../../../papers/energy_study_text.csv");

/// A cipher of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cipher {
    Blowfish,
    PBlock,
    Rc4,
    Parc4,
    Rc4a,
    Parc4i,
}

use Cipher::{Blowfish, PBlock, Parc4, Parc4i, Rc4, Rc4a};

impl Cipher {
    /// In the tables' order.
    pub const ALL: [Self; 6] = [Blowfish, PBlock, Rc4, Parc4, Rc4a, Parc4i];
    /// Those of Table 2.
    pub const BLOCK: [Self; 2] = [Blowfish, PBlock];
    /// Those of Table 3.
    pub const STREAM: [Self; 4] = [Rc4, Parc4, Rc4a, Parc4i];
    /// Each serial cipher and its parallel form.
    pub const PAIRS: [(Self, Self); 3] = [(Blowfish, PBlock), (Rc4, Parc4), (Rc4a, Parc4i)];

    /// As the paper names it.
    pub fn name(self) -> &'static str {
        match self {
            Blowfish => "Blowfish",
            PBlock => "PBlock",
            Rc4 => "RC4",
            Parc4 => "PARC4",
            Rc4a => "RC4A",
            Parc4i => "PARC4-I",
        }
    }

    /// As rows name it.
    pub fn case(self) -> &'static str {
        match self {
            Blowfish => "blowfish-ecb",
            PBlock => "pblock",
            Rc4 => "rc4",
            Parc4 => "parc4",
            Rc4a => "rc4a",
            Parc4i => "parc4-i",
        }
    }
}

impl fmt::Display for Cipher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A machine of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Platform {
    /// An Intel Core 2 Duo T5270 at 1.40 GHz: two cores.
    One,
    /// An AMD FX-8320 at 3.5 GHz: eight.
    Two,
}

impl Platform {
    /// Both.
    pub const ALL: [Self; 2] = [Self::One, Self::Two];

    /// As tables name it.
    pub fn name(self) -> &'static str {
        match self {
            Self::One => "platform 1",
            Self::Two => "platform 2",
        }
    }

    /// Cores, and threads of a parallel cipher.
    pub fn cores(self) -> f64 {
        match self {
            Self::One => 2.0,
            Self::Two => 8.0,
        }
    }

    /// Microjoules a byte.
    pub fn joules(self, cipher: Cipher) -> f64 {
        self.cell(cipher, UNITS[0])
    }

    /// MB a second.
    pub fn rate(self, cipher: Cipher) -> f64 {
        self.cell(cipher, UNITS[1])
    }

    /// Their product.
    pub fn watts(self, cipher: Cipher) -> f64 {
        self.joules(cipher) * self.rate(cipher)
    }

    /// MB that give round seconds and joules: inferred.
    pub fn megabytes(self, cipher: Cipher) -> f64 {
        match (self, Cipher::BLOCK.contains(&cipher)) {
            (Self::One, true) => 32.0,
            (Self::Two, true) => 128.0,
            (_, false) => 512.0,
        }
    }

    /// How many cells of Tables 2 and 3 a cipher has.
    pub fn cells(self, cipher: Cipher) -> usize {
        UNITS.iter().filter(|unit| self.number(cipher, unit).is_some()).count()
    }

    fn cell(self, cipher: Cipher, unit: &str) -> f64 {
        let found = self.number(cipher, unit);
        found.unwrap_or_else(|| panic!("{cipher} is not in the table"))
    }

    fn number(self, cipher: Cipher, unit: &str) -> Option<f64> {
        let number = if self == Self::One { 1 } else { 2 };
        TABLES.number(cipher.name(), &format!("p{number}_{unit}"))
    }
}

/// The units of the tables' columns.
const UNITS: [&str; 2] = ["uJ_per_B", "MBps"];

/// A number that the text quotes.
pub fn quoted(key: &str) -> f64 {
    QUOTES.number(key, "value").unwrap_or_else(|| panic!("{key} is not in the table"))
}

/// Another number of the text, and its unit.
pub fn said(id: &str) -> (&'static str, &'static str) {
    let mut lines = TEXT.lines().map(|line| line.splitn(4, ',').collect::<Vec<_>>());
    let cells = lines.find(|cells| cells[0] == id);
    let cells = cells.unwrap_or_else(|| panic!("{id} is not in the table"));
    (cells[2], cells[3])
}

/// PBlock at a lowered clock: MB a second.
pub fn lowered_rate() -> f64 {
    quoted("fig4_pblock_calibrated_MBps")
}

/// The same: 7.1125, as J/s in print, and most likely µJ/B.
pub fn lowered_joules() -> f64 {
    quoted("pblock_lowered_7_1125")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tables_are_read() {
        assert_eq!(Platform::One.rate(Parc4i), 51.71717);
        assert_eq!(Platform::Two.joules(PBlock), 0.28515625);
        assert_eq!((lowered_rate(), lowered_joules()), (1.18, 7.1125));
        assert_eq!(said("P4I-6b").0, "32");
    }
}
