//! An object that is read at any offset.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use wattlock_file::{ReadAt, RemoteObject};

use crate::address::Address;
use crate::lock::lock;
use crate::network::Network;
use crate::origin::{Origin, Version};
use crate::read_ahead::ReadAhead;
use crate::store::Store;

/// An object in a store. Its first read says how long it is and which version it is, and all later reads are
/// of that version.
pub struct Object {
    origin: Arc<Origin>,
    /// Its address.
    name: PathBuf,
    /// Bytes of the first read.
    first_len: u64,
    version: Mutex<Option<Arc<Version>>>,
    ahead: ReadAhead,
}

/// Bytes of the first read of an object of unknown length: enough for most headers, and little where
/// only a range follows.
const FIRST: u64 = 4096;

/// Objects known to be shorter are read at once.
const SHORT: u64 = 1 << 20;

/// Bytes that are read at least by a read that was not announced, such as of a long header.
const UNANNOUNCED: u64 = 1 << 16;

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Object").field(&self.name).finish()
    }
}

impl Object {
    pub(crate) fn new(
        network: Arc<Network>,
        store: Arc<Store>,
        address: Address,
        len: Option<u64>,
    ) -> Self {
        let name = address.to_path();
        let first_len = len.filter(|len| *len <= SHORT).unwrap_or(0).max(FIRST);
        let origin = Arc::new(Origin { network, store, address });
        let (version, ahead) = (Mutex::default(), ReadAhead::new(Arc::clone(&origin)));
        Self { origin, name, first_len, version, ahead }
    }

    /// The version of the first read, which is done if there was none.
    fn version(&self) -> io::Result<Arc<Version>> {
        let mut version = lock(&self.version);
        if let Some(version) = &*version {
            return Ok(Arc::clone(version));
        }
        let first = self.origin.first(self.first_len);
        let first = Arc::new(self.origin.network.wait(first)?);
        *version = Some(Arc::clone(&first));
        Ok(first)
    }
}

impl ReadAt for Object {
    fn len(&self) -> io::Result<u64> {
        Ok(self.version()?.len)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let version = self.version()?;
        let end = offset.checked_add(buffer.len() as u64).filter(|end| *end <= version.len);
        let end = end.ok_or(io::ErrorKind::UnexpectedEof)?;
        let in_start = (version.start.len() as u64).saturating_sub(offset).min(end - offset);
        let (front, rest) = buffer.split_at_mut(in_start as usize);
        let start = offset.min(version.start.len() as u64) as usize;
        front.copy_from_slice(&version.start[start..start + front.len()]);
        let (mut rest, mut at) = (rest, offset + in_start);
        while !rest.is_empty() {
            let taken = match self.ahead.take(&version, rest, at)? {
                0 => self.read_now(&version, rest, at)?,
                taken => taken,
            };
            at += taken as u64;
            rest = &mut rest[taken..];
        }
        Ok(())
    }

    fn read_ahead(&self, range: Range<u64>) {
        if let Ok(version) = self.version() {
            let start = range.start.max(version.start.len() as u64);
            self.ahead.plan(&version, start.min(range.end)..range.end);
        }
    }
}

impl Object {
    /// Reads what was not fetched ahead, and all of `buffer`.
    fn read_now(
        &self,
        version: &Arc<Version>,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        let end = (offset + (buffer.len() as u64).max(UNANNOUNCED)).min(version.len);
        let (origin, version) = (Arc::clone(&self.origin), Arc::clone(version));
        let frames =
            self.origin.network.wait(async move { origin.range(&version, offset..end).await })?;
        let mut rest = &mut *buffer;
        for frame in &frames {
            let len = frame.len().min(rest.len());
            rest[..len].copy_from_slice(&frame[..len]);
            rest = &mut rest[len..];
        }
        // What was read too much comes next, as a header is read in order.
        let len = buffer.len();
        self.ahead.keep(offset..end, len as u64, frames);
        Ok(len)
    }
}

impl RemoteObject for Object {
    fn name(&self) -> &Path {
        &self.name
    }

    fn modified(&self) -> Option<SystemTime> {
        lock(&self.version).as_ref().map(|version| version.modified)
    }

    fn remove(&self) -> io::Result<()> {
        let version = self.version()?;
        let tag = version.tag.as_deref();
        let tag = tag.ok_or_else(|| io::Error::other("the store sent no ETag"))?;
        self.origin.remove_if(tag)
    }
}
