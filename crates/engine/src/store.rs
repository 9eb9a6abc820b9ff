//! Keeps profiles in a file of the user's cache directory, each under the machine it is of.
//!
//! `docs/spec/profiles.md` describes the file. A file that cannot be used counts as missing, with a
//! reason, and is never deleted.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::processor::Processor;
use crate::profile::{Profile, Profiles};
use entry::Entry;

mod entry;

/// The file of profiles, as one machine sees it.
#[derive(Clone, Debug)]
pub struct Store {
    path: PathBuf,
    processor: Processor,
}

/// Why there are no profiles of this machine.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Uncalibrated {
    /// Nothing was measured yet.
    #[error("nothing was measured yet")]
    Missing,
    /// The file cannot be read.
    #[error("the profiles cannot be read: {0}")]
    Unreadable(#[source] io::Error),
    /// The file holds something else.
    #[error("the profiles are damaged: {0}")]
    Damaged(String),
    /// The file is of another version of Wattlock.
    #[error("the profiles are of the schema {0:?}, which this version does not know")]
    Schema(String),
    /// Other machines share the directory, or this one was changed.
    #[error("the profiles are of another machine: {0}")]
    OtherMachine(String),
}

/// The file.
#[derive(Serialize, Deserialize)]
struct Document {
    schema: String,
    machines: Vec<Machine>,
}

/// What was measured on one machine.
#[derive(Serialize, Deserialize)]
struct Machine {
    #[serde(flatten)]
    processor: Processor,
    profiles: Vec<Entry>,
}

impl Store {
    /// The file `profiles.json` in `directory`, as `processor` sees it.
    pub fn new(directory: &Path, processor: Processor) -> Self {
        Self { path: directory.join(FILE), processor }
    }

    /// The one in the user's cache directory, as this machine sees it: below `$WATTLOCK_CACHE`, or
    /// else `$XDG_CACHE_HOME/wattlock`, or else `~/.cache/wattlock`.
    ///
    /// # Errors
    /// [`Error::NoCache`] if the environment names none.
    pub fn of_user() -> Result<Self, Error> {
        let directory = directory(|name| std::env::var_os(name)).ok_or(Error::NoCache)?;
        Ok(Self::new(&directory, Processor::here()))
    }

    /// Where the file is, or will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The machine whose profiles are looked for.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }

    /// The profiles of this machine.
    ///
    /// # Errors
    /// Why there are none, which is no reason to fail.
    pub fn load(&self) -> Result<Profiles, Uncalibrated> {
        let document = self.document()?;
        let Some(machine) = document.machines.iter().find(|m| m.processor == self.processor) else {
            let others = document.machines.iter().map(|machine| machine.processor.to_string());
            let others: Vec<_> = others.collect();
            return Err(if others.is_empty() {
                Uncalibrated::Missing
            } else {
                Uncalibrated::OtherMachine(others.join("; "))
            });
        };
        // An operation that this version does not know may be known to another.
        let known = machine.profiles.iter().filter_map(|entry| entry.profile().transpose());
        known.collect::<Result<_, _>>().map_err(Uncalibrated::Damaged)
    }

    /// Makes the directory and finds out whether files can be written there: before anything takes
    /// its time.
    ///
    /// # Errors
    /// [`Error::Cache`].
    pub fn prepare(&self) -> Result<(), Error> {
        if self.path().is_dir() {
            return Err(self.failed(io::Error::from(io::ErrorKind::IsADirectory)));
        }
        self.temporary().map(drop).map_err(|source| self.failed(source))
    }

    /// Adds `profiles` to those of this machine, replacing those of the same case, and keeps those
    /// of other machines. Replaces the file atomically. A file that cannot be used is kept next to
    /// it, under the name that is returned.
    ///
    /// # Errors
    /// [`Error::Cache`].
    pub fn save(&self, profiles: &[Profile]) -> Result<Option<PathBuf>, Error> {
        let aside = match self.load() {
            Err(Uncalibrated::Damaged(_) | Uncalibrated::Schema(_)) => {
                Some(self.set_aside().map_err(|source| self.failed(source))?)
            }
            _ => None,
        };
        let mut document = match self.document() {
            Ok(document) => document,
            Err(Uncalibrated::Missing) => Document::default(),
            Err(Uncalibrated::Unreadable(source)) => return Err(self.failed(source)),
            Err(other) => return Err(self.failed(io::Error::other(other))),
        };
        let machine = document.machine(&self.processor);
        for profile in profiles {
            machine.add(Entry::from(profile));
        }
        self.write(&document).map_err(|source| self.failed(source))?;
        Ok(aside)
    }

