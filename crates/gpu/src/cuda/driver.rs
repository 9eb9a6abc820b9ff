//! The driver, what it says of its GPUs, and their contexts.

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};

use super::api::{Api, Code, Handle};
use super::{Error, Version};
use crate::driver_thread::{Unanswered, attend, note};
use crate::lock::lock;
use crate::timeouts::Timeouts;

/// The CUDA driver of this machine, loaded.
///
/// Every call is made by a thread that can be left behind, should the driver not return.
pub struct Driver {
    api: Api,
    path: PathBuf,
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
        Self::load_as(None, Timeouts::new(None))
    }

    /// As [`Driver::load`], from the library at `path`.
    ///
    /// # Errors
    /// As [`Driver::load`].
    pub fn load_from(path: &Path) -> Result<Arc<Self>, Error> {
        Self::load_within(path, Timeouts::new(None))
    }

    /// As [`Driver::load_from`], from the library at `path` or the usual one, with these limits.
    pub(super) fn load_as(path: Option<&Path>, timeouts: Timeouts) -> Result<Arc<Self>, Error> {
        let named = std::env::var_os("WATTLOCK_LIBCUDA").filter(|path| !path.is_empty());
        let usual = || named.map_or_else(|| PathBuf::from(LIBRARY), PathBuf::from);
        Self::load_within(&path.map_or_else(usual, Path::to_owned), timeouts)
    }

    fn load_within(path: &Path, timeouts: Timeouts) -> Result<Arc<Self>, Error> {
        let path = path.to_owned();
        attend_library(&path.clone(), timeouts.to_list(), move || {
            note("loading the CUDA driver");
            let api = Api::open(&path)?;
            let mut driver = Self { api, path, version: Version(0) };
            note("cuInit");
            // SAFETY: the only flag that exists is 0.
            driver.check("cuInit", unsafe { (driver.api.init)(0) })?;
            let mut version = 0;
            note("cuDriverGetVersion");
            // SAFETY: the pointer is valid for the answer.
            let code = unsafe { (driver.api.driver_version)(&raw mut version) };
            driver.check("cuDriverGetVersion", code)?;
            driver.version = Version(version);
            Ok(Arc::new(driver))
        })
    }

    /// Runs `work`, which calls this driver, on a thread that can be left behind.
    pub(super) fn attend<R: Send + 'static>(
        self: &Arc<Self>,
        limit: std::time::Duration,
        work: impl FnOnce(&Arc<Self>) -> Result<R, Error> + Send + 'static,
    ) -> Result<R, Error> {
        let driver = Arc::clone(self);
        attend_library(&self.path, limit, move || work(&driver))
    }

    /// The newest CUDA version that the driver supports.
    pub fn version(&self) -> Version {
        self.version
    }

    /// Every GPU that this process may see.
    ///
    /// # Errors
    /// What the driver says.
    pub fn devices(self: &Arc<Self>) -> Result<Vec<Info>, Error> {
        self.attend(Timeouts::new(None).to_list(), |driver| driver.listed())
    }

    /// As [`Driver::devices`], on this thread.
    pub(super) fn listed(&self) -> Result<Vec<Info>, Error> {
        let mut count = 0;
        note("cuDeviceGetCount");
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (self.api.device_count)(&raw mut count) };
        self.check("cuDeviceGetCount", code)?;
        (0..count).map(|index| self.device(index)).collect()
    }

    fn device(&self, index: c_int) -> Result<Info, Error> {
        let device = self.ordinal(index)?;
        let mut name: [c_char; 256] = [0; 256];
        note("cuDeviceGetName");
        // SAFETY: the driver writes at most the 256 bytes that are passed as the length.
        let code = unsafe { (self.api.device_name)(name.as_mut_ptr(), 256, device) };
        self.check("cuDeviceGetName", code)?;
        name[255] = 0;
        // SAFETY: the last byte is zero.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) }.to_string_lossy().into_owned();
        let mut uuid = [0; 16];
        note("cuDeviceGetUuid");
        // SAFETY: the pointer is valid for the 16 bytes of the answer.
        let code = unsafe { (self.api.device_uuid)(&raw mut uuid, device) };
        self.check("cuDeviceGetUuid", code)?;
        let mut memory_bytes = 0;
        note("cuDeviceTotalMem");
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
        note("cuDeviceGet");
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (self.api.device_at)(&raw mut device, index) };
        self.check("cuDeviceGet", code)?;
        Ok(device)
    }

    fn attribute(&self, device: c_int, which: c_int) -> Result<c_int, Error> {
        let mut value = 0;
        note("cuDeviceGetAttribute");
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
    health: Arc<Health>,
}

/// Whether a GPU still works, for workers, which never call the driver.
pub(super) struct Health {
    path: PathBuf,
    lost: OnceLock<Loss>,
}

