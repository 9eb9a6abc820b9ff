//! Makes the frames of a stream, numbered and with their keys, for workers to seal.

use std::collections::HashMap;

use wattlock_engine::crypto::{Secret, TAG_LEN, random};
use zeroize::Zeroizing;

use super::keys::{self, Chain, KeyCache, StreamKeys};
use super::{
    END_LEN, End, Error, Frame, Framing, HEADER_LEN, Header, Kind, LAST_CONNECTION, MAGIC,
    MAX_KEY_HEADER_LEN, Ratchet, SALT_LEN,
};

/// The writing end of a stream. Frames belong into the stream in the order in which they were made.
pub struct Writer {
    stream_key: Secret<32>,
    salt: [u8; SALT_LEN],
    keys: StreamKeys,
    ratchet: Ratchet,
    connections: HashMap<u64, Connection>,
    expanded: KeyCache,
    opened: u64,
    frames: u64,
}

struct Connection {
    chain: Chain,
    previous: Previous,
}

/// Identifies the part that a connection continues: the salt of the stream before, and the number of
/// the part there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Previous {
    pub(super) salt: [u8; SALT_LEN],
    pub(super) part: u32,
}

impl Writer {
    /// Bytes that a buffer for [`Writer::data`] has in front of its messages. Behind them it needs
    /// none, but with [`TAG_LEN`] more of capacity it is not copied.
    pub const ROOM: usize = HEADER_LEN;

    /// A stream under `stream_key`, which `key_header` wraps for its recipients, and its header.
    /// Keys are replaced as `ratchet` says, at the latest where the format does.
    ///
    /// # Errors
    /// [`Error::Crypto`] if there are no random bytes; [`Error::TooLong`] for a key header above
    /// [`MAX_KEY_HEADER_LEN`].
    pub fn new(
        stream_key: &Secret<32>,
        key_header: &[u8],
        ratchet: Ratchet,
    ) -> Result<(Self, Vec<u8>), Error> {
        let (len, limit) = (key_header.len() as u64, MAX_KEY_HEADER_LEN as u64);
        if len > limit {
            return Err(Error::TooLong { len, limit });
        }
        let salt = random::array()?;
        let keys = StreamKeys::derive(stream_key, key_header, &salt);
        let len = (len as u32).to_be_bytes();
        let header = [MAGIC, &len[..], key_header, &salt, keys.commitment.expose()].concat();
        let ratchet = Ratchet {
            frames: ratchet.frames.clamp(3, Ratchet::MOST.frames),
            bytes: ratchet.bytes.min(Ratchet::MOST.bytes),
        };
        let stream_key = Secret::init_with(|bytes| bytes.copy_from_slice(stream_key.expose()));
        let connections = HashMap::new();
        let expanded = KeyCache::new(MOST_EXPANDED);
        let writer =
            Self { stream_key, salt, keys, ratchet, connections, expanded, opened: 0, frames: 0 };
        Ok((writer, header))
    }

    /// Begins a connection, or goes on with one that was [`End::Continued`] in the stream before.
    /// Returns its number and the frame that says so.
    ///
    /// # Errors
    /// [`Error::Crypto`] if there are no random bytes, [`Error::Connections`] after 2^56.
    pub fn open(
        &mut self,
        framing: Framing,
        previous: Option<Previous>,
    ) -> Result<(u64, Frame), Error> {
        if self.opened == LAST_CONNECTION {
            return Err(Error::Connections(LAST_CONNECTION));
        }
        let salt = random::array::<SALT_LEN>()?;
        self.opened += 1;
        let number = self.opened;
        let part = previous.map_or(0, |previous| previous.part + 1);
        let body = [
            &[framing.code()][..],
            &part.to_be_bytes(),
            &previous.map_or([0; SALT_LEN], |previous| previous.salt),
        ];
        let mut bytes = vec![0; HEADER_LEN];
        bytes.extend_from_slice(&salt);
        bytes.extend(body.concat());
        let chain = Chain::derive(&self.stream_key, &self.salt, number, &salt);
        let connection = Connection { chain, previous: Previous { salt, part } };
        self.connections.insert(number, connection);
        Ok((number, self.frame(Kind::Open, number, bytes.into(), HEADER_LEN + SALT_LEN)))
    }

