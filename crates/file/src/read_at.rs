//! What is read at any offset: a file, memory, or something far away.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

/// A source of bytes that can be read at any offset, by several threads at once. Neither bytes nor length
/// may change meanwhile.
pub trait ReadAt: Sync {
    /// Its length in bytes.
    ///
    /// # Errors
    /// That it cannot be told.
    fn len(&self) -> io::Result<u64>;

    /// True if it holds nothing.
    ///
    /// # Errors
    /// As [`ReadAt::len`].
    fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if there are fewer.
    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()>;

    /// Announces that the bytes in `range` are read next, once and mostly in order. What is far away may
    /// fetch them ahead; by default, this does nothing.
    fn read_ahead(&self, range: Range<u64>) {
        let _ = range;
    }
}

/// Reads a [`ReadAt`] from its start.
pub(crate) struct InOrder<R> {
    source: R,
    at: u64,
    end: u64,
}

impl<R: ReadAt> InOrder<R> {
    /// Reads `source`, which has `len` bytes.
    pub fn new(source: R, len: u64) -> Self {
        Self { source, at: 0, end: len }
    }
}

impl<R: ReadAt> Read for InOrder<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = (self.end - self.at).min(buffer.len() as u64) as usize;
        self.source.read_exact_at(&mut buffer[..len], self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

impl ReadAt for File {
    fn len(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        FileExt::read_exact_at(self, buffer, offset)
    }
}

impl ReadAt for [u8] {
    fn len(&self) -> io::Result<u64> {
        Ok(<[u8]>::len(self) as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let bytes = start.checked_add(buffer.len()).and_then(|end| self.get(start..end));
        buffer.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }
}

impl<T: ReadAt + ?Sized> ReadAt for &T {
    fn len(&self) -> io::Result<u64> {
        (**self).len()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buffer, offset)
    }

    fn read_ahead(&self, range: Range<u64>) {
        (**self).read_ahead(range);
    }
}

impl<T: ReadAt + Send + ?Sized> ReadAt for Arc<T> {
    fn len(&self) -> io::Result<u64> {
        (**self).len()
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        (**self).read_exact_at(buffer, offset)
    }

    fn read_ahead(&self, range: Range<u64>) {
        (**self).read_ahead(range);
    }
}

impl ReadAt for Vec<u8> {
    fn len(&self) -> io::Result<u64> {
        ReadAt::len(&self[..])
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self[..].read_exact_at(buffer, offset)
    }
}
