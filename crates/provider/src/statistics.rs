//! What each process did, counted in memory that `wattlock provider stats` reads.
//!
//! A server's processes end without taking anything down, and many of them may open no file once
//! they run. So the counters lie in a sealed memory file (`memfd_create`), which is made and mapped
//! when the provider is loaded and which cannot be cut. Processes that are forked share it: `table`
//! has its layout and gives each its row, `find` reads the tables of running processes through
//! `/proc`. Its bytes are in `docs/spec/provider.md`.

mod document;
mod find;
mod row;
mod table;
mod tally;

pub use document::LANES;
pub use find::{Found, Service, services};
pub use row::{LaneCounts, Statistics};
pub use table::{Loaded, Multiblock, SharedTable, is_name};
pub(crate) use table::{
    count_call, count_event, count_lane, leave_row, note_device, note_multiblock, note_threshold,
    set_up,
};
pub(crate) use tally::Tally;

use serde::Serialize;

macro_rules! counted {
    ($(#[$type_doc:meta])* $type:ident { $($(#[$doc:meta])* $name:ident = $text:literal;)* }) => {
        $(#[$type_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$doc])* $name,)*
        }

        impl $type {
            /// All of them, in the order of the file.
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

counted! {
    /// A way through the provider.
    Path {
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
        /// Single records of TLS with CBC and HMAC, both made here.
        CompositeRecord = "cbc-hmac-record";
        /// Writes of TLS with CBC and HMAC that came as many records.
        CompositeMultiblock = "cbc-hmac-multiblock";
        /// Uses of the multiblock protocol that were refused, after which it is not offered any
        /// more.
        MultiblockRefused = "multiblock-refused";
        /// Writes of many records that were opened again before libssl got them, and agreed: the
        /// first of a process and suite, one of four and one of eight records. Their bytes are
        /// counted where they went.
        WriteChecked = "write-checked";
        /// Many records that did not agree with single ones, at load or in a write. They are sealed
        /// one by one from then on.
        SelfCheckFailed = "self-check-failed";
    }
}

counted! {
    /// What happened to requests that were the accelerator's.
    Event {
        /// Left the accelerator's queue for the CPU's.
        MigratedToCpu = "migrated-to-cpu";
        /// Left the CPU's queue for the accelerator's.
        MigratedToAccelerator = "migrated-to-accelerator";
        /// Done by the CPU because the accelerator erred.
        Fault = "fault";
        /// Done by the CPU because the accelerator, or its queue, took too long.
        Timeout = "timeout";
        /// Done by the CPU because the accelerator is not there, is being opened, or rests.
        Absent = "absent";
        /// Done by the CPU because the accelerator cannot do it.
        Unsupported = "unsupported";
    }
}

/// Calls, records and bytes of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Calls of OpenSSL.
    pub calls: u64,
    /// Records in them, or messages' updates.
    pub records: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
        }
    }

    /// What was counted after `earlier`.
    #[must_use]
    pub fn minus(self, earlier: Self) -> Self {
        Self {
            calls: self.calls - earlier.calls,
            records: self.records - earlier.records,
            bytes: self.bytes - earlier.bytes,
        }
    }
}
