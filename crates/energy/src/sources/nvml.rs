//! GPUs of NVIDIA, through the library that comes with their driver.
//!
//! The library is opened at run time, so nothing here needs it to build. GPUs since Volta count
//! their energy in mJ since the driver was loaded; older ones report instantaneous power. Both
//! use a sensor that updates at most ten times a second, and that on A100 and H100 samples only a
//! quarter of the time: measure many windows of seconds to make up for that.

use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use nvml_wrapper::enum_wrappers::device::GpuVirtualizationMode;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::{Device, Nvml};

use crate::STATIC;
use crate::accumulator::Counter;
use crate::amount::{Microjoules, Watts};
use crate::candidate::Candidate;
use crate::error::Error;
use crate::integrator::Sensor;
use crate::meter::{Extent, Info, Kind, Meter, Reading, Sample};
use crate::obstacle::Obstacle;
use crate::patience;
use crate::root::Root;

/// A GPU of NVIDIA, by the name that it keeps for life.
#[derive(Clone, Debug)]
pub struct Gpu {
    root: Root,
    uuid: String,
    /// The driver's library, once it was needed. It stays open with the GPU: where no daemon does
    /// that, the driver forgets its settings with the last user.
    nvml: OnceLock<Arc<Nvml>>,
}

impl Gpu {
    /// All that the driver shows and that this user may ask, in the driver's order.
    ///
    /// # Errors
    /// There is no driver, or it refuses.
    pub fn all(root: &Root) -> Result<Vec<Self>, Error> {
        let nvml = open(root)?;
        let uuid = |index| nvml.device_by_index(index).and_then(|device| device.uuid());
        let uuids = (0..count(&nvml)?).filter_map(|index| uuid(index).ok());
        Ok(uuids.map(|uuid| Self::opened(root, uuid, &nvml)).collect())
    }

    /// The one of that UUID, `GPU-` and 36 digits and hyphens; `None` if that is no UUID of a GPU.
    /// The driver is not asked before something is read or set.
    pub fn by_uuid(root: &Root, uuid: &str) -> Option<Self> {
        let digits: Vec<_> = uuid.strip_prefix("GPU-")?.split('-').collect();
        let lengths = digits.iter().map(|digits| digits.len()).eq([8, 4, 4, 4, 12]);
        let hexadecimal = digits.concat().bytes().all(|byte| byte.is_ascii_hexdigit());
        (lengths && hexadecimal).then(|| Self {
            root: root.clone(),
            uuid: uuid.to_owned(),
            nvml: OnceLock::new(),
        })
    }

    fn opened(root: &Root, uuid: String, nvml: &Arc<Nvml>) -> Self {
        Self { root: root.clone(), uuid, nvml: OnceLock::from(Arc::clone(nvml)) }
    }

    /// Its UUID: `GPU-` and 36 digits and hyphens.
    pub fn uuid(&self) -> &str {
        &self.uuid
    }

    /// What NVIDIA calls it: `NVIDIA H200`.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn name(&self) -> Result<String, Error> {
        self.ask("nvmlDeviceGetName", |gpu| gpu.name())
    }

    /// Asks the driver; `call` is what NVML calls that. A handle borrows the library, so it is
    /// fetched each time.
    pub(crate) fn ask<T>(
        &self,
        call: &'static str,
        ask: impl FnOnce(&mut Device<'_>) -> Result<T, NvmlError>,
    ) -> Result<T, Error> {
        let nvml = match self.nvml.get() {
            Some(nvml) => nvml,
            None => {
                let nvml = open(&self.root)?;
                self.nvml.get_or_init(|| nvml)
            }
        };
        let answer = nvml.device_by_uuid(self.uuid.as_str()).and_then(|mut gpu| ask(&mut gpu));
        answer.map_err(|source| Error::Nvml { call, gpu: self.uuid.clone(), source })
    }
}

