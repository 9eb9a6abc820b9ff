//! Attributes: the small files in which the kernel shows one value each.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Error;

/// What the file holds, without white space around it; `None` if it is missing, empty or cannot be
/// read.
pub(crate) fn text(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).ok()?.trim().to_owned();
    (!text.is_empty()).then_some(text)
}

/// The number that the file holds.
///
/// # Errors
/// What the system said, or what is there instead of a number.
pub(crate) fn number(path: &Path) -> Result<i64, Error> {
    let text =
        fs::read_to_string(path).map_err(|source| Error::Read { path: path.to_owned(), source })?;
    let text = text.trim();
    text.parse().map_err(|_| Error::NotANumber {
        path: path.to_owned(),
        text: text.chars().take(40).collect(),
    })
}

/// The same where less than nothing is no value.
///
/// # Errors
/// The same.
pub(crate) fn amount(path: &Path) -> Result<u64, Error> {
    let number = number(path)?;
    number
        .try_into()
        .map_err(|_| Error::NotANumber { path: path.to_owned(), text: number.to_string() })
}

/// The directories in `path`, in the order of their names, numbers as numbers: `hwmon2` is before
/// `hwmon10`.
pub(crate) fn directories(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    let mut paths: Vec<_> = entries.flatten().map(|entry| entry.path()).collect();
    paths.retain(|path| path.is_dir());
    paths.sort_by_key(|path| {
        let name = file_name(path);
        (name.trim_end_matches(|c: char| c.is_ascii_digit()).to_owned(), name.len(), name)
    });
    paths
}

/// The last part of the path.
pub(crate) fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}
