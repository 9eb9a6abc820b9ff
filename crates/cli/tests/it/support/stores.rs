//! A store for the tests of objects.

use std::collections::BTreeMap;
use std::fs;
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};

use wattlock_testing::{free_port, wait_until};
use wattlock_testing_store::{KEY, SECRET, StoreServer};

use super::{Place, assert_exit, pattern, stderr, stdout, wattlock};

/// A server that runs until this is dropped.
pub struct Versitygw(Child);

impl Drop for Versitygw {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A place with a key pair, and a store.
pub struct Stored {
    pub place: Place,
    pub server: StoreServer,
    /// Another server that is used instead.
    other: Option<String>,
}

impl Stored {
    pub fn new() -> Self {
        Self { place: Place::new(), server: StoreServer::new(), other: None }
    }

    pub fn wattlock(&self, args: &[&str]) -> Command {
        let mut command = wattlock();
        self.server.configure(&mut command).args(args).current_dir(self.place.path(""));
        if let Some(endpoint) = &self.other {
            command.env("AWS_ENDPOINT_URL", endpoint);
        }
        command
    }

    /// Uses versitygw from now on, as long as the program that is returned runs.
    pub fn use_versitygw(&mut self) -> Versitygw {
        let data = self.place.path("data");
        fs::create_dir(&data).unwrap();
        let port = free_port();
        let mut command = Command::new("versitygw");
        command.args([&format!("--port=127.0.0.1:{port}"), "--quiet", "posix"]).arg(&data);
        command.env("ROOT_ACCESS_KEY", KEY).env("ROOT_SECRET_KEY", SECRET);
        let server = Versitygw(command.stdout(Stdio::null()).spawn().unwrap());
        wait_until("versitygw", || TcpStream::connect(("127.0.0.1", port)).is_ok());
        fs::create_dir(data.join("bucket")).unwrap();
        self.other = Some(format!("http://127.0.0.1:{port}"));
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

/// Bytes of three parts.
pub const LONG: usize = (20 << 20) + 5;
