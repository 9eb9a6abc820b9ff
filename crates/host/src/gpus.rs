//! The ways to reach GPUs, and why one is closed.

use std::fs;
use std::path::PathBuf;

use wattlock_energy::{Found, Root, STATIC, Status};
use wattlock_gpu::{RUNTIMES, Runtime};

use crate::drivers;
use crate::energy::quiet_root;

/// The ways to reach GPUs, and what is there. Below another root only the libraries are looked for:
/// what they say would be of this machine.
pub fn runtimes(root: &Root) -> Vec<Found> {
    let found = |runtime: &Runtime| {
        let Runtime { name, title, library, .. } = *runtime;
        let path = library_below(root, library);
        let fix = Some(runtime.fix.to_owned());
        let (status, why, fix) = if STATIC {
            let why = format!("this build of the program is static, and cannot load {library}");
            let fix =
                "for GPUs, use a program that is not static, such as that of the Debian package";
            (Status::Unavailable, why, Some(fix.to_owned()))
        } else if path.is_none() {
            (Status::Unavailable, format!("{library} is not here"), fix)
        } else if *root != Root::default() {
            (Status::Ignored, format!("{library} is there, and not asked"), None)
        } else {
            match gpus_of(runtime) {
                Ok(count) => (Status::Used, format!("{count} found; see wattlock devices"), None),
                Err(why) => (Status::Unavailable, why, fix),
            }
        };
        Found { source: name, domain: title.into(), path, status, why, fix }
    };
    RUNTIMES.iter().map(found).collect()
}

/// How many GPUs it finds, or why none.
fn gpus_of(runtime: &Runtime) -> Result<usize, String> {
    let listed = drivers::list(runtime)?;
    match listed.iter().filter(|offer| !offer.is_cpu).count() {
        0 => Err(format!("it finds no GPU, only the CPU; --device {} runs on that", runtime.name)),
        count => Ok(count),
    }
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
