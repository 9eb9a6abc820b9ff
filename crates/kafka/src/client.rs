//! The mirror: reads records of one topic, seals or opens them, and writes them to another.

mod cluster;
mod inlet;
mod keys_topic;
mod mirror;
mod opening;
mod outlet;
mod sealing;
mod trouble;

pub use cluster::Cluster;
pub use mirror::{Done, Mirror, Settings, Transform};
pub use opening::{OpenKey, Opening};
pub use sealing::{MakeKey, Rotation, Sealing};
