//! Replays what `dm-log-writes` recorded, as a disk would have it after a power loss.
//!
//! `replay_writes LOG` prints one line for each part of the log that ends with a flush: its number and the
//! last mark before its end. `replay_writes LOG DISK PART` writes all of a part to a disk. With a seed
//! after that, it writes what a disk may have of the part that no flush has completed: of its writes up to
//! some point those with FUA, and any of the others.
//!
//! The log is described in `Documentation/admin-guide/device-mapper/log-writes.rst` of Linux: a sector
//! with its length, then for each write a sector that describes it, and its data.

use std::env;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::process::ExitCode;

const MAGIC: u64 = 0x006a_7366_7773_6872;
const FLUSH: u64 = 1;
const FUA: u64 = 2;
const DISCARD: u64 = 4;
const MARK: u64 = 8;

/// One write of the log.
struct Entry {
    /// Where on the disk it goes, in bytes.
    at: u64,
    len: u64,
    flags: u64,
    /// Where in the log its data is.
    data: u64,
    mark: Option<String>,
}

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    match run(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("replay_writes: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &[String]) -> io::Result<()> {
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (log, rest) = words.split_first().ok_or(io::ErrorKind::InvalidInput)?;
    let log = File::open(log)?;
    let parts = parts(entries(&log)?);
    let number = |word: &str| word.parse::<u64>().map_err(io::Error::other);
    match rest {
        [] => {
            let mut mark = "start".to_owned();
            for (index, part) in parts.iter().enumerate() {
                mark = part.iter().filter_map(|e| e.mark.clone()).next_back().unwrap_or(mark);
                println!("{index} {mark} {}", part.len());
            }
            Ok(())
        }
        [disk, part] => apply(&log, disk, parts[number(part)? as usize].iter()),
        [disk, part, seed] => {
            let part = &parts[number(part)? as usize];
            let mut random = Random(number(seed)?.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
            // Before the mark `ready` the files are still being made.
            let ready = |entry: &Entry| entry.mark.as_deref() == Some("ready");
            let first = part.iter().position(ready).unwrap_or(0);
            let end = first + random.below((part.len() - first) as u64 + 1) as usize;
            // Seeds 0 and 1 are the ends: all of the writes, or those that say they are durable.
            let share = [2, 0, 1][seed.parse::<usize>().unwrap_or(2).min(2)];
            let kept = part[..end].iter().filter(|entry| {
                entry.flags & FUA != 0 || share == 2 || share == 1 && random.below(2) == 0
            });
            let kept: Vec<&Entry> = kept.collect();
            apply(&log, disk, kept.into_iter())
        }
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// All entries of a log.
fn entries(log: &File) -> io::Result<Vec<Entry>> {
    let mut head = [0; 28];
    log.read_exact_at(&mut head, 0)?;
    let word = |bytes: &[u8]| u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    let sector = u64::from(u32::from_le_bytes(head[24..28].try_into().expect("four bytes")));
    if word(&head) != MAGIC || sector == 0 {
        return Err(io::Error::other("this is no log of dm-log-writes"));
    }
    let mut place = sector;
    let mut found = Vec::new();
    for _ in 0..word(&head[16..]) {
        let mut entry = vec![0; sector as usize];
        log.read_exact_at(&mut entry, place)?;
        let (at, count) = (word(&entry) * sector, word(&entry[8..]));
        let (flags, text_len) = (word(&entry[16..]), word(&entry[24..]) as usize);
        let is_mark = flags & MARK != 0;
        let text = String::from_utf8_lossy(&entry[32..32 + text_len.min(64)]).into_owned();
        let mark = is_mark.then(|| text.trim_end_matches('\0').to_owned());
        let data = place + sector;
        place = data + if flags & (DISCARD | MARK) == 0 { count * sector } else { 0 };
        found.push(Entry { at, len: count * sector, flags, data, mark });
    }
    Ok(found)
}

/// The entries in parts, each of which ends with a flush.
fn parts(entries: Vec<Entry>) -> Vec<Vec<Entry>> {
    let mut parts = vec![Vec::new()];
    for entry in entries {
        let ends = entry.flags & FLUSH != 0;
        parts.last_mut().expect("there is one").push(entry);
        if ends {
            parts.push(Vec::new());
        }
    }
    parts
}

fn apply<'a>(log: &File, disk: &str, entries: impl Iterator<Item = &'a Entry>) -> io::Result<()> {
    let disk = OpenOptions::new().write(true).open(disk)?;
    for entry in entries.filter(|entry| entry.flags & (DISCARD | MARK) == 0) {
        let mut data = vec![0; entry.len as usize];
        log.read_exact_at(&mut data, entry.data)?;
        disk.write_all_at(&data, entry.at)?;
    }
    disk.sync_all()
}

/// Numbers that look random (xorshift64*).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16) % limit
    }
}
