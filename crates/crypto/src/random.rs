//! Random bytes from the operating system.

use crate::error::Error;
use crate::secret::Secret;

/// Fills `bytes`.
///
/// # Errors
/// [`Error::Random`] when the system gives none.
pub fn fill(bytes: &mut [u8]) -> Result<(), Error> {
    getrandom::fill(bytes).map_err(|_| Error::Random)
}

/// `N` random bytes that are not secret: salts and nonces.
///
/// # Errors
/// As [`fill`].
pub fn array<const N: usize>() -> Result<[u8; N], Error> {
    let mut bytes = [0; N];
    fill(&mut bytes)?;
    Ok(bytes)
}

/// A fresh key of `N` bytes.
///
/// # Errors
/// As [`fill`].
pub fn secret<const N: usize>() -> Result<Secret<N>, Error> {
    Secret::try_init_with(|bytes| fill(bytes))
}
