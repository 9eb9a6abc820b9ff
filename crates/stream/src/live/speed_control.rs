//! Sets what a rung asks for, on a thread of its own: a clock takes milliseconds to be written.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::Shared;
use crate::bell::Bell;
use crate::ladder::Rung;

/// Sets the rungs of a ladder: the clocks of a GPU, or a cap of the CPUs' clock.
pub trait SpeedControl: Send {
    /// Sets the rung of that index; called on change only, and never by a thread that seals.
    ///
    /// # Errors
    /// Why it was not set. The stream goes on.
    fn set(&mut self, index: usize, rung: &Rung) -> Result<(), Box<dyn std::error::Error>>;
}

/// The rung that is wanted, for the thread that sets it.
pub(super) struct Setter {
    wanted: AtomicUsize,
    ended: AtomicBool,
    changed: Bell,
    nothing: usize,
}

impl Setter {
    /// A setter for `rungs` rungs; none is wanted yet.
    pub fn new(rungs: usize) -> Self {
        let wanted = AtomicUsize::new(rungs);
        Self { wanted, ended: AtomicBool::new(false), changed: Bell::default(), nothing: rungs }
    }

    /// Wants that rung; the last one wanted counts.
    pub fn want(&self, rung: usize) {
        if self.wanted.swap(rung, Ordering::SeqCst) != rung {
            self.changed.ring();
        }
    }

    /// Lets the thread go.
    pub fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.changed.ring_all();
    }
}

impl Shared {
    /// What the thread that sets does.
    pub(super) fn turn(&self, mut control: Box<dyn SpeedControl>) {
        let setter = &self.setter;
        let mut set = setter.nothing;
        loop {
            let listener = setter.changed.listen();
            let wanted = setter.wanted.load(Ordering::SeqCst);
            if wanted != set {
                set = wanted;
                drop(listener);
                let rung = &self.desk.ladder().rungs()[wanted];
                self.recorder.set(control.set(wanted, rung));
            } else if setter.ended.load(Ordering::SeqCst) {
                return;
            } else {
                listener.wait(None);
            }
        }
    }
}
