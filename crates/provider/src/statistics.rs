//! What each process did, counted in a file of its own.
//!
//! A server's processes end without taking anything down, so that the counters are in a mapped
//! file from the start: they are there whenever somebody looks. The file is made when a process
//! makes its first context, which is after a server has forked. Its name is `wattlock-PID.stats`;
//! its bytes are a magic of 16, the process id (8), and for each [`Path`] calls, records and bytes
//! (8 each), in the machine's order.

use std::fs;
use std::io;
use std::path::{Path as FilePath, PathBuf};
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use rustix::fs::{Mode, OFlags};
use rustix::mm::{MapFlags, ProtFlags};

macro_rules! paths {
    ($($(#[$doc:meta])* $name:ident = $text:literal;)*) => {
        /// A way through the provider.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Path {
            $($(#[$doc])* $name,)*
        }

        impl Path {
            /// All of them, in the order of their numbers.
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

paths! {
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
    /// Uses of the multiblock protocol that were refused, after which it is not offered any more.
    MultiblockRefused = "multiblock-refused";
}

/// Calls, records and bytes of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Calls of OpenSSL.
    pub calls: u64,
    /// Records in them, or messages' updates.
    pub records: u64,
    /// Bytes of payload.
    pub bytes: u64,
}

#[repr(C)]
struct Cell {
    calls: AtomicU64,
    records: AtomicU64,
    bytes: AtomicU64,
}

/// The bytes of a file.
#[repr(C)]
struct Table {
    magic: [u8; 16],
    process: u64,
    cells: [Cell; Path::ALL.len()],
}

const MAGIC: [u8; 16] = *b"wattlock-stats/1";
const SUFFIX: &str = ".stats";

/// Counts where there is no file.
static HERE: Table = Table {
    magic: MAGIC,
    process: 0,
    cells: [const {
        Cell { calls: AtomicU64::new(0), records: AtomicU64::new(0), bytes: AtomicU64::new(0) }
    }; Path::ALL.len()],
};

/// The mapped file of process [`OWNER`]; null for [`HERE`]. Never unmapped, since any thread may
/// be counting.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());
static OWNER: AtomicU32 = AtomicU32::new(0);

fn table() -> &'static Table {
    // SAFETY: only mappings of a whole table are put there, which stay for ever.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }.unwrap_or(&HERE)
}

/// Counts a call with so many records and bytes.
pub(crate) fn count(path: Path, records: usize, bytes: usize) {
    let cell = &table().cells[path as usize];
    cell.calls.fetch_add(1, Ordering::Relaxed);
    cell.records.fetch_add(records as u64, Ordering::Relaxed);
    cell.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
}

/// Begins to count for this process, in a file of its own if a folder is given. A folder that
/// this process may not write to leaves the counters without a file.
pub(crate) fn begin(folder: Option<&FilePath>) {
    let process = std::process::id();
    let owner = OWNER.load(Ordering::Relaxed);
    if owner == process
        || OWNER.compare_exchange(owner, process, Ordering::Relaxed, Ordering::Relaxed).is_err()
    {
        return;
    }
    // What another process counted before it forked is in its own file.
    for cell in &HERE.cells {
        cell.calls.store(0, Ordering::Relaxed);
        cell.records.store(0, Ordering::Relaxed);
        cell.bytes.store(0, Ordering::Relaxed);
    }
    let table = folder.and_then(|folder| make(folder, process).ok());
    TABLE.store(table.unwrap_or(ptr::null_mut()), Ordering::Release);
}

/// Makes and maps the file of a process.
fn make(folder: &FilePath, process: u32) -> io::Result<*mut Table> {
    let path = folder.join(format!("wattlock-{process}{SUFFIX}"));
    // One of the same name is of a process that ended, or of another machine: left to whoever
    // has it open, and replaced.
    match fs::remove_file(&path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let file = rustix::fs::open(&path, flags, Mode::from_raw_mode(0o644))?;
    let mut start = MAGIC.to_vec();
    start.extend(u64::from(process).to_ne_bytes());
    start.resize(size_of::<Table>(), 0);
    rustix::io::write(&file, &start)?;
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
    counts: [Counts; Path::ALL.len()],
}

impl Statistics {
    /// What went that way.
    pub fn counts(&self, path: Path) -> Counts {
        self.counts[path as usize]
    }

    /// Reads a file of statistics.
    ///
    /// # Errors
    /// When it cannot be read, or is none ([`io::ErrorKind::InvalidData`]).
    pub fn read(file: &FilePath) -> io::Result<Self> {
        let bytes = fs::read(file)?;
        let numbers = bytes.strip_prefix(&MAGIC).unwrap_or_default();
        let (numbers, rest) = numbers.as_chunks::<8>();
        if !rest.is_empty() || numbers.len() != 1 + 3 * Path::ALL.len() {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!("{} is no file of statistics of this version", file.display()),
            ));
        }
        let number = |index: usize| u64::from_ne_bytes(numbers[index]);
        let counts = std::array::from_fn(|path| Counts {
            calls: number(1 + 3 * path),
            records: number(2 + 3 * path),
            bytes: number(3 + 3 * path),
        });
        Ok(Self { process: number(0), counts })
    }

    /// Reads those of all processes that counted in `folder`.
    ///
    /// # Errors
    /// As [`Statistics::read`], for the folder and each file in it.
    pub fn read_folder(folder: &FilePath) -> io::Result<Vec<Self>> {
        let mut files: Vec<PathBuf> = Vec::new();
        for entry in fs::read_dir(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if name.starts_with("wattlock-") && name.ends_with(SUFFIX) {
                files.push(entry.path());
            }
        }
        files.sort();
        files.iter().map(|file| Self::read(file)).collect()
    }
}
