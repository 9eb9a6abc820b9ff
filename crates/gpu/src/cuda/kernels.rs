//! The kernels by name, and what their launches need: `kernels/README.md` as code.

use std::ffi::{CStr, c_void};
use std::sync::Arc;

use super::Error;
use super::driver::{Context, Info};
use super::module::{Function, Grid, Module};
use super::stream::Stream;
use crate::check::ROW;
use crate::kernels::Tables;
use crate::task::Pass;

/// The committed kernels, for every GPU from sm_75 on.
pub(super) const PTX: &str = include_str!("../../kernels/aes.sm_75.ptx");

/// The faster tables that `info` has the shared memory for.
pub(super) fn best_tables(info: &Info) -> Tables {
    let fits = info.shared_bytes as u64 >= Tables::T4.local_bytes();
    if fits { Tables::T4 } else { Tables::T0 }
}

/// Blocks of 1024 threads that fit a multiprocessor.
fn blocks_per_multiprocessor(tables: Tables) -> u32 {
    match tables {
        Tables::T0 => 2,
        Tables::T4 => 1,
    }
}

/// What a kernel does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kernel {
    Ctr,
    CtrExtended,
    EcbEncrypt,
    EcbDecrypt,
    CbcEncrypt,
    CbcDecrypt,
    GcmCtr,
    Ghash,
    GcmTags,
    Check,
}

impl Kernel {
    const ALL: [Self; 10] = [
        Self::Ctr,
        Self::CtrExtended,
        Self::EcbEncrypt,
        Self::EcbDecrypt,
        Self::CbcEncrypt,
        Self::CbcDecrypt,
        Self::GcmCtr,
        Self::Ghash,
        Self::GcmTags,
        Self::Check,
    ];

    fn name(self, tables: Tables) -> &'static CStr {
        match (self, tables) {
            (Self::Ctr, Tables::T0) => c"wattlock_ctr_t0",
            (Self::Ctr, Tables::T4) => c"wattlock_ctr_t4",
            (Self::CtrExtended, Tables::T0) => c"wattlock_ctr_extended_t0",
            (Self::CtrExtended, Tables::T4) => c"wattlock_ctr_extended_t4",
            (Self::EcbEncrypt, Tables::T0) => c"wattlock_ecb_encrypt_t0",
            (Self::EcbEncrypt, Tables::T4) => c"wattlock_ecb_encrypt_t4",
            (Self::EcbDecrypt, Tables::T0) => c"wattlock_ecb_decrypt_t0",
            (Self::EcbDecrypt, Tables::T4) => c"wattlock_ecb_decrypt_t4",
            (Self::CbcEncrypt, Tables::T0) => c"wattlock_cbc_encrypt_t0",
            (Self::CbcEncrypt, Tables::T4) => c"wattlock_cbc_encrypt_t4",
            (Self::CbcDecrypt, Tables::T0) => c"wattlock_cbc_decrypt_t0",
            (Self::CbcDecrypt, Tables::T4) => c"wattlock_cbc_decrypt_t4",
            (Self::GcmCtr, Tables::T0) => c"wattlock_gcm_ctr_t0",
            (Self::GcmCtr, Tables::T4) => c"wattlock_gcm_ctr_t4",
            (Self::Ghash, _) => c"wattlock_ghash",
            (Self::GcmTags, _) => c"wattlock_gcm_tags",
            (Self::Check, _) => c"wattlock_check",
        }
    }

    fn shared_bytes(self, tables: Tables) -> u32 {
        let encrypting = match tables {
            Tables::T0 => 32 * 1024,
            Tables::T4 => 128 * 1024,
        };
        match self {
            Self::Ctr | Self::CtrExtended | Self::EcbEncrypt | Self::CbcEncrypt | Self::GcmCtr => {
                encrypting
            }
            Self::EcbDecrypt | Self::CbcDecrypt => encrypting + 8 * 1024,
            Self::Ghash => 16 * 1024,
            Self::GcmTags => 0,
            Self::Check => self.threads() * 8 * ROW as u32,
        }
    }

    /// Of a block.
    fn threads(self) -> u32 {
        match self {
            Self::Check => 256,
            _ => THREADS,
        }
    }
}

