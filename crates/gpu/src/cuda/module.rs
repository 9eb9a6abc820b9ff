//! Kernels: compiled by the driver, found by name, launched.

use std::ffi::{CStr, c_int, c_void};
use std::sync::Arc;

use super::api::{Code, Handle};
use super::driver::Context;
use super::stream::Stream;
use super::{Error, Version};

/// Kernels, compiled by the driver for its GPU.
pub(super) struct Module {
    context: Arc<Context>,
    handle: Handle,
}

impl Module {
    /// Compiles `ptx`.
    pub fn load(context: &Arc<Context>, ptx: &CStr) -> Result<Arc<Self>, Error> {
        let mut log = vec![0_u8; LOG_BYTES];
        let mut options = [JIT_ERROR_LOG, JIT_ERROR_LOG_BYTES];
        let mut values = [log.as_mut_ptr().cast::<c_void>(), LOG_BYTES as *mut c_void];
        let mut handle = Handle::NULL;
        // SAFETY: two options and their values, of which the first is a buffer as long as the
        // second says; the text ends with a zero.
        let code = context.code("cuModuleLoadDataEx", |api| unsafe {
            (api.module_load)(
                &raw mut handle,
                ptx.as_ptr().cast(),
                2,
                options.as_mut_ptr(),
                values.as_mut_ptr(),
            )
        });
        match code {
            Code::SUCCESS => Ok(Arc::new(Self { context: context.clone(), handle })),
            Code::OUT_OF_MEMORY => {
                Err(Error::OutOfMemory { call: "cuModuleLoadDataEx", bytes: ptx.count_bytes() })
            }
            Code::UNSUPPORTED_PTX_VERSION => {
                Err(Error::DriverTooOld { driver: context.version(), needed: KERNELS_NEED })
            }
            code if code.is_lost() => {
                Err(Error::Lost { call: "cuModuleLoadDataEx", reason: context.reason(code) })
            }
            code => {
                let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
                let log = String::from_utf8_lossy(&log[..end]);
                let log = log.lines().map(|line| format!("\n  {}", line.trim_end())).collect();
                Err(Error::Kernels { reason: context.reason(code), log })
            }
        }
    }
}

impl Module {
    /// Where the variable `name` is, of `len` bytes.
    pub fn variable(&self, name: &CStr, len: usize) -> Result<u64, Error> {
        let (mut address, mut found) = (0, 0);
        // SAFETY: the name ends with a zero, and the pointers are valid for the answers.
        self.context.call("cuModuleGetGlobal", |api| unsafe {
            (api.module_variable)(&raw mut address, &raw mut found, self.handle, name.as_ptr())
        })?;
        if found == len {
            return Ok(address);
        }
        let reason = format!("{} has {found} bytes, not {len}", name.to_string_lossy());
        Err(Error::Kernels { reason, log: String::new() })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // SAFETY: functions of this module keep it alive, so none is left.
        let _ =
            self.context.call("cuModuleUnload", |api| unsafe { (api.module_unload)(self.handle) });
    }
}

/// One kernel of a module.
#[derive(Clone)]
pub(super) struct Function {
    module: Arc<Module>,
    handle: Handle,
    name: &'static str,
}

/// How many threads run a kernel, and with how much memory that they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Grid {
    pub blocks: u32,
    pub threads: u32,
    pub shared_bytes: u32,
}

impl Function {
    /// The kernel `name`, permitted to ask for `shared_bytes` when it is launched.
    pub fn named(
        module: &Arc<Module>,
        name: &'static CStr,
        shared_bytes: u32,
    ) -> Result<Self, Error> {
        let mut handle = Handle::NULL;
        // SAFETY: the name ends with a zero, and the pointer is valid for the answer.
        module.context.call("cuModuleGetFunction", |api| unsafe {
            (api.module_function)(&raw mut handle, module.handle, name.as_ptr())
        })?;
        let name = name.to_str().unwrap_or("a kernel");
        if shared_bytes > SHARED_BYTES_ALWAYS {
            // SAFETY: the function is of a module that is loaded.
            module.context.call("cuFuncSetAttribute", |api| unsafe {
                (api.function_set_attribute)(handle, DYNAMIC_SHARED_BYTES, shared_bytes as c_int)
            })?;
        }
        Ok(Self { module: module.clone(), handle, name })
    }

    /// Starts the kernel on `stream`.
    ///
    /// # Safety
    /// `arguments` point to values of the types of the kernel's parameters, as many as it has;
    /// what they name stays allocated until the stream has finished, and the kernel keeps within
    /// it.
    pub unsafe fn launch(
        &self,
        stream: &Stream,
        grid: Grid,
        arguments: &mut [*mut c_void],
    ) -> Result<(), Error> {
        // SAFETY: the caller answers for the arguments; the rest are numbers and live handles.
        let code = self.module.context.code("cuLaunchKernel", |api| unsafe {
            (api.launch)(
                self.handle,
                grid.blocks,
                1,
                1,
                grid.threads,
                1,
                1,
                grid.shared_bytes,
                stream.handle,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        });
        self.module.context.check("cuLaunchKernel", code).map_err(|error| match error {
            Error::Call { reason, .. } => Error::Launch { kernel: self.name, reason },
            other => other,
        })
    }
}

/// The CUDA version whose drivers were the first to take PTX 6.4, which the kernels are written in.
pub(super) const KERNELS_NEED: Version = Version(10_010);

/// Shared memory that a launch may ask for without more ado.
const SHARED_BYTES_ALWAYS: u32 = 48 * 1024;

const DYNAMIC_SHARED_BYTES: c_int = 8;
const JIT_ERROR_LOG: c_int = 5;
const JIT_ERROR_LOG_BYTES: c_int = 6;
const LOG_BYTES: usize = 8192;
