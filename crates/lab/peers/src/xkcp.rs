//! The peer `xkcp`: the eXtended Keccak Code Package of the Keccak team, opened at run time. Nobody
//! packages it: `libXKCP.so` is what its users built for their CPU.

use std::ffi::{c_int, c_uint};
use std::mem::ManuallyDrop;
use std::ptr::null;
use std::rc::Rc;

use libloading::Library;

use crate::symbols::symbols;
use crate::work::{NOTHING, plain};
use crate::{Absent, Messages, Operation, Peer, Work};

/// A libXKCP with the hashes.
pub(crate) struct Xkcp {
    functions: Rc<Functions>,
    /// Never closed: work holds functions of it.
    _library: ManuallyDrop<Library>,
}

/// The hashes, and eight states where they are more than an alias of fewer.
struct Functions {
    hashes: Hashes,
    eight: Option<Eight>,
}

symbols! {
    /// Of SimpleFIPS202.h, KangarooTwelve.h and SP800-185.h.
    struct Hashes {
        sha3_256 = "SHA3_256": unsafe extern "C" fn(*mut u8, *const u8, usize) -> c_int;
        /// Message and bytes, output and bytes, customization and bytes.
        kt128 = "KT128":
            unsafe extern "C" fn(*const u8, usize, *mut u8, usize, *const u8, usize) -> c_int;
        /// Message and bits, bytes of a block, output and bits, customization and bits.
        parallel_hash_256 = "ParallelHash256": unsafe extern "C" fn(
            *const u8, usize, usize, *mut u8, usize, *const u8, usize
        ) -> c_int;
    }
}

symbols! {
    /// Eight states side by side: KeccakP-1600-times8-SnP.h.
    struct Eight {
        initialize = "KeccakP1600times8_InitializeAll": unsafe extern "C" fn(*mut States);
        /// States, lanes of a block, lanes between messages, lanes between blocks, data and bytes.
        absorb = "KeccakF1600times8_FastLoop_Absorb": unsafe extern "C" fn(
            *mut States, c_uint, c_uint, c_uint, *const u8, usize
        ) -> usize;
        /// States, which of them, data, offset and bytes.
        add = "KeccakP1600times8_AddBytes":
            unsafe extern "C" fn(*mut States, c_uint, *const u8, c_uint, c_uint);
        permute = "KeccakP1600times8_PermuteAll_24rounds": unsafe extern "C" fn(*mut States);
        extract = "KeccakP1600times8_ExtractBytes":
            unsafe extern "C" fn(*const States, c_uint, *mut u8, c_uint, c_uint);
    }
}

/// Eight states of 200 bytes.
#[repr(C, align(64))]
struct States([u8; 2048]);

impl Xkcp {
    /// The one that this system has.
    pub(crate) fn system() -> Result<Self, Absent> {
        let absent = |why: libloading::Error| Absent { name: "xkcp", why: why.to_string() };
        // SAFETY: it has no constructors.
        let library = unsafe { Library::new("libXKCP.so") }.map_err(absent)?;
        let hashes = Hashes::of(&library).map_err(absent)?;
        let functions = Rc::new(Functions { hashes, eight: Eight::of(&library).ok() });
        Ok(Self { functions, _library: ManuallyDrop::new(library) })
    }
}

