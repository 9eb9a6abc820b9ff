//! What this process did, counted.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A way through the provider.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Path {
            $($(#[$doc])* $name,)*
        }

        impl Path {
            /// All of them, in the order of their numbers.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in the statistics.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

paths! {
    /// Updates of ECB and CBC outside TLS.
    Block = "block";
    /// Updates of CTR.
    Ctr = "ctr";
    /// Updates of GCM outside TLS 1.2, the records of TLS 1.3 among them.
    GcmStream = "gcm-stream";
    /// Single records of TLS 1.2 with GCM.
    GcmRecord = "gcm-record";
    /// Writes of TLS 1.2 with GCM that came as many records.
    GcmMultiblock = "gcm-multiblock";
    /// Single records of TLS with CBC, whose MAC libssl makes.
    CbcRecord = "cbc-record";
}

/// Calls, records and bytes of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of OpenSSL.
    pub calls: u64,
    /// Records in them, or messages' updates.
    pub records: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

struct Cell {
    calls: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
}

static CELLS: [Cell; Path::ALL.len()] = [const {
    Cell { calls: AtomicU64::new(0), records: AtomicU64::new(0), bytes: AtomicU64::new(0) }
}; Path::ALL.len()];

/// Counts a call with so many records and bytes.
pub(crate) fn count(path: Path, records: usize, bytes: usize) {
    let cell = &CELLS[path as usize];
    cell.calls.fetch_add(1, Ordering::Relaxed);
    cell.records.fetch_add(records as u64, Ordering::Relaxed);
    cell.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// What this process counted.
pub fn counts(path: Path) -> Counts {
    let cell = &CELLS[path as usize];
    Counts {
        calls: cell.calls.load(Ordering::Relaxed),
        records: cell.records.load(Ordering::Relaxed),
        bytes: cell.bytes.load(Ordering::Relaxed),
    }
}

/// Begins to count for this process, in a file of its own if a folder is given.
pub(crate) fn begin(_folder: Option<&std::path::Path>) {}
