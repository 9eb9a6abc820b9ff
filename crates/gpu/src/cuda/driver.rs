//! The driver, what it says of its GPUs, and their contexts.

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::api::{Api, Code, Handle};
use super::{Error, Version};

/// The CUDA driver of this machine, loaded.
pub struct Driver {
    api: Api,
    version: Version,
}

/// What the driver says of a GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Info {
    /// Index among the GPUs that this process may see.
    pub index: usize,
    /// The product's name.
    pub name: String,
    /// As `nvidia-smi` and NVML write it: `GPU-…`.
    pub uuid: String,
    /// Compute capability, before the point and behind it.
    pub capability: (i32, i32),
    /// Streaming multiprocessors.
    pub multiprocessors: usize,
    /// Bytes of shared memory that a block may ask for.
    pub shared_bytes: usize,
    /// Bytes of the GPU's memory.
    pub memory_bytes: usize,
    /// The clock at which the multiprocessors run at most, in kHz; 0 where the driver does not say.
    pub clock_khz: usize,
}

impl Driver {
    /// Loads the library that `WATTLOCK_LIBCUDA` names, or `libcuda.so.1`.
    ///
    /// # Errors
    /// [`Error::Library`], [`Error::Symbol`], [`Error::NoDevice`], or what the driver says when it
    /// starts.
    pub fn load() -> Result<Arc<Self>, Error> {
        let named = std::env::var_os("WATTLOCK_LIBCUDA").filter(|path| !path.is_empty());
        Self::load_from(&named.map_or_else(|| PathBuf::from(LIBRARY), PathBuf::from))
    }

    /// As [`Driver::load`], from the library at `path`.
    ///
    /// # Errors
    /// As [`Driver::load`].
    pub fn load_from(path: &Path) -> Result<Arc<Self>, Error> {
        let api = Api::open(path)?;
        let mut driver = Self { api, version: Version(0) };
        // SAFETY: the only flag that exists is 0.
        driver.check("cuInit", unsafe { (driver.api.init)(0) })?;
        let mut version = 0;
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (driver.api.driver_version)(&raw mut version) };
        driver.check("cuDriverGetVersion", code)?;
        driver.version = Version(version);
        Ok(Arc::new(driver))
    }

    /// The newest CUDA version that the driver supports.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Every GPU that this process may see.
    ///
    /// # Errors
    /// What the driver says.
    pub fn devices(&self) -> Result<Vec<Info>, Error> {
        let mut count = 0;
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (self.api.device_count)(&raw mut count) };
        self.check("cuDeviceGetCount", code)?;
        (0..count).map(|index| self.device(index)).collect()
    }

    fn device(&self, index: c_int) -> Result<Info, Error> {
        let device = self.ordinal(index)?;
        let mut name: [c_char; 256] = [0; 256];
        // SAFETY: the driver writes at most as many bytes as it is told that there are.
        let code = unsafe { (self.api.device_name)(name.as_mut_ptr(), 256, device) };
        self.check("cuDeviceGetName", code)?;
        name[255] = 0;
        // SAFETY: the last byte is zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let mut uuid = [0; 16];
        // SAFETY: the pointer is valid for the 16 bytes of the answer.
        let code = unsafe { (self.api.device_uuid)(&raw mut uuid, device) };
        self.check("cuDeviceGetUuid", code)?;
        let mut memory_bytes = 0;
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (self.api.device_memory)(&raw mut memory_bytes, device) };
        self.check("cuDeviceTotalMem", code)?;
        let attribute = |which| self.attribute(device, which);
        Ok(Info {
            index: index as usize,
            name,
            uuid: uuid_text(&uuid),
            capability: (attribute(CAPABILITY_MAJOR)?, attribute(CAPABILITY_MINOR)?),
            multiprocessors: attribute(MULTIPROCESSORS)?.max(1) as usize,
            shared_bytes: attribute(SHARED_BYTES_OPT_IN)?.max(0) as usize,
            memory_bytes,
            // Newer drivers may have it no more; only a figure of the bench rests on it.
            clock_khz: attribute(CLOCK_KHZ).unwrap_or(0).max(0) as usize,
        })
    }

    fn ordinal(&self, index: c_int) -> Result<c_int, Error> {
        let mut device = 0;
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (self.api.device_at)(&raw mut device, index) };
        self.check("cuDeviceGet", code)?;
        Ok(device)
    }

    fn attribute(&self, device: c_int, which: c_int) -> Result<c_int, Error> {
        let mut value = 0;
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (self.api.device_attribute)(&raw mut value, which, device) };
        self.check("cuDeviceGetAttribute", code)?;
        Ok(value)
    }

    fn check(&self, call: &'static str, code: Code) -> Result<(), Error> {
        if code == Code::SUCCESS {
            return Ok(());
        }
        Err(Error::of(call, code, &self.api.text(code)))
    }
}

