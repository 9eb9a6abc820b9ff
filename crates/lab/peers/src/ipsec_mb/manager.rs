//! The manager of ipsec-mb: a struct whose fields are the functions of this CPU, and bursts of jobs.
//!
//! Numbers here are of `struct IMB_MGR` and `struct IMB_JOB` in intel-ipsec-mb.h. From 1.3 to 2.0
//! the fields that are used lie at the same places; only the size of a job differs.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;
use std::ptr::{NonNull, null, null_mut};
use std::rc::Rc;

use libloading::Library;

use crate::Absent;
use crate::symbols::symbols;

/// An open library and its manager, for one thread.
pub(crate) struct Manager {
    functions: Functions,
    manager: NonNull<u8>,
    job_bytes: usize,
    /// Never closed: work holds functions of it.
    _library: ManuallyDrop<Library>,
}

symbols! {
    struct Functions {
        allocate = "alloc_mb_mgr": unsafe extern "C" fn(u64) -> *mut u8;
        free = "free_mb_mgr": unsafe extern "C" fn(*mut u8);
        /// Fills in the functions for this CPU; the second argument takes which they are, or is null.
        initialize = "init_mb_mgr_auto": unsafe extern "C" fn(*mut u8, *mut c_int);
        version = "imb_get_version": unsafe extern "C" fn() -> u32;
        version_text = "imb_get_version_str": unsafe extern "C" fn() -> *const c_char;
    }
}

impl Manager {
    pub(crate) fn system() -> Result<Self, Absent> {
        let absent = |why: String| Absent { name: "ipsec-mb", why };
        let library = open().map_err(|why| absent(why.to_string()))?;
        let functions = Functions::of(&library).map_err(|why| absent(why.to_string()))?;
        // SAFETY: takes nothing.
        let version = unsafe { (functions.version)() };
        let job_bytes = match version >> 8 {
            0x103 => 200,
            0x104 | 0x105 => 240,
            0x200 => 216,
            _ => {
                let (major, minor) = (version >> 16, version >> 8 & 0xff);
                return Err(absent(format!(
                    "version {major}.{minor} is not known here; 1.3 to 1.5 and 2.0 are"
                )));
            }
        };
        // SAFETY: no flags: the library looks for AES instructions itself.
        let manager = unsafe { (functions.allocate)(0) };
        let manager = NonNull::new(manager).ok_or_else(|| absent("no manager".to_owned()))?;
        // SAFETY: the manager was just made.
        unsafe { (functions.initialize)(manager.as_ptr(), null_mut()) };
        Ok(Self { functions, manager, job_bytes, _library: ManuallyDrop::new(library) })
    }

    /// "1.3.0".
    pub(crate) fn version(&self) -> String {
        // SAFETY: takes nothing.
        let text = unsafe { (self.functions.version_text)() };
        // SAFETY: a static text that ends in NUL.
        unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
    }

    /// The function at an offset in the manager; None where this CPU got none.
    ///
    /// # Safety
    /// There must be a pointer to a function of type `F`, or null.
    pub(crate) unsafe fn function<F: Copy>(&self, offset: usize) -> Option<F> {
        const { assert!(size_of::<F>() == size_of::<*const ()>()) };
        let field = self.manager.as_ptr().wrapping_add(offset).cast::<Option<F>>();
        const { assert!(size_of::<Option<F>>() == size_of::<*const ()>()) };
        // SAFETY: the caller says that it is such a field; null is None.
        unsafe { field.read() }
    }

    /// The round keys of AES to encrypt and to decrypt; None for a key of another length.
    pub(crate) fn expand(&self, key: &[u8]) -> Option<Box<Keys>> {
        let offset = match key.len() {
            16 => KEYEXP_128,
            24 => KEYEXP_128 + 8,
            32 => KEYEXP_128 + 16,
            _ => return None,
        };
        // SAFETY: `keyexp_t` takes a key and two places for round keys.
        let expand: unsafe extern "C" fn(*const c_void, *mut c_void, *mut c_void) =
            unsafe { self.function(offset) }?;
        let mut keys = Box::new(Keys { encrypt: [0; 256], decrypt: [0; 256], bytes: key.len() });
        let (encrypt, decrypt) = (keys.encrypt.as_mut_ptr(), keys.decrypt.as_mut_ptr());
        // SAFETY: reads a key of the length that the function is for, writes 240 bytes at most into
        // each.
        unsafe { expand(key.as_ptr().cast(), encrypt.cast(), decrypt.cast()) };
        Some(keys)
    }

