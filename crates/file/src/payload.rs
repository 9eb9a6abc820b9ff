//! A payload: its keys, and the engine job that seals or opens it.

use std::ops::Range;
use std::path::Path;

use wattlock_engine::crypto::AeadKey;
use wattlock_engine::{self as engine, Aad, Cipher, Data, Engine, Job, Nonces, Operation, Report};

use crate::error::Error;
use crate::layout::Layout;
use crate::transfer::{FileTransfer, Progress, Sink, Source};

/// The keys and the layout of one payload; the same for every format from here on.
pub struct Payload {
    pub(crate) key: AeadKey,
    pub(crate) nonces: Nonces,
    pub(crate) layout: Layout,
    /// The bytes between the header and the first chunk.
    pub(crate) prefix: Vec<u8>,
}

/// What went from one end to the other.
pub(crate) struct Moved {
    pub report: Report,
    /// Bytes of plaintext that went through.
    pub plain_bytes: u64,
}

/// The two ends of a payload's way, with the names they have in messages.
pub(crate) struct Ends<'source, 'sink, 'name> {
    pub source: Source<'source>,
    pub sink: Sink<'sink>,
    pub input: &'name Path,
    pub output: &'name Path,
}

/// What ends that are no files are called in messages.
pub(crate) const INPUT: &str = "the input";
/// As [`INPUT`].
pub(crate) const OUTPUT: &str = "the output";

/// Ends that are no files.
pub(crate) fn ends<'source, 'sink>(
    source: Source<'source>,
    sink: Sink<'sink>,
) -> Ends<'source, 'sink, 'static> {
    Ends { source, sink, input: Path::new(INPUT), output: Path::new(OUTPUT) }
}

impl Payload {
    /// All that stands before the first chunk of a container with this header.
    pub(crate) fn front(&self, header: &[u8]) -> Vec<u8> {
        [header, &self.prefix].concat()
    }

    /// Seals all of the source.
    pub(crate) fn seal(
        &self,
        engine: &Engine,
        ends: Ends<'_, '_, '_>,
        progress: &Progress,
    ) -> Result<Moved, Error> {
        self.run(|job| engine.run(job), Operation::Seal, None, ends, progress)
    }

    /// Opens all of the source, or only the plaintext bytes in `window`.
    pub(crate) fn open(
        &self,
        engine: &Engine,
        window: Option<Range<u64>>,
        ends: Ends<'_, '_, '_>,
        progress: &Progress,
    ) -> Result<Moved, Error> {
        self.run(|job| engine.run(job), Operation::Open, window, ends, progress)
    }

    /// Opens all of the source by the CPU alone: the check of what another device sealed or opened
    /// before the original goes. In CTR and GCM a fault that a device has in both directions
    /// cancels out, so the device cannot check itself.
    pub(crate) fn open_by_cpu(
        &self,
        engine: &Engine,
        ends: Ends<'_, '_, '_>,
        progress: &Progress,
    ) -> Result<Moved, Error> {
        self.run(|job| engine.run_on_cpu(job), Operation::Open, None, ends, progress)
    }

    fn run(
        &self,
        run: impl FnOnce(Job<'_>) -> Result<Report, engine::Error>,
        operation: Operation,
        window: Option<Range<u64>>,
        ends: Ends<'_, '_, '_>,
        progress: &Progress,
    ) -> Result<Moved, Error> {
        let Ends { source, sink, input, output } = ends;
        let transfer = FileTransfer::new(operation, self.layout, source, sink, window, progress)?;
        let job = Job {
            cipher: Cipher::Aead { operation, key: &self.key, nonces: self.nonces, aad: Aad::None },
            chunk_len: self.layout.chunk_len,
            data: Data::Moved(&transfer),
            deadline: None,
        };
        match run(job) {
            Ok(report) => Ok(Moved { report, plain_bytes: transfer.passed() }),
            Err(error) => {
                let error = Error::from_run(error, input, output);
                Err(match transfer.released() {
                    0 => error,
                    released => Error::Incomplete { released, source: Box::new(error) },
                })
            }
        }
    }
}