fn uuid_text(uuid: &[u8; 16]) -> String {
    let hex: String = uuid.iter().map(|byte| format!("{byte:02x}")).collect();
    let [a, b, c, d, e] = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    format!("GPU-{a}-{b}-{c}-{d}-{e}")
}

/// A GPU's primary context, the one that all of a process share; released with the last owner.
pub(super) struct Context {
    driver: Arc<Driver>,
    device: c_int,
    handle: Handle,
    /// The call that said so first, and what it said.
    lost: OnceLock<(&'static str, Code)>,
}

impl Context {
    pub fn retain(driver: Arc<Driver>, index: usize) -> Result<Arc<Self>, Error> {
        let device = driver.ordinal(index as c_int)?;
        let mut handle = Handle::NULL;
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (driver.api.context_retain)(&raw mut handle, device) };
        match code {
            Code::OUT_OF_MEMORY => {
                return Err(Error::OutOfMemory { call: "cuDevicePrimaryCtxRetain", bytes: 0 });
            }
            code => driver.check("cuDevicePrimaryCtxRetain", code)?,
        }
        Ok(Arc::new(Self { driver, device, handle, lost: OnceLock::new() }))
    }

    /// Makes `call` with this context current.
    pub fn call(&self, name: &'static str, call: impl FnOnce(&Api) -> Code) -> Result<(), Error> {
        self.check(name, self.code(call))
    }

    /// As [`Context::call`], for calls that can find too little memory.
    pub fn allocate(
        &self,
        name: &'static str,
        bytes: usize,
        call: impl FnOnce(&Api) -> Code,
    ) -> Result<(), Error> {
        match self.code(call) {
            Code::OUT_OF_MEMORY => Err(Error::OutOfMemory { call: name, bytes }),
            code => self.check(name, code),
        }
    }

    /// What `call` answers. A context has to be current on the thread that calls, so every call
    /// makes it so first; that costs a tenth of a microsecond.
    pub fn code(&self, call: impl FnOnce(&Api) -> Code) -> Code {
        // SAFETY: the context is retained as long as this value lives.
        let current = unsafe { (self.driver.api.context_set_current)(self.handle) };
        if current == Code::SUCCESS { call(&self.driver.api) } else { current }
    }

    /// As [`Context::call`], for a code that is there.
    pub fn check(&self, name: &'static str, code: Code) -> Result<(), Error> {
        if code.is_lost() {
            self.lost.get_or_init(|| (name, code));
        }
        self.driver.check(name, code)
    }

    /// That the GPU was lost, once a call said so.
    pub fn loss(&self) -> Result<(), Error> {
        self.lost.get().map_or(Ok(()), |&(name, code)| self.driver.check(name, code))
    }

    /// The newest CUDA version that the driver supports.
    pub fn version(&self) -> Version {
        self.driver.version
    }

    /// The driver's words for `code`.
    pub fn reason(&self, code: Code) -> String {
        let (name, text) = self.driver.api.text(code);
        format!("{text} ({name})")
    }

    /// Bytes of device memory that are free, and all.
    pub fn memory(&self) -> Result<(usize, usize), Error> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are valid for the answers.
        self.call("cuMemGetInfo", |api| unsafe {
            (api.memory_info)(&raw mut free, &raw mut total)
        })?;
        Ok((free, total))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // SAFETY: retained once, released once. A refusal changes nothing for this process.
        let _ = unsafe { (self.driver.api.context_release)(self.device) };
    }
}

/// Where the loader looks for it: the name under which every driver since 2007 installs it.
const LIBRARY: &str = "libcuda.so.1";

const CLOCK_KHZ: c_int = 13;
const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const SHARED_BYTES_OPT_IN: c_int = 97;
