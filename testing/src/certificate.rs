//! A certificate for servers on this machine.

use std::env;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The folder of `key.pem` and `cert.pem`, an RSA key and its certificate for `localhost`, which all
/// tests of a day share: making one takes as long as a test. The program `openssl` makes it.
///
/// # Panics
/// If that fails.
pub fn certificate() -> PathBuf {
    let program = env::current_exe().expect("a test knows its file");
    let folder = program.with_file_name("test-certificate");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let lock = fs::File::create(folder.join("lock")).expect("it can be written");
    lock.lock().expect("a lock can be waited for");
    let made = fs::metadata(folder.join("cert.pem")).and_then(|made| made.modified());
    if made.is_ok_and(|made| made.elapsed().is_ok_and(|age| age.as_secs() < 86_400)) {
        return folder;
    }
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=localhost", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(&folder)
        .stderr(Stdio::null())
        .status();
    assert!(made.expect("openssl can be started").success(), "openssl made no certificate");
    folder
}
