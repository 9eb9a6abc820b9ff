//! Python's memory as slices, while the interpreter's lock is released.
//!
//! A buffer that is exported keeps its place and its length. Its bytes may be changed by another thread meanwhile, which
//! Python cannot prevent, no more for us than for any other library: then what comes out is garbage or an error. No length,
//! index or branch of the code that reads them depends on these bytes.

use pyo3::buffer::PyUntypedBuffer;
use pyo3::exceptions::{PyBufferError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyMemoryView};

/// The bytes of an object that has them in one piece.
pub(crate) struct Buffer(PyUntypedBuffer);

impl Buffer {
    /// Bytes to be read.
    pub fn input(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        match PyUntypedBuffer::get(object) {
            Ok(buffer) if !buffer.is_c_contiguous() => {
                Err(PyBufferError::new_err("the buffer is not contiguous"))
            }
            Ok(buffer) => {
                refuse_references(buffer.format().to_bytes())?;
                Ok(Self(buffer))
            }
            // One of no dimensions, such as a number of NumPy, or one that gives no strides, such as those of ctypes.
            Err(error) => Self::flattened(object).unwrap_or(Err(error)),
        }
    }

    /// The same bytes in one dimension; none where Python itself has no view of them.
    fn flattened(object: &Bound<'_, PyAny>) -> Option<PyResult<Self>> {
        let view = PyMemoryView::from(object).ok()?;
        let flat = || {
            refuse_references(view.getattr("format")?.extract::<String>()?.as_bytes())?;
            match view.getattr("nbytes")?.extract::<usize>()? {
                // Such a view cannot be cast.
                0 => PyUntypedBuffer::get(&PyByteArray::new(object.py(), b"")),
                _ => PyUntypedBuffer::get(&view.call_method1("cast", ("B",))?),
            }
        };
        Some(flat().map(Self))
    }

    /// Bytes to be written.
    pub fn output(object: &Bound<'_, PyAny>) -> PyResult<Self> {
        let buffer = Self::input(object)?;
        if buffer.0.readonly() {
            return Err(PyBufferError::new_err("the buffer is read-only"));
        }
        Ok(buffer)
    }

    /// Its length in bytes.
    pub fn len(&self) -> usize {
        self.0.len_bytes()
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        match self.len() {
            0 => &[],
            // SAFETY: the exporter keeps `len` bytes there until the buffer is released, which takes `self`. Another
            // thread may write to them: see above.
            len => unsafe { std::slice::from_raw_parts(self.0.buf_ptr().cast(), len) },
        }
    }

    /// Its bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match self.len() {
            0 => &mut [],
            // SAFETY: as in `bytes`; it is not read-only, and `apart` was called for the other buffer of the call.
            len => unsafe { std::slice::from_raw_parts_mut(self.0.buf_ptr().cast(), len) },
        }
    }

    /// Refuses buffers that share bytes.
    pub fn apart(&self, other: &Self) -> PyResult<()> {
        let start = |buffer: &Self| buffer.0.buf_ptr() as usize;
        let (one, two) = (start(self), start(other));
        let overlap = one < two.saturating_add(other.len()) && two < one.saturating_add(self.len());
        if overlap && self.len() > 0 && other.len() > 0 {
            return Err(PyValueError::new_err("input and output are the same memory"));
        }
        Ok(())
    }
}

/// Refuses a buffer whose items are addresses. In its format, names of fields are between colons.
fn refuse_references(format: &[u8]) -> PyResult<()> {
    let types = format.split(|byte| *byte == b':').step_by(2);
    match types.flatten().any(|byte| b"O&".contains(byte)) {
        true => Err(PyBufferError::new_err("the buffer holds references to objects, and no data")),
        false => Ok(()),
    }
}

/// A new `bytes` of `len` bytes that are not set, for `fill` to set all of them. No other code can see it meanwhile.
pub(crate) fn new_bytes<'py>(
    py: Python<'py>,
    len: usize,
    fill: impl FnOnce(&mut [u8]) -> PyResult<()>,
) -> PyResult<Bound<'py, PyBytes>> {
    let wanted = isize::try_from(len)
        .map_err(|_| PyValueError::new_err("more bytes than an address has"))?;
    // SAFETY: a null pointer asks for bytes that are not set.
    let made = unsafe { pyo3::ffi::PyBytes_FromStringAndSize(std::ptr::null(), wanted) };
    // SAFETY: it is a new reference, or null with an exception set.
    let made = unsafe { Bound::from_owned_ptr_or_err(py, made) }?;
    let bytes = made.cast_into::<PyBytes>().map_err(PyErr::from)?;
    // SAFETY: it is a `bytes`.
    let start = unsafe { pyo3::ffi::PyBytes_AsString(bytes.as_ptr()) };
    // SAFETY: it has `len` bytes, and there is no other reference to it. Bytes have no invalid values.
    fill(unsafe { std::slice::from_raw_parts_mut(start.cast(), len) })?;
    Ok(bytes)
}
