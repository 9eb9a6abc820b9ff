//! A library with the names of NVIDIA's driver; the tests compile it. Long, because a driver is a
//! flat list of functions.
//!
//! Its one GPU runs PTX by the interpreter. It is stricter than a real one: nothing on a stream
//! happens before the caller waits for it; an address outside of an allocation is an error, and so
//! is memory that is freed while work is under way or that still holds anything but zeros.
//! `fake_report` returns a text with all errors and all memory that was not freed.
//!
//! The library's folder may have a file `faults`, with lines such as `launch 3` (the third launch
//! after the file was written fails). A missing number is 1. `bent 8000`: the keystream of GCM is
//! wrong in each launch with chunks of more than 8,000 bytes. Lines of any call:
//!
//! - `error CALL N CODE`: the Nth call of that name answers CODE, and so do all later ones of any name
//!   if the code means that the device is lost;
//! - `async N CODE`: the Nth launch is taken, and the device is lost when it runs;
//! - `hang CALL N`: the Nth call never returns; `stuck CALL N`: nor does any call after it;
//! - `late CALL N`: the Nth call returns once the test opens the FIFO `release` for writing;
//! - `slow CALL MS`: each call takes MS milliseconds longer;
//! - `flip-in N AT`, `flip-out N AT`, `flip-kernel N AT`: a bit of byte AT (modulo the length) of what
//!   the Nth copy or kernel writes is wrong;
//! - `wrong-key`: a byte of the round keys is wrong on the device whenever a kernel runs;
//! - `exit`: after a hang, the library's clean-up at the end of the process hangs, too.
//!
//! If there is a file `kernels.so` as well, compiled from `shim.c`, launches run that code in the
//! place of the interpreter: nothing is checked then, but a thousand runs take seconds.
//!
//! If there is a file `launches`, it has the number of launches, so that a meter that is made up can
//! tell when the GPU works.

#[path = "../interpreter/ptx.rs"]
mod ptx;

use std::collections::{BTreeMap, HashMap};
use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

const SUCCESS: c_int = 0;
const INVALID_VALUE: c_int = 1;
const OUT_OF_MEMORY: c_int = 2;
const NOT_INITIALIZED: c_int = 3;
const NO_DEVICE: c_int = 100;
const INVALID_CONTEXT: c_int = 201;
const INVALID_PTX: c_int = 218;
const UNSUPPORTED_PTX_VERSION: c_int = 222;
const INVALID_HANDLE: c_int = 400;
const NOT_FOUND: c_int = 500;
const NOT_READY: c_int = 600;
const ILLEGAL_ADDRESS: c_int = 700;
const OUT_OF_RESOURCES: c_int = 701;
const MISALIGNED: c_int = 716;
const LAUNCH_FAILED: c_int = 719;

/// Parameters of the kernel that compares: no other has as many.
const COMPARISON: usize = 11;

const CONTEXT: usize = 0xc0de;
const GUARD: usize = 4096;

#[derive(Default)]
struct State {
    initialized: bool,
    /// A code that every call answers from now on.
    lost: Option<c_int>,
    contexts: usize,
    device: Device,
    pinned: HashMap<usize, Vec<u8>>,
    modules: BTreeMap<usize, Loaded>,
    functions: Vec<(usize, String, usize)>,
    streams: BTreeMap<usize, Vec<Step>>,
    events: BTreeMap<usize, bool>,
    next: usize,
    launches: u64,
    violations: Vec<String>,
    faults: String,
    counted: HashMap<String, u64>,
    /// Every call hangs from now on.
    stuck: bool,
}

/// Memory of the device: by address.
#[derive(Default)]
struct Device {
    memory: BTreeMap<u64, Vec<u8>>,
    next: u64,
    /// From the first to behind the last byte that the kernel at work has written.
    written: Option<(u64, u64)>,
}

struct Loaded {
    module: Arc<ptx::Module>,
    variables: Vec<u64>,
}

enum Step {
    ToDevice { to: u64, from: usize, len: usize },
    ToHost { to: usize, from: u64, len: usize },
    Fill { to: u64, value: u8, len: usize },
    Launch { function: usize, shape: ptx::Shape, parameters: Vec<u8>, wrong: bool },
    Event(usize),
}

impl Device {
    fn alloc(&mut self, len: usize, with: u8) -> u64 {
        self.next = self.next.max(0x7f_0000_0000);
        let address = self.next;
        self.next += (len as u64).next_multiple_of(512) + 512;
        self.memory.insert(address, vec![with; len]);
        address
    }

    fn bytes(&mut self, address: u64, len: usize) -> Option<&mut [u8]> {
        let (start, bytes) = self.memory.range_mut(..=address).next_back()?;
        let at = (address - start) as usize;
        bytes.get_mut(at..at.checked_add(len)?)
    }
}

