//! What files hold: random bytes, and the same as another.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use anyhow::bail;

/// Bytes that no tool can compress or share.
///
/// # Errors
/// That they cannot be written.
pub fn random_file(path: &Path, len: u64) -> anyhow::Result<()> {
    let mut file = File::create(path)?;
    let copied = io::copy(&mut File::open("/dev/urandom")?.take(len), &mut file)?;
    if copied != len {
        bail!("{} got {copied} of {len} bytes", path.display());
    }
    Ok(())
}

/// True if both files hold the same bytes.
///
/// # Errors
/// That one cannot be read.
pub fn same(one: &Path, other: &Path) -> anyhow::Result<bool> {
    let (mut one, mut other) = (File::open(one)?, File::open(other)?);
    if one.metadata()?.len() != other.metadata()?.len() {
        return Ok(false);
    }
    let (mut a, mut b) = (vec![0; 1 << 20], vec![0; 1 << 20]);
    loop {
        let len = one.read(&mut a)?;
        if len == 0 {
            return Ok(true);
        }
        other.read_exact(&mut b[..len])?;
        if a[..len] != b[..len] {
            return Ok(false);
        }
    }
}
