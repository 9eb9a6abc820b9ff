//! Forms of the study's listing on one thread, which differ in what a larger block may save.

use std::hint::black_box;

use wattlock_report::results::{Results, Row};

use super::rows::KEY;
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
    /// The same work as the chained form of that many bytes, without the wait.
    Linked(usize),
}

impl Form {
    /// All that are measured.
    pub const ALL: [Self; 13] = [
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
        Self::Linked(1024),
    ];
    /// The name of one that is quick to count.
    pub const PROBE: &str = "called 16";

    /// As the child that is stepped through knows it.
    pub fn name(self) -> String {
        match self {
            Self::Called(bytes) => format!("called {bytes}"),
            Self::Inlined => "inlined 16".to_owned(),
            Self::Chained(bytes) => format!("chained {bytes}"),
            Self::Linked(bytes) => format!("linked {bytes}"),
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
            Self::Linked(bytes) => format!("form linked, {bytes} bytes, {megabytes} MB"),
        }
    }

    /// What encrypts whole blocks in place.
    pub fn work(self) -> Box<dyn FnMut(&mut [u8])> {
        let listing = ListingAes::new(&KEY).expect("a key of 16 bytes");
        let (Self::Called(len) | Self::Chained(len) | Self::Linked(len)) = self else {
            return Box::new(move |data| listing.encrypt_inlined(7, data));
        };
        let mut arrays = listing.extended_block(len).expect("whole blocks");
        Box::new(move |data| match self {
            Self::Called(16) => {
                for (counter, block) in (7..).zip(data.as_chunks_mut().0) {
                    listing.encrypt_block(counter, block);
                }
            }
            Self::Chained(16) => listing.encrypt_chained(7, data, black_box(0)),
            _ => {
                for (index, bytes) in data.chunks_exact_mut(len).enumerate() {
                    let counter = 7 + (index * len / 16) as u128;
                    let (arrays, none) = (&mut arrays, black_box(0));
                    match self {
                        Self::Chained(_) => {
                            listing.encrypt_extended_chained(arrays, counter, bytes, none);
                        }
                        Self::Linked(_) => {
                            listing.encrypt_extended_linked(arrays, counter, bytes, none);
                        }
                        _ => listing.encrypt_extended(arrays, counter, bytes),
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
