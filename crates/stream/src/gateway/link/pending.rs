//! What is on its way to a peer and was not sent yet.

use std::collections::BTreeMap;
use std::ops::Range;

use wattlock_engine::Operation;
use wattlock_engine::crypto::TAG_LEN;
use zeroize::Zeroizing;

use crate::frame::{End, Previous};
use crate::gateway::sealing::Piece;
use crate::job;
use crate::message::{Cipher, Message};

/// A sealed frame or header on its way to the peer.
pub(super) struct Pending {
    pub kind: PendingKind,
    pub bytes: Zeroizing<Vec<u8>>,
    /// Where its body is and what opens it; `None` for what is never resealed.
    pub seal: Option<(Cipher, Range<usize>)>,
}

impl Pending {
    /// A frame that was sealed, or will be.
    pub fn new(kind: PendingKind, message: Message) -> Self {
        let Message { cipher, buffer, payload, .. } = message;
        Self { kind, bytes: buffer, seal: Some((cipher, payload)) }
    }
}

/// What a frame on its way is.
#[derive(Clone, Copy, Debug)]
pub(super) enum PendingKind {
    Header { stream: u64 },
    Open { inlet: u64, part: Previous },
    Data { inlet: u64 },
    Rekey,
    End { inlet: u64, end: End },
    Close { last: bool },
}

/// Why frames cannot be moved to a new stream.
#[derive(Debug, thiserror::Error)]
pub(super) enum Failed {
    #[error(transparent)]
    Frame(#[from] crate::frame::Error),
    #[error(transparent)]
    Crypto(#[from] wattlock_engine::crypto::Error),
}

/// Notes a frame that was sent to its end.
pub(super) fn note_sent(
    kind: PendingKind,
    sent: &mut BTreeMap<u64, Previous>,
    unconfirmed: &mut u64,
) {
    match kind {
        PendingKind::Open { inlet, part } => drop(sent.insert(inlet, part)),
        PendingKind::End { end: End::Continued, .. } => {}
        PendingKind::End { inlet, .. } => drop(sent.remove(&inlet)),
        PendingKind::Data { .. } => *unconfirmed += 1,
        PendingKind::Header { .. } | PendingKind::Rekey | PendingKind::Close { .. } => {}
    }
}

/// A piece that goes out between messages; `None` for one that no peer has to know.
pub(super) fn pending_of(piece: Piece) -> Option<Pending> {
    let (kind, bytes) = match piece {
        Piece::Header { stream, bytes } => (PendingKind::Header { stream }, bytes),
        Piece::Open { inlet, part, bytes } => (PendingKind::Open { inlet, part }, bytes),
        Piece::Rekey { bytes } => (PendingKind::Rekey, bytes),
        Piece::End { inlet, end, bytes } => (PendingKind::End { inlet, end }, bytes),
        Piece::Close { bytes } => (PendingKind::Close { last: false }, bytes),
        Piece::Turn => return None,
    };
    Some(Pending { kind, bytes: bytes.into(), seal: None })
}

/// Opens a sealed frame of data, for a buffer as [`Writer::data`] takes it.
pub(super) fn open_again(pending: Pending) -> Result<Zeroizing<Vec<u8>>, Failed> {
    let Pending { mut bytes, seal, .. } = pending;
    let Some((Cipher::Seal { key, nonce, .. }, payload)) = seal else { return Ok(bytes) };
    let no_tag = || crate::frame::Error::Malformed("no tag");
    let slot = bytes.get_mut(payload.start..payload.end + TAG_LEN).ok_or_else(no_tag)?;
    if let Err(error) = job::run(Operation::Open, &key, nonce.counted(), b"", slot) {
        return Err(job::crypto_error(error).map_or_else(|| no_tag().into(), Failed::Crypto));
    }
    bytes.truncate(payload.end);
    Ok(bytes)
}
