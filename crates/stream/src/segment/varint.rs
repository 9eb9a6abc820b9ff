//! Numbers of variable length: unsigned LEB128, seven bits a byte, the lowest first, in as few bytes as possible.

/// Bytes of the longest.
pub(super) const MAX_LEN: usize = 10;

/// Appends a number.
pub(super) fn push(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Bytes of a number.
pub(super) fn len(number: u64) -> usize {
    (64 - (number | 1).leading_zeros() as usize).div_ceil(7)
}

/// Takes a number from the front. `None` if there is none in its shortest form.
pub(super) fn take(bytes: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for (index, byte) in bytes.iter().take(MAX_LEN).enumerate() {
        let bits = u64::from(byte & 0x7f);
        let shift = 7 * index as u32;
        if bits << shift >> shift != bits {
            return None;
        }
        number |= bits << shift;
        if byte & 0x80 == 0 {
            let is_shortest = index == 0 || *byte != 0;
            *bytes = &bytes[index + 1..];
            return is_shortest.then_some(number);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_number_has_one_form() {
        for (bytes, number) in [
            (&[0][..], Some(0)),
            (&[0x7f], Some(127)),
            (&[0x80, 1], Some(128)),
            (&[0x80, 0], None),
            (&[0x80], None),
            (&[], None),
            (&[0xff; 10], None),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1], Some(u64::MAX)),
            (&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2], None),
        ] {
            assert_eq!(take(&mut &bytes[..]), number, "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn what_was_pushed_is_taken(number in any::<u64>(), shift in 0u32..64) {
            let number = number >> shift;
            let mut bytes = Vec::new();
            push(&mut bytes, number);
            prop_assert_eq!(bytes.len(), len(number));
            let mut rest = &bytes[..];
            prop_assert_eq!(take(&mut rest), Some(number));
            prop_assert!(rest.is_empty());
        }
    }
}
