//! What the kernel slows clocks down for.

use std::path::Path;

use crate::attribute;

/// The cooling device that holds the clocks of CPUs down, if one does.
pub(crate) fn cooling(thermal: &Path) -> Option<String> {
    attribute::directories(thermal).into_iter().find_map(|device| {
        let name = attribute::file_name(&device);
        let kind = attribute::text(&device.join("type"))?;
        let cools_clocks = kind == "Processor" || kind.contains("cpufreq");
        let state = attribute::amount(&device.join("cur_state")).ok()?;
        let acts = name.starts_with("cooling_device") && cools_clocks && state > 0;
        acts.then(|| format!("heat ({name}, {kind}, is at state {state})"))
    })
}
