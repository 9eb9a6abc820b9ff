//! The first bytes of a segment.

use std::io::{self, Read};

use wattlock_record::{AdditionalData, SessionKey};

use super::error::Error;

/// What a segment says of itself before its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The epoch, whose session key opens its records.
    pub epoch: u32,
    /// The writer ID in its records, which no other segment has.
    pub writer: [u8; 16],
    /// The additional data of its records, in the canonical form.
    pub(crate) additional: Vec<u8>,
    commitment: [u8; 32],
}

impl Header {
    /// The header of a new segment.
    pub(crate) fn new(key: &SessionKey, epoch: u32, writer: [u8; 16], additional: Vec<u8>) -> Self {
        let commitment = commitment(key, epoch, &writer, &additional);
        Self { epoch, writer, additional, commitment }
    }

    /// Its bytes.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = MAGIC.to_vec();
        bytes.extend_from_slice(&self.epoch.to_be_bytes());
        bytes.extend_from_slice(&self.writer);
        bytes.extend_from_slice(&(self.additional.len() as u16).to_be_bytes());
        bytes.extend_from_slice(&self.additional);
        bytes.extend_from_slice(&self.commitment);
        let checksum = crc32fast::hash(&bytes);
        bytes.extend_from_slice(&checksum.to_be_bytes());
        bytes
    }

    /// Reads it from the start of a segment.
    ///
    /// # Errors
    /// [`Error::NotASegment`], [`Error::HeaderCut`], [`Error::Header`], [`Error::Io`].
    pub fn read(from: &mut impl Read) -> Result<Self, Error> {
        let mut bytes = Vec::with_capacity(FIXED_LEN + 64);
        let mut fill = |bytes: &mut Vec<u8>, len: usize| {
            let start = bytes.len();
            bytes.resize(start + len, 0);
            match from.read_exact(&mut bytes[start..]) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Err(Error::Header),
                read => read.map_err(Error::io("read the header")),
            }
        };
        fill(&mut bytes, MAGIC.len())?;
        if bytes.iter().all(|byte| *byte == 0) {
            return Err(Error::HeaderCut);
        }
        if bytes != MAGIC {
            return Err(Error::NotASegment);
        }
        fill(&mut bytes, 22)?;
        let len = u16::from_be_bytes([bytes[39], bytes[40]]).into();
        fill(&mut bytes, len)?;
        fill(&mut bytes, 32 + 4)?;
        let (front, checksum) = bytes.split_last_chunk::<4>().expect("it has four bytes");
        if crc32fast::hash(front).to_be_bytes() != *checksum {
            return Err(Error::Header);
        }
        let field = |from: usize, to: usize| &front[from..to];
        let additional = field(41, 41 + len).to_vec();
        AdditionalData::from_bytes(&additional).ok_or(Error::Header)?;
        Ok(Self {
            epoch: u32::from_be_bytes(field(19, 23).try_into().expect("4 bytes")),
            writer: field(23, 39).try_into().expect("16 bytes"),
            additional,
            commitment: field(41 + len, 73 + len).try_into().expect("32 bytes"),
        })
    }

    /// Its length.
    pub(crate) fn len(&self) -> u64 {
        (FIXED_LEN + self.additional.len()) as u64
    }

    /// What its records are bound to.
    pub fn additional_data(&self) -> AdditionalData<'_> {
        AdditionalData::from_bytes(&self.additional).unwrap_or_default()
    }

    /// Compares the commitment to the key.
    ///
    /// # Errors
    /// [`Error::OtherKey`].
    pub(crate) fn check(&self, key: &SessionKey) -> Result<(), Error> {
        // A commitment is public: the time to compare it may show where it differs.
        if commitment(key, self.epoch, &self.writer, &self.additional) == self.commitment {
            Ok(())
        } else {
            Err(Error::OtherKey(self.epoch))
        }
    }
}

/// True if `bytes` are all of a file whose header was not written to its end.
pub(super) fn is_unwritten(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(MAGIC.len())];
    bytes.len() < FIXED_LEN && MAGIC.starts_with(start)
}

/// True if a file that begins with `bytes` is a segment.
pub fn is_segment(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

fn commitment(key: &SessionKey, epoch: u32, writer: &[u8; 16], additional: &[u8]) -> [u8; 32] {
    let info = [b"wattlock-stream/v2 commitment", &epoch.to_be_bytes()[..], writer, additional];
    *key.expand(&info).expose()
}

/// The first bytes of every segment.
const MAGIC: &[u8; 19] = b"wattlock-stream/v2\n";

/// Bytes of a header without additional data.
const FIXED_LEN: usize = 19 + 4 + 16 + 2 + 32 + 4;
