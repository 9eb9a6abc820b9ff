//! Streams, and the points in them that can be waited for.

use std::ffi::c_uint;
use std::sync::Arc;

use super::Error;
use super::api::Handle;
use super::driver::Context;
use super::memory::DeviceMemory;

/// A queue of copies and kernels that run in order, and concurrently with other streams.
pub(super) struct Stream {
    context: Arc<Context>,
    pub handle: Handle,
}

impl Stream {
    pub fn new(context: &Arc<Context>) -> Result<Self, Error> {
        let mut handle = Handle::NULL;
        // SAFETY: the pointer is valid for the answer.
        context.allocate("cuStreamCreate", 0, |api| unsafe {
            (api.stream_create)(&raw mut handle, STREAM_NON_BLOCKING)
        })?;
        Ok(Self { context: context.clone(), handle })
    }

    /// Waits, without a thought for the CPU's time, until everything before has run.
    pub fn synchronize(&self) -> Result<(), Error> {
        // SAFETY: the stream lives as long as this value.
        self.context
            .call("cuStreamSynchronize", |api| unsafe { (api.stream_synchronize)(self.handle) })
    }

    /// Copies to `to`, from `at` on.
    ///
    /// # Safety
    /// `from` stays allocated and unchanged until the stream has finished.
    pub unsafe fn copy_in(
        &self,
        to: &DeviceMemory,
        at: usize,
        from: *const u8,
        len: usize,
    ) -> Result<(), Error> {
        to.assert_holds(at, len);
        // SAFETY: the target holds the bytes, and the caller answers for the source.
        unsafe { self.copy_to_address(to.address() + at as u64, from, len) }
    }

    /// As [`Stream::copy_in`], to a variable of a module.
    ///
    /// # Safety
    /// As there, and the address has room for `len` bytes.
    pub unsafe fn copy_to_address(
        &self,
        to: u64,
        from: *const u8,
        len: usize,
    ) -> Result<(), Error> {
        // SAFETY: the caller answers for both sides.
        self.context.call("cuMemcpyHtoDAsync", |api| unsafe {
            (api.copy_to_device)(to, from.cast(), len, self.handle)
        })
    }

    /// Copies from `from`, from `at` on.
    ///
    /// # Safety
    /// `to` stays allocated and is not touched until the stream has finished.
    pub unsafe fn copy_out(
        &self,
        to: *mut u8,
        from: &DeviceMemory,
        at: usize,
        len: usize,
    ) -> Result<(), Error> {
        from.assert_holds(at, len);
        // SAFETY: the source holds the bytes, and the caller answers for the target.
        unsafe { self.copy_from_address(to, from.address() + at as u64, len) }
    }

    /// As [`Stream::copy_out`], from a variable of a module.
    ///
    /// # Safety
    /// As there, and `len` bytes are at the address.
    pub unsafe fn copy_from_address(
        &self,
        to: *mut u8,
        from: u64,
        len: usize,
    ) -> Result<(), Error> {
        // SAFETY: the caller answers for both sides.
        self.context.call("cuMemcpyDtoHAsync", |api| unsafe {
            (api.copy_to_host)(to.cast(), from, len, self.handle)
        })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once; what still runs is finished before.
        let _ = self
            .context
            .call("cuStreamDestroy", |api| unsafe { (api.stream_destroy)(self.handle) });
    }
}

/// A point in a stream.
pub(super) struct Event {
    context: Arc<Context>,
    handle: Handle,
}

impl Event {
    /// One to wait for asleep.
    pub fn to_wait_for(context: &Arc<Context>) -> Result<Self, Error> {
        Self::with_flags(context, EVENT_BLOCKING | EVENT_NO_TIMING)
    }

    /// One that knows when it was passed.
    pub fn with_time(context: &Arc<Context>) -> Result<Self, Error> {
        Self::with_flags(context, 0)
    }

    fn with_flags(context: &Arc<Context>, flags: c_uint) -> Result<Self, Error> {
        let mut handle = Handle::NULL;
        // SAFETY: the pointer is valid for the answer.
        context.allocate("cuEventCreate", 0, |api| unsafe {
            (api.event_create)(&raw mut handle, flags)
        })?;
        Ok(Self { context: context.clone(), handle })
    }

    pub fn record(&self, stream: &Stream) -> Result<(), Error> {
        // SAFETY: both live.
        self.context
            .call("cuEventRecord", |api| unsafe { (api.event_record)(self.handle, stream.handle) })
    }

    pub fn wait(&self) -> Result<(), Error> {
        // SAFETY: the event lives as long as this value.
        self.context
            .call("cuEventSynchronize", |api| unsafe { (api.event_synchronize)(self.handle) })
    }

    /// Seconds from `earlier` to this one, both passed.
    pub fn seconds_since(&self, earlier: &Self) -> Result<f64, Error> {
        let mut milliseconds = 0.0;
        // SAFETY: both live, and the pointer is valid for the answer.
        self.context.call("cuEventElapsedTime", |api| unsafe {
            (api.event_elapsed)(&raw mut milliseconds, earlier.handle, self.handle)
        })?;
        Ok(f64::from(milliseconds) / 1e3)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: created once, destroyed once.
        let _ =
            self.context.call("cuEventDestroy", |api| unsafe { (api.event_destroy)(self.handle) });
    }
}

const STREAM_NON_BLOCKING: c_uint = 1;
const EVENT_BLOCKING: c_uint = 1;
const EVENT_NO_TIMING: c_uint = 2;
