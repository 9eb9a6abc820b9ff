//! What programs know of CUDA.

use wattlock_engine::Fault;

use super::device::{Cuda, Options};
use crate::runtime::{Offer, Opened, Opening, Runtime};

/// The driver's own library.
pub(crate) const RUNTIME: Runtime = Runtime {
    name: "cuda",
    title: "CUDA driver API",
    library: "libcuda.so.1",
    fix: "install NVIDIA's driver",
    takes: |which| which.parse::<usize>().is_ok(),
    list,
    choose: |which| Ok(offer(format!("cuda:{}", which.unwrap_or("0")))),
};

fn list() -> Result<Vec<Offer>, Fault> {
    let offers = Cuda::list()?.into_iter().map(|info| Offer {
        what: format!("{}, {}", info.name, info.uuid),
        uuid: Some(info.uuid),
        ..offer(format!("cuda:{}", info.index))
    });
    Ok(offers.collect())
}

/// The GPU of that number, if there is one: opening it tells.
fn offer(id: String) -> Offer {
    let name = id.clone();
    Offer {
        what: id.clone(),
        id,
        driver: "NVIDIA".into(),
        uuid: None,
        is_cpu: false,
        starts_programs: false,
        open: Box::new(move |how| open(&name, how)),
    }
}

fn open(name: &str, how: Opening) -> Result<Opened, Fault> {
    let Opening { verify, timeout, .. } = how;
    let device = Cuda::open(name, Options { verify, timeout, ..Options::default() })?;
    let info = device.info();
    let (product, multiprocessors) = (info.name.clone(), info.multiprocessors);
    let clock_mhz = info.clock_khz as f64 / 1e3;
    Ok(Opened { device: Box::new(device), product, multiprocessors, clock_mhz })
}
