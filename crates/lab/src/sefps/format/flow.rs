//! One file through its three stages: one after the other, or all at once.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use wattlock_engine::Direction;
use wattlock_engine::crypto::AesKey;
use wattlock_engine::crypto::sha3::Sha3_256;
use wattlock_file::Error;
use wattlock_file::OpenFile;
use wattlock_file::Progress;

use super::part::FilePart;
use super::stages::{Back, Crypt, Front};
use super::{Made, Sefps, Times, Variant, made};

impl Sefps<'_> {
    /// Carries all of `opened` to `sink`, which messages call `output`.
    pub(super) fn flow(
        &self,
        direction: Direction,
        opened: &OpenFile,
        output: &Path,
        sink: &mut (dyn Write + Send),
        progress: &Progress,
    ) -> Result<Made, Error> {
        let crypt = Crypt::new(self, direction)?;
        let window_len = self.variant.window_len(self.engine.threads());
        // Nothing overlaps in a single part, and threads cost more than it takes; and of a large
        // part for a small file, most is only cleared.
        let one_window = opened.known_len().filter(|len| *len < window_len as u64);
        let window_len = one_window.map_or(window_len, |len| window_for(len as usize));
        let mut road = Road {
            direction,
            front: Front::new(crypt, window_len, &opened.name, progress),
            source: &mut &opened.file,
            hash: Hash::default(),
            back: Back::new(crypt, output),
            sink,
        };
        if self.variant == Variant::Overlapped && one_window.is_none() {
            road.overlapped(window_len)?;
        } else {
            road.in_turn(window_len)?;
        }
        let (read, written) = (road.front.read, road.back.written);
        let tally = road.front.tally.and(road.back.tally);
        let times = Times { hash: road.hash.time, cipher: tally.cipher };
        Ok(made(read, written, tally.report, times))
    }
}

/// Bytes of a part that a file of `len` bytes does not fill.
fn window_for(len: usize) -> usize {
    (len + 1).next_multiple_of(AesKey::BLOCK_LEN)
}

/// The stages of one file and the ends of its way.
struct Road<'a> {
    direction: Direction,
    front: Front<'a>,
    source: &'a mut (dyn Read + Send),
    hash: Hash,
    back: Back<'a>,
    sink: &'a mut (dyn Write + Send),
}

/// The stage in the middle.
#[derive(Default)]
struct Hash {
    state: Sha3_256,
    time: Duration,
}

impl Hash {
    /// Takes the next part, and closes the last.
    fn take(&mut self, direction: Direction, part: &mut FilePart) -> Result<(), Error> {
        let started = Instant::now();
        self.state.update(part.hashed(direction));
        if part.last {
            let digest = std::mem::take(&mut self.state).finish();
            part.close(direction, digest)?;
        }
        self.time += started.elapsed();
        Ok(())
    }
}

impl Road<'_> {
    /// As in the paper: what is read is hashed before it is encrypted, and decrypted before it is
    /// hashed.
    fn in_turn(&mut self, window_len: usize) -> Result<(), Error> {
        let mut part = FilePart::new(window_len);
        while !part.last {
            self.front.next(self.source, &mut part)?;
            self.hash.take(self.direction, &mut part)?;
            self.back.take(self.sink, &mut part)?;
        }
        Ok(())
    }

    /// All stages at once, each with a part of its own.
    fn overlapped(&mut self, window_len: usize) -> Result<(), Error> {
        let Self { direction, front, source, hash, back, sink } = self;
        let (to_hash, to_be_hashed) = channel();
        let (to_back, hashed) = channel();
        let (free, empty) = channel();
        for _ in 0..WINDOWS {
            let _ = free.send(FilePart::new(window_len));
        }
        thread::scope(|scope| {
            let front = scope.spawn(move || read(front, *source, &empty, &to_hash));
            let hash = scope.spawn(move || middle(hash, *direction, &to_be_hashed, &to_back));
            let written = write(back, *sink, hashed, &free);
            drop(free);
            // When a stage fails, the stages before it cannot pass windows on, and those behind it
            // get no more. Joining from the front returns the first error in the file.
            joined(front)?;
            joined(hash)?;
            written
        })
    }
}

/// One for each stage, and one between two of them.
const WINDOWS: usize = 4;

fn read(
    front: &mut Front<'_>,
    source: &mut (dyn Read + Send),
    empty: &Receiver<FilePart>,
    to_hash: &Sender<FilePart>,
) -> Result<(), Error> {
    while let Ok(mut part) = empty.recv() {
        front.next(source, &mut part)?;
        let last = part.last;
        if to_hash.send(part).is_err() || last {
            break;
        }
    }
    Ok(())
}

fn middle(
    hash: &mut Hash,
    direction: Direction,
    to_be_hashed: &Receiver<FilePart>,
    to_back: &Sender<FilePart>,
) -> Result<(), Error> {
    while let Ok(mut part) = to_be_hashed.recv() {
        hash.take(direction, &mut part)?;
        if to_back.send(part).is_err() {
            break;
        }
    }
    Ok(())
}

/// Takes the channel, so that it closes when it fails.
fn write(
    back: &mut Back<'_>,
    sink: &mut (dyn Write + Send),
    hashed: Receiver<FilePart>,
    free: &Sender<FilePart>,
) -> Result<(), Error> {
    for mut part in hashed {
        back.take(sink, &mut part)?;
        let _ = free.send(part);
    }
    Ok(())
}

fn joined<T>(thread: ScopedJoinHandle<'_, T>) -> T {
    thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}
