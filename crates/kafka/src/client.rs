//! The mirror: reads records of one topic, seals or opens them, and writes them to another.

mod cluster;
mod inlet;
mod keys_topic;
mod mirror;
mod opening;
mod outlet;
mod sealing;
mod settings;
mod trouble;

pub use cluster::Cluster;
pub use mirror::{Done, Mirror, Transform};
pub use opening::{OpenKey, Opening};
pub use sealing::{MakeKey, Rotation, Sealing};
pub use settings::Settings;
