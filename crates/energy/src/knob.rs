//! Settings of the machine that can be changed for a while, by a name that outlives the program.
//!
//! A lease writes the names into its journal, and whoever replays that journal finds the knobs by
//! them again. So a name has one exact form for each kind of knob, and anything else is refused:
//! a journal must not lead a program that runs as root to other files.

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use crate::nvml_knob::{self, PowerLimit};
use crate::{Error, Found, LockedClocks, Root, cpufreq};

/// A setting of the machine.
pub trait Knob: Send {
    /// Its name, for good: `cpufreq/policy0/scaling_max_freq`.
    fn id(&self) -> &str;

    /// True if [`Knob::read`] asks the machine. Where the machine would not tell, nobody can see
    /// whether a setting is still ours, and it is put back in any case.
    fn reads_back(&self) -> bool {
        true
    }

    /// Whether the knob can take this setting, seen without touching the machine.
    ///
    /// # Errors
    /// [`Error::NoSetting`]: the setting is of another kind.
    fn check(&self, setting: &Setting) -> Result<(), Error>;

    /// What it is set to.
    ///
    /// # Errors
    /// It cannot be read, or holds what is no setting.
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

    /// The highest setting that the machine has, where the knob is a limit.
    fn highest(&self) -> Option<Setting> {
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

/// The knob of that name, if the name has the exact form of one; it may still be missing here.
pub fn by_id(root: &Root, id: &str) -> Option<Box<dyn Knob>> {
    match id.split_once('/')? {
        ("cpufreq", rest) => Some(Box::new(cpufreq::Attribute::by_name(root, rest)?)),
        ("nvml", rest) => match LockedClocks::by_name(root, rest) {
            Some(knob) => Some(Box::new(knob)),
            None => Some(Box::new(PowerLimit::by_name(root, rest)?)),
        },
        _ => None,
    }
}

/// What can be set and what cannot, for people.
pub fn found(root: &Root) -> Vec<Found> {
    cpufreq::found(root).into_iter().chain(nvml_knob::found(root)).collect()
}

/// Sets a knob that reads `before`, and reads what became of it. The kernel applies clocks in a
/// work queue, after the write has returned, so what is not as asked is looked at for a moment.
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

/// What a knob is set to: one short word, as the kernel writes it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Setting(String);

impl Setting {
    /// `word`, if it can be a setting: letters, digits and `_-,.`, 64 of them at most.
    pub fn new(word: &str) -> Option<Self> {
        let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"_-,.".contains(&byte);
        let fits = (1..=64).contains(&word.len()) && word.bytes().all(usual);
        fits.then(|| Self(word.to_owned()))
    }

    /// The word.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The number it is, if it is one in the form in which the kernel prints numbers.
    pub fn number(&self) -> Option<u32> {
        self.0.parse().ok().filter(|number: &u32| number.to_string() == self.0)
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<u32> for Setting {
    fn from(number: u32) -> Self {
        Self(number.to_string())
    }
}

impl TryFrom<String> for Setting {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        Self::new(&word).ok_or_else(|| {
            let word: String = word.chars().take(40).collect();
            format!("{word:?} is no setting")
        })
    }
}

impl From<Setting> for String {
    fn from(setting: Setting) -> Self {
        setting.0
    }
}

/// Far longer than a work queue takes.
const SETTLING: Duration = Duration::from_millis(250);

/// How long a value that is neither the old nor the new one may still become the new one.
const BENDING: Duration = Duration::from_millis(25);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_exact_names_are_knobs() {
        let root = Root::new("/nowhere");
        for id in [
            "cpufreq/policy0/scaling_max_freq",
            "cpufreq/policy12/scaling_min_freq",
            "cpufreq/policy127/energy_performance_preference",
        ] {
            assert_eq!(by_id(&root, id).unwrap().id(), id);
        }
        for forged in [
            "",
            "cpufreq",
            "cpufreq/",
            "cpufreq/policy0",
            "cpufreq/../../etc/passwd",
            "cpufreq/policy0/../../../../etc/passwd",
            "cpufreq/policy0/scaling_governor",
            "cpufreq/policy0/scaling_max_freq/",
            "cpufreq//policy0/scaling_max_freq",
            "cpufreq/policy00/scaling_max_freq",
            "cpufreq/policy+1/scaling_max_freq",
            "cpufreq/policy/scaling_max_freq",
            "cpufreq/policy99999999999/scaling_max_freq",
            "cpufreq/policy0/scaling_max_freq\n",
            "/cpufreq/policy0/scaling_max_freq",
            "../cpufreq/policy0/scaling_max_freq",
            "nvml/GPU-0/anything",
        ] {
            assert!(by_id(&root, forged).is_none(), "{forged:?}");
        }
    }

    #[test]
    fn a_setting_is_one_short_word() {
        for word in ["800000", "balance_performance", "210,1410", "0.5", "-1"] {
            assert_eq!(Setting::new(word).unwrap().as_str(), word);
        }
        for word in ["", "a b", "a\n", "../x", "\0", "é", &"9".repeat(65)] {
            assert!(Setting::new(word).is_none(), "{word:?}");
        }
        let parsed: Result<Setting, _> = serde_json::from_str("\"rm -rf /\"");
        assert!(parsed.unwrap_err().to_string().contains("is no setting"));
    }

    #[test]
    fn numbers_have_one_form() {
        assert_eq!(Setting::from(2_400_000).number(), Some(2_400_000));
        for word in ["+5", "05", "5.0", "-5", "99999999999", "performance"] {
            assert_eq!(Setting::new(word).and_then(|setting| setting.number()), None, "{word}");
        }
    }
}