    /// The states of a hash after the two pads of HMAC (FIPS 198-1, section 4); None for a key that
    /// is empty or longer than a block of the hash.
    pub(crate) fn pads(&self, hash: Hash, key: &[u8]) -> Option<Box<Pads>> {
        if key.is_empty() || key.len() > hash.block_bytes() {
            return None;
        }
        // SAFETY: `hash_one_block_t` takes a block and a place for a state.
        let compress: unsafe extern "C" fn(*const c_void, *mut c_void) =
            unsafe { self.function(hash.one_block()) }?;
        let mut pads = Box::new(Pads { inner: [0; 64], outer: [0; 64] });
        for (state, byte) in [(&mut pads.inner, 0x36), (&mut pads.outer, 0x5c)] {
            let mut block = [byte; 128];
            block.iter_mut().zip(key).for_each(|(byte, key)| *byte ^= key);
            // SAFETY: reads a block of 64 or 128 bytes, writes a state of 64 bytes at most.
            unsafe { compress(block.as_ptr().cast(), state.as_mut_ptr().cast()) };
        }
        Some(pads)
    }

    /// Jobs of an algorithm; None where this CPU got no function for them.
    pub(crate) fn burst(self: &Rc<Self>, algorithm: Algorithm) -> Option<Burst> {
        let submit = match &algorithm {
            // SAFETY: the field has this type.
            Algorithm::Cipher(..) => Submit::Cipher(unsafe { self.function(CIPHER_BURST) }?),
            // SAFETY: the field has this type.
            Algorithm::Hmac(..) => Submit::Hash(unsafe { self.function(HASH_BURST) }?),
        };
        Some(Burst { manager: Rc::clone(self), algorithm, submit, jobs: Vec::new() })
    }
}

impl Drop for Manager {
    fn drop(&mut self) {
        // SAFETY: made by `system`, freed once; work holds this struct in an Rc.
        unsafe { (self.functions.free)(self.manager.as_ptr()) };
    }
}

fn open() -> Result<Library, libloading::Error> {
    // SAFETY: loading it runs no constructors that matter.
    let first = unsafe { Library::new("libIPSec_MB.so.2") };
    // SAFETY: as above.
    first.or_else(|first| unsafe { Library::new("libIPSec_MB.so.1") }.map_err(|_| first))
}

/// What the jobs of a burst do.
pub(crate) enum Algorithm {
    Cipher(Cipher, Box<Keys>),
    Hmac(Hash, Box<Pads>),
}

/// A mode of AES, in one direction.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cipher {
    Ctr,
    CbcEncrypt,
    CbcDecrypt,
}

/// A hash below HMAC, by its number in `IMB_HASH_ALG`.
#[derive(Clone, Copy)]
pub(crate) enum Hash {
    Sha1 = 1,
    Sha256 = 3,
    Sha384 = 4,
}

impl Hash {
    fn block_bytes(self) -> usize {
        if matches!(self, Self::Sha384) { 128 } else { 64 }
    }

    /// Bytes of a MAC.
    fn mac_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
        }
    }

    fn one_block(self) -> usize {
        match self {
            Self::Sha1 => 160,
            Self::Sha256 => 176,
            Self::Sha384 => 184,
        }
    }
}

/// Round keys.
#[repr(C, align(64))]
pub(crate) struct Keys {
    encrypt: [u8; 256],
    decrypt: [u8; 256],
    bytes: usize,
}

/// Hash states after the pads.
#[repr(C, align(64))]
pub(crate) struct Pads {
    inner: [u8; 64],
    outer: [u8; 64],
}

