//! The key schedule: stream key → the stream's own, and a chain of keys for each connection.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, NONCE_LEN, Secret, hkdf};

use super::{COMMITMENT_LEN, Kind, SALT_LEN};
use crate::message::Nonce;

/// After how much a connection's key is replaced by the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ratchet {
    /// Frames under one key.
    pub frames: u64,
    /// Bytes under one key.
    pub bytes: u64,
}

impl Ratchet {
    /// The most that the format allows: 2^24 frames, 64 GiB. RFC 8446, section 5.5, allows AES-GCM
    /// 2^24.5 records of 16 KiB, six times as much, at an advantage of 2^-57.
    pub(crate) const MOST: Self = Self { frames: 1 << 24, bytes: 64 << 30 };
}

impl Default for Ratchet {
    fn default() -> Self {
        Self::MOST
    }
}

/// What seals the end of a stream, and what commits to its key.
pub(super) struct StreamKeys {
    pub key: Arc<AeadKey>,
    pub base: [u8; NONCE_LEN],
    pub commitment: Secret<COMMITMENT_LEN>,
}

impl StreamKeys {
    pub fn derive(stream_key: &Secret<32>, key_header: &[u8], salt: &[u8; SALT_LEN]) -> Self {
        let info: [&[u8]; 4] = [b"wattlock-stream/v1 stream", &[0], salt, key_header];
        let (key, base, rest) = secrets(&hkdf::expand_sha512(stream_key, &info));
        Self { key: expanded(&key), base, commitment: rest }
    }
}

/// The key of a connection, and what the next follows from.
pub(super) struct Chain {
    key: Secret<32>,
    base: [u8; NONCE_LEN],
    next: Secret<32>,
    /// Frames and bytes under this key.
    pub used: Ratchet,
}

impl Chain {
    /// The chain of the connection of that number and salt, in the stream of that salt.
    pub fn derive(
        stream_key: &Secret<32>,
        stream_salt: &[u8; SALT_LEN],
        connection: u64,
        salt: &[u8; SALT_LEN],
    ) -> Self {
        let info: [&[u8]; 5] =
            [b"wattlock-stream/v1 connection", &[0], stream_salt, &connection.to_be_bytes(), salt];
        let (key, base, next) = secrets(&hkdf::expand_sha512(stream_key, &info));
        Self { key, base, next, used: Ratchet { frames: 0, bytes: 0 } }
    }

    /// The nonce of a frame of that kind, with that number in the stream and that many bytes of
    /// body, which counts as used from now on.
    pub fn nonce(&mut self, kind: Kind, number: u64, bytes: usize) -> Nonce {
        self.used.frames += 1;
        self.used.bytes += bytes as u64;
        nonce(self.base, kind, number)
    }

    /// True if a frame of data with that many bytes, and one that rekeys, still fit under the key.
    pub fn has_room(&self, bytes: usize, limit: Ratchet) -> bool {
        self.used.frames + 1 < limit.frames && self.used.bytes + bytes as u64 <= limit.bytes
    }

    /// Goes on to the next key; this one and its origin are wiped.
    pub fn turn(&mut self) {
        let info: [&[u8]; 1] = [b"wattlock-stream/v1 ratchet"];
        let (key, base, next) = secrets(&hkdf::expand_sha512(&self.next, &info));
        self.key = key;
        self.base = base;
        self.next = next;
        self.used = Ratchet { frames: 0, bytes: 0 };
    }
}

/// The base nonce with the kind in its first byte and the number of the frame in its last eight.
pub(super) fn nonce(mut base: [u8; NONCE_LEN], kind: Kind, number: u64) -> Nonce {
    base[0] ^= kind.code();
    Nonce { base, number }
}

/// The keys that were expanded last, at most one for each connection.
///
/// An expanded key takes up to 6 KiB, and tens of thousands of connections may be open. To expand one again takes
/// less than a microsecond.
pub(super) struct KeyCache {
    most: usize,
    keys: HashMap<u64, Arc<AeadKey>>,
    /// Their connections in the order in which they were expanded, and some that have ended.
    order: VecDeque<u64>,
}

impl KeyCache {
    /// Keeps at most `most` keys.
    pub fn new(most: usize) -> Self {
        Self { most, keys: HashMap::new(), order: VecDeque::new() }
    }

    /// The key of that connection.
    pub fn key(&mut self, connection: u64, chain: &Chain) -> Arc<AeadKey> {
        if let Some(key) = self.keys.get(&connection) {
            return Arc::clone(key);
        }
        if self.order.len() >= self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.keys.remove(&oldest);
        }
        let key = expanded(&chain.key);
        self.keys.insert(connection, Arc::clone(&key));
        self.order.push_back(connection);
        key
    }

    /// Wipes the key of a connection that has ended or goes on to its next key, once no frame needs it.
    pub fn remove(&mut self, connection: u64) {
        self.keys.remove(&connection);
    }
}

fn expanded(key: &Secret<32>) -> Arc<AeadKey> {
    let key = AeadKey::new(AeadAlgorithm::Aes256Gcm, key.expose());
    Arc::new(key.expect("a key of 32 bytes"))
}

/// Key, base nonce, and 32 bytes more.
fn secrets(okm: &Secret<{ 32 + NONCE_LEN + 32 }>) -> (Secret<32>, [u8; NONCE_LEN], Secret<32>) {
    let okm = okm.expose();
    let secret = |from: usize| Secret::init_with(|bytes| bytes.copy_from_slice(&okm[from..][..32]));
    let mut base = [0; NONCE_LEN];
    base.copy_from_slice(&okm[32..32 + NONCE_LEN]);
    (secret(0), base, secret(32 + NONCE_LEN))
}
