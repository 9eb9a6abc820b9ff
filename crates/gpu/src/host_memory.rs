//! Memory of the host that a driver's thread owns, and lends to a worker.

use std::ptr::NonNull;

/// Bytes that a worker fills before it has the device fetch them, and reads once the device has
/// written them.
pub(crate) struct HostMemory {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: only the owner of this memory uses the bytes, and only while the device does not.
unsafe impl Send for HostMemory {}

impl HostMemory {
    /// `None` for a null pointer.
    ///
    /// # Safety
    /// `len` initialised bytes at `start` live as long as this memory, or for ever if their owner is
    /// leaked, and only this memory and the device, when asked to, use them.
    pub unsafe fn new(start: *mut u8, len: usize) -> Option<Self> {
        Some(Self { start: NonNull::new(start)?, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// Copies `bytes` to offset `at`, where the device must not be working.
    ///
    /// # Panics
    /// If they do not fit.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at, "beyond pinned memory");
        // SAFETY: `at` is within.
        let target = unsafe { self.start.as_ptr().add(at) };
        // SAFETY: the target is that long, and this memory is borrowed mutably.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }

    /// # Safety
    /// Nothing is under way in it.
    pub unsafe fn bytes(&self) -> &[u8] {
        // SAFETY: allocated and initialised; the caller answers for the device.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr(), self.len) }
    }
}
