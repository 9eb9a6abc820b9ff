//! What processes with the provider have counted, shown; `wattlock_provider::statistics` reads it.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde_json::{Value, json};
use wattlock_engine::Lane;
use wattlock_provider::statistics::{self, Counts, Event, Statistics};

const LANES: [Lane; 2] = [Lane::Cpu, Lane::Accelerator];

/// The paths that were taken, by their names.
pub fn paths(statistics: &Statistics) -> BTreeMap<&'static str, Counts> {
    let all = statistics::Path::ALL.iter().map(|&path| (path.name(), statistics.counts(path)));
    all.filter(|(_, counts)| *counts != Counts::default()).collect()
}

/// For people.
pub fn text(statistics: &Statistics) -> String {
    let mut text = format!("process {}\n", statistics.process);
    let _ = writeln!(text, "  {:<24}{:>14}{:>14}{:>18}", "path", "calls", "records", "bytes");
    for (name, Counts { calls, records, bytes }) in paths(statistics) {
        let _ = writeln!(text, "  {name:<24}{calls:>14}{records:>14}{bytes:>18}");
    }
    let Some((device, threshold)) = statistics.device.as_ref().zip(statistics.threshold()) else {
        return text;
    };
    let rule = match threshold {
        u64::MAX => "nothing, as it is never sooner done".into(),
        bytes => format!("requests above {bytes} bytes"),
    };
    let _ = writeln!(text, "  accelerator: {device}, for {rule}");
    for lane in LANES {
        let counts = statistics.lane(lane);
        let (name, calls, bytes) = (lane.name(), counts.calls, counts.bytes);
        let _ = writeln!(text, "  by {name:<21}{calls:>14}{:>14}{bytes:>18}", "");
    }
    for (name, times) in events(statistics).filter(|(_, times)| *times > 0) {
        let _ = writeln!(text, "  {name:<24}{times:>14}");
    }
    text
}

fn events(statistics: &Statistics) -> impl Iterator<Item = (&'static str, u64)> {
    Event::ALL.iter().map(|&event| (event.name(), statistics.times(event)))
}

/// `wattlock-provider-stats/2`.
pub fn document(all: &[Statistics]) -> Value {
    let processes: Vec<Value> = all.iter().map(process).collect();
    json!({ "schema": "wattlock-provider-stats/2", "processes": processes })
}

/// One process of the document. The lanes are there if there is an accelerator.
pub fn process(statistics: &Statistics) -> Value {
    let mut value = json!({ "pid": statistics.process, "paths": paths(statistics) });
    let Some((device, threshold)) = statistics.device.as_ref().zip(statistics.threshold()) else {
        return value;
    };
    let lanes: BTreeMap<_, _> =
        LANES.into_iter().map(|lane| (lane.name(), statistics.lane(lane))).collect();
    value["accelerator"] = json!({
        "device": device,
        "threshold_bytes": threshold,
        "lanes": lanes,
        "events": events(statistics).collect::<BTreeMap<_, _>>(),
    });
    value
}

/// A folder that is emptied between looks.
pub struct Folder(PathBuf);

impl Folder {
    /// Made if it is not there, so that every user's processes can write into it.
    ///
    /// # Errors
    /// That it cannot be made.
    pub fn new(path: PathBuf) -> anyhow::Result<Self> {
        use std::os::unix::fs::PermissionsExt;
        let cannot = || format!("cannot make {}", path.display());
        fs::create_dir_all(&path).with_context(cannot)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).with_context(cannot)?;
        Ok(Self(path))
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// What was counted since it was emptied, by whomever.
    ///
    /// # Errors
    /// That it cannot be read.
    pub fn read(&self) -> anyhow::Result<Vec<Statistics>> {
        Ok(Statistics::read_folder(&self.0)?)
    }

    /// Forgets what was counted by processes that have ended.
    ///
    /// # Errors
    /// That it cannot be written.
    pub fn empty(&self) -> anyhow::Result<()> {
        for entry in fs::read_dir(&self.0)? {
            fs::remove_file(entry?.path())?;
        }
        Ok(())
    }
}
