//! Makes files durable, many at a time.
//!
//! An `fsync` of each of many small files waits for the disk once or twice a file. One `syncfs`
//! makes all of them durable, and reports the error of any (Linux 5.8 and later, on file systems
//! that pass it on). It also writes what other programs left unwritten, so it is only used while
//! that is little.

use std::collections::{BTreeMap, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use rustix::fs::{fstatfs, syncfs};

use crate::folder::Within;
use crate::lock::lock;
use crate::staging::cannot_sync;

/// The file systems that a run writes to.
pub(crate) struct FileSystems {
    /// By device number.
    known: HashMap<u64, FileSystem>,
}

/// How the files of a file system are made durable.
enum FileSystem {
    /// It is in memory: they are never durable.
    Memory,
    /// Several by one `syncfs`.
    Together(Together),
}

/// A file system whose `syncfs` reports errors.
struct Together {
    /// A folder in it, opened before the run wrote anything: `syncfs` reports errors since then.
    folder: File,
    /// True once `syncfs` reported an error. It does so once, and some of the files that are still
    /// being written may be among those that failed.
    failed: AtomicBool,
}

impl FileSystems {
    /// The file systems of these folders. Call this before anything is written to them.
    pub fn of<'p>(folders: impl Iterator<Item = &'p Path>) -> Self {
        let mut known = HashMap::new();
        for folder in folders {
            let Ok(device) = fs::metadata(folder).map(|status| status.dev()) else { continue };
            if known.contains_key(&device) {
                continue;
            }
            if let Some(system) = File::open(folder).ok().and_then(FileSystem::of) {
                known.insert(device, system);
            }
        }
        Self { known }
    }

    /// Makes the names in `folders` durable, and returns the errors. A folder that may not be opened,
    /// or that its file system cannot sync, has none: nothing better can be done there.
    pub fn sync_folders(&self, folders: BTreeMap<PathBuf, Within>) -> BTreeMap<PathBuf, io::Error> {
        let open = |path: &Path, within: &Within| within.folder(path).ok()?.reopened().ok();
        let opened =
            folders.into_iter().filter_map(|(path, within)| Some((open(&path, &within)?, path)));
        let opened: Vec<(File, PathBuf)> = opened.collect();
        let files: Vec<&File> = opened.iter().map(|(file, _)| file).collect();
        let errors = self.sync(&files, 0).into_iter().map(Result::err);
        let paths = opened.iter().map(|(_, path)| path.clone());
        let failed = paths.zip(errors).filter_map(|(path, error)| Some((path, error?)));
        failed.filter(|(_, error)| !cannot_sync(error)).collect()
    }

    /// Makes `files` durable and returns the error of each. Up to `bytes` of this run may not be on
    /// the disk yet.
    pub fn sync(&self, files: &[&File], bytes: u64) -> Vec<io::Result<()>> {
        let mut by_device: BTreeMap<u64, Vec<usize>> = BTreeMap::new();
        for (index, file) in files.iter().enumerate() {
            let device = file.metadata().map_or(0, |status| status.dev());
            by_device.entry(device).or_default().push(index);
        }
        let mut results: Vec<io::Result<()>> = files.iter().map(|_| Ok(())).collect();
        for (device, indices) in by_device {
            let synced = match self.known.get(&device) {
                Some(FileSystem::Memory) => continue,
                Some(FileSystem::Together(system))
                    if indices.len() >= FEWEST_TOGETHER
                        && !system.failed.load(Ordering::SeqCst)
                        && unwritten() < bytes + MOST_OF_OTHERS =>
                {
                    let synced = system.sync();
                    indices.iter().map(|_| synced.as_ref().copied().map_err(copy)).collect()
                }
                _ => sync_each(&indices.iter().map(|&index| files[index]).collect::<Vec<_>>()),
            };
            for (index, result) in indices.into_iter().zip(synced) {
                results[index] = result;
            }
        }
        results
    }
}

