//! Where joules come from in this run: a machine's sensors, an external meter, or else a model.

use std::path::Path;
use std::time::Duration;

use wattlock_energy::{
    Energy, External, Load, Root, Sources, Status, Tdp, Watts, modelled, modelled_net,
};
use wattlock_file::Shown;

use crate::exit::unavailable;
use crate::flags;

/// The variable that names another root than `/`.
const ROOT_VARIABLE: &str = "WATTLOCK_ROOT";

/// Where the sensors are read; said aloud if that is not this machine.
pub fn root() -> Root {
    let root = quiet_root();
    if let Some(path) = other(&root) {
        say!(
            "{ROOT_VARIABLE} is set: sensors are read below {}, NOT from this machine",
            Shown(path)
        );
    }
    root
}

/// As [`root`], without the message, for a process whose parent has printed it.
pub fn quiet_root() -> Root {
    let named = std::env::var_os(ROOT_VARIABLE).filter(|path| !path.is_empty());
    named.map_or_else(Root::default, Root::new)
}

/// The root, if it is not this machine's.
pub fn other(root: &Root) -> Option<&Path> {
    (*root != Root::default()).then(|| root.as_path())
}

/// The sensors of `root`, and the meter that was asked for.
///
/// # Errors
/// That this meter cannot be read: another must not stand in for it.
pub fn sources(root: &Root, args: &flags::Meters) -> anyhow::Result<Sources> {
    let Some(meter) = &args.meter else { return Ok(Sources::open(root)) };
    let Ok(external) = meter.parse::<External>();
    let sources = Sources::open_with(root, Some(&external));
    let refused = sources
        .found()
        .iter()
        .find(|found| found.source == "external" && found.status != Status::Used);
    match refused {
        None => Ok(sources),
        Some(found) => {
            let fix = found.fix.as_ref().map_or_else(String::new, |fix| format!("\n  {fix}"));
            Err(unavailable(format!(
                "--meter cannot be read: {}{fix}",
                Shown(Path::new(&found.why))
            )))
        }
    }
}

/// What models say of work that kept CPUs busy: gross, and without what they would have taken at
/// rest.
pub fn model(args: &flags::Meters, wall: Duration, cpu: Duration, clock: f64) -> (Energy, Energy) {
    let possible = wall.as_secs_f64() * flags::threads(None) as f64;
    let utilisation = cpu.as_secs_f64() / possible.max(f64::MIN_POSITIVE);
    let load = Load { wall, utilisation, clock };
    let tdp = args.tdp.map_or(Tdp::Assumed, |watts| Tdp::Given(Watts(watts)));
    (modelled(load, tdp), modelled_net(load, tdp))
}
