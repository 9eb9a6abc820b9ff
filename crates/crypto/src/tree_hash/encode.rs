//! Lengths as strings of bytes, without an allocation.

use std::ops::Deref;

/// An encoded length: up to eight bytes and their number.
pub(super) struct Encoded {
    bytes: [u8; 9],
    len: usize,
}

impl Deref for Encoded {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// SP 800-185, section 2.3.1: the number of bytes, and the bytes, at least one.
pub(super) fn left_encode(value: u64) -> Encoded {
    let used = used_bytes(value).max(1);
    let mut bytes = [0; 9];
    bytes[0] = used as u8;
    bytes[1..=used].copy_from_slice(&value.to_be_bytes()[8 - used..]);
    Encoded { bytes, len: used + 1 }
}

/// SP 800-185, section 2.3.1: the bytes, at least one, and their number.
pub(super) fn right_encode(value: u64) -> Encoded {
    with_count(value, used_bytes(value).max(1))
}

/// RFC 9861, section 3.3: like `right_encode`, but 0 has no bytes.
pub(super) fn length_encode(value: u64) -> Encoded {
    with_count(value, used_bytes(value))
}

fn with_count(value: u64, used: usize) -> Encoded {
    let mut bytes = [0; 9];
    bytes[..used].copy_from_slice(&value.to_be_bytes()[8 - used..]);
    bytes[used] = used as u8;
    Encoded { bytes, len: used + 1 }
}

/// Bytes of `value` without leading zeros.
fn used_bytes(value: u64) -> usize {
    8 - value.leading_zeros() as usize / 8
}
