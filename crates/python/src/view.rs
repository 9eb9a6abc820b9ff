//! Containers that are read in ranges: from a file, or from bytes that Python fetched.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wattlock_file::{ContainerView, Error, Opener, ReadAt};

use crate::buffers::{Buffer, new_bytes};
use crate::errors::of_file;
use crate::interrupt;
use crate::keys;
use crate::paths::check_is_file;
use crate::process::engine;

/// Some bytes of a container that has `size` in all.
struct Part<'a> {
    at: u64,
    bytes: &'a [u8],
    size: u64,
}

impl ReadAt for Part<'_> {
    fn len(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = offset.checked_sub(self.at).and_then(|start| usize::try_from(start).ok());
        let bytes = start.and_then(|start| self.bytes.get(start..start.checked_add(buffer.len())?));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

/// The first bytes of a container, which the view keeps.
struct Front {
    bytes: Vec<u8>,
    size: u64,
}

impl ReadAt for Front {
    fn len(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        // A reader may ask for more than it needs; what is behind the front reads as zeros, which no header holds.
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(self.bytes.len());
        let here = &self.bytes[start..(start + buffer.len()).min(self.bytes.len())];
        buffer[..here.len()].copy_from_slice(here);
        buffer[here.len()..].fill(0);
        Ok(())
    }
}

/// A container whose ranges are opened from bytes that the caller has. It has no lock and no thread, and works after a
/// fork.
#[pyclass(frozen, module = "wattlock._wattlock")]
pub(crate) struct View(ContainerView<'static, Front>);

#[pymethods]
impl View {
    /// View(front, size): `front` are the first bytes of a container of `size` bytes, with its header.
    #[new]
    #[pyo3(signature = (front, size, identities=None, *, passphrase=None))]
    fn new(
        py: Python<'_>,
        front: &Bound<'_, PyAny>,
        size: u64,
        identities: Option<&Bound<'_, PyAny>>,
        passphrase: Option<&str>,
    ) -> PyResult<Self> {
        let front = Buffer::input(front)?;
        if front.len() > MOST_FRONT {
            return Err(PyValueError::new_err("no header is as long as this front"));
        }
        let front = Front { bytes: front.bytes().to_vec(), size };
        let identities = keys::identities(identities, passphrase)?;
        let opener = Opener::new(engine(), &identities);
        py.detach(|| opener.view(front)).map(Self).map_err(of_file)
    }

    /// Bytes of the plaintext, as the container's length says.
    #[getter]
    fn size(&self) -> u64 {
        self.0.plaintext.len()
    }

    /// The bytes of the container that hold the plaintext from `start` to `stop`.
    fn sealed_range(&self, start: u64, stop: u64) -> (u64, u64) {
        let range = self.0.plaintext.sealed_range(&(start..stop));
        (range.start, range.end)
    }

    /// Opens the plaintext from `start` to `stop`: `sealed` are the container's bytes of their `sealed_range`, or
    /// more, the first of which is byte `at` of the container.
    fn read<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        stop: u64,
        sealed: &Bound<'py, PyAny>,
        at: u64,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let sealed = Buffer::input(sealed)?;
        let len = length(start, stop)?;
        new_bytes(py, len, |room| self.fill(py, start, room, (&sealed, at)))
    }

    /// As `read`, into a buffer, which is filled.
    fn read_into<'py>(
        &self,
        py: Python<'py>,
        start: u64,
        out: &Bound<'py, PyAny>,
        sealed: &Bound<'py, PyAny>,
        at: u64,
    ) -> PyResult<()> {
        let (sealed, mut out) = (Buffer::input(sealed)?, Buffer::output(out)?);
        out.apart(&sealed)?;
        self.fill(py, start, out.bytes_mut(), (&sealed, at))
    }
}

impl View {
    fn fill(
        &self,
        py: Python<'_>,
        start: u64,
        room: &mut [u8],
        (sealed, at): (&Buffer, u64),
    ) -> PyResult<()> {
        let view = &self.0.plaintext;
        let needed = view.sealed_range(&(start..start.saturating_add(room.len() as u64)));
        let bytes = sealed.bytes();
        if needed.start < at || needed.end > at.saturating_add(bytes.len() as u64) {
            return Err(PyValueError::new_err(format!(
                "bytes {} to {} of the container are needed",
                needed.start, needed.end
            )));
        }
        let part = Part { at, bytes, size: view.sealed().size };
        interrupt::run(py, Some(room.len()), |_| view.read_from(engine(), &part, start, room))
    }
}

/// A container in a file, read in ranges.
#[pyclass(frozen, module = "wattlock._wattlock")]
pub(crate) struct FileView {
    view: ContainerView<'static, File>,
    path: PathBuf,
}

#[pymethods]
impl FileView {
    #[new]
    #[pyo3(signature = (path, identities=None, *, passphrase=None))]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        identities: Option<&Bound<'_, PyAny>>,
        passphrase: Option<&str>,
    ) -> PyResult<Self> {
        check_is_file(&path)?;
        let identities = keys::identities(identities, passphrase)?;
        let opener = Opener::new(engine(), &identities);
        let opened = py.detach(|| {
            let file = File::open(&path).map_err(Error::io("read", &path))?;
            opener.view(file).map_err(|error| error.renamed(Path::new("the input"), &path))
        });
        opened.map(|view| Self { view, path }).map_err(of_file)
    }

    /// Bytes of the plaintext, as the container's length says.
    #[getter]
    fn size(&self) -> u64 {
        self.view.plaintext.len()
    }

    /// Fills a buffer with the plaintext from `start` on.
    fn read_into<'py>(&self, py: Python<'py>, start: u64, out: &Bound<'py, PyAny>) -> PyResult<()> {
        let mut out = Buffer::output(out)?;
        let room = out.bytes_mut();
        let view = &self.view.plaintext;
        interrupt::run(py, Some(room.len()), |_| {
            let read = view.read_from(engine(), view.sealed(), start, room);
            read.map_err(|error| error.renamed(Path::new("the input"), &self.path))
        })
    }
}

fn length(start: u64, stop: u64) -> PyResult<usize> {
    let len = stop.checked_sub(start).and_then(|len| usize::try_from(len).ok());
    len.ok_or_else(|| PyValueError::new_err("stop is before start"))
}

/// Twice the longest header.
const MOST_FRONT: usize = 2 << 20;
