//! Takes a stream apart into frames, and gives each the key and nonce that it must open with.

use std::collections::{HashMap, HashSet};

use wattlock_engine::crypto::{Secret, TAG_LEN};
use zeroize::Zeroizing;

use super::keys::{self, Chain, KeyCache, StreamKeys};
use super::{
    COMMITMENT_LEN, END_LEN, Error, Frame, HEADER_LEN, Header, Kind, MAGIC, MAX_KEY_HEADER_LEN,
    OPEN_LEN, Ratchet, SALT_LEN,
};

/// The reading end of a stream, and of those that follow it.
///
/// Frames that steer are opened at once, so that garbage takes no memory; those of data are left to
/// workers. Nothing that comes after a frame which does not open may be used: [`super::Ledger`] is
/// where that is known.
pub struct Reader {
    limit: usize,
    /// Bytes of the longest key header.
    header_limit: usize,
    /// Expanded keys that are kept at most.
    expanded: usize,
    state: State,
    /// Streams that ended.
    closed: u64,
    /// The salts of all streams.
    salts: HashSet<[u8; SALT_LEN]>,
}

enum State {
    /// In front of a header.
    Before,
    /// Behind one, whose key is not known yet.
    Locked { salt: [u8; SALT_LEN], commitment: Secret<COMMITMENT_LEN>, key_header: Vec<u8> },
    /// Within a stream.
    Within(Box<Within>),
}

/// A stream whose key is known: what its frames open or are sealed with.
pub(super) struct Within {
    stream_key: Secret<32>,
    salt: [u8; SALT_LEN],
    keys: StreamKeys,
    connections: HashMap<u64, Chain>,
    expanded: KeyCache,
    opened: u64,
    frames: u64,
}

/// What a stream is made of.
pub enum Unit {
    /// The header, with the wrapped stream key. [`Reader::unlock`] comes next.
    Header {
        /// As [`super::Writer::new`] was given it.
        key_header: Vec<u8>,
    },
    /// A frame, which is sealed still.
    Frame(Frame),
}

impl Reader {
    /// A reader of frames with at most `limit` bytes of body.
    pub fn new(limit: usize) -> Self {
        let (header_limit, expanded) = (MAX_KEY_HEADER_LEN, MOST_EXPANDED);
        let (state, salts) = (State::Before, HashSet::new());
        Self { limit, header_limit, expanded, state, closed: 0, salts }
    }

    /// Refuses key headers above `limit` bytes, or above [`MAX_KEY_HEADER_LEN`].
    #[must_use]
    pub(crate) fn with_header_limit(mut self, limit: usize) -> Self {
        self.header_limit = limit.min(MAX_KEY_HEADER_LEN);
        self
    }

    /// Keeps at most `most` expanded keys: fewer take less memory, and frames of other connections take longer.
    #[must_use]
    pub(crate) fn with_expanded_keys(mut self, most: usize) -> Self {
        self.expanded = most;
        self
    }

    /// Length of the next unit in bytes, as far as its first bytes show: at least this many are
    /// needed. A unit is whole once `bytes` has this length.
    ///
    /// # Errors
    /// That the bytes are not those of a stream, or a frame is too long or too short.
    pub fn needed(&self, bytes: &[u8]) -> Result<usize, Error> {
        match &self.state {
            State::Within(_) => self.frame_len(bytes),
            State::Before | State::Locked { .. } => {
                header_len(bytes, self.header_limit).map_err(|error| match error {
                    Error::NotAStream if self.closed > 0 => Error::Trailing,
                    other => other,
                })
            }
        }
    }

    /// Takes the next unit, which is whole.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Authentication`] if no frame like it can stand here.
    ///
    /// # Panics
    /// If the unit is not whole, or the key of a stream is asked for and was not given.
    pub fn take(&mut self, bytes: Zeroizing<Vec<u8>>) -> Result<Unit, Error> {
        assert_eq!(self.needed(&bytes)?, bytes.len(), "a whole unit");
        match &mut self.state {
            State::Within(within) => {
                let frame = within.take(bytes)?;
                if frame.kind == Kind::Close {
                    self.closed += 1;
                    self.state = State::Before;
                }
                Ok(Unit::Frame(frame))
            }
            State::Before => {
                let rest = &bytes[MAGIC.len() + 4..];
                let (rest, commitment) = rest.split_last_chunk().expect("a whole header");
                let (key_header, salt) = rest.split_last_chunk().expect("a whole header");
                if !self.salts.insert(*salt) {
                    return Err(Error::Malformed("the same stream occurs twice"));
                }
                let commitment = Secret::init_with(|bytes| *bytes = *commitment);
                let key_header = key_header.to_vec();
                self.state =
                    State::Locked { salt: *salt, commitment, key_header: key_header.clone() };
                Ok(Unit::Header { key_header })
            }
            State::Locked { .. } => panic!("the stream is locked"),
        }
    }

