//! Containers that are no files of this machine, made from readers, memory and remote objects.

use std::io::{Read, Write};
use std::path::Path;

use wattlock_engine::Engine;

use crate::armor;
use crate::error::Error;
use crate::format::Format;
use crate::keys::Wrapping;
use crate::metadata::Metadata;
use crate::payload::{INPUT, OUTPUT, Payload, ends};
use crate::protect::new_payload;
use crate::read_at::ReadAt;
use crate::transfer::{Progress, Sink, Source};

/// Seals containers for the recipients of a [`Wrapping`], from and to anything. For files of this
/// machine [`protect`](crate::protect()) does more: outputs that are whole or not there, their
/// attributes, removal of the original.
pub struct Sealer<'a> {
    engine: &'a Engine,
    wrapping: &'a Wrapping,
    format: Format,
    armor: bool,
    metadata: Option<Metadata>,
}

impl<'a> Sealer<'a> {
    /// Seals containers of `format`.
    pub fn new(engine: &'a Engine, wrapping: &'a Wrapping, format: Format) -> Self {
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
        let mut container = Vec::new();
        self.seal_at(&plaintext, &mut container)?;
        Ok(container)
    }

    fn write(&self, from: Source<'_>, to: &mut (dyn Write + Send)) -> Result<(), Error> {
        let output = Path::new(OUTPUT);
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
        let (header, payload) = new_payload(self.wrapping, self.format, self.metadata.as_ref())?;
        let front = payload.front(&header);
        if self.armor {
            armor::write(to, output, |to| self.write_plain(&front, &payload, from, to))?;
        } else {
            self.write_plain(&front, &payload, from, to)?;
        }
        to.flush().map_err(Error::io("write", output))
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