    /// The part of its connection that an open connection is in this stream.
    ///
    /// # Panics
    /// If the connection is not open.
    pub fn part(&self, connection: u64) -> Previous {
        self.connections[&connection].previous
    }

    /// Makes a frame of `buffer`: [`Writer::ROOM`] bytes of any content, then whole messages. In
    /// front of it, the frame that rekeys, if it is time for that.
    ///
    /// # Panics
    /// If the connection is not open, or the buffer shorter than its room or longer than 4 GiB.
    pub fn data(&mut self, connection: u64, buffer: Zeroizing<Vec<u8>>) -> (Option<Frame>, Frame) {
        let len = buffer.len() - Self::ROOM;
        let chain = &self.connections[&connection].chain;
        let rekey = (!chain.has_room(len, self.ratchet)).then(|| {
            let frame = self.frame(Kind::Rekey, connection, vec![0; HEADER_LEN].into(), HEADER_LEN);
            if let Some(turning) = self.connections.get_mut(&connection) {
                turning.chain.turn();
            }
            self.expanded.remove(connection);
            frame
        });
        (rekey, self.frame(Kind::Data, connection, buffer, HEADER_LEN))
    }

    /// Ends a connection. What comes back is for [`Writer::open`] of the next stream.
    ///
    /// # Panics
    /// If the connection is not open.
    pub fn end(&mut self, connection: u64, end: End) -> (Frame, Previous) {
        let mut bytes = vec![0; HEADER_LEN + END_LEN];
        bytes[HEADER_LEN] = end.code();
        let frame = self.frame(Kind::End, connection, bytes.into(), HEADER_LEN);
        let ended = self.connections.remove(&connection).expect("it was open");
        self.expanded.remove(connection);
        (frame, ended.previous)
    }

    /// Ends the stream.
    ///
    /// # Panics
    /// If a connection is open still.
    pub fn close(self) -> Frame {
        assert!(self.connections.is_empty(), "all connections end before their stream");
        finish(Frame {
            bytes: vec![0; HEADER_LEN].into(),
            body: HEADER_LEN,
            key: self.keys.key,
            nonce: keys::nonce(self.keys.base, Kind::Close, self.frames),
            kind: Kind::Close,
            connection: 0,
        })
    }

    fn frame(
        &mut self,
        kind: Kind,
        connection: u64,
        bytes: Zeroizing<Vec<u8>>,
        body: usize,
    ) -> Frame {
        let chain = &mut self.connections.get_mut(&connection).expect("it is open").chain;
        let nonce = chain.nonce(kind, self.frames, bytes.len() - body);
        self.frames += 1;
        let key = self.expanded.key(connection, chain);
        finish(Frame { bytes, body, key, nonce, kind, connection })
    }
}

/// Expanded keys that are kept at most: a gateway may have very many connections.
const MOST_EXPANDED: usize = 1024;

/// Makes room for the tag and writes the header.
fn finish(mut frame: Frame) -> Frame {
    let len = frame.bytes.len() + TAG_LEN;
    if frame.bytes.capacity() < len {
        // To let it grow would leave plaintext behind.
        let mut longer = Zeroizing::new(Vec::with_capacity(len));
        longer.extend_from_slice(&frame.bytes);
        frame.bytes = longer;
    }
    frame.bytes.resize(len, 0);
    let len = u32::try_from(frame.bytes.len() - HEADER_LEN).expect("a frame is below 4 GiB");
    let header = Header { len, kind: frame.kind, connection: frame.connection };
    frame.bytes[..HEADER_LEN].copy_from_slice(&header.encode());
    frame
}