/// Looks for them.
pub(crate) fn discover(root: &Root) -> Vec<Candidate> {
    let there = root.clone();
    let look = move || {
        let nvml = init(&there)?;
        let gpus = (0..count(&nvml)?).map(|index| candidate(&there, &nvml, index));
        Ok(gpus.collect::<Vec<_>>())
    };
    match answer(patience::NVML, look).unwrap_or(Err(Error::NvmlSilent)) {
        Ok(gpus) if !gpus.is_empty() => gpus,
        Ok(_) => vec![nothing(root, &Why::Refused(NvmlError::NotFound))],
        Err(Error::Nvml { source, .. }) => vec![nothing(root, &Why::Refused(source))],
        Err(Error::NvmlSilent) => vec![nothing(root, &Why::Silent)],
        Err(Error::Static) => vec![nothing(root, &Why::Static)],
        Err(_) => vec![nothing(root, &Why::NoLibrary)],
    }
}

/// Opens the driver's library and the driver; the last owner to drop the library shuts it down.
fn open(root: &Root) -> Result<Arc<Nvml>, Error> {
    let root = root.clone();
    answer(patience::NVML, move || init(&root)).unwrap_or(Err(Error::NvmlSilent))
}

/// The same, for as long as it takes.
fn init(root: &Root) -> Result<Arc<Nvml>, Error> {
    if STATIC {
        return Err(Error::Static);
    }
    let nvml = if *root == Root::default() {
        Nvml::init()
    } else {
        let path = root.path("usr/lib").join(LIBRARY);
        if !path.exists() {
            return Err(Error::NoNvml);
        }
        Nvml::builder().lib_path(path.as_os_str()).init()
    };
    nvml.map(Arc::new).map_err(|source| match source {
        NvmlError::LibloadingError(why) if is_missing(&why.to_string()) => Error::NoNvml,
        source => Error::Nvml { call: "nvmlInit_v2", gpu: DRIVER.into(), source },
    })
}

fn count(nvml: &Nvml) -> Result<u32, Error> {
    let refused =
        |source| Error::Nvml { call: "nvmlDeviceGetCount_v2", gpu: DRIVER.into(), source };
    nvml.device_count().map_err(refused)
}

/// True if the loader says that it found no such library; it may miss one that this needs instead.
fn is_missing(why: &str) -> bool {
    why.starts_with(&format!("{LIBRARY}: cannot open shared object file: No such file"))
}

/// What `ask` gives, unless the driver does not answer in time: one whose GPU has failed may not.
fn answer<T: Send + 'static>(
    patience: Duration,
    ask: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let (answer, answered) = mpsc::channel();
    let asking = move || {
        // After a timeout, the answer is dropped and the library closed.
        let _ = answer.send(ask());
    };
    thread::Builder::new().name("nvml".into()).spawn(asking).ok()?;
    answered.recv_timeout(patience).ok()
}

fn candidate(root: &Root, nvml: &Arc<Nvml>, index: u32) -> Candidate {
    let device = nvml.device_by_index(index);
    let name = device.as_ref().ok().and_then(|device| device.name().ok()).unwrap_or_default();
    let domain = format!("gpu-{index} {}", name.trim()).trim_end().to_owned();
    let meter = device.map_err(|error| obstacle(&error)).and_then(|device| {
        let kind = kind(&device)?;
        let uuid = device.uuid().map_err(|error| obstacle(&error))?;
        let extent = Extent::Accelerator;
        let info = Info { domain: domain.clone(), source: SOURCE, extent, kind };
        Ok(Box::new(GpuMeter { info, gpu: Gpu::opened(root, uuid, nvml) }) as Box<dyn Meter>)
    });
    Candidate { source: SOURCE, domain, path: None, extent: Some(Extent::Accelerator), meter }
}

