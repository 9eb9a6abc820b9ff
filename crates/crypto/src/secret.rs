//! Key material that wipes itself and cannot be printed or copied by accident.

use subtle::ConstantTimeEq;
use zeroize::Zeroize;

/// `N` secret bytes on the heap, wiped on drop.
///
/// The bytes are boxed so that moving the value never leaves a copy behind. There is no `Debug`
/// and no `Clone`; `==` takes the same time wherever the values differ.
pub struct Secret<const N: usize>(Box<[u8; N]>);

impl<const N: usize> Secret<N> {
    /// Makes a secret by filling its final place, so that no copy exists elsewhere.
    pub fn init_with(fill: impl FnOnce(&mut [u8; N])) -> Self {
        let mut secret = Self(Box::new([0; N]));
        fill(&mut secret.0);
        secret
    }

    /// As [`Secret::init_with`], for a source that can fail.
    ///
    /// # Errors
    /// What `fill` returns; the partly filled bytes are wiped.
    pub fn try_init_with<E>(fill: impl FnOnce(&mut [u8; N]) -> Result<(), E>) -> Result<Self, E> {
        let mut secret = Self(Box::new([0; N]));
        fill(&mut secret.0)?;
        Ok(secret)
    }

    /// The bytes. The caller keeps them out of logs, errors and files.
    pub fn expose(&self) -> &[u8; N] {
        &self.0
    }
}

impl<const N: usize> Drop for Secret<N> {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

impl<const N: usize> PartialEq for Secret<N> {
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&*other.0).into()
    }
}

impl<const N: usize> Eq for Secret<N> {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_fill_is_an_error() {
        let made = Secret::<4>::try_init_with(|bytes| {
            bytes[0] = 1;
            Err("no entropy")
        });
        assert_eq!(made.err(), Some("no entropy"));
    }

    #[test]
    fn equality_sees_every_byte() {
        let one = Secret::<32>::init_with(|b| b.fill(7));
        for position in 0..32 {
            let other = Secret::<32>::init_with(|b| {
                b.fill(7);
                b[position] ^= 1;
            });
            assert!(one != other);
        }
        assert!(one == Secret::init_with(|b| b.fill(7)));
    }
}
