//! One bucket, opened: what may be asked of it.

use std::net::IpAddr;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use std::{env, fs};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::signer::Signer;
use object_store::{BackoffConfig, ClientOptions, ObjectStore, RetryConfig};

use crate::address::{Address, Scheme};
use crate::error::Error;
use crate::profile::Profile;
use crate::transport::{Certificates, Connector, PATIENCE};

/// A bucket and the ways to it.
pub(crate) struct Store {
    pub objects: Arc<dyn ObjectStore>,
    /// Uploads in parts; none where objects are only read.
    pub parts: Option<Parts>,
    /// Requests that the library does not have; of S3 only.
    pub requests: Option<Requests>,
    /// Makes its clients.
    pub connector: Connector,
}

/// Uploads in parts.
pub(crate) struct Parts {
    pub replacing: Arc<dyn MultipartStore>,
    /// The same, and completes none over an object that exists, where the store can tell. Made when it is
    /// first used: a client of its own takes some milliseconds.
    pub creating: Lazy<Arc<dyn MultipartStore>>,
}

/// Made when it is first used.
type Lazy<T> = LazyLock<T, Box<dyn FnOnce() -> T + Send>>;

/// Signed requests.
pub(crate) struct Requests {
    pub signer: Arc<dyn Signer>,
    pub client: Lazy<Result<HttpClient, object_store::Error>>,
}

impl Store {
    /// Opens the bucket of `address`. No request is made.
    ///
    /// # Errors
    /// [`Error::Configuration`].
    pub fn open(address: &Address) -> Result<Self, Error> {
        let bucket = &address.bucket;
        let connector = || certificates().map(Connector::new);
        let failed = |error: object_store::Error| {
            let place = address.to_path().display().to_string();
            Error::Configuration { place, why: crate::error::plain(&error).to_string() }
        };
        match address.scheme {
            Scheme::S3 => s3(bucket).map_err(|error| match error {
                Either::Ours(error) => error,
                Either::Library(error) => failed(error),
            }),
            Scheme::Google => {
                let builder = GoogleCloudStorageBuilder::from_env().with_bucket_name(bucket);
                let connector = connector()?;
                let builder = builder.with_http_connector(connector.clone());
                let store = builder
                    .with_client_options(options(allows_http()))
                    .with_retry(retries())
                    .build();
                Ok(Self::without_conditions(store.map_err(failed)?, connector))
            }
            Scheme::Azure => {
                let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
                let connector = connector()?;
                let builder = builder.with_http_connector(connector.clone());
                let store = builder
                    .with_client_options(options(allows_http()))
                    .with_retry(retries())
                    .build();
                Ok(Self::without_conditions(store.map_err(failed)?, connector))
            }
            Scheme::Http => {
                let connector = connector()?.following_redirects();
                let builder = HttpBuilder::new().with_url(bucket);
                let builder = builder
                    .with_client_options(options(true))
                    .with_http_connector(connector.clone());
                let store = builder.with_retry(retries()).build().map_err(failed)?;
                Ok(Self { objects: Arc::new(store), parts: None, requests: None, connector })
            }
        }
    }
}

impl Store {
    /// A store that takes no conditions with the end of an upload.
    fn without_conditions(store: impl ObjectStore + MultipartStore, connector: Connector) -> Self {
        let store = Arc::new(store);
        let replacing: Arc<dyn MultipartStore> = store.clone();
        let same = Arc::clone(&replacing);
        let creating: Lazy<Arc<dyn MultipartStore>> = LazyLock::new(Box::new(|| same));
        let parts = Some(Parts { replacing, creating });
        Self { objects: store, parts, requests: None, connector }
    }
}

enum Either {
    Ours(Error),
    Library(object_store::Error),
}

fn s3(bucket: &str) -> Result<Store, Either> {
    let mut builder = AmazonS3Builder::from_env().with_bucket_name(bucket);
    let is_given = |builder: &AmazonS3Builder, key| {
        builder.get_config_value(&key).is_some_and(|v| !v.is_empty())
    };
    let has_key = is_given(&builder, AmazonS3ConfigKey::AccessKeyId);
    let profile = Profile::of_user(has_key).map_err(Either::Ours)?;
    // Variables come before files, and a key is only taken together with its secret.
    if !has_key
        && let Some(id) = profile.get("aws_access_key_id")
        && let Some(secret) = profile.get("aws_secret_access_key")
    {
        builder = builder.with_access_key_id(id).with_secret_access_key(secret);
        if let Some(token) = profile.get("aws_session_token") {
            builder = builder.with_token(token);
        }
    }
    // The builder takes AWS_DEFAULT_REGION into account when it builds.
    let has_region = [AmazonS3ConfigKey::Region, AmazonS3ConfigKey::DefaultRegion]
        .into_iter()
        .any(|key| is_given(&builder, key));
    if let Some(region) = profile.get("region").filter(|_| !has_region) {
        builder = builder.with_region(region);
    }
    let endpoint = [AmazonS3ConfigKey::S3Endpoint, AmazonS3ConfigKey::Endpoint]
        .into_iter()
        .find_map(|key| builder.get_config_value(&key).filter(|value| !value.is_empty()));
    let endpoint = match endpoint {
        Some(endpoint) => Some(endpoint),
        None => profile.s3_endpoint().map_err(Either::Ours)?,
    };
    let endpoint = endpoint.map(|url| Endpoint::parse(bucket, &url)).transpose();
    let endpoint = endpoint.map_err(Either::Ours)?;
    let is_encrypted = endpoint.as_ref().is_none_or(|endpoint| endpoint.is_encrypted);
    let certificates = match is_encrypted {
        true => certificates().map_err(Either::Ours)?,
        // None are needed, and to read those of the system takes a while.
        false => Certificates::Only(Vec::new()),
    };
    let connector = Connector::new(certificates);
    let options = options(!is_encrypted);
    if let Some(endpoint) = endpoint {
        builder = builder.with_endpoint(endpoint.url);
    }
    let builder = builder
        .with_http_connector(connector.clone())
        .with_retry(retries())
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // TLS protects what is sent, and hashing it a second time would take as long as sending it.
        .with_unsigned_payload(is_encrypted);
    let only_new = connector.clone().with_header("if-none-match", "*");
    let builder = builder.with_client_options(options.clone());
    let store = builder.clone().build();
    let store = Arc::new(store.map_err(Either::Library)?);
    let replacing = store.clone();
    let creating: Lazy<Arc<dyn MultipartStore>> = LazyLock::new(Box::new(move || {
        match builder.with_http_connector(only_new).build() {
            Ok(creating) => Arc::new(creating),
            // The object's absence is checked before, too.
            Err(_) => replacing,
        }
    }));
    let connects = connector.clone();
    let client = LazyLock::new(Box::new(move || connects.connect(&options)) as _);
    Ok(Store {
        objects: store.clone(),
        parts: Some(Parts { replacing: store.clone(), creating }),
        requests: Some(Requests { signer: store, client }),
        connector,
    })
}

