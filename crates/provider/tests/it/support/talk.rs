//! Programs that are talked to by their standard streams: `openssl s_server` and `s_client`.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use wattlock_testing::{exits_within, free_port, wait_for};

use super::site::Site;

/// Long enough for a busy machine; only a failing test waits so long.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program whose output is read while it runs. Ended on drop.
pub struct Talk {
    process: Child,
    input: Option<ChildStdin>,
    out: Heard,
    error: Heard,
    /// Bytes of the output that were waited for already.
    heard: usize,
}

/// What a program wrote so far.
#[derive(Clone, Default)]
struct Heard(Arc<(Mutex<(Vec<u8>, bool)>, Condvar)>);

impl Heard {
    fn of(mut from: impl Read + Send + 'static) -> Self {
        let heard = Self::default();
        let other = heard.clone();
        std::thread::spawn(move || {
            let mut buffer = vec![0; 1 << 16];
            loop {
                let len = from.read(&mut buffer).unwrap_or(0);
                let (state, changed) = &*other.0;
                let mut state = state.lock().unwrap();
                state.0.extend_from_slice(&buffer[..len]);
                state.1 = len == 0;
                changed.notify_all();
                if len == 0 {
                    return;
                }
            }
        });
        heard
    }

    /// Waits until `done` finds something; `None` when the output ends without.
    fn wait<T>(&self, done: impl Fn(&[u8]) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + PATIENCE;
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        loop {
            let found = done(&state.0);
            let left = deadline.saturating_duration_since(Instant::now());
            if found.is_some() || state.1 || left.is_zero() {
                return found;
            }
            state = changed.wait_timeout(state, left).unwrap().0;
        }
    }

    fn ended(&self) -> Vec<u8> {
        let (state, changed) = &*self.0;
        let mut state = state.lock().unwrap();
        let deadline = Instant::now() + PATIENCE;
        while !state.1 && Instant::now() < deadline {
            state = changed.wait_timeout(state, PATIENCE).unwrap().0;
        }
        state.0.clone()
    }

    fn so_far(&self) -> String {
        String::from_utf8_lossy(&self.0.0.lock().unwrap().0).into_owned()
    }
}

fn find(needle: &[u8], hay: &[u8]) -> Option<usize> {
    hay.windows(needle.len()).position(|window| window == needle)
}

impl Talk {
    pub fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take();
        let out = Heard::of(process.stdout.take().unwrap());
        let error = Heard::of(process.stderr.take().unwrap());
        Self { process, input, out, error, heard: 0 }
    }

    /// Writes it in one go.
    pub fn say(&mut self, bytes: &[u8]) {
        let input = self.input.as_mut().expect("it is not closed");
        // If the process has ended, a later `hear` fails.
        let _ = input.write_all(bytes);
        let _ = input.flush();
    }

    /// Waits until exactly these bytes, one behind the other, came after all that was waited for.
    #[track_caller]
    pub fn hear(&mut self, bytes: &[u8]) {
        let from = self.heard;
        match self.out.wait(|all| find(bytes, &all[from..])) {
            Some(at) => self.heard = from + at + bytes.len(),
            None => panic!(
                "{} bytes were not heard. It said: {}; {}",
                bytes.len(),
                self.out.so_far().chars().skip(from).take(2000).collect::<String>(),
                self.error.so_far()
            ),
        }
    }

    /// Waits until a text is `times` times in the standard error.
    #[track_caller]
    pub fn hear_errors(&self, times: usize, text: &str) {
        let found = self.error.wait(|all| {
            (String::from_utf8_lossy(all).matches(text).count() >= times).then_some(())
        });
        assert!(found.is_some(), "{text} was not reported, but: {}", self.error.so_far());
    }

    /// What it said among the errors.
    pub fn errors(&self) -> String {
        self.error.so_far()
    }

    /// Closes its input and waits for its end: what it exits with, all output, and all errors.
    #[track_caller]
    pub fn end(mut self) -> (ExitStatus, Vec<u8>, String) {
        self.input = None;
        self.wait()
    }

    /// The same while its input stays open.
    #[track_caller]
    pub fn wait(&mut self) -> (ExitStatus, Vec<u8>, String) {
        let status = exits_within(&mut self.process, PATIENCE);
        let status = status.unwrap_or_else(|| panic!("it does not end: {}", self.error.so_far()));
        let out = self.out.ended();
        self.error.ended();
        (status, out, self.error.so_far())
    }
}

impl Drop for Talk {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// `openssl s_server`, with the provider or without; also where it listens.
pub fn s_server(site: &Site, with: bool, arguments: &[&str]) -> (Talk, u16) {
    let port = free_port();
    let mut command = site.command("openssl", with);
    command.args(["s_server", "-accept", &port.to_string(), "-key"]).arg(site.path("key.pem"));
    command.arg("-cert").arg(site.path("cert.pem")).args(arguments);
    command.current_dir(site.path("pages"));
    let mut server = Talk::start(command);
    wait_for(|| {
        if is_bound(port) {
            return Ok(());
        }
        if let Some(status) = server.process.try_wait().unwrap() {
            panic!("s_server {arguments:?} ended with {status}: {}", server.errors());
        }
        Err(format!("s_server does not listen: {}", server.errors()))
    });
    (server, port)
}

/// `openssl s_client`, with the provider or without.
pub fn s_client(site: &Site, with: bool, port: u16, arguments: &[&str]) -> Talk {
    let mut command = site.command("openssl", with);
    command.args(["s_client", "-connect", &format!("127.0.0.1:{port}"), "-CAfile"]);
    command.arg(site.path("cert.pem")).args(arguments);
    Talk::start(command)
}

/// Whether a socket of this machine listens at that port of TCP, or is bound to that of UDP. To
/// connect would be a connection that the server counts.
fn is_bound(port: u16) -> bool {
    let wanted = format!(":{port:04X}");
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|table| {
        let table = std::fs::read_to_string(format!("/proc/self/net/{table}")).unwrap_or_default();
        table.lines().any(|line| {
            let mut words = line.split_whitespace().skip(1);
            let local = words.next().unwrap_or_default();
            // Listening, or without a connection.
            let state = words.nth(1).unwrap_or_default();
            local.ends_with(&wanted) && matches!(state, "0A" | "07")
        })
    })
}
