//! Connections in, a sealed stream out; and the inverse.
//!
//! An [`Inlet`] is one input: it cuts what came into whole units and puts them into the window of a
//! [`Live`](crate::Live). [`Sealing`] makes inlets that seal, all into one stream, and [`Opening`]
//! makes inlets that open, each a stream of its own. [`Listener`] serves thousands of connections on
//! one thread, and [`pump`] serves one input that blocks. MessageKind leaves the window goes to an
//! [`Outlet`]: standard output, files in turn, a peer.
//!
//! Memory is bounded by the window, by a budget of the same size for messages that have not come
//! whole yet, by a quarter of it for answers, and by 4 KiB for each connection.

mod answers;
mod backends;
mod budget;
mod connection;
mod delivery;
mod error;
mod exit;
mod follow;
mod intake;
mod link;
mod listener;
mod opening;
mod outlet;
mod own_runtime;
mod peer;
mod position;
mod protocol;
mod pump;
mod recorded;
mod recording;
mod recordings;
mod replay;
mod retry;
mod sealed;
mod sealing;
mod served;
mod socket;
mod split;
mod syncer;
mod tls;
mod tls_socket;
mod welcome;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use zeroize::Zeroizing;

use crate::frame::End;
use crate::message::Message;
use crate::segment;
use crate::window::Room;

pub use answers::Safe;
pub use backends::{BackendLimits, PerConnection};
pub use delivery::{Acknowledged, Delivery};
pub use error::Error;
pub use exit::{Merged, MessageOutput};
pub use follow::{FollowError, Follower};
pub use listener::Listener;
pub use opening::{Opening, OpeningLimits, Unlock};
pub use outlet::{Files, Outlet, Segments, Stdout};
pub(crate) use peer::Peer;
pub use protocol::{Heard, Protocol};
pub use pump::{Stop, pump};
pub use recorded::{FolderLimit, WhenFull};
pub use recording::{EpochLimits, Recording, RecordingSettings};
pub use recordings::{Recordings, TenantFolder};
pub use replay::Replay;
pub use retry::Retry;
pub use sealing::{Rotation, Sealing};
pub use served::Limits;
pub use socket::{Address, Destination, remove_stale};
pub use split::Split;
pub use syncer::Durability;
pub use tls::{
    Certificate, ClientCertificates, TlsClient, TlsError, TlsIdentity, TlsServer, TlsStream,
};
pub use welcome::{Admission, Caller, TokenCheck, Welcome};

/// One input on its way into the window.
pub trait Inlet: Send {
    /// What stands at the start of `bytes`, all that came and was not taken yet. `ended` says that
    /// no more will come.
    ///
    /// # Errors
    /// That what came breaks the rules of its framing.
    fn next(&mut self, bytes: &[u8], ended: bool) -> Result<Next, Error>;

    /// Takes a unit that needs no room. This may take long: it looks for keys.
    ///
    /// # Errors
    /// That it is not what it has to be.
    fn aside(&mut self, unit: &[u8]) -> Result<(), Error>;

    /// Takes a unit into the room that was reserved for it.
    ///
    /// # Errors
    /// That it is not what it has to be, or the stream has ended.
    fn put(&mut self, unit: &[u8], room: Room<Message>) -> Result<(), Error>;

    /// This inlet, to take units with their buffers; `None` if it copies all.
    fn with_buffers(&mut self) -> Option<&mut dyn BufferInlet> {
        None
    }

    /// True if a header comes next, which a peer sends without a pause.
    fn expects_header(&self) -> bool {
        false
    }

    /// Takes what the sender is answered now.
    fn answers(&mut self) -> Vec<u8> {
        Vec::new()
    }

    /// Bytes of memory of the answers that [`Inlet::answers`] has not given yet.
    fn answers_memory(&self) -> usize {
        0
    }

    /// What changes when the sender may be answered more; `None` if it is owed nothing.
    fn owed(&self) -> Option<Arc<Safe>> {
        None
    }

    /// True if the sender lost nothing, although its connection broke: each message was acknowledged, or the sender had
    /// said that it ends. `has_unsent` says that the last answers were not sent.
    fn is_acknowledged(&self, has_unsent: bool) -> bool {
        let _ = has_unsent;
        false
    }

    /// What the sender is told when nothing more is taken from it.
    fn farewell(&self) -> &'static [u8] {
        b""
    }

    /// Bytes that the end needs in the window; 0 for none.
    fn end_needs(&self) -> u64;

    /// Ends the inlet, with the room that [`Inlet::end_needs`]; `left` bytes belong to no unit.
    ///
    /// # Errors
    /// That it may not end here.
    fn end(&mut self, end: End, left: usize, room: Option<Room<Message>>) -> Result<(), Error>;
}

/// An inlet that takes a unit together with the buffer that it was read into.
pub trait BufferInlet {
    /// Bytes in front of a unit in its buffer.
    fn front(&self) -> usize;

    /// As [`Inlet::put`]; `buffer` has [`BufferInlet::front`] bytes, the unit, and capacity for a tag.
    ///
    /// # Errors
    /// As [`Inlet::put`].
    fn put_buffer(&mut self, buffer: Zeroizing<Vec<u8>>, room: Room<Message>) -> Result<(), Error>;
}

