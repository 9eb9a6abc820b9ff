//! The table of counters: a sealed memory file, mapped into the processes that share it.
//!
//! After it is mapped, counting is atomic additions to memory: no system call, so that a process in
//! a sandbox counts as well. A process takes a row with its first count. Rows are bounded: where all
//! are taken, the row of an ended or idle process moves to the row `earlier` and is given away, and
//! a process that lost its row takes another with its next count. Marks that each count sets, and
//! each search clears, show which row is idle (the "clock" algorithm of page replacement).

use std::ffi::CString;
use std::io;
use std::mem::offset_of;
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::path::Path as FilePath;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use rustix::fs::{MemfdFlags, Mode, OFlags, SealFlags};
use rustix::mm::{MapFlags, ProtFlags};
use wattlock_engine::Lane;

use super::row::{DEVICE, DEVICE_LEN, EVENTS, NUMBERS, PATHS, Statistics, THRESHOLD, lane};
use super::{Counts, Event, Path};
use crate::error::Error;
use crate::fork;

/// Processes that have a row at a time.
const ROWS: usize = 127;

/// The bytes of a table.
#[repr(C)]
pub(super) struct Table {
    magic: [u8; 16],
    /// The OpenSSL that loaded the provider last, and the one before it of another version: a program may have two.
    loaded: [Loader; 2],
    /// Rows that were taken so far.
    taken: AtomicU64,
    /// Where the search for a row goes on.
    next: AtomicU64,
    /// What processes counted that have no row any more.
    earlier: [AtomicU64; NUMBERS],
    rows: [Row; ROWS],
}

/// An OpenSSL that loaded the provider.
#[repr(C)]
struct Loader {
    /// What [`Multiblock`] was decided for it.
    multiblock: AtomicU64,
    /// Its version, zeros behind it; all zeros for none.
    version: [AtomicU64; VERSION_LEN / 8],
}

/// Lines of the cache are no two processes'.
#[repr(C, align(64))]
struct Row {
    /// [`Owner`]; 0 for none.
    owner: AtomicU64,
    /// 1 if the row was counted in since the last search.
    used: AtomicU64,
    numbers: [AtomicU64; NUMBERS],
}

const MAGIC: [u8; 16] = *b"wattlock-stats/5";
/// The magic without its version.
const ANY_VERSION: &[u8] = b"wattlock-stats/";
/// Bytes of a version of OpenSSL.
const VERSION_LEN: usize = 32;

/// What the name of a table's memory file begins with.
pub(super) const PREFIX: &str = "wattlock:";
/// Bytes of the longest name of a service; `memfd_create` takes 249 with the prefix.
const MOST_NAME: usize = 200;

/// Whether libssl is offered to hand over many records at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub enum Multiblock {
    /// It is offered.
    Offered = 0,
    /// The setting `multiblock = 0` turns it off.
    Off = 1,
    /// This version of OpenSSL is not among those that the tests run.
    Untested = 2,
    /// The self-check at load found a difference.
    Disagreed = 3,
}

impl Multiblock {
    fn of(number: u64) -> Option<Self> {
        let all = [Self::Offered, Self::Off, Self::Untested, Self::Disagreed];
        all.into_iter().find(|one| *one as u64 == number)
    }

    /// The name in the statistics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Offered => "offered",
            Self::Off => "off",
            Self::Untested => "untested-version",
            Self::Disagreed => "self-check-failed",
        }
    }
}

/// The table of this process and those that it forks; null without statistics. It stays mapped:
/// any thread may be counting.
static TABLE: AtomicPtr<Table> = AtomicPtr::new(ptr::null_mut());

/// The row of this process; 0 for none.
static MINE: AtomicU64 = AtomicU64::new(0);

/// The owner of a row: how many were taken before (24 bits), its index (8), the process (32).
#[derive(Clone, Copy)]
struct Owner(u64);

impl Owner {
    fn new(taken: u64, index: usize, process: u32) -> Self {
        // The first of all is not 0 either: no process has that number.
        Self(taken << 40 | (index as u64) << 32 | u64::from(process))
    }

    fn index(self) -> usize {
        (self.0 >> 32 & 0xff) as usize
    }

    fn process(self) -> u64 {
        self.0 & u64::from(u32::MAX)
    }
}