/// Why a GPU is of no more use to this process.
#[derive(Debug)]
enum Loss {
    /// The driver says so: the call, and its words.
    Said(&'static str, String),
    /// It does not answer.
    Silent(Unanswered),
    /// It computed something wrong.
    Wrong(&'static str),
}

impl Context {
    pub fn retain(driver: Arc<Driver>, index: usize) -> Result<Arc<Self>, Error> {
        let device = driver.ordinal(index as c_int)?;
        let mut handle = Handle::NULL;
        note("cuDevicePrimaryCtxRetain");
        // SAFETY: the pointer is valid for the answer.
        let code = unsafe { (driver.api.context_retain)(&raw mut handle, device) };
        match code {
            Code::OUT_OF_MEMORY => {
                return Err(Error::OutOfMemory { call: "cuDevicePrimaryCtxRetain", bytes: 0 });
            }
            code => driver.check("cuDevicePrimaryCtxRetain", code)?,
        }
        let health = Arc::new(Health { path: driver.path.clone(), lost: OnceLock::new() });
        Ok(Arc::new(Self { driver, device, handle, health }))
    }

    /// Makes `call` with this context current.
    pub fn call(&self, name: &'static str, call: impl FnOnce(&Api) -> Code) -> Result<(), Error> {
        self.check(name, self.code(name, call))
    }

    /// As [`Context::call`], for calls that can find too little memory.
    pub fn allocate(
        &self,
        name: &'static str,
        bytes: usize,
        call: impl FnOnce(&Api) -> Code,
    ) -> Result<(), Error> {
        match self.code(name, call) {
            Code::OUT_OF_MEMORY => Err(Error::OutOfMemory { call: name, bytes }),
            code => self.check(name, code),
        }
    }

    /// What `call` answers. A context has to be current on the thread that calls, so every call
    /// makes it so first; that costs a tenth of a microsecond.
    pub fn code(&self, name: &'static str, call: impl FnOnce(&Api) -> Code) -> Code {
        note("cuCtxSetCurrent");
        // SAFETY: the context is retained as long as this value lives.
        let current = unsafe { (self.driver.api.context_set_current)(self.handle) };
        if current != Code::SUCCESS {
            return current;
        }
        note(name);
        call(&self.driver.api)
    }

    /// As [`Context::call`], for a code that is there.
    pub fn check(&self, name: &'static str, code: Code) -> Result<(), Error> {
        if code.is_lost() {
            self.health.lost.get_or_init(|| Loss::Said(name, self.reason(code)));
        }
        self.driver.check(name, code)
    }

    pub fn health(&self) -> &Arc<Health> {
        &self.health
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

impl Health {
    /// Why the GPU is of no more use, once that is known.
    pub fn loss(&self) -> Result<(), Error> {
        match self.lost.get() {
            None => Ok(()),
            Some(Loss::Said(call, reason)) => Err(Error::Lost { call, reason: reason.clone() }),
            Some(Loss::Silent(why)) => Err(Error::Unanswered(why.to_string())),
            Some(Loss::Wrong(what)) => Err(Error::Wrong(what)),
        }
    }

    /// True if a thread was left behind in a call for this GPU.
    pub fn is_silent(&self) -> bool {
        matches!(self.lost.get(), Some(Loss::Silent(_)))
    }

    /// Gives the GPU up, because a call for it did not return.
    pub fn leave(&self, why: Unanswered) -> Error {
        self.lost.get_or_init(|| Loss::Silent(why));
        does_not_answer(&self.path);
        Error::Unanswered(why.to_string())
    }

    /// Gives the GPU up, because it computed something wrong.
    pub fn distrust(&self, what: &'static str) {
        self.lost.get_or_init(|| Loss::Wrong(what));
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        note("cuDevicePrimaryCtxRelease");
        // SAFETY: retained once, released once. A refusal changes nothing for this process.
        let _ = unsafe { (self.driver.api.context_release)(self.device) };
    }
}

/// Runs `work`, which calls the library at `path`, on a thread that can be left behind. Once one was,
/// no more is asked of that library.
fn attend_library<R: Send + 'static>(
    path: &Path,
    limit: std::time::Duration,
    work: impl FnOnce() -> Result<R, Error> + Send + 'static,
) -> Result<R, Error> {
    if silent().iter().any(|known| known == path) {
        return Err(Error::Unanswered(
            "an earlier call of the CUDA driver did not return".to_owned(),
        ));
    }
    attend(limit, work).unwrap_or_else(|why| {
        does_not_answer(path);
        Err(Error::Unanswered(why.to_string()))
    })
}

fn does_not_answer(path: &Path) {
    silent().push(path.to_owned());
}

/// Libraries in which a thread was left behind.
fn silent() -> std::sync::MutexGuard<'static, Vec<PathBuf>> {
    static SILENT: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());
    lock(&SILENT)
}

/// Where the loader looks for it: the name under which every driver since 2007 installs it.
const LIBRARY: &str = "libcuda.so.1";

const CLOCK_KHZ: c_int = 13;
const MULTIPROCESSORS: c_int = 16;
const CAPABILITY_MAJOR: c_int = 75;
const CAPABILITY_MINOR: c_int = 76;
const SHARED_BYTES_OPT_IN: c_int = 97;
