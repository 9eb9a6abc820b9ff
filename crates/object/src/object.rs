//! An object that is read at any offset.

use std::fmt;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{GetOptions, GetResult, ObjectMeta, ObjectStoreExt};
use wattlock_file::{ReadAt, Remote};

use crate::address::Address;
use crate::error::{self, Changed, NoRanges, Removed, plain};
use crate::lock::lock;
use crate::network::Network;
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

/// Where the bytes of an object come from.
pub(crate) struct Origin {
    pub network: Arc<Network>,
    pub store: Arc<Store>,
    pub address: Address,
}

/// One version of an object.
pub(crate) struct Version {
    pub len: u64,
    tag: Option<String>,
    modified: SystemTime,
    /// Its first bytes; all of it if it is short, or if its server serves no ranges.
    start: Bytes,
}

/// Bytes of the first read of an object of unknown length: enough for most headers, and little where
/// only a range follows.
const FIRST: u64 = 4096;

/// Objects known to be shorter are read at once.
const SHORT: u64 = 1 << 20;

/// The longest object that is read as a whole from a server that serves no ranges.
const MOST_WITHOUT_RANGES: u64 = 64 << 20;

/// Bytes that are read at least by a read that nobody announced, such as of a long header.
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
        let first_len = len.filter(|len| *len <= SHORT).unwrap_or(FIRST).max(1);
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

impl Remote for Object {
    fn name(&self) -> &Path {
        &self.name
    }

    fn modified(&self) -> Option<SystemTime> {
        lock(&self.version).as_ref().map(|version| version.modified)
    }

    fn remove(&self) -> io::Result<()> {
        let version = self.version()?;
        let tag = version.tag.as_deref();
        let tag = tag.ok_or_else(|| io::Error::other("the store gives its objects no ETag"))?;
        self.origin.remove_if(tag)
    }
}

impl Origin {
    /// Reads the first `len` bytes, and with them what the object is.
    async fn first(&self, len: u64) -> io::Result<Version> {
        let objects = &self.store.objects;
        let options = GetOptions::new().with_range(Some(0..len));
        match objects.get_opts(&self.address.key, options).await {
            Ok(answer) => {
                let meta = answer.meta.clone();
                let start = collect(answer).await?;
                Ok(Version::new(&meta, start.concat().into()))
            }
            Err(error) if error::has_no_ranges(&error) => self.whole().await,
            // An empty object has no first byte.
            Err(error) if error::has_status(&error, "416") => {
                let meta = objects.head(&self.address.key).await.map_err(|e| plain(&e))?;
                Ok(Version::new(&meta, Bytes::new()))
            }
            Err(error) => Err(plain(&error)),
        }
    }

    async fn whole(&self) -> io::Result<Version> {
        let answer = self.store.objects.get(&self.address.key).await.map_err(|e| plain(&e))?;
        let meta = answer.meta.clone();
        if meta.size > MOST_WITHOUT_RANGES {
            return Err(io::Error::other(NoRanges));
        }
        let bytes: Bytes = collect(answer).await?.concat().into();
        Ok(Version::new(&ObjectMeta { size: bytes.len() as u64, ..meta }, bytes))
    }

    /// Reads a range of `version`.
    pub async fn range(&self, version: &Version, range: Range<u64>) -> io::Result<Vec<Bytes>> {
        let wanted = range.end - range.start;
        let options = GetOptions::new().with_range(Some(range)).with_if_match(version.tag.clone());
        let answer = self.store.objects.get_opts(&self.address.key, options).await;
        let answer = answer.map_err(|error| match &error {
            object_store::Error::NotFound { .. } => io::Error::other(Removed),
            _ if error::is_precondition(&error) => io::Error::other(Changed),
            // It is shorter now.
            _ if error::has_status(&error, "416") => io::Error::other(Changed),
            _ => plain(&error),
        })?;
        // A store that knows no conditions says which version it sends.
        if version.tag.is_some() && answer.meta.e_tag != version.tag
            || answer.meta.size != version.len
        {
            return Err(io::Error::other(Changed));
        }
        let frames = collect(answer).await?;
        let len: usize = frames.iter().map(Bytes::len).sum();
        if len as u64 != wanted {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(frames)
    }
}

/// All of an answer's body.
async fn collect(answer: GetResult) -> io::Result<Vec<Bytes>> {
    answer.into_stream().try_collect().await.map_err(|error| match error {
        _ if error::is_precondition(&error) => io::Error::other(Changed),
        error => plain(&error),
    })
}

impl Version {
    fn new(meta: &ObjectMeta, start: Bytes) -> Self {
        let (tag, modified) = (meta.e_tag.clone(), meta.last_modified.into());
        Self { len: meta.size, tag, modified, start }
    }
}