/// Makes or opens the table that the setting `statistics` asks for, and maps it. At load only.
///
/// # Errors
/// [`Error::Statistics`] for a setting that names neither a service nor a table.
pub(crate) fn set_up(setting: &str) -> Result<(), Error> {
    if setting.is_empty() || setting == "0" {
        return Ok(());
    }
    static FIRST: OnceLock<Result<(), Error>> = OnceLock::new();
    *FIRST.get_or_init(|| {
        let table = if is_descriptor(setting) {
            open(FilePath::new(setting))
                .and_then(|file| map(&file))
                .map_err(|_| Error::Statistics)?
        } else if is_name(setting) {
            // Where the system has no memory files, the ciphers work all the same.
            let Ok((table, file)) = create(setting).and_then(|file| Ok((map(&file)?, file))) else {
                return Ok(());
            };
            // It stays open, so that readers find it; nothing is ever done with its number, which
            // the host may close.
            let _ = file.into_raw_fd();
            table
        } else {
            return Err(Error::Statistics);
        };
        TABLE.store(table, Ordering::Release);
        Ok(())
    })
}

/// Whether a text may be the setting `statistics`: the name of a service.
pub fn is_name(text: &str) -> bool {
    (1..=MOST_NAME).contains(&text.len()) && !text.chars().any(char::is_control)
}

/// Whether a text is the path of a descriptor: `/proc/PID/fd/N`.
fn is_descriptor(text: &str) -> bool {
    let parts: Vec<&str> = text.split('/').collect();
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    matches!(parts[..], ["", "proc", process, "fd", file] if is_number(process) && is_number(file))
}

/// A new table that cannot be cut, grown or unsealed.
fn create(name: &str) -> io::Result<OwnedFd> {
    let name = CString::new(format!("{PREFIX}{name}")).map_err(io::Error::other)?;
    let file = rustix::fs::memfd_create(&name, MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
    // Numbers below 3 are the host's standard streams, even where it has closed them.
    let file = rustix::io::fcntl_dupfd_cloexec(&file, 3)?;
    rustix::fs::ftruncate(&file, size_of::<Table>() as u64)?;
    rustix::io::pwrite(&file, &MAGIC, 0)?;
    rustix::fs::fcntl_add_seals(&file, SEALS)?;
    Ok(file)
}

const SEALS: SealFlags = SealFlags::SHRINK.union(SealFlags::GROW).union(SealFlags::SEAL);

/// Opens a table through `/proc`, to write or to read.
///
/// # Errors
/// It is not a sealed memory file that holds a table of this version.
fn reopened(path: &FilePath, flags: OFlags) -> io::Result<OwnedFd> {
    let looked_at = rustix::fs::open(path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
    let own = format!("/proc/self/fd/{}", looked_at.as_raw_fd());
    let target = rustix::fs::readlink(own.as_str(), Vec::new())?;
    if !target.to_bytes().starts_with(format!("/memfd:{PREFIX}").as_bytes()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "it is not a memory file of Wattlock",
        ));
    }
    let file = rustix::fs::open(own.as_str(), flags | OFlags::CLOEXEC, Mode::empty())?;
    let wrong = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    if !rustix::fs::fcntl_get_seals(&file)?.contains(SEALS) {
        return wrong("it is not sealed");
    }
    let mut magic = [0; MAGIC.len()];
    rustix::io::pread(&file, &mut magic, 0)?;
    if magic == MAGIC && rustix::fs::fstat(&file)?.st_size == size_of::<Table>() as i64 {
        Ok(file)
    } else if magic != MAGIC && magic.starts_with(ANY_VERSION) {
        wrong("it was made by another version of the provider")
    } else {
        wrong("it is not a table of statistics")
    }
}

fn open(path: &FilePath) -> io::Result<OwnedFd> {
    reopened(path, OFlags::RDWR)
}

fn map(file: &OwnedFd) -> io::Result<*mut Table> {
    let (read_write, shared) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::SHARED);
    // SAFETY: a new mapping of the kernel's choice, of a file of that size, which is sealed.
    let mapped = unsafe {
        rustix::mm::mmap(ptr::null_mut(), size_of::<Table>(), read_write, shared, file, 0)
    }?;
    Ok(mapped.cast())
}

fn table() -> Option<&'static Table> {
    // SAFETY: only mappings of a whole table are put there, which stay for ever.
    unsafe { TABLE.load(Ordering::Acquire).as_ref() }
}

/// The numbers to count in: those of this process's row, which it takes if it has none.
fn numbers() -> Option<&'static [AtomicU64; NUMBERS]> {
    let table = table()?;
    let mine = MINE.load(Ordering::Relaxed);
    let row = &table.rows[Owner(mine).index().min(ROWS - 1)];
    if mine == 0 || row.owner.load(Ordering::Relaxed) != mine {
        return Some(table.take(mine));
    }
    if row.used.load(Ordering::Relaxed) == 0 {
        row.used.store(1, Ordering::Relaxed);
    }
    Some(&row.numbers)
}

