//! Which file is read, and where its output goes.

use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use wattlock_file::{Format, Shown};

/// Where a protected file goes: beside it, with the format's suffix.
pub(crate) fn protected_path(path: &Path, format: Format) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(format.suffix());
    name.into()
}

/// Where an opened file goes: its name without the suffix.
pub(crate) fn opened_path(path: &Path) -> PyResult<PathBuf> {
    let has_suffix = path
        .extension()
        .is_some_and(|extension| Format::ALL.iter().any(|format| extension == format.suffix()));
    match has_suffix {
        true => Ok(path.with_extension("")),
        false => Err(PyValueError::new_err(
            "the name has no suffix .wlk or .age: name the output with output=",
        )),
    }
}

/// Refuses what is no file: a pipe would be waited for without an end, and Ctrl-C would not be seen.
pub(crate) fn check_is_file(path: &Path) -> PyResult<()> {
    match path.metadata() {
        Ok(status) if !status.is_file() && !status.is_dir() => {
            Err(PyValueError::new_err(format!("{} is not a regular file", Shown(path))))
        }
        _ => Ok(()),
    }
}
