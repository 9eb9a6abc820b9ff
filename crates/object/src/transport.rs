//! How requests are sent: the client of the library, with what it lacks.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use futures_util::TryStreamExt;
use object_store::client::{
    ClientConfigKey, HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest,
    HttpResponse, HttpService,
};
use object_store::signer::{HeaderMap, HeaderValue, Method};
use object_store::{ClientOptions, Error as StoreError};

use crate::error::{Busy, NoRanges, Redirected};
use crate::listing::{self, ForeignKey};
use crate::lock::lock;

/// Makes the clients of one store.
#[derive(Clone)]
pub(crate) struct Connector {
    certificates: Certificates,
    /// Sent with every request.
    headers: HeaderMap,
    follows_redirects: bool,
    shared: Arc<Shared>,
}

/// The authorities that a server's certificate may be from.
#[derive(Clone, Default)]
pub(crate) enum Certificates {
    /// Those of the system.
    #[default]
    System,
    /// Only these.
    Only(Vec<reqwest::Certificate>),
}

#[derive(Default)]
struct Shared {
    foreign: Mutex<Vec<ForeignKey>>,
    reached: Mutex<Reached>,
}

/// Whether the store was ever there.
#[derive(Clone, Copy, Default)]
enum Reached {
    #[default]
    NotTried,
    /// Nothing but failed connections since then.
    NeverSince(Instant),
    Yes,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Connector")
    }
}

impl Connector {
    /// Makes clients that believe the servers with these certificates, and follow no redirect: it would give the
    /// credentials to another server.
    pub fn new(certificates: Certificates) -> Self {
        let (headers, shared) = (HeaderMap::new(), Arc::default());
        Self { certificates, headers, follows_redirects: false, shared }
    }

    /// The same, with a header in every request.
    pub fn with_header(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.insert(name, HeaderValue::from_static(value));
        self
    }

    /// The same for requests without credentials, which follow redirects.
    pub fn following_redirects(self) -> Self {
        Self { follows_redirects: true, ..self }
    }

    /// The keys that were left out of answers to listings since the last call.
    pub fn take_foreign(&self) -> Vec<ForeignKey> {
        std::mem::take(&mut *lock(&self.shared.foreign))
    }
}

impl HttpConnector for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let value = |key| options.get_config_value(&key).unwrap_or_default();
        // The library has less patience with the machine's own source of credentials.
        let connect_timeout = match value(ClientConfigKey::ConnectTimeout).as_str() {
            "1s" => Duration::from_secs(1),
            _ => CONNECT_TIMEOUT,
        };
        let mut headers = self.headers.clone();
        // An object is read as it is stored.
        headers.insert("accept-encoding", HeaderValue::from_static("identity"));
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("wattlock/", env!("CARGO_PKG_VERSION")))
            .default_headers(headers)
            .connect_timeout(connect_timeout)
            .read_timeout(READ_TIMEOUT)
            .https_only(value(ClientConfigKey::AllowHttp) != "true")
            .no_gzip()
            .no_brotli()
            .no_zstd()
            .no_deflate();
        if !self.follows_redirects {
            client = client.redirect(reqwest::redirect::Policy::none());
        }
        if let Certificates::Only(certificates) = &self.certificates {
            client = client.tls_certs_only(certificates.iter().cloned());
        }
        let client = client.build().map_err(|error| StoreError::Generic {
            store: "HTTP client",
            source: Box::new(error),
        })?;
        let follows_redirects = self.follows_redirects;
        Ok(HttpClient::new(Transport {
            client: HttpClient::new(client),
            follows_redirects,
            shared: Arc::clone(&self.shared),
        }))
    }
}

/// Sends requests, and makes answers such that the library understands them.
struct Transport {
    client: HttpClient,
    follows_redirects: bool,
    shared: Arc<Shared>,
}

impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Transport")
    }
}

impl Transport {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let is_read = [Method::GET, Method::HEAD].contains(request.method());
        let is_get = *request.method() == Method::GET;
        let is_listing = is_get && listing::is_one(request.uri().query());
        let wants_all = is_get && !request.headers().contains_key("range");
        let answer = self.answer(request).await?;
        let status = answer.status();
        if status.is_redirection() && status.as_u16() != 304 && !self.follows_redirects {
            let target = answer.headers().get("location").and_then(|to| to.to_str().ok());
            let redirected = Redirected::new(status.as_u16(), target);
            return Err(HttpError::new(HttpErrorKind::Unknown, redirected));
        }
        if !status.is_success() || !is_read {
            return Ok(answer);
        }
        if is_listing {
            return self.usable(answer).await;
        }
        match answer.headers().contains_key("content-length") {
            true => Ok(answer),
            false => with_length(answer, wants_all).await,
        }
    }

    /// The answer to a request, which is sent again as long as the store asks for that.
    async fn answer(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let begun = Instant::now();
        loop {
            let answer = match self.client.execute(request.clone()).await {
                Ok(answer) => answer,
                Err(error) => return Err(self.unless_never_reached(error)),
            };
            *lock(&self.shared.reached) = Reached::Yes;
            let status = answer.status().as_u16();
            let after =
                answer.headers().get("retry-after").filter(|_| [429, 503].contains(&status));
            let Some(wait) = after.and_then(|after| wait(after.to_str().ok()?)) else {
                return Ok(answer);
            };
            if begun.elapsed().saturating_add(wait) > PATIENCE {
                return Err(HttpError::new(HttpErrorKind::Unknown, Busy { status, wait }));
            }
            tokio::time::sleep(wait).await;
        }
    }

    /// An error, which is final if there were only failed connections for a while: a wrong address is said soon.
    fn unless_never_reached(&self, error: HttpError) -> HttpError {
        if error.kind() != HttpErrorKind::Connect {
            return error;
        }
        let mut reached = lock(&self.shared.reached);
        match *reached {
            Reached::Yes => error,
            Reached::NotTried => {
                *reached = Reached::NeverSince(Instant::now());
                error
            }
            Reached::NeverSince(first) if first.elapsed() < NEVER_REACHED => error,
            Reached::NeverSince(_) => HttpError::new(HttpErrorKind::Unknown, error),
        }
    }

    /// The answer to a listing with only the keys that can be used.
    async fn usable(&self, answer: HttpResponse) -> Result<HttpResponse, HttpError> {
        let (mut parts, body) = answer.into_parts();
        let usable = listing::usable(&body.bytes().await?);
        lock(&self.shared.foreign).extend(usable.foreign);
        parts.headers.remove("content-length");
        Ok(HttpResponse::from_parts(parts, usable.text.into()))
    }
}

