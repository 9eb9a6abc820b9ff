//! The process that puts settings back when the one that changed them dies.
//!
//! A [`crate::Lease`] starts it with one end of a socket as its standard input. However the owner
//! ends, the kernel closes the other end; unless the owner has said that all is done, the guardian
//! takes the lock and replays the journal. It is in a process group of its own and deaf to the
//! signals by which people end programs, so that Ctrl-C ends the owner alone.

use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread;
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::error::Error;
use crate::restore::{Replay, replay};
use crate::root::Root;
use crate::state::PATIENCE;

/// What the program has to do that a lease was given as its guardian, and nothing else. Returns
/// what was restored. Print it to standard error, but ignore a failed write: it may be closed.
///
/// # Errors
/// Those of [`replay`], and [`Error::Guardian`] if it was not started by a lease.
pub fn watch(root: &Root) -> Result<Replay, Error> {
    let owner = io::stdin().as_fd().try_clone_to_owned().map(UnixStream::from);
    let end = owner.and_then(|owner| {
        for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
            signal_hook::flag::register(signal, Arc::new(AtomicBool::new(false)))?;
        }
        wait_for_end(owner)
    });
    match end.map_err(Error::Guardian)? {
        Ending::Orderly => Ok(Replay::Nothing),
        Ending::Death => restore_after_death(root),
    }
}

/// How an owner ended.
enum Ending {
    Orderly,
    Death,
}

fn wait_for_end(mut owner: UnixStream) -> io::Result<Ending> {
    owner.write_all(READY)?;
    let mut said = Vec::new();
    // An error is the end of the owner, too; what it has said counts.
    owner.read_to_end(&mut said).ok();
    Ok(if said == DONE { Ending::Orderly } else { Ending::Death })
}

/// The kernel closes the socket and frees the lock one after the other.
fn restore_after_death(root: &Root) -> Result<Replay, Error> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match replay(root) {
            // Another lease came first, and has restored what it found.
            Err(Error::Held { .. }) if Instant::now() > deadline => return Ok(Replay::Nothing),
            Err(Error::Held { .. }) => thread::sleep(Duration::from_millis(5)),
            done => return done,
        }
    }
}

/// The guardian as its owner sees it. Dropping it without a word is what a death looks like.
#[derive(Debug)]
pub(crate) struct Guardian {
    child: Child,
    owner: UnixStream,
}

impl Guardian {
    /// Starts it, and waits until it is ready.
    pub fn spawn(mut command: Command) -> Result<Self, Error> {
        let spawn = || {
            let (owner, guardian) = UnixStream::pair()?;
            command.stdin(Stdio::from(OwnedFd::from(guardian)));
            let child = command.stdout(Stdio::null()).process_group(0).spawn()?;
            // It holds the guardian's end, without which the guardian's death can be seen.
            drop(command);
            owner.set_read_timeout(Some(PATIENCE))?;
            Ok(Self { child, owner })
        };
        let mut guardian = spawn().map_err(Error::Guardian)?;
        let mut word = [0; READY.len()];
        let heard = guardian.owner.read_exact(&mut word);
        let heard = heard.and_then(|()| {
            if &word == READY {
                Ok(())
            } else {
                Err(io::Error::other("it speaks another language"))
            }
        });
        if let Err(error) = heard {
            guardian.child.kill().and_then(|()| guardian.child.wait()).ok();
            return Err(Error::Guardian(error));
        }
        Ok(guardian)
    }

    /// Its process.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// That it runs still.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.child.try_wait() {
            Ok(None) => Ok(()),
            Ok(Some(status)) => Err(io::Error::other(format!("it has ended: {status}"))),
            Err(error) => Err(error),
        }
        .map_err(Error::Guardian)
    }

    /// Sends it the message that nothing is left to do, and waits until it has ended.
    pub fn dismiss(mut self) {
        let said = self.owner.write_all(DONE).and_then(|()| self.owner.shutdown(Shutdown::Both));
        let deadline = Instant::now() + PATIENCE;
        // One that is stopped is not waited for any longer.
        while said.is_ok() && matches!(self.child.try_wait(), Ok(None)) && Instant::now() < deadline
        {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

const READY: &[u8; 5] = b"ready";

const DONE: &[u8] = b"done";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_no_guardian_is_noticed() {
        let mut stranger = Command::new("sh");
        stranger.args(["-c", "echo hello >&0"]);
        let said = Guardian::spawn(stranger).unwrap_err().to_string();
        assert!(said.contains("another language") || said.contains("fill"), "{said}");
        let said = Guardian::spawn(Command::new("true")).unwrap_err().to_string();
        assert!(said.starts_with("no guardian"), "{said}");
        let said = Guardian::spawn(Command::new("/nowhere/wattlock")).unwrap_err().to_string();
        assert!(said.contains("No such file"), "{said}");
    }

    #[test]
    fn a_word_and_an_end_is_orderly_and_an_end_is_a_death() {
        for (word, orderly) in [("done", true), ("", false), ("don", false), ("doneX", false)] {
            let (mut owner, guardian) = UnixStream::pair().unwrap();
            let waiting = thread::spawn(|| wait_for_end(guardian).unwrap());
            let mut ready = [0; READY.len()];
            owner.read_exact(&mut ready).unwrap();
            owner.write_all(word.as_bytes()).unwrap();
            drop(owner);
            assert_eq!(matches!(waiting.join().unwrap(), Ending::Orderly), orderly, "{word:?}");
        }
    }

    #[test]
    fn an_owner_that_dies_before_it_listens_is_a_death() {
        let (owner, guardian) = UnixStream::pair().unwrap();
        let waiting = thread::spawn(|| {
            let ended = wait_for_end(guardian);
            ended.is_err() || matches!(ended, Ok(Ending::Death))
        });
        drop(owner);
        assert!(waiting.join().unwrap());
    }
}
