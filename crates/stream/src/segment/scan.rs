//! Batches of records, and where they end, without a key.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use memchr::memmem::Finder;
use wattlock_record::{HEAD_LEN, OVERHEAD};

use super::error::Error;
use super::header::Header;
use super::varint;

/// How a segment ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tail {
    /// With its index, whose batch begins at this place.
    Complete {
        /// The place.
        index: u64,
    },
    /// A later run found that its writer was killed, and that this many bytes are whole.
    Recovered {
        /// The bytes.
        valid: u64,
    },
    /// Neither: it is being written, or its writer was killed.
    Open,
}

impl Tail {
    /// What the last bytes of a file of `len` bytes say.
    pub(super) fn read(file: &File, len: u64, header_len: u64) -> io::Result<Self> {
        let Some(at) = len.checked_sub(TAIL_LEN).filter(|at| *at >= header_len) else {
            return Ok(Self::Open);
        };
        let mut bytes = [0; TAIL_LEN as usize];
        file.read_exact_at(&mut bytes, at)?;
        let (place, mark) = bytes.split_at(8);
        let place = u64::from_be_bytes(place.try_into().expect("8 bytes"));
        let is_inside = (header_len..=at).contains(&place);
        Ok(match mark {
            COMPLETE if is_inside => Self::Complete { index: place },
            RECOVERED => Self::Recovered { valid: place },
            _ => Self::Open,
        })
    }

    /// Its bytes; none of one that is open.
    pub(super) fn to_bytes(self) -> Vec<u8> {
        match self {
            Self::Complete { index } => [&index.to_be_bytes(), COMPLETE].concat(),
            Self::Recovered { valid } => [&valid.to_be_bytes(), RECOVERED].concat(),
            Self::Open => Vec::new(),
        }
    }
}

/// The batches of a segment, one after the other.
pub(super) struct Batches<'a> {
    file: &'a File,
    writer: [u8; 16],
    /// What every record begins with, up to its counter.
    head: [u8; RECORD_START],
    /// Where the next one begins.
    pub at: u64,
    /// Where they end at the latest.
    end: u64,
    /// The records of the batch that was read last.
    pub records: Vec<u8>,
}

impl<'a> Batches<'a> {
    /// Those between two places.
    pub fn new(file: &'a File, header: &Header, at: u64, end: u64) -> Self {
        let mut head = [RECORD_VERSION; RECORD_START];
        head[1..5].copy_from_slice(&header.epoch.to_be_bytes());
        head[5..].copy_from_slice(&header.writer);
        Self { file, writer: header.writer, head, at, end, records: Vec::new() }
    }

