//! Forms of the study's listing on one thread, to find out what an extended block saves: the call, the
//! instructions, or the wait of one block for another.

use std::hint::black_box;

use wattlock_engine::crypto::roofline;
use wattlock_report::results::{Results, Row};

use super::count::Counter;
use super::rows::{KEY, LISTING};
use crate::bench::lab::Lab;
use crate::bench::rates::{Buffer, Case, Contender, Effort, measure};
use crate::study::ListingAes;

/// A form of the listing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A call for each block of that many bytes: Figure 5 with 16, Figure 6 with more.
    Called(usize),
    /// 16 bytes without a call.
    Inlined,
    /// A call for each block of that many bytes, where each 16 bytes wait for those before.
    Chained(usize),
}

impl Form {
    /// All that are measured.
    pub const ALL: [Self; 12] = [
        Self::Called(16),
        Self::Inlined,
        Self::Chained(16),
        Self::Called(32),
        Self::Called(64),
        Self::Called(128),
        Self::Called(256),
        Self::Called(512),
        Self::Called(1024),
        Self::Called(2048),
        Self::Called(4096),
        Self::Chained(1024),
    ];
    /// Those whose instructions are counted in a quick look.
    const COUNTED_QUICKLY: [(Self, usize); 2] = [(Self::Called(16), 16), (Self::Inlined, 16)];
    /// Those whose instructions are counted, and on how many bytes.
    const COUNTED: [(Self, usize); 5] = [
        (Self::Called(16), 512),
        (Self::Inlined, 512),
        (Self::Chained(16), 512),
        (Self::Called(1024), 1024),
        (Self::Chained(1024), 1024),
    ];
    /// The name of one that is quick to count.
    pub const PROBE: &str = "called 16";

    /// As the child that is stepped through knows it.
    pub fn name(self) -> String {
        match self {
            Self::Called(bytes) => format!("called {bytes}"),
            Self::Inlined => "inlined 16".to_owned(),
            Self::Chained(bytes) => format!("chained {bytes}"),
        }
    }

    /// The form of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|form| form.name() == name)
    }

    /// As rows name it.
    pub fn case(self, megabytes: usize) -> String {
        match self {
            Self::Called(bytes) => format!("form called, {bytes} bytes, {megabytes} MB"),
            Self::Inlined => format!("form inlined, 16 bytes, {megabytes} MB"),
            Self::Chained(bytes) => format!("form chained, {bytes} bytes, {megabytes} MB"),
        }
    }

    /// What encrypts whole blocks in place.
    pub fn work(self) -> Box<dyn FnMut(&mut [u8])> {
        let listing = ListingAes::new(&KEY).expect("a key of 16 bytes");
        let (Self::Called(len) | Self::Chained(len)) = self else {
            return Box::new(move |data| listing.encrypt_inlined(7, data));
        };
        let mut arrays = listing.extended_block(len).expect("whole blocks");
        let is_chained = matches!(self, Self::Chained(_));
        Box::new(move |data| match (len, is_chained) {
            (16, false) => {
                for (counter, block) in (7..).zip(data.as_chunks_mut().0) {
                    listing.encrypt_block(counter, block);
                }
            }
            (16, true) => listing.encrypt_chained(7, data, black_box(0)),
            _ => {
                for (index, bytes) in data.chunks_exact_mut(len).enumerate() {
                    let counter = 7 + (index * len / 16) as u128;
                    if is_chained {
                        let none = black_box(0);
                        listing.encrypt_extended_chained(&mut arrays, counter, bytes, none);
                    } else {
                        listing.encrypt_extended(&mut arrays, counter, bytes);
                    }
                }
            }
        })
    }

    /// Its row.
    pub fn row(self, results: &Results) -> Option<&Row> {
        let case = self.case(0);
        let (name, _) = case.rsplit_once(", ")?;
        results.rows.iter().find(|row| row.case.rsplit_once(", ").is_some_and(|row| row.0 == name))
    }
}

/// Measures all forms in turns on a message of `len` bytes, and counts their instructions.
pub fn measure_forms(lab: &mut Lab<'_>, effort: Effort, megabytes: usize, len: usize, quick: bool) {
    let first = lab.results.rows.len();
    for form in Form::ALL {
        tell!("{}", form.case(megabytes));
    }
    let mut buffer = Buffer::new(len);
    let contenders =
        Form::ALL.map(|form| Contender::new("wattlock", form.work()).kernel(LISTING).threads(1));
    let case = Case { name: String::new(), call_bytes: len };
    lab.measure(effort, &case, buffer.bytes(), contenders.into());
    let clock = clock_ghz(effort);
    for (form, row) in Form::ALL.into_iter().zip(&mut lab.results.rows[first..]) {
        row.case = form.case(megabytes);
        row.cycles_per_byte =
            clock.map(|clock| clock * row.cpu_ns.median as f64 / row.bytes as f64);
    }
    match Counter::find() {
        Ok(counter) if quick => count(lab, counter, first, &Form::COUNTED_QUICKLY),
        Ok(counter) => count(lab, counter, first, &Form::COUNTED),
        Err(why) => lab.results.skipped.push(why),
    }
}

fn count(lab: &mut Lab<'_>, counter: Counter, first: usize, forms: &[(Form, usize)]) {
    lab.results.settings.insert("instructions_by".to_owned(), counter.name().into());
    for &(form, bytes) in forms {
        tell!("instructions of {}", form.name());
        let at = Form::ALL.into_iter().position(|other| other == form).unwrap_or_default();
        match counter.per_byte(form, bytes) {
            Ok(count) => lab.results.rows[first + at].instructions_per_byte = Some(count),
            Err(why) => {
                let why = format!("instructions of {}: {why:#}", form.name());
                lab.results.skipped.push(why);
            }
        }
    }
}

/// The clock, by a chain of multiplications.
fn clock_ghz(effort: Effort) -> Option<f64> {
    const TURNS: u64 = 100_000;
    let cycles = roofline::cycles(TURNS)?;
    let mut contender = Contender::new("clock", |_| {});
    contender.run = Box::new(move |_| {
        roofline::cycles(TURNS);
        cycles
    });
    let case = Case { name: "clock".to_owned(), call_bytes: 0 };
    let effort = Effort { sample_ns: 2_000_000, ..effort };
    let rows = measure(effort, &case, &mut [], vec![contender]);
    rows.first().map(|row| row.bytes as f64 / row.cpu_ns.median.max(1) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_forms_encrypt_alike() {
        let encrypted = |form: Form| {
            let mut data = vec![0x5a; 8192];
            (form.work())(&mut data);
            data
        };
        let expected = encrypted(Form::Called(16));
        for form in Form::ALL {
            assert!(encrypted(form) == expected, "{form:?}");
            assert_eq!(Form::named(&form.name()), Some(form));
        }
    }
}