    fn document(&self) -> Result<Document, Uncalibrated> {
        let mut text = String::new();
        // A pipe would be waited for.
        let no_file = fs::metadata(&self.path).is_ok_and(|there| !there.is_file());
        if no_file {
            return Err(Uncalibrated::Unreadable(io::Error::other("it is no file")));
        }
        let read = File::open(&self.path)
            .and_then(|file| file.take(MOST_BYTES + 1).read_to_string(&mut text));
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Err(Uncalibrated::Missing);
            }
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                return Err(Uncalibrated::Damaged(error.to_string()));
            }
            Err(error) => return Err(Uncalibrated::Unreadable(error)),
            Ok(_) => {}
        }
        if text.len() as u64 > MOST_BYTES {
            return Err(Uncalibrated::Damaged(format!("more than {MOST_BYTES} bytes")));
        }
        let damaged = |error: serde_json::Error| Uncalibrated::Damaged(error.to_string());
        let value: serde_json::Value = serde_json::from_str(&text).map_err(damaged)?;
        match value.get("schema").and_then(|schema| schema.as_str()) {
            Some(SCHEMA) => serde_json::from_value(value).map_err(damaged),
            Some(other) => Err(Uncalibrated::Schema(other.to_owned())),
            None => Err(Uncalibrated::Damaged("it names no schema".into())),
        }
    }

    fn write(&self, document: &Document) -> io::Result<()> {
        let mut file = self.temporary()?;
        serde_json::to_writer_pretty(&mut file, document)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(&self.path).map_err(|error| error.error)?;
        Ok(())
    }

    /// A file in the same directory, which goes away unless it is persisted.
    fn temporary(&self) -> io::Result<tempfile::NamedTempFile> {
        let directory = self.path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(directory)?;
        tempfile::Builder::new().prefix(".profiles-").tempfile_in(directory)
    }

    /// Renames the file to the first name of its kind that is free.
    fn set_aside(&self) -> io::Result<PathBuf> {
        let free = (1..).map(|n| self.path.with_extension(format!("{n}.json")));
        let free = free.take(MOST_ASIDE).find(|path| !path.exists());
        let free = free.ok_or(io::ErrorKind::AlreadyExists)?;
        fs::rename(&self.path, &free)?;
        Ok(free)
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Cache { path: self.path.clone(), source }
    }
}

impl Default for Document {
    fn default() -> Self {
        Self { schema: SCHEMA.into(), machines: Vec::new() }
    }
}

impl Document {
    /// What was measured on `processor`, to add to it.
    fn machine(&mut self, processor: &Processor) -> &mut Machine {
        let found = self.machines.iter().position(|machine| machine.processor == *processor);
        let index = found.unwrap_or_else(|| {
            self.machines.push(Machine { processor: processor.clone(), profiles: Vec::new() });
            self.machines.len() - 1
        });
        &mut self.machines[index]
    }
}

impl Machine {
    fn add(&mut self, entry: Entry) {
        self.profiles.retain(|old| !old.is_of_the_same(&entry));
        self.profiles.push(entry);
    }
}

/// The directory that the environment names. Relative paths are ignored, as the XDG Base Directory
/// Specification wants it, but for our own variable.
fn directory(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name| variable(name).filter(|path| !path.is_empty()).map(PathBuf::from);
    let absolute = |name| path(name).filter(|path| path.is_absolute());
    path("WATTLOCK_CACHE")
        .or_else(|| absolute("XDG_CACHE_HOME").map(|cache| cache.join("wattlock")))
        .or_else(|| absolute("HOME").map(|home| home.join(".cache/wattlock")))
}

const SCHEMA: &str = "wattlock-profiles/1";
const FILE: &str = "profiles.json";
/// A machine's profiles are 10 KB.
const MOST_BYTES: u64 = 16 << 20;
/// Files that could not be used, and are kept.
const MOST_ASIDE: usize = 1000;

#[cfg(test)]
mod tests;
