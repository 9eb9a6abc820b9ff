//! One bucket, opened: what may be asked of it.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;
use std::{env, fs};

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::client::{HttpClient, HttpConnector, ReqwestConnector};
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::http::HttpBuilder;
use object_store::multipart::MultipartStore;
use object_store::signer::{HeaderMap, HeaderValue, Signer};
use object_store::{BackoffConfig, ObjectStore, RetryConfig};
use object_store::{Certificate, client::ClientOptions};

use crate::address::{Address, Scheme};
use crate::error::Error;
use crate::profile::Profile;

/// A bucket and the ways to it.
pub(crate) struct Store {
    pub objects: Arc<dyn ObjectStore>,
    /// Uploads in parts; none where objects are only read.
    pub parts: Option<Parts>,
    /// Requests that the library does not have; of S3 only.
    pub requests: Option<Requests>,
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
                let options = options()?.with_allow_http(allows_http());
                let store = builder.with_client_options(options).with_retry(retries()).build();
                Ok(Self::without_conditions(store.map_err(failed)?))
            }
            Scheme::Azure => {
                let builder = MicrosoftAzureBuilder::from_env().with_container_name(bucket);
                let options = options()?.with_allow_http(allows_http());
                let store = builder.with_client_options(options).with_retry(retries()).build();
                Ok(Self::without_conditions(store.map_err(failed)?))
            }
            Scheme::Http => {
                let options = options()?.with_allow_http(true);
                let builder = HttpBuilder::new().with_url(bucket).with_client_options(options);
                let store = builder.with_retry(retries()).build().map_err(failed)?;
                Ok(Self { objects: Arc::new(store), parts: None, requests: None })
            }
        }
    }
}

impl Store {
    /// A store that takes no conditions with the end of an upload.
    fn without_conditions(store: impl ObjectStore + MultipartStore) -> Self {
        let store = Arc::new(store);
        let replacing: Arc<dyn MultipartStore> = store.clone();
        let same = Arc::clone(&replacing);
        let creating: Lazy<Arc<dyn MultipartStore>> = LazyLock::new(Box::new(|| same));
        Self { objects: store, parts: Some(Parts { replacing, creating }), requests: None }
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
    let endpoint = endpoint.or_else(|| profile.get("endpoint_url").map(str::to_owned));
    let is_encrypted =
        endpoint.as_ref().is_none_or(|url| !url.to_ascii_lowercase().starts_with("http://"));
    let mut options = if is_encrypted { options().map_err(Either::Ours)? } else { without_tls() };
    if let Some(endpoint) = endpoint {
        options = options.with_allow_http(allows_http() || is_this_machine(&endpoint));
        if !is_encrypted && !allows_http() && !is_this_machine(&endpoint) {
            return Err(Either::Ours(Error::Configuration {
                place: format!("s3://{bucket}"),
                why: "the endpoint does not use TLS; use https, or set AWS_ALLOW_HTTP=true".into(),
            }));
        }
        builder = builder.with_endpoint(endpoint);
    }
    let builder = builder
        .with_retry(retries())
        .with_conditional_put(S3ConditionalPut::ETagMatch)
        // TLS protects what is sent, and hashing it a second time would take as long as sending it.
        .with_unsigned_payload(is_encrypted);
    let only_new = HeaderMap::from_iter([(
        object_store::signer::HeaderName::from_static("if-none-match"),
        HeaderValue::from_static("*"),
    )]);
    let store = builder.clone().with_client_options(options.clone()).build();
    let store = Arc::new(store.map_err(Either::Library)?);
    let (replacing, creating) = (store.clone(), options.clone().with_default_headers(only_new));
    let creating: Lazy<Arc<dyn MultipartStore>> = LazyLock::new(Box::new(move || {
        match builder.with_client_options(creating).build() {
            Ok(creating) => Arc::new(creating),
            // The object's absence is checked before, too.
            Err(_) => replacing,
        }
    }));
    let client =
        LazyLock::new(Box::new(move || ReqwestConnector::default().connect(&options)) as _);
    Ok(Store {
        objects: store.clone(),
        parts: Some(Parts { replacing: store.clone(), creating }),
        requests: Some(Requests { signer: store, client }),
    })
}

/// True if the user allows requests without TLS to other machines.
fn allows_http() -> bool {
    env::var("AWS_ALLOW_HTTP").is_ok_and(|value| value == "true" || value == "1")
}

/// True for an endpoint that no network leads to.
fn is_this_machine(endpoint: &str) -> bool {
    let host = endpoint.split_once("://").map_or(endpoint, |(_, rest)| rest);
    let host = host.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

/// How requests are sent, with the certificates of `AWS_CA_BUNDLE` or of the system. A request has no limit as
/// a whole, as it may carry hundreds of megabytes; an answer that does not go on is one that is lost.
fn options() -> Result<ClientOptions, Error> {
    let options = common();
    let certificates = env::var_os("AWS_CA_BUNDLE").filter(|path| !path.is_empty());
    let Some(path) = certificates else { return Ok(options) };
    let place = format!("AWS_CA_BUNDLE: {}", Path::new(&path).display());
    let wrong = |why: String| Error::Configuration { place: place.clone(), why };
    let bundle = fs::read(&path).map_err(|error| wrong(error.to_string()))?;
    let certificates = Certificate::from_pem_bundle(&bundle);
    let certificates = certificates.map_err(|_| wrong("it holds no certificates".into()))?;
    // They stand for those of the system.
    let options = options.with_no_system_certificates(true);
    Ok(certificates.into_iter().fold(options, ClientOptions::with_root_certificate))
}

/// The same for a store that is reached without TLS, which needs no certificates.
fn without_tls() -> ClientOptions {
    common().with_no_system_certificates(true)
}

fn common() -> ClientOptions {
    ClientOptions::new()
        .with_user_agent(HeaderValue::from_static(concat!("wattlock/", env!("CARGO_PKG_VERSION"))))
        .with_timeout_disabled()
        .with_connect_timeout(Duration::from_secs(10))
        .with_read_timeout(Duration::from_secs(300))
        .with_default_content_type("application/octet-stream")
}

/// Waits that grow at random, most of a minute in all at most.
fn retries() -> RetryConfig {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(15),
        base: 3.0,
    };
    RetryConfig { backoff, max_retries: 8, retry_timeout: Duration::from_secs(120) }
}
