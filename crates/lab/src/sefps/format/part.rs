//! A part of a file between two stages, and what stands at a container's end: no I/O, no cipher.

use wattlock_engine::Direction;
use wattlock_engine::crypto::AesKey;
use wattlock_engine::crypto::Secret;
use wattlock_engine::crypto::sha3::DIGEST_LEN;
use wattlock_file::Damage;
use zeroize::Zeroizing;

const BLOCK_LEN: usize = AesKey::BLOCK_LEN;

/// The most bytes behind the data: 16 of zeros, 16 that count them, and the digest. The smallest
/// container is just that.
pub(super) const MAX_TRAILER_LEN: usize = 2 * BLOCK_LEN + DIGEST_LEN;

/// Bytes of the container of a file of `plain_len` bytes.
pub fn container_len(plain_len: u64) -> u64 {
    plain_len + zeros(plain_len) as u64 + (BLOCK_LEN + DIGEST_LEN) as u64
}

/// The paper's 16 - X mod 16: from 1 to 16.
fn zeros(plain_len: u64) -> usize {
    BLOCK_LEN - (plain_len % BLOCK_LEN as u64) as usize
}

/// A part of a file, plaintext before it is encrypted and after it is decrypted.
pub(super) struct FilePart {
    pub bytes: Zeroizing<Vec<u8>>,
    /// Where it lies in the container.
    pub offset: u64,
    /// True if the end of the file is in it.
    pub last: bool,
}

impl FilePart {
    /// An empty one with room for `len` bytes and a trailer, so that it is never moved.
    pub fn new(len: usize) -> Self {
        let bytes = Zeroizing::new(Vec::with_capacity(len + MAX_TRAILER_LEN));
        Self { bytes, offset: 0, last: false }
    }

    /// Puts the zeros and their count behind the data of a file's last part.
    pub fn pad(&mut self) {
        let zeros = zeros(self.bytes.len() as u64);
        self.bytes.extend_from_slice(&[0; BLOCK_LEN][..zeros]);
        self.bytes.extend_from_slice(&[zeros as u8; BLOCK_LEN]);
    }

    /// What the digest is of: everything but itself.
    pub fn hashed(&self, direction: Direction) -> &[u8] {
        match direction {
            Direction::Decrypt if self.last => &self.bytes[..self.bytes.len() - DIGEST_LEN],
            _ => &self.bytes,
        }
    }

    /// Ends a file's last part, with the digest of everything: puts it there, or compares it with
    /// the one that is there and leaves only the data.
    ///
    /// # Errors
    /// [`Damage::Altered`].
    pub fn close(&mut self, direction: Direction, digest: [u8; DIGEST_LEN]) -> Result<(), Damage> {
        if direction == Direction::Encrypt {
            self.bytes.extend_from_slice(&digest);
            return Ok(());
        }
        let (padded, there) = self.bytes.split_last_chunk::<DIGEST_LEN>().ok_or(Damage::Altered)?;
        let secret = |digest: &[u8]| Secret::<DIGEST_LEN>::init_with(|s| s.copy_from_slice(digest));
        if secret(&digest) != secret(there) {
            return Err(Damage::Altered);
        }
        let data = data_len(padded).ok_or(Damage::Altered)?;
        self.bytes.truncate(data);
        Ok(())
    }
}

/// Bytes before the padding; `None` if the padding is malformed.
fn data_len(padded: &[u8]) -> Option<usize> {
    let (before, counts) = padded.split_last_chunk::<BLOCK_LEN>()?;
    let zeros = usize::from(counts[0]);
    let len = before.len().checked_sub(zeros).filter(|_| (1..=BLOCK_LEN).contains(&zeros))?;
    let sound = counts.iter().all(|count| usize::from(*count) == zeros)
        && before[len..].iter().all(|zero| *zero == 0);
    sound.then_some(len)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(bytes: &[u8]) -> FilePart {
        FilePart { bytes: Zeroizing::new(bytes.to_vec()), offset: 0, last: true }
    }

    #[test]
    fn the_papers_example() {
        // "if a file has 123 bytes, it should be padded 21 bytes totally to make its length (144
        // bytes) a multiple of 16 bytes, i.e., stuffing 5 bytes with 0 and 16 bytes with the length
        // value of 5"
        let mut padded = part(&[0xaa; 123]);
        padded.pad();
        assert_eq!(padded.bytes.len(), 144);
        assert_eq!(padded.bytes[123..128], [0; 5]);
        assert_eq!(padded.bytes[128..], [5; 16]);
        assert_eq!(container_len(123), 144 + 32);
        assert_eq!(container_len(0), 64);
        assert_eq!(container_len(16), 16 + 16 + 16 + 32);
    }

    #[test]
    fn what_is_closed_opens_again() {
        for len in 0..=33 {
            let plain: Vec<u8> = (0..len).collect();
            let mut sealed = part(&plain);
            sealed.pad();
            sealed.close(Direction::Encrypt, [7; DIGEST_LEN]).unwrap();
            assert_eq!(sealed.bytes.len() as u64, container_len(len.into()));
            assert!(sealed.bytes.len().is_multiple_of(BLOCK_LEN));
            let mut opened = part(&sealed.bytes);
            assert_eq!(opened.hashed(Direction::Decrypt).len(), sealed.bytes.len() - 32);
            assert_eq!(opened.close(Direction::Decrypt, [8; DIGEST_LEN]), Err(Damage::Altered));
            opened.close(Direction::Decrypt, [7; DIGEST_LEN]).unwrap();
            assert_eq!(*opened.bytes, plain);
        }
    }

    #[test]
    fn malformed_padding_is_refused() {
        let with = |data: &[u8], counts: [u8; 16]| data_len(&[data, &counts].concat());
        assert_eq!(with(&[9, 0, 0], [2; 16]), Some(1));
        assert_eq!(with(&[0; 16], [16; 16]), Some(0));
        assert_eq!(with(&[0; 16], [0; 16]), None);
        assert_eq!(with(&[0; 17], [17; 16]), None);
        assert_eq!(with(&[0; 2], [3; 16]), None);
        assert_eq!(with(&[9, 1, 0], [2; 16]), None);
        let mut uneven = [2; 16];
        uneven[15] = 3;
        assert_eq!(with(&[9, 0, 0], uneven), None);
        assert_eq!(data_len(&[1; 15]), None);
    }
}
