//! Sealed copies of objects that are sent in parts, so that an upload goes on after a crash.
//!
//! An object is sealed once, to a file in the spool, and only then sent. After a crash the file is sent
//! again, or the rest of it: nothing is sealed a second time, and no nonce is used twice. A copy that was
//! not finished was never sent; it is removed.

use std::fs::{self, File};
use std::hash::Hasher;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattlock_file::{RemoteObject, RemoteOutput};

use crate::address::Address;
use crate::client::Client;
use crate::error::Error;
use crate::journal::Journal;
use crate::upload::{START, Upload};

/// A folder of sealed copies.
pub struct Spool {
    folder: PathBuf,
}

/// A sealed copy that is complete, and perhaps sent in part.
pub struct SpooledCopy {
    /// The container, as a file.
    pub container: PathBuf,
    journal: PathBuf,
}

/// An object that is sealed to a spool first.
pub struct SpooledUpload {
    upload: Option<Upload>,
    name: PathBuf,
    copy: SpooledCopy,
    /// The copy, under a name of its own until it is complete.
    file: File,
    unfinished: PathBuf,
}

impl Spool {
    /// The spool in `folder`, which is made if it is not there.
    ///
    /// # Errors
    /// [`Error::Configuration`].
    pub fn new(folder: &Path) -> Result<Self, Error> {
        fs::create_dir_all(folder).map_err(|error| Error::Configuration {
            place: folder.display().to_string(),
            why: error.to_string(),
        })?;
        Ok(Self { folder: folder.to_owned() })
    }

    /// Where the copy of the object at `address` is.
    fn place(&self, address: &Address) -> SpooledCopy {
        // Names of files are short, and a key may not be.
        let mut hasher = Fnv(0xcbf2_9ce4_8422_2325);
        hasher.write(address.to_path().as_os_str().as_encoded_bytes());
        let name = address.file_name();
        let end: String =
            name.chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
        let stem = format!("{:016x}-{end}", hasher.finish());
        SpooledCopy {
            container: self.folder.join(format!("{stem}.sealed")),
            journal: self.folder.join(format!("{stem}.parts")),
        }
    }

    /// The complete copy of the object at `address`, if a former run left one.
    pub fn find(&self, address: &Address) -> Option<SpooledCopy> {
        let copy = self.place(address);
        copy.container.is_file().then_some(copy)
    }

    /// Removes what a former run left of the object at `address`, and aborts its upload.
    pub fn discard(&self, client: &Client, address: &Address) {
        self.place(address).discard(client, address);
    }

    /// A new object at `address`, of `len` bytes as far as that is known, which is sealed to this spool
    /// first. A former copy is discarded.
    ///
    /// # Errors
    /// [`Error::Configuration`].
    pub fn upload(
        &self,
        client: &Client,
        address: &Address,
        overwrite: bool,
        len: Option<u64>,
    ) -> Result<SpooledUpload, Error> {
        let copy = self.place(address);
        copy.discard(client, address);
        let failed = |error: io::Error| Error::Configuration {
            place: copy.container.display().to_string(),
            why: error.to_string(),
        };
        let unfinished = copy.container.with_extension("unfinished");
        let file = File::create(&unfinished).map_err(failed)?;
        let upload = Some(client.upload(address, overwrite, len)?.sealed());
        Ok(SpooledUpload { upload, name: address.to_path(), copy, file, unfinished })
    }
}

impl SpooledCopy {
    /// Sends what of the copy was not acknowledged yet, and completes the object. If the store knows nothing of
    /// the upload any more, all of the copy is sent.
    ///
    /// # Errors
    /// As [`RemoteOutput::complete`].
    pub fn send(
        &self,
        client: &Client,
        address: &Address,
        overwrite: bool,
    ) -> io::Result<Arc<dyn RemoteObject>> {
        let len = fs::metadata(&self.container)?.len();
        let upload = || match client.upload(address, overwrite, Some(len)) {
            Ok(upload) => Ok(upload.sealed()),
            Err(error) => Err(io::Error::other(error)),
        };
        match self.send_by(upload()?) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::remove_file(&self.journal)?;
                self.send_by(upload()?)
            }
            sent => sent,
        }
    }

    fn send_by(&self, mut upload: Upload) -> io::Result<Arc<dyn RemoteObject>> {
        let mut file = File::open(&self.container)?;
        let mut first = Vec::new();
        (&mut file).take(START as u64).read_to_end(&mut first)?;
        let journal = Journal::open(&self.journal)?;
        let start = upload.resume(journal, file.metadata()?.len(), first);
        file.seek(SeekFrom::Start(start))?;
        let mut buffer = vec![0; 1 << 20];
        loop {
            match file.read(&mut buffer)? {
                0 => break,
                len => upload.write_all(&buffer[..len])?,
            }
        }
        let object = upload.complete()?;
        self.remove();
        Ok(object)
    }

    /// Removes the copy, and aborts its upload.
    pub fn discard(&self, client: &Client, address: &Address) {
        if self.journal.exists()
            && let Ok(Journal { begun: Some(begun), .. }) = Journal::open(&self.journal)
        {
            client.abort_upload(address, &begun.id);
        }
        self.remove();
    }

    fn remove(&self) {
        let _ = fs::remove_file(&self.journal);
        let _ = fs::remove_file(&self.container);
        let _ = fs::remove_file(self.container.with_extension("unfinished"));
    }
}

impl Write for SpooledUpload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl RemoteOutput for SpooledUpload {
    fn name(&self) -> &Path {
        &self.name
    }

    fn complete(&mut self) -> io::Result<Arc<dyn RemoteObject>> {
        // What may be sent has to be here after a power loss, too.
        self.file.sync_all()?;
        fs::rename(&self.unfinished, &self.copy.container)?;
        let folder = self.copy.container.parent().unwrap_or(Path::new("."));
        File::open(folder)?.sync_all()?;
        let upload =
            self.upload.take().ok_or_else(|| io::Error::other("the upload is already complete"))?;
        self.copy.send_by(upload)
    }
}

impl Drop for SpooledUpload {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.unfinished);
    }
}

/// FNV-1a, whose values stay the same from one version to the next.
struct Fnv(u64);

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
