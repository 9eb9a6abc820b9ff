//! What programs know of OpenCL.

use wattlock_engine::Fault;

use super::device::{OpenCl, Options};
use super::list::{Kind, Listed, choose, devices};
use crate::runtime::{Offer, Opened, Opening, Runtime};

/// The loader, and the drivers that it finds.
pub(crate) const RUNTIME: Runtime = Runtime {
    name: "opencl",
    title: "OpenCL loader",
    library: "libOpenCL.so.1",
    fix: "install ocl-icd-libopencl1 and your GPU's OpenCL driver; pocl-opencl-icd is one for the CPU",
    takes: |which| !which.is_empty(),
    list: || Ok(devices()?.into_iter().map(offer).collect()),
    choose: |which| {
        let listed = devices()?;
        Ok(offer(choose(&listed, which)?.clone()))
    },
};

fn offer(listed: Listed) -> Offer {
    let is_cpu = listed.kind == Kind::Cpu;
    let by_name = if is_cpu { "; the CPU by OpenCL, used only by name" } else { "" };
    Offer {
        id: listed.id(),
        what: format!("{}, {} {}{by_name}", listed.name, listed.platform, listed.driver),
        driver: listed.platform.clone(),
        uuid: None,
        is_cpu,
        starts_programs: listed.platform.contains(POCL),
        open: Box::new(move |how| open(&listed, how)),
    }
}

fn open(listed: &Listed, how: Opening) -> Result<Opened, Fault> {
    let Opening { verify, timeout, small_jobs } = how;
    let usual = Options { verify, timeout, ..Options::default() };
    // It works on one job at a time: a small one is one piece.
    let options = if small_jobs { Options { slots: 1, ..usual } } else { usual };
    Ok(Opened {
        device: Box::new(OpenCl::open(listed, options)?),
        product: listed.name.clone(),
        multiprocessors: listed.compute_units as usize,
        clock_mhz: f64::from(listed.clock_mhz),
    })
}

/// What PoCL calls itself. It starts a linker.
const POCL: &str = "Portable Computing Language";
