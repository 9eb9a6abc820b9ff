//! Uploads in parts that were neither completed nor aborted, as after a kill -9. Their parts cost money.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use object_store::client::HttpRequestBody;
use object_store::path::Path as Key;
use object_store::signer::{HeaderName, HeaderValue, Method, SignedUrlOptions};
use object_store::{ObjectStoreExt, PutPayload};

use crate::address::Address;
use crate::client::{Client, request};
use crate::error::{Error, element};
use crate::origin::Origin;
use crate::store::Requests;
use crate::transport::PATIENCE;

/// An upload that is not finished.
#[derive(Clone, Debug)]
pub struct UnfinishedUpload {
    /// The object that it would become.
    pub address: Address,
    /// When it began, in seconds since 1970, if the store says so.
    pub begun: Option<i64>,
    id: String,
}

impl UnfinishedUpload {
    /// The object that it would become, as messages show it.
    pub fn name(&self) -> PathBuf {
        self.address.to_path()
    }
}

impl Client {
    /// The unfinished uploads below `address`.
    ///
    /// # Errors
    /// [`Error::Configuration`] for a store other than S3, which does not list them;
    /// [`Error::Request`].
    pub fn unfinished(&self, address: &Address) -> Result<Vec<UnfinishedUpload>, Error> {
        let store = self.store(address)?;
        let place = || address.to_path().display().to_string();
        let Some(requests) = &store.requests else {
            let why = "only S3 lists unfinished uploads; Azure removes them after a week, and for \
                       Google Cloud Storage a lifecycle rule does";
            return Err(Error::Configuration { place: place(), why: why.into() });
        };
        let mut found = Vec::new();
        let mut markers = Vec::new();
        loop {
            let mut query = vec![("uploads", ""), ("prefix", address.key.as_ref())];
            query.extend(
                markers.iter().map(|(name, value): &(&str, String)| (*name, value.as_str())),
            );
            let answer =
                self.network().wait(requests.send(Method::GET, &Key::default(), &query, None));
            let text = answer
                .and_then(|(status, text)| match status {
                    200 => Ok(text),
                    status => Err(refused(status, &text)),
                })
                .map_err(|source| Error::Request { action: "list", place: place(), source })?;
            for upload in text.split("<Upload>").skip(1) {
                let part = |name| element(upload, name).map(unescaped).unwrap_or_default();
                let Ok(key) = Key::parse(part("Key")) else { continue };
                let id = part("UploadId");
                let begun = part("Initiated").parse::<jiff::Timestamp>().ok();
                let begun = begun.map(jiff::Timestamp::as_second);
                if key.prefix_matches(&address.key) {
                    found.push(UnfinishedUpload { address: address.with_key(key), begun, id });
                }
            }
            if element(&text, "IsTruncated") != Some("true") {
                return Ok(found);
            }
            let next = |name| element(&text, name).map(unescaped).unwrap_or_default();
            markers = vec![
                ("key-marker", next("NextKeyMarker")),
                ("upload-id-marker", next("NextUploadIdMarker")),
            ];
        }
    }

    /// Aborts an unfinished upload; its parts are gone then.
    ///
    /// # Errors
    /// [`Error::Request`].
    pub fn abort(&self, upload: &UnfinishedUpload) -> Result<(), Error> {
        let UnfinishedUpload { address, id, .. } = upload;
        let store = self.store(address)?;
        let Some(parts) = &store.parts else { return Ok(()) };
        match self.network().wait(parts.replacing.abort_multipart(&address.key, id)) {
            // It was completed or aborted meanwhile.
            Ok(()) | Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(request("abort the upload of", address, &error)),
        }
    }

    /// Aborts an upload by its number, if that can be done.
    pub(crate) fn abort_upload(&self, address: &Address, id: &str) {
        let upload = UnfinishedUpload { address: address.clone(), begun: None, id: id.to_owned() };
        let _ = self.abort(&upload);
    }
}