impl Table {
    /// Takes a row for this process in place of `before`; `earlier` if every row is in use.
    #[cold]
    fn take(&self, before: u64) -> &[AtomicU64; NUMBERS] {
        for _ in 0..3 * ROWS {
            let index = (self.next.fetch_add(1, Ordering::Relaxed) % ROWS as u64) as usize;
            let row = &self.rows[index];
            let found = row.owner.load(Ordering::Relaxed);
            if found != 0 && row.used.swap(0, Ordering::Relaxed) != 0 {
                continue;
            }
            let taken = self.taken.fetch_add(1, Ordering::Relaxed) + 1;
            let owner = Owner::new(taken, index, fork::process_id()).0;
            let (order, fail) = (Ordering::AcqRel, Ordering::Relaxed);
            if row.owner.compare_exchange(found, owner, order, fail).is_err() {
                continue;
            }
            row.used.store(1, Ordering::Relaxed);
            self.retire(row);
            // Of two threads, one gets its row, and the other gives its own back.
            return match MINE.compare_exchange(before, owner, order, Ordering::Acquire) {
                Ok(_) => &row.numbers,
                Err(other) => {
                    let _ = row.owner.compare_exchange(owner, 0, order, fail);
                    &self.rows[Owner(other).index().min(ROWS - 1)].numbers
                }
            };
        }
        &self.earlier
    }

    /// Moves the counts of the process that had a row to `earlier`.
    fn retire(&self, row: &Row) {
        for (index, number) in row.numbers.iter().enumerate() {
            let counted = number.swap(0, Ordering::Relaxed);
            if index >= PATHS {
                self.earlier[index].fetch_add(counted, Ordering::Relaxed);
            }
        }
    }
}

/// Leaves the row to the process that forked this one.
pub(crate) fn leave_row() {
    MINE.store(0, Ordering::Relaxed);
}

fn add(numbers: &[AtomicU64; NUMBERS], index: usize, more: u64) {
    numbers[index].fetch_add(more, Ordering::Relaxed);
}

/// Counts a call with its records, of bytes that are counted elsewhere.
pub(crate) fn count_call(path: Path, records: usize) {
    count(path, Counts { calls: 1, records: records as u64, bytes: 0 });
}

/// Counts calls, records and bytes of a path.
pub(super) fn count(path: Path, counts: Counts) {
    let Some(numbers) = numbers() else { return };
    let first = PATHS + 3 * path as usize;
    add(numbers, first, counts.calls);
    add(numbers, first + 1, counts.records);
    add(numbers, first + 2, counts.bytes);
}

/// Counts a request that a lane finished, and its bytes.
pub(crate) fn count_lane(of: Lane, bytes: usize) {
    let Some(numbers) = numbers() else { return };
    let first = lane(of);
    add(numbers, first, 1);
    add(numbers, first + 1, bytes as u64);
}

/// Counts an event.
pub(crate) fn count_event(event: Event, times: u64) {
    let Some(numbers) = numbers() else { return };
    add(numbers, EVENTS + event as usize, times);
}

/// Notes the threshold, which may be found out while the process runs.
pub(crate) fn note_threshold(bytes: u64) {
    let Some(numbers) = numbers() else { return };
    numbers[THRESHOLD].store(bytes, Ordering::Relaxed);
}

/// Notes the accelerator that this process is to use, and what it is once it is open.
pub(crate) fn note_device(name: &str) {
    let Some(numbers) = numbers() else { return };
    put_text::<DEVICE_LEN>(&numbers[DEVICE..PATHS], name);
}

/// Notes whether many records are offered, and which OpenSSL is asked.
pub(crate) fn note_multiblock(multiblock: Multiblock, openssl: &str) {
    let Some(table) = table() else { return };
    let [last, before] = &table.loaded;
    let mut version = [const { AtomicU64::new(0) }; VERSION_LEN / 8];
    put_text::<VERSION_LEN>(&version, openssl);
    let is_last = last
        .version
        .iter()
        .zip(&mut version)
        .all(|(one, other)| one.load(Ordering::Relaxed) == *other.get_mut());
    if !is_last {
        before.multiblock.store(last.multiblock.load(Ordering::Relaxed), Ordering::Relaxed);
        for (place, word) in before.version.iter().zip(&last.version) {
            place.store(word.load(Ordering::Relaxed), Ordering::Relaxed);
        }
    }
    last.multiblock.store(multiblock as u64, Ordering::Relaxed);
    put_text::<VERSION_LEN>(&last.version, openssl);
}

