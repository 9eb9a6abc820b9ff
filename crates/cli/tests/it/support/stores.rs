//! A store for the tests of objects.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use wattlock_testing::{free_port, wait_until};
use wattlock_testing_store::{KEY, SECRET, StoreServer};

use super::{Place, assert_exit, pattern, stderr, stdout, wattlock};

/// A server that runs until this is dropped.
pub struct OtherServer(pub Child);

impl Drop for OtherServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A place with a key pair, and a store.
pub struct Stored {
    pub place: Place,
    pub server: StoreServer,
    /// Variables that name another server, which is used instead.
    other: Vec<(&'static str, String)>,
}

impl Stored {
    pub fn new() -> Self {
        Self { place: Place::new(), server: StoreServer::new(), other: Vec::new() }
    }

    pub fn wattlock(&self, args: &[&str]) -> Command {
        let mut command = wattlock();
        self.server.configure(&mut command).args(args).current_dir(self.place.path(""));
        command.envs(self.other.iter().map(|(name, value)| (name, value)));
        command
    }

    /// Uses versitygw from now on, as long as the program that is returned runs.
    pub fn use_versitygw(&mut self) -> OtherServer {
        let data = self.place.path("data");
        fs::create_dir(&data).unwrap();
        let port = free_port();
        let mut command = Command::new("versitygw");
        command.args([&format!("--port=127.0.0.1:{port}"), "--quiet", "posix"]).arg(&data);
        command.env("ROOT_ACCESS_KEY", KEY).env("ROOT_SECRET_KEY", SECRET);
        let server = OtherServer(command.stdout(Stdio::null()).spawn().unwrap());
        wait_until("versitygw", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        fs::create_dir(data.join("bucket")).unwrap();
        self.other = vec![("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{port}"))];
        server
    }

    /// Uses the same server as Google Cloud Storage from now on.
    pub fn use_google(&mut self) {
        self.other = self.server.google();
    }

    /// Uses Azurite, Azure's emulator, from now on, as long as the program that is returned runs.
    pub fn use_azurite(&mut self) -> OtherServer {
        let port = free_port();
        let mut command = Command::new("azurite-blob");
        command.args(["--blobHost=127.0.0.1", &format!("--blobPort={port}"), "--silent"]);
        command.args(["--inMemoryPersistence", "--skipApiVersionCheck", "--disableTelemetry"]);
        command.current_dir(self.place.path("")).stdout(Stdio::null()).stderr(Stdio::null());
        let server = OtherServer(command.spawn().unwrap());
        wait_until("azurite", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        let made = Command::new("python3").args(["-c", MAKE_CONTAINER, &port.to_string()]).output();
        assert_exit(&made.unwrap(), 0);
        self.other = vec![
            ("AZURE_STORAGE_USE_EMULATOR", "true".into()),
            ("AZURITE_BLOB_STORAGE_URL", format!("http://127.0.0.1:{port}")),
            ("AWS_ALLOW_HTTP", "true".into()),
        ];
        server
    }

    /// `wattlock protect -r RECIPIENT ARGS…`
    pub fn protecting(&self, args: &[&str]) -> Command {
        let mut command = self.wattlock(&["protect", "-r", &self.place.recipient]);
        command.args(args);
        command
    }

    /// The same, which has to end with `code`.
    pub fn protect(&self, code: i32, args: &[&str]) -> String {
        let ended = self.protecting(args).output().unwrap();
        assert_exit(&ended, code);
        assert!(!stderr(&ended).contains(SECRET));
        stderr(&ended)
    }

    /// Runs `wattlock COMMAND -i key.txt ARGS…`, which has to end with `code`.
    pub fn open(&self, code: i32, command: &str, args: &[&str]) -> String {
        let ended = self.wattlock(&[command, "-i", "key.txt"]).args(args).output().unwrap();
        assert_exit(&ended, code);
        assert!(!stderr(&ended).contains(SECRET));
        stdout(&ended) + &stderr(&ended)
    }

    /// Writes a file, and makes its folders.
    pub fn write(&self, path: &str, bytes: &[u8]) {
        let path = self.place.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    }

    /// Makes the folder `tree`.
    pub fn tree(&self) -> BTreeMap<&'static str, Vec<u8>> {
        let files = BTreeMap::from([
            ("tree/a.txt", b"a".to_vec()),
            ("tree/empty", Vec::new()),
            ("tree/in/50% & \u{fc}.txt", pattern(70_000)),
            ("tree/in/x.tmp", b"x".to_vec()),
        ]);
        for (path, bytes) in &files {
            self.write(path, bytes);
        }
        files
    }

    /// Asserts that the folder `top` holds `files`, as they are.
    pub fn assert_tree(&self, top: &str, files: &BTreeMap<&'static str, Vec<u8>>) {
        for (path, bytes) in files {
            let read = fs::read(self.place.path(top).join(path));
            assert!(read.unwrap_or_else(|error| panic!("{path}: {error}")) == *bytes, "{path}");
        }
    }
}

/// Makes the container `bucket`, with the account and key that all emulators have.
const MAKE_CONTAINER: &str = r#"
import base64, hashlib, hmac, sys, urllib.parse, urllib.request
key = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
version, until, account = "2020-12-06", "2099-01-01T00:00:00Z", "devstoreaccount1"
signed = "\n".join([account, "c", "b", "c", "", until, "", "https,http", version, "", ""])
signature = hmac.new(base64.b64decode(key), signed.encode(), hashlib.sha256).digest()
query = urllib.parse.urlencode({
    "restype": "container", "sv": version, "ss": "b", "srt": "c", "sp": "c", "se": until,
    "spr": "https,http", "sig": base64.b64encode(signature),
})
address = f"http://127.0.0.1:{sys.argv[1]}/{account}/bucket?{query}"
urllib.request.urlopen(urllib.request.Request(address, method="PUT", headers={"x-ms-version": version}))
"#;

/// Bytes of three parts.
pub const LONG: usize = (20 << 20) + 5;
