//! Puts settings back: at the end of a lease, in its guardian, or from a journal that was left.
//!
//! A knob is put back only where it still reads what the lease wrote or read back. Anything else is
//! somebody else's wish by now, and is left alone and reported.

use std::fmt;
use std::fs;

use crate::journal::{self, Entry, Journal};
use crate::state::{Lock, Role, State};
use crate::{Error, Knob, Root, Setting, knob};

/// Restores what a lease left that neither it nor its guardian could restore.
///
/// # Errors
/// - [`Error::Held`]: the lease runs still;
/// - [`Error::Untrusted`], [`Error::Journal`]: what is there was not written by a lease of this
///   user, or not like this; nothing was changed, and it stays;
/// - [`Error::NotRestored`]: everything was tried, and something is left.
pub fn replay(root: &Root) -> Result<Replay, Error> {
    let Some(state) = State::find(root)? else { return Ok(Replay::Nothing) };
    // Seen before the lock is taken: after a lease that ended well nobody waits for anything.
    match fs::symlink_metadata(state.journal()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Replay::Nothing),
        _ => replay_under(root, &state.lock(Role::Restorer)?),
    }
}

/// [`replay`] by who has the lock.
pub(crate) fn replay_under(root: &Root, lock: &Lock) -> Result<Replay, Error> {
    let Some(mut journal) = Journal::load(lock)? else { return Ok(Replay::Nothing) };
    let boot_id = journal::boot_id(root);
    if journal.boot_id != boot_id {
        Journal::discard(lock)?;
        return Ok(Replay::OtherBoot { boot_id: journal.boot_id });
    }
    // The lock is free, but its file may have been removed under a lease that runs.
    if journal.owner_lives(lock) {
        return Err(Error::Held { pid: Some(journal.pid), path: lock.journal() });
    }
    let knobs = journal.knobs(root, lock)?;
    put_back(&mut journal, &knobs, lock).map(Replay::Restored)
}

/// What became of a journal.
#[derive(Debug)]
pub enum Replay {
    /// There is none: nothing was left.
    Nothing,
    /// It was of another boot, which took the settings with it, and was discarded.
    OtherBoot {
        /// The boot it was of.
        boot_id: String,
    },
    /// Everything in it was put back, or left alone for a reason.
    Restored(Restored),
}

impl fmt::Display for Replay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing to restore"),
            Self::OtherBoot { .. } => f.write_str(
                "nothing to restore: the journal was of an earlier boot, and was discarded",
            ),
            Self::Restored(restored) => restored.fmt(f),
        }
    }
}

/// What became of each knob, in the order in which they were put back.
#[derive(Debug, Default)]
pub struct Restored {
    /// The knob's name, and how it ended.
    pub knobs: Vec<(String, End)>,
}

impl fmt::Display for Restored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (row, (knob, end)) in self.knobs.iter().enumerate() {
            write!(f, "{}{knob}: {end}", if row == 0 { "" } else { "\n" })?;
        }
        Ok(())
    }
}

/// How a knob ended.
#[derive(Debug)]
pub enum End {
    /// It reads what it read before the lease.
    Restored {
        /// Which is this.
        old: Setting,
    },
    /// It was written, and the kernel made something else of it.
    Adjusted {
        /// What was written, and had been read before the lease.
        old: Setting,
        /// What it reads now.
        found: Setting,
    },
    /// Somebody else has changed it meanwhile, so it was left alone.
    Foreign {
        /// What it reads.
        found: Setting,
        /// What it would have been set to.
        old: Setting,
    },
    /// It could not be put back; the journal keeps it.
    Failed {
        /// What it should be set to.
        old: Setting,
        /// Why it is not.
        error: Error,
    },
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Restored { old } => write!(f, "restored to {old}"),
            Self::Adjusted { old, found } => {
                write!(f, "restored to {old}, of which the kernel made {found}")
            }
            Self::Foreign { found, old } => {
                write!(f, "changed to {found} by somebody else, left alone (it was {old})")
            }
            Self::Failed { old, error } => write!(f, "not restored to {old}: {error}"),
        }
    }
}

/// Puts back every entry, the last first, and keeps in the journal those that could not be.
pub(crate) fn put_back(
    journal: &mut Journal,
    knobs: &[Box<dyn Knob>],
    lock: &Lock,
) -> Result<Restored, Error> {
    let mut restored = Restored::default();
    let mut left = Vec::new();
    for (entry, knob) in journal.entries.iter().zip(knobs).rev() {
        let old = entry.old.clone();
        let end = put_one_back(entry, knob.as_ref());
        let end = end.unwrap_or_else(|error| {
            left.push(entry.clone());
            End::Failed { old, error }
        });
        restored.knobs.push((entry.id.clone(), end));
    }
    if left.is_empty() {
        journal.entries.clear();
        return Journal::discard(lock).map(|()| restored);
    }
    left.reverse();
    journal.entries = left;
    // Should that fail, the whole journal stays, in which the others are found restored.
    journal.save(lock).ok();
    Err(Error::NotRestored { restored, journal: lock.journal() })
}

fn put_one_back(entry: &Entry, knob: &dyn Knob) -> Result<End, Error> {
    let old = entry.old.clone();
    if !knob.reads_back() {
        knob.write(&old)?;
        return Ok(End::Restored { old });
    }
    let current = knob.read()?;
    if current == old {
        // A write may have come so late that the kernel is still about to obey it.
        if entry.is_open() {
            knob.write(&old).ok();
        }
        return Ok(End::Restored { old });
    }
    if !entry.is_ours(&current) {
        return Ok(End::Foreign { found: current, old });
    }
    let found = knob::write_and_read(knob, &current, &old)?;
    if found == old {
        return Ok(End::Restored { old });
    }
    if found == current {
        return Err(Error::NoEffect { knob: entry.id.clone(), asked: old, found });
    }
    Ok(End::Adjusted { old, found })
}
