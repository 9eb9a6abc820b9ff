//! How many files and connections this program may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::args;

/// Raises the limit as far as the system allows: shells ask for fewer than there are connections.
pub fn raise_limit() {
    let limit = getrlimit(Resource::Nofile);
    // Where that is forbidden, fewer connections are accepted.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit });
}

/// Connections that may be open at once: no more than leave descriptors for files and metrics.
pub fn for_connections(args: &args::Stream) -> usize {
    let wanted = args.max_connections as usize;
    let Some(limit) = getrlimit(Resource::Nofile).current else { return wanted };
    // Some of these may be open already: rather too many than too few.
    let own = (usize::from(args.readers) - 1) * OF_A_READER;
    let open = std::fs::read_dir("/proc/self/fd").map_or(RESERVE, Iterator::count);
    let free = usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(open + RESERVE + own);
    // A gateway that opens streams may have a connection to a backend for each that it accepts.
    let share = if args.open && args.connect.is_some() { free / 2 } else { free };
    wanted.min(share).max(1)
}

/// Descriptors of a thread that reads, its connection to the peer, and the thread of its backends.
const OF_A_READER: usize = 10;

/// Descriptors for output files, metrics and what the system's interfaces need for a moment.
const RESERVE: usize = 40;