/// Jobs, mode, direction and bytes of the key; returns how many are done.
type CipherBurst = unsafe extern "C" fn(*mut u8, *mut u8, u32, c_int, c_int, c_int) -> u32;
/// Jobs and hash; returns how many are done.
type HashBurst = unsafe extern "C" fn(*mut u8, *mut u8, u32, c_int) -> u32;

enum Submit {
    Cipher(CipherBurst),
    Hash(HashBurst),
}

/// The beginning of `struct IMB_JOB`.
#[repr(C)]
struct Job {
    enc_keys: *const c_void,
    dec_keys: *const c_void,
    key_len: u64,
    src: *const u8,
    dst: *mut u8,
    cipher_start: u64,
    cipher_len: u64,
    hash_start: u64,
    hash_len: u64,
    iv: *const u8,
    iv_len: u64,
    tag: *mut u8,
    tag_len: u64,
    inner: *const u8,
    outer: *const u8,
    _aad: u64,
    status: c_int,
}

/// Messages of one length that are worked on together.
pub(crate) struct Burst {
    manager: Rc<Manager>,
    algorithm: Algorithm,
    submit: Submit,
    /// Jobs of the library's size.
    jobs: Vec<u64>,
}

impl Burst {
    /// Whether messages of that many bytes are no error. What the lanes work on is counted in 16 bits;
    /// and an empty message below HMAC spoils the jobs behind it.
    pub(crate) fn takes(&self, bytes: usize) -> bool {
        match self.algorithm {
            Algorithm::Cipher(Cipher::CbcEncrypt, _) => bytes <= MOST_BYTES,
            Algorithm::Cipher(..) => true,
            Algorithm::Hmac(..) => (1..=MOST_BYTES).contains(&bytes),
        }
    }

    /// Works on messages of `len` bytes, one every `stride` bytes of `buffer`.
    ///
    /// # Panics
    /// When the library does not complete them all.
    pub(crate) fn run(
        &mut self,
        iv: &[u8; 16],
        buffer: &mut [u8],
        len: usize,
        stride: usize,
        results: &mut [[u8; 32]],
    ) {
        match &self.algorithm {
            Algorithm::Cipher(cipher, _) if *cipher == Cipher::Ctr => {
                // The library counts in the last 32 bits alone.
                let counter = u32::from_be_bytes(*iv.last_chunk().expect("16 bytes"));
                let until = 16 * (u64::from(u32::MAX - counter) + 1);
                if until < len as u64 {
                    let head = until as usize;
                    let after = (u128::from_be_bytes(*iv) >> 32).wrapping_add(1) << 32;
                    for message in buffer.chunks_mut(stride) {
                        let (head, rest) = message[..len].split_at_mut(head);
                        let (head_len, rest_len) = (head.len(), rest.len());
                        self.submit(iv, head, head_len, head_len, results);
                        self.submit(&after.to_be_bytes(), rest, rest_len, rest_len, results);
                    }
                    return;
                }
            }
            _ => {}
        }
        self.submit(iv, buffer, len, stride, results);
    }

    fn submit(
        &mut self,
        iv: &[u8; 16],
        buffer: &mut [u8],
        len: usize,
        stride: usize,
        results: &mut [[u8; 32]],
    ) {
        let count = buffer.len().div_ceil(stride);
        assert!(count <= results.len(), "a result for each message");
        assert!((count - 1) * stride + len <= buffer.len(), "the last message is whole");
        for first in (0..count).step_by(MOST) {
            let now = MOST.min(count - first);
            let at = buffer.as_mut_ptr().wrapping_add(first * stride);
            self.submit_at(iv, at, len, stride, &mut results[first..first + now]);
        }
    }

