//! Which jobs the kernels can do, and the launches that do them.

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, AesKey, TAG_LEN};
use wattlock_engine::{Cipher, Job, Nonces, Operation};

use super::Error;
use super::kernels::{Argument, Kernel};
use super::keys::{Key, Lease};
use super::stream::Stream;

/// A job as the kernels see it.
#[derive(Clone, Copy)]
pub(super) enum Work<'a> {
    Ctr { key: &'a AesKey, iv: [u8; BLOCK_LEN] },
    EcbEncrypt(&'a AesKey),
    EcbDecrypt(&'a AesKey),
    CbcDecrypt { key: &'a AesKey, ivs: &'a [[u8; BLOCK_LEN]] },
    Gcm { key: &'a AeadKey, operation: Operation, nonces: Nonces },
}

/// Where a piece is on the device, and how it is cut.
#[derive(Clone, Copy, Debug)]
pub(super) struct Placed {
    /// Bytes of the first block before the piece.
    pub skip: usize,
    /// Bytes of the piece.
    pub len: usize,
    /// Of the job.
    pub chunk_len: usize,
    /// Chunks of the piece, the last of which may be shorter.
    pub chunks: usize,
    /// Bytes of the job before the piece.
    pub offset: u64,
    pub input: u64,
    /// The same as `input`, but for [`Work::CbcDecrypt`].
    pub output: u64,
    /// What [`Work::prologue`] wrote, then the other [`Side`]s.
    pub side: u64,
}

/// Parts of the memory beside a piece, in which each chunk has its own entry.
#[derive(Clone, Copy)]
pub(super) enum Side {
    /// IVs or nonces.
    Prologue,
    Masks,
    Tags,
    Partials,
}

impl Side {
    /// Where it begins, in bytes.
    pub fn at(self, chunks: usize) -> usize {
        chunks * BLOCK_LEN * self as usize
    }
}

/// Bytes beside a piece for each of its chunks: three blocks, and 32 of partial sums.
pub(super) const SIDE_LEN: usize = 35 * BLOCK_LEN;

impl<'a> Work<'a> {
    /// `None` for what only the CPU does.
    pub fn of(job: &Job<'a>) -> Option<Self> {
        let whole_blocks = job.chunk_len > 0 && job.chunk_len.is_multiple_of(BLOCK_LEN);
        let blocks = u32::try_from(job.chunk_len / BLOCK_LEN).is_ok_and(|blocks| blocks < 1 << 27);
        match job.cipher {
            _ if !blocks || job.chunk_len == 0 => None,
            Cipher::Ctr { key, iv } => Some(Self::Ctr { key, iv }),
            _ if !whole_blocks => None,
            Cipher::EcbEncrypt(key) => Some(Self::EcbEncrypt(key)),
            Cipher::EcbDecrypt(key) => Some(Self::EcbDecrypt(key)),
            Cipher::CbcDecrypt { key, ivs } => Some(Self::CbcDecrypt { key, ivs }),
            Cipher::Aead { operation, key, nonces } => {
                let gcm = key.algorithm() != AeadAlgorithm::ChaCha20Poly1305;
                gcm.then_some(Self::Gcm { key, operation, nonces })
            }
            Cipher::CbcEncrypt { .. } | Cipher::Other(_) => None,
        }
    }

    pub fn key(&self) -> Key<'a> {
        match *self {
            Self::Ctr { key, .. } | Self::EcbEncrypt(key) => Key::Encrypt(key),
            Self::EcbDecrypt(key) | Self::CbcDecrypt { key, .. } => Key::Decrypt(key),
            Self::Gcm { key, .. } => Key::Gcm(key),
        }
    }

    /// True if the kernel reads what others of its threads have replaced.
    pub fn needs_output(&self) -> bool {
        matches!(self, Self::CbcDecrypt { .. })
    }

    /// Bytes beside the piece for each of its chunks.
    pub fn side_len(&self) -> usize {
        match self {
            Self::Ctr { .. } | Self::EcbEncrypt(_) | Self::EcbDecrypt(_) => 0,
            Self::CbcDecrypt { .. } => BLOCK_LEN,
            Self::Gcm { .. } => SIDE_LEN,
        }
    }

    /// True if `len` bytes can be a piece of this; the CPU says what is wrong with others.
    pub fn fits(&self, first: u64, len: usize, placed_chunks: usize, slot_len: usize) -> bool {
        match self {
            Self::Ctr { .. } => len > 0,
            Self::EcbEncrypt(_) | Self::EcbDecrypt(_) => len > 0 && len.is_multiple_of(BLOCK_LEN),
            Self::CbcDecrypt { ivs, .. } => {
                let enough = first
                    .checked_add(placed_chunks as u64)
                    .is_some_and(|end| end <= ivs.len() as u64);
                len > 0 && len.is_multiple_of(BLOCK_LEN) && enough
            }
            Self::Gcm { .. } => {
                let last = len - (placed_chunks.max(1) - 1) * slot_len;
                last >= TAG_LEN
            }
        }
    }

    /// Writes the IVs or nonces of the chunks from `first` on, a block each.
    pub fn prologue(&self, first: u64, last: bool, chunks: usize, out: &mut [u8]) {
        let blocks = &mut out.as_chunks_mut::<BLOCK_LEN>().0[..chunks];
        match self {
            Self::Ctr { .. } | Self::EcbEncrypt(_) | Self::EcbDecrypt(_) => {}
            Self::CbcDecrypt { ivs, .. } => blocks.copy_from_slice(&ivs[first as usize..][..chunks]),
            Self::Gcm { nonces, .. } => {
                for (n, block) in blocks.iter_mut().enumerate() {
                    let chunk = first + n as u64;
                    let nonce = nonces.nonce(chunk, last && n + 1 == chunks);
                    *block = [0; BLOCK_LEN];
                    block[..nonce.len()].copy_from_slice(&nonce);
                }
            }
        }
    }

    /// Starts the kernels on `stream`.
    ///
    /// # Safety
    /// What `placed` names is on the device, with room for whole blocks, and stays there until the
    /// stream has finished.
    pub unsafe fn launch(
        &self,
        lease: &Lease<'_>,
        stream: &Stream,
        placed: &Placed,
    ) -> Result<(), Error> {
        use Argument::{Long, Word};
        let Placed { input, output, skip, len, .. } = *placed;
        let rounds = Word(lease.rounds);
        let blocks = (skip + len).div_ceil(BLOCK_LEN) as u64;
        let kernels = &lease.keyed.kernels;
        // Lanes of CTR take eight blocks each, as far as their counters go together.
        let (kernel, lanes, mut arguments) = match self {
            Self::Ctr { iv, .. } => {
                let counter = u128::from_be_bytes(*iv)
                    .wrapping_add(u128::from(placed.offset / BLOCK_LEN as u64));
                let (high, low) = ((counter >> 64) as u64, counter as u64);
                let (start, end) = (skip as u64, (skip + len) as u64);
                let range = [Long(high), Long(low), Long(start), Long(end)];
                let arguments = [rounds, Long(input), Long(output)].into_iter().chain(range);
                (Kernel::Ctr, (blocks / 256 + 2) * 32, arguments.collect())
            }
            Self::EcbEncrypt(_) => {
                let arguments = vec![rounds, Long(input), Long(output), Long(blocks)];
                (Kernel::EcbEncrypt, blocks, arguments)
            }
            Self::EcbDecrypt(_) => {
                let arguments = vec![rounds, Long(input), Long(output), Long(blocks)];
                (Kernel::EcbDecrypt, blocks, arguments)
            }
            Self::CbcDecrypt { .. } => {
                let message_blocks = Word((placed.chunk_len / BLOCK_LEN) as u32);
                let (blocks_of, ivs) = (Long(blocks), Long(placed.side));
                let arguments =
                    vec![rounds, Long(input), Long(output), ivs, blocks_of, message_blocks];
                (Kernel::CbcDecrypt, blocks, arguments)
            }
            Self::Gcm { operation, .. } => {
                // SAFETY: the caller answers for the same.
                return unsafe { gcm(*operation, lease, stream, placed) };
            }
        };
        // SAFETY: the arguments are those of `kernels/README.md`, and the caller answers for what
        // they name.
        unsafe { kernels.launch(kernel, stream, lanes, &mut arguments) }
    }
}

/// CTR and GHASH; opening, GHASH comes first, as both work in place.
///
/// # Safety
/// As [`Work::launch`].
unsafe fn gcm(
    operation: Operation,
    lease: &Lease<'_>,
    stream: &Stream,
    placed: &Placed,
) -> Result<(), Error> {
    use Argument::{Long, Word};
    let kernels = &lease.keyed.kernels;
    let chunks = placed.chunks;
    let side = |side: Side| Long(placed.side + side.at(chunks) as u64);
    let slot_len = placed.chunk_len + TAG_LEN;
    let last_len = placed.len - (chunks - 1) * slot_len - TAG_LEN;
    let lens = [Word(chunks as u32), Word(placed.chunk_len as u32), Word(last_len as u32)];
    let ctr = [
        Word(lease.rounds),
        Long(placed.input),
        Long(placed.output),
        side(Side::Prologue),
        side(Side::Masks),
    ];
    let mut ctr: Vec<_> = ctr.into_iter().chain(lens).collect();
    let ciphertext = match operation {
        Operation::Seal => placed.output,
        Operation::Open => placed.input,
    };
    let hash = [Long(lease.keyed.hash_key()), Long(ciphertext), side(Side::Partials)];
    let mut hash: Vec<_> = hash.into_iter().chain(lens).collect();
    let mut tags = [side(Side::Partials), side(Side::Masks), side(Side::Tags), lens[0]];
    let units = (chunks * (slot_len / 4096 + 1)) as u64;
    let launch = |kernel, lanes, arguments: &mut [Argument]| {
        // SAFETY: the arguments are those of `kernels/README.md`, and the caller answers for what
        // they name.
        unsafe { kernels.launch(kernel, stream, lanes, arguments) }
    };
    if operation == Operation::Seal {
        launch(Kernel::GcmCtr, units * 32, &mut ctr)?;
        launch(Kernel::Ghash, chunks as u64 * 32, &mut hash)?;
    } else {
        launch(Kernel::Ghash, chunks as u64 * 32, &mut hash)?;
        launch(Kernel::GcmCtr, units * 32, &mut ctr)?;
    }
    launch(Kernel::GcmTags, chunks as u64, &mut tags)
}

pub(super) const BLOCK_LEN: usize = AesKey::BLOCK_LEN;
