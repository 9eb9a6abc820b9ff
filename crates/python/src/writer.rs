//! Containers that are made of plaintext in parts: as bytes, or as a file.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wattlock_file::{Attributes, ContainerInParts, Error, Staged};

use crate::buffers::Buffer;
use crate::containers::begin;
use crate::errors::of_file;
use crate::process::generation;

/// Seals one container of plaintext that comes in parts. What `update` and `finish` return is to be written one after
/// the other. A container that was begun before a fork goes on in neither child: both would seal under the same nonces.
#[pyclass(frozen, module = "wattlock._wattlock")]
pub(crate) struct Writer {
    container: Mutex<Option<ContainerInParts<'static>>>,
    generation: u32,
}

#[pymethods]
impl Writer {
    #[new]
    #[pyo3(signature = (recipients=None, *, passphrase=None, format="wattlock"))]
    fn new(
        py: Python<'_>,
        recipients: Option<&Bound<'_, PyAny>>,
        passphrase: Option<&str>,
        format: &str,
    ) -> PyResult<Self> {
        let new = begin(py, recipients, passphrase, format)?;
        Ok(Self { container: Mutex::new(Some(new.in_parts())), generation: generation() })
    }

    /// Takes more plaintext and returns the bytes of the container that are ready.
    fn update<'py>(
        &self,
        py: Python<'py>,
        data: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let data = Buffer::input(data)?;
        let mut container = self.take()?;
        let bytes = data.bytes();
        let ready = py.detach(|| container.update(bytes)).map_err(of_file)?;
        self.put(container);
        Ok(PyBytes::new(py, &ready))
    }

    /// Returns the last bytes of the container.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let container = self.take()?;
        let ready = py.detach(|| container.finish()).map_err(of_file)?;
        Ok(PyBytes::new(py, &ready))
    }
}

impl Writer {
    /// Takes the container out, so that no second thread works on it, and an error ends it.
    fn take(&self) -> PyResult<ContainerInParts<'static>> {
        if self.generation != generation() {
            return Err(PyRuntimeError::new_err(
                "the container was begun before a fork; begin another in the child",
            ));
        }
        let taken = self.container.lock().ok().and_then(|mut container| container.take());
        taken.ok_or_else(|| PyValueError::new_err("the container is finished, or in use"))
    }

    fn put(&self, container: ContainerInParts<'static>) {
        if let Ok(mut place) = self.container.lock() {
            *place = Some(container);
        }
    }
}

/// A container that becomes a file, which appears when it is complete.
#[pyclass(frozen, module = "wattlock._wattlock")]
pub(crate) struct FileWriter {
    container: Writer,
    path: PathBuf,
    staged: Mutex<Option<Staged>>,
}

#[pymethods]
impl FileWriter {
    #[new]
    #[pyo3(signature = (path, recipients=None, *, passphrase=None, format="wattlock", overwrite=false))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        recipients: Option<&Bound<'_, PyAny>>,
        passphrase: Option<&str>,
        format: &str,
        overwrite: bool,
    ) -> PyResult<Self> {
        let container = Writer::new(py, recipients, passphrase, format)?;
        let staged = py.detach(|| Staged::create(&path, overwrite)).map_err(of_file)?;
        Ok(Self { container, path, staged: Mutex::new(Some(staged)) })
    }

    /// Takes more plaintext.
    fn write(&self, py: Python<'_>, data: &Bound<'_, PyAny>) -> PyResult<()> {
        let data = Buffer::input(data)?;
        let (bytes, mut container) = (data.bytes(), self.container.take()?);
        let staged = self.take()?;
        py.detach(|| {
            let ready = container.update(bytes)?;
            staged.file().write_all(&ready).map_err(Error::io("write", &self.path))
        })
        .map_err(of_file)?;
        self.container.put(container);
        if let Ok(mut place) = self.staged.lock() {
            *place = Some(staged);
        }
        Ok(())
    }

    /// Completes the file, waits until it is on the disk, and gives it its name.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let container = self.container.take()?;
        let staged = self.take()?;
        py.detach(|| {
            let ready = container.finish()?;
            staged.file().write_all(&ready).map_err(Error::io("write", &self.path))?;
            staged.settle(&Attributes::default())?;
            staged.publish().map(|_| ())
        })
        .map_err(of_file)
    }

    /// Gives the file up; nothing is left of it.
    fn discard(&self) {
        if self.container.take().is_ok() {
            drop(self.take());
        }
    }
}

impl FileWriter {
    fn take(&self) -> PyResult<Staged> {
        let taken = self.staged.lock().ok().and_then(|mut staged| staged.take());
        taken.ok_or_else(|| PyValueError::new_err("the file is closed, or in use"))
    }
}

impl Drop for FileWriter {
    /// A child leaves the file to its parent.
    fn drop(&mut self) {
        if self.container.generation != generation()
            && let Ok(mut staged) = self.staged.lock()
        {
            std::mem::forget(staged.take());
        }
    }
}
