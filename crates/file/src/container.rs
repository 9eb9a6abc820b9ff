//! An existing container: found out what it is, its header read, its keys derived.

use std::fs::File;
use std::io::{self, BufRead, Read};
use std::ops::Range;
use std::path::Path;

use wattlock_engine::Engine;
use wattlock_engine::crypto::{Secret, TAG_LEN};
use zeroize::Zeroizing;

use crate::armor::{self, MaybeArmored};
use crate::error::{Damage, Error};
use crate::format::Format;
use crate::header::Header;
use crate::input::{Input, Opened};
use crate::keys::Identities;
use crate::layout::{Ending, Layout};
use crate::metadata::Metadata;
use crate::payload::{Ends, Moved, Payload};
use crate::read_at::ReadAt;
use crate::transfer::{Progress, Reseal, Sink, Source};
use crate::{age_v1, cobblestone, wattlock_v1};

/// A container whose header was read, and whose payload has not been touched.
pub(crate) struct Sealed {
    pub opened: Opened,
    pub header: Header,
    /// True if it is age's ASCII armor, which can only be read in order.
    pub armored: bool,
    reader: Box<dyn BufRead + Send>,
}

/// A container whose header is authentic, and whose payload can be opened.
pub(crate) struct Container {
    pub opened: Opened,
    pub header: Header,
    /// The sealed metadata; empty if the format has none.
    pub metadata: Metadata,
    payload: Payload,
    body: Body,
}

/// The payload's chunks.
enum Body {
    /// `len` bytes from `offset` on.
    At { offset: u64, len: u64 },
    /// A stream, read to its end.
    Stream(Box<dyn BufRead + Send>),
}

impl Format {
    /// Bytes between the header and the first chunk.
    pub fn prefix_len(self) -> usize {
        match self {
            Self::WattlockV1 => cobblestone::PREFIX_LEN,
            Self::AgeV1 => age_v1::NONCE_LEN,
        }
    }
}

impl Sealed {
    /// Reads the header of `input`.
    pub fn read(input: &Input) -> Result<Self, Error> {
        let opened = input.open()?;
        let reader = armor::reader(opened.reader()?).map_err(Error::io("read", opened.name()))?;
        let MaybeArmored { armored, mut reader } = reader;
        let header = Header::read(&mut reader)?;
        Ok(Self { opened, header, armored, reader })
    }

    /// Where the payload is, prefix included, if it can be read at any offset.
    pub fn payload_range(&self) -> Option<Range<u64>> {
        let range = self.opened.range().filter(|_| !self.armored)?;
        Some(range.start + self.header.len()..range.end)
    }

    /// Unwraps the file key, authenticates the header and derives the payload's keys.
    pub fn unlock(self, identities: &Identities) -> Result<Container, Error> {
        self.unlock_with(identities, Keys::payload)
    }

    /// The same for a container whose payload is damaged, its commitment perhaps as well.
    pub fn unlock_damaged(self, identities: &Identities) -> Result<Container, Error> {
        self.unlock_with(identities, Keys::damaged_payload)
    }

    fn unlock_with(
        mut self,
        identities: &Identities,
        payload: impl FnOnce(&Keys, &[u8]) -> Result<Payload, Error>,
    ) -> Result<Container, Error> {
        let range = self.payload_range();
        let (reader, name) = (&mut self.reader, self.opened.name());
        let (payload, metadata) = unlock_with(&self.header, reader, name, identities, payload)?;
        let prefix_len = self.header.format().prefix_len() as u64;
        let body = match range {
            Some(range) => {
                let offset = range.start + prefix_len;
                Body::At { offset, len: range.end.saturating_sub(offset) }
            }
            None => Body::Stream(self.reader),
        };
        Ok(Container { opened: self.opened, header: self.header, metadata, payload, body })
    }
}

impl Container {
    /// Reads and authenticates the header of `input`.
    pub fn open(input: &Input, identities: &Identities) -> Result<Self, Error> {
        Sealed::read(input)?.unlock(identities)
    }

    /// What its chunks are read from and their range, if they can be read at any offset.
    pub fn chunks_at(&self) -> Option<(&dyn ReadAt, Range<u64>)> {
        match self.body {
            Body::At { offset, len } => Some((self.opened.read_at(), offset..offset + len)),
            Body::Stream(_) => None,
        }
    }

