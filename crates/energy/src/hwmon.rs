//! Sensors of boards and chips as the kernel shows them below `/sys/class/hwmon`.

use crate::Root;
use crate::candidate::Candidate;

pub(crate) const SOURCE: &str = "hwmon";

/// Looks for them.
pub(crate) fn discover(_root: &Root) -> Vec<Candidate> {
    Vec::new()
}
