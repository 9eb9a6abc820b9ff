//! What a lease has changed, written down before it is changed.
//!
//! The journal is replaced as a whole and synced, so it is never half a journal: one that cannot be
//! read was damaged or edited, and is neither obeyed nor removed.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;
use std::process;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::knob::Knob;
use crate::knobs;
use crate::root::Root;
use crate::setting::Setting;
use crate::state::{self, Lock};

/// The document.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Journal {
    version: u32,
    /// Settings do not outlive the boot they were made in.
    pub boot_id: String,
    /// The process that made the changes.
    pub pid: u32,
    /// When it was started, in ticks since the boot: another process may get its number.
    started_ticks: Option<u64>,
    /// The lock that it held.
    lock_inode: Option<u64>,
    /// One for each knob, in the order in which they were changed first.
    pub entries: Vec<Entry>,
}

/// One knob that was changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    pub id: String,
    /// What it was set to before the lease.
    pub old: Setting,
    /// What the lease wrote last, or was about to write.
    pub new: Setting,
    /// What it read after a write; until the next read, after the write before.
    pub read_back: Option<Setting>,
}

impl Entry {
    /// True if the lease was about to write it, or the kernel made something else of it.
    pub fn is_open(&self) -> bool {
        self.read_back.as_ref() != Some(&self.new)
    }

    /// True if a knob that reads `current` was last set by the lease.
    pub fn is_ours(&self, current: &Setting) -> bool {
        *current == self.new || Some(current) == self.read_back.as_ref()
    }
}

impl Journal {
    /// The empty journal of this process.
    pub fn new(root: &Root, lock: &Lock) -> Self {
        let pid = process::id();
        Self {
            version: VERSION,
            boot_id: boot_id(root),
            pid,
            started_ticks: started_ticks(pid),
            lock_inode: lock.inode(),
            entries: Vec::new(),
        }
    }

    /// The journal that is there, if one is.
    pub fn load(lock: &Lock) -> Result<Option<Self>, Error> {
        Self::load_from(&lock.journal())
    }

    /// The journal at `path`, if one is there; a lease may replace it meanwhile.
    pub fn load_from(path: &Path) -> Result<Option<Self>, Error> {
        let Some(text) = text(path)? else { return Ok(None) };
        let damaged = |why: String| Error::Journal { path: path.to_owned(), why };
        let journal: Self =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if journal.version != VERSION {
            return Err(damaged(format!("its version is {}", journal.version)));
        }
        Ok(Some(journal))
    }

