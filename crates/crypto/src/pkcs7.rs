//! Padding to whole blocks, RFC 5652 section 6.3 ("PKCS#7").

use subtle::{Choice, ConstantTimeEq, ConstantTimeLess};

use crate::error::Error;

/// The bytes to append to a message of `len` bytes; at least one, at most a block.
///
/// # Errors
/// [`Error::BlockLength`] if `block_len` is not 1 to 255.
pub fn padding(len: usize, block_len: usize) -> Result<Vec<u8>, Error> {
    if !(1..=255).contains(&block_len) {
        return Err(Error::BlockLength(block_len));
    }
    let count = block_len - len % block_len;
    Ok(vec![count as u8; count])
}

/// Returns how many bytes of `last_block` are message, in a time that does not depend on them.
///
/// # Errors
/// [`Error::BlockLength`] if `last_block` has more than 255 bytes. [`Error::Padding`] if it does not end with padding. An attacker who learns which ciphertexts give it can recover the plaintext
/// (Vaudenay, Eurocrypt 2002): do not use unauthenticated CBC against an active attacker.
pub fn unpadded_len(last_block: &[u8]) -> Result<usize, Error> {
    let Some(&count) = last_block.last() else { return Err(Error::Padding) };
    let len = last_block.len();
    let block_len = u8::try_from(len).map_err(|_| Error::BlockLength(len))?;
    let mut right = !count.ct_eq(&0) & !block_len.ct_lt(&count);
    for (from_end, byte) in (0..).zip(last_block.iter().rev()) {
        let is_padding: Choice = u8::ct_lt(&from_end, &count);
        right &= !is_padding | byte.ct_eq(&count);
    }
    if right.into() { Ok(block_len.wrapping_sub(count).into()) } else { Err(Error::Padding) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pads_and_unpads() {
        for len in 0..=33 {
            let mut message = vec![7; len];
            message.extend(padding(len, 16).unwrap());
            assert_eq!(message.len() % 16, 0);
            let (rest, last) = message.split_at(message.len() - 16);
            assert_eq!(rest.len() + unpadded_len(last).unwrap(), len);
        }
    }

    #[test]
    fn refuses_what_is_no_padding() {
        let wrong: [&[u8]; 5] = [&[], &[1, 1, 1, 0], &[1, 1, 1, 5], &[4, 4, 3, 4], &[9, 1, 3, 3]];
        for block in wrong {
            assert!(matches!(unpadded_len(block), Err(Error::Padding)), "{block:?}");
        }
        for len in [0, 256, usize::MAX] {
            assert!(matches!(padding(7, len), Err(Error::BlockLength(found)) if found == len));
        }
        assert!(matches!(unpadded_len(&[1; 256]), Err(Error::BlockLength(256))));
        assert_eq!(padding(1, 255).unwrap(), [254; 254]);
        assert_eq!(unpadded_len(&[4, 4, 4, 4]).unwrap(), 0);
        assert_eq!(unpadded_len(&[9, 1, 3, 1]).unwrap(), 3);
    }
}
