//! Cobblestone-256 by itself, for programs that have their own keys: no header, no recipients.

use std::io::{Read, Write};
use std::ops::Range;
use std::path::Path;

use wattlock_engine::Engine;
use wattlock_engine::crypto::Secret;
use zeroize::Zeroize;

use crate::cobblestone::{self, PREFIX_LEN};
use crate::error::{Damage, Error};
use crate::format::Format;
use crate::memory::Chunks;
use crate::payload::{INPUT, OUTPUT, Payload, ends};
use crate::read_at::ReadAt;
use crate::transfer::{Progress, Sink, Source};

/// [C2SP chunked-encryption](https://c2sp.org/chunked-encryption), instance Cobblestone-256, under one key
/// and context. Each message gets a random salt of its own, so that a key may seal any number.
pub struct Cobblestone256<'a> {
    engine: &'a Engine,
    key: Secret<32>,
    context: &'a [u8],
}

impl<'a> Cobblestone256<'a> {
    /// For this key, which is uniformly random, and this context, which tells the uses of one key apart.
    pub fn new(engine: &'a Engine, key: Secret<32>, context: &'a [u8]) -> Self {
        Self { engine, key, context }
    }

    /// Bytes of a sealed message of `plain_len` bytes.
    pub fn sealed_len(plain_len: u64) -> u64 {
        PREFIX_LEN as u64 + Format::WattlockV1.layout().sealed_len(plain_len)
    }

    /// Seals all that `from` yields, and writes it to `to`.
    ///
    /// # Errors
    /// [`Error::Io`] of either; [`Error::Crypto`] if there are no random bytes. What was written is
    /// no message then.
    pub fn seal(
        &self,
        from: &mut (dyn Read + Send),
        to: &mut (dyn Write + Send),
    ) -> Result<(), Error> {
        let payload = cobblestone::seal(&self.key, self.context)?;
        to.write_all(&payload.prefix).map_err(Error::io("write", Path::new(OUTPUT)))?;
        let ends = ends(Source::stream(from), Sink::stream(to));
        payload.seal(self.engine, ends, &Progress::default()).map(|_| ())
    }

    /// Opens the message that `from` yields, and writes its plaintext to `to`, each chunk once it is
    /// authentic.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Incomplete`] if something was written before; [`Error::Io`].
    pub fn open(
        &self,
        from: &mut (dyn Read + Send),
        to: &mut (dyn Write + Send),
    ) -> Result<(), Error> {
        let mut prefix = [0; PREFIX_LEN];
        from.read_exact(&mut prefix).map_err(|error| match error.kind() {
            std::io::ErrorKind::UnexpectedEof => Damage::Truncated.into(),
            _ => Error::io("read", Path::new(INPUT))(error),
        })?;
        let payload = cobblestone::open(&self.key, self.context, &prefix)?;
        let ends = ends(Source::stream(from), Sink::stream(to));
        payload.open(self.engine, None, ends, &Progress::default()).map(|_| ())
    }

    /// A sealed message of `plaintext`.
    ///
    /// # Errors
    /// [`Error::Crypto`] if there are no random bytes.
    pub fn seal_bytes(&self, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        let mut sealed = Vec::with_capacity(Self::sealed_len(plaintext.len() as u64) as usize);
        self.seal(&mut &plaintext[..], &mut sealed)?;
        Ok(sealed)
    }

    /// Opens the message `sealed` into `plaintext`, which is as long as its plaintext.
    ///
    /// # Errors
    /// [`Error::Damaged`]; [`Error::Usage`] for another length. `plaintext` is all zeros then.
    pub fn open_bytes(&self, sealed: &[u8], plaintext: &mut [u8]) -> Result<(), Error> {
        let opened =
            self.view(sealed).and_then(|view| view.open_into(plaintext, &Progress::default()));
        if opened.is_err() {
            plaintext.zeroize();
        }
        opened
    }

    /// A view of the plaintext of the message in `sealed`.
    ///
    /// # Errors
    /// [`Error::Damaged`] for a wrong commitment, or a length that no message has; [`Error::Io`].
    pub fn view<R: ReadAt>(&self, sealed: R) -> Result<PlaintextView<'a, R>, Error> {
        let failed = || Error::io("read", Path::new(INPUT));
        let len = sealed.len().map_err(failed())?;
        let payload_len = len.checked_sub(PREFIX_LEN as u64).ok_or(Damage::Truncated)?;
        let mut prefix = [0; PREFIX_LEN];
        sealed.read_exact_at(&mut prefix, 0).map_err(failed())?;
        let payload = cobblestone::open(&self.key, self.context, &prefix)?;
        PlaintextView::new(
            self.engine,
            sealed,
            payload,
            PREFIX_LEN as u64..PREFIX_LEN as u64 + payload_len,
        )
    }
}

