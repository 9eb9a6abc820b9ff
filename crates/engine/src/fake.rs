//! A device that is as slow, and fails as soon, as a test wants it to.

use std::time::Duration;

use zeroize::Zeroizing;

use crate::device::{Device, Fault, Stop, Tally};
use crate::run::{End, Run};

/// An accelerator that exists only in tests: takes large pieces from the back, at a given rate,
/// and fails on demand.
pub struct Fake {
    /// Chunks it takes at a time.
    pub piece_chunks: usize,
    /// Pretended speed; `None` is as fast as the CPU beneath it.
    pub bytes_per_second: Option<f64>,
    /// Pieces it finishes before it fails; `None` never fails.
    pub pieces_before_fault: Option<u64>,
}

impl Default for Fake {
    fn default() -> Self {
        Self { piece_chunks: 64, bytes_per_second: None, pieces_before_fault: None }
    }
}

impl Device for Fake {
    fn name(&self) -> &str {
        "fake"
    }

    fn workers(&self) -> usize {
        1
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let mut buffer = Zeroizing::default();
        while let Some(mut piece) = run.take(End::Back, self.piece_chunks, buffer)? {
            if self.pieces_before_fault.is_some_and(|limit| tally.pieces >= limit) {
                run.hand_back(piece);
                return Err(Stop::Fault(Fault("the fake device failed on demand".into())));
            }
            let (first, last) = (piece.first(), piece.is_last());
            let slots = piece.slots();
            let len = slots.len();
            if let Some(rate) = self.bytes_per_second {
                std::thread::sleep(Duration::from_secs_f64(len as f64 / rate));
            }
            run.job().apply(first, last, slots)?;
            buffer = run.finish(piece)?;
            tally.count(len);
        }
        Ok(())
    }
}
