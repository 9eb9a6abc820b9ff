//! What processes with the provider have counted: the files of `docs/spec/provider-stats.md`.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Serialize;

/// The counters of one process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// Its number.
    pub pid: u64,
    /// What was done on each path through the provider; only paths that were taken.
    pub paths: BTreeMap<String, Counts>,
}

/// Calls, records and bytes of payload of one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub calls: u64,
    pub records: u64,
    pub bytes: u64,
}

impl Counts {
    /// Both together.
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
        }
    }
}

impl Statistics {
    /// From the bytes of a file.
    ///
    /// # Errors
    /// That they are not those of statistics.
    pub fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let numbers = bytes.strip_prefix(MAGIC).ok_or("is no file of statistics")?;
        let (numbers, rest) = numbers.as_chunks::<8>();
        let numbers: Vec<u64> = numbers.iter().map(|number| u64::from_ne_bytes(*number)).collect();
        let (pid, cells) = numbers.split_first().ok_or("is cut off")?;
        let (cells, more) = cells.as_chunks::<3>();
        if !rest.is_empty() || !more.is_empty() {
            return Err("is cut off");
        }
        let named =
            cells.iter().enumerate().filter(|(_, cell)| **cell != [0; 3]).map(|(at, cell)| {
                let name =
                    PATHS.get(at).map_or_else(|| format!("path-{at}"), |name| (*name).to_owned());
                let [calls, records, bytes] = *cell;
                (name, Counts { calls, records, bytes })
            });
        Ok(Self { pid: *pid, paths: named.collect() })
    }

    /// Of all processes that have written into a folder, by their numbers.
    ///
    /// # Errors
    /// A folder or a file that cannot be read.
    pub fn read_folder(folder: &Path) -> anyhow::Result<Vec<Self>> {
        let cannot = || format!("cannot read {}", folder.display());
        let mut all = Vec::new();
        for entry in fs::read_dir(folder).with_context(cannot)? {
            let path = entry.with_context(cannot)?.path();
            if path.extension().is_some_and(|extension| extension == "stats") {
                let cannot = || format!("cannot read {}", path.display());
                let read = Self::parse(&fs::read(&path).with_context(cannot)?);
                all.push(read.map_err(|why| anyhow::anyhow!("{} {why}", path.display()))?);
            }
        }
        all.sort_by_key(|statistics| statistics.pid);
        Ok(all)
    }

    /// What was done on all paths.
    pub fn sum(&self) -> Counts {
        self.paths.values().fold(Counts::default(), |sum, counts| sum.plus(*counts))
    }

    /// What was done on paths where a call has several records.
    pub fn multiblock(&self) -> Counts {
        let several = self.paths.values().filter(|counts| counts.records > counts.calls);
        several.fold(Counts::default(), |sum, counts| sum.plus(*counts))
    }

    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("process {}\n", self.pid);
        let _ = writeln!(text, "  {:<20}{:>14}{:>14}{:>18}", "path", "calls", "records", "bytes");
        for (name, counts) in &self.paths {
            let Counts { calls, records, bytes } = counts;
            let _ = writeln!(text, "  {name:<20}{calls:>14}{records:>14}{bytes:>18}");
        }
        text
    }
}

/// `wattlock-provider-stats/1`.
pub fn document(all: &[Statistics]) -> serde_json::Value {
    serde_json::json!({ "schema": "wattlock-provider-stats/1", "processes": all })
}

/// The first bytes of a file.
const MAGIC: &[u8] = b"wattlock-stats/1";

/// The paths in the order of their cells, as the specification has them.
const PATHS: [&str; 9] = [
    "block",
    "ctr",
    "gcm-stream",
    "gcm-record",
    "gcm-multiblock",
    "cbc-record",
    "cbc-hmac-record",
    "cbc-hmac-multiblock",
    "multiblock-refused",
];

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
        Statistics::read_folder(&self.0)
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

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    fn file(numbers: &[u64]) -> Vec<u8> {
        let numbers = numbers.iter().flat_map(|number| number.to_ne_bytes());
        MAGIC.iter().copied().chain(numbers).collect()
    }

    #[test]
    fn counters_are_read() {
        let mut numbers = vec![17];
        numbers.resize(1 + 3 * 10, 0);
        // gcm-record, gcm-multiblock, and a path of a later version.
        numbers[10..16].copy_from_slice(&[2, 2, 30, 1, 8, 99]);
        numbers[28..].copy_from_slice(&[1, 1, 5]);
        let read = Statistics::parse(&file(&numbers)).unwrap();
        assert_eq!((read.pid, read.sum().bytes), (17, 134));
        assert_eq!(read.multiblock(), Counts { calls: 1, records: 8, bytes: 99 });
        let names: Vec<&str> = read.paths.keys().map(String::as_str).collect();
        assert_eq!(names, ["gcm-multiblock", "gcm-record", "path-9"]);
        assert!(read.text().contains("gcm-multiblock"), "{}", read.text());
    }

    #[test]
    fn what_is_no_file_of_statistics_is_refused() {
        let whole = file(&[1, 2, 3, 4]);
        assert!(Statistics::parse(&whole).is_ok());
        for wrong in [&b""[..], b"wattlock-stats/2", MAGIC, &whole[..40], &whole[..47]] {
            assert!(Statistics::parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
