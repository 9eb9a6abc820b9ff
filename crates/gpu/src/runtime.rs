//! Libraries that reach devices, and what programs ask of each in the same way.

use std::time::Duration;

use wattlock_engine::{Device, Fault};

/// A library that reaches devices. What programs say of devices they take from here.
pub struct Runtime {
    /// What its devices are called: `cuda` of `cuda:0`.
    pub name: &'static str,
    /// What people call it.
    pub title: &'static str,
    /// Its file.
    pub library: &'static str,
    /// What helps where it is missing.
    pub fix: &'static str,
    pub(crate) takes: fn(&str) -> bool,
    pub(crate) list: fn() -> Result<Vec<Offer>, Fault>,
    pub(crate) choose: fn(Option<&str>) -> Result<Offer, Fault>,
}

impl Runtime {
    /// All its devices; none is opened.
    ///
    /// # Errors
    /// Why there are none.
    pub fn list(&self) -> Result<Vec<Offer>, Fault> {
        (self.list)()
    }
}

/// A device that was asked for by name, which need not be there.
#[derive(Clone)]
pub struct Named {
    /// The library that reaches it.
    pub runtime: &'static Runtime,
    which: Option<String>,
}

impl Named {
    /// Reads `cuda`, `opencl:1` and the like; `None` if no runtime has such names.
    pub fn parse(text: &str) -> Option<Self> {
        let (name, which) = match text.split_once(':') {
            Some((name, which)) => (name, Some(which.trim())),
            None => (text, None),
        };
        let runtime = super::RUNTIMES.iter().find(|runtime| runtime.name == name)?;
        let takes = which.is_none_or(runtime.takes);
        takes.then(|| Self { runtime, which: which.map(str::to_owned) })
    }

    /// All forms of names, for people.
    pub fn forms() -> String {
        let forms = super::RUNTIMES.iter().map(|runtime| format!("{0}, {0}:N", runtime.name));
        forms.collect::<Vec<_>>().join(", ")
    }

    /// The device of that name. Without more than a runtime's name it is the first that is no CPU.
    ///
    /// # Errors
    /// Why there is none.
    pub fn choose(&self) -> Result<Offer, Fault> {
        (self.runtime.choose)(self.which.as_deref())
    }

    /// As [`Named::choose`]; but where a runtime has only the CPU, its name alone means that.
    ///
    /// # Errors
    /// As [`Named::choose`].
    pub fn choose_even_cpu(&self) -> Result<Offer, Fault> {
        self.choose().or_else(|why| match self.which {
            Some(_) => Err(why),
            None => self.runtime.list()?.into_iter().next().ok_or(why),
        })
    }
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.runtime.name)?;
        self.which.as_ref().map_or(Ok(()), |which| write!(f, ":{which}"))
    }
}

/// A device that can be opened.
pub struct Offer {
    /// Its name, as [`Named::parse`] reads it.
    pub id: String,
    /// What it is, in its driver's words; of a device that was chosen by number, its number.
    pub what: String,
    /// Its driver's name.
    pub driver: String,
    /// Its UUID, as NVML has it, if it was listed and has one.
    pub uuid: Option<String>,
    /// True if it is the CPU by another way, which is used only by name.
    pub is_cpu: bool,
    /// True if its driver starts programs when it is opened, and ends the process if it cannot.
    pub starts_programs: bool,
    pub(crate) open: Box<dyn FnOnce(Opening) -> Result<Opened, Fault>>,
}

impl Offer {
    /// Opens it, and tests it.
    ///
    /// # Errors
    /// Why it cannot be used.
    pub fn open(self, how: Opening) -> Result<Opened, Fault> {
        (self.open)(how)
    }
}

/// How a device is opened.
#[derive(Clone, Copy, Debug)]
pub struct Opening {
    /// True if its results are checked; without that, a device that errs makes wrong output. Only
    /// measurements have a use for that.
    pub verify: bool,
    /// How long it may be silent; `None` is for the device to say.
    pub timeout: Option<Duration>,
    /// True for small jobs, each waited for; false for long ones, of which it has many pieces at
    /// once.
    pub small_jobs: bool,
}

/// A device that was opened, and what is known of it then.
pub struct Opened {
    /// The device.
    pub device: Box<dyn Device>,
    /// The product's name.
    pub product: String,
    /// Units that work in parallel: `N` of Eq. 1 of SEFPS.
    pub multiprocessors: usize,
    /// Their highest clock; 0 if the driver does not report it.
    pub clock_mhz: f64,
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    #[test]
    fn a_name_says_the_runtime_and_the_device() {
        for text in ["cuda", "cuda:3", "opencl", "opencl:0", "opencl:pthread"] {
            assert_eq!(Named::parse(text).unwrap().to_string(), text);
        }
        assert_eq!(Named::parse("cuda: 3").unwrap().to_string(), "cuda:3");
        for text in ["", "cpu", "gpu", "CUDA", "cuda:x", "cuda:-1", "cuda:", "opencl:", "opencl,0"]
        {
            assert!(Named::parse(text).is_none(), "{text}");
        }
    }
}