/// Puts as much of a text as fits, and zeros behind it.
fn put_text<const N: usize>(places: &[AtomicU64], text: &str) {
    let mut bytes = [0; N];
    let len = text.floor_char_boundary(N);
    bytes[..len].copy_from_slice(&text.as_bytes()[..len]);
    let (words, _) = bytes.as_chunks::<8>();
    for (place, word) in places.iter().zip(words) {
        place.store(u64::from_ne_bytes(*word), Ordering::Relaxed);
    }
}

/// An OpenSSL that loaded the provider, as it was noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loaded {
    /// The version of OpenSSL.
    pub openssl: String,
    /// Whether it is offered many records; `None` for a value of a later version.
    pub multiblock: Option<Multiblock>,
}

/// A copy of a table.
#[derive(Clone, Debug)]
pub(super) struct TableCopy {
    /// The OpenSSLs that loaded the provider: the last one first, and another that did before, if there was one.
    pub(super) loaded: Vec<Loaded>,
    /// What processes counted that have no row any more.
    pub(super) earlier: Statistics,
    /// Processes with a row, the latest first.
    pub(super) rows: Vec<Statistics>,
}

impl Loaded {
    /// That of a [`Loader`]'s numbers.
    fn of(words: &[u64]) -> Self {
        let version: Vec<u8> = words[1..].iter().flat_map(|word| word.to_ne_bytes()).collect();
        let version = version.split(|&byte| byte == 0).next().unwrap_or_default();
        Self {
            openssl: String::from_utf8_lossy(version).into_owned(),
            multiblock: Multiblock::of(words[0]),
        }
    }
}

impl TableCopy {
    /// Reads the table behind a path in `/proc`.
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidData`] for what is no sealed table of this version.
    pub(super) fn read(path: &FilePath) -> io::Result<Self> {
        Self::of(&reopened(path, OFlags::RDONLY)?)
    }

    fn of(file: &OwnedFd) -> io::Result<Self> {
        let mut bytes = vec![0; size_of::<Table>()];
        let mut len = 0;
        while len < bytes.len() {
            match rustix::io::pread(file, &mut bytes[len..], len as u64)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                more => len += more,
            }
        }
        let words: Vec<u64> =
            bytes.as_chunks::<8>().0.iter().map(|word| u64::from_ne_bytes(*word)).collect();
        let numbers = |at: usize| std::array::from_fn(|index| words[at + index]);
        let first = offset_of!(Table, loaded) / 8;
        let loaders = words[first..].chunks_exact(size_of::<Loader>() / 8).take(2);
        let loaded = loaders.map(Loaded::of).filter(|loaded| !loaded.openssl.is_empty());
        let earlier = offset_of!(Table, earlier) / 8;
        let rows = offset_of!(Table, rows) / 8;
        let mut taken: Vec<(u64, Statistics)> = (0..ROWS)
            .map(|row| rows + row * size_of::<Row>() / 8)
            .filter(|&at| words[at] != 0)
            .map(|at| {
                (words[at] >> 40, Statistics::new(Owner(words[at]).process(), numbers(at + 2)))
            })
            .collect();
        taken.sort_by_key(|(order, _)| std::cmp::Reverse(*order));
        Ok(Self {
            loaded: loaded.collect(),
            earlier: Statistics::new(0, numbers(earlier)),
            rows: taken.into_iter().map(|(_, row)| row).collect(),
        })
    }
}

/// A table for processes that this one starts: it has their counts when they have ended.
#[derive(Debug)]
pub struct SharedTable(OwnedFd);

impl SharedTable {
    /// Makes one.
    ///
    /// # Errors
    /// That the system has no memory files, or no more descriptors.
    pub fn new() -> io::Result<Self> {
        create("held").map(Self)
    }

    /// The value of the setting `statistics` with which a provider counts here. It holds as long
    /// as this process keeps the table.
    pub fn setting(&self) -> String {
        format!("/proc/{}/fd/{}", std::process::id(), self.0.as_raw_fd())
    }

    /// What each process counted, those that have ended and those without a row included.
    ///
    /// # Errors
    /// That it cannot be read.
    pub fn read(&self) -> io::Result<Vec<Statistics>> {
        let copied = TableCopy::of(&self.0)?;
        Ok(copied.rows.into_iter().chain([copied.earlier]).collect())
    }

    /// The OpenSSLs that loaded the provider: the last one first, and another that did before, if there was one.
    ///
    /// # Errors
    /// That it cannot be read.
    pub fn loaded(&self) -> io::Result<Vec<Loaded>> {
        Ok(TableCopy::of(&self.0)?.loaded)
    }
}
