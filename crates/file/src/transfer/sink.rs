//! Where the finished chunks go: a file at any offset, a stream in order, a comparison, nowhere.

use std::fs::File;
use std::io::{self, IoSlice, Write};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use rustix::io::{Errno, pwritev};
use zeroize::Zeroizing;

use super::reseal::Reseal;
use crate::error::NotEqual;
use crate::lock::lock;
use crate::read_at;

/// The output of a transfer.
pub(crate) enum Sink<'a> {
    /// A file, written by all workers at once; `front` stands before the first chunk.
    File { file: &'a File, front: &'a [u8] },
    /// A new file, written by all workers at once, with holes in place of zeros.
    Sparse(Sparse<'a>),
    /// Memory, of which every byte is written.
    Memory(Mutex<&'a mut [u8]>),
    /// A stream, written in order.
    Stream(Ordered<'a>),
    /// Something that must hold the same bytes already.
    Equals(&'a dyn read_at::ReadAt),
    /// A new container, for which all of it is sealed again.
    Resealed(Reseal<'a>),
    /// Nowhere: only the tags are of interest.
    Nothing,
}

/// A writer, and what it was given.
pub(crate) struct Ordered<'a> {
    writer: Mutex<&'a mut (dyn Write + Send)>,
    released: AtomicU64,
}

/// A new file that gets holes.
pub(crate) struct Sparse<'a> {
    file: &'a File,
    /// True if zeros are written, too: there may be something in their place.
    dense: AtomicBool,
}

impl<'a> Sink<'a> {
    /// A sink that writes to `file`, which is empty, and leaves out zeros.
    pub fn sparse(file: &'a File) -> Self {
        Self::Sparse(Sparse { file, dense: AtomicBool::new(false) })
    }

    /// Notes that something that was stored is stored again; false if that cannot be.
    pub(super) fn take_back(&self) -> bool {
        if let Self::Sparse(sparse) = self {
            sparse.dense.store(true, Ordering::SeqCst);
        }
        !matches!(self, Self::Stream(_) | Self::Resealed(_))
    }

    /// A sink that fills `memory`.
    pub fn memory(memory: &'a mut [u8]) -> Self {
        Self::Memory(Mutex::new(memory))
    }

    /// A sink that writes to `writer`, in order.
    pub fn stream(writer: &'a mut (dyn Write + Send)) -> Self {
        Self::Stream(Ordered { writer: Mutex::new(writer), released: AtomicU64::new(0) })
    }

    pub(super) fn released(&self) -> u64 {
        match self {
            Self::Stream(ordered) => ordered.released.load(Ordering::Relaxed),
            _ => 0,
        }
    }

    /// Takes `parts`, to be put at byte `at` of the output.
    pub(super) fn store(&self, at: u64, parts: &[&[u8]]) -> io::Result<()> {
        match self {
            // With the first chunk, so that a small output takes one call.
            Self::File { file, front } if at == 0 && !front.is_empty() => {
                gather(file, 0, &[&[*front], parts].concat())
            }
            Self::File { file, front } => gather(file, front.len() as u64 + at, parts),
            Self::Sparse(sparse) => sparse.store(at, parts),
            Self::Memory(memory) => {
                let mut memory = lock(memory);
                let mut at = at as usize;
                for part in parts {
                    let room = memory.get_mut(at..at + part.len());
                    room.ok_or(io::ErrorKind::WriteZero)?.copy_from_slice(part);
                    at += part.len();
                }
                Ok(())
            }
            Self::Stream(Ordered { writer, released }) => {
                let mut writer = lock(writer);
                for part in parts {
                    writer.write_all(part)?;
                    released.fetch_add(part.len() as u64, Ordering::Relaxed);
                }
                Ok(())
            }
            Self::Equals(other) => compare(*other, at, parts),
            Self::Nothing => Ok(()),
            Self::Resealed(_) => Err(io::Error::other("chunks are sealed again as a whole")),
        }
    }
}

/// Writes `parts` one after the other from `at` on, with one system call where it takes them all.
fn gather(file: &File, mut at: u64, parts: &[&[u8]]) -> io::Result<()> {
    if let [part] = parts {
        return file.write_all_at(part, at);
    }
    let mut parts: Vec<IoSlice<'_>> =
        parts.iter().filter(|part| !part.is_empty()).map(|part| IoSlice::new(part)).collect();
    let mut parts = &mut parts[..];
    while !parts.is_empty() {
        match pwritev(file, parts, at) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => {
                at += written as u64;
                IoSlice::advance_slices(&mut parts, written);
            }
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

impl Sparse<'_> {
    /// Writes the blocks of `parts` that are not all zero, and leaves out the others.
    fn store(&self, mut at: u64, parts: &[&[u8]]) -> io::Result<()> {
        static ZEROS: [u8; BLOCK_LEN] = [0; BLOCK_LEN];
        if self.dense.load(Ordering::SeqCst) {
            return gather(self.file, at, parts);
        }
        let is_zero = |block: &[u8]| *block == ZEROS[..block.len()];
        for part in parts {
            let blocks: Vec<&[u8]> = part.chunks(BLOCK_LEN).collect();
            for run in blocks.chunk_by(|one, other| is_zero(one) == is_zero(other)) {
                if !is_zero(run[0]) {
                    gather(self.file, at, run)?;
                }
                at += run.iter().map(|block| block.len() as u64).sum::<u64>();
            }
        }
        Ok(())
    }
}

/// File systems allocate space in such blocks, or larger ones.
const BLOCK_LEN: usize = 4096;

fn compare(other: &dyn read_at::ReadAt, mut at: u64, parts: &[&[u8]]) -> io::Result<()> {
    let mut buffer = Zeroizing::new(Vec::new());
    for part in parts {
        buffer.resize(part.len(), 0);
        let same = match other.read_exact_at(&mut buffer, at) {
            Ok(()) => buffer[..] == **part,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(error),
        };
        if !same {
            return Err(io::Error::new(io::ErrorKind::InvalidData, NotEqual));
        }
        at += part.len() as u64;
    }
    Ok(())
}
