//! Writes segments: records that others sealed, in batches, and the index behind them.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use wattlock_engine::crypto::TAG_LEN;
use wattlock_record::{HEAD_LEN, NextRecord};
use zeroize::Zeroizing;

use super::folder::Folder;
use super::header::Header;
use super::index::IndexBuilder;
use super::payload::{Payload, Recorded};
use super::scan::{BATCH_FRONT, Tail, batch_checksum};
use super::varint;
use crate::error::Error;
use crate::message::{Cipher, Message, Nonce};
use crate::pool::Pool;

/// A record that is not sealed yet, as a message of the window: its head and additional data, which its tag covers;
/// then its length, its head and its payload, which are what is written. The payload is `front` and `rest`.
pub(crate) fn record_to_seal(
    next: NextRecord,
    additional: &[u8],
    front: &[u8],
    rest: &[u8],
    pool: Option<&Pool>,
) -> Message {
    let payload_len = front.len() + rest.len();
    let record_len = HEAD_LEN + payload_len + TAG_LEN;
    let aad = 0..HEAD_LEN + additional.len();
    let start = aad.end + varint::len(record_len as u64) + HEAD_LEN;
    let len = start + payload_len + TAG_LEN;
    let mut buffer = match pool {
        Some(pool) => pool.take(len),
        None => Zeroizing::new(Vec::with_capacity(len)),
    };
    buffer.clear();
    buffer.extend_from_slice(&next.head);
    buffer.extend_from_slice(additional);
    varint::push(&mut buffer, record_len as u64);
    buffer.extend_from_slice(&next.head);
    buffer.extend_from_slice(front);
    buffer.extend_from_slice(rest);
    buffer.extend_from_slice(&[0; TAG_LEN]);
    let nonce = Nonce { base: next.nonce, number: 0 };
    let cipher = Cipher::Seal { key: next.key, nonce, aad };
    Message { user: 0, cipher, buffer, payload: start..start + payload_len }
}

/// The bytes of a sealed record with its length in front: what is written of [`record_to_seal`].
pub(crate) fn written(message: &Message) -> &[u8] {
    let (Cipher::Seal { aad, .. } | Cipher::Open { aad, .. }) = &message.cipher;
    &message.buffer[aad.end..]
}

/// A record that is sealed here, with its length in front.
///
/// # Errors
/// [`Error::Cipher`]: the payload is too long.
pub(crate) fn sealed_record(
    next: NextRecord,
    additional: &[u8],
    payload: &Payload<'_>,
) -> Result<Vec<u8>, Error> {
    let mut message = record_to_seal(next, additional, &payload.to_bytes(), b"", None);
    message.work()?;
    Ok(written(&message).to_vec())
}

/// A segment that is being written. After an error the same call may be made again: it writes the same bytes to the
/// same place.
pub(crate) struct SegmentFile {
    file: Arc<File>,
    path: PathBuf,
    header: Header,
    /// Bytes that are written.
    len: u64,
    /// Records that are written.
    records: u64,
    /// The next batch, with room in front for its length and checksum.
    batch: Vec<u8>,
    /// What its records are.
    recorded: Vec<Recorded>,
    index: IndexBuilder,
    /// Where the index begins, once it is in the batch.
    index_at: Option<u64>,
}

impl SegmentFile {
    /// Makes the file of the next segment in a folder.
    ///
    /// # Errors
    /// That it cannot be made; a file that was made is removed.
    pub fn create(folder: &Folder, header: Header) -> io::Result<Self> {
        let (file, path) = folder.create_next()?;
        let bytes = header.to_bytes();
        let made = file.write_all_at(&bytes, 0);
        let made = made.and_then(|()| file.sync_all()).and_then(|()| folder.sync());
        if let Err(error) = made {
            // One that cannot be removed holds no record, and is passed over.
            let _ = std::fs::remove_file(&path);
            return Err(error);
        }
        Ok(Self {
            file: Arc::new(file),
            path,
            header,
            len: bytes.len() as u64,
            records: 0,
            batch: vec![0; BATCH_FRONT],
            recorded: Vec::new(),
            index: IndexBuilder::default(),
            index_at: None,
        })
    }

    /// Its name, for messages.
    pub fn name(&self) -> String {
        self.path.to_string_lossy().escape_debug().to_string()
    }

    /// The file itself.
    pub fn file(&self) -> &Arc<File> {
        &self.file
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes that are written.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Adds a sealed record with its length in front to the batch.
    pub fn push(&mut self, record: &[u8], recorded: Recorded) {
        self.batch.extend_from_slice(record);
        self.recorded.push(recorded);
    }

    /// True if the batch has to be written before a record of `len` bytes is added.
    pub fn is_full(&self, len: usize) -> bool {
        !self.recorded.is_empty() && self.batch.len() + len > LONGEST_BATCH
    }

    /// Writes the batch. Returns how many bytes that were.
    ///
    /// # Errors
    /// That it cannot be written; what was written of it is no batch, and is written again.
    pub fn flush(&mut self) -> io::Result<u64> {
        if self.recorded.is_empty() {
            return Ok(0);
        }
        let (front, records) = self.batch.split_at_mut(BATCH_FRONT);
        front[..4].copy_from_slice(&(records.len() as u32).to_be_bytes());
        front[4..].copy_from_slice(&batch_checksum(&self.header.writer, records).to_be_bytes());
        self.file.write_all_at(&self.batch, self.len)?;
        let written = self.batch.len() as u64;
        self.index.batch(self.len, self.records);
        self.records += self.recorded.len() as u64;
        self.len += written;
        for recorded in self.recorded.drain(..) {
            self.index.record(recorded);
        }
        self.batch.truncate(BATCH_FRONT);
        Ok(written)
    }

    /// Puts the index into the next batch, which has to be empty. Nothing may be pushed after it.
    ///
    /// # Errors
    /// That it cannot be sealed.
    pub fn push_index(&mut self, next: NextRecord) -> io::Result<()> {
        let index = self.index.to_bytes();
        let record = sealed_record(next, &self.header.additional, &Payload::Index(&index));
        let record = record.map_err(io::Error::other)?;
        self.index_at = Some(self.len);
        self.push(&record, Recorded::Other);
        Ok(())
    }

    /// Writes the tail behind the index, and makes all of it durable. Returns the bytes of the tail.
    ///
    /// # Errors
    /// That the system cannot; that the file is not at its place any more.
    pub fn end(&mut self) -> io::Result<u64> {
        let tail = self.index_at.map_or(Tail::Open, |index| Tail::Complete { index }).to_bytes();
        self.file.write_all_at(&tail, self.len)?;
        // A retry may have left more than that.
        self.file.set_len(self.len + tail.len() as u64)?;
        self.file.sync_all()?;
        check_place(&self.file, &self.path)?;
        Ok(tail.len() as u64)
    }
}

/// Fails if a path does not lead to this file: it was removed, or it or a folder on its way was moved or made anew. What
/// is written to it then is lost.
///
/// # Errors
/// [`io::ErrorKind::NotFound`]; why the system does not say.
pub(crate) fn check_place(file: &File, path: &Path) -> io::Result<()> {
    let own = file.metadata()?;
    match path.metadata() {
        Ok(there) if (there.dev(), there.ino()) == (own.dev(), own.ino()) => Ok(()),
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => {
            let why = "it was removed or moved while it was written";
            Err(io::Error::new(io::ErrorKind::NotFound, why))
        }
    }
}

/// Bytes above which a batch is written before another record comes into it.
const LONGEST_BATCH: usize = 1 << 20;
