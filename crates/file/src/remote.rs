//! Inputs and outputs that are not on this machine, such as objects in a store.

use std::fmt::Debug;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use crate::error::Error;
use crate::read_at::ReadAt;

/// An object that is not a file of this machine. Its reads fail once it has been changed.
pub trait RemoteObject: ReadAt + Send + Debug + 'static {
    /// Its address, as messages show it.
    fn name(&self) -> &Path;

    /// When it was last changed, once its length is known.
    fn modified(&self) -> Option<SystemTime>;

    /// Removes it, unless it has been changed since its first read.
    ///
    /// # Errors
    /// That it is still there, and why.
    fn remove(&self) -> io::Result<()>;
}

/// A new remote object. Dropped before it is complete, it leaves nothing.
pub trait RemoteOutput: Write + Send {
    /// Its address, as messages show it.
    fn name(&self) -> &Path;

    /// Makes it appear, as a whole, once its store has all of it. Returns it for reading back.
    ///
    /// # Errors
    /// [`io::ErrorKind::AlreadyExists`] if there is one that may not be replaced, and others of the store.
    fn complete(&mut self) -> io::Result<Arc<dyn RemoteObject>>;
}

/// What is written to an output, in order.
pub(crate) struct Sent<'a>(pub &'a mut dyn RemoteOutput);

impl Write for Sent<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Completes `output`.
///
/// # Errors
/// [`Error::Exists`], [`Error::Io`].
pub(crate) fn complete(output: &mut dyn RemoteOutput) -> Result<Arc<dyn RemoteObject>, Error> {
    output.complete().map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => Error::Exists(output.name().to_owned()),
        _ => Error::io("write", output.name())(error),
    })
}
