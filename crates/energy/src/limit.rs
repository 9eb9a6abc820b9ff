//! Limits that are requests: what the machine shows is the lowest of several.
//!
//! `scaling_max_freq` shows the lowest of the requests of its writer, of heat, of the firmware and of
//! power caps. A reading below what a lease wrote is another program's setting, or another limit
//! that arrived meanwhile. A write one step above the reading shows which: a setting follows the
//! write, a limit does not, and then the setting may be changed without raising the clock.

use crate::error::Error;
use crate::journal::{Entry, Journal};
use crate::knob::{self, Knob};
use crate::setting::Setting;
use crate::state::Lock;

/// What holds a limit at its reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HeldBy {
    /// The setting itself.
    Setting,
    /// A request that does not come from the setting.
    Other,
}

/// True if the knob shows less than the lease wrote, which another limit may explain.
pub(crate) fn is_below(knob: &dyn Knob, entry: &Entry, reading: &Setting) -> bool {
    knob.is_limit() && reading.number() < entry.new.number()
}

/// Finds out what holds the reading of the journal's entry `index`, by a write one step above it
/// that is taken back if the reading follows. If it does not, the setting stays a step above: the
/// caller writes it next, to no more than the reading or what the lease found.
///
/// The journal knows of the step before it is written, so that a death leaves it known as ours. The
/// entry is as it was if nothing was written or the step was taken back.
pub(crate) fn holder(
    journal: &mut Journal,
    index: usize,
    lock: &Lock,
    knob: &dyn Knob,
    reading: &Setting,
) -> Result<HeldBy, Error> {
    // Where nothing is above the reading, nothing holds it down.
    let Some(step) = knob.step_above(reading) else { return Ok(HeldBy::Setting) };
    let before = journal.entries[index].clone();
    let entry = &mut journal.entries[index];
    entry.read_back = Some(std::mem::replace(&mut entry.new, step.clone()));
    if let Err(error) = journal.save(lock) {
        journal.entries[index] = before;
        return Err(error);
    }
    if knob::write_and_read(knob, reading, &step)? == *reading {
        return Ok(HeldBy::Other);
    }
    knob.write(reading)?;
    journal.entries[index] = before;
    journal.save(lock)?;
    Ok(HeldBy::Setting)
}
