//! Containers in memory.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wattlock_file::{Damage, Error, Header, NewContainer, Opener, Sealer};

use crate::buffers::{Buffer, new_bytes};
use crate::errors::of_file;
use crate::interrupt;
use crate::keys;
use crate::process::engine;

/// Seals data for recipients or with a passphrase, and returns the container.
#[pyfunction]
#[pyo3(signature = (data, recipients=None, *, passphrase=None, format="wattlock"))]
pub(crate) fn seal<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    recipients: Option<&Bound<'py, PyAny>>,
    passphrase: Option<&str>,
    format: &str,
) -> PyResult<Bound<'py, PyBytes>> {
    let data = Buffer::input(data)?;
    let new = begin(py, recipients, passphrase, format)?;
    new_bytes(py, new.sealed_len(data.len() as u64) as usize, |room| {
        let from = data.bytes();
        interrupt::run(py, Some(from.len()), |progress| new.seal_into(from, room, progress))
    })
}

/// Seals data into a buffer, without a copy between, and returns how many bytes the container has.
#[pyfunction]
#[pyo3(signature = (data, out, recipients=None, *, passphrase=None, format="wattlock"))]
pub(crate) fn seal_into<'py>(
    py: Python<'py>,
    data: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    recipients: Option<&Bound<'py, PyAny>>,
    passphrase: Option<&str>,
    format: &str,
) -> PyResult<usize> {
    let (data, mut out) = (Buffer::input(data)?, Buffer::output(out)?);
    out.apart(&data)?;
    let new = begin(py, recipients, passphrase, format)?;
    let len = new.sealed_len(data.len() as u64) as usize;
    let room = room(&mut out, len)?;
    let from = data.bytes();
    interrupt::run(py, Some(from.len()), |progress| new.seal_into(from, room, progress))?;
    Ok(len)
}

/// Returns how many bytes the container of `size` bytes has for these recipients.
#[pyfunction]
#[pyo3(signature = (size, recipients=None, *, passphrase=None, format="wattlock"))]
pub(crate) fn sealed_size(
    py: Python<'_>,
    size: u64,
    recipients: Option<&Bound<'_, PyAny>>,
    passphrase: Option<&str>,
    format: &str,
) -> PyResult<u64> {
    if size > MOST_SIZE {
        return Err(PyValueError::new_err(format!("size is above {MOST_SIZE}")));
    }
    let new = begin(py, recipients, passphrase, format)?;
    Ok(new.sealed_len(size))
}

/// Opens a container, of Wattlock or of age, and returns what was sealed.
#[pyfunction]
#[pyo3(signature = (container, identities=None, *, passphrase=None))]
pub(crate) fn open<'py>(
    py: Python<'py>,
    container: &Bound<'py, PyAny>,
    identities: Option<&Bound<'py, PyAny>>,
    passphrase: Option<&str>,
) -> PyResult<Bound<'py, PyBytes>> {
    let container = Buffer::input(container)?;
    let from = container.bytes();
    let identities = keys::identities(identities, passphrase)?;
    let opener = Opener::new(engine(), &identities);
    if is_armored(from) {
        let opened = interrupt::run(py, Some(from.len()), |_| {
            let mut plaintext = zeroize::Zeroizing::new(Vec::new());
            opener.open(&mut &from[..], &mut *plaintext)?;
            Ok(plaintext)
        })?;
        return Ok(PyBytes::new(py, &opened));
    }
    let view = py.detach(|| opener.view(from)).map_err(of_file)?;
    new_bytes(py, view.plaintext.len() as usize, |room| {
        interrupt::run(py, Some(from.len()), |progress| view.open_into(room, progress))
    })
}

/// Opens a container into a buffer, without a copy between, and returns how many bytes were sealed. After an error,
/// the buffer holds zeros in place of them.
#[pyfunction]
#[pyo3(signature = (container, out, identities=None, *, passphrase=None))]
pub(crate) fn open_into<'py>(
    py: Python<'py>,
    container: &Bound<'py, PyAny>,
    out: &Bound<'py, PyAny>,
    identities: Option<&Bound<'py, PyAny>>,
    passphrase: Option<&str>,
) -> PyResult<usize> {
    let (container, mut out) = (Buffer::input(container)?, Buffer::output(out)?);
    out.apart(&container)?;
    let from = container.bytes();
    let identities = keys::identities(identities, passphrase)?;
    let opener = Opener::new(engine(), &identities);
    let view = py.detach(|| opener.view(from)).map_err(of_file)?;
    let len = view.plaintext.len() as usize;
    let room = room(&mut out, len)?;
    interrupt::run(py, Some(from.len()), |progress| view.open_into(room, progress))?;
    Ok(len)
}

/// Returns how many bytes are sealed in a container, by its length and without a key: authentic once it was opened.
#[pyfunction]
pub(crate) fn opened_size(container: &Bound<'_, PyAny>) -> PyResult<u64> {
    let container = Buffer::input(container)?;
    let header = Header::read(&mut &container.bytes()[..]).map_err(of_file)?;
    let format = header.format();
    let front = header.len() + format.prefix_len() as u64;
    let rest = (container.len() as u64).checked_sub(front);
    let rest = rest.ok_or(Error::Damaged(Damage::Truncated)).map_err(of_file)?;
    format.layout().plain_len(rest).map_err(|damage| of_file(damage.into()))
}

/// Begins a container for these recipients or this passphrase.
pub(crate) fn begin(
    py: Python<'_>,
    recipients: Option<&Bound<'_, PyAny>>,
    passphrase: Option<&str>,
    format: &str,
) -> PyResult<NewContainer<'static>> {
    let format = keys::format(format)?;
    let wrapping = keys::wrapping(recipients, passphrase, format)?;
    let sealer = Sealer::new(engine(), &wrapping, format);
    py.detach(|| sealer.begin()).map_err(of_file)
}

fn room(out: &mut Buffer, len: usize) -> PyResult<&mut [u8]> {
    let has = out.len();
    let room = out.bytes_mut().get_mut(..len);
    room.ok_or_else(|| PyValueError::new_err(format!("out has {has} bytes, and needs {len}")))
}

fn is_armored(container: &[u8]) -> bool {
    container.trim_ascii_start().starts_with(b"-----BEGIN AGE")
        && Header::read(&mut &container[..]).is_err()
}

/// More than any memory has.
const MOST_SIZE: u64 = 1 << 56;
