//! What the tests of the program share: a place with a key pair, age's plugin, and the program itself.
#![allow(dead_code, reason = "each test binary uses its own part of this")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

pub mod authority;
pub mod disk;
pub mod fuse;
pub mod network;
pub mod resets;
pub mod senders;
pub mod stores;
pub mod stream;

use std::ffi::{OsStr, OsString};
use std::fs;
use std::ops::Deref;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

pub use wattlock_testing::{
    assert_exit, has_program as installed, install, names, pattern, signal, stderr, stdout,
    wattlock, with_input,
};

/// A directory of its own for each test, and a key pair in it.
pub struct Place {
    place: wattlock_testing::Place,
    /// The recipient of the identity in `key.txt`.
    pub recipient: String,
}

impl Deref for Place {
    type Target = wattlock_testing::Place;

    fn deref(&self) -> &wattlock_testing::Place {
        &self.place
    }
}

impl Place {
    /// A fresh place.
    pub fn new() -> Self {
        let mut place = Self { place: wattlock_testing::Place::new(), recipient: String::new() };
        place.recipient = place.keygen("key.txt");
        place
    }

    /// Makes an identity and gives its recipient.
    pub fn keygen(&self, name: &str) -> String {
        let path = self.path(name);
        let made = wattlock().args(["keygen", "-o"]).arg(&path).output().unwrap();
        assert!(made.status.success());
        stdout(&wattlock().args(["keygen", "-y"]).arg(path).output().unwrap()).trim().to_owned()
    }

    /// `wattlock protect -r RECIPIENT ARGS…`
    pub fn protect<S: AsRef<OsStr>>(&self, args: &[S]) -> Output {
        wattlock().args(["protect", "-r", &self.recipient]).args(args).output().unwrap()
    }

    /// `wattlock COMMAND -i key.txt ARGS…`
    pub fn open<S: AsRef<OsStr>>(&self, command: &str, args: &[S]) -> Output {
        wattlock().arg(command).arg("-i").arg(self.path("key.txt")).args(args).output().unwrap()
    }

    /// A container of `bytes` at `d/NAME.wlk`, whose plain file is not there.
    pub fn container(&self, name: &str, bytes: &[u8]) -> PathBuf {
        let plain = self.write(Path::new("d").join(name), bytes);
        let made = self.protect(&[&plain]);
        assert!(made.status.success(), "{}", stderr(&made));
        fs::remove_file(&plain).unwrap();
        plain.with_file_name(format!("{name}.wlk"))
    }
}

/// The age plugin of these tests, which can do something while the program waits for it.
pub struct Plugin {
    pub recipient: String,
    /// The file of the identity.
    pub identity: PathBuf,
    path: OsString,
}

impl Plugin {
    /// Installs it in a place.
    pub fn new(place: &Place) -> Self {
        let program = place.path("age-plugin-wattlocktest");
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/plugin.py");
        install(script, &program);
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let keys = stdout(&Command::new(&program).arg("--keys").output().unwrap());
        let (recipient, identity) = keys.trim().split_once('\n').unwrap();
        let identity = place.write("plugin-identity", identity.as_bytes());
        let folders = std::env::split_paths(&std::env::var_os("PATH").unwrap()).collect::<Vec<_>>();
        let path = std::env::join_paths([vec![place.path("")], folders].concat()).unwrap();
        Self { recipient: recipient.to_owned(), identity, path }
    }

    /// A PATH on which it is found.
    pub fn path(&self) -> &OsStr {
        &self.path
    }

    /// `wattlock`, which finds the plugin.
    pub fn wattlock(&self) -> Command {
        let mut command = wattlock();
        command.env("PATH", &self.path);
        command
    }

    /// `wattlock`, where the plugin runs the shell command `meanwhile` before it answers.
    pub fn wattlock_and(&self, meanwhile: &str) -> Command {
        let mut command = self.wattlock();
        command.env("WATTLOCKTEST_DO", meanwhile);
        command
    }
}

/// A `protect` with `args` of a sparse file, stopped in the middle of its work, until it gets
/// SIGCONT; `None`, with the reason said, if this machine was done with it already.
pub fn stopped_in_the_middle(place: &Place, args: &[&str], file: &Path) -> Option<Child> {
    fs::File::create(file).unwrap().set_len(SPARSE_LEN).unwrap();
    let watched = wattlock_testing::Watched::reads_of(file);
    let mut child = wattlock()
        .args(["protect", "--threads=1", "-r", &place.recipient])
        .args(args)
        .arg(file)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut ended, mut reads) = (false, 0);
    wattlock_testing::wait_until("it has read a part of the file, or ended", || {
        ended = child.try_wait().unwrap().is_some();
        reads += watched.seen();
        ended || reads > 4
    });
    if ended {
        wattlock_testing::skip("timing", "the program ended before the test could interrupt it");
        return None;
    }
    signal(&child, "-STOP");
    Some(child)
}

/// Long enough that no machine has read all of it before a test sees that it has begun.
pub const SPARSE_LEN: u64 = 1 << 30;

/// True if the program can be traced: only by root, since it may hold keys.
pub fn can_trace() -> bool {
    if !installed("strace") {
        return false;
    }
    let tried = Command::new("strace").args(["-o", "/dev/null", "true"]).output().unwrap();
    let can = is_root() && tried.status.success();
    if !can {
        wattlock_testing::skip("strace", "it may not trace a program that holds keys");
    }
    can
}

/// True if this process may do everything; then permissions have to be tested as another user.
pub fn is_root() -> bool {
    fs::read_to_string("/proc/self/status").unwrap().contains("\nUid:\t0\t0\t")
}
