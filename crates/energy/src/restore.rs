//! Puts settings back: at the end of a lease, in its guardian, or from a journal that was left.
//!
//! A knob is restored only if it still reads what the lease wrote or read back. Any other value was
//! set by another program, and is kept and reported. A clock that another limit holds lower is
//! restored behind that limit, and the journal stays until the clock shows it.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use crate::cpufreq;
use crate::error::{End, Error, Restored};
use crate::journal::{self, Entry, Journal};
use crate::knob::{self, Knob};
use crate::limit::{self, HeldBy};
use crate::root::Root;
use crate::state::{Lock, Role, State};

/// Restores what a lease left that neither it nor its guardian could restore.
///
/// # Errors
/// - [`Error::Held`]: the lease is still running;
/// - [`Error::Untrusted`], [`Error::Journal`]: the journal was not written by a lease of this
///   user, or is damaged; nothing was changed, and the journal stays;
/// - [`Error::NotRestored`]: everything was tried, and some settings could not be restored.
pub fn replay(root: &Root) -> Result<Replay, Error> {
    let Some(state) = State::find(root)? else { return Ok(Replay::Nothing) };
    // Checked before taking the lock: after a lease that ended well there is nothing to wait for.
    match fs::symlink_metadata(state.journal()) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Replay::Nothing),
        _ => replay_under(root, &state.lock(Role::Restorer)?),
    }
}

/// [`replay`] for the holder of the lock.
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

/// Describes the journal that is there, if one is, and changes nothing.
///
/// # Errors
/// - [`Error::Journal`], [`Error::Untrusted`]: it is damaged, or is no file of this user's.
pub fn show(root: &Root) -> Result<Option<String>, Error> {
    let Some(state) = State::find(root)? else { return Ok(None) };
    let Some(journal) = Journal::load_from(&state.journal())? else { return Ok(None) };
    let same_boot = journal.boot_id == journal::boot_id(root);
    let boot = if same_boot { "this boot" } else { "an earlier boot" };
    let path = state.journal();
    let mut text = format!("{}: process {}, {boot}", path.display(), journal.pid);
    for Entry { id, old, new, read_back } in &journal.entries {
        text += &format!("\n{id}: was {old}, set to {new}");
        if let Some(read) = read_back.as_ref().filter(|read| *read != new) {
            text += &format!(", read {read}");
        }
    }
    Ok(Some(text))
}

/// The beginning of a journal that is damaged, without control characters.
pub fn raw(root: &Root) -> Option<String> {
    let state = State::find(root).ok()??;
    let text = journal::text(&state.journal()).ok()??;
    let text = String::from_utf8_lossy(&text);
    Some(text.chars().take(SHOWN).filter(|c| *c == '\n' || !c.is_control()).collect())
}

/// Sets the journal aside without restoring from it, and returns where it is now; `None` if there is
/// none.
///
/// # Errors
/// [`Error::Held`]: the lease runs still; or it cannot be renamed.
pub fn discard(root: &Root) -> Result<Option<PathBuf>, Error> {
    let Some(state) = State::find(root)? else { return Ok(None) };
    let path = state.journal();
    if fs::symlink_metadata(&path).is_err() {
        return Ok(None);
    }
    let lock = state.lock(Role::Restorer)?;
    if let Ok(Some(journal)) = Journal::load(&lock)
        && journal.boot_id == journal::boot_id(root)
        && journal.owner_lives(&lock)
    {
        return Err(Error::Held { pid: Some(journal.pid), path });
    }
    let aside = path.with_file_name("journal.discarded.json");
    let renamed = fs::rename(&path, &aside).and_then(|()| lock.sync());
    renamed.map(|()| Some(aside)).map_err(|source| Error::Write { path, source })
}

/// More than the journal of a large machine.
const SHOWN: usize = 64 << 10;

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

/// Puts back every entry, the last first, and keeps in the journal those that could not be.
pub(crate) fn put_back(
    journal: &mut Journal,
    knobs: &[Box<dyn Knob>],
    lock: &Lock,
) -> Result<Restored, Error> {
    let mut restored = Restored::default();
    let mut left = Vec::new();
    let mut failed = false;
    for index in order(&journal.entries, knobs) {
        let old = journal.entries[index].old.clone();
        let end = put_one_back(journal, index, knobs[index].as_ref(), lock);
        let end = end.unwrap_or_else(|error| End::Failed { old, error });
        if matches!(end, End::Failed { .. } | End::Held { .. }) {
            left.push(index);
        }
        failed |= matches!(end, End::Failed { .. });
        restored.knobs.push((journal.entries[index].id.clone(), end));
    }
    if left.is_empty() {
        journal.entries.clear();
        return Journal::discard(lock).map(|()| restored);
    }
    left.sort_unstable();
    journal.entries = left.iter().map(|index| journal.entries[*index].clone()).collect();
    // Should that fail, the whole journal stays, in which the others are found restored.
    journal.save(lock).ok();
    if failed {
        Err(Error::NotRestored { restored, journal: lock.journal() })
    } else {
        Ok(restored)
    }
}

/// The last entry first, but a lower bound that rises after its upper bound, and one that falls
/// before: the kernel bends or refuses a lower bound above the upper.
fn order(entries: &[Entry], knobs: &[Box<dyn Knob>]) -> Vec<usize> {
    let mut order: Vec<_> = (0..entries.len()).rev().collect();
    for (max, entry) in entries.iter().enumerate() {
        let Some(policy) = entry.id.strip_suffix(cpufreq::MAXIMUM) else { continue };
        let min = format!("{policy}{}", cpufreq::MINIMUM);
        let Some(min) = entries.iter().position(|entry| entry.id == min) else { continue };
        let reading = knobs[min].read().ok().and_then(|reading| reading.number());
        let falls = reading > entries[min].old.number();
        let (first, second) = if falls { (min, max) } else { (max, min) };
        let place = |order: &[usize], index| order.iter().position(|other| *other == index);
        let places = (place(&order, first), place(&order, second));
        if let (Some(one), Some(other)) = places
            && one > other
        {
            order.swap(one, other);
        }
    }
    order
}

fn put_one_back(
    journal: &mut Journal,
    index: usize,
    knob: &dyn Knob,
    lock: &Lock,
) -> Result<End, Error> {
    let entry = journal.entries[index].clone();
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
        let hidden = limit::is_below(knob, &entry, &current)
            && limit::holder(journal, index, lock, knob, &current)? == HeldBy::Other;
        if !hidden {
            return Ok(End::Foreign { found: current, old });
        }
    }
    let found = knob::write_and_read(knob, &current, &old)?;
    if found == old {
        return Ok(End::Restored { old });
    }
    if knob.is_limit() && found.number() < old.number() {
        // The old setting was written last now, so the reading is not foreign.
        let entry = &mut journal.entries[index];
        (entry.new, entry.read_back) = (old.clone(), Some(found.clone()));
        return Ok(End::Held { old, found });
    }
    if found == current {
        return Err(Error::NoEffect { knob: entry.id, asked: old, found });
    }
    Ok(End::Adjusted { old, found })
}
