//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod accelerator;
mod accelerator_devices;
mod agreement;
mod composite;
mod configuration;
mod error_queue;
mod host;
mod multiblock;
mod openssl_versions;
mod programs;
mod self_check;
mod servers;
mod support;
mod tls;
mod tls_sessions;
mod tls_tampering;
mod vectors;
