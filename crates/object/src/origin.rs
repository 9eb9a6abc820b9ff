//! Requests for the bytes of one version of an object.

use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use bytes::Bytes;
use futures_util::TryStreamExt;
use object_store::{Attribute, GetOptions, GetResult, ObjectMeta, ObjectStoreExt};

use crate::address::Address;
use crate::error::{self, Changed, NoRanges, Removed, plain};
use crate::network::Network;
use crate::store::Store;
use crate::transport::MOST_WITHOUT_RANGES;

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

impl Origin {
    /// Reads the first `len` bytes, and with them what the object is.
    pub async fn first(&self, len: u64) -> io::Result<Version> {
        let objects = &self.store.objects;
        let options = GetOptions::new().with_range(Some(0..len));
        match objects.get_opts(&self.address.key, options).await {
            Ok(answer) => {
                let (meta, encoding) = (answer.meta.clone(), encoding(&answer));
                let start = collect(answer).await?.concat().into();
                self.check_is_plain(encoding.as_deref(), &start)?;
                Ok(Version::new(&meta, start))
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
        let (meta, encoding) = (answer.meta.clone(), encoding(&answer));
        if meta.size > MOST_WITHOUT_RANGES {
            return Err(io::Error::other(NoRanges));
        }
        let bytes: Bytes = collect(answer).await?.concat().into();
        self.check_is_plain(encoding.as_deref(), &bytes)?;
        Ok(Version::new(&ObjectMeta { size: bytes.len() as u64, ..meta }, bytes))
    }

    /// Fails for what is called a container, starts like none, and was compressed on its way. Other objects may be stored
    /// with an encoding.
    fn check_is_plain(&self, encoding: Option<&str>, start: &Bytes) -> io::Result<()> {
        let name = self.address.file_name();
        let is_one = [".wlk", ".age"].iter().any(|suffix| name.ends_with(suffix));
        let starts_like_one = CONTAINERS.iter().any(|first| start.starts_with(first));
        match encoding.filter(|_| is_one && !starts_like_one) {
            Some(encoding) => Err(io::Error::other(format!(
                "the server, or a proxy before it, compressed the answer (Content-Encoding: {}); it has to send the \
                 object as it is stored",
                encoding.escape_default()
            ))),
            None => Ok(()),
        }
    }

    /// Reads a range of `version`, and once more if the answer ends early.
    pub async fn range(&self, version: &Version, range: Range<u64>) -> io::Result<Vec<Bytes>> {
        match self.range_once(version, range.clone()).await {
            Err(error) if ENDED_EARLY.contains(&error.kind()) => {
                self.range_once(version, range).await
            }
            answer => answer,
        }
    }

    async fn range_once(&self, version: &Version, range: Range<u64>) -> io::Result<Vec<Bytes>> {
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
            // Not what a file that is shorter gives: nothing is known of the object.
            let why = format!("the store's answer ended after {len} of {wanted} bytes");
            return Err(io::Error::new(io::ErrorKind::ConnectionAborted, why));
        }
        Ok(frames)
    }
}

/// How containers start.
const CONTAINERS: [&[u8]; 3] = [b"wattlock", b"age-encryption.org/", b"-----BEGIN AGE"];

/// The encoding of an answer's body.
fn encoding(answer: &GetResult) -> Option<String> {
    answer.attributes.get(&Attribute::ContentEncoding).map(|value| value.as_ref().to_owned())
}

/// All of an answer's body.
async fn collect(answer: GetResult) -> io::Result<Vec<Bytes>> {
    answer.into_stream().try_collect().await.map_err(|error| match error {
        _ if error::is_precondition(&error) => io::Error::other(Changed),
        error if error::is_transport(&error) => {
            io::Error::new(io::ErrorKind::ConnectionReset, plain(&error))
        }
        error => plain(&error),
    })
}

/// Kinds of errors of answers that were not read to their ends.
const ENDED_EARLY: [io::ErrorKind; 2] =
    [io::ErrorKind::ConnectionAborted, io::ErrorKind::ConnectionReset];

impl Version {
    fn new(meta: &ObjectMeta, start: Bytes) -> Self {
        let (tag, modified) = (meta.e_tag.clone(), meta.last_modified.into());
        Self { len: meta.size, tag, modified, start }
    }
}
