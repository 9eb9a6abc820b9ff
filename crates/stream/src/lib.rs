//! Seals the messages of many users, in order for each user, through a bounded window, no faster
//! than their velocity asks for.
//!
//! A [`Ladder`] holds what a machine can be set to: clocks, or numbers of workers. A
//! [`Velocity`] policy is a pure function that looks at the window, how full it is and how old its
//! messages are, and chooses a rung.
//! A [`Window`] bounds what is held in memory, and [`Live`] seals what comes into it, on threads of
//! its own, and hands it to a [`Sink`]. [`frame`] is the format of sealed streams, and [`gateway`] leads
//! connections into them and out again.
#![forbid(unsafe_code)]

mod arrival_times;
mod bell;
mod error;
pub mod forward;
pub mod frame;
pub mod gateway;
mod job;
mod ladder;
mod live;
mod lock;
mod message;
mod policy;
mod pool;
mod queue;
pub mod segment;
mod window;

pub use arrival_times::ArrivalTimes;
pub use error::Error;
pub use ladder::{Ladder, Rung};
pub use live::{
    AtOnce, Delays, Done, GpuClocks, Live, OnDevice, OnShortcut, Pace, Settings, Shortcut, Sink,
    SpeedControl, Stats, Summary,
};
pub use message::{Cipher, Message, Nonce};
pub use policy::{Sense, Velocity};
pub use pool::Pool;
pub use window::{Reserve, Room, Taken, Use, Window};
