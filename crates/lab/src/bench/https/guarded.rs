//! Processes on one CPU that end when this program does, however that comes.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use rustix::process::{Pid, Signal, kill_process_group};

/// A process, and a shell that watches over it. A pipe goes from here to the shell: when it is
/// closed, be it that this program was killed, the shell ends the process.
pub struct Guarded {
    shell: Child,
    pipe: Option<ChildStdin>,
}

/// A command that runs on `cpu` under guard.
pub fn command(cpu: usize, program: &Path) -> Command {
    let mut command = Command::new("sh");
    command.args(["-c", GUARD, "guard", "taskset", "-c", &cpu.to_string()]).arg(program);
    // Ctrl-C reaches this program alone; the pipe passes its end on to the others.
    command.process_group(0).stdin(Stdio::piped());
    stock(&mut command);
    command
}

/// Takes away what would change the OpenSSL of a process.
pub fn stock(command: &mut Command) {
    for name in ["OPENSSL_MODULES", "OPENSSL_ia32cap", "GLIBC_TUNABLES"] {
        command.env_remove(name);
    }
    command.env("OPENSSL_CONF", "/dev/null");
}

impl Guarded {
    /// Starts what [`command`] made; what it says goes to a file.
    ///
    /// # Errors
    /// That it cannot be started.
    pub fn start(mut command: Command, says: &Path) -> anyhow::Result<Self> {
        let says = File::create(says)?;
        command.stdout(says.try_clone()?).stderr(says);
        let mut shell = command.spawn().context("cannot start sh")?;
        let pipe = shell.stdin.take();
        Ok(Self { shell, pipe })
    }

    /// True if it has ended by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.shell.try_wait(), Ok(None))
    }

    /// Its shell, which is its parent.
    pub fn shell(&self) -> u32 {
        self.shell.id()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        let group = Pid::from_child(&self.shell);
        drop(self.pipe.take());
        let asked = Instant::now();
        while !self.has_ended() {
            if asked.elapsed() > PATIENCE {
                let _ = kill_process_group(group, Signal::KILL);
                let _ = self.shell.wait();
                return;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Runs what [`command`] made to its end, and gives what it said.
///
/// # Errors
/// That it cannot be started.
pub fn run(mut command: Command) -> io::Result<Output> {
    let mut shell = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    // Open until the end, and not closed before as `wait_with_output` would.
    let pipe = shell.stdin.take();
    let output = shell.wait_with_output();
    drop(pipe);
    output
}

/// The path of a program, if it is installed; servers are not in every user's `PATH`.
pub fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let places = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    places.map(|place| place.join(OsStr::new(program))).find(|path| path.is_file())
}

/// How long a process may take to end when it is asked to.
const PATIENCE: Duration = Duration::from_secs(10);

/// Runs its arguments; ends them at the end of standard input.
const GUARD: &str = r#"
exec 3<&0
"$@" </dev/null 3<&- &
child=$!
( read -r _ <&3; kill -TERM "$child" ) 2>/dev/null &
watcher=$!
wait "$child"
ended=$?
kill "$watcher" 2>/dev/null
exit "$ended"
"#;

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_guarded_process_ends_with_its_guard() {
        let directory = tempfile::tempdir().unwrap();
        let Some(sleep) = find("sleep") else { return };
        let mut command = command(0, &sleep);
        command.arg("600");
        let mut guarded = Guarded::start(command, &directory.path().join("said")).unwrap();
        assert!(!guarded.has_ended());
        let group = Pid::from_child(&guarded.shell);
        drop(guarded);
        // No process is left to signal.
        let left = Instant::now();
        while kill_process_group(group, Signal::CONT).is_ok() {
            assert!(left.elapsed() < Duration::from_secs(30), "something is left");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn what_a_guarded_process_says_comes_back() {
        let Some(echo) = find("echo") else { return };
        let mut command = command(0, &echo);
        command.arg("hello");
        let output = run(command).unwrap();
        assert!(output.status.success());
        assert_eq!(output.stdout, b"hello\n");
    }
}
