//! What a program said, and how it ended.

use std::path::Path;
use std::process::{Command, Output};

/// What was said on standard output.
pub fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// What was said on standard error.
pub fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Asserts the exit code, and that an error says something.
///
/// # Panics
/// If that is not so.
#[track_caller]
pub fn assert_exit(output: &Output, code: i32) {
    assert_eq!(output.status.code(), Some(code), "{}", stderr(output));
    if code != 0 {
        let starts = ["wattlock: ", "wattlock-lab: ", "error: "];
        assert!(starts.iter().any(|start| stderr(output).contains(start)), "{}", stderr(output));
    }
}

/// `program`, whose standard output is closed.
pub fn with_closed_output(program: &Path) -> Command {
    let mut closed = Command::new("sh");
    closed.args(["-c", "exec \"$0\" \"$@\" >&-"]).arg(program);
    closed
}

/// Asserts that a run refused to write to a standard output in which its data would be lost.
///
/// # Panics
/// If it did not.
#[track_caller]
pub fn assert_output_refused(ran: &Output, what: impl std::fmt::Debug) {
    assert_exit(ran, 1);
    let said = stderr(ran);
    assert!(said.contains("cannot write to standard output: it is closed"), "{what:?}: {said}");
    assert!(said.contains("-o /dev/null"), "{what:?}: {said}");
}
