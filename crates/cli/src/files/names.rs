//! `--hide-names`: trees in a store whose objects have encrypted names.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use wattlock_engine::Engine;
use wattlock_file::{
    Error, Exclude, Format, Found, Identities, Opener, ReadAt, Sealer, Shown, Skip, Task, Wrapping,
};
use wattlock_host::exit::usage;
use wattlock_object::{HiddenNames, NAMES_FILE};

use crate::stores::Stores;

/// What hides the names of a new tree, or opens those of one that exists.
pub struct Names<'a> {
    pub stores: &'a Stores,
    pub engine: &'a Engine,
    pub identities: &'a Identities,
}

impl Names<'_> {
    /// Gives the outputs of `found` below `top` their hidden names. A tree that is new gets a key, which is
    /// sealed with `wrapping`.
    ///
    /// # Errors
    /// [`usage`] for a tree with names that are not hidden, and without an identity for its key; those
    /// of the store.
    pub fn hide(&self, found: &mut Found, top: &Path, wrapping: &Wrapping) -> anyhow::Result<()> {
        let file = top.join(NAMES_FILE);
        let existing = self.stores.all(top)?;
        let names = if existing.contains(&file) {
            self.open_foreign(&file, top)?
        } else if existing.is_empty() {
            let names = HiddenNames::generate()?;
            match self.make(&file, &names, wrapping) {
                Ok(()) => names,
                // Another run that began with this one was sooner: both use its key.
                Err(Error::Exists(_)) => self.open_foreign(&file, top)?,
                Err(error) => return Err(error.into()),
            }
        } else {
            return Err(usage(format!(
                "{} holds objects whose names are not hidden; choose another --out-dir",
                Shown(top)
            )));
        };
        let tasks = std::mem::take(&mut found.tasks);
        for mut task in tasks {
            match hidden(&names, top, &task) {
                Ok(output) => {
                    task.output = output;
                    found.tasks.push(task);
                }
                Err(error) => found.failed.push((task.input, error)),
            }
        }
        Ok(())
    }

    /// Gives the outputs of the containers below `top` the paths that their names hide, if they do.
    ///
    /// # Errors
    /// Those of the store, and of the container with the key.
    pub fn reveal(
        &self,
        found: &mut Found,
        top: &Path,
        exclude: &Exclude,
        out_dir: &Path,
    ) -> anyhow::Result<()> {
        let file = top.join(NAMES_FILE);
        if !found.tasks.iter().any(|task| task.input == file) {
            return Ok(());
        }
        let names = self.open(&file)?;
        let folder = out_dir.join(top.file_name().unwrap_or_default());
        for mut task in std::mem::take(&mut found.tasks) {
            let Ok(below) = task.input.strip_prefix(top) else {
                found.tasks.push(task);
                continue;
            };
            if below == Path::new(NAMES_FILE) {
                continue;
            }
            match names.reveal(below.with_extension("").as_os_str()) {
                Ok(path) if exclude.covers(&path, top.file_name()) => {
                    found.skipped.push((path, Skip::Excluded));
                }
                Ok(path) => {
                    task.output = folder.join(path);
                    found.tasks.push(task);
                }
                Err(error) => {
                    let error = std::io::Error::other(error);
                    found.failed.push((
                        task.input.clone(),
                        Error::io("decrypt the name of", &task.input)(error),
                    ));
                }
            }
        }
        Ok(())
    }

    /// Makes the names file of a new tree.
    ///
    /// # Errors
    /// [`Error::Exists`]; those of the store.
    fn make(&self, file: &Path, names: &HiddenNames, wrapping: &Wrapping) -> Result<(), Error> {
        let sealer = Sealer::new(self.engine, wrapping, Format::WattlockV1);
        let sealed = sealer.seal_bytes(names.to_text().as_bytes())?;
        let mut upload = self.stores.upload(file, false, Some(sealed.len() as u64))?.sealed();
        write_all(&mut upload, &sealed).map_err(|error| match error.kind() {
            std::io::ErrorKind::AlreadyExists => Error::Exists(file.to_owned()),
            _ => Error::io("write", file)(error),
        })
    }

    /// Opens a names file that this run did not make, and says so: a recipient is no secret, and the store, too, could
    /// have made a file for it, to read the names that are hidden with its key.
    fn open_foreign(&self, file: &Path, top: &Path) -> anyhow::Result<HiddenNames> {
        if self.identities.is_empty() {
            return Err(usage(format!(
                "{} uses hidden names; give an identity (-i) or the passphrase (-p) that opens {}",
                Shown(top),
                Shown(file)
            )));
        }
        let names = self.open(file)?;
        say!(
            "warning: the names are encrypted with the key in {}, which existed before this run; its creator can \
             read them; if you do not trust the creator, use another --out-dir",
            Shown(file)
        );
        Ok(names)
    }

    fn open(&self, file: &Path) -> anyhow::Result<HiddenNames> {
        let object = self.stores.object(file, None)?;
        let open = || {
            object.len().map_err(Error::io("read", file))?;
            let view = Opener::new(self.engine, self.identities).view(&*object)?;
            let len = view.plaintext.len().min(MOST_TEXT);
            let mut text = vec![0; len as usize];
            view.plaintext.read(0, &mut text)?;
            let names = HiddenNames::parse(&text);
            names.map_err(|error| Error::io("read", file)(std::io::Error::other(error)))
        };
        Ok(open()?)
    }
}

/// Bytes of the longest names file.
const MOST_TEXT: u64 = 1024;

/// Where the output of `task` is under its hidden name.
fn hidden(names: &HiddenNames, top: &Path, task: &Task) -> Result<PathBuf, Error> {
    let below = task.output.strip_prefix(top).unwrap_or(&task.output);
    let suffix = below.extension().unwrap_or_default();
    let name = names.hide(&below.with_extension(""));
    let name =
        name.map_err(|e| Error::io("hide the name of", &task.input)(std::io::Error::other(e)))?;
    let mut name = OsString::from(name);
    name.push(".");
    name.push(suffix);
    Ok(top.join(name))
}

fn write_all(upload: &mut wattlock_object::Upload, bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write;
    use wattlock_file::RemoteOutput;
    upload.write_all(bytes)?;
    upload.complete().map(|_| ())
}
