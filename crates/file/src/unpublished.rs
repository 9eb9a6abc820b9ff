//! An output that is written and has no name yet.

use std::path::Path;

use crate::Done;
use crate::error::Error;
use crate::folder::Location;
use crate::input::Opened;
use crate::signature::remove_signature;
use crate::staging::{Published, Staged, directory_of, sync_directory};

/// An output whose bytes and attributes are written, and which is neither durable nor named yet.
/// Dropped, it leaves nothing.
pub struct Unpublished<'a> {
    staged: Staged,
    done: Done,
    replaced: Option<ReadBack<'a>>,
    /// A durable file that gets its name just before.
    companion: Option<Box<Staged>>,
    /// Whether a signature of what it replaces is removed just after.
    ends_signature: bool,
}

/// Reads an output back and compares it with its original, which it returns: it may go then.
type ReadBack<'a> = Box<dyn FnOnce(&Staged) -> Result<Opened, Error> + Send + 'a>;

impl<'a> Unpublished<'a> {
    /// An output that `done` is said of.
    pub(crate) fn new(staged: Staged, done: Done) -> Self {
        Self { staged, done, replaced: None, companion: None, ends_signature: false }
    }

    /// The same with a durable file that gets its name just before.
    pub(crate) fn with_companion(self, companion: Option<Staged>) -> Self {
        Self { companion: companion.map(Box::new), ..self }
    }

    /// The same; if `ends`, a signature of what it replaces is removed just after it has its name.
    pub(crate) fn ending_signature(self, ends: bool) -> Self {
        Self { ends_signature: ends, ..self }
    }

    /// The same in place of its original, once `read_back` returns that.
    pub(crate) fn replacing(
        self,
        read_back: impl FnOnce(&Staged) -> Result<Opened, Error> + Send + 'a,
    ) -> Self {
        Self { replaced: Some(Box::new(read_back)), ..self }
    }

    pub(crate) fn staged(&self) -> &Staged {
        &self.staged
    }

    /// Open files that it holds.
    pub(crate) fn open_files(&self) -> usize {
        1 + usize::from(self.replaced.is_some()) + usize::from(self.companion.is_some())
    }

    /// Bytes of the output.
    pub(crate) fn len(&self) -> u64 {
        self.done.bytes_out
    }

    /// Makes it durable, names it, and removes what it replaces.
    ///
    /// # Errors
    /// [`Error::Mismatch`] if it does not read back as its original; [`Error::Exists`];
    /// [`Error::Io`]; those of removing the original.
    pub(crate) fn publish(self) -> Result<Done, Error> {
        self.staged.file().sync_all().map_err(self.staged.location().failed("write"))?;
        let named = self.link()?;
        named.output.sync_folder()?;
        let (done, removed) = named.remove_original()?;
        if let Some(original) = removed {
            let _ = sync_directory(&original);
        }
        Ok(done)
    }

    /// Reads it back if it replaces anything, and gives it its name. Its bytes are durable.
    pub(crate) fn link(self) -> Result<Named, Error> {
        let original = self.replaced.map(|read_back| read_back(&self.staged)).transpose()?;
        // What stands at its name keeps its own companion.
        if self.companion.is_some() {
            self.staged.check_name()?;
        }
        let companion = self.companion.map(|companion| companion.link()).transpose()?;
        let output = self.staged.link().inspect_err(|_| {
            if let Some(companion) = companion {
                companion.remove();
            }
        })?;
        let removed_signature =
            if self.ends_signature { remove_signature(output.location()) } else { None };
        let path = output.location().path().to_owned();
        let done = Done { output: Some(path), removed_signature, ..self.done };
        Ok(Named { done, output, original })
    }
}

/// An output that has its name, and may still have an original to be removed.
pub(crate) struct Named {
    done: Done,
    output: Published,
    original: Option<Opened>,
}

impl Named {
    /// The output.
    pub fn output(&self) -> &Published {
        &self.output
    }

    /// The folder that its name is in.
    pub fn folder(&self) -> &Path {
        directory_of(self.output.location().path())
    }

    /// Removes the original, whose place it returns if that is a file. The output's name is durable,
    /// and is looked up once more before: it may be another file's by now.
    ///
    /// # Errors
    /// [`Error::Changed`] if it is; those of [`Opened::remove`].
    pub fn remove_original(self) -> Result<(Done, Option<Location>), Error> {
        let Some(original) = self.original else { return Ok((self.done, None)) };
        self.output.check_in_place()?;
        original.remove()?;
        Ok((self.done, original.location()))
    }
}
