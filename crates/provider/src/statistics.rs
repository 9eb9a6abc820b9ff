//! What each process did, counted in a file of its own.
//!
//! A server's processes end without taking anything down, so that the counters are in a mapped
//! file from the start: they are there whenever somebody looks. The file is made when a process
//! makes its first context, which is after a server has forked. Its bytes are in
//! `docs/spec/provider.md`; [`Statistics`] reads them.

use std::fs;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};
use serde::Serialize;
use wattlock_engine::Lane;

macro_rules! counted {
    ($(#[$type_doc:meta])* $type:ident { $($(#[$doc:meta])* $name:ident = $text:literal;)* }) => {
        $(#[$type_doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum $type {
            $($(#[$doc])* $name,)*
        }

        impl $type {
            /// All of them, in the order of the file.
            pub const ALL: &[Self] = &[$(Self::$name,)*];

            /// The name in the statistics.
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

counted! {
    /// A way through the provider.
    Path {
        /// Updates of ECB and CBC outside TLS.
        Block = "block";
        /// Updates of CTR.
        Ctr = "ctr";
        /// Updates of GCM outside TLS 1.2, the records of TLS 1.3 among them.
        GcmStream = "gcm-stream";
        /// Single records of TLS 1.2 with GCM.
        GcmRecord = "gcm-record";
        /// Writes of TLS 1.2 with GCM that came as many records.
        GcmMultiblock = "gcm-multiblock";
        /// Single records of TLS with CBC, whose MAC libssl makes.
        CbcRecord = "cbc-record";
        /// Single records of TLS with CBC and HMAC, both made here.
        CompositeRecord = "cbc-hmac-record";
        /// Writes of TLS with CBC and HMAC that came as many records.
        CompositeMultiblock = "cbc-hmac-multiblock";
        /// Uses of the multiblock protocol that were refused, after which it is not offered any
        /// more.
        MultiblockRefused = "multiblock-refused";
        /// Writes of many records that were opened again before libssl got them, and agreed: the
        /// first of a process and suite, one of four and one of eight records. Their bytes are
        /// counted where they went.
        WriteChecked = "write-checked";
        /// Many records that did not agree with single ones, at load or in a write. They are sealed
        /// one by one from then on.
        SelfCheckFailed = "self-check-failed";
    }
}

counted! {
    /// What happened to requests that were the accelerator's.
    Event {
        /// Left the accelerator's queue for the CPU's.
        MigratedToCpu = "migrated-to-cpu";
        /// Left the CPU's queue for the accelerator's.
        MigratedToAccelerator = "migrated-to-accelerator";
        /// Done by the CPU because the accelerator erred.
        Fault = "fault";
        /// Done by the CPU because the accelerator, or its queue, took too long.
        Timeout = "timeout";
        /// Done by the CPU because the accelerator is not there, is being opened, or rests.
        Absent = "absent";
        /// Done by the CPU because the accelerator cannot do it.
        Unsupported = "unsupported";
    }
}

/// Calls, records and bytes of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Calls of OpenSSL.
    pub calls: u64,
    /// Records in them, or messages' updates.
    pub records: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

impl Counts {
    /// Both together.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls + other.calls,
            records: self.records + other.records,
            bytes: self.bytes + other.bytes,
        }
    }
}

/// Requests of a lane, by who finished them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneCounts {
    /// Requests.
    pub calls: u64,
    /// Bytes of request.
    pub bytes: u64,
}

// Where the numbers of a file are, in units of eight bytes behind the magic.
const PROCESS: usize = 0;
const THRESHOLD: usize = 1;
const DEVICE: usize = 2;
const PATHS: usize = DEVICE + DEVICE_LEN / 8;
const LANES: usize = PATHS + 3 * Path::ALL.len();
const EVENTS: usize = LANES + 2 * 2;
const NUMBERS: usize = EVENTS + Event::ALL.len();

/// Bytes of a device's name, zeros behind it.
const DEVICE_LEN: usize = 64;

/// The bytes of a file.
#[repr(C)]
struct Table {
    magic: [u8; 16],
    numbers: [AtomicU64; NUMBERS],
}

const MAGIC: [u8; 16] = *b"wattlock-stats/3";
/// The magic without its version.
const ANY_VERSION: &[u8] = b"wattlock-stats/";
const SUFFIX: &str = ".stats";

/// Counts where there is no file.
static HERE: Table = Table { magic: MAGIC, numbers: [const { AtomicU64::new(0) }; NUMBERS] };

/// The mapped file of process [`OWNER`]; null for [`HERE`]. Never unmapped, since any thread may
/// be counting.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());
static OWNER: AtomicU32 = AtomicU32::new(0);

fn table() -> &'static Table {
    // SAFETY: only mappings of a whole table are put there, which stay for ever.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }.unwrap_or(&HERE)
}

fn add(index: usize, more: u64) {
    table().numbers[index].fetch_add(more, Ordering::Relaxed);
}

/// Counts a call with so many records and bytes.
pub(crate) fn count(path: Path, records: usize, bytes: usize) {
    let first = PATHS + 3 * path as usize;
    add(first, 1);
    add(first + 1, records as u64);
    add(first + 2, bytes as u64);
}

/// Counts a request of so many bytes that a lane finished.
pub(crate) fn count_lane(lane: Lane, bytes: usize) {
    let first = index_of(lane);
    add(first, 1);
    add(first + 1, bytes as u64);
}

/// Where a lane's numbers are.
fn index_of(lane: Lane) -> usize {
    match lane {
        Lane::Cpu => LANES,
        Lane::Accelerator => LANES + 2,
    }
}

/// Counts what happened so many times.
pub(crate) fn count_event(event: Event, times: u64) {
    add(EVENTS + event as usize, times);
}

/// Notes the threshold, which may be found out while the process runs.
pub(crate) fn note_threshold(bytes: u64) {
    table().numbers[THRESHOLD].store(bytes, Ordering::Relaxed);
}

/// Begins to count for this process, in a file of its own if a folder is given. A folder that
/// this process may not write to leaves the counters without a file. True for the first call in a
/// process.
pub(crate) fn begin(folder: Option<&FilePath>) -> bool {
    let process = std::process::id();
    let owner = OWNER.load(Ordering::Relaxed);
    if owner == process
        || OWNER.compare_exchange(owner, process, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        return false;
    }
    // What another process counted before it forked is in its own file.
    for number in &HERE.numbers {
        number.store(0, Ordering::Relaxed);
    }
    let table = folder.and_then(|folder| make(folder, process).ok());
    TABLE.store(table.unwrap_or(ptr::null_mut()), Ordering::Release);
    true
}

/// Notes the accelerator that this process is to use, and what it is once it is open.
pub(crate) fn note_device(name: &str) {
    let mut bytes = [0; DEVICE_LEN];
    let len = name.floor_char_boundary(DEVICE_LEN);
    bytes[..len].copy_from_slice(&name.as_bytes()[..len]);
    let (words, _) = bytes.as_chunks::<8>();
    for (place, word) in table().numbers[DEVICE..PATHS].iter().zip(words) {
        place.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
    }
}

/// Makes and maps the file of a process. It gets its name when it is whole, so that whoever looks
/// sees no half of one.
fn make(folder: &FilePath, process: u32) -> io::Result<*mut Table> {
    let path = folder.join(format!("wattlock-{process}{SUFFIX}"));
    let unnamed = folder.join(format!("wattlock-{process}.new"));
    // One of the same name is of a process that ended, or of another machine: left to whoever
    // has it open, and replaced.
    match fs::remove_file(&unnamed) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&unnamed, flags, Mode::from_raw_mode(0o644))?;
    let mut start = MAGIC.to_vec();
    // The first of the numbers.
    start.extend(u64::from(process).to_ne_bytes());
    start.resize(size_of::<Table>(), 0);
    rustix::io::write(&file, &start)?;
    fs::rename(&unnamed, &path)?;
    let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping of the kernel's choice, of a file of that size.
    let mapped = unsafe {
        rustix::mm::mmap(ptr::null_mut(), size_of::<Table>(), read_write, shared, &file, 0)
    }?;
    Ok(mapped.cast())
}

/// What one process counted.
#[derive(Clone, Debug)]
pub struct Statistics {
    /// The process.
    pub process: u64,
    /// The accelerator that its settings name.
    pub device: Option<String>,
    numbers: [u64; NUMBERS],
}

impl Statistics {
    /// What went that way.
    pub fn counts(&self, path: Path) -> Counts {
        let first = PATHS + 3 * path as usize;
        let [calls, records, bytes] = [0, 1, 2].map(|at| self.numbers[first + at]);
        Counts { calls, records, bytes }
    }

    /// What went all ways. Checks are none.
    pub fn sum(&self) -> Counts {
        let is_way = |path: &&Path| !matches!(path, Path::WriteChecked | Path::SelfCheckFailed);
        let all = Path::ALL.iter().filter(is_way).map(|&path| self.counts(path));
        all.fold(Counts::default(), Counts::plus)
    }

    /// What came as many records at once.
    pub fn multiblock(&self) -> Counts {
        self.counts(Path::GcmMultiblock).plus(self.counts(Path::CompositeMultiblock))
    }

    /// What a lane finished. Without an accelerator there are no lanes, and nothing is counted.
    pub fn lane(&self, lane: Lane) -> LaneCounts {
        let first = index_of(lane);
        LaneCounts { calls: self.numbers[first], bytes: self.numbers[first + 1] }
    }

    /// How many requests that happened to.
    pub fn times(&self, event: Event) -> u64 {
        self.numbers[EVENTS + event as usize]
    }

    /// Bytes above which a request was the accelerator's; `None` without an accelerator.
    pub fn threshold(&self) -> Option<u64> {
        self.device.is_some().then_some(self.numbers[THRESHOLD])
    }

    /// Reads a file of statistics.
    ///
    /// # Errors
    /// When it cannot be read, or is none ([`io::ErrorKind::InvalidData`]).
    pub fn read(file: &FilePath) -> io::Result<Self> {
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot read {}: {error}", file.display()))
        };
        let bytes = fs::read(file).map_err(named)?;
        let wrong = |why: &str| {
            io::Error::new(io::ErrorKind::InvalidData, format!("{} {why}", file.display()))
        };
        let Some(numbers) = bytes.strip_prefix(&MAGIC) else {
            return Err(wrong(match bytes.starts_with(ANY_VERSION) {
                true => "is of another version of the provider",
                false => "is no file of statistics",
            }));
        };
        let (words, rest) = numbers.as_chunks::<8>();
        if !rest.is_empty() || words.len() != NUMBERS {
            return Err(wrong("is cut off, or too long"));
        }
        let name = words[DEVICE..PATHS].as_flattened();
        let name = name.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(Self {
            process: u64::from_ne_bytes(words[PROCESS]),
            device: (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned()),
            numbers: std::array::from_fn(|index| u64::from_ne_bytes(words[index])),
        })
    }

    /// Reads those of all processes that counted in `folder`, by their numbers.
    ///
    /// # Errors
    /// As [`Statistics::read`], for the folder and each file in it.
    pub fn read_folder(folder: &FilePath) -> io::Result<Vec<Self>> {
        let mut files: Vec<PathBuf> = Vec::new();
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("cannot read {}: {error}", folder.display()))
        };
        for entry in fs::read_dir(folder).map_err(named)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("wattlock-") && name.ends_with(SUFFIX) {
                files.push(entry.path());
            }
        }
        let all: io::Result<Vec<Self>> = files.iter().map(|file| Self::read(file)).collect();
        let mut all = all?;
        all.sort_by_key(|one| one.process);
        Ok(all)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod tests {
    use super::*;

    /// The file that the specification describes.
    fn file(numbers: &[(usize, u64)]) -> Vec<u8> {
        // One more than there are.
        let mut all = [0u64; 54];
        for &(index, number) in numbers {
            all[index] = number;
        }
        let numbers = all.iter().flat_map(|number| number.to_ne_bytes());
        b"wattlock-stats/3".iter().copied().chain(numbers).collect()
    }

    fn read(bytes: &[u8]) -> io::Result<Statistics> {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("wattlock-1.stats");
        fs::write(&path, bytes).unwrap();
        Statistics::read(&path)
    }

    #[test]
    fn every_number_of_a_file_is_read() {
        let name = u64::from_ne_bytes(*b"a-name\0\0");
        let mut numbers = vec![(0, 17), (1, 8192), (2, name)];
        // gcm-record, gcm-multiblock, cbc-hmac-multiblock.
        numbers.extend([(19, 2), (20, 2), (21, 30), (22, 1), (23, 8), (24, 99)]);
        numbers.extend([(31, 1), (32, 4), (33, 70)]);
        // Both lanes, the first and the last event.
        numbers.extend([(43, 5), (44, 50), (45, 6), (46, 60), (47, 7), (52, 8)]);
        let read = read(&file(&numbers)[..16 + 8 * 53]).unwrap();
        assert_eq!((read.process, read.device.as_deref()), (17, Some("a-name")));
        assert_eq!(read.threshold(), Some(8192));
        assert_eq!(read.counts(Path::GcmRecord), Counts { calls: 2, records: 2, bytes: 30 });
        assert_eq!(read.multiblock(), Counts { calls: 2, records: 12, bytes: 169 });
        assert_eq!(read.sum().bytes, 199);
        assert_eq!(read.lane(Lane::Cpu), LaneCounts { calls: 5, bytes: 50 });
        assert_eq!(read.lane(Lane::Accelerator), LaneCounts { calls: 6, bytes: 60 });
        assert_eq!(read.times(Event::MigratedToCpu), 7);
        assert_eq!(read.times(Event::Unsupported), 8);
    }

    #[test]
    fn what_is_no_file_of_statistics_is_refused() {
        let whole = &file(&[])[..16 + 8 * 53];
        assert_eq!(read(whole).unwrap().threshold(), None);
        let wrong = |bytes: &[u8]| read(bytes).unwrap_err().to_string();
        assert!(wrong(b"").ends_with("is no file of statistics"));
        assert!(wrong(b"wattlock-stats/1").ends_with("is of another version of the provider"));
        for cut in [&whole[..16], &whole[..40], &whole[..47], &file(&[])] {
            assert!(wrong(cut).ends_with("is cut off, or too long"));
        }
    }
}