/// What an inlet found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// Nothing whole yet; as far as is known, the next unit has this many bytes.
    More(usize),
    /// This many bytes, which are for the inlet alone.
    Aside(usize),
    /// A unit for the window.
    Unit {
        /// Its bytes.
        len: usize,
        /// What it needs in the window.
        needs: u64,
    },
}

/// What a gateway did, readable while it works.
#[derive(Debug, Default)]
pub struct Counters {
    /// Connections since the beginning.
    pub connections: AtomicU64,
    /// Connections that are open.
    pub open: AtomicU64,
    /// Connections that were cut: by their peers, for breaking a rule, or for being too slow.
    pub cut: AtomicU64,
    /// Connections that were refused, because there were as many as may be.
    pub refused: AtomicU64,
    /// Connections that did not show who they are, or are not served.
    pub unwelcome: AtomicU64,
    /// Connections that were closed because they were idle between two messages.
    pub idle: AtomicU64,
    /// Bytes of messages that did not come whole.
    pub incomplete_bytes: AtomicU64,
    /// Bytes that inputs held and that were not read before the end.
    pub unread_bytes: AtomicU64,
    /// Messages that were taken in whole.
    pub messages: AtomicU64,
    /// Bytes of these.
    pub bytes_in: AtomicU64,
    /// Bytes that went out.
    pub bytes_out: AtomicU64,
    /// Files that were finished.
    pub files: AtomicU64,
    /// Connections to peers and backends that broke.
    pub peer_failures: AtomicU64,
    /// Units that were sent over these: nothing proves that they arrived.
    pub maybe_lost: AtomicU64,
    /// Units that were dropped because their backend took nothing.
    pub dropped: AtomicU64,
    /// Bytes of segments that were removed to make room.
    pub dropped_bytes: AtomicU64,
    /// Units that wait behind the window to be written.
    pub kept: AtomicU64,
    /// Times that an output could not be written, and was waited for.
    pub waits: AtomicU64,
    /// Outputs that are waited for now.
    pub waiting: AtomicU64,
}

impl Counters {
    pub(crate) fn add(counter: &AtomicU64, count: u64) {
        counter.fetch_add(count, Ordering::Relaxed);
    }

    /// Makes one's own share of a counter, to which others add, what it is now.
    pub(crate) fn change(counter: &AtomicU64, share: &mut u64, now: u64) {
        counter.fetch_add(now.wrapping_sub(*share), Ordering::Relaxed);
        *share = now;
    }
}

/// Why a segment has no end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unended {
    /// Its writer was killed, and a later run noted how far it came.
    Killed,
    /// It is still being written.
    Written,
    /// Its writer was killed before the first record.
    Empty,
}

/// An event for the operator of a gateway.
#[derive(Debug)]
pub enum Notice {
    /// An output cannot be written now; it is tried again, and senders are held back.
    Waits {
        /// The file, or the address of the peer.
        output: String,
        /// Why.
        why: String,
    },
    /// The output is written again.
    GoesOn {
        /// The file, or the address of the peer.
        output: String,
    },
    /// A connection to a peer broke.
    PeerLost {
        /// Its address.
        who: String,
        /// Why.
        why: String,
        /// Units that were sent over it, and may be lost.
        units: u64,
    },
    /// A backend took nothing for too long, and what was queued for it was dropped.
    Dropped {
        /// Its address.
        who: String,
        /// Why.
        why: String,
        /// Units that were dropped.
        units: u64,
    },
    /// A segment, or what is around it, is not as it should be.
    Segment {
        /// Its path.
        path: String,
        /// What is wrong.
        problem: segment::Error,
    },
    /// A segment that an earlier run left is damaged, and whole batches follow that. It is left as it is.
    Damaged {
        /// Its path.
        path: String,
        /// The first byte that is not as it was.
        at: u64,
    },
    /// A segment that was opened has no end, which is accounted for.
    Unended {
        /// Its path.
        path: String,
        /// Records up to there.
        records: u64,
        /// How it comes that it has none.
        why: Unended,
    },
    /// A peer does not take segments now; it is tried again, and nothing waits for it.
    Unreachable {
        /// Its address.
        who: String,
        /// Why.
        why: String,
    },
    /// A peer had another key file of an epoch, and keeps both.
    OtherKey {
        /// Its address.
        who: String,
        /// The key file that it was sent.
        path: String,
    },
    /// A folder cannot be written any more. Other tenants' folders are.
    FolderFailed {
        /// The folder.
        folder: String,
        /// Why.
        why: String,
    },
    /// A new session key cannot be made: the old one is used on.
    KeyKept {
        /// Its epoch.
        epoch: u32,
        /// Why.
        why: segment::Error,
    },
    /// A connection was ended before it was through.
    Cut {
        /// The peer, if the socket knows it, or else its number in its stream.
        who: String,
        /// Why.
        why: String,
    },
    /// A sealed stream was opened to its end, or as far as it is authentic.
    Opened {
        /// Where it came from.
        who: String,
        /// Connections that its sealer had seen cut.
        cut: u64,
        /// Connections that began in an earlier stream, which was not there.
        headless: u64,
        /// Connections that were still open where it ended.
        unfinished: u64,
        /// True if it was stopped before the end of a stream.
        stopped: bool,
        /// Why it was not opened to its end.
        failure: Option<crate::frame::Error>,
    },
}