/// How a GPU reports energy: by its counter if it has one, else by its sensor.
fn kind(device: &Device<'_>) -> Result<Kind, Obstacle> {
    let limits = device.power_management_limit_constraints();
    let limit = limits.map_or(0.0, |limits| f64::from(limits.max_limit) / 1e3);
    let p_max = if limit > 0.0 { Watts(limit * ABOVE_THE_LIMIT) } else { P_MAX };
    match device.total_energy_consumption() {
        Ok(_) => Ok(Kind::Counter(Counter {
            range: Some(Microjoules(u64::MAX)),
            resolution: Microjoules(1000),
            refresh: REFRESH,
            p_max,
        })),
        Err(error) if is_unsupported(&error) => match device.power_usage() {
            Ok(_) => Ok(Kind::Sensor(Sensor { refresh: REFRESH, accuracy: ACCURACY, p_max })),
            Err(error) if is_unsupported(&error) => Err(mute(device)),
            Err(error) => Err(obstacle(&error)),
        },
        Err(error) => Err(obstacle(&error)),
    }
}

/// True if the GPU or its driver does not support the call.
fn is_unsupported(error: &NvmlError) -> bool {
    use NvmlError::{FailedToLoadSymbol, FunctionNotFound, NotSupported};
    matches!(error, NotSupported | FunctionNotFound | FailedToLoadSymbol(_))
}

/// Reads one GPU.
struct GpuMeter {
    info: Info,
    gpu: Gpu,
}

impl Meter for GpuMeter {
    fn info(&self) -> &Info {
        &self.info
    }

    fn sample(&mut self) -> Sample {
        Sample::take(|| match self.info.kind {
            Kind::Counter(_) => {
                let counted = self.gpu.ask("nvmlDeviceGetTotalEnergyConsumption", |gpu| {
                    gpu.total_energy_consumption()
                });
                Ok(Reading::Energy(Microjoules(counted?.saturating_mul(1000))))
            }
            Kind::Sensor(_) => {
                let milliwatts =
                    self.gpu.ask("nvmlDeviceGetPowerUsage", |gpu| gpu.power_usage())?;
                Ok(Reading::Power(Watts(f64::from(milliwatts) / 1e3)))
            }
        })
    }
}

/// Why no GPU at all is shown.
enum Why {
    Static,
    NoLibrary,
    Silent,
    Refused(NvmlError),
}

/// What is said where the driver shows no GPU.
fn nothing(root: &Root, why: &Why) -> Candidate {
    use NvmlError::{DriverNotLoaded, NotFound};
    // A driver that answers at all, be it with an error, was loaded for a GPU.
    let asleep =
        matches!(why, Why::Static | Why::NoLibrary | Why::Refused(DriverNotLoaded | NotFound));
    let here = !asleep || is_here(root);
    let obstacle = match why {
        Why::Static => Obstacle::unavailable(Error::Static.to_string())
            .fix("for GPUs, use a program that is not static, such as that of the Debian package"),
        _ if !here => Obstacle::unavailable("no NVIDIA GPU found"),
        Why::NoLibrary => Obstacle::unavailable(Error::NoNvml.to_string()).fix(
            "install the NVIDIA driver; in a container, let the host's runtime bring its library: \
             NVIDIA_DRIVER_CAPABILITIES=utility",
        ),
        Why::Silent => Obstacle::unavailable(Error::NvmlSilent.to_string()).fix(SEE_THE_KERNEL),
        Why::Refused(NotFound) => Obstacle::unavailable("the NVIDIA driver shows no GPU").fix(
            "give it to the NVIDIA driver if another has it (lspci -k -d 10de:); in a container, \
             give the container the GPU",
        ),
        Why::Refused(error) => obstacle(error),
    };
    let extent = here.then_some(Extent::Accelerator);
    Candidate { source: SOURCE, domain: "gpu".into(), path: None, extent, meter: Err(obstacle) }
}

/// Says why a GPU reports neither energy nor power.
fn mute(device: &Device<'_>) -> Obstacle {
    let mig = device.mig_mode().is_ok_and(|mode| mode.current != 0);
    match device.virtualization_mode() {
        Ok(GpuVirtualizationMode::Vgpu) => {
            Obstacle::unavailable("a vGPU, whose host shows it neither energy nor power")
                .fix("measure on the host itself, or have the GPU passed through whole")
        }
        _ if mig => Obstacle::unavailable("in MIG mode, in which it shows parts no energy")
            .fix("measure where the whole GPU is seen, or switch MIG off: nvidia-smi -mig 0"),
        _ => Obstacle::unavailable("it has neither an energy counter nor a power sensor")
            .fix("use an external meter: --meter COMMAND|URL (docs/spec/meter.md)"),
    }
}

