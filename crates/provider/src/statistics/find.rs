//! The tables of running processes, found through `/proc`.
//!
//! Nothing that another program made is trusted: a mapping is only a hint, and `table` checks a
//! file before it is opened. Unreadable tables are listed, and the others still shown.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::row::Statistics;
use super::table::{Loaded, PREFIX, TableCopy};

/// A program that loaded the provider with statistics, and the processes that it forked.
#[derive(Clone, Debug)]
pub struct Service {
    /// The setting `statistics`.
    pub name: String,
    /// The OpenSSLs that loaded the provider: the last one first, and another that did before, if there was one.
    pub loaded: Vec<Loaded>,
    /// Processes that run and have counted, by their ids.
    pub processes: Vec<Statistics>,
    /// What processes counted that have ended or lost their row, together.
    pub earlier: Statistics,
}

/// What [`services`] found.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// By name.
    pub services: Vec<Service>,
    /// Tables that were not read, and why.
    pub skipped: Vec<String>,
    /// Processes into which this user may not look.
    pub hidden: usize,
}

/// Finds the tables of all running processes.
///
/// # Errors
/// That there is no `/proc`.
pub fn services() -> io::Result<Found> {
    let mut found = Found::default();
    let mut tables: BTreeMap<String, Mapped> = BTreeMap::new();
    for entry in fs::read_dir("/proc")? {
        let folder = entry?.path();
        let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Ok(process) = name.parse::<u64>() else { continue };
        match fs::read(folder.join("maps")) {
            Ok(maps) => note_tables(&String::from_utf8_lossy(&maps), process, &mut tables),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => found.hidden += 1,
            // It has ended.
            Err(_) => {}
        }
    }
    for table in tables.into_values() {
        match table.read() {
            Ok(service) => found.services.push(service),
            Err(why) => found.skipped.push(why),
        }
    }
    let first = |service: &Service| service.processes.first().map(|one| one.process);
    found.services.sort_by(|one, other| (&one.name, first(one)).cmp(&(&other.name, first(other))));
    Ok(found)
}

/// A table, and the processes that have it in their memory.
struct Mapped {
    name: String,
    /// Processes, with the range of addresses.
    processes: Vec<(u64, String)>,
}

/// Notes the tables of a process by device and inode.
fn note_tables(maps: &str, process: u64, tables: &mut BTreeMap<String, Mapped>) {
    for line in maps.lines() {
        let Some((fields, path)) = line.split_once(&format!("/memfd:{PREFIX}")) else { continue };
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let [range, _, _, device, inode] = fields[..] else { continue };
        let name = path.strip_suffix(" (deleted)").unwrap_or(path);
        // The text comes from another process and goes to a terminal.
        let name = name.replace(char::is_control, "?");
        let table = tables
            .entry(format!("{device} {inode}"))
            .or_insert_with(|| Mapped { name, processes: Vec::new() });
        table.processes.push((process, range.to_owned()));
    }
}

impl Mapped {
    fn read(mut self) -> Result<Service, String> {
        let copied = self.copied()?;
        self.processes.sort_unstable();
        self.processes.dedup_by_key(|(process, _)| *process);
        // A row has the id by which its process knows itself.
        let running: BTreeMap<u64, u64> = self
            .processes
            .iter()
            .map(|(process, _)| (own_id(*process).unwrap_or(*process), *process))
            .collect();
        let (mut processes, mut earlier) = (BTreeMap::new(), copied.earlier);
        for mut row in copied.rows {
            match running.get(&row.process) {
                // The latest comes first; one with the same id has ended.
                Some(process) if !processes.contains_key(process) => {
                    row.process = *process;
                    processes.insert(*process, row);
                }
                _ => earlier.add(&row),
            }
        }
        Ok(Service {
            name: self.name,
            loaded: copied.loaded,
            processes: processes.into_values().collect(),
            earlier,
        })
    }

    /// Reads it through any of its processes: by its mapping, for which the kernel wants
    /// privileges, or by the descriptor that most still have.
    fn copied(&self) -> Result<TableCopy, String> {
        let mut why = None;
        for (process, range) in &self.processes {
            let folder = PathBuf::from(format!("/proc/{process}"));
            let ways = [folder.join("map_files").join(range)].into_iter();
            for path in ways.chain(descriptors(&folder, &self.name)) {
                match TableCopy::read(&path) {
                    Ok(copied) => return Ok(copied),
                    Err(error) => {
                        // What is said of the table is worth more than that a way is closed.
                        if why.is_none() || error.kind() == io::ErrorKind::InvalidData {
                            why = Some(format!("{}: {error}", path.display()));
                        }
                    }
                }
            }
        }
        let why = why.unwrap_or_else(|| "its processes have ended".into());
        Err(format!("{}: {why}", self.name))
    }
}

/// Descriptors of a process that look like that table.
fn descriptors(folder: &Path, name: &str) -> Vec<PathBuf> {
    let wanted = format!("/memfd:{PREFIX}{name} (deleted)");
    let Ok(entries) = fs::read_dir(folder.join("fd")) else { return Vec::new() };
    let paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    let is_wanted =
        |path: &PathBuf| fs::read_link(path).is_ok_and(|target| target.to_string_lossy() == wanted);
    paths.filter(is_wanted).collect()
}

/// The id of a process in its own namespace.
fn own_id(process: u64) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().last()?.parse().ok()
}
