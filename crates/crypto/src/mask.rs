//! Comparisons that answer with a mask, for code that may not branch on what it compares.

/// All ones if a < b, or else 0; both are less than 2^31.
#[inline]
pub fn less(a: u32, b: u32) -> u32 {
    (a.wrapping_sub(b).cast_signed() >> 31).cast_unsigned()
}

/// All ones if a == b, or else 0; both are less than 2^31.
#[inline]
pub fn equal(a: u32, b: u32) -> u32 {
    ((a ^ b).wrapping_sub(1).cast_signed() >> 31).cast_unsigned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_answer_is_all_ones_or_nothing() {
        let most = (1 << 31) - 1;
        for (a, b) in [(0, 0), (0, 1), (1, 0), (most, most), (0, most), (most, 0), (256, 255)] {
            assert_eq!(less(a, b), if a < b { u32::MAX } else { 0 }, "{a}, {b}");
            assert_eq!(equal(a, b), if a == b { u32::MAX } else { 0 }, "{a}, {b}");
        }
    }
}
