//! What can go wrong with a store, in words that hold no credentials.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use object_store::Error as StoreError;
use object_store::client::HttpError;

/// Why an operation on a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// What should be an address is none.
    #[error("{}: invalid address: {why}", address.display())]
    Address {
        /// As it was given.
        address: PathBuf,
        /// Which rule it breaks.
        why: String,
    },
    /// The configuration or the credentials of a store cannot be used.
    #[error("{place}: {why}")]
    Configuration {
        /// The store, or the file.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A request failed.
    #[error("cannot {action} {place}: {source}")]
    Request {
        /// What was tried, as a verb: "list", "read".
        action: &'static str,
        /// Where.
        place: String,
        /// What the store said.
        source: io::Error,
    },
    /// The network's threads could not be started.
    #[error("cannot start the threads for requests: {0}")]
    Threads(io::Error),
}

/// An object that is not the one that was opened.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the object changed meanwhile")]
pub(crate) struct Changed;

/// An object that was removed after it was opened.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the object was removed meanwhile")]
pub(crate) struct Removed;

/// An upload in parts that its store does not have any more.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the store no longer has the upload: it was aborted or has expired; run the command again")]
pub(crate) struct UploadGone;

/// No credentials in the environment and the files, and none from the machine itself.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error(
    "no credentials were found in the environment, the configuration files or the metadata service of this \
     machine; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or the variables of your store's tools"
)]
pub(crate) struct NoCredentials;

/// A server that serves an object only as a whole.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the server does not support range requests, and the object is larger than 64 MiB")]
pub(crate) struct NoRanges;

/// A busy store whose `Retry-After` exceeds the time for retries, 60 s.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the store is busy (status {status}); run the command again in {} s", wait.as_secs())]
pub(crate) struct Busy {
    pub status: u16,
    pub wait: Duration,
}

/// A redirect that is not followed.
#[derive(Clone, Debug, thiserror::Error)]
#[error(
    "the store redirects the request to {to} (status {status}), which would give that server the credentials; check \
     the region and the endpoint"
)]
pub(crate) struct Redirected {
    status: u16,
    to: String,
}

impl Redirected {
    /// To the server of `target`, an address or a path.
    pub fn new(status: u16, target: Option<&str>) -> Self {
        let url = target.and_then(|target| reqwest::Url::parse(target).ok());
        let host = url.as_ref().and_then(|url| url.host_str());
        Self { status, to: host.unwrap_or("another address").to_owned() }
    }
}

/// What `error` means, without an address that may be signed, and without the headers of a request.
pub(crate) fn plain(error: &StoreError) -> io::Error {
    let said = said(error);
    let with = |what: &str| match &said {
        Some(said) => format!("{what} ({said})"),
        None => what.to_owned(),
    };
    match error {
        _ if said.as_deref().is_some_and(|said| said.starts_with("NoSuchBucket")) => {
            io::Error::other("there is no such bucket")
        }
        _ if said.as_deref().is_some_and(|said| said.starts_with("ContainerNotFound")) => {
            io::Error::other("there is no such container in the Azure storage account")
        }
        _ if chain(error).any(|error| asks_machine_for_credentials(&error.to_string())) => {
            io::Error::other(NoCredentials)
        }
        StoreError::NotFound { .. }
            if said.as_deref().is_some_and(|said| said.starts_with("NoSuchUpload")) =>
        {
            io::Error::new(io::ErrorKind::NotFound, UploadGone)
        }
        StoreError::NotFound { .. } => io::ErrorKind::NotFound.into(),
        StoreError::AlreadyExists { .. } => io::ErrorKind::AlreadyExists.into(),
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
            io::Error::other(Changed)
        }
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            io::Error::other(with("access denied; check the credentials and their permissions"))
        }
        _ => io::Error::other(said.unwrap_or_else(|| without_addresses(&deepest(error)))),
    }
}

/// True if `error`, or what it stands for, is that a condition of the request does not hold.
pub(crate) fn is_precondition(error: &StoreError) -> bool {
    chain(error).any(|error| {
        matches!(error.downcast_ref(), Some(StoreError::Precondition { .. }))
            || error.to_string().contains("412 Precondition")
    }) || matches!(error, StoreError::Precondition { .. })
}

