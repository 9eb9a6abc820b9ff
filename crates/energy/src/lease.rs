//! Settings of the machine, changed for a while.
//!
//! Before anything is changed, a journal on the disk says what it was; while it is changed, a lock
//! keeps other leases away and a [`crate::guardian`] waits for the death of this process. Should the
//! guardian die as well, the next lease or [`crate::restore::replay`] restores from the journal.

use std::process::Command;

use crate::guardian::Guardian;
use crate::journal::{Entry, Journal};
use crate::restore::{self, Replay, Restored};
use crate::state::{Lock, Role, State};
use crate::{Error, Knob, Root, Setting, knob};

/// The right to change settings until it is dropped, which puts them back.
///
/// Prefer [`Lease::restore`], which tells what was put back. After a drop that could not restore
/// everything, the guardian tries once more.
pub struct Lease {
    root: Root,
    journal: Journal,
    /// Those of the journal's entries, in the same order.
    knobs: Vec<Box<dyn Knob>>,
    leftover: Replay,
    /// None after the end.
    guardian: Option<Guardian>,
    lock: Lock,
}

impl Lease {
    /// Takes the lock, restores what an earlier lease may have left, and starts the guardian:
    /// `guardian` runs a program that does [`crate::guardian::watch`] on the same `root`. Its
    /// standard error is the caller's, where it tells what it had to restore.
    ///
    /// # Errors
    /// - [`Error::Held`]: there is another lease;
    /// - those of [`crate::restore::replay`]: what an earlier lease left could not be restored;
    /// - [`Error::Guardian`]: it does not start.
    ///
    /// Nothing is changed then, other than by that restoring.
    pub fn acquire(root: &Root, guardian: Command) -> Result<Self, Error> {
        let lock = State::create(root)?.lock(Role::Lease)?;
        let leftover = restore::replay_under(root, &lock)?;
        let guardian = Some(Guardian::spawn(guardian)?);
        let (root, journal) = (root.clone(), Journal::new(root, &lock));
        Ok(Self { root, journal, knobs: Vec::new(), leftover, guardian, lock })
    }

    /// What an earlier lease had left, and was restored before this one began.
    pub fn leftover(&self) -> &Replay {
        &self.leftover
    }

    /// The process of the guardian.
    pub fn guardian_pid(&self) -> Option<u32> {
        self.guardian.as_ref().map(Guardian::pid)
    }

    /// Sets the knob of that name, once it is on the disk what it was before.
    ///
    /// # Errors
    /// - [`Error::UnknownKnob`], [`Error::NoSetting`]: there is no such knob or setting;
    /// - [`Error::Foreign`]: somebody else has changed it since this lease did;
    /// - [`Error::NoEffect`]: the knob took it without an error, and stayed as it was;
    /// - [`Error::Guardian`]: it has died, and without it nothing is changed;
    /// - the knob, or the journal, cannot be read or written.
    ///
    /// What was set before remains set: drop the lease to have it put back.
    pub fn set(&mut self, id: &str, asked: &Setting) -> Result<Written, Error> {
        if let Some(guardian) = &mut self.guardian {
            guardian.check()?;
        }
        let known = self.knobs.iter().position(|knob| knob.id() == id);
        if let Some(entry) = known {
            return self.set_again(entry, asked);
        }
        let unknown = || Error::UnknownKnob(id.to_owned());
        self.set_first(knob::by_id(&self.root, id).ok_or_else(unknown)?, asked)
    }

    /// Puts everything back, the last change first, and ends the lease.
    ///
    /// # Errors
    /// [`Error::NotRestored`]: everything was tried, and the journal keeps what is left.
    pub fn restore(mut self) -> Result<Restored, Error> {
        let restored = restore::put_back(&mut self.journal, &self.knobs, &self.lock);
        // The caller is told of what failed; the guardian would only fail once more.
        self.end();
        restored
    }

    fn set_first(&mut self, knob: Box<dyn Knob>, asked: &Setting) -> Result<Written, Error> {
        knob.check(asked)?;
        let old = knob.read()?;
        if old == *asked {
            return Ok(Written { asked: old.clone(), read_back: old });
        }
        let id = knob.id().to_owned();
        let new = asked.clone();
        self.journal.entries.push(Entry { id, old: old.clone(), new, read_back: None });
        self.knobs.push(knob);
        if let Err(error) = self.journal.save(&self.lock) {
            self.journal.entries.pop();
            self.knobs.pop();
            return Err(error);
        }
        self.write(self.knobs.len() - 1, &old)
    }

    fn set_again(&mut self, entry: usize, asked: &Setting) -> Result<Written, Error> {
        let knob = &self.knobs[entry];
        knob.check(asked)?;
        let current = knob.read()?;
        if !self.journal.entries[entry].is_ours(&current) {
            return Err(Error::Foreign { knob: knob.id().to_owned(), found: current });
        }
        if current == *asked {
            return Ok(Written { asked: current.clone(), read_back: current });
        }
        let earlier = self.journal.entries[entry].clone();
        self.journal.entries[entry].new = asked.clone();
        self.journal.entries[entry].read_back = Some(current.clone());
        if let Err(error) = self.journal.save(&self.lock) {
            self.journal.entries[entry] = earlier;
            return Err(error);
        }
        self.write(entry, &current)
    }

    /// Writes what the journal says already, and completes the journal.
    fn write(&mut self, entry: usize, current: &Setting) -> Result<Written, Error> {
        let knob = &self.knobs[entry];
        let asked = self.journal.entries[entry].new.clone();
        let read_back = knob::write_and_read(knob.as_ref(), &asked)?;
        if read_back == *current {
            return Err(Error::NoEffect { knob: knob.id().to_owned(), asked, found: read_back });
        }
        self.journal.entries[entry].read_back = Some(read_back.clone());
        self.journal.save(&self.lock)?;
        Ok(Written { asked, read_back })
    }

    fn end(&mut self) {
        if let Some(guardian) = self.guardian.take() {
            guardian.dismiss();
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if self.guardian.is_none() {
            return;
        }
        // Nobody can be told here. A guardian that hears nothing tries again, and tells.
        if restore::put_back(&mut self.journal, &self.knobs, &self.lock).is_ok() {
            self.end();
        }
    }
}

/// A setting that took effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// What was written.
    pub asked: Setting,
    /// What the knob reads since: the kernel may bend a setting to what it can do.
    pub read_back: Setting,
}

impl Written {
    /// True if the kernel made something else of it.
    pub fn is_adjusted(&self) -> bool {
        self.asked != self.read_back
    }
}
