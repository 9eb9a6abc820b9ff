//! Whether there is a device of OpenCL, PoCL's at least.

use crate::programs::wattlock;
use crate::skips::skip;

/// Whether `wattlock devices` has one; records a skip if it has not.
///
/// # Panics
/// If `wattlock devices` fails.
#[track_caller]
pub fn opencl_is_here() -> bool {
    let devices = wattlock().args(["devices", "--json"]).output();
    let devices = devices.expect("wattlock can be started").stdout;
    let document: serde_json::Value = serde_json::from_slice(&devices).expect("it prints JSON");
    let accelerators = document["accelerators"].as_array().expect("a list");
    let names = accelerators.iter().filter_map(|one| one["device"].as_str());
    let here = names.into_iter().any(|name| name.starts_with("opencl"));
    if !here {
        skip("pocl", "no OpenCL device");
    }
    here
}
