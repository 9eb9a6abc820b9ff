//! Objects in stores as inputs and outputs: `s3://…`, against a server in this process.

use std::fs;
use std::process::Command;

use wattlock_testing_store::{Fault, SECRET, StoreServer};

use crate::support::{Place, assert_exit, pattern, stderr, stdout, wattlock};

/// A place with a key pair, and a store.
struct Stored {
    place: Place,
    server: StoreServer,
}

impl Stored {
    fn new() -> Self {
        Self { place: Place::new(), server: StoreServer::new() }
    }

    fn wattlock(&self, args: &[&str]) -> Command {
        let mut command = wattlock();
        self.server.configure(&mut command).args(args).current_dir(self.place.path(""));
        command
    }

    /// Runs `wattlock protect -r RECIPIENT ARGS…`, which has to end with `code`.
    fn protect(&self, code: i32, args: &[&str]) -> String {
        let mut command = self.wattlock(&["protect", "-r", &self.place.recipient]);
        let ended = command.args(args).output().unwrap();
        assert_exit(&ended, code);
        stderr(&ended)
    }

    /// Runs `wattlock COMMAND -i key.txt ARGS…`, which has to end with `code`.
    fn open(&self, code: i32, command: &str, args: &[&str]) -> String {
        let ended = self.wattlock(&[command, "-i", "key.txt"]).args(args).output().unwrap();
        assert_exit(&ended, code);
        stdout(&ended) + &stderr(&ended)
    }
}

#[test]
fn a_file_goes_to_a_store_and_back() {
    let s = Stored::new();
    for (len, parts) in [(0, 0), (20_000, 0), (40 << 20, 6)] {
        let bytes = pattern(len);
        fs::write(s.place.path("a.bin"), &bytes).unwrap();
        s.protect(0, &["-f", "a.bin", "-o", "s3://bucket/x/a.wlk"]);
        let sent = s.server.take_requests();
        let sent = sent.iter().filter(|seen| seen.target.contains("partNumber")).count();
        assert_eq!(sent, parts, "{len}");
        assert_eq!(s.server.unfinished(), 0);

        s.open(0, "unprotect", &["-f", "s3://bucket/x/a.wlk", "-o", "b.bin"]);
        assert!(fs::read(s.place.path("b.bin")).unwrap() == bytes, "{len}");
        s.open(0, "verify", &["s3://bucket/x/a.wlk"]);
        let shown = s.open(0, "inspect", &["s3://bucket/x/a.wlk"]);
        assert!(shown.contains(&format!("{len} bytes")) && shown.contains("a.bin"), "{shown}");
    }
}
