//! SEFPS, a published file protection from SHA3-256 and parallel AES, for study and reproduction.
//!
//! Fei, Li, Yang, Li: "A secure and efficient file protecting system based on SHA3 and parallel
//! AES" (Parallel Computing 52, 2016). A container is the file, padded, and its digest, all of it
//! under AES in ECB or CTR: `docs/spec/sefps.md`. **Its proof of integrity does not hold**: the
//! digest has no key, so anyone who knows the plaintext of a container in CTR can make it say
//! something else, and ECB shows which blocks are equal. Do not keep data in it.
//!
//! A file goes through three stages, window by window, in bounded memory: one that reads (and
//! decrypts), one that hashes, one that (encrypts and) writes. The paper's variants go through them
//! one after the other; [`Variant::Overlapped`] lets all three work at once, and of many files it
//! hashes eight at a time.

mod flow;
mod lanes;
mod part;
mod plan;
mod stages;
#[cfg(test)]
mod tests;
mod variant;

use std::fs::File;
use std::io::{self, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use wattlock_engine::crypto::AesKey;
use wattlock_engine::{Direction, Engine, Report};
use wattlock_file::{Attributes, Done, Error, Input, OpenFile, Progress, Staged, Target};

use crate::study::aes;

pub use part::container_len;
pub use plan::tasks;
pub use variant::Variant;

/// The name on the command line and in JSON.
pub const NAME: &str = "sefps";

/// How files are to be protected or unprotected: the same for all files of a run.
pub struct Sefps<'a> {
    /// Does the work.
    pub engine: &'a Engine,
    /// The key of everything.
    pub key: &'a aes::Key,
    /// How the blocks follow each other.
    pub mode: Mode,
    /// Who encrypts, and when.
    pub variant: Variant,
    /// Whether outputs that exist are replaced.
    pub overwrite: bool,
    /// Counts every byte.
    pub progress: &'a Progress,
}

/// The mode of AES, over the whole container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// Each block by itself, as in the paper's listings.
    Ecb,
    /// A key stream from a counter block, which is not in the container.
    Ctr {
        /// The first counter block; never twice with one key.
        iv: [u8; AesKey::BLOCK_LEN],
    },
}

/// Times of one file, by the stages that the paper reports.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// In SHA3-256. Of files that were hashed side by side, each has its share.
    pub hash: Duration,
    /// In AES, transfers to devices included.
    pub cipher: Duration,
}

/// One file that was protected or unprotected.
#[derive(Debug)]
pub struct Made {
    /// What became of it.
    pub done: Done,
    /// Where its time went.
    pub times: Times,
}

impl Sefps<'_> {
    /// Protects (encrypts) or unprotects (decrypts) `input` and puts the result at `target`.
    ///
    /// Nothing of a container's plaintext is released before its digest was compared. Where bytes
    /// cannot be taken back, the container is therefore copied to a nameless temporary file, and
    /// gone through twice.
    ///
    /// # Errors
    /// Anything in [`Error`]; the input is as it was, and there is no output, except on a stream
    /// that broke. [`wattlock_file::Damage::Altered`] is all that is said of a container that is not what
    /// was protected, or was protected otherwise.
    pub fn run(
        &self,
        direction: Direction,
        input: &Input,
        target: Target<'_>,
    ) -> Result<Made, Error> {
        if self.variant.needs_accelerator() && !self.engine.has_accelerator() {
            return Err(Error::NoDevice);
        }
        let mut opened = input.open_file()?;
        match target {
            Target::File(path) => self.to_file(direction, &mut opened, &path),
            Target::Stream(writer) => self.to_stream(direction, &mut opened, writer),
            Target::Nothing if direction == Direction::Decrypt => {
                let (output, sink) = (Path::new("nothing"), &mut io::sink());
                let made = self.flow(direction, &opened, output, sink, self.progress)?;
                opened.check_unchanged()?;
                Ok(made)
            }
            Target::Remote(_) => Err(Error::usage("this format goes to files and streams")),
            Target::Nothing => Err(Error::usage("protecting needs an output")),
        }
    }

    fn to_file(
        &self,
        direction: Direction,
        opened: &mut OpenFile,
        path: &Path,
    ) -> Result<Made, Error> {
        opened.check_is_not(path)?;
        let staged = Staged::create(path, self.overwrite)?;
        let mut made = self.flow(direction, opened, path, &mut staged.file(), self.progress)?;
        made.done.output = Some(publish(opened, staged)?);
        Ok(made)
    }

    fn to_stream(
        &self,
        direction: Direction,
        opened: &mut OpenFile,
        writer: &mut (dyn Write + Send),
    ) -> Result<Made, Error> {
        let output = Path::new("standard output");
        let made = match direction {
            Direction::Encrypt => self.flow(direction, opened, output, writer, self.progress)?,
            Direction::Decrypt => {
                let copy = OwnCopy::of(opened)?;
                let quiet = Progress::default();
                self.flow(direction, &copy.opened, output, &mut io::sink(), &quiet)?;
                (&copy.opened.file).rewind().map_err(Error::io("read", &opened.name))?;
                self.flow(direction, &copy.opened, output, writer, self.progress)?
            }
        };
        writer.flush().map_err(Error::io("write", output))?;
        opened.check_unchanged()?;
        Ok(made)
    }
}

/// A copy of the container that no other process can write to.
struct OwnCopy {
    opened: OpenFile,
    /// Removes it when it is dropped, where it has a name at all.
    _staged: Staged,
}

impl OwnCopy {
    fn of(original: &mut OpenFile) -> Result<Self, Error> {
        let path = std::env::temp_dir().join(format!("wattlock-sefps-{}", std::process::id()));
        let staged = Staged::create(&path, true)?;
        let failed = |action| Error::io(action, &path);
        let mut file: File = staged.file().try_clone().map_err(failed("write"))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match original.file.read(&mut buffer) {
                Ok(0) => break,
                Ok(len) => file.write_all(&buffer[..len]).map_err(failed("write"))?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", &original.name)(error)),
            }
        }
        file.rewind().map_err(failed("read"))?;
        let opened = original.copy_in(file)?;
        Ok(Self { opened, _staged: staged })
    }
}

/// Gives a complete output the input's mode and owner, and its name.
fn publish(opened: &OpenFile, staged: Staged) -> Result<PathBuf, Error> {
    opened.check_unchanged()?;
    let own = if opened.status.is_file() {
        Attributes { modified: None, ..Attributes::of(&opened.file, &opened.status) }
    } else {
        Attributes::default()
    };
    staged.settle(&own)?;
    staged.publish()
}

fn made(read: u64, written: u64, report: Report, times: Times) -> Made {
    let done = Done { bytes_in: read, bytes_out: written, format: NAME, report, ..Done::default() };
    Made { done, times }
}
