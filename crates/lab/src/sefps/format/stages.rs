//! The stages before and after the hash: reading and decrypting, encrypting and writing.

use std::io::{self, Read, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use wattlock_engine::crypto::AesKey;
use wattlock_engine::{Data, Direction, Engine, Job, Policy, Report};
use wattlock_file::Progress;
use wattlock_file::{Damage, Error};

use super::part::{FilePart, MAX_TRAILER_LEN};
use super::{Mode, Sefps, Variant};
use crate::study::aes::{self, How, Work};

/// AES over the windows of one container, in their order or not.
#[derive(Clone, Copy)]
pub(super) struct Crypt<'a> {
    engine: &'a Engine,
    key: &'a aes::Key,
    mode: Mode,
    policy: Policy,
    /// True if all threads get shares of whole blocks up front, as in the paper's Algorithm 1, but as
    /// large as the first thread's: the last one has less.
    is_dealt: bool,
    chunk_len: usize,
    pub direction: Direction,
}

/// What the cipher did in one stage.
#[derive(Default)]
pub(super) struct Tally {
    pub cipher: Duration,
    pub report: Report,
}

impl<'a> Crypt<'a> {
    /// That of a run, by its variant's policy.
    ///
    /// # Errors
    /// [`Error::NoDevice`].
    pub fn new(how: &Sefps<'a>, direction: Direction) -> Result<Self, Error> {
        if how.variant.needs_accelerator() && !how.engine.has_accelerator() {
            return Err(Error::NoDevice);
        }
        let policy = how.variant.policy(how.engine.policy());
        let is_dealt = how.variant == Variant::Parallel;
        // The paper's shares are of blocks: with larger chunks, small files would be one device's.
        let chunk_len = if is_dealt || how.variant == Variant::HybridRatio {
            AesKey::BLOCK_LEN
        } else {
            CHUNK_LEN
        };
        let Sefps { engine, key, mode, .. } = *how;
        Ok(Self { engine, key, mode, policy, is_dealt, chunk_len, direction })
    }

    /// The same on the caller's thread, for files that go side by side.
    pub fn alone(self) -> Self {
        Self { policy: Policy::Serial, is_dealt: false, ..self }
    }

    /// Works on the whole blocks that lie `offset` bytes into the container.
    fn apply(&self, offset: u64, slots: &mut [u8], tally: &mut Tally) -> Result<(), Error> {
        let how = match (self.mode, self.direction) {
            (Mode::Ecb, Direction::Encrypt) => How::EcbEncrypt,
            (Mode::Ecb, Direction::Decrypt) => How::EcbDecrypt,
            (Mode::Ctr { iv }, _) => {
                let blocks = u128::from(offset / AesKey::BLOCK_LEN as u64);
                let iv = u128::from_be_bytes(iv).wrapping_add(blocks).to_be_bytes();
                How::Ctr { iv }
            }
        };
        let Self { chunk_len, .. } = *self;
        let work = Work { key: self.key, how, chunk_len };
        let policy = if self.is_dealt {
            let share = slots.len().div_ceil(chunk_len).div_ceil(self.engine.threads().max(1));
            Policy::Dealt { piece_chunks: share.max(1) }
        } else {
            self.policy
        };
        let started = Instant::now();
        let job =
            Job { cipher: work.cipher(), chunk_len, data: Data::InPlace { slots }, deadline: None };
        let report = self.engine.run_by(policy, job).map_err(|error| match error {
            wattlock_engine::Error::NoDevice { .. } => Error::NoDevice,
            other => Error::Engine(other),
        })?;
        tally.cipher += started.elapsed();
        tally.report.then(report);
        Ok(())
    }
}

/// Bytes that a worker is dealt, at least.
const CHUNK_LEN: usize = 64 << 10;

impl Tally {
    /// That of both stages.
    pub fn and(mut self, other: Self) -> Self {
        self.cipher += other.cipher;
        self.report.then(other.report);
        self
    }
}

/// The first stage: reads, and decrypts what was protected.
pub(super) struct Front<'a> {
    crypt: Crypt<'a>,
    window_len: usize,
    /// The name of the input in messages.
    name: &'a Path,
    progress: &'a Progress,
    /// Bytes read.
    pub read: u64,
    offset: u64,
    /// Of a container, the bytes that would be its trailer if nothing came behind them.
    held_back: Vec<u8>,
    pub tally: Tally,
}

impl<'a> Front<'a> {
    /// A stage that makes windows of `window_len` bytes, a multiple of the block length.
    pub fn new(
        crypt: Crypt<'a>,
        window_len: usize,
        name: &'a Path,
        progress: &'a Progress,
    ) -> Self {
        let (held_back, tally) = (Vec::new(), Tally::default());
        Self { crypt, window_len, name, progress, read: 0, offset: 0, held_back, tally }
    }

    /// Reads the next part of `source`. There is always a last one.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Damage::Altered`] for what has not the length of a container.
    pub fn next(&mut self, source: &mut dyn Read, part: &mut FilePart) -> Result<(), Error> {
        part.offset = self.offset;
        match self.crypt.direction {
            Direction::Encrypt => {
                let len = self.window_len;
                part.last = self.fill(source, part, len)? < len;
                if part.last {
                    part.pad();
                }
            }
            Direction::Decrypt => {
                let len = self.window_len + MAX_TRAILER_LEN;
                part.last = self.fill(source, part, len)? < len;
                if !part.last {
                    self.held_back = part.bytes.split_off(self.window_len);
                } else if part.bytes.len() < MAX_TRAILER_LEN
                    || !part.bytes.len().is_multiple_of(AesKey::BLOCK_LEN)
                {
                    return Err(Damage::Altered.into());
                }
                self.crypt.apply(part.offset, &mut part.bytes, &mut self.tally)?;
            }
        }
        self.offset += part.bytes.len() as u64;
        Ok(())
    }

    /// Fills `part` up to `len` bytes, less at the end, with what was held back in front.
    fn fill(
        &mut self,
        source: &mut dyn Read,
        part: &mut FilePart,
        len: usize,
    ) -> Result<usize, Error> {
        let mut filled = self.held_back.len();
        part.bytes.resize(len, 0);
        part.bytes[..filled].copy_from_slice(&self.held_back);
        while filled < len {
            match source.read(&mut part.bytes[filled..]) {
                Ok(0) => break,
                Ok(read) => {
                    filled += read;
                    self.read += read as u64;
                    self.progress.advance(read as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(Error::io("read", self.name)(error)),
            }
        }
        part.bytes.truncate(filled);
        Ok(filled)
    }
}

/// The last stage: encrypts what is to be protected, and writes.
pub(super) struct Back<'a> {
    crypt: Crypt<'a>,
    /// The name of the output in messages.
    name: &'a Path,
    /// Bytes written.
    pub written: u64,
    pub tally: Tally,
}

impl<'a> Back<'a> {
    pub fn new(crypt: Crypt<'a>, name: &'a Path) -> Self {
        Self { crypt, name, written: 0, tally: Tally::default() }
    }

    /// Takes a part that was hashed, and closed if it is the last.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn take(&mut self, sink: &mut dyn Write, part: &mut FilePart) -> Result<(), Error> {
        if self.crypt.direction == Direction::Encrypt {
            self.crypt.apply(part.offset, &mut part.bytes, &mut self.tally)?;
        }
        sink.write_all(&part.bytes).map_err(Error::io("write", self.name))?;
        self.written += part.bytes.len() as u64;
        Ok(())
    }
}