    /// Writes it in place of the one that is there; it is on the disk when this returns.
    pub fn save(&self, lock: &Lock) -> Result<(), Error> {
        let path = lock.journal();
        let new = path.with_extension("new");
        let write = || {
            let mut text = serde_json::to_vec_pretty(self)?;
            text.push(b'\n');
            match fs::remove_file(&new) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
            let mut file = state::create_new(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            lock.sync()
        };
        write().map_err(|source| Error::Write { path: path.clone(), source })
    }

    /// Removes it, because nothing is left to restore.
    pub fn discard(lock: &Lock) -> Result<(), Error> {
        let path = lock.journal();
        match fs::remove_file(&path).and_then(|()| lock.sync()) {
            Err(source) if source.kind() != ErrorKind::NotFound => {
                Err(Error::Write { path, source })
            }
            _ => Ok(()),
        }
    }

    /// True if the lease that wrote it may go on, though `lock` is ours: the file of its own lock
    /// was removed, and its process runs still. Otherwise a lock that can be had says all.
    pub fn owner_lives(&self, lock: &Lock) -> bool {
        let same_lock = self.lock_inode.is_some() && self.lock_inode == lock.inode();
        let runs = || started_ticks(self.pid) == self.started_ticks;
        !same_lock && self.started_ticks.is_some() && runs()
    }

    /// The knobs of all entries, each of which can be set as the entry says.
    pub fn knobs(&self, root: &Root, lock: &Lock) -> Result<Vec<Box<dyn Knob>>, Error> {
        let mut knobs: Vec<Box<dyn Knob>> = Vec::new();
        for entry in &self.entries {
            let knob = knobs::by_id(root, &entry.id)
                .ok_or_else(|| damaged(lock, Error::UnknownKnob(entry.id.clone()).to_string()))?;
            for setting in [&entry.old, &entry.new].into_iter().chain(&entry.read_back) {
                knob.check(setting).map_err(|error| damaged(lock, error.to_string()))?;
            }
            if knobs.iter().any(|other| other.id() == knob.id()) {
                return Err(damaged(lock, format!("it has two entries for {}", knob.id())));
            }
            knobs.push(knob);
        }
        Ok(knobs)
    }
}

/// The bytes of the journal at `path`, if one is there.
pub(crate) fn text(path: &Path) -> Result<Option<Vec<u8>>, Error> {
    let file = match state::open(&mut OpenOptions::new(), path) {
        Err(Error::Read { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    let mut text = Vec::new();
    let read = file.take(MAX_BYTES).read_to_end(&mut text);
    read.map_err(|source| Error::Read { path: path.to_owned(), source })?;
    Ok(Some(text))
}

/// The kernel's identifier of this boot; empty if it has none.
pub(crate) fn boot_id(root: &Root) -> String {
    let text = fs::read_to_string(root.path("proc/sys/kernel/random/boot_id"));
    text.unwrap_or_default().trim().to_owned()
}

/// When a process that runs was started. Processes are those of the real machine, under any root.
fn started_ticks(pid: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything. See proc_pid_stat(5): 3 is state, 22 starttime.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace();
    let runs = !matches!(fields.next()?, "Z" | "X");
    fields.nth(18)?.parse().ok().filter(|_| runs)
}

fn damaged(lock: &Lock, why: String) -> Error {
    Error::Journal { path: lock.journal(), why }
}

const VERSION: u32 = 1;

/// More than thousands of knobs take.
const MAX_BYTES: u64 = 4 << 20;

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;
    use crate::state::{Role, State};

    fn word(word: &str) -> Setting {
        Setting::new(word).unwrap()
    }

    #[test]
    fn it_is_read_as_it_was_written() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::new(machine.path());
        fs::create_dir_all(root.path("proc/sys/kernel/random")).unwrap();
        fs::write(root.path("proc/sys/kernel/random/boot_id"), "d5a1\n").unwrap();
        let lock = State::create(&root).unwrap().lock(Role::Lease).unwrap();
        assert!(Journal::load(&lock).unwrap().is_none());
        let mut journal = Journal::new(&root, &lock);
        journal.entries.push(Entry {
            id: "cpufreq/policy0/scaling_max_freq".into(),
            old: 3_000_000.into(),
            new: 1_000_000.into(),
            read_back: None,
        });
        journal.save(&lock).unwrap();
        journal.entries[0].read_back = Some(1_100_000.into());
        journal.save(&lock).unwrap();
        assert_eq!(fs::metadata(lock.journal()).unwrap().mode() & 0o777, 0o600);
        let loaded = Journal::load(&lock).unwrap().unwrap();
        assert_eq!((loaded.boot_id.as_str(), loaded.pid), ("d5a1", process::id()));
        assert_eq!(loaded.entries, journal.entries);
        assert_eq!(loaded.knobs(&root, &lock).unwrap().len(), 1);
        Journal::discard(&lock).unwrap();
        Journal::discard(&lock).unwrap();
        assert!(Journal::load(&lock).unwrap().is_none());
    }

    #[test]
    fn an_owner_whose_lock_was_removed_is_known_by_its_process() {
        let machine = tempfile::tempdir().unwrap();
        let root = Root::new(machine.path());
        let lock = State::create(&root).unwrap().lock(Role::Lease).unwrap();
        let mut journal = Journal::new(&root, &lock);
        // The holder of the same lock may be sure, even if the process still runs.
        assert!(!journal.owner_lives(&lock));
        fs::remove_file(lock.journal().with_file_name("lock")).unwrap();
        let other = State::create(&root).unwrap().lock(Role::Lease).unwrap();
        assert!(journal.owner_lives(&other));
        // Another process got its number.
        journal.started_ticks = journal.started_ticks.map(|ticks| ticks + 1);
        assert!(!journal.owner_lives(&other));
        (journal.pid, journal.started_ticks) = (u32::MAX, None);
        assert!(!journal.owner_lives(&other));
    }

    #[test]
    fn what_was_written_or_read_back_is_ours() {
        let mut entry = Entry {
            id: String::new(),
            old: word("3000"),
            new: word("1000"),
            read_back: Some(word("1200")),
        };
        assert!(entry.is_ours(&word("1000")) && entry.is_ours(&word("1200")));
        assert!(!entry.is_ours(&word("3000")) && !entry.is_ours(&word("2000")));
        entry.read_back = None;
        assert!(entry.is_ours(&word("1000")) && !entry.is_ours(&word("1200")));
    }
}