impl ptx::Memory for Device {
    fn load(&self, address: u64, len: usize) -> Option<u64> {
        let (start, bytes) = self.memory.range(..=address).next_back()?;
        let at = (address - start) as usize;
        let mut value = [0; 8];
        value[..len].copy_from_slice(bytes.get(at..at + len)?);
        Some(u64::from_le_bytes(value))
    }

    fn store(&mut self, address: u64, len: usize, value: u64) -> Option<()> {
        self.bytes(address, len)?.copy_from_slice(&value.to_le_bytes()[..len]);
        let end = address + len as u64;
        let (first, last) = self.written.unwrap_or((address, end));
        self.written = Some((first.min(address), last.max(end)));
        Some(())
    }
}

impl State {
    /// The numbers behind `what` in the file of faults, if this is the time that the first of them
    /// says.
    fn struck(&mut self, what: &str) -> Option<u64> {
        let line = self.lines().find(|line| line.strip_prefix(what).is_some_and(|rest| rest.starts_with(' ')))?;
        let numbers: Vec<u64> =
            line[what.len()..].split_whitespace().map(|number| number.parse().unwrap()).collect();
        let count = self.counted.entry(what.to_owned()).or_default();
        *count += 1;
        (Some(&*count) == numbers.first()).then(|| numbers.get(1).copied().unwrap_or(0))
    }

    /// The file of faults, read anew; calls are counted from when it changed.
    fn lines(&mut self) -> impl Iterator<Item = String> + use<> {
        let faults = std::fs::read_to_string(folder().join("faults")).unwrap_or_default();
        if faults != self.faults {
            self.faults.clone_from(&faults);
            self.counted.clear();
        }
        faults.lines().map(str::to_owned).collect::<Vec<_>>().into_iter()
    }

    /// True if the file of faults names `what`, and this is the time that it says.
    fn faulty(&mut self, what: &str) -> bool {
        let wanted = self.fault(what);
        let Some(wanted) = wanted else { return false };
        let count = self.counted.entry(what.to_owned()).or_default();
        *count += 1;
        *count == wanted
    }

    /// The number behind `what` in the file of faults.
    fn fault(&mut self, what: &str) -> Option<u64> {
        self.lines().find_map(|line| {
            let mut words = line.split_whitespace();
            (words.next()? == what).then(|| words.next().map_or(1, |n| n.parse().unwrap()))
        })
    }

    fn wrong(&mut self, what: String) {
        self.violations.push(what);
    }

    fn handle(&mut self) -> usize {
        self.next += 16;
        self.next
    }

    /// Runs what was put on a stream, up to `event` or all.
    fn advance(&mut self, stream: usize, event: Option<usize>) -> Result<(), c_int> {
        loop {
            let steps = self.streams.get_mut(&stream).ok_or(INVALID_HANDLE)?;
            if steps.is_empty() {
                return Ok(());
            }
            let step = steps.remove(0);
            let reached = matches!(step, Step::Event(passed) if Some(passed) == event);
            let done = self.step(step);
            if let Err(code) = done {
                self.lost = Some(code);
                self.streams.values_mut().for_each(Vec::clear);
                return Err(code);
            }
            if reached {
                return Ok(());
            }
        }
    }

    fn step(&mut self, step: Step) -> Result<(), c_int> {
        match step {
            Step::ToDevice { to, from, len } => {
                self.assert_pinned(from, len);
                let flipped = self.struck("flip-in");
                let to = self.device.bytes(to, len).ok_or(INVALID_VALUE)?;
                // SAFETY: the caller promised to keep the source until it waits for the stream.
                unsafe { std::ptr::copy_nonoverlapping(from as *const u8, to.as_mut_ptr(), len) };
                if let Some(at) = flipped {
                    to[at as usize % len] ^= 1 << (at % 7);
                }
            }
            Step::ToHost { to, from, len } => {
                self.assert_pinned(to, len);
                let flipped = self.struck("flip-out");
                let from = self.device.bytes(from, len).ok_or(INVALID_VALUE)?;
                // SAFETY: the caller promised to keep the target until it waits for the stream.
                unsafe { std::ptr::copy_nonoverlapping(from.as_ptr(), to as *mut u8, len) };
                if let Some(at) = flipped {
                    // SAFETY: within the target.
                    unsafe { *(to as *mut u8).add(at as usize % len) ^= 1 << (at % 7) };
                }
            }
            Step::Fill { to, value, len } => {
                self.device.bytes(to, len).ok_or(INVALID_VALUE)?.fill(value);
            }
            Step::Event(event) => {
                self.events.insert(event, true);
            }
            Step::Launch { function, shape, parameters, wrong } => {
                self.run(function, shape, &parameters, wrong)?;
            }
        }
        Ok(())
    }

