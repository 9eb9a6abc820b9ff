//! Where the chunks come from: a file at any offset, or a stream from its start.

use std::fs::File;
use std::io::{self, IoSliceMut, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use rustix::io::{Errno, preadv};
use wattlock_engine::crypto::TAG_LEN;
use wattlock_engine::{Loaded, Operation};

use super::Shape;
use crate::error::Damage;
use crate::layout::Ending;
use crate::read_at::ReadAt;

/// The input of a transfer.
pub(crate) enum Source<'a> {
    /// `len` bytes of a file from `offset` on, read by all workers at once.
    File { file: &'a File, offset: u64, len: u64 },
    /// The same of something else that is read at any offset.
    At { source: &'a dyn ReadAt, offset: u64, len: u64 },
    /// A stream, read in order.
    Stream(Mutex<Stream<'a>>),
}

impl<'a> Source<'a> {
    /// A source that reads `reader` to its end.
    pub fn stream(reader: &'a mut (dyn Read + Send)) -> Self {
        Self::Stream(Mutex::new(Stream { reader, ahead: None, ended: false }))
    }
}

/// A reader, and whether it has come to its end.
pub(crate) struct Stream<'a> {
    reader: &'a mut (dyn Read + Send),
    /// A byte read to see whether there is one.
    ahead: Option<u8>,
    ended: bool,
}

impl Shape {
    /// Bytes that the input has for a full slot.
    pub(super) fn unit_len(self) -> usize {
        match self.operation {
            Operation::Seal => self.layout.chunk_len,
            Operation::Open => self.layout.slot_len(),
        }
    }

    /// Bytes at the end of a slot that the input does not have.
    fn gap(self) -> usize {
        self.layout.slot_len() - self.unit_len()
    }
}

/// Loads the chunks `wanted` of an input of `len` bytes.
pub(super) fn load_file(
    file: &File,
    offset: u64,
    len: u64,
    shape: Shape,
    wanted: Range<u64>,
    slots: &mut [u8],
) -> io::Result<Loaded> {
    load(shape, len, wanted, slots, |start, slots| {
        if shape.gap() == 0 {
            FileExt::read_exact_at(file, slots, offset + start)
        } else {
            scatter(file, offset + start, shape, slots)
        }
    })
}

/// As [`load_file`], of another source.
pub(super) fn load_at(
    source: &dyn ReadAt,
    offset: u64,
    len: u64,
    shape: Shape,
    wanted: Range<u64>,
    slots: &mut [u8],
) -> io::Result<Loaded> {
    load(shape, len, wanted, slots, |start, slots| {
        let mut at = offset + start;
        if shape.gap() == 0 {
            return source.read_exact_at(slots, at);
        }
        for slot in slots.chunks_mut(shape.layout.slot_len()) {
            let len = slot.len() - shape.gap();
            source.read_exact_at(&mut slot[..len], at)?;
            at += len as u64;
        }
        Ok(())
    })
}

/// Has `read` fill the slots of the chunks `wanted` from an offset on.
fn load(
    shape: Shape,
    len: u64,
    wanted: Range<u64>,
    slots: &mut [u8],
    read: impl FnOnce(u64, &mut [u8]) -> io::Result<()>,
) -> io::Result<Loaded> {
    let unit_len = shape.unit_len() as u64;
    let start = wanted.start * unit_len;
    let bytes = (wanted.end * unit_len).min(len) - start;
    let count = (wanted.end - wanted.start) as usize;
    let in_slots = bytes as usize + count * shape.gap();
    let slots = &mut slots[..in_slots];
    read(start, slots)?;
    let all = match shape.operation {
        Operation::Seal => shape.layout.chunks(len),
        Operation::Open => shape.layout.chunks(shape.layout.plain_len(len)?),
    };
    Ok(Loaded { len: in_slots, last: wanted.end == all })
}

/// Reads into the front of each slot, leaving room for its tag, with one system call.
fn scatter(file: &File, mut at: u64, shape: Shape, slots: &mut [u8]) -> io::Result<()> {
    let mut parts: Vec<IoSliceMut<'_>> = slots
        .chunks_mut(shape.layout.slot_len())
        .map(|slot| {
            let len = slot.len() - shape.gap();
            IoSliceMut::new(&mut slot[..len])
        })
        .filter(|part| !part.is_empty())
        .collect();
    let mut parts = &mut parts[..];
    while !parts.is_empty() {
        match preadv(file, parts, at) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                at += read as u64;
                IoSliceMut::advance_slices(&mut parts, read);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Stream<'_> {
    /// Loads the next chunks, of which the first has index `first`.
    pub fn load(&mut self, shape: Shape, first: u64, slots: &mut [u8]) -> io::Result<Loaded> {
        if self.ended {
            return Ok(Loaded { len: 0, last: true });
        }
        let mut len = 0;
        for (index, slot) in (first..).zip(slots.chunks_mut(shape.layout.slot_len())) {
            let unit = &mut slot[..shape.unit_len()];
            let read = self.fill(unit)?;
            if read == unit.len() {
                len += read + shape.gap();
                continue;
            }
            self.ended = true;
            if short_unit(shape, index, read)? {
                len += read + shape.gap();
            }
            return Ok(Loaded { len, last: true });
        }
        if shape.layout.ending == Ending::Marked {
            let mut byte = [0];
            match self.fill(&mut byte)? {
                0 => self.ended = true,
                _ => self.ahead = Some(byte[0]),
            }
        }
        Ok(Loaded { len, last: self.ended })
    }

    /// Reads until `buffer` is full or the stream ends.
    fn fill(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        if let (Some(byte), Some(place)) = (self.ahead, buffer.first_mut()) {
            *place = byte;
            self.ahead = None;
            filled = 1;
        }
        while filled < buffer.len() {
            match self.reader.read(&mut buffer[filled..]) {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

/// Whether the stream's last `read` bytes, fewer than a unit, are a chunk: chunk `index`.
fn short_unit(shape: Shape, index: u64, read: usize) -> Result<bool, Damage> {
    match (shape.operation, shape.layout.ending) {
        (Operation::Seal, Ending::Short) => Ok(true),
        (Operation::Seal, Ending::Marked) => Ok(read > 0 || index == 0),
        (Operation::Open, Ending::Marked) if read == 0 && index > 0 => Ok(false),
        (Operation::Open, _) if read < TAG_LEN => Err(Damage::Truncated),
        (Operation::Open, Ending::Marked) if read == TAG_LEN && index > 0 => {
            Err(Damage::EmptyLastChunk)
        }
        (Operation::Open, _) => Ok(true),
    }
}
