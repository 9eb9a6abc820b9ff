//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod aes_vectors;
mod agreement;
mod constant_time;
mod features;
mod gcm;
mod gcm_vectors;
mod hash_vectors;
mod hmac;
mod stitched;
mod traits;
mod virtual_machine;
#[cfg(target_os = "linux")]
mod wiping;
mod wycheproof;
