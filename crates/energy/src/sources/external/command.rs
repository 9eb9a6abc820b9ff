//! Runs the command of an external meter, again and again if it ends.

use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, ChildStderr, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};

use super::PAUSE;
use super::feed::{Failure, Feed};
use super::line::{parse, quoted};

/// Listens to it until the feed is stopped.
pub(super) fn listen(command: &str, feed: &Feed) {
    loop {
        if let Err(why) = run(command, feed) {
            feed.fail(why);
        }
        if !feed.rest(PAUSE) {
            return;
        }
    }
}

/// What to do, for a person: it names the program alone, since what follows may hold a password.
pub(super) fn tried(command: &str) -> String {
    let program = command.split_whitespace().next().filter(|program| !program.contains('='));
    let program = program.map_or_else(String::new, |program| format!(": `{} …`", quoted(program)));
    format!("run the command by itself{program}")
}

/// Runs it once.
fn run(command: &str, feed: &Feed) -> Result<(), Failure> {
    let mut failed = None;
    let child = feed.start(|| match spawn(command) {
        Ok(child) => {
            let group = Pid::from_child(&child);
            Some((child, group))
        }
        Err(error) => {
            failed = Some(Failure::Silence(format!("cannot run sh: {error}")));
            None
        }
    });
    let Some(mut child) = child else { return failed.map_or(Ok(()), Err) };
    // As long as this is open, the command may live.
    let _alive = child.stdin.take();
    let (Some(output), Some(errors)) = (child.stdout.take(), child.stderr.take()) else {
        return Err(Failure::Silence("sh has no output".into()));
    };
    let errors = beginning(errors);
    let heard = hear(output, feed);
    if heard.is_err() {
        feed.kill();
    }
    let ended = wait(&child);
    // What it left behind in its group ends with it.
    let status = feed.end(|| child.wait());
    let readings = heard?;
    let said = errors.recv_timeout(PATIENCE).unwrap_or_default();
    judge(readings, ended, status, &said)
}

fn spawn(command: &str) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", WATCHED, "sh", command])
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
}

/// Whether a run that printed `readings` readings succeeded.
fn judge(
    readings: usize,
    ended: bool,
    status: io::Result<ExitStatus>,
    said: &str,
) -> Result<(), Failure> {
    let said = match said.trim() {
        "" => String::new(),
        said => format!(": \"{}\"", quoted(said)),
    };
    match status {
        _ if !ended => Err(Failure::Silence(format!("it closed its output and did not end{said}"))),
        Ok(status) if !status.success() => {
            let ended = match (status.code(), status.signal()) {
                (None, Some(signal)) => format!("was ended by signal {signal}"),
                (code, _) => format!("failed with exit code {}", code.unwrap_or(1)),
            };
            Err(Failure::Silence(format!("the meter command {ended}{said}")))
        }
        Ok(_) if readings == 0 => Err(Failure::Form(format!("it ended without a reading{said}"))),
        Ok(_) => Ok(()),
        Err(error) => Err(Failure::Silence(format!("it was lost: {error}"))),
    }
}

/// Passes its lines on, and counts the readings in them.
///
/// # Errors
/// Why it is not worth listening to any longer.
fn hear(output: ChildStdout, feed: &Feed) -> Result<usize, Failure> {
    let mut output = BufReader::new(output);
    let mut readings = 0;
    loop {
        let mut line = Vec::new();
        let mut bounded = output.by_ref().take(LONGEST_LINE + 1);
        let read = bounded.read_until(b'\n', &mut line);
        let unreadable = |error| Failure::Silence(format!("cannot read what it says: {error}"));
        match read.map_err(unreadable)? {
            0 => return Ok(readings),
            length if length as u64 > LONGEST_LINE => {
                let beginning = quoted(&String::from_utf8_lossy(&line));
                return Err(Failure::Form(format!(
                    "a line is longer than {LONGEST_LINE} bytes: \"{beginning}\""
                )));
            }
            _ => {}
        }
        match parse(&String::from_utf8_lossy(&line)) {
            Ok(None) => {}
            Ok(Some(line)) => {
                readings += 1;
                feed.put(line);
            }
            Err(why) if readings == 0 => return Err(Failure::Form(why)),
            // A meter that gave readings before may do so again.
            Err(why) => feed.fail(Failure::Form(why)),
        }
    }
}

/// Waits until it has ended, but not long; it is not reaped, so its number stays its own.
fn wait(child: &Child) -> bool {
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let start = Instant::now();
    loop {
        match waitid(WaitId::Pid(Pid::from_child(child)), options) {
            Ok(None) if start.elapsed() < LONGEST_END => thread::sleep(Duration::from_millis(5)),
            Ok(None) => return false,
            Ok(Some(_)) | Err(_) => return true,
        }
    }
}

/// The beginning of what it says of errors, when it has closed them. The rest is read too, because
/// a full pipe would stop it.
fn beginning(mut errors: ChildStderr) -> Receiver<String> {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let mut beginning = Vec::new();
        let _ = errors.by_ref().take(LONGEST_LINE).read_to_end(&mut beginning);
        let _ = io::copy(&mut errors, &mut io::sink());
        // The receiver may be gone.
        let _ = sender.send(String::from_utf8_lossy(&beginning).into_owned());
    };
    // Without the thread nothing is said, and the pipe is closed.
    let _ = thread::Builder::new().name("external meter's errors".into()).spawn(read);
    receiver
}

/// Runs the command with empty input, next to a process that kills the whole group when our end of
/// the pipe closes, even if we die by SIGKILL. That process is no child of the command's shell, so
/// that a `wait` in the command does not wait for it.
const WATCHED: &str = "exec 3<&0 </dev/null
( { read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & )
exec 3<&-
eval \"$1\"";

/// No reading is longer, in bytes.
const LONGEST_LINE: u64 = 256;

/// The time that a command has to end after it closed its output.
const LONGEST_END: Duration = Duration::from_secs(5);

/// Errors were written before the end; reading them takes no longer.
const PATIENCE: Duration = Duration::from_millis(200);
