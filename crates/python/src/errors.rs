//! The errors of the libraries as exceptions.

use std::path::Path;

use pyo3::create_exception;
use pyo3::exceptions::{
    PyException, PyFileExistsError, PyIsADirectoryError, PyMemoryError, PyOSError, PyRuntimeError,
    PyValueError,
};
use pyo3::prelude::*;
use wattlock_file::{Damage, Error};

create_exception!(wattlock, WattlockError, PyException, "Base of the errors of decryption.");
create_exception!(
    wattlock,
    WrongKey,
    WattlockError,
    "No identity or passphrase that was given opens it."
);
create_exception!(
    wattlock,
    Tampered,
    WattlockError,
    "Authentication failed: the data were changed or damaged. The attribute chunk is the index of the first wrong chunk, or None."
);
create_exception!(
    wattlock,
    Truncated,
    WattlockError,
    "The end is missing, where that can be told; data that were cut may also raise Tampered."
);

/// The exception for an error of `wattlock-file`.
pub(crate) fn of_file(error: Error) -> PyErr {
    let text = error.to_string();
    match error {
        Error::WrongKey { .. } | Error::NeedsPassphrase | Error::WrongPassphrase => {
            WrongKey::new_err(text)
        }
        Error::Damaged(Damage::Truncated) | Error::HeaderCut => Truncated::new_err(text),
        Error::Damaged(Damage::Chunk { chunk }) => tampered(text, Some(chunk)),
        Error::Damaged(_)
        | Error::Header { .. }
        | Error::HeaderTooLong
        | Error::HeaderAuthentication
        | Error::Mismatch(_) => tampered(text, None),
        Error::Incomplete { source, .. } => of_file(*source),
        Error::Io { path, source, .. } => of_io(&source, &path, text),
        Error::Exists(path) => {
            let why = "the output exists; overwrite=True replaces it";
            PyFileExistsError::new_err((17, why, path.into_os_string()))
        }
        Error::Directory(path) | Error::OutputIsDirectory(path) => {
            PyIsADirectoryError::new_err((21, "it is a directory", path.into_os_string()))
        }
        Error::Usage { .. } | Error::OutputIsInput(_) | Error::NoName(_) | Error::NotAFile(_) => {
            PyValueError::new_err(text)
        }
        Error::Engine(_) | Error::Crypto(_) | Error::Wrap(_) | Error::Unwrap(_) => {
            PyRuntimeError::new_err(text)
        }
        Error::NotAContainer
        | Error::SealedStream
        | Error::UnknownVersion
        | Error::TooMuchWork(_)
        | Error::TooManyRecipients { .. } => WattlockError::new_err(text),
        _ => PyOSError::new_err(text),
    }
}

fn of_io(error: &std::io::Error, path: &Path, text: String) -> PyErr {
    match error.raw_os_error() {
        // Python chooses the class by the number.
        Some(number) => {
            let words = error.to_string();
            let words = words.split(" (os error").next().unwrap_or_default().to_owned();
            // As text: Python shows a path as PosixPath('…').
            PyOSError::new_err((number, words, path.as_os_str().to_owned()))
        }
        None if error.kind() == std::io::ErrorKind::OutOfMemory => PyMemoryError::new_err(text),
        None => PyOSError::new_err(text),
    }
}

fn tampered(text: String, chunk: Option<u64>) -> PyErr {
    let error = Tampered::new_err(text);
    Python::attach(|py| {
        let _ = error.value(py).setattr("chunk", chunk);
    });
    error
}

/// The exception for an error of `wattlock-record`.
pub(crate) fn of_record(error: &wattlock_record::Error) -> PyErr {
    use wattlock_record::Error;
    let text = error.to_string();
    match error {
        Error::TooLong(_) | Error::NameTooLong(_) | Error::BufferLength { .. } => {
            PyValueError::new_err(text)
        }
        Error::Truncated(_) => Truncated::new_err(text),
        Error::Version => WattlockError::new_err(text),
        Error::Epoch(_) => WrongKey::new_err(text),
        Error::Authentication => tampered(text, None),
        _ => PyRuntimeError::new_err(text),
    }
}
