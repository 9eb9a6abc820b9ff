//! Containers that are no files of this machine, made from readers, memory and remote objects.

use std::io::{Read, Write};
use std::path::Path;

use wattlock_engine::Engine;
use zeroize::{Zeroize, Zeroizing};

use crate::armor;
use crate::error::Error;
use crate::format::Format;
use crate::keys::Wrapping;
use crate::memory::Chunks;
use crate::metadata::Metadata;
use crate::payload::{INPUT, OUTPUT, Payload, ends};
use crate::protect::new_payload;
use crate::read_at::ReadAt;
use crate::transfer::{Progress, Sink, Source};

/// Seals containers for the recipients of a [`Wrapping`], from and to anything. For files of this
/// machine [`protect`](crate::protect()) does more: outputs that are whole or not there, their
/// attributes, removal of the original.
pub struct Sealer<'engine, 'keys> {
    engine: &'engine Engine,
    wrapping: &'keys Wrapping,
    format: Format,
    armor: bool,
    metadata: Option<Metadata>,
}

impl<'engine, 'keys> Sealer<'engine, 'keys> {
    /// Seals containers of `format`.
    pub fn new(engine: &'engine Engine, wrapping: &'keys Wrapping, format: Format) -> Self {
        Self { engine, wrapping, format, armor: false, metadata: None }
    }

    /// The same, in age's ASCII armor, which only its format has.
    #[must_use]
    pub fn armored(self) -> Self {
        Self { armor: true, ..self }
    }

    /// The same, with a name, a mode and a time sealed into each container, which only the format of
    /// Wattlock holds.
    #[must_use]
    pub fn with_metadata(self, metadata: Metadata) -> Self {
        Self { metadata: Some(metadata), ..self }
    }

    /// Seals all that `from` yields until its end, and writes the container to `to`.
    ///
    /// # Errors
    /// [`Error::Io`] of either; [`Error::Usage`] for recipients that may not stand together, and for
    /// armor or metadata that the format does not have; [`Error::Wrap`] of a recipient;
    /// [`Error::Crypto`] if there are no random bytes; [`Error::Engine`]. What was written is no
    /// container then.
    pub fn seal(
        &self,
        from: &mut (dyn Read + Send),
        to: &mut (dyn Write + Send),
    ) -> Result<(), Error> {
        self.write(Source::stream(from), to)
    }

    /// The same for all of `from`, of which several threads read at once.
    ///
    /// # Errors
    /// As [`Sealer::seal`].
    pub fn seal_at(&self, from: &dyn ReadAt, to: &mut (dyn Write + Send)) -> Result<(), Error> {
        let len = from.len().map_err(Error::io("read", Path::new(INPUT)))?;
        self.write(Source::At { source: from, offset: 0, len }, to)
    }

    /// A container of `plaintext`.
    ///
    /// # Errors
    /// As [`Sealer::seal`].
    pub fn seal_bytes(&self, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        if self.armor || self.engine.has_accelerator() {
            let mut container = Vec::new();
            self.seal_at(&plaintext, &mut container)?;
            return Ok(container);
        }
        let new = self.begin()?;
        let mut container = vec![0; new.sealed_len(plaintext.len() as u64) as usize];
        new.seal_into(plaintext, &mut container, &Progress::default())?;
        Ok(container)
    }

    /// Begins a container in memory: makes its header and its keys.
    ///
    /// # Errors
    /// As [`Sealer::seal`]; [`Error::Usage`] for an armored one.
    pub fn begin(&self) -> Result<NewContainer<'engine>, Error> {
        if self.armor {
            return Err(Error::usage("an armored container is written in order"));
        }
        let (header, payload) = self.new_payload()?;
        let front = payload.front(&header);
        Ok(NewContainer { engine: self.engine, front, payload })
    }

    fn write(&self, from: Source<'_>, to: &mut (dyn Write + Send)) -> Result<(), Error> {
        let output = Path::new(OUTPUT);
        let (header, payload) = self.new_payload()?;
        let front = payload.front(&header);
        if self.armor {
            armor::write(to, output, |to| self.write_plain(&front, &payload, from, to))?;
        } else {
            self.write_plain(&front, &payload, from, to)?;
        }
        to.flush().map_err(Error::io("write", output))
    }

    fn new_payload(&self) -> Result<(Vec<u8>, Payload), Error> {
        // Before a plugin asks its user for anything.
        if self.armor {
            self.format.check_armor()?;
        }
        if let Some(metadata) = &self.metadata {
            if self.format == Format::AgeV1 {
                return Err(Error::usage("age's format holds no metadata"));
            }
            metadata.check()?;
        }
        new_payload(self.wrapping, self.format, self.metadata.as_ref())
    }

    fn write_plain(
        &self,
        front: &[u8],
        payload: &Payload,
        from: Source<'_>,
        to: &mut (dyn Write + Send),
    ) -> Result<(), Error> {
        to.write_all(front).map_err(Error::io("write", Path::new(OUTPUT)))?;
        payload.seal(self.engine, ends(from, Sink::stream(to)), &Progress::default())?;
        Ok(())
    }
}

