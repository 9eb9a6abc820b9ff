//! Containers that are no files of this machine, opened from readers, memory and remote objects.

use std::io::{self, BufReader, Read, Write};
use std::path::Path;

use wattlock_engine::Engine;
use zeroize::Zeroize;

use crate::armor;
use crate::container::unlock;
use crate::error::Error;
use crate::format::Format;
use crate::header::Header;
use crate::keys::Identities;
use crate::metadata::Metadata;
use crate::payload::{INPUT, OUTPUT, ends};
use crate::raw::PlaintextView;
use crate::read_at::{InOrder, ReadAt};
use crate::transfer::{Progress, Sink, Source};

/// Opens containers with the keys in [`Identities`], from and to anything. For files of this machine
/// [`unprotect`](crate::unprotect()) does more.
pub struct Opener<'engine, 'keys> {
    engine: &'engine Engine,
    identities: &'keys Identities,
}

/// A container whose plaintext is read in ranges.
pub struct ContainerView<'a, R> {
    /// Its format.
    pub format: Format,
    /// The name, mode and time that are sealed in it; empty if there are none.
    pub metadata: Metadata,
    /// Its plaintext.
    pub plaintext: PlaintextView<'a, R>,
}

impl<'engine, 'keys> Opener<'engine, 'keys> {
    /// Opens with these identities.
    pub fn new(engine: &'engine Engine, identities: &'keys Identities) -> Self {
        Self { engine, identities }
    }

    /// Opens the container that `from` yields until its end, armored or not, and writes its plaintext to
    /// `to`, each chunk once it is authentic. Returns the name, mode and time that are sealed in it.
    ///
    /// # Errors
    /// [`Error::NotAContainer`], [`Error::Header`] and others of a header; [`Error::WrongKey`],
    /// [`Error::NeedsPassphrase`], [`Error::WrongPassphrase`], [`Error::TooMuchWork`],
    /// [`Error::TooManyRecipients`] and [`Error::Unwrap`] of the keys; [`Error::Damaged`];
    /// [`Error::Incomplete`] if plaintext was written before; [`Error::Io`] and [`Error::Engine`].
    pub fn open(
        &self,
        from: &mut (dyn Read + Send),
        to: &mut (dyn Write + Send),
    ) -> Result<Metadata, Error> {
        let input = Path::new(INPUT);
        let reader = armor::reader(BufReader::new(from)).map_err(Error::io("read", input))?;
        let mut reader = reader.reader;
        let header = Header::read(&mut reader)?;
        let (payload, metadata) = unlock(&header, &mut reader, input, self.identities)?;
        let ends = ends(Source::stream(&mut reader), Sink::stream(to));
        payload.open(self.engine, None, ends, &Progress::default())?;
        to.flush().map_err(Error::io("write", Path::new(OUTPUT)))?;
        Ok(metadata)
    }

    /// Opens `container` into `plaintext`, whose length has to be that of the plaintext; the length is
    /// `view(container)?.plaintext.len()`.
    ///
    /// # Errors
    /// Those of [`Opener::view`]; [`Error::Damaged`]; [`Error::Usage`] for another length. `plaintext`
    /// is all zeros then.
    pub fn open_bytes(&self, container: &[u8], plaintext: &mut [u8]) -> Result<Metadata, Error> {
        let opened = self.view(container).and_then(|view| {
            view.open_into(plaintext, &Progress::default())?;
            Ok(view.metadata)
        });
        if opened.is_err() {
            plaintext.zeroize();
        }
        opened
    }

    /// A view of the container in `sealed`, of which the header is read.
    ///
    /// # Errors
    /// Those of the header and the keys, as [`Opener::open`] has them; [`Error::Damaged`] for a length that
    /// no payload has; [`Error::Usage`] for an armored container, which can only be read in order;
    /// [`Error::Io`].
    pub fn view<R: ReadAt>(&self, sealed: R) -> Result<ContainerView<'engine, R>, Error> {
        let input = Path::new(INPUT);
        let end = sealed.len().map_err(Error::io("read", input))?;
        let mut reader = BufReader::new(InOrder::new(&sealed, end));
        let start = io::BufRead::fill_buf(&mut reader).map_err(Error::io("read", input))?;
        if armor::is_armored(start) {
            return Err(Error::usage("an armored container can only be read in order"));
        }
        let header = Header::read(&mut reader)?;
        let (payload, metadata) = unlock(&header, &mut reader, input, self.identities)?;
        let format = header.format();
        let chunks = header.len() + format.prefix_len() as u64..end;
        let plaintext = PlaintextView::new(self.engine, sealed, payload, chunks)?;
        Ok(ContainerView { format, metadata, plaintext })
    }
}

impl ContainerView<'_, &[u8]> {
    /// Opens all of it into `plaintext`, which has the plaintext's length, on all cores.
    ///
    /// # Errors
    /// [`Error::Usage`] for another length; [`Error::Damaged`]; [`Error::Stopped`]; [`Error::Engine`]. `plaintext` is all
    /// zeros then.
    pub fn open_into(&self, plaintext: &mut [u8], progress: &Progress) -> Result<(), Error> {
        self.plaintext.open_into(plaintext, progress)
    }
}
