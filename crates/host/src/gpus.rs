//! The ways to reach GPUs, and why one is closed.

use std::fs;
use std::path::PathBuf;

use wattlock_energy::{Found, Root, Status};
use wattlock_gpu::cuda::Cuda;
use wattlock_gpu::opencl;

use crate::energy::quiet_root;

/// The ways to reach GPUs, and what is there. Below another root only the libraries are looked for:
/// what they say would be of this machine.
pub fn runtimes(root: &Root) -> Vec<Found> {
    let cuda = Cuda::list().map(|gpus| gpus.len()).map_err(|why| why.to_string());
    let of_opencl = |cpus: bool| {
        let listed = opencl::devices().map_err(|why| why.to_string())?;
        Ok(listed.iter().filter(|device| (device.kind == opencl::Kind::Cpu) == cpus).count())
    };
    let gpus = match of_opencl(false) {
        Ok(0) => Err("it works, but finds no GPU, only the CPU, which --device opencl uses".into()),
        other => other,
    };
    let runtimes = [
        ("cuda", "CUDA driver API", "libcuda.so.1", "install NVIDIA's driver", cuda),
        (
            "opencl",
            "OpenCL loader",
            "libOpenCL.so.1",
            "install ocl-icd-libopencl1 and the driver of a GPU; pocl-opencl-icd runs on the CPU",
            gpus,
        ),
    ];
    let found = runtimes.map(|(source, domain, library, fix, here)| {
        let path = library_below(root, library);
        let fix = Some(fix.to_owned());
        let (status, why, fix) = match (&path, here) {
            (None, _) => (Status::Unavailable, format!("{library} is not here"), fix),
            (Some(_), _) if *root != Root::default() => {
                (Status::Ignored, format!("{library} is there, and not asked"), None)
            }
            (Some(_), Ok(count)) => {
                (Status::Used, format!("{count} found; see wattlock devices"), None)
            }
            (Some(_), Err(why)) => (Status::Unavailable, why, fix),
        };
        Found { source, domain: domain.into(), path, status, why, fix }
    });
    found.into()
}

/// What can be said about GPUs to whoever asked for one, a line for each way to reach them.
pub(crate) fn about() -> String {
    let line = |found: &Found| {
        let fix = found.fix.as_ref().map_or_else(String::new, |fix| format!("; {fix}"));
        format!("\n  {}: {}{fix}", found.domain, found.why)
    };
    runtimes(&quiet_root()).iter().map(line).collect()
}

/// Where the dynamic linker of Debian, Fedora or a container with NVIDIA's tools would find it.
fn library_below(root: &Root, name: &str) -> Option<PathBuf> {
    const FOLDERS: [&str; 6] = [
        "usr/lib/x86_64-linux-gnu",
        "usr/lib/aarch64-linux-gnu",
        "usr/lib64",
        "usr/lib",
        "usr/local/nvidia/lib64",
        "usr/local/cuda/compat",
    ];
    FOLDERS
        .iter()
        .map(|folder| root.path(folder).join(name))
        .find(|file| fs::exists(file).is_ok_and(|is| is))
}
