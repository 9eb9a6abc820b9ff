//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod battery;
mod cpufreq;
mod external;
mod hwmon;
mod lease;
mod nvml;
mod powercap;
