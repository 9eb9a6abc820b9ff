//! `wattlock-lab bench`: measures our claims, with the peers in the same run.

pub mod ciphers;
pub mod files;
mod gateway;
pub mod https;
pub mod objects;
pub mod stream;

mod child;
pub mod content;
pub mod joules;
pub mod lab;
pub mod provider;
pub mod publish;
pub mod python;
pub mod rates;
mod rows;
pub mod stream_rows;
mod stream_saturation;
mod stream_text;
pub mod stream_users;
mod tools;
mod trees;
