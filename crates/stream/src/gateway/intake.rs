//! What came of an input and was not taken yet.

use std::ops::Range;

use zeroize::Zeroizing;

/// A buffer that is read into at its end and taken from at its start. It holds no memory until it
/// is given some, and wipes what it gives back.
#[derive(Default)]
pub(super) struct Intake {
    bytes: Zeroizing<Vec<u8>>,
    held: Range<usize>,
}

impl Intake {
    /// Holds what came already.
    pub fn holding(came: &[u8]) -> Self {
        Self { bytes: Zeroizing::new(came.to_vec()), held: 0..came.len() }
    }

    /// Holds this in place of what it held, in the same memory if that is neither too short nor far too long.
    pub fn hold(&mut self, bytes: &[u8]) {
        if self.bytes.len() < bytes.len() || self.bytes.len() / 16 > bytes.len() {
            *self = Self::holding(bytes);
            return;
        }
        self.bytes[..bytes.len()].copy_from_slice(bytes);
        self.held = 0..bytes.len();
    }

    /// What came and was not taken.
    pub fn held(&self) -> &[u8] {
        &self.bytes[self.held.clone()]
    }

    /// Bytes of memory.
    pub fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Where the next bytes go.
    pub fn space(&mut self) -> &mut [u8] {
        &mut self.bytes[self.held.end..]
    }

    /// Notes that `count` bytes were written into the space.
    pub fn came(&mut self, count: usize) {
        self.held.end += count;
    }

    /// Removes the first `count` bytes.
    pub fn take(&mut self, count: usize) {
        self.held.start += count;
        if self.held.is_empty() {
            self.held = 0..0;
        }
    }

    /// Makes space at the end, as far as there is memory. False if it is all in use.
    pub fn make_space(&mut self) -> bool {
        if self.held.end == self.bytes.len() && self.held.start > 0 {
            self.bytes.copy_within(self.held.clone(), 0);
            self.held = 0..self.held.len();
        }
        self.held.end < self.bytes.len()
    }

    /// Changes its memory, to no less than is held.
    pub fn resize(&mut self, capacity: usize) {
        let capacity = capacity.max(self.held.len());
        let mut bytes = Zeroizing::new(vec![0; capacity]);
        bytes[..self.held.len()].copy_from_slice(self.held());
        self.held = 0..self.held.len();
        self.bytes = bytes;
    }
}
