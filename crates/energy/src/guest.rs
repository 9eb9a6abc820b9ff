//! Virtual machines whose energy the hypervisor reports.

use std::time::Duration;

use crate::attribute;
use crate::root::Root;

/// How often a hypervisor has a new value: QEMU computes one each second, and then has to set it.
pub(crate) const REFRESH: Duration = Duration::from_millis(1100);

/// True if the CPU says that a hypervisor runs it.
pub(crate) fn is_virtual(root: &Root) -> bool {
    let cpuinfo = attribute::text(&root.path("proc/cpuinfo")).unwrap_or_default();
    let flags = cpuinfo.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    flags.split_whitespace().any(|flag| flag == "hypervisor")
}
