//! Measures: times on fixed secrets against times on random ones.

use super::welch::Comparison;
use super::{Case, Finding};

/// Times the case on both classes.
pub fn check(case: &Case) -> Finding {
    let plain = case.secrets(0);
    let mut secrets = plain.clone();
    let prepare = |secrets: &mut Vec<u8>, class: usize, number: u64| {
        let random = case.secrets(number | 1);
        // The same work for both classes, into the same memory.
        let mask = 0_u8.wrapping_sub(class as u8);
        for ((byte, random), plain) in secrets.iter_mut().zip(&random).zip(&plain) {
            *byte = plain ^ ((plain ^ random) & mask);
        }
    };
    let both = Comparison::measure(&mut secrets, prepare, |secrets| case.run(secrets));
    Finding { leaks: both.differs(), figure: both.figure(), places: vec![] }
}
