//! The Python package `wattlock`: containers, records and joules, over the libraries.
//!
//! The module is `wattlock._wattlock`; what people import is in `python/wattlock`. Work is done without the interpreter's
//! lock, on all cores, and Ctrl-C ends it soon (`interrupt`). A forked process gets an engine of its own, and its
//! sessions new identities (`process`).

mod buffers;
mod containers;
mod errors;
mod files;
mod interrupt;
mod keys;
mod measure;
mod paths;
mod process;
mod session;
mod view;
mod writer;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _wattlock {
    use super::*;

    #[pymodule_export]
    use containers::{open, open_into, opened_size, seal, seal_into, sealed_size};
    #[pymodule_export]
    use errors::{Tampered, Truncated, WattlockError, WrongKey};
    #[pymodule_export]
    use files::{protect, unprotect};
    #[pymodule_export]
    use keys::{Identity, Recipient, keygen};
    #[pymodule_export]
    use measure::Measurement;
    #[pymodule_export]
    use process::{set_threads, threads};
    #[pymodule_export]
    use session::{Session, additional_data, session_key};
    #[pymodule_export]
    use view::{FileView, View};
    #[pymodule_export]
    use writer::{FileWriter, Writer};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        process::prepare()?;
        module.py().get_type::<Tampered>().setattr("chunk", module.py().None())?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
