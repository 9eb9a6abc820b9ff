//! Ports for servers on this machine.

use std::env;
use std::fs::{self, File};
use std::net::TcpListener;
use std::process;
use std::sync::{Mutex, PoisonError};

/// A port that no other test gets while this process runs. It lies below those that the system gives
/// to clients, one of which might take it before the server does.
///
/// # Panics
/// If there is none.
pub fn free_port() -> u16 {
    static LOCKS: Mutex<Vec<File>> = Mutex::new(Vec::new());
    let program = env::current_exe().expect("a test knows its file");
    let folder = program.with_file_name("test-ports");
    fs::create_dir_all(&folder).expect("the target folder can be written");
    let start = process::id().wrapping_mul(7);
    for n in 0..12_000 {
        let port = 20_000 + (start.wrapping_add(n) % 12_000) as u16;
        let lock = File::create(folder.join(port.to_string())).expect("it can be written");
        if lock.try_lock().is_ok() && TcpListener::bind(("127.0.0.1", port)).is_ok() {
            LOCKS.lock().unwrap_or_else(PoisonError::into_inner).push(lock);
            return port;
        }
    }
    panic!("no port is free");
}
