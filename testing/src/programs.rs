//! The programs of the workspace, and others, as tests start them.

use std::env;
use std::ffi::OsStr;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread;

/// `wattlock`, which finds no keys of the user who runs the tests.
pub fn wattlock() -> Command {
    let mut command = without_input(&wattlock_path());
    command.env("XDG_CONFIG_HOME", "/nonexistent").env_remove("CREDENTIALS_DIRECTORY");
    command
}

/// The path of `wattlock`, which is built into the parent of the running test's folder.
///
/// # Panics
/// If it was not.
pub fn wattlock_path() -> PathBuf {
    let test = env::current_exe().expect("a test knows where it is");
    let built = test.ancestors().nth(2).expect("it lies in target/PROFILE/deps");
    let program = built.join("wattlock");
    assert!(program.is_file(), "no {}; `cargo build --workspace` makes it", program.display());
    program
}

/// A program whose standard input is empty.
pub fn without_input(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.stdin(Stdio::null());
    command
}

/// Runs `command` with `input` on its standard input.
///
/// # Panics
/// If it cannot be started.
pub fn with_input(command: &mut Command, input: &[u8]) -> Output {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut stdin = child.stdin.take().expect("it has a pipe");
    thread::scope(|scope| {
        scope.spawn(move || {
            // A program may end before it has read all.
            let _ = stdin.write_all(input);
        });
        child.wait_with_output().expect("it can be waited for")
    })
}

/// Sends a signal by its name: "-INT".
///
/// # Panics
/// If the process is gone.
#[track_caller]
pub fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status();
    assert!(sent.expect("kill can be started").success());
}

/// Copies a program, in a process of its own: one that a test starts meanwhile would inherit the
/// open copy, and a program that is open for writing cannot be started.
///
/// # Panics
/// If it cannot be copied.
pub fn install(from: impl AsRef<OsStr>, to: &Path) {
    let copied = Command::new("cp").arg(from).arg(to).status();
    assert!(copied.expect("cp can be started").success());
}
