//! A setting of the machine that can be changed for a while.

use std::thread;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::setting::Setting;

/// A setting of the machine.
pub trait Knob: Send {
    /// Its name, for good: `cpufreq/policy0/scaling_max_freq`.
    fn id(&self) -> &str;

    /// True if [`Knob::read`] asks the machine. If not, a restore cannot check whether the setting
    /// is still ours, and always puts it back.
    fn reads_back(&self) -> bool {
        true
    }

    /// Whether the knob can take this setting, seen without touching the machine.
    ///
    /// # Errors
    /// [`Error::NoSetting`]: the setting is of another kind.
    fn check(&self, setting: &Setting) -> Result<(), Error>;

    /// Returns the current setting.
    ///
    /// # Errors
    /// It cannot be read, or its value is no setting.
    fn read(&self) -> Result<Setting, Error>;

    /// Sets it. The machine may choose another value that is near, so read it back.
    ///
    /// # Errors
    /// It cannot be written.
    fn write(&self, setting: &Setting) -> Result<(), Error>;

    /// True if [`Knob::read`] shows the lowest of several limits, of which this setting is one.
    fn is_limit(&self) -> bool {
        false
    }

    /// The next setting above a reading, where the knob is a limit and the machine goes higher.
    fn step_above(&self, _reading: &Setting) -> Option<Setting> {
        None
    }

    /// Checks that no other limit is seen to hold the clock down.
    ///
    /// # Errors
    /// [`Error::Limited`]: a cooling device or the firmware does.
    fn check_limits(&self) -> Result<(), Error> {
        Ok(())
    }
}

/// Sets a knob that reads `before`, and reads it back. The kernel applies clocks in a work queue
/// after the write has returned, so a value that differs from `asked` is read again for a moment.
pub(crate) fn write_and_read(
    knob: &dyn Knob,
    before: &Setting,
    asked: &Setting,
) -> Result<Setting, Error> {
    knob.write(asked)?;
    let written = Instant::now();
    loop {
        let found = knob.read()?;
        let patience = if found == *before { SETTLING } else { BENDING };
        if found == *asked || written.elapsed() > patience {
            return Ok(found);
        }
        thread::sleep(Duration::from_millis(2));
    }
}

/// Far longer than a work queue takes.
const SETTLING: Duration = Duration::from_millis(250);

/// How long a value that is neither the old nor the new one may still become the new one.
const BENDING: Duration = Duration::from_millis(25);