    /// There are as many messages from `at` on as results, all within one buffer.
    fn submit_at(
        &mut self,
        iv: &[u8; 16],
        at: *mut u8,
        len: usize,
        stride: usize,
        results: &mut [[u8; 32]],
    ) {
        let bytes = self.manager.job_bytes;
        self.jobs.resize(MOST * bytes / size_of::<u64>(), 0);
        let mut macs = [[0; 64]; MOST];
        let jobs = self.jobs.as_mut_ptr().cast::<u8>();
        for (index, mac) in macs.iter_mut().enumerate().take(results.len()) {
            let data = at.wrapping_add(index * stride);
            let job = match &self.algorithm {
                Algorithm::Cipher(_, keys) => Job {
                    enc_keys: keys.encrypt.as_ptr().cast(),
                    dec_keys: keys.decrypt.as_ptr().cast(),
                    key_len: keys.bytes as u64,
                    cipher_len: len as u64,
                    iv: iv.as_ptr(),
                    iv_len: 16,
                    ..Job::on(data)
                },
                Algorithm::Hmac(hash, pads) => Job {
                    hash_len: len as u64,
                    tag: mac.as_mut_ptr(),
                    tag_len: hash.mac_bytes() as u64,
                    inner: pads.inner.as_ptr(),
                    outer: pads.outer.as_ptr(),
                    ..Job::on(data)
                },
            };
            // SAFETY: the vector has room for MOST jobs of `bytes` bytes, each larger than `Job`.
            unsafe { jobs.wrapping_add(index * bytes).cast::<Job>().write(job) };
        }
        let (manager, count) = (self.manager.manager.as_ptr(), results.len() as u32);
        let done = match (&self.algorithm, &self.submit) {
            (Algorithm::Cipher(cipher, keys), Submit::Cipher(submit)) => {
                let (mode, direction) = match cipher {
                    Cipher::Ctr => (CNTR, ENCRYPT),
                    Cipher::CbcEncrypt => (CBC, ENCRYPT),
                    Cipher::CbcDecrypt => (CBC, DECRYPT),
                };
                // SAFETY: every job works in place on a message of the caller's buffer, with keys
                // of that length; nothing of it is used after the call.
                unsafe { submit(manager, jobs, count, mode, direction, keys.bytes as c_int) }
            }
            (Algorithm::Hmac(hash, _), Submit::Hash(submit)) => {
                // SAFETY: every job reads a message of the caller's buffer and the states, and
                // writes a MAC; nothing of it is used after the call.
                unsafe { submit(manager, jobs, count, *hash as c_int) }
            }
            _ => unreachable!("`Manager::burst` matches them"),
        };
        assert_eq!(done, count, "ipsec-mb completes a burst");
        if matches!(self.algorithm, Algorithm::Hmac(..)) {
            for (result, mac) in results.iter_mut().zip(&macs) {
                result.copy_from_slice(&mac[..32]);
            }
        }
    }
}

impl Job {
    fn on(data: *mut u8) -> Self {
        Self {
            enc_keys: null(),
            dec_keys: null(),
            key_len: 0,
            src: data.cast_const(),
            dst: data,
            cipher_start: 0,
            cipher_len: 0,
            hash_start: 0,
            hash_len: 0,
            iv: null(),
            iv_len: 0,
            tag: null_mut(),
            tag_len: 0,
            inner: null(),
            outer: null(),
            _aad: 0,
            status: 0,
        }
    }
}

/// Jobs of a burst at most: IMB_MAX_BURST_SIZE.
const MOST: usize = 128;

/// Bytes of a message on lanes at most: MB_MAX_LEN16.
const MOST_BYTES: usize = (1 << 16) - 2;

const KEYEXP_128: usize = 112;
const CIPHER_BURST: usize = 992;
const HASH_BURST: usize = 1008;
/// Of keys of 128 bits; those of 192 and 256 follow.
pub(crate) const GCM_ENC: usize = 256;
/// As [`GCM_ENC`].
pub(crate) const GCM_DEC: usize = 280;
/// As [`GCM_ENC`].
pub(crate) const GCM_PRE: usize = 448;

/// IMB_CIPHER_CBC, IMB_CIPHER_CNTR, IMB_DIR_ENCRYPT and IMB_DIR_DECRYPT.
const CBC: c_int = 1;
const CNTR: c_int = 2;
const ENCRYPT: c_int = 1;
const DECRYPT: c_int = 2;
