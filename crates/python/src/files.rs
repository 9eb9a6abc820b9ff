//! Files: an output appears complete or not at all.

use std::path::PathBuf;

use pyo3::prelude::*;
use wattlock_file::{Input, Protect, Target, Unprotect, UsedNames};

use crate::interrupt;
use crate::keys;
use crate::paths::{check_is_file, opened_path, protected_path};
use crate::process::engine;

/// Encrypts a file and returns the path of the container: PATH.wlk, or PATH.age, unless output names another. An output
/// that exists is an error, or replaced with overwrite=True. replace=True removes the file once the container is on the
/// disk and was read back. metadata=False leaves the file's name, mode and time out of the container.
#[pyfunction]
#[pyo3(signature = (
    path, output=None, *, recipients=None, passphrase=None, format="wattlock", overwrite=false, replace=false,
    metadata=true
))]
#[allow(clippy::too_many_arguments, reason = "they are options of Python's, by name")]
pub(crate) fn protect(
    py: Python<'_>,
    path: PathBuf,
    output: Option<PathBuf>,
    recipients: Option<&Bound<'_, PyAny>>,
    passphrase: Option<&str>,
    format: &str,
    overwrite: bool,
    replace: bool,
    metadata: bool,
) -> PyResult<PathBuf> {
    check_is_file(&path)?;
    let format = keys::format(format)?;
    let wrapping = keys::wrapping(recipients, passphrase, format)?;
    let output = output.unwrap_or_else(|| protected_path(&path, format));
    interrupt::run(py, None, |progress| {
        let how = Protect {
            engine: engine(),
            wrapping: &wrapping,
            format,
            armor: false,
            signer: None,
            metadata,
            overwrite,
            replace,
            progress,
        };
        wattlock_file::protect(&how, &Input::Path(path), Target::File(output.clone()))
    })?;
    Ok(output)
}

/// Decrypts a file and returns the path of the output: PATH without .wlk or .age, unless output names another. An output
/// that exists is an error, or replaced with overwrite=True. replace=True removes the container once the output is on the
/// disk and was read back.
#[pyfunction]
#[pyo3(signature = (
    path, output=None, *, identities=None, passphrase=None, overwrite=false, replace=false
))]
pub(crate) fn unprotect(
    py: Python<'_>,
    path: PathBuf,
    output: Option<PathBuf>,
    identities: Option<&Bound<'_, PyAny>>,
    passphrase: Option<&str>,
    overwrite: bool,
    replace: bool,
) -> PyResult<PathBuf> {
    check_is_file(&path)?;
    let identities = keys::identities(identities, passphrase)?;
    let output = output.map_or_else(|| opened_path(&path), Ok)?;
    interrupt::run(py, None, |progress| {
        let how = Unprotect {
            engine: engine(),
            identities: &identities,
            range: None,
            sealed_name: None,
            used_names: &UsedNames::default(),
            overwrite,
            replace,
            progress,
        };
        wattlock_file::unprotect(&how, &Input::Path(path), Target::File(output.clone()))
    })?;
    Ok(output)
}
