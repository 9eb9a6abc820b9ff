//! Requests for the bytes of one version of an object.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{GetOptions, GetResult, ObjectMeta, ObjectStoreExt};

use crate::address::Address;
use crate::error::{self, Changed, NoRanges, Removed, plain};
use crate::network::Network;
use crate::store::Store;

/// Where the bytes of an object come from.
pub(crate) struct Origin {
    pub network: Arc<Network>,
    pub store: Arc<Store>,
    pub address: Address,
}

/// One version of an object.
pub(crate) struct Version {
    pub len: u64,
    pub tag: Option<String>,
    pub modified: SystemTime,
    /// Its first bytes; all of it if it is short, or if its server serves no ranges.
    pub start: Bytes,
}

/// The longest object that is read as a whole from a server that serves no ranges.
const MOST_WITHOUT_RANGES: u64 = 64 << 20;

impl Origin {
    /// Reads the first `len` bytes, and with them what the object is.
    pub async fn first(&self, len: u64) -> io::Result<Version> {
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