impl FileSystem {
    /// That of `folder`, if anything is known of its kind.
    fn of(folder: File) -> Option<Self> {
        const EXT4: i64 = 0xef53;
        const XFS: i64 = 0x5846_5342;
        const BTRFS: i64 = 0x9123_683e;
        const TMPFS: i64 = 0x0102_1994;
        match fstatfs(&folder).ok()?.f_type as i64 & 0xffff_ffff {
            TMPFS => Some(Self::Memory),
            EXT4 | XFS | BTRFS if kernel_reports_errors() => {
                Some(Self::Together(Together { folder, failed: AtomicBool::new(false) }))
            }
            _ => None,
        }
    }
}

impl Together {
    fn sync(&self) -> io::Result<()> {
        let synced = syncfs(&self.folder);
        if synced.is_err() {
            self.failed.store(true, Ordering::SeqCst);
        }
        Ok(synced?)
    }
}

/// Fewer files are synced one by one.
const FEWEST_TOGETHER: usize = 4;

/// Above this many unwritten bytes of other programs, files are synced one by one.
const MOST_OF_OTHERS: u64 = 64 << 20;

/// The same error once more.
pub(crate) fn copy(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

/// Syncs each file, several at a time: they share the disk's waits. Returns the error of each.
fn sync_each(files: &[&File]) -> Vec<io::Result<()>> {
    if let [file] = files {
        return vec![file.sync_all()];
    }
    let next = AtomicUsize::new(0);
    let results = Mutex::new(files.iter().map(|_| Ok(())).collect::<Vec<_>>());
    let work = || {
        while let Some((index, file)) = {
            let index = next.fetch_add(1, Ordering::Relaxed);
            files.get(index).map(|file| (index, file))
        } {
            let synced = file.sync_all();
            lock(&results)[index] = synced;
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..files.len().min(AT_ONCE) {
            // Without a thread, the others do its work.
            let _ = std::thread::Builder::new().spawn_scoped(scope, work);
        }
        work();
    });
    results.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Files that are synced at the same time.
const AT_ONCE: usize = 16;

/// True from Linux 5.8 on, where `syncfs` reports errors of writing.
fn kernel_reports_errors() -> bool {
    static REPORTS: OnceLock<bool> = OnceLock::new();
    *REPORTS.get_or_init(|| {
        let system = rustix::system::uname();
        let release = system.release().to_string_lossy();
        version(&release).is_some_and(|version| version >= (5, 8))
    })
}

/// The first two numbers of a kernel's release.
fn version(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// Bytes that all programs have written and that are not on a disk yet; as many as can be if the
/// system does not say.
fn unwritten() -> u64 {
    let Ok(text) = fs::read_to_string("/proc/meminfo") else { return u64::MAX };
    let field = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()
    };
    match (field("Dirty:"), field("Writeback:")) {
        (Some(dirty), Some(writeback)) => (dirty + writeback).saturating_mul(1024),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn releases_of_linux() {
        assert_eq!(version("6.18.44-fc-v669"), Some((6, 18)));
        assert_eq!(version("5.8.0"), Some((5, 8)));
        assert_eq!(version("4.19.0-27-amd64"), Some((4, 19)));
        assert_eq!(version("6.1+"), Some((6, 1)));
        assert_eq!(version("unknown"), None);
    }

    #[test]
    fn files_of_any_number_are_synced() {
        let folder = tempfile::tempdir().unwrap();
        let systems = FileSystems::of([folder.path()].into_iter());
        for count in [0, 1, 3, 40] {
            let files: Vec<_> = (0..count)
                .map(|index| File::create(folder.path().join(index.to_string())).unwrap())
                .collect();
            let files: Vec<_> = files.iter().collect();
            for bytes in [0, u64::MAX / 2] {
                assert!(systems.sync(&files, bytes).iter().all(Result::is_ok));
            }
            assert_eq!(systems.sync(&files, 0).len(), count);
        }
    }
}