impl HttpService for Transport {
    fn call<'s, 'f>(
        &'s self,
        request: HttpRequest,
    ) -> Pin<Box<dyn Future<Output = Result<HttpResponse, HttpError>> + Send + 'f>>
    where
        's: 'f,
        Self: 'f,
    {
        Box::pin(self.send(request))
    }
}

/// An answer that does not say how long it is, as one in chunks or from some proxies, with its length, which the
/// library insists on. One that `wants_all` of an object is read for that.
async fn with_length(answer: HttpResponse, wants_all: bool) -> Result<HttpResponse, HttpError> {
    let (mut parts, body) = answer.into_parts();
    let range = parts.headers.get("content-range").and_then(|range| range.to_str().ok());
    if !wants_all || parts.status.as_u16() == 206 {
        // Of an answer that is no range, or has no body, nobody uses the length.
        let len = range.and_then(range_len).unwrap_or(0);
        parts.headers.insert("content-length", HeaderValue::from(len));
        return Ok(HttpResponse::from_parts(parts, body));
    }
    let mut stream = body.bytes_stream();
    let mut all = Vec::new();
    while let Some(frame) = stream.try_next().await? {
        if (all.len() + frame.len()) as u64 > MOST_WITHOUT_RANGES {
            return Err(HttpError::new(HttpErrorKind::Unknown, NoRanges));
        }
        all.extend_from_slice(&frame);
    }
    parts.headers.insert("content-length", HeaderValue::from(all.len()));
    Ok(HttpResponse::from_parts(parts, all.into()))
}

/// Bytes of the range in a header such as `bytes 0-4095/100000`.
fn range_len(header: &str) -> Option<u64> {
    let (first, rest) = header.trim().strip_prefix("bytes ")?.split_once('-')?;
    let (last, _) = rest.split_once('/')?;
    last.parse::<u64>().ok()?.checked_sub(first.parse().ok()?)?.checked_add(1)
}

/// How long a store asks to wait: in seconds, or until a date.
fn wait(retry_after: &str) -> Option<Duration> {
    let retry_after = retry_after.trim();
    let wait = match retry_after.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => {
            let date = jiff::fmt::rfc2822::parse(retry_after).ok()?.timestamp();
            let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok()?;
            let date = Duration::from_secs(date.as_second().try_into().unwrap_or_default());
            date.saturating_sub(now)
        }
    };
    Some(wait.max(SHORTEST_WAIT))
}

/// How long a store that is busy is asked again.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The longest object that is read as a whole from a server that serves no ranges.
pub(crate) const MOST_WITHOUT_RANGES: u64 = 64 << 20;

/// Between two requests, also where the store asks for none.
const SHORTEST_WAIT: Duration = Duration::from_millis(20);

/// A store that no connection led to yet is given up after this.
const NEVER_REACHED: Duration = Duration::from_secs(8);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// A request has no limit as a whole, as it may carry hundreds of megabytes; an answer that does not go on is one
/// that is lost.
const READ_TIMEOUT: Duration = Duration::from_secs(300);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_read() {
        assert_eq!(wait("0"), Some(SHORTEST_WAIT));
        assert_eq!(wait(" 120 "), Some(Duration::from_secs(120)));
        assert_eq!(wait("Wed, 21 Oct 2015 07:28:00 GMT"), Some(SHORTEST_WAIT));
        assert!(wait("Wed, 21 Oct 2499 07:28:00 GMT").is_some_and(|wait| wait > PATIENCE));
        assert_eq!((wait("soon"), wait(""), wait("-1")), (None, None, None));
    }

    #[test]
    fn lengths_of_ranges_are_read() {
        assert_eq!(range_len("bytes 0-4095/100000"), Some(4096));
        assert_eq!(range_len("bytes 7-7/*"), Some(1));
        for wrong in ["bytes */100", "bytes 5-4/9", "0-4/9", "bytes 0-18446744073709551615/1", ""] {
            assert_eq!(range_len(wrong), None, "{wrong}");
        }
    }
}
