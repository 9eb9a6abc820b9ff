//! A device that is as slow, as wrong, and fails as soon, as a test wants it to.

use std::collections::VecDeque;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::device::{Device, Fault, Stop};
use crate::job::Cipher;
use crate::run::{Piece, Run};
use crate::self_test::self_test;
use crate::tally::Tally;

/// An accelerator that exists only in tests: keeps pieces in flight, at a given rate and latency,
/// and fails on demand.
#[derive(Debug)]
pub struct Fake {
    /// Its name in reports.
    pub name: &'static str,
    /// Chunks that it takes at a time at most.
    pub piece_chunks: usize,
    /// Pieces that it keeps in flight.
    pub slots: usize,
    /// Pretended speed; `None` is as fast as the CPU beneath it.
    pub bytes_per_second: Option<f64>,
    /// What each piece takes before its first byte.
    pub latency: Duration,
    /// Pieces it finishes before it fails; `None` never fails.
    pub pieces_before_fault: Option<u64>,
    /// True if a bit of all that it does is wrong.
    pub wrong: bool,
    /// What it can do.
    pub supports: fn(&Cipher<'_>) -> bool,
    /// True if it is only used when its name is given.
    pub only_by_name: bool,
}

impl Default for Fake {
    fn default() -> Self {
        Self {
            name: "fake",
            piece_chunks: usize::MAX,
            slots: 3,
            bytes_per_second: None,
            latency: Duration::ZERO,
            pieces_before_fault: None,
            wrong: false,
            supports: |_| true,
            only_by_name: false,
        }
    }
}

impl Fake {
    /// The device, if it passes the test that every device has to pass.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn open(self) -> Result<Box<dyn Device>, Fault> {
        self_test(&self)?;
        Ok(Box::new(self))
    }

    /// Works on one piece, as the hardware would. False once it is broken.
    fn process(&self, run: &Run<'_, '_>, piece: &mut Piece<'_>, done: u64) -> Result<bool, Stop> {
        if self.pieces_before_fault.is_some_and(|limit| done >= limit) {
            return Ok(false);
        }
        let (first, last) = (piece.first(), piece.is_last());
        let slots = piece.slots();
        let moving = self.bytes_per_second.map_or(0.0, |rate| slots.len() as f64 / rate);
        std::thread::sleep(self.latency + Duration::from_secs_f64(moving));
        run.job().apply(first, last, slots)?;
        if let Some(byte) = slots.first_mut().filter(|_| self.wrong) {
            *byte ^= 1;
        }
        Ok(true)
    }
}

impl Device for Fake {
    fn name(&self) -> &str {
        self.name
    }

    fn workers(&self) -> usize {
        1
    }

    fn slots(&self) -> usize {
        self.slots
    }

    fn supports(&self, cipher: &Cipher<'_>) -> bool {
        (self.supports)(cipher)
    }

    fn only_by_name(&self) -> bool {
        self.only_by_name
    }

    fn work(&self, run: &Run<'_, '_>, tally: &mut Tally) -> Result<(), Stop> {
        let mut in_flight = VecDeque::new();
        let mut buffers = Vec::new();
        loop {
            while in_flight.len() < self.slots.max(1) {
                let buffer = buffers.pop().unwrap_or_else(Zeroizing::default);
                match run.take_as(self.name, self.piece_chunks, buffer)? {
                    Some(piece) => in_flight.push_back(piece),
                    None => break,
                }
            }
            let Some(mut piece) = in_flight.pop_front() else { return Ok(()) };
            if !self.process(run, &mut piece, tally.pieces)? {
                in_flight.push_front(piece);
                in_flight.into_iter().for_each(|piece| run.hand_back(piece));
                return Err(Stop::Fault(Fault("the fake device failed on demand".into())));
            }
            let len = piece.slots().len();
            buffers.push(run.finish(piece)?);
            tally.count(len);
        }
    }
}
