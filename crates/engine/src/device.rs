//! Something that works through pieces.

use crate::error::Error;
use crate::job::Cipher;
use crate::run::Run;
use crate::tally::Tally;

/// A CPU, a GPU, or a fake of one: takes pieces from a run until none is left.
pub trait Device: Send + Sync {
    /// The name in reports, in profiles and in `--device`; no two devices of an engine share one.
    fn name(&self) -> &str;

    /// How many workers of this device may take part at once, at most.
    fn workers(&self) -> usize;

    /// Pieces that it keeps in flight at once, all its workers together: what pieces near the end
    /// are shared among.
    fn slots(&self) -> usize {
        self.workers()
    }

    /// Whether it can do this; if not, it is not asked to.
    fn supports(&self, cipher: &Cipher<'_>) -> bool;

    /// True if it takes part only when its name is given: an OpenCL device that is the CPU again.
    fn only_by_name(&self) -> bool {
        false
    }

    /// Takes, works on and finishes pieces of `run` until none is left. An accelerator takes them
    /// with [`Run::take_as`], which knows the plan, and finishes them in the order in which it took
    /// them. Called once for each worker, and at the same time for every run that the engine has.
    ///
    /// A device that fails gives its pieces back with [`Run::hand_back`], their input untouched,
    /// before it returns the [`Fault`]; another device then finishes them. One that finds that it
    /// computed something wrong returns [`Stop::Wrong`]: what it did before is then doubtful, too. A device that can be left
    /// alone while it works does the same at [`Run::deadline`].
    ///
    /// # Errors
    /// [`Stop::Fault`] or [`Stop::Wrong`] when the device itself failed, [`Stop::Job`] when the job
    /// did.
    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop>;
}

/// Why a worker stopped before the run was done.
#[derive(Debug)]
pub enum Stop {
    /// The device is of no more use; the job is not to blame.
    Fault(Fault),
    /// As [`Stop::Fault`], of a device that computed something wrong: what it did of this run, and
    /// can still be done again, is done again by the CPU.
    Wrong(Fault),
    /// The job cannot succeed on any device.
    Job(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Self {
        Self::Job(error)
    }
}

/// What a device says when it fails: kept in the report, never an error of the job.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);