/// True if `error` is that the server gives no ranges.
pub(crate) fn has_no_ranges(error: &StoreError) -> bool {
    // The last is of one that does not say how long the object is.
    let texts = ["non-partial response", "Range request not supported", "value for CONTENT_RANGE"];
    chain(error).any(|error| texts.iter().any(|text| error.to_string().contains(text)))
}

/// True if a status of the server, in `error`, is `number`.
pub(crate) fn has_status(error: &StoreError, number: &str) -> bool {
    chain(error).any(|error| error.to_string().contains(&format!("status code: {number} ")))
}

/// What an error of a request says, if it is one of those that no other attempt changes.
pub(crate) fn last_word(error: &HttpError) -> Option<io::Error> {
    let source = std::error::Error::source(error)?;
    let redirected = source.downcast_ref::<Redirected>().cloned().map(io::Error::other);
    redirected.or_else(|| source.downcast_ref::<Busy>().copied().map(io::Error::other))
}

/// True if a connection failed, before or after the store did what was asked.
pub(crate) fn is_transport(error: &StoreError) -> bool {
    chain(error).any(|error| error.is::<HttpError>())
        && !chain(error).any(|error| error.is::<Busy>() || error.is::<Redirected>())
}

/// True for a failed request to the metadata service of a machine in a cloud, which is asked where nothing else gives
/// credentials.
fn asks_machine_for_credentials(text: &str) -> bool {
    let services =
        ["/latest/api/token", "/latest/meta-data/", "/computeMetadata/v1", "/metadata/identity/"];
    services.iter().any(|path| text.contains(path))
}

/// `error` and its sources.
fn chain(error: &StoreError) -> impl Iterator<Item = &(dyn std::error::Error + 'static)> {
    let first: &(dyn std::error::Error + 'static) = error;
    std::iter::successors(Some(first), |error| (*error).source())
}

fn deepest(error: &StoreError) -> String {
    chain(error).last().map(ToString::to_string).unwrap_or_default()
}

/// The code and message of an answer in XML, as S3, Google and Azure have them; or its status.
fn said(error: &StoreError) -> Option<String> {
    let text = error.to_string();
    if let Some(code) = element(&text, "Code") {
        let message = element(&text, "Message").filter(|message| !message.is_empty());
        return Some(match message {
            Some(message) => format!("{code}: {}", without_addresses(message)),
            None => code.to_owned(),
        });
    }
    let (_, status) = text.split_once("status code: ")?;
    Some(status.split(':').next()?.trim().to_owned())
}

pub(crate) fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    Some(rest.split_once(&format!("</{name}>"))?.0)
}

/// `text` without the queries of addresses, which may hold signatures and tokens.
fn without_addresses(text: &str) -> String {
    let mut plain = String::new();
    for word in text.split_inclusive(char::is_whitespace) {
        match word.split_once('?') {
            Some((address, rest)) if address.contains("://") => {
                plain += address;
                plain.extend(rest.chars().last().filter(|last| last.is_whitespace()));
            }
            _ => plain += word,
        }
    }
    plain.chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> StoreError {
        StoreError::Generic { store: "S3", source: text.to_owned().into() }
    }

    #[test]
    fn signatures_of_addresses_are_not_shown() {
        let error = generic("error sending GET https://h/b?X-Amz-Signature=abc&sig=def in 1 s");
        assert_eq!(plain(&error).to_string(), "error sending GET https://h/b in 1 s");
    }

    #[test]
    fn what_the_store_says_is_shown() {
        let body = "<Error><Code>ExpiredToken</Code><Message>The token has expired.</Message>\
                    <Token>SECRET</Token></Error>";
        let error = StoreError::PermissionDenied { path: "k".into(), source: body.into() };
        let text = plain(&error).to_string();
        assert_eq!(
            text,
            "access denied; check the credentials and their permissions (ExpiredToken: The token \
             has expired.)"
        );
    }
}
