//! The launches that do a piece: `kernels/README.md` as code.

use wattlock_engine::Operation;

use super::Error;
use super::kernels::{Argument, Kernel};
use super::keys::Lease;
use super::stream::Stream;
use crate::check::{ByteRange, ChecksumSeed};
use crate::task::{BLOCK, Batch, Keys, Pass};

/// Where a piece is on the device.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    pub input: u64,
    /// May be the same as `input`, but for [`Batch::CbcDecrypt`].
    pub output: u64,
    /// IVs or nonces.
    pub ivs: u64,
    /// Where the other [`Side`]s are found.
    pub side: u64,
    /// Bytes from `input` to the end of the piece.
    pub end: usize,
}

/// Parts of a piece's side memory, with an entry for each chunk.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// IVs or nonces.
    Ivs,
    Masks,
    Tags,
    /// Of GHASH: 32 blocks.
    Partials,
}

impl Side {
    /// Where it begins, in bytes.
    pub fn at(self, chunks: usize) -> usize {
        chunks * BLOCK * self as usize
    }

    /// Bytes that a chunk under `keys` needs in all of them.
    pub fn len_of(keys: &Keys) -> usize {
        if keys.hash_key.is_empty() { BLOCK } else { 35 * BLOCK }
    }
}

impl Placed {
    /// Starts the kernels for `batch` on `stream`, the first or the second time.
    ///
    /// # Safety
    /// What is named is on the device, with room for whole blocks and all sides of each chunk, and
    /// stays there until the stream has finished.
    pub unsafe fn launch(
        &self,
        lease: &Lease,
        stream: &Stream,
        batch: &Batch,
        turn: Pass,
    ) -> Result<(), Error> {
        use Argument::{Long, Word};
        let rounds = lease.rounds;
        let blocks = self.end.div_ceil(BLOCK) as u64;
        let common = [Word(rounds), Long(self.input), Long(self.output)];
        let (kernel, lanes, own) = match batch {
            Batch::Ctr { counter, start } => {
                let (high, low) = ((counter >> 64) as u64, *counter as u64);
                let own = vec![Long(high), Long(low), Long(*start as u64), Long(self.end as u64)];
                // 32 lanes take 256 blocks.
                (Kernel::Ctr, (blocks / 256 + 2) * 32, own)
            }
            Batch::CtrExtended { counter, start, lane_blocks } => {
                let (high, low) = ((counter >> 64) as u64, *counter as u64);
                let (start, end) = (Long(*start as u64), Long(self.end as u64));
                let own = vec![Long(high), Long(low), start, end, Word(*lane_blocks)];
                (Kernel::CtrExtended, blocks.div_ceil((*lane_blocks).into()), own)
            }
            Batch::EcbEncrypt => (Kernel::EcbEncrypt, blocks, vec![Long(blocks)]),
            Batch::EcbDecrypt => (Kernel::EcbDecrypt, blocks, vec![Long(blocks)]),
            Batch::CbcEncrypt { message_blocks, .. } => {
                let own = vec![Long(self.ivs), Long(blocks), Word(*message_blocks)];
                // A message is a chain of one lane.
                (Kernel::CbcEncrypt, blocks.div_ceil((*message_blocks).into()), own)
            }
            Batch::CbcDecrypt { message_blocks, .. } => {
                let own = vec![Long(self.ivs), Long(blocks), Word(*message_blocks)];
                (Kernel::CbcDecrypt, blocks, own)
            }
            Batch::Gcm { operation, chunks, chunk_len, last_len, .. } => {
                let lens = [*chunks, *chunk_len, *last_len];
                // SAFETY: the caller answers for the same.
                return unsafe { self.gcm(*operation, lens, lease, stream, &common, turn) };
            }
        };
        let mut arguments = [&common[..], &own].concat();
        // SAFETY: the arguments are those of `kernels/README.md`, and the caller answers for what
        // they name.
        unsafe { lease.keyed.kernels.launch(kernel, stream, lanes, &mut arguments, turn) }.map(drop)
    }

    /// CTR and GHASH; opening, GHASH comes first, as both work in place.
    ///
    /// # Safety
    /// As [`Placed::launch`].
    unsafe fn gcm(
        &self,
        operation: Operation,
        [chunks, chunk_len, last_len]: [u32; 3],
        lease: &Lease,
        stream: &Stream,
        common: &[Argument],
        turn: Pass,
    ) -> Result<(), Error> {
        use Argument::{Long, Word};
        let side = |side: Side| Long(self.side + side.at(chunks as usize) as u64);
        let lens = [Word(chunks), Word(chunk_len), Word(last_len)];
        let mut ctr = [common, &[Long(self.ivs), side(Side::Masks)], &lens].concat();
        let ciphertext = match operation {
            Operation::Seal => self.output,
            Operation::Open => self.input,
        };
        let hash = [Long(lease.keyed.hash_key()), Long(ciphertext), side(Side::Partials)];
        let mut hash = [&hash[..], &lens].concat();
        let mut tags = [side(Side::Partials), side(Side::Masks), side(Side::Tags), lens[0]];
        let launch = |kernel, lanes, arguments: &mut [Argument]| {
            // SAFETY: the arguments are those of `kernels/README.md`, and the caller answers for
            // what they name.
            unsafe { lease.keyed.kernels.launch(kernel, stream, lanes, arguments, turn) }.map(drop)
        };
        let chunks = u64::from(chunks);
        // 32 lanes take 256 blocks of a chunk, and hash one.
        let ctr_lanes = chunks * (u64::from(chunk_len) / 4096 + 1) * 32;
        if operation == Operation::Seal {
            launch(Kernel::GcmCtr, ctr_lanes, &mut ctr)?;
            launch(Kernel::Ghash, chunks * 32, &mut hash)?;
        } else {
            launch(Kernel::Ghash, chunks * 32, &mut hash)?;
            launch(Kernel::GcmCtr, ctr_lanes, &mut ctr)?;
        }
        launch(Kernel::GcmTags, chunks, &mut tags)
    }
}

/// What is compared, and summed, once a piece was worked on twice.
pub(super) struct Comparison {
    pub input: u64,
    pub first: u64,
    pub second: u64,
    /// Room for [`MOST_ROWS`](super::kernels::MOST_ROWS) rows.
    pub sums: u64,
    pub extent: ByteRange,
}

impl Comparison {
    /// Starts the comparison on `stream`, and returns the rows of sums that it will write.
    ///
    /// # Safety
    /// As [`Placed::launch`].
    pub unsafe fn launch(
        &self,
        lease: &Lease,
        stream: &Stream,
        salt: ChecksumSeed,
    ) -> Result<usize, Error> {
        use Argument::{Long, Word};
        let ByteRange { start, end, stride } = self.extent;
        let [a, b, c, d] = salt.words().map(Long);
        let [input, first, second, sums] =
            [self.input, self.first, self.second, self.sums].map(Long);
        let (start, end, blocks) = (Long(start), Long(end), end.div_ceil(BLOCK as u64));
        let mut arguments = [input, first, second, sums, start, end, Word(stride), a, b, c, d];
        let kernels = &lease.keyed.kernels;
        // SAFETY: the arguments are those of `kernels/README.md`, and the caller answers for what
        // they name.
        unsafe { kernels.launch(Kernel::Check, stream, blocks, &mut arguments, Pass::Only) }
    }
}
