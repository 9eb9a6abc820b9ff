//! OpenCL's objects as values that release themselves, and its calls with checked lengths.
//!
//! `opencl3` has such values too, but theirs panic when a release fails, which is what happens when
//! a device is lost.

use std::ffi::{CStr, c_void};
use std::ptr;
use std::sync::Arc;

use opencl3::command_queue as queue;
use opencl3::context::context;
use opencl3::event;
use opencl3::kernel;
use opencl3::memory;
use opencl3::program;
use opencl3::types::{
    CL_FALSE, CL_TRUE, cl_command_queue, cl_context, cl_device_id, cl_event, cl_kernel, cl_mem,
    cl_program,
};
use zeroize::Zeroize;

use super::Error;

macro_rules! handle {
    ($(#[$doc:meta])* $name:ident($raw:ty) by $release:path) => {
        $(#[$doc])*
        pub(super) struct $name($raw);

        impl Drop for $name {
            fn drop(&mut self) {
                // SAFETY: the handle came from OpenCL and is released once. Failing to is no
                // reason to stop.
                let _ = unsafe { $release(self.0) };
            }
        }

        // SAFETY: OpenCL 1.2, A.2: all calls are thread-safe but for clSetKernelArg, and
        // [`Kernel::launch`] takes `&mut self`.
        unsafe impl Send for $name {}
        // SAFETY: as above.
        unsafe impl Sync for $name {}
    };
}

handle!(
    /// A context of one device.
    Context(cl_context) by context::release_context
);
handle!(
    /// An in-order queue.
    Queue(cl_command_queue) by queue::release_command_queue
);
handle!(
    /// Compiled kernels.
    Program(cl_program) by program::release_program
);
handle!(
    /// One kernel.
    Kernel(cl_kernel) by kernel::release_kernel
);
handle!(
    /// Memory of the device, or pinned memory of the host.
    Memory(cl_mem) by memory::release_mem_object
);
handle!(
    /// A command that may still be running.
    Event(cl_event) by event::release_event
);

/// Memory of the device and its length.
pub(super) struct Buffer {
    memory: Memory,
    len: usize,
}

/// Memory of the host from which a device copies fast, mapped for as long as it lives.
pub(super) struct Pinned {
    memory: Memory,
    queue: Arc<Queue>,
    at: *mut u8,
    len: usize,
}

// SAFETY: the pointer is to memory that nothing else owns.
unsafe impl Send for Pinned {}

/// An argument of a kernel.
pub(super) enum Argument<'a> {
    U32(u32),
    U64(u64),
    Buffer(&'a Buffer),
}

impl Context {
    pub fn new(device: cl_device_id) -> Result<Self, Error> {
        context::create_context(&[device], ptr::null(), None, ptr::null_mut())
            .map(Self)
            .map_err(Error::of("clCreateContext"))
    }

    pub fn queue(&self, device: cl_device_id) -> Result<Arc<Queue>, Error> {
        // SAFETY: context and device are valid and belong together.
        unsafe { queue::create_command_queue(self.0, device, 0) }
            .map(|raw| Arc::new(Queue(raw)))
            .map_err(Error::of("clCreateCommandQueue"))
    }

    pub fn buffer(&self, len: usize) -> Result<Buffer, Error> {
        self.memory(memory::CL_MEM_READ_WRITE, len).map(|memory| Buffer { memory, len })
    }

    pub fn pinned(&self, queue: &Arc<Queue>, len: usize) -> Result<Pinned, Error> {
        let memory = self.memory(memory::CL_MEM_READ_WRITE | memory::CL_MEM_ALLOC_HOST_PTR, len)?;
        let flags = memory::CL_MAP_READ | memory::CL_MAP_WRITE;
        let mut at = ptr::null_mut();
        // SAFETY: the whole of a buffer that was just made is mapped, and the call waits.
        let mapped = unsafe {
            queue::enqueue_map_buffer(
                queue.0,
                memory.0,
                CL_TRUE,
                flags,
                0,
                len,
                &mut at,
                0,
                ptr::null(),
            )
        };
        let _event = mapped.map(Event).map_err(Error::of("clEnqueueMapBuffer"))?;
        Ok(Pinned { memory, queue: queue.clone(), at: at.cast(), len })
    }

    fn memory(&self, flags: u64, len: usize) -> Result<Memory, Error> {
        // SAFETY: the context is valid, and OpenCL allocates the memory itself.
        unsafe { memory::create_buffer(self.0, flags, len.max(1), ptr::null_mut()) }
            .map(Memory)
            .map_err(Error::of("clCreateBuffer"))
    }
}

impl Program {
    /// Compiles `text`; on failure, what the compiler said.
    pub fn build(
        context: &Context,
        device: cl_device_id,
        text: &str,
        options: &CStr,
    ) -> Result<Result<Self, String>, Error> {
        // One text: the crate passes no more than the first to the driver intact.
        let made = program::create_program_with_source(context.0, &[text]);
        let made = made.map(Self).map_err(Error::of("clCreateProgramWithSource"))?;
        match program::build_program(made.0, &[device], options, None, ptr::null_mut()) {
            Ok(()) => Ok(Ok(made)),
            Err(code) => {
                let log =
                    program::get_program_build_data(made.0, device, program::CL_PROGRAM_BUILD_LOG)
                        .unwrap_or_default();
                let log = String::from_utf8_lossy(&log).trim_end_matches(['\0', '\n']).to_owned();
                let said = if log.is_empty() {
                    Error::of("clBuildProgram")(code).to_string()
                } else {
                    log
                };
                Ok(Err(said))
            }
        }
    }

    pub fn kernel(&self, name: &CStr) -> Result<Kernel, Error> {
        kernel::create_kernel(self.0, name).map(Kernel).map_err(Error::of("clCreateKernel"))
    }
}

impl Kernel {
    /// Starts `groups` groups of `group` lanes.
    ///
    /// # Safety
    /// The arguments are what `kernels/README.md` says of this kernel, its buffers are as long,
    /// and they live until the queue has finished.
    pub unsafe fn launch(
        &mut self,
        queue: &Queue,
        groups: usize,
        group: usize,
        arguments: &[Argument<'_>],
    ) -> Result<Event, Error> {
        for (index, argument) in (0..).zip(arguments) {
            let (at, len): (*const c_void, _) = match argument {
                Argument::U32(value) => (ptr::from_ref(value).cast(), size_of::<u32>()),
                Argument::U64(value) => (ptr::from_ref(value).cast(), size_of::<u64>()),
                Argument::Buffer(buffer) => {
                    (ptr::from_ref(&buffer.memory.0).cast(), size_of::<cl_mem>())
                }
            };
            // SAFETY: the pointer is to a value of that length, which the call copies.
            unsafe { kernel::set_kernel_arg(self.0, index, len, at) }
                .map_err(Error::of("clSetKernelArg"))?;
        }
        let all = groups * group;
        // SAFETY: both sizes are one-dimensional and live through the call; the rest is the
        // caller's promise.
        unsafe {
            queue::enqueue_nd_range_kernel(
                queue.0,
                self.0,
                1,
                ptr::null(),
                &raw const all,
                &raw const group,
                0,
                ptr::null(),
            )
        }
        .map(Event)
        .map_err(Error::of("clEnqueueNDRangeKernel"))
    }
}

impl Queue {
    /// Copies `from` to the beginning of `to`, and returns when that is done.
    pub fn write(&self, to: &Buffer, from: &[u8]) -> Result<(), Error> {
        if from.is_empty() {
            return Ok(());
        }
        if from.len() > to.len {
            return Err(Error::of("a copy")(INVALID_VALUE));
        }
        let at = from.as_ptr().cast();
        // SAFETY: `from` lives through the call, which waits, and `to` is at least as long.
        let written = unsafe {
            queue::enqueue_write_buffer(
                self.0,
                to.memory.0,
                CL_TRUE,
                0,
                from.len(),
                at,
                0,
                ptr::null(),
            )
        };
        written.map(Event).map(drop).map_err(Error::of("clEnqueueWriteBuffer"))
    }

    /// Copies from the beginning of `from`, and waits for the copy.
    pub fn read(&self, from: &Buffer, to: &mut [u8]) -> Result<(), Error> {
        if to.is_empty() {
            return Ok(());
        }
        if to.len() > from.len {
            return Err(Error::of("a copy")(INVALID_VALUE));
        }
        let (len, at) = (to.len(), to.as_mut_ptr().cast());
        // SAFETY: `to` lives through the call, which waits, and `from` is at least as long.
        let read = unsafe {
            queue::enqueue_read_buffer(self.0, from.memory.0, CL_TRUE, 0, len, at, 0, ptr::null())
        };
        read.map(Event).map(drop).map_err(Error::of("clEnqueueReadBuffer"))
    }

    /// Starts to put zeros into all of `buffer`.
    pub fn clear(&self, buffer: &Buffer) -> Result<Event, Error> {
        let zero = 0_u8;
        let pattern = ptr::from_ref(&zero).cast();
        // SAFETY: the pattern is one byte and copied by the call; the range is the buffer's.
        unsafe {
            queue::enqueue_fill_buffer(
                self.0,
                buffer.memory.0,
                pattern,
                1,
                0,
                buffer.len,
                0,
                ptr::null(),
            )
        }
        .map(Event)
        .map_err(Error::of("clEnqueueFillBuffer"))
    }

    /// Starts what was queued.
    pub fn flush(&self) -> Result<(), Error> {
        queue::flush(self.0).map_err(Error::of("clFlush"))
    }

    /// Waits until nothing is left.
    pub fn finish(&self) -> Result<(), Error> {
        queue::finish(self.0).map_err(Error::of("clFinish"))
    }
}

impl Buffer {
    pub fn len(&self) -> usize {
        self.len
    }
}

impl Pinned {
    /// The memory. Nothing of what was started on it may still run.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: mapped, of that length, initialised by the driver or by us, and ours alone.
        unsafe { std::slice::from_raw_parts_mut(self.at, self.len) }
    }

    /// Starts to copy `len` bytes at `offset` to the same place of `to`.
    ///
    /// # Safety
    /// The bytes are left alone until the queue has finished.
    pub unsafe fn write_to(&self, to: &Buffer, offset: usize, len: usize) -> Result<Event, Error> {
        self.check(to, offset, len)?;
        // SAFETY: `check` saw that the range is in both.
        let at = unsafe { self.at.add(offset) }.cast();
        // SAFETY: as above; that the bytes stay is the caller's promise.
        unsafe {
            queue::enqueue_write_buffer(
                self.queue.0,
                to.memory.0,
                CL_FALSE,
                offset,
                len,
                at,
                0,
                ptr::null(),
            )
        }
        .map(Event)
        .map_err(Error::of("clEnqueueWriteBuffer"))
    }

    /// Starts to copy `len` bytes at `offset` from the same place of `from`.
    ///
    /// # Safety
    /// The bytes are left alone until the queue has finished.
    pub unsafe fn read_from(
        &mut self,
        from: &Buffer,
        offset: usize,
        len: usize,
    ) -> Result<Event, Error> {
        self.check(from, offset, len)?;
        // SAFETY: `check` saw that the range is in both.
        let at = unsafe { self.at.add(offset) }.cast();
        // SAFETY: as above; that the bytes stay is the caller's promise.
        unsafe {
            queue::enqueue_read_buffer(
                self.queue.0,
                from.memory.0,
                CL_FALSE,
                offset,
                len,
                at,
                0,
                ptr::null(),
            )
        }
        .map(Event)
        .map_err(Error::of("clEnqueueReadBuffer"))
    }

    fn check(&self, other: &Buffer, offset: usize, len: usize) -> Result<(), Error> {
        let end = offset.checked_add(len);
        if end.is_some_and(|end| end <= self.len && end <= other.len) {
            Ok(())
        } else {
            Err(Error::of("a copy")(INVALID_VALUE))
        }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        let _ = self.queue.finish();
        self.bytes().zeroize();
        let at = self.at.cast();
        // SAFETY: it was mapped from this buffer and is unmapped once.
        let unmapped = unsafe {
            queue::enqueue_unmap_mem_object(self.queue.0, self.memory.0, at, 0, ptr::null())
        };
        drop(unmapped.map(Event));
        let _ = self.queue.finish();
    }
}

/// Waits for all of `events`; an error if one of them failed.
pub(super) fn wait(events: &[Event]) -> Result<(), Error> {
    let raw: Vec<cl_event> = events.iter().map(|event| event.0).collect();
    if raw.is_empty() {
        return Ok(());
    }
    event::wait_for_events(&raw).map_err(Error::of("clWaitForEvents"))
}

/// `CL_INVALID_VALUE`.
const INVALID_VALUE: i32 = -30;
