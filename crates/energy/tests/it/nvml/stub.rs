//! A library with NVML's names whose GPUs are files; the tests compile it.
//!
//! The library's folder has a folder `nvml`, with a folder `gpu0`, `gpu1`, … for each GPU. Every
//! file in that is an answer: a number, numbers or text; `error 15` is an error of NVML, and a
//! missing file means that the GPU does not support the call. `energy_mj` may be `rises 250`: by
//! 250 mJ at each read. `graphics_mhz_324` are the clocks of the cores with the memory at 324 MHz,
//! where they are others than `graphics_mhz`. Clocks cannot be locked where `no_locks` or
//! `no_memory_lock` exists. Calls that matter are logged to the file `log`.
//! Each copy of this library is loaded separately and has its own state.

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulonglong, c_void};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::sync::{Mutex, OnceLock};
use std::sync::atomic::{AtomicU64, Ordering};

const SUCCESS: c_uint = 0;
const UNINITIALIZED: c_uint = 1;
const INVALID_ARGUMENT: c_uint = 2;
const NOT_SUPPORTED: c_uint = 3;
const NOT_FOUND: c_uint = 6;
const INSUFFICIENT_SIZE: c_uint = 7;

/// `NVML_CLOCK_MEM`.
const MEMORY: c_uint = 2;

/// How often it was initialised more than shut down.
static USERS: Mutex<u32> = Mutex::new(0);

/// By how much energy that rises has risen.
static COUNTED: AtomicU64 = AtomicU64::new(0);