/// A container whose header and keys are there, and whose plaintext is yet to come. It seals one.
pub struct NewContainer<'a> {
    engine: &'a Engine,
    front: Vec<u8>,
    payload: Payload,
}

impl NewContainer<'_> {
    /// Bytes of the container of a plaintext of `plain_len` bytes.
    pub fn sealed_len(&self, plain_len: u64) -> u64 {
        self.front.len() as u64 + self.payload.layout.sealed_len(plain_len)
    }

    /// Writes the container of `plaintext` to `to`, which has [its length](Self::sealed_len), on all cores. An
    /// engine's other devices take no part.
    ///
    /// # Errors
    /// [`Error::Usage`] for another length; [`Error::Stopped`]; [`Error::Engine`].
    pub fn seal_into(
        self,
        plaintext: &[u8],
        to: &mut [u8],
        progress: &Progress,
    ) -> Result<(), Error> {
        let needed = self.sealed_len(plaintext.len() as u64);
        if to.len() as u64 != needed {
            return Err(Error::usage(format!(
                "the buffer has {} bytes, and the container {needed}",
                to.len()
            )));
        }
        let (front, to) = to.split_at_mut(self.front.len());
        front.copy_from_slice(&self.front);
        let chunks = Chunks { first: 0, with_last: true, from: plaintext, to };
        self.payload.seal_memory(self.engine, chunks, progress)
    }
}

impl<'a> NewContainer<'a> {
    /// The same for a plaintext that comes in parts.
    pub fn in_parts(self) -> ContainerInParts<'a> {
        let Self { engine, front, payload } = self;
        let (pending, next) = (Zeroizing::default(), 0);
        ContainerInParts { engine, payload, front: Some(front), pending, next }
    }
}

/// A container that is made of plaintext in parts. Its bytes are to be written one after the other.
pub struct ContainerInParts<'a> {
    engine: &'a Engine,
    payload: Payload,
    /// Until it was handed out.
    front: Option<Vec<u8>>,
    /// Plaintext of less than a chunk, or of one that may be the last.
    pending: Zeroizing<Vec<u8>>,
    /// The index of the next chunk.
    next: u64,
}

impl ContainerInParts<'_> {
    /// Takes more plaintext, and returns the bytes of the container that are ready.
    ///
    /// # Errors
    /// [`Error::Engine`], and [`Error::Io`] where there is no memory; the container is lost then.
    pub fn update(&mut self, plaintext: &[u8]) -> Result<Vec<u8>, Error> {
        let chunk_len = self.payload.layout.chunk_len;
        let mut ready = self.front.take().unwrap_or_default();
        let (mut part, mut rest) = (std::mem::take(&mut self.pending), plaintext);
        if !part.is_empty() {
            let (more, behind) = rest.split_at(rest.len().min(chunk_len - part.len()));
            part.extend_from_slice(more);
            rest = behind;
            // A full chunk may be the last one, of which the nonce says so in age's format.
            if rest.is_empty() {
                self.pending = part;
                return Ok(ready);
            }
            self.seal(&part, false, &mut ready)?;
            part.zeroize();
        }
        let kept = match rest.len() % chunk_len {
            0 => rest.len().min(chunk_len),
            short => short,
        };
        let (full, last) = rest.split_at(rest.len() - kept);
        self.seal(full, false, &mut ready)?;
        part.extend_from_slice(last);
        self.pending = part;
        Ok(ready)
    }

    /// Returns the last bytes of the container.
    ///
    /// # Errors
    /// [`Error::Engine`]; the container is lost then.
    pub fn finish(mut self) -> Result<Vec<u8>, Error> {
        let mut ready = self.front.take().unwrap_or_default();
        let last = std::mem::take(&mut self.pending);
        self.seal(&last, true, &mut ready)?;
        Ok(ready)
    }

    fn seal(&mut self, from: &[u8], with_last: bool, ready: &mut Vec<u8>) -> Result<(), Error> {
        let start = ready.len();
        let len = self.payload.sealed_len_of(from.len() as u64, with_last) as usize;
        ready.try_reserve_exact(len).map_err(|_| {
            Error::io("write", Path::new(OUTPUT))(std::io::ErrorKind::OutOfMemory.into())
        })?;
        ready.resize(start + len, 0);
        let chunks = Chunks { first: self.next, with_last, from, to: &mut ready[start..] };
        // Even after an error, no index is used again.
        self.next += (from.len() / self.payload.layout.chunk_len) as u64;
        self.payload.seal_memory(self.engine, chunks, &Progress::default())
    }
}