    /// How the payload is cut into chunks.
    pub fn layout(&self) -> Layout {
        self.payload.layout
    }

    /// True if the payload's commitment to its key is right.
    pub fn is_committed(&self) -> bool {
        !self.payload.prefix.is_empty()
    }

    /// Opens chunk `index` in `slot`, tag included; `None` if it is not authentic. True if it says of
    /// itself that it is the last; `may_end` if it is where the last may be.
    pub fn open_slot(&self, index: u64, may_end: bool, slot: &mut [u8]) -> Option<bool> {
        let Payload { key, nonces, layout, .. } = &self.payload;
        let sealed = Zeroizing::new(slot.to_vec());
        let mut open = |last: bool| {
            slot.copy_from_slice(&sealed);
            let (body, tag) = slot.split_last_chunk_mut::<TAG_LEN>()?;
            key.open(nonces.nonce(index, last), b"", body, tag).ok()
        };
        match layout.ending {
            Ending::Short => open(false).map(|()| sealed.len() < layout.slot_len()),
            Ending::Marked if may_end && open(true).is_some() => Some(true),
            Ending::Marked => open(false).map(|()| false),
        }
    }

    /// Length of the plaintext in bytes, if the container's length is known. Authentic only once
    /// the last chunk is.
    pub fn plain_len(&self) -> Result<Option<u64>, Error> {
        match self.body {
            Body::At { len, .. } => Ok(Some(self.payload.layout.plain_len(len)?)),
            Body::Stream(_) => Ok(None),
        }
    }

    /// `range`, cut at the end of the plaintext as the container's length has it.
    pub fn window(&self, range: Option<Range<u64>>) -> Result<Option<Range<u64>>, Error> {
        let Some(range) = range else { return Ok(None) };
        let len = self.plain_len()?.ok_or_else(|| {
            Error::usage("--range needs a container that can be read at any offset, not a stream")
        })?;
        Ok(Some(range.start.min(len)..range.end.min(len)))
    }

    /// Bytes that are read to open `window`: the header, and the chunks that hold it.
    pub fn bytes_read_for(&self, window: &Range<u64>) -> Result<u64, Error> {
        let (layout, plain_len) = (self.payload.layout, self.plain_len()?.unwrap_or(window.end));
        let chunks = layout.chunks_of(window, plain_len);
        let slot_len = layout.slot_len() as u64;
        let end = (chunks.end * slot_len).min(layout.sealed_len(plain_len));
        let front = self.header.len() + self.header.format().prefix_len() as u64;
        Ok(front + end - chunks.start * slot_len)
    }

    /// Opens the payload into `sink`.
    pub fn run(
        &mut self,
        engine: &Engine,
        window: Option<Range<u64>>,
        sink: Sink<'_>,
        output: &Path,
        progress: &Progress,
    ) -> Result<Moved, Error> {
        let source = self.body.source(&self.opened);
        let ends = Ends { source, sink, input: self.opened.name(), output };
        self.payload.open(engine, window, ends, progress)
    }

    /// Seals all of the payload again, under the keys of `payload`, into `file`, by the CPU alone: no
    /// other device may do a chunk twice, which would seal two plaintexts under one nonce.
    ///
    /// # Errors
    /// [`Error::Usage`] for a container that is not a file.
    pub fn reseal_by_cpu(
        &mut self,
        engine: &Engine,
        (file, path): (&File, &Path),
        (front, payload): (&[u8], &Payload),
        progress: &Progress,
    ) -> Result<Moved, Error> {
        let plain_len = self.plain_len()?.ok_or_else(|| {
            Error::usage("rekey needs a container in a file, and not an armored one")
        })?;
        let Payload { key, nonces, layout, .. } = payload;
        let (slot_len, chunks) = (layout.slot_len(), layout.chunks(plain_len));
        let source = self.body.source(&self.opened);
        let sink = Sink::Resealed(Reseal { file, front, key, nonces: *nonces, slot_len, chunks });
        let ends = Ends { source, sink, input: self.opened.name(), output: path };
        self.payload.open_by_cpu(engine, ends, progress)
    }

