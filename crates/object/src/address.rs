//! Addresses of objects: `s3://bucket/key` and the like.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use object_store::path::Path as Key;

use crate::error::Error;

/// Where an object is, or where the objects of a tree are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    pub(crate) scheme: Scheme,
    /// The bucket or container; of HTTP, the origin: scheme, host and port.
    pub(crate) bucket: String,
    pub(crate) key: Key,
}

/// The kinds of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Scheme {
    S3,
    Google,
    Azure,
    Http,
}

impl Scheme {
    /// What stands before the bucket.
    fn prefix(self) -> &'static str {
        match self {
            Self::S3 => "s3://",
            Self::Google => "gs://",
            Self::Azure => "az://",
            Self::Http => "",
        }
    }
}

/// True for what is written like an address, `scheme://…`, and not like a path.
pub fn is_address(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    let scheme = text.iter().position(|&byte| byte == b':').map(|end| &text[..end]);
    scheme.is_some_and(|scheme| {
        text[scheme.len()..].starts_with(b"://")
            && scheme.first().is_some_and(u8::is_ascii_alphabetic)
            && scheme.iter().all(|byte| byte.is_ascii_alphanumeric() || b"+.-".contains(byte))
    })
}

/// The path that an address of the scheme `file` stands for.
pub fn local_path(address: &Path) -> Option<PathBuf> {
    let rest = address.to_str()?.strip_prefix("file://")?;
    let path = rest.strip_prefix("localhost").unwrap_or(rest);
    path.starts_with('/').then(|| PathBuf::from(OsString::from_vec(decoded(path))))
}

/// `text` with the bytes that its percent signs stand for.
fn decoded(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        let number = after.first_chunk::<2>().and_then(|hex| str::from_utf8(hex).ok());
        match number.and_then(|hex| u8::from_str_radix(hex, 16).ok()).filter(|_| byte == b'%') {
            Some(encoded) => {
                bytes.push(encoded);
                rest = &after[2..];
            }
            None => {
                bytes.push(byte);
                rest = after;
            }
        }
    }
    bytes
}

impl Address {
    /// Reads an address. Keys are taken as they are written; only those of HTTP are percent-encoded.
    ///
    /// # Errors
    /// [`Error::Address`].
    pub fn parse(text: &Path) -> Result<Self, Error> {
        let wrong = |why: &str| Error::Address { address: text.to_owned(), why: why.to_owned() };
        let written = text.to_str().ok_or_else(|| wrong("it is not UTF-8"))?;
        let (scheme, rest) =
            written.split_once("://").ok_or_else(|| wrong("it has no scheme such as s3://"))?;
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let (scheme, bucket) = match scheme.to_ascii_lowercase().as_str() {
            "s3" => (Scheme::S3, bucket.to_owned()),
            "gs" => (Scheme::Google, bucket.to_owned()),
            "az" => (Scheme::Azure, bucket.to_owned()),
            web @ ("http" | "https") => (Scheme::Http, format!("{web}://{bucket}")),
            "file" => return Err(wrong("file:// is for files of this machine: file:///PATH")),
            _ => return Err(wrong("unknown scheme; use s3, gs, az, http, https or file")),
        };
        if bucket.is_empty() || bucket.ends_with("://") {
            return Err(wrong("it names no bucket"));
        }
        if scheme == Scheme::Http && (key.contains(['?', '#']) || bucket.contains('@')) {
            return Err(wrong("addresses with a query, a fragment or a user are not supported"));
        }
        let parsed = match scheme {
            Scheme::Http => Key::from_url_path(key),
            _ => Key::parse(key.trim_end_matches('/')),
        };
        let key = parsed.map_err(|error| wrong(&error.to_string()))?;
        Ok(Self { scheme, bucket, key })
    }

    /// The address of `key` in the same bucket.
    pub(crate) fn with_key(&self, key: Key) -> Self {
        Self { key, ..self.clone() }
    }

    /// The address of the object at the relative path `below` this one.
    ///
    /// # Errors
    /// [`Error::Address`] for what cannot be a key, such as a name that is not UTF-8.
    pub fn join(&self, below: &OsStr) -> Result<Self, Error> {
        let mut text = self.to_path().into_os_string();
        if !text.as_encoded_bytes().ends_with(b"/") {
            text.push("/");
        }
        text.push(below);
        Self::parse(Path::new(&text))
    }

    /// The address as text, which is also how messages show it.
    pub fn to_path(&self) -> PathBuf {
        let Self { scheme, bucket, key } = self;
        format!("{}{bucket}/{key}", scheme.prefix()).into()
    }

    /// The bucket or container, as messages show it.
    pub fn bucket_name(&self) -> String {
        format!("{}{}", self.scheme.prefix(), self.bucket)
    }

    /// The last part of the key; empty for a whole bucket.
    pub fn file_name(&self) -> &str {
        self.key.filename().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_told_from_paths() {
        for path in ["s3://b/k", "gs://b", "http://127.0.0.1:1/x", "az://c/k", "ftp://h/x"] {
            assert!(is_address(Path::new(path)), "{path}");
        }
        for path in ["", "a", "/a://b", "./s3://b", "s3:/b/k", "C:x", "://", "9p://x"] {
            assert!(!is_address(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn keys_are_taken_as_written() {
        let read = |text: &str| Address::parse(Path::new(text)).map(|address| address.to_path());
        for text in ["s3://b/a/50%.txt", "s3://b/a b/ü?#~*.txt", "gs://b/%20", "az://c/x"] {
            assert_eq!(read(text).unwrap(), Path::new(text));
        }
        assert_eq!(read("S3://b/a/").unwrap(), Path::new("s3://b/a"));
        assert_eq!(read("http://h:80/a%20b").unwrap(), Path::new("http://h:80/a b"));
        for wrong in ["s3://", "s3:///k", "s3://b/a/../c", "s3://b/a//c", "ftp://h/x", "http:///x"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        assert!(read("https://h/x?token=1").is_err());
    }

    #[test]
    fn addresses_of_files_are_paths() {
        let path = |text: &str| local_path(Path::new(text));
        assert_eq!(path("file:///a/b%20c"), Some("/a/b c".into()));
        assert_eq!(path("file://localhost/a"), Some("/a".into()));
        assert_eq!((path("file://other/a"), path("s3://b/a"), path("/a")), (None, None, None));
    }

    #[test]
    fn a_path_is_joined() {
        let tree = Address::parse(Path::new("s3://b/backup")).unwrap();
        let joined = tree.join(OsStr::new("d/a.txt.wlk")).unwrap();
        assert_eq!(joined.to_path(), Path::new("s3://b/backup/d/a.txt.wlk"));
        assert_eq!(joined.file_name(), "a.txt.wlk");
        let bucket = Address::parse(Path::new("s3://b")).unwrap();
        assert_eq!(bucket.join(OsStr::new("a")).unwrap().to_path(), Path::new("s3://b/a"));
    }
}
