//! The part of the CUDA driver API that is used, bound by name at run time: a flat list.
//!
//! Signatures are those of NVIDIA's "CUDA Driver API" reference; a suffix `_v2` is the name under
//! which the library exports what the reference calls without it.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::mem::ManuallyDrop;
use std::path::Path;

use libloading::Library;

use super::Error;

/// What every call answers.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub c_int);

impl Code {
    pub const SUCCESS: Self = Self(0);
    pub const OUT_OF_MEMORY: Self = Self(2);
    pub const NO_DEVICE: Self = Self(100);
    pub const UNSUPPORTED_PTX_VERSION: Self = Self(222);

    /// Codes after which the reference says that the context is of no more use, or that mean a
    /// device that fell off its bus.
    const LOST: [c_int; 16] =
        [4, 46, 100, 201, 214, 226, 700, 702, 709, 714, 715, 716, 717, 718, 719, 999];

    /// True if nothing can be done with the device any more.
    pub fn is_lost(self) -> bool {
        Self::LOST.contains(&self.0)
    }
}

/// An opaque thing of the driver: a context, module, function, stream or event.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(pub *mut c_void);

impl Handle {
    pub const NULL: Self = Self(std::ptr::null_mut());
}

// SAFETY: the driver API is thread-safe; a handle is a name for something that the driver guards.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

macro_rules! api {
    ($($field:ident = $symbol:literal $(| $older:literal)? ($($argument:ty),*);)*) => {
        /// The functions of a library that is never closed.
        pub struct Api {
            $(pub $field: unsafe extern "C" fn($($argument),*) -> Code,)*
        }

        impl Api {
            /// Binds every function, or says which is missing.
            fn bind(library: Library) -> Result<Self, Error> {
                // The driver has threads of its own that run its code until the process ends.
                let library = ManuallyDrop::new(library);
                $(
                    // SAFETY: the type is that of the reference for this name.
                    let found = unsafe {
                        library.get::<unsafe extern "C" fn($($argument),*) -> Code>($symbol)
                    };
                    $(
                        // SAFETY: the type has not changed since the older name.
                        let found = found.or_else(|_| unsafe { library.get($older) });
                    )?
                    let $field = *found
                        .map_err(|source| Error::Symbol { name: name_of($symbol), source })?;
                )*
                Ok(Self { $($field,)* })
            }
        }
    };
}

api! {
    init = c"cuInit" (c_uint);
    driver_version = c"cuDriverGetVersion" (*mut c_int);
    error_name = c"cuGetErrorName" (Code, *mut *const c_char);
    error_string = c"cuGetErrorString" (Code, *mut *const c_char);
    device_count = c"cuDeviceGetCount" (*mut c_int);
    device_at = c"cuDeviceGet" (*mut c_int, c_int);
    device_name = c"cuDeviceGetName" (*mut c_char, c_int, c_int);
    device_uuid = c"cuDeviceGetUuid_v2" | c"cuDeviceGetUuid" (*mut [u8; 16], c_int);
    device_attribute = c"cuDeviceGetAttribute" (*mut c_int, c_int, c_int);
    device_memory = c"cuDeviceTotalMem_v2" (*mut usize, c_int);
    context_retain = c"cuDevicePrimaryCtxRetain" (*mut Handle, c_int);
    context_release = c"cuDevicePrimaryCtxRelease_v2" | c"cuDevicePrimaryCtxRelease" (c_int);
    context_set_current = c"cuCtxSetCurrent" (Handle);
    module_load = c"cuModuleLoadDataEx"
        (*mut Handle, *const c_void, c_uint, *mut c_int, *mut *mut c_void);
    module_unload = c"cuModuleUnload" (Handle);
    module_function = c"cuModuleGetFunction" (*mut Handle, Handle, *const c_char);
    module_variable = c"cuModuleGetGlobal_v2" (*mut u64, *mut usize, Handle, *const c_char);
    function_set_attribute = c"cuFuncSetAttribute" (Handle, c_int, c_int);
    memory_info = c"cuMemGetInfo_v2" (*mut usize, *mut usize);
    memory_alloc = c"cuMemAlloc_v2" (*mut u64, usize);
    memory_free = c"cuMemFree_v2" (u64);
    host_alloc = c"cuMemHostAlloc" (*mut *mut c_void, usize, c_uint);
    host_free = c"cuMemFreeHost" (*mut c_void);
    copy_to_device = c"cuMemcpyHtoDAsync_v2" (u64, *const c_void, usize, Handle);
    copy_to_host = c"cuMemcpyDtoHAsync_v2" (*mut c_void, u64, usize, Handle);
    fill = c"cuMemsetD8Async" (u64, u8, usize, Handle);
    stream_create = c"cuStreamCreate" (*mut Handle, c_uint);
    stream_destroy = c"cuStreamDestroy_v2" (Handle);
    stream_synchronize = c"cuStreamSynchronize" (Handle);
    event_create = c"cuEventCreate" (*mut Handle, c_uint);
    event_destroy = c"cuEventDestroy_v2" (Handle);
    event_record = c"cuEventRecord" (Handle, Handle);
    event_synchronize = c"cuEventSynchronize" (Handle);
    event_elapsed = c"cuEventElapsedTime" (*mut f32, Handle, Handle);
    launch = c"cuLaunchKernel" (
        Handle, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, Handle,
        *mut *mut c_void, *mut *mut c_void
    );
}

impl Api {
    /// Opens the library at `path`, which the loader's own search resolves if it is a bare name.
    pub fn open(path: &Path) -> Result<Self, Error> {
        // SAFETY: the driver's library may be loaded at any time; a library named by
        // WATTLOCK_LIBCUDA runs as this user, as with LD_PRELOAD.
        let library = unsafe { Library::new(path) }
            .map_err(|source| Error::Library { path: path.to_owned(), source })?;
        Self::bind(library)
    }

    /// The name and the explanation that the driver has for `code`.
    pub fn text(&self, code: Code) -> (String, String) {
        (self.string(self.error_name, code), self.string(self.error_string, code))
    }

    fn string(
        &self,
        ask: unsafe extern "C" fn(Code, *mut *const c_char) -> Code,
        code: Code,
    ) -> String {
        let mut text = std::ptr::null();
        // SAFETY: the pointer is valid for the answer.
        let answered = unsafe { ask(code, &raw mut text) };
        if answered != Code::SUCCESS || text.is_null() {
            return format!("error {}", code.0);
        }
        // SAFETY: the driver's texts are constants that end with a zero.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }
}

fn name_of(symbol: &CStr) -> String {
    symbol.to_string_lossy().into_owned()
}