    /// Gives the key of the stream whose header was taken last.
    ///
    /// # Errors
    /// [`Error::WrongKey`].
    pub fn unlock(&mut self, stream_key: &Secret<32>) -> Result<(), Error> {
        let State::Locked { salt, commitment, key_header } = &self.state else { return Ok(()) };
        let keys = StreamKeys::derive(stream_key, key_header, salt);
        if keys.commitment != *commitment {
            return Err(Error::WrongKey);
        }
        let expanded = KeyCache::new(self.expanded);
        let within = Within::with_keys(stream_key, *salt, keys, expanded);
        self.state = State::Within(Box::new(within));
        Ok(())
    }

    /// The salt of the stream that was unlocked; zeros in front of one.
    pub(super) fn salt(&self) -> [u8; SALT_LEN] {
        match &self.state {
            State::Within(within) => within.salt,
            State::Before | State::Locked { .. } => [0; SALT_LEN],
        }
    }

    /// True in front of a header, whose bytes are no messages.
    pub(crate) fn expects_header(&self) -> bool {
        !matches!(self.state, State::Within(_))
    }

    /// Looks whether the input may end here, where `left` bytes belong to no unit.
    ///
    /// # Errors
    /// [`Error::Cut`], or [`Error::NotAStream`] if there was nothing at all.
    pub fn finish(&self, left: usize) -> Result<(), Error> {
        match (&self.state, left) {
            (State::Before, 0) if self.closed > 0 => Ok(()),
            (State::Before, 0) => Err(Error::NotAStream),
            (State::Within(_), 0) => Err(Error::Cut("its last frame is missing")),
            (State::Within(_), _) => Err(Error::Cut("it ends in the middle of a frame")),
            _ => Err(Error::Cut("it ends in its header")),
        }
    }

    fn frame_len(&self, bytes: &[u8]) -> Result<usize, Error> {
        let Some(header) = bytes.first_chunk() else { return Ok(HEADER_LEN) };
        let header = Header::decode(header)?;
        let len = header.len as usize;
        let exactly = match header.kind {
            Kind::Data if len < TAG_LEN => {
                return Err(Error::Malformed("a frame is shorter than its tag"));
            }
            Kind::Data if len - TAG_LEN > self.limit => {
                let len = (len - TAG_LEN) as u64;
                return Err(Error::TooLong { len, limit: self.limit as u64 });
            }
            Kind::Data => len,
            Kind::Open => SALT_LEN + OPEN_LEN + TAG_LEN,
            Kind::End => END_LEN + TAG_LEN,
            Kind::Rekey | Kind::Close => TAG_LEN,
        };
        if len != exactly {
            return Err(Error::Malformed("a frame has not the length of its kind"));
        }
        Ok(HEADER_LEN + len)
    }
}

impl Within {
    /// A stream that has this salt.
    pub fn new(stream_key: &Secret<32>, key_header: &[u8], salt: [u8; SALT_LEN]) -> Self {
        let keys = StreamKeys::derive(stream_key, key_header, &salt);
        Self::with_keys(stream_key, salt, keys, KeyCache::new(MOST_EXPANDED))
    }

    fn with_keys(
        stream_key: &Secret<32>,
        salt: [u8; SALT_LEN],
        keys: StreamKeys,
        expanded: KeyCache,
    ) -> Self {
        let stream_key = Secret::init_with(|bytes| bytes.copy_from_slice(stream_key.expose()));
        let connections = HashMap::new();
        Self { stream_key, salt, keys, connections, expanded, opened: 0, frames: 0 }
    }

    /// The commitment to its key.
    pub fn commitment(&self) -> &[u8; COMMITMENT_LEN] {
        self.keys.commitment.expose()
    }

    /// Takes the bytes of a sealed frame. One that steers is checked.
    fn take(&mut self, bytes: Zeroizing<Vec<u8>>) -> Result<Frame, Error> {
        let is_data = bytes.get(4).copied() == Some(Kind::Data.code());
        if is_data {
            return self.frame(bytes);
        }
        let frame = self.next(bytes)?;
        // It changes what the following frames open with, so it has to be right by now.
        frame.copy().open()?;
        self.follow(&frame);
        Ok(frame)
    }