#[unsafe(no_mangle)]
pub extern "C" fn nvmlInit_v2() -> c_uint {
    log("init");
    match answer("init") {
        Err(NOT_SUPPORTED) | Ok(_) => {
            *USERS.lock().unwrap() += 1;
            SUCCESS
        }
        Err(error) => error,
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlShutdown() -> c_uint {
    log("shutdown");
    let mut users = USERS.lock().unwrap();
    if *users == 0 {
        return UNINITIALIZED;
    }
    *users -= 1;
    SUCCESS
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlSystemGetDriverVersion(text: *mut c_char, length: c_uint) -> c_uint {
    status(asked(|| put_text("580.95.05", text, length)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetCount_v2(count: *mut c_uint) -> c_uint {
    status(asked(|| put(gpus(), count)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, gpu: *mut *mut c_void) -> c_uint {
    status(asked(|| {
        if index >= gpus() {
            return Err(INVALID_ARGUMENT);
        }
        match answer(&format!("gpu{index}/handle")) {
            Err(NOT_SUPPORTED) | Ok(_) => put(handle(index), gpu),
            Err(error) => Err(error),
        }
    }))
}

/// # Safety
/// `uuid` is a string that ends with a NUL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nvmlDeviceGetHandleByUUID(
    uuid: *const c_char,
    gpu: *mut *mut c_void,
) -> c_uint {
    // SAFETY: by this function's contract.
    let uuid = unsafe { CStr::from_ptr(uuid) }.to_string_lossy();
    status(asked(|| {
        let has = |index: &u32| answer(&format!("gpu{index}/uuid")).is_ok_and(|has| has == uuid);
        put(handle((0..gpus()).find(has).ok_or(NOT_FOUND)?), gpu)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetUUID(gpu: *mut c_void, text: *mut c_char, length: c_uint) -> c_uint {
    status(of(gpu, "uuid").and_then(|uuid| put_text(&uuid, text, length)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetName(gpu: *mut c_void, text: *mut c_char, length: c_uint) -> c_uint {
    status(of(gpu, "name").and_then(|name| put_text(&name, text, length)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetTotalEnergyConsumption(
    gpu: *mut c_void,
    energy: *mut c_ulonglong,
) -> c_uint {
    status(of(gpu, "energy_mj").and_then(|text| {
        let counted = match text.strip_prefix("rises ") {
            Some(step) => {
                let step = number::<u64>(step)?;
                1_000_000 + COUNTED.fetch_add(step, Ordering::Relaxed)
            }
            None => number(&text)?,
        };
        log(&format!("energy {} {counted}", index(gpu)));
        put(counted, energy)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerUsage(gpu: *mut c_void, power: *mut c_uint) -> c_uint {
    status(put_number(gpu, "power_mw", power).inspect(|()| log(&format!("power {}", index(gpu)))))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerManagementLimit(
    gpu: *mut c_void,
    limit: *mut c_uint,
) -> c_uint {
    status(put_number(gpu, "limit_mw", limit))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetPowerManagementLimitConstraints(
    gpu: *mut c_void,
    min: *mut c_uint,
    max: *mut c_uint,
) -> c_uint {
    status(numbers(gpu, "limits_mw").and_then(|limits| {
        put(limits[0], min)?;
        put(limits[1], max)
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceSetPowerManagementLimit(gpu: *mut c_void, limit: c_uint) -> c_uint {
    status(settable(gpu).and_then(|()| {
        let limits = numbers(gpu, "limits_mw")?;
        if !(limits[0]..=limits[1]).contains(&limit) {
            return Err(INVALID_ARGUMENT);
        }
        log(&format!("limit {} {limit}", index(gpu)));
        set(gpu, "limit_mw", limit);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceSetGpuLockedClocks(
    gpu: *mut c_void,
    min: c_uint,
    max: c_uint,
) -> c_uint {
    status(lockable(gpu, "no_locks").and_then(|()| {
        log(&format!("lock {} {min} {max}", index(gpu)));
        set(gpu, "clock_mhz", max);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceResetGpuLockedClocks(gpu: *mut c_void) -> c_uint {
    status(lockable(gpu, "no_locks").and_then(|()| {
        log(&format!("unlock {}", index(gpu)));
        set(gpu, "clock_mhz", numbers(gpu, "graphics_mhz")?.into_iter().max().unwrap_or(0));
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceSetMemoryLockedClocks(
    gpu: *mut c_void,
    min: c_uint,
    max: c_uint,
) -> c_uint {
    status(lockable(gpu, "no_memory_lock").and_then(|()| {
        log(&format!("lock memory {} {min} {max}", index(gpu)));
        set(gpu, "memory_clock_mhz", max);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceResetMemoryLockedClocks(gpu: *mut c_void) -> c_uint {
    status(lockable(gpu, "no_memory_lock").and_then(|()| {
        log(&format!("unlock memory {}", index(gpu)));
        let fastest = numbers(gpu, "memory_mhz")?.into_iter().max().unwrap_or(0);
        set(gpu, "memory_clock_mhz", fastest);
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetApplicationsClock(
    gpu: *mut c_void,
    kind: c_uint,
    clock: *mut c_uint,
) -> c_uint {
    let at = usize::from(kind != MEMORY);
    status(numbers(gpu, "applications_mhz").and_then(|pair| put(pair[at], clock)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceSetApplicationsClocks(
    gpu: *mut c_void,
    memory: c_uint,
    core: c_uint,
) -> c_uint {
    status(settable(gpu).and_then(|()| {
        numbers(gpu, "applications_mhz")?;
        if !core_clocks(gpu, memory)?.contains(&core) {
            return Err(INVALID_ARGUMENT);
        }
        log(&format!("applications {} {memory} {core}", index(gpu)));
        let file = folder().join(format!("gpu{}/applications_mhz", index(gpu)));
        fs::write(file, format!("{memory} {core}")).unwrap();
        Ok(())
    }))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetClockInfo(
    gpu: *mut c_void,
    kind: c_uint,
    clock: *mut c_uint,
) -> c_uint {
    let file = if kind == MEMORY { "memory_clock_mhz" } else { "clock_mhz" };
    status(put_number(gpu, file, clock))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMaxClockInfo(
    gpu: *mut c_void,
    _kind: c_uint,
    clock: *mut c_uint,
) -> c_uint {
    let fastest = numbers(gpu, "graphics_mhz").map(|clocks| clocks.into_iter().max());
    status(fastest.and_then(|fastest| put(fastest.ok_or(NOT_SUPPORTED)?, clock)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetSupportedMemoryClocks(
    gpu: *mut c_void,
    count: *mut c_uint,
    clocks: *mut c_uint,
) -> c_uint {
    status(numbers(gpu, "memory_mhz").and_then(|all| put_all(&all, count, clocks)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetSupportedGraphicsClocks(
    gpu: *mut c_void,
    memory: c_uint,
    count: *mut c_uint,
    clocks: *mut c_uint,
) -> c_uint {
    status(core_clocks(gpu, memory).and_then(|all| put_all(&all, count, clocks)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetMigMode(
    gpu: *mut c_void,
    current: *mut c_uint,
    pending: *mut c_uint,
) -> c_uint {
    status(put_number(gpu, "mig", current).and_then(|()| put_number(gpu, "mig", pending)))
}

#[unsafe(no_mangle)]
pub extern "C" fn nvmlDeviceGetVirtualizationMode(gpu: *mut c_void, mode: *mut c_uint) -> c_uint {
    status(put_number(gpu, "virtualization", mode))
}

fn status(done: Result<(), c_uint>) -> c_uint {
    done.err().unwrap_or(SUCCESS)
}

/// Answers those only who have initialised the library.
fn asked<T>(answer: impl FnOnce() -> Result<T, c_uint>) -> Result<T, c_uint> {
    if *USERS.lock().unwrap() == 0 { Err(UNINITIALIZED) } else { answer() }
}

fn handle(index: u32) -> *mut c_void {
    (index as usize + 1) as *mut c_void
}

fn index(gpu: *mut c_void) -> usize {
    gpu as usize - 1
}

fn gpus() -> u32 {
    (0..).take_while(|index| folder().join(format!("gpu{index}")).is_dir()).count() as u32
}

fn of(gpu: *mut c_void, file: &str) -> Result<String, c_uint> {
    asked(|| answer(&format!("gpu{}/{file}", index(gpu))))
}

fn numbers(gpu: *mut c_void, file: &str) -> Result<Vec<c_uint>, c_uint> {
    of(gpu, file)?.split_whitespace().map(number).collect()
}

/// The clocks that the cores can have with the memory at `memory`.
fn core_clocks(gpu: *mut c_void, memory: c_uint) -> Result<Vec<c_uint>, c_uint> {
    if !numbers(gpu, "memory_mhz")?.contains(&memory) {
        return Err(NOT_FOUND);
    }
    match numbers(gpu, &format!("graphics_mhz_{memory}")) {
        Err(NOT_SUPPORTED) => numbers(gpu, "graphics_mhz"),
        clocks => clocks,
    }
}

/// Whether the GPU has the lock, and the caller may set it.
fn lockable(gpu: *mut c_void, lacks: &str) -> Result<(), c_uint> {
    if of(gpu, lacks).is_ok() { Err(NOT_SUPPORTED) } else { settable(gpu) }
}

/// Whether the caller may set anything.
fn settable(gpu: *mut c_void) -> Result<(), c_uint> {
    match of(gpu, "settable") {
        Err(NOT_SUPPORTED) | Ok(_) => Ok(()),
        Err(error) => Err(error),
    }
}

fn set(gpu: *mut c_void, file: &str, value: c_uint) {
    fs::write(folder().join(format!("gpu{}/{file}", index(gpu))), value.to_string()).unwrap();
}

fn answer(file: &str) -> Result<String, c_uint> {
    let text = fs::read_to_string(folder().join(file)).map_err(|_| NOT_SUPPORTED)?;
    match text.strip_prefix("error ") {
        Some(code) => Err(number(code)?),
        None => Ok(text.trim().to_owned()),
    }
}

fn number<N: std::str::FromStr>(text: &str) -> Result<N, c_uint> {
    text.trim().parse().map_err(|_| INVALID_ARGUMENT)
}

fn log(line: &str) {
    let file = OpenOptions::new().create(true).append(true).open(folder().join("log"));
    file.unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// The folder `nvml` next to the file that this code was loaded from.
fn folder() -> &'static PathBuf {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let here = folder as fn() -> &'static PathBuf as usize;
        let maps = fs::read_to_string("/proc/self/maps").unwrap();
        let library = maps.lines().find_map(|line| {
            let (range, rest) = line.split_once(' ')?;
            let (from, to) = range.split_once('-')?;
            let address = |text| usize::from_str_radix(text, 16).ok();
            let inside = (address(from)?..address(to)?).contains(&here);
            inside.then(|| PathBuf::from(&rest[rest.find('/').unwrap()..]))
        });
        library.unwrap().with_file_name("nvml")
    })
}

fn put<T>(value: T, out: *mut T) -> Result<(), c_uint> {
    // SAFETY: NVML's callers pass a place for the answer.
    unsafe { out.write(value) };
    Ok(())
}

fn put_number(gpu: *mut c_void, file: &str, out: *mut c_uint) -> Result<(), c_uint> {
    put(number(&of(gpu, file)?)?, out)
}

fn put_text(text: &str, out: *mut c_char, length: c_uint) -> Result<(), c_uint> {
    if text.len() >= length as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    for (at, byte) in text.bytes().chain([0]).enumerate() {
        // SAFETY: NVML's callers pass a place for `length` bytes, and it was seen that they are
        // enough.
        unsafe { out.add(at).write(byte as c_int as c_char) };
    }
    Ok(())
}

fn put_all(values: &[c_uint], count: *mut c_uint, out: *mut c_uint) -> Result<(), c_uint> {
    // SAFETY: NVML's callers pass how many values there is a place for.
    let places = unsafe { count.read() };
    put(values.len() as c_uint, count)?;
    if values.len() > places as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    for (at, value) in values.iter().enumerate() {
        // SAFETY: it was seen that there is a place for each.
        unsafe { out.add(at).write(*value) };
    }
    Ok(())
}
