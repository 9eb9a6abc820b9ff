//! Reads joules from the counters of a machine, and says of each what it is worth.
//!
//! Every [`Energy`] carries its [`Class`], its interval, what it covers, and its [`Caveat`]s; a sum
//! takes the weakest class of its parts, and a modelled figure has no best value, no name and no
//! JSON key in common with a measured one. [`Sources::open`] finds the counters, [`Sources::measure`]
//! runs something while a guard thread watches them wrap.
//!
//! Everything is read below a [`Root`], so that a test can bring a machine of its own:
//!
//! ```
//! use wattlock_energy::{Class, Root, Sources};
//!
//! let machine = tempfile::tempdir()?;
//! let mut sources = Sources::open(&Root::new(machine.path()));
//! let (five, window) = sources.measure(|| 2 + 3)?;
//! assert_eq!(five, 5);
//! assert_eq!(window.sum().class(), Class::Unavailable); // this machine has no counter
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod accumulator;
mod amount;
mod attribute;
mod candidate;
mod caveat;
mod choice;
mod class;
mod cooling;
pub mod cpufreq;
mod error;
pub mod fake;
mod figure;
mod found;
mod governor;
mod gpu_governor;
pub mod guardian;
mod guest;
mod idle;
mod integrator;
mod journal;
mod knob;
pub mod knobs;
mod lease;
mod limit;
mod meter;
mod meter_thread;
mod metered;
mod model;
mod nvml_knob;
mod obstacle;
mod patience;
mod probe;
pub mod repeat;
pub mod restore;
mod root;
mod setting;
mod source;
mod sources;
mod state;
mod whole;

/// True if this program is static, as builds for musl are: it cannot load the libraries of drivers.
pub const STATIC: bool = cfg!(all(target_env = "musl", target_feature = "crt-static"));

pub use amount::{Energy, Microjoules, Watts};
pub use caveat::Caveat;
pub use class::Class;
pub use cpufreq::Kilohertz;
pub use error::{End, Error, Restored};
pub use figure::Figure;
pub use found::{Found, Status};
pub use governor::{Applied, Governor};
pub use gpu_governor::{ClockPair, GpuGovernor};
pub use idle::Idle;
pub use knob::Knob;
pub use lease::{Lease, Written};
pub use metered::{Domain, Metered};
pub use model::{Load, Model, Tdp, modelled, modelled_net};
pub use nvml_knob::Megahertz;
pub use restore::Replay;
pub use root::Root;
pub use setting::Setting;
pub use sources::Sources;
pub use sources::external::External;
pub use sources::nvml::Gpu;