/// The plaintext of a sealed message, read in ranges.
pub struct PlaintextView<'a, R> {
    engine: &'a Engine,
    sealed: R,
    payload: Payload,
    /// Where its chunks are.
    chunks: Range<u64>,
    len: u64,
}

impl<'a, R: ReadAt> PlaintextView<'a, R> {
    pub(crate) fn new(
        engine: &'a Engine,
        sealed: R,
        payload: Payload,
        chunks: Range<u64>,
    ) -> Result<Self, Error> {
        let len = payload.layout.plain_len(chunks.end - chunks.start)?;
        Ok(Self { engine, sealed, payload, chunks, len })
    }

    /// Bytes of the plaintext, as the message's length says. It is authentic once a range up to the end
    /// was read.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// True if the plaintext is empty, as the message's length says.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it was made of.
    pub fn sealed(&self) -> &R {
        &self.sealed
    }

    /// The bytes of the container, or of the message, that [`PlaintextView::read`] needs for a `range` of the
    /// plaintext.
    pub fn sealed_range(&self, range: &Range<u64>) -> Range<u64> {
        let chunks = self.payload.layout.chunks_of(range, self.len);
        let at = |chunk: u64| {
            let from_start = chunk.saturating_mul(self.payload.layout.slot_len() as u64);
            self.chunks.start.saturating_add(from_start).min(self.chunks.end)
        };
        at(chunks.start)..at(chunks.end)
    }

    /// Fills `buffer`, which is as long as the plaintext, with all of it.
    ///
    /// # Errors
    /// [`Error::Usage`] for another length; [`Error::Damaged`]; [`Error::Io`]. The buffer is all zeros
    /// then.
    pub fn read_all(&self, buffer: &mut [u8]) -> Result<(), Error> {
        self.check_room(buffer)?;
        self.read(0, buffer)
    }

    fn check_room(&self, buffer: &mut [u8]) -> Result<(), Error> {
        if buffer.len() as u64 == self.len {
            return Ok(());
        }
        buffer.zeroize();
        Err(Error::usage(format!(
            "the buffer has {} bytes, and the plaintext {}",
            buffer.len(),
            self.len
        )))
    }

    /// Fills `buffer` with the plaintext from `offset` on, reading the chunks that hold it and no others.
    ///
    /// # Errors
    /// [`Error::Usage`] for a range beyond the end; [`Error::Damaged`]; [`Error::Io`]. The buffer is all
    /// zeros then.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) -> Result<(), Error> {
        self.read_from(self.engine, &self.sealed, offset, buffer)
    }

    /// As [`PlaintextView::read`], by another engine, from another source of the same bytes, which need hold no
    /// more of them than [`PlaintextView::sealed_range`].
    ///
    /// # Errors
    /// As [`PlaintextView::read`].
    pub fn read_from(
        &self,
        engine: &Engine,
        sealed: &dyn ReadAt,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<(), Error> {
        let range = offset..offset.saturating_add(buffer.len() as u64);
        if range.end > self.len {
            buffer.zeroize();
            return Err(Error::usage(format!(
                "bytes {}..{} were asked for, and the plaintext has {}",
                range.start, range.end, self.len
            )));
        }
        let len = self.chunks.end - self.chunks.start;
        let source = Source::At { source: sealed, offset: self.chunks.start, len };
        let sink = Sink::memory(&mut *buffer);
        let ends = ends(source, sink);
        let opened = self.payload.open(engine, Some(range), ends, &Progress::default());
        if opened.is_err() {
            buffer.zeroize();
        }
        opened.map(|_| ())
    }
}

impl PlaintextView<'_, &[u8]> {
    /// As [`PlaintextView::read_all`], without a copy between.
    pub(crate) fn open_into(&self, buffer: &mut [u8], progress: &Progress) -> Result<(), Error> {
        self.check_room(buffer)?;
        if self.engine.has_accelerator() {
            return self.read(0, buffer);
        }
        let from = &self.sealed[self.chunks.start as usize..self.chunks.end as usize];
        let chunks = Chunks { first: 0, with_last: true, from, to: buffer };
        self.payload.open_memory(self.engine, chunks, progress)
    }
}
