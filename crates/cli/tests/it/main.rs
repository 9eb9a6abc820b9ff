//! The tests of this crate's public interface, as one program: linking is what they cost most.

mod accelerators;
mod batches;
mod bench;
mod cipher;
mod clocks;
mod devices;
mod documents;
mod hash;
mod https;
mod inputs;
mod interoperability;
mod keys;
mod measure;
mod report;
mod report_looks;
mod round_trip;
mod sefps;
mod signals;
mod simulate;
mod simulate_policies;
mod stream;
mod stream_faults;
mod support;
mod tampering;
