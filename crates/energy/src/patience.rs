//! How long to wait for what may never answer.

use std::time::Duration;

/// The driver wakes every GPU, which without a daemon takes seconds for each.
pub(crate) const NVML: Duration = Duration::from_secs(60);