impl Client {
    /// True if the store of `address` removes an object only if it is the version that is meant: asked with
    /// a small object beside it, which is removed again.
    ///
    /// # Errors
    /// [`Error::Request`], [`Error::Configuration`].
    pub fn probe_conditional_delete(&self, address: &Address) -> Result<bool, Error> {
        let store = self.store(address)?;
        let Some(requests) = &store.requests else { return Ok(false) };
        let folder = address.key.as_ref().rsplit_once('/').map_or("", |(folder, _)| folder);
        let name = format!("{folder}/.wattlock-probe-{:016x}", RandomState::new().hash_one(0));
        let failed = |error| request("write", address, &error);
        let probe = Key::parse(name).map_err(|error| failed(error.into()))?;
        let put = store.objects.put(&probe, PutPayload::from_static(b"probe"));
        self.network().wait(put).map_err(failed)?;
        let other = Some("\"00000000000000000000000000000000\"");
        let answer = self.network().wait(requests.send(Method::DELETE, &probe, &[], other));
        let _ = self.network().wait(store.objects.delete(&probe));
        Ok(answer.is_ok_and(|(status, _)| status == 412))
    }
}

impl Origin {
    /// Removes the object if it is still the version `tag`.
    pub fn remove_if(&self, tag: &str) -> io::Result<()> {
        let Some(requests) = &self.store.requests else {
            return Err(io::Error::other(
                "only S3 supports removing an object on condition that it is unchanged",
            ));
        };
        let removed =
            self.network.wait(requests.send(Method::DELETE, &self.address.key, &[], Some(tag)));
        match removed? {
            (200..300, _) => Ok(()),
            (404, _) => Err(io::Error::other(crate::error::Removed)),
            (412, _) => Err(io::Error::other(crate::error::Changed)),
            (status, text) => Err(refused(status, &text)),
        }
    }
}

impl Requests {
    /// Sends a request without a body. Returns the status and the text of the answer.
    async fn send(
        &self,
        method: Method,
        key: &Key,
        query: &[(&str, &str)],
        if_match: Option<&str>,
    ) -> io::Result<(u16, String)> {
        let mut options = SignedUrlOptions::new().with_query(query.iter().copied());
        if let Some(tag) = if_match {
            let value = HeaderValue::from_str(tag).map_err(io::Error::other)?;
            options = options.with_signed_header(HeaderName::from_static("if-match"), value);
        }
        let signed = self.signer.signed_url_opts(method.clone(), key, VALID, &options).await;
        let url = signed.map_err(|error| crate::error::plain(&error))?;
        let client = self.client.as_ref().map_err(crate::error::plain)?;
        let mut wait = Duration::from_millis(100);
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let mut request = object_store::client::HttpRequest::new(HttpRequestBody::empty());
            *request.method_mut() = method.clone();
            *request.uri_mut() = url.as_str().parse().map_err(io::Error::other)?;
            request.headers_mut().extend(options.signed_headers.clone());
            match client.execute(request).await {
                Ok(answer) => {
                    let status = answer.status().as_u16();
                    let body = answer.into_body().bytes().await.unwrap_or_default();
                    if status < 500 {
                        return Ok((status, String::from_utf8_lossy(&body).into_owned()));
                    }
                }
                // The text of any other error may hold the signed address.
                Err(error) => {
                    if let Some(last) = crate::error::last_word(&error) {
                        return Err(last);
                    }
                }
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
        Err(io::Error::other("the store gave no usable answer for a minute"))
    }
}

/// How long the signature of a request is valid.
const VALID: Duration = Duration::from_secs(300);

/// Between two attempts.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

fn refused(status: u16, text: &str) -> io::Error {
    let code = element(text, "Code").unwrap_or("no reason given");
    io::Error::other(format!("the store answered {status} ({code})"))
}

/// A text of XML.
fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&apos;", "'").replace("&#34;", "\"").replace("&#39;", "'").replace("&amp;", "&")
}