    /// Authenticates all of the payload by the CPU alone, and compares it with `plaintext`, which is
    /// the content of `path`.
    pub fn compare_by_cpu(
        &mut self,
        engine: &Engine,
        plaintext: &dyn ReadAt,
        path: &Path,
        progress: &Progress,
    ) -> Result<Moved, Error> {
        if let Ok(len) = plaintext.len() {
            plaintext.read_ahead(0..len);
        }
        let source = self.body.source(&self.opened);
        let sink = Sink::Equals(plaintext);
        let ends = Ends { source, sink, input: self.opened.name(), output: path };
        self.payload.open_by_cpu(engine, ends, progress)
    }
}

impl Body {
    fn source<'a>(&'a mut self, opened: &'a Opened) -> Source<'a> {
        match self {
            Self::At { offset, len } => opened.source_at(*offset, *len),
            Self::Stream(reader) => Source::stream(reader),
        }
    }
}

/// Unwraps the file key of `header`, authenticates it, and derives the keys of the payload, whose first
/// bytes stand next in `reader`.
pub(crate) fn unlock(
    header: &Header,
    reader: &mut impl Read,
    name: &Path,
    identities: &Identities,
) -> Result<(Payload, Metadata), Error> {
    unlock_with(header, reader, name, identities, Keys::payload)
}

fn unlock_with(
    header: &Header,
    reader: &mut impl Read,
    name: &Path,
    identities: &Identities,
    payload: impl FnOnce(&Keys, &[u8]) -> Result<Payload, Error>,
) -> Result<(Payload, Metadata), Error> {
    let (keys, metadata) =
        identities.with_file_key(header, |file_key| Keys::derive(header, file_key))?;
    let mut prefix = vec![0; header.format().prefix_len()];
    reader.read_exact(&mut prefix).map_err(|error| match error.kind() {
        io::ErrorKind::UnexpectedEof => Damage::Truncated.into(),
        _ => Error::io("read", name)(error),
    })?;
    Ok((payload(&keys, &prefix)?, metadata))
}

/// The key that a header yields, before the payload's prefix is read.
enum Keys {
    WattlockV1(Secret<32>),
    AgeV1(Secret<16>),
}

impl Keys {
    fn derive(header: &Header, file_key: &Secret<16>) -> Result<(Self, Metadata), Error> {
        match header.format() {
            Format::WattlockV1 => {
                header.verify(&wattlock_v1::mac_key(file_key))?;
                let data_key = wattlock_v1::data_key(header, file_key)?;
                let metadata = wattlock_v1::metadata(header, &data_key)?.unwrap_or_default();
                Ok((Self::WattlockV1(data_key), metadata))
            }
            Format::AgeV1 => {
                header.verify(&age_v1::mac_key(file_key))?;
                let file_key = Secret::init_with(|bytes| bytes.copy_from_slice(file_key.expose()));
                Ok((Self::AgeV1(file_key), Metadata::default()))
            }
        }
    }

    /// As [`Keys::payload`], whatever the commitment in `prefix` is.
    fn damaged_payload(&self, prefix: &[u8]) -> Result<Payload, Error> {
        match (self, prefix.first_chunk(), self.payload(prefix)) {
            (Self::WattlockV1(data_key), Some(salt), Err(Error::Damaged(Damage::Commitment))) => {
                Ok(cobblestone::open_uncommitted(data_key, wattlock_v1::PAYLOAD_CONTEXT, salt))
            }
            (.., payload) => payload,
        }
    }

    /// The payload whose first bytes are `prefix`, which has the format's length.
    fn payload(&self, prefix: &[u8]) -> Result<Payload, Error> {
        let wrong_length = |_| Error::from(Damage::Truncated);
        match self {
            Self::WattlockV1(data_key) => {
                let prefix = prefix.try_into().map_err(wrong_length)?;
                cobblestone::open(data_key, wattlock_v1::PAYLOAD_CONTEXT, prefix)
            }
            Self::AgeV1(file_key) => {
                let nonce = prefix.try_into().map_err(wrong_length)?;
                Ok(age_v1::payload(file_key, nonce))
            }
        }
    }
}