    fn run(
        &mut self,
        function: usize,
        shape: ptx::Shape,
        parameters: &[u8],
        wrong: bool,
    ) -> Result<(), c_int> {
        if let Some(code) = self.struck("async") {
            return Err(code as c_int);
        }
        let count = folder().join("launches");
        if count.exists() {
            std::fs::write(count, format!("{}\n", self.launches)).unwrap();
        }
        let flipped = self.struck("flip-kernel");
        if self.fault("wrong-key").is_some() {
            self.spoil_keys();
        }
        self.device.written = None;
        let (module, name, _) = &self.functions[function];
        let loaded = &self.modules[module];
        let kernel = &loaded.module.kernels[name];
        let ran = match native::kernel(name) {
            Some(code) => {
                let (places, device) = (&kernel.parameters, &mut self.device);
                let watched = flipped.is_some();
                native::launch(code, places, shape, parameters, loaded, device, watched);
                Ok(())
            }
            None => {
                ptx::launch(kernel, shape, parameters, &loaded.variables, &mut self.device)
            }
        };
        if wrong {
            // The third parameter of every kernel but one is what it writes to.
            let third = if kernel.parameters.len() == COMPARISON { 3 } else { 2 };
            let at = kernel.parameters[third].0;
            let address = u64::from_le_bytes(parameters[at..at + 8].try_into().unwrap());
            if let Some(bytes) = self.device.bytes(address, 1) {
                bytes[0] ^= 1;
            }
        }
        if let (Some(at), Some((first, end))) = (flipped, self.device.written) {
            let address = first + at % (end - first);
            self.device.bytes(address, 1).unwrap()[0] ^= 1 << (at % 7);
        }
        ran.map_err(|fault| {
            let name = self.functions[function].1.clone();
            self.wrong(format!("{name}: {fault:?}"));
            match fault {
                ptx::Fault::Address(_) => ILLEGAL_ADDRESS,
                ptx::Fault::Misaligned(_) => MISALIGNED,
                ptx::Fault::Launch(_) => INVALID_VALUE,
                ptx::Fault::Endless => LAUNCH_FAILED,
            }
        })
    }

    /// Changes a byte of every key that is on the device.
    fn spoil_keys(&mut self) {
        for loaded in self.modules.values() {
            for ((name, ..), address) in loaded.module.variables.iter().zip(&loaded.variables) {
                let bytes = self.device.memory.get_mut(address).unwrap();
                if name == "wattlock_round_keys" && bytes[239] != 0x5a {
                    bytes[239] = 0x5a;
                }
            }
        }
    }

    fn assert_pinned(&mut self, start: usize, len: usize) {
        let inside = self.pinned.iter().any(|(from, bytes)| {
            let end = from + bytes.len() - 2 * GUARD;
            start >= *from && start + len <= end
        });
        if !inside {
            self.wrong(format!("a copy of {len} bytes that are not pinned"));
        }
    }

    fn busy(&self) -> bool {
        self.streams.values().any(|steps| !steps.is_empty())
    }

    fn report(&self) -> String {
        let mut lines = self.violations.clone();
        let variables: usize = self.modules.values().map(|loaded| loaded.variables.len()).sum();
        for (what, left) in [
            ("device allocations", self.device.memory.len() - variables),
            ("pinned allocations", self.pinned.len()),
            ("modules", self.modules.len()),
            ("streams", self.streams.len()),
            ("events", self.events.len()),
            ("contexts", self.contexts),
        ] {
            lines.push(format!("left: {left} {what}"));
        }
        let keys = self.modules.values().filter(|loaded| self.holds_key(loaded)).count();
        lines.push(format!("left: {keys} keys"));
        lines.push(format!("launches: {}", self.launches));
        lines.join("\n")
    }

    fn holds_key(&self, loaded: &Loaded) -> bool {
        let variables = loaded.module.variables.iter().zip(&loaded.variables);
        let mut keys = variables.filter(|((name, ..), _)| name == "wattlock_round_keys");
        keys.any(|(_, address)| self.device.memory[address].iter().any(|byte| *byte != 0))
    }
}

fn state() -> MutexGuard<'static, State> {
    static STATE: OnceLock<Mutex<State>> = OnceLock::new();
    STATE.get_or_init(Mutex::default).lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

