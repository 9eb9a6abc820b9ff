//! An S3 server in the test's own process: `s3s-fs`, which checks every signature, with what that lacks
//! (conditions on reads and removals, a list of unfinished uploads), and faults. It answers requests for Google Cloud
//! Storage too, whose XML interface is nearly that of S3.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
#![forbid(unsafe_code)]

mod conditions;

use std::collections::BTreeMap;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use http_body_util::{BodyExt, StreamBody};
use hyper::body::{Body as _, Frame, Incoming};
use hyper::header::HeaderValue;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use conditions::Conditional;

/// A server with one bucket, `bucket`.
pub struct StoreServer {
    runtime: Runtime,
    address: SocketAddr,
    directory: TempDir,
    state: Arc<State>,
}

#[derive(Default)]
pub(crate) struct State {
    seen: Mutex<Vec<Seen>>,
    fault: Mutex<Option<Box<Faults>>>,
    /// Uploads in parts that are neither completed nor aborted: their keys by their numbers.
    pub unfinished: Mutex<BTreeMap<String, String>>,
    /// True for a server that takes no notice of conditions.
    pub ignores_conditions: Mutex<bool>,
}

type Faults = dyn FnMut(&Seen) -> Option<Fault> + Send;

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub struct Seen {
    /// `GET`, `PUT` and so on.
    pub method: String,
    /// The path and the query.
    pub target: String,
    /// The range that was asked for.
    pub range: Option<String>,
    /// All its headers, as text.
    pub headers: String,
    /// Bytes of the answer's body.
    pub answered: u64,
}

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The answer is an error of this status and code.
    Status(u16, &'static str),
    /// The connection is cut before anything is done.
    Cut,
    /// What was asked is done, and the connection is cut before the answer.
    CutAfter,
    /// The answer is cut after as many bytes of its body.
    CutAnswer(usize),
    /// The answer is changed. With the header `transfer-encoding: chunked`, its length is not sent.
    Rewrite(fn(&mut Response<Vec<u8>>)),
}

/// The credentials that the server takes.
pub const KEY: &str = "AKIAWATTLOCKTEST";
/// The secret of [`KEY`].
pub const SECRET: &str = "a-secret-that-no-message-may-show";

impl Default for StoreServer {
    fn default() -> Self {
        Self::new()
    }
}

impl StoreServer {
    /// Starts a server on a free port of this machine.
    pub fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir(directory.path().join("bucket")).unwrap();
        let state = Arc::<State>::default();
        let files = Arc::new(s3s_fs::FileSystem::new(directory.path()).unwrap());
        let builder = || {
            let (files, state) = (Arc::clone(&files), Arc::clone(&state));
            S3ServiceBuilder::new(Conditional { files, state })
        };
        let mut signed = builder();
        signed.set_auth(SimpleAuth::from_single(KEY, SECRET));
        let services = Services { signed: signed.build(), checked: builder().build() };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .enable_all()
            .build()
            .unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        runtime.spawn(serve(listener, services, Arc::clone(&state)));
        Self { runtime, address, directory, state }
    }

    /// The address of the server.
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Lets `command` use the server, and no credentials of this machine.
    pub fn configure<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for variable in ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3"] {
            command.env_remove(variable);
        }
        command
            .env("AWS_ENDPOINT_URL", self.endpoint())
            .env("AWS_ACCESS_KEY_ID", KEY)
            .env("AWS_SECRET_ACCESS_KEY", SECRET)
            .env("AWS_REGION", "us-east-1")
            .env("AWS_CONFIG_FILE", "/dev/null")
            .env("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    }

    /// The variables by which a program uses the server as Google Cloud Storage.
    pub fn google(&self) -> Vec<(&'static str, String)> {
        vec![
            ("GOOGLE_BASE_URL", self.endpoint()),
            ("GOOGLE_BEARER_TOKEN", SECRET.into()),
            ("AWS_ALLOW_HTTP", "true".into()),
        ]
    }

    /// Asks `faults` about every request from now on.
    pub fn break_with(&self, faults: impl FnMut(&Seen) -> Option<Fault> + Send + 'static) {
        *self.state.fault.lock().unwrap() = Some(Box::new(faults));
    }

    /// Lets all requests pass again.
    pub fn repair(&self) {
        *self.state.fault.lock().unwrap() = None;
    }

    /// Takes no notice of conditions from now on, as stores of old do.
    pub fn ignore_conditions(&self) {
        *self.state.ignores_conditions.lock().unwrap() = true;
    }

    /// The requests so far, which are forgotten.
    pub fn take_requests(&self) -> Vec<Seen> {
        std::mem::take(&mut *self.state.seen.lock().unwrap())
    }

    /// Uploads in parts that are neither completed nor aborted.
    pub fn unfinished(&self) -> usize {
        self.state.unfinished.lock().unwrap().len()
    }

    /// Where the object `key` is on this machine.
    pub fn path(&self, key: &str) -> PathBuf {
        self.directory.path().join("bucket").join(key)
    }

    /// Makes an object.
    pub fn put(&self, key: &str, bytes: &[u8]) {
        let path = self.path(key);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// The bytes of an object, if there is one.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        fs::read(self.path(key)).ok()
    }

    /// The keys of all objects, in order.
    pub fn keys(&self) -> Vec<String> {
        let top = self.path("");
        let mut keys = Vec::new();
        walk(&top, &mut |path| {
            keys.push(path.strip_prefix(&top).unwrap().to_str().unwrap().to_owned());
        });
        keys.sort();
        keys
    }
}

