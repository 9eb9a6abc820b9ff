//! A sink that seals what it is given again, under another key.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use wattlock_engine::Nonces;
use wattlock_engine::crypto::{AeadKey, TAG_LEN};

/// A new container's file, whose header and prefix are `front`.
pub(crate) struct Reseal<'a> {
    pub file: &'a File,
    pub front: &'a [u8],
    pub key: &'a AeadKey,
    pub nonces: Nonces,
    /// Bytes of a full chunk with its tag.
    pub slot_len: usize,
    /// Chunks of the payload.
    pub chunks: u64,
}

impl Reseal<'_> {
    /// Seals the chunks from `first` on, and writes them.
    ///
    /// Each chunk of a run comes once, so that its nonce seals one plaintext.
    pub fn store(&self, first: u64, chunks: &[&[u8]]) -> io::Result<()> {
        let front = if first == 0 { self.front } else { &[] };
        let len = chunks.iter().map(|chunk| chunk.len() + TAG_LEN).sum::<usize>();
        let mut sealed = Vec::with_capacity(front.len() + len);
        sealed.extend_from_slice(front);
        for (index, chunk) in (first..).zip(chunks) {
            let nonce = self.nonces.nonce(index, index + 1 == self.chunks);
            let start = sealed.len();
            sealed.extend_from_slice(chunk);
            let tag = self.key.seal(nonce, b"", &mut sealed[start..]);
            sealed.extend_from_slice(&tag.map_err(io::Error::other)?);
        }
        let slot_len = self.slot_len as u64;
        let at = self.front.len() as u64 + first * slot_len - front.len() as u64;
        self.file.write_all_at(&sealed, at)
    }
}
