//! Batches of records, and where they end, without a key.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use super::error::Error;
use super::header::Header;

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
        Self { file, writer: header.writer, at, end, records: Vec::new() }
    }

    /// True if there is nothing behind what was read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.end
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
        let read = |bytes: &mut [u8], at| self.file.read_exact_at(bytes, at);
        read(&mut front, self.at).map_err(Error::io("read the segment"))?;
        let (len, checksum) = front.split_at(4);
        let len = u32::from_be_bytes(len.try_into().expect("4 bytes"));
        let start = self.at + BATCH_FRONT as u64;
        if len == 0 || u64::from(len) > self.end - start {
            return Ok(false);
        }
        self.records.resize(len as usize, 0);
        read(&mut self.records, start).map_err(Error::io("read the segment"))?;
        if batch_checksum(&self.writer, &self.records).to_be_bytes() != checksum {
            self.records.clear();
            return Ok(false);
        }
        self.at = start + u64::from(len);
        Ok(true)
    }

    /// Goes to the end of the last whole batch, and returns where that is.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub fn scan(mut self) -> Result<u64, Error> {
        while self.next()? {}
        Ok(self.at)
    }
}

/// The checksum in front of a batch. That of another segment's batch is another.
pub(super) fn batch_checksum(writer: &[u8; 16], records: &[u8]) -> u32 {
    let mut checksum = crc32fast::Hasher::new();
    checksum.update(writer);
    checksum.update(&(records.len() as u32).to_be_bytes());
    checksum.update(records);
    checksum.finalize()
}

/// Bytes in front of the records of a batch: their length and checksum.
pub(super) const BATCH_FRONT: usize = 8;

/// Bytes of the tail.
pub(super) const TAIL_LEN: u64 = 16;

const COMPLETE: &[u8] = b"wls2end\n";
const RECOVERED: &[u8] = b"wls2cut\n";
