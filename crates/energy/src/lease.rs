//! Settings of the machine, changed for a while.
//!
//! Before anything is changed, a journal on the disk says what it was; while it is changed, a lock
//! keeps other leases away and a [`crate::guardian`] waits for the death of this process. Should the
//! guardian die as well, the next lease or [`crate::restore::replay`] restores from the journal.

use std::process::Command;

use crate::error::{Error, Restored};
use crate::guardian::Guardian;
use crate::journal::{Entry, Journal};
use crate::knob::{self, Knob};
use crate::knobs;
use crate::limit::{self, HeldBy};
use crate::restore::{self, Replay};
use crate::root::Root;
use crate::setting::Setting;
use crate::state::{Lock, Role, State};

/// The right to change settings until it is dropped, which puts them back.
///
/// Prefer [`Lease::restore`], which returns what was restored. After a drop that could not restore
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
    /// `guardian` runs a program that does [`crate::guardian::watch`] on the same `root`. It
    /// prints what it had to restore to the caller's standard error.
    ///
    /// # Errors
    /// - [`Error::Held`]: there is another lease;
    /// - those of [`crate::restore::replay`]: what an earlier lease left could not be restored;
    /// - [`Error::NotRestored`]: another limit still hides whether it was;
    /// - [`Error::Guardian`]: it does not start.
    ///
    /// Nothing is changed then, other than by that restoring.
    pub fn acquire(root: &Root, guardian: Command) -> Result<Self, Error> {
        let lock = State::create(root)?.lock(Role::Lease)?;
        let leftover = match restore::replay_under(root, &lock)? {
            Replay::Restored(restored) if restored.is_held() => {
                return Err(Error::NotRestored { restored, journal: lock.journal() });
            }
            leftover => leftover,
        };
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
    /// - [`Error::Foreign`]: another program has changed it since this lease did;
    /// - [`Error::Limited`]: another limit hides what it is set to;
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
        self.set_first(knobs::by_id(&self.root, id).ok_or_else(unknown)?, asked)
    }

    /// What this lease last wrote to the knob of that name, if it did.
    pub(crate) fn written(&self, id: &str) -> Option<&Setting> {
        self.journal.entries.iter().find(|entry| entry.id == id).map(|entry| &entry.new)
    }

    /// Puts everything back, the last change first, and ends the lease.
    ///
    /// # Errors
    /// [`Error::NotRestored`]: everything was tried, and the journal keeps what is left.
    pub fn restore(mut self) -> Result<Restored, Error> {
        let restored = restore::put_back(&mut self.journal, &self.knobs, &self.lock);
        // The caller gets what failed; the guardian would only fail once more.
        self.end();
        restored
    }

    fn set_first(&mut self, knob: Box<dyn Knob>, asked: &Setting) -> Result<Written, Error> {
        knob.check(asked)?;
        let old = knob.read()?;
        if old == *asked {
            return Ok(Written { asked: old.clone(), read_back: old });
        }
        knob.check_limits()?;
        let id = knob.id().to_owned();
        let new = asked.clone();
        self.journal.entries.push(Entry { id, old: old.clone(), new, read_back: None });
        self.knobs.push(knob);
        let entry = self.knobs.len() - 1;
        let ready = self.check_setting(entry, &old).and_then(|()| self.journal.save(&self.lock));
        if let Err(error) = ready {
            self.take_back(entry, &old);
            return Err(error);
        }
        self.write(entry, &old)
    }

    /// Checks that a limit below the machine's highest clock is the setting and no other limit's,
    /// behind which the setting could not be seen.
    fn check_setting(&mut self, entry: usize, old: &Setting) -> Result<(), Error> {
        let knob = self.knobs[entry].as_ref();
        match limit::holder(&mut self.journal, entry, &self.lock, knob, old)? {
            HeldBy::Setting => Ok(()),
            HeldBy::Other => {
                let by = format!(
                    "an unknown limit of {old} kHz (no cooling device, bios_limit or intel_pstate limit explains \
                     it). The setting behind it cannot be read and is {old} kHz now; set it again if it was \
                     higher"
                );
                Err(Error::Limited { knob: knob.id().to_owned(), by })
            }
        }
    }

    /// Removes the last entry, whose check failed, once the step of that check is taken back. If it
    /// cannot be, the entry stays, and the end of the lease or its guardian tries again.
    fn take_back(&mut self, entry: usize, old: &Setting) {
        // Without a step nothing was written, and behind another limit a write would change the setting.
        let stepped = self.journal.entries[entry].read_back.is_some();
        if stepped && self.knobs[entry].write(old).is_err() {
            return;
        }
        self.journal.entries.pop();
        self.knobs.pop();
        // It may have been written with the step.
        self.journal.save(&self.lock).ok();
    }

    fn set_again(&mut self, entry: usize, asked: &Setting) -> Result<Written, Error> {
        let knob = self.knobs[entry].as_ref();
        knob.check(asked)?;
        let current = knob.read()?;
        if !self.journal.entries[entry].is_ours(&current) {
            let hidden = limit::is_below(knob, &self.journal.entries[entry], &current)
                && limit::holder(&mut self.journal, entry, &self.lock, knob, &current)?
                    == HeldBy::Other;
            if !hidden {
                return Err(Error::Foreign { knob: knob.id().to_owned(), found: current });
            }
        } else if current == *asked && self.journal.entries[entry].new == *asked {
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
        let read_back = knob::write_and_read(knob.as_ref(), current, &asked)?;
        // A limit that is raised shows a lower one, if there is one.
        let hidden = knob.is_limit() && asked.number() >= current.number();
        if read_back == *current && read_back != asked && !hidden {
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
        // A drop cannot return an error. Without our message, the guardian tries again and reports.
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

impl Written {}

#[cfg(test)]
impl Lease {
    /// One without a guardian, restored only by [`Lease::restore`].
    pub(crate) fn unguarded(root: &Root) -> Self {
        let lock = State::create(root).and_then(|state| state.lock(Role::Lease)).expect("a lock");
        let (journal, leftover) = (Journal::new(root, &lock), Replay::Nothing);
        Self { root: root.clone(), journal, knobs: Vec::new(), leftover, guardian: None, lock }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::error::End;

    /// A knob that turns a written value into what a test wants.
    struct Odd {
        id: &'static str,
        value: Arc<Mutex<u32>>,
        bend: fn(u32, u32) -> Option<u32>,
    }

    impl Knob for Odd {
        fn id(&self) -> &str {
            self.id
        }

        fn check(&self, setting: &Setting) -> Result<(), Error> {
            let no = || Error::NoSetting { knob: self.id.into(), text: setting.to_string() };
            setting.number().map(drop).ok_or_else(no)
        }

        fn read(&self) -> Result<Setting, Error> {
            Ok((*self.value.lock().unwrap()).into())
        }

        fn write(&self, setting: &Setting) -> Result<(), Error> {
            let mut value = self.value.lock().unwrap();
            let refused = || std::io::Error::from(std::io::ErrorKind::PermissionDenied);
            let bent = (self.bend)(*value, setting.number().unwrap());
            *value =
                bent.ok_or_else(|| Error::Write { path: self.id.into(), source: refused() })?;
            Ok(())
        }
    }

    /// A lease, and three knobs that read 3000.
    struct Bench {
        lease: Lease,
        values: [Arc<Mutex<u32>>; 3],
        _machine: tempfile::TempDir,
    }

    impl Bench {
        fn new() -> Self {
            let machine = tempfile::tempdir().unwrap();
            let lease = Lease::unguarded(&Root::new(machine.path()));
            let values = std::array::from_fn(|_| Arc::new(Mutex::new(3000)));
            Self { lease, values, _machine: machine }
        }

        fn set_first(
            &mut self,
            knob: usize,
            asked: u32,
            bend: fn(u32, u32) -> Option<u32>,
        ) -> Result<Written, Error> {
            let value = self.values[knob].clone();
            let odd = Odd { id: ["a", "b", "c"][knob], value, bend };
            self.lease.set_first(Box::new(odd), &asked.into())
        }

        fn value(&self, knob: usize) -> u32 {
            *self.values[knob].lock().unwrap()
        }

        fn change(&self, knob: usize, value: u32) {
            *self.values[knob].lock().unwrap() = value;
        }

        fn on_disk(&self) -> Vec<Entry> {
            Journal::load(&self.lease.lock).unwrap().map_or(Vec::new(), |journal| journal.entries)
        }
    }

    const OBEYS: fn(u32, u32) -> Option<u32> = |_, asked| Some(asked);
    const CLAMPS: fn(u32, u32) -> Option<u32> = |_, asked| Some(asked.max(1200));

    #[test]
    fn the_journal_is_written_before_the_knob() {
        let mut bench = Bench::new();
        let refuses = |_, _| None;
        assert!(matches!(bench.set_first(0, 1000, refuses), Err(Error::Write { .. })));
        let entry = &bench.on_disk()[0];
        assert_eq!((&entry.old, &entry.new), (&3000.into(), &1000.into()));
        assert_eq!(entry.read_back, None);
        // It was never changed, so there is nothing to put back.
        let restored = bench.lease.restore().unwrap();
        assert!(matches!(restored.knobs[0].1, End::Restored { .. }));
    }

    #[test]
    fn what_the_kernel_makes_of_a_setting_is_ours_too() {
        let mut bench = Bench::new();
        let written = bench.set_first(0, 1000, CLAMPS).unwrap();
        assert_eq!((written.asked, written.read_back), (1000.into(), 1200.into()));
        assert_eq!(bench.on_disk()[0].read_back, Some(1200.into()));
        let again = bench.lease.set("a", &2000.into()).unwrap();
        assert_eq!(again.asked, again.read_back);
        bench.lease.restore().unwrap();
        assert_eq!(*bench.values[0].lock().unwrap(), 3000);
    }

    #[test]
    fn a_setting_that_does_nothing_is_an_error() {
        let mut bench = Bench::new();
        let error = bench.set_first(0, 1000, |old, _| Some(old)).unwrap_err();
        assert_eq!(error.to_string(), "a was set to 1000 and stayed at 3000");
        // A setting that is there already is none that must take effect, or be put back.
        bench.set_first(1, 3000, |old, _| Some(old)).unwrap();
        assert_eq!(bench.on_disk().len(), 1);
    }

    #[test]
    fn the_last_change_is_put_back_first_and_the_first_value_last() {
        let mut bench = Bench::new();
        for knob in 0..3 {
            bench.set_first(knob, 1000, OBEYS).unwrap();
        }
        bench.lease.set("a", &1500.into()).unwrap();
        assert_eq!(bench.on_disk()[0].old, 3000.into());
        let journal = bench.lease.lock.journal();
        let values = bench.values.clone();
        let restored = bench.lease.restore().unwrap();
        let ids: Vec<_> = restored.knobs.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!(ids, ["c", "b", "a"]);
        assert!(values.iter().all(|value| *value.lock().unwrap() == 3000));
        assert!(!journal.exists());
    }

    #[test]
    fn a_setting_that_another_program_changed_is_kept() {
        let mut bench = Bench::new();
        bench.set_first(0, 1000, OBEYS).unwrap();
        bench.set_first(1, 1000, OBEYS).unwrap();
        bench.change(0, 2222);
        let error = bench.lease.set("a", &1500.into()).unwrap_err();
        assert_eq!(error.to_string(), "a was changed to 2222 by another program");
        let values = bench.values.clone();
        let text = bench.lease.restore().unwrap().to_string();
        let said = "a: changed to 2222 by another program, left alone (it was 3000)";
        assert_eq!(text, format!("b: restored to 3000\n{said}"));
        assert_eq!((*values[0].lock().unwrap(), *values[1].lock().unwrap()), (2222, 3000));
    }

    #[test]
    fn everything_is_tried_and_the_journal_keeps_the_rest() {
        let mut bench = Bench::new();
        bench.set_first(0, 1000, OBEYS).unwrap();
        bench.set_first(1, 1000, |_, asked| (asked < 3000).then_some(asked)).unwrap();
        bench.set_first(2, 1000, OBEYS).unwrap();
        let values = bench.values.clone();
        let journal = bench.lease.lock.journal();
        let error = bench.lease.restore().unwrap_err();
        assert_eq!(values.map(|value| *value.lock().unwrap()), [3000, 1000, 3000]);
        let text = error.to_string();
        assert!(text.contains("b: not restored to 3000: cannot write b"), "{text}");
        assert!(text.contains("a: restored") && text.contains("c: restored"), "{text}");
        let kept = std::fs::read_to_string(journal).unwrap();
        assert!(kept.contains("\"b\"") && !kept.contains("\"a\"") && !kept.contains("\"c\""));
    }

    #[test]
    fn a_value_the_kernel_will_not_have_back_is_reported() {
        let mut bench = Bench::new();
        bench.set_first(0, 1000, |_, asked| Some(asked.min(2800))).unwrap();
        let text = bench.lease.restore().unwrap().to_string();
        assert_eq!(text, "a: restored to 3000, of which the kernel made 2800");
    }

    #[test]
    fn a_write_that_is_still_on_its_way_is_overtaken() {
        let mut bench = Bench::new();
        // As after a death between the journal and the kernel's obeying.
        let refuses_once = |old: u32, asked: u32| (asked == 3000).then_some(old + 1);
        bench.set_first(0, 1000, refuses_once).unwrap_err();
        assert_eq!(bench.value(0), 3000);
        let values = bench.values.clone();
        bench.lease.restore().unwrap();
        // The old value was written, though it was read.
        assert_eq!(*values[0].lock().unwrap(), 3001);
    }

    #[test]
    fn only_knobs_with_a_name_can_be_leased() {
        let mut bench = Bench::new();
        let error = bench.lease.set("cpufreq/../../etc/passwd", &1.into()).unwrap_err();
        assert!(matches!(error, Error::UnknownKnob(_)));
        assert!(bench.on_disk().is_empty());
    }
}