    /// True if there is nothing behind what was read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.end
    }

    /// Where they end at the latest.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Reads the next whole batch. False if there is none: at the end, or where bytes are torn.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn next(&mut self) -> Result<bool, Error> {
        self.records.clear();
        let mut front = [0; BATCH_FRONT];
        if self.end.saturating_sub(self.at) < BATCH_FRONT as u64 {
            return Ok(false);
        }
        self.read(&mut front, self.at)?;
        let (len, checksum) = front.split_at(4);
        let len = u32::from_be_bytes(len.try_into().expect("4 bytes"));
        let start = self.at + BATCH_FRONT as u64;
        if len == 0 || u64::from(len) > self.end - start {
            return Ok(false);
        }
        self.records.resize(len as usize, 0);
        let read = self.file.read_exact_at(&mut self.records, start);
        read.map_err(Error::io("read the segment"))?;
        if batch_checksum(&self.writer, &self.records).to_be_bytes() != checksum {
            self.records.clear();
            return Ok(false);
        }
        self.at = start + u64::from(len);
        Ok(true)
    }

    /// Goes to the end of the last batch before the first that is not whole, and returns where that is.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn scan(&mut self) -> Result<u64, Error> {
        while self.next()? {}
        Ok(self.at)
    }

    /// Where a whole batch of this writer begins behind a place where none is, up to `end`. `None` if there is none: then
    /// what follows is what a crash tore, and else it is damaged. Where it would take too long to find out, it is taken
    /// for damaged, and `end` is returned.
    ///
    /// No key is needed: each record says in clear of which epoch and writer it is, and the batch has a checksum.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn find_behind(&self, end: u64) -> Result<Option<u64>, Error> {
        let finder = Finder::new(&self.head);
        let mut effort = (end - self.at.min(end)).saturating_mul(8) + LEAST_EFFORT;
        let mut window = Vec::new();
        let mut start = self.at;
        while end.saturating_sub(start) >= self.head.len() as u64 {
            window.resize(WINDOW.min((end - start) as usize), 0);
            self.read(&mut window, start)?;
            for found in finder.find_iter(&window) {
                let head = start + found as u64;
                for varint_len in 1..=LONGEST_RECORD_LEN {
                    let batch = head.checked_sub((BATCH_FRONT + varint_len) as u64);
                    let Some(batch) = batch.filter(|batch| *batch >= self.at) else { break };
                    if self.is_whole(batch, end, &mut effort)? {
                        return Ok(Some(batch));
                    }
                }
                if effort == 0 {
                    return Ok(Some(end));
                }
            }
            // One that lies across two windows is found in the next.
            start += (window.len() - (self.head.len() - 1)) as u64;
        }
        Ok(None)
    }

    /// True if a whole batch of this writer begins at a place: records whose heads say so follow each other to its end,
    /// and its checksum fits.
    fn is_whole(&self, at: u64, end: u64, effort: &mut u64) -> Result<bool, Error> {
        let mut front = [0; BATCH_FRONT];
        self.read(&mut front, at)?;
        let (len, checksum) = front.split_at(4);
        let len = u32::from_be_bytes(len.try_into().expect("4 bytes"));
        let records = at + BATCH_FRONT as u64;
        if len == 0 || u64::from(len) > end - records {
            return Ok(false);
        }
        let (mut next, batch_end) = (records, records + u64::from(len));
        while next < batch_end {
            *effort = effort.saturating_sub(STEP);
            let mut start = [0; LONGEST_RECORD_LEN + RECORD_START];
            let start =
                &mut start[..((batch_end - next) as usize).min(LONGEST_RECORD_LEN + RECORD_START)];
            self.read(start, next)?;
            let mut rest = &start[..];
            let record = varint::take(&mut rest).filter(|len| *len >= OVERHEAD as u64);
            let Some(record) = record.filter(|_| rest.starts_with(&self.head)) else {
                return Ok(false);
            };
            next += (start.len() - rest.len()) as u64 + record;
        }
        *effort = effort.saturating_sub(len.into());
        Ok(next == batch_end && self.checksum_of(records, len)?.to_be_bytes() == checksum)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> Result<(), Error> {
        self.file.read_exact_at(bytes, at).map_err(Error::io("read the segment"))
    }

    /// The checksum of a batch whose records are at a place.
    fn checksum_of(&self, records: u64, len: u32) -> Result<u32, Error> {
        let mut checksum = front_checksum(&self.writer, len);
        let mut piece = vec![0; WINDOW.min(len as usize)];
        let mut done = 0;
        while done < len as usize {
            let piece = &mut piece[..WINDOW.min(len as usize - done)];
            self.read(piece, records + done as u64)?;
            checksum.update(piece);
            done += piece.len();
        }
        Ok(checksum.finalize())
    }

    /// The counter of the first record of the batch that was read last.
    pub fn first_counter(&self) -> Option<u64> {
        let mut rest = &self.records[..];
        varint::take(&mut rest)?;
        let head = rest.first_chunk::<HEAD_LEN>()?;
        Some(u64::from_be_bytes(*head.last_chunk()?))
    }
}

/// The checksum in front of a batch. That of another segment's batch is another.
pub(super) fn batch_checksum(writer: &[u8; 16], records: &[u8]) -> u32 {
    let mut checksum = front_checksum(writer, records.len() as u32);
    checksum.update(records);
    checksum.finalize()
}

/// The checksum of a batch before its records are added.
fn front_checksum(writer: &[u8; 16], len: u32) -> crc32fast::Hasher {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(writer);
    checksum.update(&len.to_be_bytes());
    checksum
}

/// Bytes in front of the records of a batch: their length and checksum.
pub(super) const BATCH_FRONT: usize = 8;

/// Bytes of the tail.
pub(super) const TAIL_LEN: u64 = 16;

/// The version in the head of a record.
const RECORD_VERSION: u8 = 1;

/// Bytes of a record's head in front of its counter: version, epoch and writer ID.
const RECORD_START: usize = HEAD_LEN - 8;

/// Bytes of the length in front of the longest record.
const LONGEST_RECORD_LEN: usize = 4;

/// Bytes that are read at once when a batch is looked for.
const WINDOW: usize = 1 << 20;

/// Bytes that are summed up before a search is given up, besides eight times those that are searched: only bytes that
/// somebody chose for that take so many.
const LEAST_EFFORT: u64 = 1 << 30;

/// What a look at a record counts as, in such bytes.
const STEP: u64 = 256;

const COMPLETE: &[u8] = b"wls2end\n";
const RECOVERED: &[u8] = b"wls2cut\n";
