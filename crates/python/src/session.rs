//! Sessions: many small messages under one key, each a record of its own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use wattlock_record::{AdditionalData, NextRecord, OVERHEAD, Reader, SessionKey, new_session_key};
use zeroize::Zeroizing;

use crate::buffers::{Buffer, new_bytes};
use crate::errors::of_record;
use crate::process::generation;

/// Returns a new session key: 32 random bytes.
#[pyfunction]
pub(crate) fn session_key(py: Python<'_>) -> PyResult<Bound<'_, PyBytes>> {
    let key = new_session_key().map_err(|error| of_record(&error))?;
    Ok(PyBytes::new(py, key.expose()))
}

/// Returns additional data of these parts in the form that every reader knows (`docs/spec/record.md`). `time_us` are
/// microseconds since 1970, `sequence` is a number of the caller's.
#[pyfunction]
#[pyo3(signature = (*, tenant=None, topic=None, source=None, time_us=None, sequence=None))]
pub(crate) fn additional_data<'py>(
    py: Python<'py>,
    tenant: Option<&str>,
    topic: Option<&str>,
    source: Option<&str>,
    time_us: Option<u64>,
    sequence: Option<u64>,
) -> PyResult<Bound<'py, PyBytes>> {
    let parts = AdditionalData { tenant, topic, source, time_us, sequence };
    let bytes = parts.to_bytes().map_err(|error| of_record(&error))?;
    Ok(PyBytes::new(py, &bytes))
}

/// Seals and opens small messages under a session key. Each record opens by itself, in any order, in any session that
/// has the key of its epoch. Sessions that seal under one key need not know of each other, and a forked process goes on
/// with an identity of its own.
#[pyclass(frozen, module = "wattlock")]
pub(crate) struct Session {
    epoch: u32,
    keys: HashMap<u32, SessionKey>,
    state: Mutex<State>,
}

/// Its lock is held only together with the interpreter's, so that no other thread holds it during a fork.
struct State {
    writer: wattlock_record::Writer,
    reader: Reader,
    /// That of the writer's identity.
    generation: u32,
}

/// 32 bytes of an object.
struct KeyBytes(Zeroizing<[u8; 32]>);

impl<'a, 'py> FromPyObject<'a, 'py> for KeyBytes {
    type Error = PyErr;

    fn extract(object: Borrowed<'a, 'py, PyAny>) -> PyResult<Self> {
        let bytes = Buffer::input(&object)?;
        let key = Zeroizing::new(bytes.bytes().try_into().map_err(|_| {
            PyValueError::new_err(format!("a session key has 32 bytes, and not {}", bytes.len()))
        })?);
        Ok(Self(key))
    }
}

#[pymethods]
impl Session {
    /// Session(key, epoch=0): `key` are 32 random bytes, or a dict of them by epoch, of which `epoch` seals.
    #[new]
    #[pyo3(signature = (key, epoch=0))]
    fn new(key: &Bound<'_, PyAny>, epoch: u32) -> PyResult<Self> {
        let keys: HashMap<u32, SessionKey> = match key.extract::<HashMap<u32, KeyBytes>>() {
            Ok(keys) => {
                keys.into_iter().map(|(epoch, key)| (epoch, SessionKey::new(&key.0))).collect()
            }
            Err(_) if key.hasattr("items")? => {
                return Err(PyTypeError::new_err("keys by epoch are a dict of int and 32 bytes"));
            }
            Err(_) => {
                let key: KeyBytes = key.extract()?;
                HashMap::from([(epoch, SessionKey::new(&key.0))])
            }
        };
        let of_epoch = keys.get(&epoch).cloned();
        let of_epoch =
            of_epoch.ok_or_else(|| PyValueError::new_err(format!("no key for epoch {epoch}")))?;
        // Before the identity is drawn: a fork between the two makes another one.
        let generation = generation();
        let writer = wattlock_record::Writer::new(of_epoch, epoch);
        let writer = writer.map_err(|error| of_record(&error))?;
        let reader = Reader::new(keys.clone());
        Ok(Self { epoch, keys, state: Mutex::new(State { writer, reader, generation }) })
    }

    /// The epoch under which it seals.
    #[getter]
    fn epoch(&self) -> u32 {
        self.epoch
    }

    /// Seals a message and returns its record, which is 45 bytes longer. Additional data is needed again to open it.
    #[pyo3(signature = (message, additional_data=None))]
    fn seal<'py>(
        &self,
        py: Python<'py>,
        message: &Bound<'py, PyAny>,
        additional_data: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let message = Buffer::input(message)?;
        let message = message.bytes();
        let additional = additional_data.map(Buffer::input).transpose()?;
        let additional = additional.as_ref().map_or(&[][..], Buffer::bytes);
        new_bytes(py, message.len().saturating_add(OVERHEAD), |room| {
            let mut state = self.lock();
            let generation = generation();
            if state.generation != generation {
                state.writer.renew().map_err(|error| of_record(&error))?;
                state.generation = generation;
            }
            let sealed = if message.len() < LONG {
                state.writer.seal_into(message, additional, room)
            } else {
                let next = state.next_record().map_err(|error| of_record(&error))?;
                drop(state);
                py.detach(|| next.seal_into(message, additional, room))
            };
            sealed.map_err(|error| of_record(&error))
        })
    }

    /// Opens a record and returns its message.
    #[pyo3(signature = (record, additional_data=None))]
    fn open<'py>(
        &self,
        py: Python<'py>,
        record: &Bound<'py, PyAny>,
        additional_data: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let record = Buffer::input(record)?;
        let record = record.bytes();
        let additional = additional_data.map(Buffer::input).transpose()?;
        let additional = additional.as_ref().map_or(&[][..], Buffer::bytes);
        let len = Reader::message_len(record).map_err(|error| of_record(&error))?;
        new_bytes(py, len, |room| {
            let opened = if len < LONG {
                self.lock().reader.open_into(record, additional, room)
            } else {
                let mut reader = Reader::new(self.keys.clone());
                py.detach(|| reader.open_into(record, additional, room))
            };
            opened.map_err(|error| of_record(&error))
        })
    }

    fn __repr__(&self) -> String {
        format!("Session(…, epoch={})", self.epoch)
    }
}

impl State {
    /// What seals the next record outside of the lock.
    fn next_record(&mut self) -> Result<NextRecord, wattlock_record::Error> {
        match self.writer.next_record() {
            Err(wattlock_record::Error::Spent) => {
                self.writer.renew()?;
                self.writer.next_record()
            }
            next => next,
        }
    }
}

/// Bytes of a message from which on the interpreter's lock is released while it is sealed or opened: to release it
/// takes as long as a kilobyte does.
const LONG: usize = 64 << 10;

impl Session {
    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
