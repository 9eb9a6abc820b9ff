//! What Wattlock's programs share: devices, clocks and meters as flags choose them, signals, progress,
//! messages, and how a run ends.
#![forbid(unsafe_code)]

/// Writes a line to standard error. Unlike `eprintln!`, it does not panic on a closed pipe: the
/// work is done, and the exit code shows the result.
#[macro_export]
macro_rules! tell {
    ($($text:tt)*) => {
        $crate::exit::write_message(format!($($text)*))
    };
}

/// Writes a line to standard error that begins with the name of the program.
#[macro_export]
macro_rules! say {
    ($($text:tt)*) => {
        $crate::tell!("{}: {}", $crate::program::name(), format_args!($($text)*))
    };
}

pub mod accelerators;
pub mod clocks;
pub mod documents;
pub mod drivers;
pub mod energy;
pub mod exit;
pub mod flags;
pub mod gpus;
pub mod guardian;
pub mod invocation;
pub mod kernels;
mod lock;
pub mod metrics;
pub mod program;
pub mod progress;
pub mod replace;
pub mod report;
pub mod signals;
pub mod summary;
pub mod values;
