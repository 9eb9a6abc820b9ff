//! `wattlock-lab bench`: measures our claims, with the peers in the same run.

pub mod blocks;
mod blocks_gpu;
pub mod ciphers;
pub mod files;
pub mod https;
pub mod stream;

mod block_rows;
mod child;
pub mod content;
mod energy_study;
mod extended_block;
mod granularity;
pub mod joules;
pub mod lab;
pub mod publish;
mod rates;
pub mod stream_rows;
mod stream_saturation;
mod stream_text;
pub mod stream_users;
mod tools;