impl Drop for StoreServer {
    fn drop(&mut self) {
        let other = tokio::runtime::Builder::new_current_thread().build().unwrap();
        std::mem::replace(&mut self.runtime, other).shutdown_background();
    }
}

fn walk(folder: &Path, each: &mut dyn FnMut(&Path)) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() { walk(&path, each) } else { each(&path) }
    }
}

/// The same files behind two doors.
#[derive(Clone)]
struct Services {
    /// Checks the signature of S3.
    signed: S3Service,
    /// For requests that were checked before.
    checked: S3Service,
}

async fn serve(listener: TcpListener, services: Services, state: Arc<State>) {
    while let Ok((socket, _)) = listener.accept().await {
        let _ = socket.set_nodelay(true);
        let (services, state) = (services.clone(), Arc::clone(&state));
        let answer = hyper::service::service_fn(move |request| {
            answer(request, services.clone(), Arc::clone(&state))
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(socket), answer);
        tokio::spawn(async move {
            let _ = connection.await;
        });
    }
}

/// That a connection was cut on purpose.
#[derive(Debug)]
struct IsCut;

impl std::fmt::Display for IsCut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("cut by the test")
    }
}

impl std::error::Error for IsCut {}

/// True for a request with Google's token, which is made into one for S3; false for one with a wrong token.
fn token(request: &mut Request<Incoming>) -> Option<bool> {
    let headers = request.headers_mut();
    let token = headers.get("authorization")?.to_str().ok()?.strip_prefix("Bearer ")?;
    if token != SECRET {
        return Some(false);
    }
    headers.remove("authorization");
    // That there is no such object.
    if headers.remove("x-goog-if-generation-match").is_some_and(|value| value == "0") {
        headers.insert("if-none-match", HeaderValue::from_static("*"));
    }
    Some(true)
}

async fn answer(
    mut request: Request<Incoming>,
    services: Services,
    state: Arc<State>,
) -> Result<Response<s3s::Body>, IsCut> {
    let mut seen = Seen {
        method: request.method().to_string(),
        target: request.uri().to_string(),
        range: request.headers().get("range").map(|r| r.to_str().unwrap().to_owned()),
        headers: format!("{:?}", request.headers()),
        answered: 0,
    };
    let mut fault = state.fault.lock().unwrap().as_mut().and_then(|faults| faults(&seen));
    let token = token(&mut request);
    if token == Some(false) {
        fault = Some(Fault::Status(401, "AuthenticationRequired"));
    }
    if let Some(Fault::Status(status, code)) = fault {
        state.seen.lock().unwrap().push(seen);
        // All of it is read, or the connection would be cut.
        let _ = request.into_body().collect().await;
        let text = format!("<Error><Code>{code}</Code><Message>of the test</Message></Error>");
        let mut answer = Response::new(s3s::Body::from(text));
        *answer.status_mut() = StatusCode::from_u16(status).unwrap();
        return Ok(answer);
    }
    if let Some(Fault::Cut) = fault {
        state.seen.lock().unwrap().push(seen);
        return Err(IsCut);
    }
    let service = if token.is_some() { services.checked } else { services.signed };
    // A client that goes away does not stop what it has asked for.
    let call = async move { service.call(request.map(s3s::Body::from)).await };
    let answer = tokio::spawn(call).await.map_err(|_| IsCut)?.map_err(|_| IsCut)?;
    if let Some(Fault::CutAfter) = fault {
        state.seen.lock().unwrap().push(seen);
        return Err(IsCut);
    }
    seen.answered = answer.body().size_hint().lower();
    state.seen.lock().unwrap().push(seen);
    if !matches!(fault, Some(Fault::CutAnswer(_) | Fault::Rewrite(_))) {
        return Ok(answer);
    }
    let (parts, body) = answer.into_parts();
    let bytes = body.collect().await.map_err(|_| IsCut)?.to_bytes();
    if let Some(Fault::Rewrite(rewrite)) = fault {
        return Ok(rewritten(Response::from_parts(parts, bytes.to_vec()), rewrite));
    }
    let Some(Fault::CutAnswer(len)) = fault else { return Err(IsCut) };
    let front = Ok(Frame::data(bytes.slice(..len.min(bytes.len()))));
    let body = StreamBody::new(futures_util::stream::iter([front, Err(IsCut)]));
    Ok(Response::from_parts(parts, s3s::Body::http_body(body)))
}

fn rewritten(
    mut answer: Response<Vec<u8>>,
    rewrite: fn(&mut Response<Vec<u8>>),
) -> Response<s3s::Body> {
    answer.headers_mut().remove("content-length");
    rewrite(&mut answer);
    let is_chunked = answer.headers_mut().remove("transfer-encoding").is_some();
    answer.map(|bytes| {
        if !is_chunked {
            return s3s::Body::from(bytes);
        }
        let frame = Ok::<_, IsCut>(Frame::data(bytes.into()));
        s3s::Body::http_body(StreamBody::new(futures_util::stream::iter([frame])))
    })
}