    /// Gives a frame the key and the nonce of its place.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::Connections`]: it cannot stand here.
    pub fn frame(&mut self, bytes: Zeroizing<Vec<u8>>) -> Result<Frame, Error> {
        let frame = self.next(bytes)?;
        self.follow(&frame);
        Ok(frame)
    }

    fn next(&mut self, bytes: Zeroizing<Vec<u8>>) -> Result<Frame, Error> {
        let header = Header::decode(bytes.first_chunk().expect("a whole frame"))?;
        let Header { kind, connection, .. } = header;
        if kind == Kind::Open {
            self.open(connection, &bytes)?;
        }
        let number = self.frames;
        self.frames += 1;
        let all_ended = self.connections.is_empty();
        let (key, nonce) = match (kind, self.connections.get_mut(&connection)) {
            (Kind::Close, None) if connection == 0 && all_ended => {
                (self.keys.key.clone(), keys::nonce(self.keys.base, kind, number))
            }
            (Kind::Close, _) => {
                return Err(Error::Malformed("the stream ends before its connections"));
            }
            (_, None) => return Err(Error::Malformed("a frame of a connection that is not open")),
            (_, Some(chain)) => {
                let len = bytes.len() - HEADER_LEN - TAG_LEN;
                let (used, most) = (chain.used, Ratchet::MOST);
                if used.frames > most.frames || used.bytes + len as u64 > most.bytes + SLACK {
                    return Err(Error::Malformed("a key was not replaced in time"));
                }
                (self.expanded.key(connection, chain), chain.nonce(kind, number, len))
            }
        };
        let body = HEADER_LEN + if kind == Kind::Open { SALT_LEN } else { 0 };
        Ok(Frame { bytes, body, key, nonce, kind, connection })
    }

    /// Goes on to what the frame says of those after it.
    fn follow(&mut self, frame: &Frame) {
        let Frame { kind, connection, .. } = frame;
        match (kind, self.connections.get_mut(connection)) {
            (Kind::Rekey, Some(chain)) => chain.turn(),
            (Kind::End, Some(_)) => drop(self.connections.remove(connection)),
            _ => return,
        }
        self.expanded.remove(*connection);
    }

    fn open(&mut self, connection: u64, bytes: &[u8]) -> Result<(), Error> {
        if connection != self.opened + 1 {
            return Err(Error::Malformed("connections are not numbered as they come"));
        }
        if self.connections.len() >= MOST_OPEN {
            return Err(Error::Connections(MOST_OPEN as u64));
        }
        let salt = bytes[HEADER_LEN..].first_chunk().expect("a whole frame");
        let chain = Chain::derive(&self.stream_key, &self.salt, connection, salt);
        self.opened = connection;
        self.connections.insert(connection, chain);
        Ok(())
    }
}

/// Expanded keys that are kept unless fewer are asked for: up to 96 MiB.
const MOST_EXPANDED: usize = 16 << 10;

/// What containers of files start with.
const CONTAINERS: [&[u8]; 3] =
    [b"wattlock/", b"age-encryption.org/", b"-----BEGIN AGE ENCRYPTED FILE-----"];

/// Length of the header that starts with `bytes`, or of the part that holds this length.
fn header_len(bytes: &[u8], limit: usize) -> Result<usize, Error> {
    let seen = &bytes[..bytes.len().min(MAGIC.len())];
    if !MAGIC.starts_with(seen) {
        let name = b"wattlock-stream/";
        let known = bytes.len() >= name.len() && bytes.starts_with(name);
        let container = CONTAINERS.iter().any(|start| bytes.starts_with(start));
        return Err(match (known, container) {
            (true, _) => Error::UnknownVersion,
            (_, true) => Error::Container,
            _ => Error::NotAStream,
        });
    }
    let fixed = MAGIC.len() + 4;
    let Some(len) = bytes.get(MAGIC.len()..).and_then(|rest| rest.first_chunk::<4>()) else {
        return Ok(fixed);
    };
    let len = u32::from_be_bytes(*len) as usize;
    if len > limit {
        return Err(Error::HeaderTooLong { len: len as u64, limit: limit as u64 });
    }
    Ok(fixed + len + SALT_LEN + COMMITMENT_LEN)
}

/// Connections that may be open at once in one stream: up to 0.3 KiB each, without their expanded keys.
const MOST_OPEN: usize = 1 << 17;

/// Bytes of the frames that steer, which may come on top of the limit of a key.
const SLACK: u64 = 64;