/// True if the user allows requests without TLS to other machines.
fn allows_http() -> bool {
    env::var("AWS_ALLOW_HTTP").is_ok_and(|value| value == "true" || value == "1")
}

/// The server that requests go to.
#[derive(Debug)]
struct Endpoint {
    /// Its address, as the client reads it.
    url: String,
    is_encrypted: bool,
}

impl Endpoint {
    /// Reads an address. Without TLS it has to be this machine, or allowed.
    ///
    /// # Errors
    /// [`Error::Configuration`].
    fn parse(bucket: &str, text: &str) -> Result<Self, Error> {
        let wrong = |why: &str| {
            Err(Error::Configuration { place: format!("s3://{bucket}"), why: why.to_owned() })
        };
        let Ok(url) = reqwest::Url::parse(text) else {
            return wrong("the endpoint is no address such as https://HOST:PORT");
        };
        let is_encrypted = url.scheme() == "https";
        if !is_encrypted && url.scheme() != "http" || !url.has_host() {
            return wrong("the endpoint is no address such as https://HOST:PORT");
        }
        if !url.username().is_empty() || url.password().is_some() {
            return wrong("the endpoint holds a user (user@host), which is not supported");
        }
        if !is_encrypted && !allows_http() && !url.host_str().is_some_and(is_this_machine) {
            return wrong("the endpoint does not use TLS; use https, or set AWS_ALLOW_HTTP=true");
        }
        let url = url.as_str().trim_end_matches('/').to_owned();
        Ok(Self { url, is_encrypted })
    }
}

/// True for a host that no network leads to.
fn is_this_machine(host: &str) -> bool {
    let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
    host == "localhost" || address.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// The certificates of `AWS_CA_BUNDLE`, or those of the system.
fn certificates() -> Result<Certificates, Error> {
    let bundle = env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty());
    let Some(path) = bundle else { return Ok(Certificates::System) };
    let place = format!("AWS_CA_BUNDLE: {}", Path::new(&path).display());
    let wrong = |why: String| Error::Configuration { place: place.clone(), why };
    let bundle = fs::read(&path).map_err(|error| wrong(error.to_string()))?;
    let certificates = reqwest::Certificate::from_pem_bundle(&bundle).ok();
    let certificates = certificates.filter(|certificates| !certificates.is_empty());
    certificates.map(Certificates::Only).ok_or_else(|| wrong("it holds no certificates".into()))
}

/// What the library asks of its clients; the rest is in [`Connector`].
fn options(allow_http: bool) -> ClientOptions {
    ClientOptions::new()
        .with_allow_http(allow_http)
        .with_default_content_type("application/octet-stream")
}

/// Waits that grow at random, for a minute.
fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(10),
        base: 3.0,
    };
    // The time is what ends them.
    RetryConfig { backoff, max_retries: 1000, retry_timeout: PATIENCE }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_this_machine_goes_without_tls() {
        for endpoint in [
            "http://127.0.0.1:9000",
            "http://127.1.2.3/path/",
            "HTTP://LocalHost:1",
            "http://[::1]:9000",
            "http://0x7f.1",
        ] {
            let read = Endpoint::parse("b", endpoint).unwrap();
            assert!(!read.is_encrypted, "{endpoint}");
        }
        for endpoint in [
            "http://127.evil.example",
            "http://127.0.0.1@evil.example",
            "http://127.0.0.1:9000@evil.example",
            "http://localhost.evil.example",
            "http://user:secret@localhost",
            "http://10.0.0.1",
            "http://[::2]",
            "http://",
            "127.0.0.1:9000",
            "localhost",
            "file:///tmp",
            "",
        ] {
            let refused = Endpoint::parse("b", endpoint).unwrap_err().to_string();
            assert!(!refused.contains("secret"), "{refused}");
        }
        for endpoint in ["https://127.evil.example", "hTTps://host:1/path"] {
            assert!(Endpoint::parse("b", endpoint).unwrap().is_encrypted);
        }
        // What is checked is what is used.
        assert_eq!(
            Endpoint::parse("b", "http:\\\\127.0.0.1\\@e").unwrap().url,
            "http://127.0.0.1/@e"
        );
    }
}
