//! Memory of the device, and memory of the host that the device can reach by itself.

use std::ffi::{c_uint, c_void};
use std::ptr::NonNull;
use std::sync::Arc;

use zeroize::Zeroize;

use super::Error;
use super::api::Handle;
use super::driver::Context;

/// Device memory, zeroed before it is freed: it held keys or plaintext.
pub(super) struct DeviceMemory {
    context: Arc<Context>,
    address: u64,
    len: usize,
}

impl DeviceMemory {
    /// At least one byte.
    pub fn new(context: &Arc<Context>, len: usize) -> Result<Self, Error> {
        let len = len.max(1);
        let mut address = 0;
        // SAFETY: the pointer is valid for the answer.
        context.allocate("cuMemAlloc", len, |api| unsafe {
            (api.memory_alloc)(&raw mut address, len)
        })?;
        Ok(Self { context: context.clone(), address, len })
    }

    pub fn len(&self) -> usize {
        self.len
    }

    /// For kernels.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// # Panics
    /// If `len` bytes from `at` on are not within.
    pub fn assert_holds(&self, at: usize, len: usize) {
        let end = at.checked_add(len);
        assert!(
            end.is_some_and(|end| end <= self.len),
            "{len} bytes at {at} are beyond {} bytes of device memory",
            self.len
        );
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // Nothing can be done about a refusal: the device is then lost, and its memory with it.
        // SAFETY: the memory is allocated, and this stream is the one of the context itself.
        let _ = self.context.call("cuMemsetD8Async", |api| unsafe {
            (api.fill)(self.address, 0, self.len, Handle::NULL)
        });
        // SAFETY: the stream of the context itself always exists.
        let _ = self
            .context
            .call("cuStreamSynchronize", |api| unsafe { (api.stream_synchronize)(Handle::NULL) });
        // SAFETY: allocated once, freed once; all kernels on it have ended.
        let _ = self.context.call("cuMemFree", |api| unsafe { (api.memory_free)(self.address) });
    }
}

/// Pinned memory of the host, cacheable, zeroed before it is freed.
pub(super) struct PinnedMemory {
    context: Arc<Context>,
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: owned bytes; which thread holds them does not matter, as every call of the driver makes
// the context current.
unsafe impl Send for PinnedMemory {}

impl PinnedMemory {
    /// At least one byte, all zeros.
    pub fn new(context: &Arc<Context>, len: usize) -> Result<Self, Error> {
        let len = len.max(1);
        let mut start: *mut c_void = std::ptr::null_mut();
        // SAFETY: the pointer is valid for the answer.
        context.allocate("cuMemHostAlloc", len, |api| unsafe {
            (api.host_alloc)(&raw mut start, len, PORTABLE)
        })?;
        let null = || Error::OutOfMemory { call: "cuMemHostAlloc", bytes: len };
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(null)?;
        // SAFETY: `len` bytes were just allocated there.
        unsafe { start.write_bytes(0, len) };
        Ok(Self { context: context.clone(), start, len })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Where it starts, for copies of the device.
    pub fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Copies `bytes` to place `at`, while the device may be at work in other places.
    ///
    /// # Panics
    /// If they are not within.
    pub fn write(&mut self, at: usize, bytes: &[u8]) {
        assert!(at <= self.len && bytes.len() <= self.len - at, "beyond pinned memory");
        // SAFETY: `at` is within.
        let target = unsafe { self.start.as_ptr().add(at) };
        // SAFETY: the target is that long, and this is the only owner.
        unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), target, bytes.len()) };
    }

    /// The bytes.
    ///
    /// # Safety
    /// No copy of the device is under way in them.
    pub unsafe fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: allocated, initialised and owned; the caller answers for the device.
        unsafe { std::slice::from_raw_parts_mut(self.start.as_ptr(), self.len) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: all copies have ended.
        unsafe { self.bytes() }.zeroize();
        let start = self.start.as_ptr().cast();
        // SAFETY: allocated once, freed once.
        let _ = self.context.call("cuMemFreeHost", |api| unsafe { (api.host_free)(start) });
    }
}

/// Pinned for every context of the process. Not write-combined: results are read back from it.
const PORTABLE: c_uint = 1;
