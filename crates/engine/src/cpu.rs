//! The CPU: each worker takes cache-sized pieces from the front.

use zeroize::Zeroizing;

use crate::device::{Device, Stop};
use crate::job::Cipher;
use crate::run::{End, Run};
use crate::tally::Tally;

/// The processor's cores.
pub struct Cpu {
    workers: usize,
}

impl Cpu {
    /// The name in reports and in `--device`.
    pub const NAME: &'static str = "cpu";

    /// A CPU that may use `workers` threads, at least one.
    pub fn new(workers: usize) -> Self {
        Self { workers: workers.max(1) }
    }
}

impl Device for Cpu {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn workers(&self) -> usize {
        self.workers
    }

    fn supports(&self, _: &Cipher<'_>) -> bool {
        true
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let mut buffer = Zeroizing::default();
        while let Some(mut piece) = run.take(End::Front, run.piece_chunks(), buffer)? {
            let (first, last) = (piece.first(), piece.is_last());
            let slots = piece.slots();
            let len = slots.len();
            run.job().apply(first, last, slots)?;
            buffer = run.finish(piece)?;
            tally.count(len);
        }
        Ok(())
    }
}
