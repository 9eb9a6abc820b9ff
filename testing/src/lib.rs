//! What tests of all crates share: programs, places and machines made of files, skips that are
//! counted, waits for events, libraries and a certificate that are made once, the frozen corpus, the
//! commands of the handbook.
#![forbid(unsafe_code)]

mod certificate;
pub mod constant_time;
pub mod frozen;
pub mod handbook;
mod library;
mod machine;
mod memory;
mod opencl;
mod output;
mod place;
mod port;
mod programs;
pub mod results;
pub mod served_files;
mod skips;
mod virtual_machine;
mod wait;
mod watch;

pub use certificate::certificate;
pub use library::rust_library;
pub use machine::Machine;
pub use memory::{assert_leaves_no_core_file, found_in_memory, waiting_for_input};
pub use opencl::opencl_is_here;
pub use output::{assert_exit, assert_output_refused, stderr, stdout, with_closed_output};
pub use place::{Place, names, pattern};
pub use port::free_port;
pub use programs::{install, signal, wattlock, wattlock_path, with_input, without_input};
pub use skips::{has_program, skip};
pub use virtual_machine::VirtualMachine;
pub use wait::{exits_within, wait_for, wait_until};
pub use watch::Watched;
