//! Files that others read meanwhile: all of the new one, or the old one.

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use wattlock_file::Shown;

use crate::exit::usage;

/// Where the file `output` is, behind a link if it is one.
///
/// # Errors
/// That something is there which is no file: a folder, a device, a pipe.
pub fn place(output: &Path) -> anyhow::Result<PathBuf> {
    let Ok(there) = output.canonicalize() else { return Ok(output.to_owned()) };
    if !there.is_file() {
        return Err(usage(format!("{} exists and is not a file", Shown(output))));
    }
    Ok(there)
}

/// Fails early where [`write()`] would fail late.
///
/// # Errors
/// That nothing can be written there.
pub fn can_write(place: &Path) -> std::io::Result<()> {
    temporary(place).map(drop)
}

/// Writes the file at `place` in one step. Others may read it, as far as the user's mask allows.
///
/// # Errors
/// That it could not be written; then what was there is there still.
pub fn write(place: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut file = temporary(place)?;
    file.write_all(bytes)?;
    file.persist(place)?;
    Ok(())
}

fn temporary(place: &Path) -> std::io::Result<tempfile::NamedTempFile> {
    let directory = place.parent().filter(|directory| !directory.as_os_str().is_empty());
    let made = tempfile::Builder::new()
        .prefix(".wattlock-")
        .permissions(fs::Permissions::from_mode(0o666))
        .tempfile_in(directory.unwrap_or_else(|| Path::new(".")));
    made.map_err(without_temporary_name)
}

/// The error without the name of the temporary file, which no one asked for.
fn without_temporary_name(error: std::io::Error) -> std::io::Error {
    if error.kind() == ErrorKind::NotFound {
        return std::io::Error::new(ErrorKind::NotFound, "no such directory");
    }
    let inner = error.get_ref().and_then(|inner| inner.source());
    let number = inner.and_then(|inner| inner.downcast_ref::<std::io::Error>()?.raw_os_error());
    number.map_or(error, std::io::Error::from_raw_os_error)
}
