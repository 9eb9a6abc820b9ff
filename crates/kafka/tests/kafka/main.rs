//! `wattlock kafka` with a broker. `make kafka` runs these tests.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod broker;
mod cluster;
mod kills;
mod mirror;
mod refusals;
mod setting;
mod tls;