/// The kernels of one module, which works under one key at a time.
pub(super) struct Kernels {
    functions: [Function; 10],
    tables: Tables,
    multiprocessors: u32,
    /// Where the 240 bytes of round keys go.
    pub round_keys: u64,
}

impl Kernels {
    pub fn load(
        context: &Arc<Context>,
        ptx: &CStr,
        info: &Info,
        tables: Tables,
    ) -> Result<Self, Error> {
        let module = Module::load(context, ptx)?;
        let function = |kernel: Kernel| {
            Function::named(&module, kernel.name(tables), kernel.shared_bytes(tables))
        };
        let [a, b, c, d, e, f, g, h, i, j] = Kernel::ALL.map(function);
        Ok(Self {
            functions: [a?, b?, c?, d?, e?, f?, g?, h?, i?, j?],
            tables,
            multiprocessors: info.multiprocessors as u32,
            round_keys: module.variable(c"wattlock_round_keys", ROUND_KEYS_LEN)?,
        })
    }

    /// Starts `kernel` with enough threads for `lanes`, but no more than run at once, and returns
    /// the number of thread blocks.
    ///
    /// # Safety
    /// As [`Function::launch`].
    pub unsafe fn launch(
        &self,
        kernel: Kernel,
        stream: &Stream,
        lanes: u64,
        arguments: &mut [Argument],
        turn: Pass,
    ) -> Result<usize, Error> {
        let (blocks, shift) = self.blocks(kernel, lanes, turn);
        let (threads, shared_bytes) = (kernel.threads(), kernel.shared_bytes(self.tables));
        let grid = Grid { blocks, threads, shared_bytes };
        let mut shift = Argument::Word(shift);
        let mut pointers = [std::ptr::null_mut(); MOST_ARGUMENTS];
        let shifted = kernel != Kernel::Check;
        let all = arguments.iter_mut().chain(shifted.then_some(&mut shift));
        let mut count = 0;
        for (pointer, argument) in pointers.iter_mut().zip(all) {
            *pointer = argument.as_ptr();
            count += 1;
        }
        // SAFETY: the caller answers for the arguments, and these pointers are to them.
        unsafe { self.functions[kernel as usize].launch(stream, grid, &mut pointers[..count]) }?;
        Ok(blocks as usize)
    }

    /// Returns the number of thread blocks for `lanes`, and how far their work is shifted.
    fn blocks(&self, kernel: Kernel, lanes: u64, turn: Pass) -> (u32, u32) {
        let most = match kernel {
            Kernel::Check => (2 * self.multiprocessors).min(MOST_ROWS as u32),
            _ => self.multiprocessors * blocks_per_multiprocessor(self.tables),
        };
        let least = turn.least_groups(most as usize) as u64;
        let wanted = lanes.div_ceil(kernel.threads().into());
        let blocks = wanted.clamp(least, most.into()) as u32;
        (blocks, turn.shift(blocks as usize) as u32)
    }
}

/// A value of a kernel's parameter.
#[derive(Clone, Copy)]
pub(super) enum Argument {
    Word(u32),
    Long(u64),
}

impl Argument {
    pub fn as_ptr(&mut self) -> *mut c_void {
        match self {
            Self::Word(word) => std::ptr::from_mut(word).cast(),
            Self::Long(long) => std::ptr::from_mut(long).cast(),
        }
    }
}

/// Bytes of the round keys of the longest key.
pub(super) const ROUND_KEYS_LEN: usize = 240;

/// Threads of a block: the most that kernels are compiled for.
const THREADS: u32 = 1024;

const MOST_ARGUMENTS: usize = 12;

/// Rows of sums that a comparison writes at most: one for each block of threads.
pub(super) const MOST_ROWS: usize = 256;