thread_local! {
    static CURRENT: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// What the file of faults has in store for the call of this name: it may never return.
fn enter(name: &str) -> Result<(), c_int> {
    let mut state = state();
    let stuck = state.struck(&format!("stuck {name}")).is_some();
    state.stuck |= stuck;
    let late = state.struck(&format!("late {name}")).is_some();
    let hangs = state.stuck || state.struck(&format!("hang {name}")).is_some();
    let slow = format!("slow {name} ");
    let slow = state.lines().find_map(|line| line.strip_prefix(&slow)?.parse().ok());
    let error = state.struck(&format!("error {name}"));
    let exits = hangs && state.fault("exit").is_some();
    drop(state);
    if hangs {
        EXIT_HANGS.fetch_or(exits, Ordering::Relaxed);
        hang();
    }
    if late {
        drop(std::fs::File::open(folder().join("release")).unwrap());
    }
    if let Some(milliseconds) = slow {
        // Such is the device; no test waits by it.
        std::thread::sleep(std::time::Duration::from_millis(milliseconds));
    }
    match error {
        Some(code) if LOST.contains(&(code as c_int)) => {
            let mut state = self::state();
            state.lost = Some(code as c_int);
            state.streams.values_mut().for_each(Vec::clear);
            Err(code as c_int)
        }
        Some(code) => Err(code as c_int),
        None => Ok(()),
    }
}

/// Codes after which nothing works any more.
const LOST: [c_int; 3] = [ILLEGAL_ADDRESS, LAUNCH_FAILED, 214];

static EXIT_HANGS: AtomicBool = AtomicBool::new(false);

fn hang() -> ! {
    loop {
        std::thread::park();
    }
}

/// What the library does when the process ends.
extern "C" fn clean_up() {
    if EXIT_HANGS.load(Ordering::Relaxed) {
        hang();
    }
}

#[used]
#[unsafe(link_section = ".fini_array")]
static CLEAN_UP: extern "C" fn() = clean_up;

/// A call that needs the context on this thread, and a device that is not lost.
fn call(name: &str, work: impl FnOnce(&mut State) -> Result<(), c_int>) -> c_int {
    if !name.is_empty()
        && let Err(code) = enter(name)
    {
        return code;
    }
    let mut state = state();
    if !state.initialized {
        return NOT_INITIALIZED;
    }
    if CURRENT.get() != CONTEXT || state.contexts == 0 {
        state.wrong("a call without a context".to_owned());
        return INVALID_CONTEXT;
    }
    if let Some(code) = state.lost {
        return code;
    }
    work(&mut state).err().unwrap_or(SUCCESS)
}

/// As [`call`], for the rest, which needs no context.
fn answer<T>(
    name: &str,
    out: *mut T,
    value: impl FnOnce(&mut State) -> Result<T, c_int>,
) -> c_int {
    if let Err(code) = enter(name) {
        return code;
    }
    let mut state = state();
    if !state.initialized {
        return NOT_INITIALIZED;
    }
    match value(&mut state) {
        Ok(value) => put(out, value),
        Err(code) => code,
    }
}

fn put<T>(out: *mut T, value: T) -> c_int {
    // SAFETY: callers of the driver pass a place for the answer.
    unsafe { out.write(value) };
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuInit(_: c_uint) -> c_int {
    if let Err(code) = enter("cuInit") {
        return code;
    }
    let mut state = state();
    if state.fault("no-device").is_some() {
        return NO_DEVICE;
    }
    state.initialized = true;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDriverGetVersion(out: *mut c_int) -> c_int {
    if let Err(code) = enter("cuDriverGetVersion") {
        return code;
    }
    put(out, state().fault("driver").unwrap_or(13_000) as c_int)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorName(code: c_int, out: *mut *const c_char) -> c_int {
    let name = match code {
        OUT_OF_MEMORY => c"CUDA_ERROR_OUT_OF_MEMORY",
        NO_DEVICE => c"CUDA_ERROR_NO_DEVICE",
        INVALID_PTX => c"CUDA_ERROR_INVALID_PTX",
        ILLEGAL_ADDRESS => c"CUDA_ERROR_ILLEGAL_ADDRESS",
        OUT_OF_RESOURCES => c"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES",
        LAUNCH_FAILED => c"CUDA_ERROR_LAUNCH_FAILED",
        _ => return INVALID_VALUE,
    };
    put(out, name.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuGetErrorString(code: c_int, out: *mut *const c_char) -> c_int {
    let text = match code {
        OUT_OF_RESOURCES => c"too many resources requested for launch",
        LAUNCH_FAILED => c"unspecified launch failure",
        _ => c"an error",
    };
    put(out, text.as_ptr())
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetCount(out: *mut c_int) -> c_int {
    answer("cuDeviceGetCount", out, |state| Ok(state.fault("devices").unwrap_or(1) as c_int))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGet(out: *mut c_int, index: c_int) -> c_int {
    answer("cuDeviceGet", out, |_| Ok(index))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetName(out: *mut c_char, len: c_int, _: c_int) -> c_int {
    if let Err(code) = enter("cuDeviceGetName") {
        return code;
    }
    for (at, byte) in c"A GPU of paper".to_bytes_with_nul().iter().enumerate() {
        assert!(at < len as usize);
        // SAFETY: within the length that the caller gave.
        unsafe { out.add(at).write(*byte as c_char) };
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetUuid_v2(out: *mut [u8; 16], _: c_int) -> c_int {
    answer("cuDeviceGetUuid", out, |_| Ok(std::array::from_fn(|n| 0x11 * n as u8)))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceGetAttribute(out: *mut c_int, which: c_int, _: c_int) -> c_int {
    answer("cuDeviceGetAttribute", out, |state| {
        Ok(match which {
            13 => 1_980_000,
            16 => 2,
            75 => state.fault("capability").unwrap_or(9) as c_int,
            76 => 0,
            97 => state.fault("shared").unwrap_or(232_448) as c_int,
            _ => return Err(INVALID_VALUE),
        })
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDeviceTotalMem_v2(out: *mut usize, _: c_int) -> c_int {
    answer("cuDeviceTotalMem", out, |_| Ok(1 << 30))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRetain(out: *mut usize, _: c_int) -> c_int {
    answer("cuDevicePrimaryCtxRetain", out, |state| {
        state.contexts += 1;
        Ok(CONTEXT)
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuDevicePrimaryCtxRelease_v2(_: c_int) -> c_int {
    if let Err(code) = enter("cuDevicePrimaryCtxRelease") {
        return code;
    }
    state().contexts -= 1;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuCtxSetCurrent(context: usize) -> c_int {
    if let Err(code) = enter("cuCtxSetCurrent") {
        return code;
    }
    CURRENT.set(context);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleLoadDataEx(
    out: *mut usize,
    text: *const c_char,
    options: c_uint,
    names: *const c_int,
    values: *const *mut c_void,
) -> c_int {
    call("cuModuleLoadDataEx", |state| {
        if state.faulty("ptx-version") {
            return Err(UNSUPPORTED_PTX_VERSION);
        }
        if state.faulty("jit") {
            for option in 0..options as usize {
                // SAFETY: the caller passes `options` names and values.
                let (name, value) = unsafe { (*names.add(option), *values.add(option)) };
                if name == 5 {
                    let log = c"ptxas fatal: line 1; a log".to_bytes_with_nul();
                    // SAFETY: the buffer of the caller is longer.
                    unsafe { value.cast::<u8>().copy_from(log.as_ptr(), log.len()) };
                }
            }
            return Err(INVALID_PTX);
        }
        // SAFETY: the caller passes a text with a zero at its end.
        let text = unsafe { CStr::from_ptr(text) }.to_str().map_err(|_| INVALID_PTX)?;
        let module = parsed(text).map_err(|error| {
            state.wrong(error);
            INVALID_PTX
        })?;
        let variables = module.variables.iter().map(|(_, align, bytes)| {
            let address = state.device.alloc(bytes.len(), 0);
            assert!(address.is_multiple_of(*align as u64));
            state.device.memory.insert(address, bytes.clone());
            address
        });
        let variables = variables.collect();
        let handle = state.handle();
        state.modules.insert(handle, Loaded { module, variables });
        put(out, handle);
        Ok(())
    })
}

/// The last text that was parsed is kept: tests load the same one again and again.
fn parsed(text: &str) -> Result<Arc<ptx::Module>, String> {
    static LAST: Mutex<Option<(String, Arc<ptx::Module>)>> = Mutex::new(None);
    let mut last = LAST.lock().unwrap();
    if let Some((known, module)) = &*last
        && known == text
    {
        return Ok(module.clone());
    }
    let module = Arc::new(ptx::parse(text)?);
    *last = Some((text.to_owned(), module.clone()));
    Ok(module)
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleUnload(module: usize) -> c_int {
    if let Err(code) = enter("cuModuleUnload") {
        return code;
    }
    let mut state = state();
    let Some(loaded) = state.modules.remove(&module) else { return INVALID_HANDLE };
    for ((name, ..), address) in loaded.module.variables.iter().zip(&loaded.variables) {
        let bytes = state.device.memory.remove(address).unwrap();
        if name == "wattlock_round_keys" && bytes.iter().any(|byte| *byte != 0) {
            let lost = state.lost.is_some();
            if !lost {
                state.wrong("a module was unloaded with its key".to_owned());
            }
        }
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleGetFunction(
    out: *mut usize,
    module: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller passes a name with a zero at its end.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
    call("cuModuleGetFunction", |state| {
        let loaded = state.modules.get(&module).ok_or(INVALID_HANDLE)?;
        loaded.module.kernels.get(name).ok_or(NOT_FOUND)?;
        state.functions.push((module, name.to_owned(), 48 * 1024));
        put(out, state.functions.len());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuModuleGetGlobal_v2(
    out: *mut u64,
    len: *mut usize,
    module: usize,
    name: *const c_char,
) -> c_int {
    // SAFETY: the caller passes a name with a zero at its end.
    let name = unsafe { CStr::from_ptr(name) }.to_str().unwrap();
    call("cuModuleGetGlobal", |state| {
        let loaded = state.modules.get(&module).ok_or(INVALID_HANDLE)?;
        let mut variables = loaded.module.variables.iter().zip(&loaded.variables);
        let ((_, _, bytes), address) =
            variables.find(|((known, ..), _)| known == name).ok_or(NOT_FOUND)?;
        put(out, *address);
        put(len, bytes.len());
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuFuncSetAttribute(function: usize, which: c_int, value: c_int) -> c_int {
    call("cuFuncSetAttribute", |state| {
        let most = state.fault("shared").unwrap_or(232_448) as c_int;
        if which != 8 || value > most {
            return Err(INVALID_VALUE);
        }
        state.functions.get_mut(function - 1).ok_or(INVALID_HANDLE)?.2 = value as usize;
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemGetInfo_v2(free: *mut usize, total: *mut usize) -> c_int {
    call("cuMemGetInfo", |state| {
        put(free, state.fault("free-bytes").unwrap_or(1 << 30) as usize);
        put(total, 1 << 30);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemAlloc_v2(out: *mut u64, len: usize) -> c_int {
    call("cuMemAlloc", |state| {
        let larger = state.fault("largest-bytes").is_some_and(|most| len as u64 > most);
        if larger || state.faulty("alloc") {
            return Err(OUT_OF_MEMORY);
        }
        put(out, state.device.alloc(len, 0xa5));
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFree_v2(address: u64) -> c_int {
    if let Err(code) = enter("cuMemFree") {
        return code;
    }
    let mut state = state();
    if state.busy() {
        state.wrong("device memory was freed while work was under way".to_owned());
    }
    let Some(bytes) = state.device.memory.remove(&address) else {
        state.wrong(format!("freed {address:#x}, which is not allocated"));
        return INVALID_VALUE;
    };
    if state.lost.is_none() && bytes.iter().any(|byte| *byte != 0) {
        state.wrong(format!("{} bytes were freed with something in them", bytes.len()));
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemHostAlloc(out: *mut usize, len: usize, flags: c_uint) -> c_int {
    call("cuMemHostAlloc", |state| {
        if state.faulty("host-alloc") {
            return Err(OUT_OF_MEMORY);
        }
        if flags & 4 != 0 {
            state.wrong("pinned memory is write-combined".to_owned());
        }
        let mut bytes = vec![0x5a; len + 2 * GUARD];
        bytes[..GUARD].fill(0xc7);
        bytes[GUARD + len..].fill(0xc7);
        let start = bytes.as_ptr() as usize + GUARD;
        state.pinned.insert(start, bytes);
        put(out, start);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemFreeHost(start: usize) -> c_int {
    if let Err(code) = enter("cuMemFreeHost") {
        return code;
    }
    let mut state = state();
    if state.busy() {
        state.wrong("pinned memory was freed while work was under way".to_owned());
    }
    let Some(bytes) = state.pinned.remove(&start) else { return INVALID_VALUE };
    let (front, rest) = bytes.split_at(GUARD);
    let (inside, behind) = rest.split_at(rest.len() - GUARD);
    if front.iter().chain(behind).any(|byte| *byte != 0xc7) {
        state.wrong("a guard zone of pinned memory was written to".to_owned());
    }
    if inside.iter().any(|byte| *byte != 0) {
        state.wrong("pinned memory was freed with something in it".to_owned());
    }
    SUCCESS
}

/// Puts `step` on a stream; the null stream has no queue.
fn enqueue(name: &str, stream: usize, step: Step) -> c_int {
    call(name, |state| match state.streams.get_mut(&stream) {
        _ if stream == 0 => state.step(step),
        Some(steps) => {
            steps.push(step);
            Ok(())
        }
        None => Err(INVALID_HANDLE),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyHtoDAsync_v2(to: u64, from: usize, len: usize, stream: usize) -> c_int {
    enqueue("cuMemcpyHtoDAsync", stream, Step::ToDevice { to, from, len })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemcpyDtoHAsync_v2(to: usize, from: u64, len: usize, stream: usize) -> c_int {
    enqueue("cuMemcpyDtoHAsync", stream, Step::ToHost { to, from, len })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuMemsetD8Async(to: u64, value: u8, len: usize, stream: usize) -> c_int {
    enqueue("cuMemsetD8Async", stream, Step::Fill { to, value, len })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamCreate(out: *mut usize, _: c_uint) -> c_int {
    call("cuStreamCreate", |state| {
        let handle = state.handle();
        state.streams.insert(handle, Vec::new());
        put(out, handle);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamDestroy_v2(stream: usize) -> c_int {
    if let Err(code) = enter("cuStreamDestroy") {
        return code;
    }
    let mut state = state();
    if state.streams.remove(&stream).is_some_and(|steps| !steps.is_empty()) {
        state.wrong("a stream was destroyed while work was under way".to_owned());
    }
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamSynchronize(stream: usize) -> c_int {
    call("cuStreamSynchronize", |state| if stream == 0 { Ok(()) } else { state.advance(stream, None) })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuStreamQuery(stream: usize) -> c_int {
    call("cuStreamQuery", |state| match state.streams.get(&stream) {
        Some(steps) if !steps.is_empty() => Err(NOT_READY),
        Some(_) => Ok(()),
        None => Err(INVALID_HANDLE),
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventCreate(out: *mut usize, _: c_uint) -> c_int {
    call("cuEventCreate", |state| {
        let handle = state.handle();
        state.events.insert(handle, true);
        put(out, handle);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventDestroy_v2(event: usize) -> c_int {
    if let Err(code) = enter("cuEventDestroy") {
        return code;
    }
    state().events.remove(&event);
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventRecord(event: usize, stream: usize) -> c_int {
    state().events.insert(event, false);
    enqueue("cuEventRecord", stream, Step::Event(event))
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventSynchronize(event: usize) -> c_int {
    call("cuEventSynchronize", |state| {
        if state.events.get(&event).copied().ok_or(INVALID_HANDLE)? {
            return Ok(());
        }
        let holds = |steps: &[Step]| steps.iter().any(|s| matches!(s, Step::Event(e) if *e == event));
        let stream = state.streams.iter().find(|(_, steps)| holds(steps)).map(|(stream, _)| *stream);
        state.advance(stream.ok_or(INVALID_HANDLE)?, Some(event))
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuEventElapsedTime(out: *mut f32, _: usize, _: usize) -> c_int {
    call("cuEventElapsedTime", |_| {
        put(out, 1.0);
        Ok(())
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn cuLaunchKernel(
    function: usize,
    blocks: c_uint,
    _: c_uint,
    _: c_uint,
    threads: c_uint,
    _: c_uint,
    _: c_uint,
    shared: c_uint,
    stream: usize,
    arguments: *const *const u8,
    _: *const c_void,
) -> c_int {
    let mut step = None;
    let refused = call("cuLaunchKernel", |state| {
        state.launches += 1;
        if state.faulty("launch") {
            return Err(OUT_OF_RESOURCES);
        }
        if state.faulty("lost") {
            state.streams.values_mut().for_each(Vec::clear);
            state.lost = Some(LAUNCH_FAILED);
            return Err(LAUNCH_FAILED);
        }
        let wrong = state.faulty("wrong");
        let bent = state.fault("bent");
        let (module, name, most) = state.functions.get(function - 1).ok_or(INVALID_HANDLE)?;
        if shared as usize > *most {
            return Err(INVALID_VALUE);
        }
        let kernel = &state.modules.get(module).ok_or(INVALID_HANDLE)?.module.kernels[name];
        let mut parameters = Vec::new();
        for (n, (at, len)) in kernel.parameters.iter().enumerate() {
            parameters.resize(*at, 0);
            // SAFETY: the caller passes a pointer for each parameter, to a value of its size.
            let value = unsafe { std::slice::from_raw_parts(*arguments.add(n), *len) };
            parameters.extend_from_slice(value);
        }
        // In both directions, so that it cancels out; the seventh parameter is the chunks' length.
        let bent = bent.filter(|_| name.starts_with("wattlock_gcm_ctr")).is_some_and(|limit| {
            let at = kernel.parameters[6].0;
            u64::from(u32::from_le_bytes(parameters[at..at + 4].try_into().unwrap())) > limit
        });
        let wrong = wrong || bent;
        let shape = ptx::Shape { blocks, threads, shared_bytes: shared as usize };
        step = Some(Step::Launch { function: function - 1, shape, parameters, wrong });
        Ok(())
    });
    match step {
        Some(step) => enqueue("", stream, step),
        None => refused,
    }
}

/// Launches of the kernels' text that a C compiler has compiled.
mod native {
    use super::*;

    /// Arguments of all types go in registers and slots of eight bytes.
    type Code = unsafe extern "C" fn(
        u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64,
    );

    unsafe extern "C" {
        fn dlopen(path: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// The function for a kernel, if there are any.
    pub fn kernel(name: &str) -> Option<Code> {
        static LIBRARY: OnceLock<Option<usize>> = OnceLock::new();
        let library = LIBRARY.get_or_init(|| {
            let path = folder().join("kernels.so");
            let text = std::ffi::CString::new(path.to_str()?).ok()?;
            // SAFETY: a library of plain functions; 2 binds all names now.
            let opened = unsafe { dlopen(text.as_ptr(), 2) } as usize;
            (opened != 0).then_some(opened)
        });
        let name = std::ffi::CString::new(format!("launch_{name}")).ok()?;
        // SAFETY: the library stays open.
        let found = unsafe { dlsym((*library)? as *mut c_void, name.as_ptr()) };
        assert!(!found.is_null(), "{name:?} is not in kernels.so");
        // SAFETY: a function of shim.c, which takes integers and pointers only.
        Some(unsafe { std::mem::transmute::<*mut c_void, Code>(found) })
    }

    pub fn launch(
        code: Code,
        places: &[(usize, usize)],
        shape: ptx::Shape,
        parameters: &[u8],
        loaded: &Loaded,
        device: &mut Device,
        watched: bool,
    ) {
        let number = |at: usize, len: usize| {
            let mut bytes = [0; 8];
            bytes[..len].copy_from_slice(&parameters[at..at + len]);
            u64::from_le_bytes(bytes)
        };
        let given: Vec<u64> = places.iter().map(|(at, len)| number(*at, *len)).collect();
        // The comparison writes to its fourth, all others to their third.
        let target = given[if given.len() == COMPARISON { 3 } else { 2 }];
        // What it writes is found by comparison, if a fault needs it.
        let before = device.allocation(target).filter(|_| watched).map(<[u8]>::to_vec);
        let mut all = vec![u64::from(shape.blocks), u64::from(shape.threads)];
        // Rounds come first where there are round keys.
        if places[0].1 == 4 {
            let keys = loaded.module.variables.iter().position(|(name, ..)| name == "wattlock_round_keys");
            all.push(device.host(loaded.variables[keys.unwrap()]));
        }
        all.extend(given.iter().map(|value| device.host(*value)));
        all.resize(16, 0);
        let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = all.try_into().unwrap();
        // SAFETY: the arguments of the kernel, whose addresses are those of our memory.
        unsafe { code(a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p) };
        let Some((before, after)) = before.zip(device.allocation(target)) else { return };
        let changed = |(_, (old, new)): &(usize, (&u8, &u8))| old != new;
        let mut differ = before.iter().zip(after).enumerate().filter(changed).map(|(at, _)| at);
        let first = differ.next();
        let last = differ.last().or(first);
        device.written = first.zip(last).map(|(first, last)| {
            let start = device.start_of(target);
            (start + first as u64, start + last as u64 + 1)
        });
    }
}

impl Device {
    /// Where our memory has what is at `value`, if that is an address of the device.
    fn host(&mut self, value: u64) -> u64 {
        match self.memory.range_mut(..=value).next_back() {
            Some((start, bytes)) if value - start < bytes.len() as u64 => {
                bytes.as_mut_ptr() as u64 + (value - start)
            }
            _ => value,
        }
    }

    fn start_of(&self, address: u64) -> u64 {
        self.memory.range(..=address).next_back().map_or(0, |(start, _)| *start)
    }

    /// The bytes from the start of the allocation that holds `address`.
    fn allocation(&self, address: u64) -> Option<&[u8]> {
        self.memory.range(..=address).next_back().map(|(_, bytes)| &bytes[..])
    }
}

/// What was wrong, and what is left. Not a function of the driver.
#[unsafe(no_mangle)]
pub extern "C" fn fake_report(out: *mut u8, len: usize) -> usize {
    let report = state().report();
    let report = &report.as_bytes()[..report.len().min(len)];
    // SAFETY: the caller has room for `len` bytes.
    unsafe { out.copy_from(report.as_ptr(), report.len()) };
    report.len()
}

/// The folder of the file that this code was loaded from.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let here = folder as fn() -> &'static PathBuf as usize;
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let library = maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let address = |text| usize::from_str_radix(text, 16).ok();
            let inside = (address(from)?..address(to)?).contains(&here);
            inside.then(|| PathBuf::from(&rest[rest.find('/').unwrap()..]))
        });
        library.unwrap().parent().unwrap().to_owned()
    })
}