impl Eight {
    /// SHA3-256 of eight messages of `len` bytes in `group`.
    fn sha3_256(&self, group: &[u8], len: usize, stride: usize, results: &mut [[u8; 32]]) {
        assert!(group.len() >= 7 * stride + len && results.len() == 8, "eight whole messages");
        let mut states = States([0; 2048]);
        let at = &raw mut states;
        // SAFETY: an implementation of eight states takes 1600 bytes at such an address.
        unsafe { (self.initialize)(at) };
        let lanes = c_uint::try_from(stride / 8).expect("messages lie close to each other");
        let (data, bytes) = (group.as_ptr(), 7 * stride + len);
        // SAFETY: reads whole blocks of each message, as far as `bytes` bytes from the first.
        let done = unsafe { (self.absorb)(at, RATE / 8, lanes, RATE / 8, data, bytes) };
        for (index, message) in (0..).zip(group.chunks(stride)) {
            // FIPS 202, section 6.1: the bits 01 and the padding 10*1.
            let mut last = [0; RATE as usize];
            let rest = &message[done..len];
            last[..rest.len()].copy_from_slice(rest);
            last[rest.len()] = 0x06;
            last[RATE as usize - 1] |= 0x80;
            // SAFETY: reads the block.
            unsafe { (self.add)(at, index, last.as_ptr(), 0, RATE) };
        }
        // SAFETY: the states were made above.
        unsafe { (self.permute)(at) };
        for (index, result) in (0..).zip(results) {
            // SAFETY: writes the 32 bytes of a result.
            unsafe { (self.extract)(at.cast_const(), index, result.as_mut_ptr(), 0, 32) };
        }
    }
}

impl Peer for Xkcp {
    fn name(&self) -> &'static str {
        "xkcp"
    }

    fn version(&self) -> String {
        let eight = if self.functions.eight.is_some() { ", with 8 states at once" } else { "" };
        format!("XKCP, version unknown{eight}")
    }

    fn operation(&self, operation: &Operation, _: &[u8]) -> Option<Box<dyn Work>> {
        let functions = Rc::clone(&self.functions);
        match operation {
            Operation::Sha3_256 => Some(Box::new(Sha3(functions))),
            Operation::Kt128 => plain(move |_, message| {
                let mut digest = NOTHING;
                let (data, out) = (message.as_ptr(), digest.as_mut_ptr());
                // SAFETY: reads the message, writes 32 bytes.
                let status =
                    unsafe { (functions.hashes.kt128)(data, message.len(), out, 32, null(), 0) };
                assert_eq!(status, 0, "XKCP hashes any message");
                digest
            }),
            Operation::ParallelHash256 => plain(move |_, message| {
                let mut digest = NOTHING;
                let (data, out) = (message.as_ptr(), digest.as_mut_ptr());
                let (bits, none) = (8 * message.len(), c"".as_ptr().cast());
                // SAFETY: reads the message, writes 32 bytes.
                let status = unsafe {
                    (functions.hashes.parallel_hash_256)(data, bits, 8192, out, 256, none, 0)
                };
                assert_eq!(status, 0, "XKCP hashes any message");
                digest
            }),
            _ => None,
        }
    }
}

struct Sha3(Rc<Functions>);

impl Work for Sha3 {
    fn run(&mut self, _: &[u8; 16], message: &mut [u8]) -> [u8; 32] {
        let mut digest = NOTHING;
        // SAFETY: reads the message, writes 32 bytes.
        let status = unsafe {
            (self.0.hashes.sha3_256)(digest.as_mut_ptr(), message.as_ptr(), message.len())
        };
        assert_eq!(status, 0, "XKCP hashes any message");
        digest
    }

    fn run_each(&mut self, iv: &[u8; 16], mut messages: Messages<'_>, results: &mut [[u8; 32]]) {
        let (len, stride) = (messages.len, messages.stride);
        let functions = Rc::clone(&self.0);
        let eight = functions.eight.as_ref().filter(|_| stride.is_multiple_of(8));
        let count = messages.iter_mut().count();
        let in_groups = if eight.is_some() { count / 8 * 8 } else { 0 };
        if let Some(eight) = eight {
            let groups = messages.buffer.chunks(8 * stride).zip(results.chunks_mut(8));
            for (group, results) in groups.take(in_groups / 8) {
                eight.sha3_256(group, len, stride, results);
            }
        }
        for (message, result) in messages.iter_mut().zip(results).skip(in_groups) {
            *result = self.run(iv, message);
        }
    }
}

/// Bytes of a block of SHA3-256.
const RATE: c_uint = 136;