fn obstacle(error: &NvmlError) -> Obstacle {
    let (why, fix) = match error {
        NvmlError::NoPermission => (
            "this user has no permission to ask the NVIDIA driver for it".into(),
            "run as root, or let the administrator give this user the devices /dev/nvidia*; in a \
             container: NVIDIA_DRIVER_CAPABILITIES=utility",
        ),
        NvmlError::DriverNotLoaded => (
            "the NVIDIA driver is not loaded".into(),
            "modprobe nvidia; after an upgrade of the kernel, build its module anew, and reboot",
        ),
        NvmlError::LibRmVersionMismatch => (
            "the NVIDIA driver in the kernel and its library are of different versions".into(),
            "reboot, so that both are of the version that was installed last; in a container, take \
             the host's library",
        ),
        NvmlError::GpuLost => {
            ("the GPU is lost: it fell off the bus or does not answer".into(), SEE_THE_KERNEL)
        }
        NvmlError::ResetRequired => (
            "the GPU must be reset before it works again".into(),
            "when nothing uses it, as root: nvidia-smi --gpu-reset",
        ),
        NvmlError::LibloadingError(why) => (
            format!("the NVIDIA driver library cannot be loaded: {why}"),
            "install the NVIDIA driver anew, for this machine's architecture",
        ),
        error => (error.to_string(), "see what nvidia-smi says"),
    };
    Obstacle::unavailable(why).fix(fix)
}

/// True if the machine shows a GPU of NVIDIA, whether or not there is a driver.
fn is_here(root: &Root) -> bool {
    let entries = |directory: &str| {
        let entries = fs::read_dir(root.path(directory)).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).collect::<Vec<PathBuf>>()
    };
    let is_node = |path: &PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        name.strip_prefix("nvidia").is_some_and(|number| number.parse::<u16>().is_ok())
    };
    let is_gpu = |path: &PathBuf| {
        let said = |file| fs::read_to_string(path.join(file)).unwrap_or_default();
        said("vendor").trim() == "0x10de" && said("class").starts_with("0x03")
    };
    entries("dev").iter().any(is_node) || entries("sys/bus/pci/devices").iter().any(is_gpu)
}

pub(crate) const SOURCE: &str = "nvml";

const LIBRARY: &str = "libnvidia-ml.so.1";

/// Whom an error is of that is of no GPU.
const DRIVER: &str = "the NVIDIA driver";

const SEE_THE_KERNEL: &str = "see what the kernel says: dmesg | grep -i xid; a reboot may help";

/// How often there is a new value, at least.
const REFRESH: Duration = Duration::from_millis(100);

/// What NVIDIA says of its power sensors: ± 5 %.
const ACCURACY: f64 = 0.05;

/// The limit is one of the mean; peaks are above it.
const ABOVE_THE_LIMIT: f64 = 1.5;

/// More than any GPU of today draws.
const P_MAX: Watts = Watts(2000.0);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_the_driver_has_a_timeout() {
        let (wake, asleep) = mpsc::channel::<()>();
        assert_eq!(answer(Duration::from_millis(1), move || asleep.recv()), None);
        drop(wake);
        assert_eq!(answer(patience::NVML, || 5), Some(5));
        let silent = nothing(&Root::new("/nowhere"), &Why::Silent);
        assert_eq!(silent.extent, Some(Extent::Accelerator));
        let why = silent.meter.err().unwrap().why;
        assert_eq!(why, "the NVIDIA driver did not answer within 60 s");
    }

    #[test]
    fn a_library_that_misses_another_is_not_missing() {
        let missing = ": cannot open shared object file: No such file or directory";
        assert!(is_missing(&format!("libnvidia-ml.so.1{missing}")));
        assert!(!is_missing(&format!("libdl.so.2{missing}")));
        assert!(!is_missing("libnvidia-ml.so.1: wrong ELF class: ELFCLASS32"));
    }
}
