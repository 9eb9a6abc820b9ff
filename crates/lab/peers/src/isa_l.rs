//! The peer `isa-l`: Intel's isa-l_crypto, opened at run time. It has AES-GCM and AES-CBC.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::mem::ManuallyDrop;

use libloading::Library;

use crate::intel_gcm::{Gcm, OneCall};
use crate::work::{NOTHING, plain};
use crate::{Absent, Operation, Peer, Work};

/// isa-l_crypto 2.24 or later.
pub(crate) struct IsaL {
    /// For keys of 128, 192 and 256 bits; GCM takes no key of 192.
    gcm: [Option<Gcm<c_int>>; 3],
    expand: [Expand; 3],
    cbc_encrypt: [Cbc; 3],
    cbc_decrypt: [Cbc; 3],
    version: String,
    /// Never closed: work holds functions of it.
    _library: ManuallyDrop<Library>,
}

/// Key, round keys to encrypt, round keys to decrypt.
type Expand = unsafe extern "C" fn(*const u8, *mut u8, *mut u8) -> c_int;

/// Input, IV, round keys, output, bytes.
type Cbc =
    unsafe extern "C" fn(*const c_void, *const c_void, *const c_void, *mut c_void, u64) -> c_int;

impl IsaL {
    /// The one that this system has.
    pub(crate) fn system() -> Result<Self, Absent> {
        let absent = |why: libloading::Error| Absent { name: "isa-l", why: why.to_string() };
        // SAFETY: loading it runs constructors that only look at the CPU.
        let library = unsafe { Library::new("libisal_crypto.so.2") }.map_err(absent)?;
        Self::of(ManuallyDrop::new(library)).map_err(absent)
    }

    fn of(library: ManuallyDrop<Library>) -> Result<Self, libloading::Error> {
        // SAFETY: here and below, the types are those that the public headers of 2.24 to 2.26
        // declare for these names, which the library keeps within a soname.
        let version =
            unsafe { symbol::<unsafe extern "C" fn() -> *const c_char>(&library, VERSION) }?;
        // SAFETY: takes nothing.
        let version = unsafe { version() };
        // SAFETY: the function returns a static text that ends in NUL.
        let version = unsafe { CStr::from_ptr(version) }.to_string_lossy();
        let gcm = |[expand, seal, open]: [&str; 3]| {
            Ok::<_, libloading::Error>(Some(Gcm {
                // SAFETY: as above.
                expand: unsafe { symbol(&library, expand) }?,
                // SAFETY: as above.
                seal: unsafe { symbol::<OneCall<c_int>>(&library, seal) }?,
                // SAFETY: as above.
                open: unsafe { symbol::<OneCall<c_int>>(&library, open) }?,
            }))
        };
        let expand = |bits: usize| {
            // SAFETY: as above.
            unsafe { symbol::<Expand>(&library, &format!("isal_aes_keyexp_{bits}\0")) }
        };
        let cbc = |direction: &str, bits: usize| {
            // SAFETY: as above.
            unsafe { symbol::<Cbc>(&library, &format!("isal_aes_cbc_{direction}_{bits}\0")) }
        };
        Ok(Self {
            gcm: [
                gcm([
                    "isal_aes_gcm_pre_128\0",
                    "isal_aes_gcm_enc_128\0",
                    "isal_aes_gcm_dec_128\0",
                ])?,
                None,
                gcm([
                    "isal_aes_gcm_pre_256\0",
                    "isal_aes_gcm_enc_256\0",
                    "isal_aes_gcm_dec_256\0",
                ])?,
            ],
            expand: [expand(128)?, expand(192)?, expand(256)?],
            cbc_encrypt: [cbc("enc", 128)?, cbc("enc", 192)?, cbc("enc", 256)?],
            cbc_decrypt: [cbc("dec", 128)?, cbc("dec", 192)?, cbc("dec", 256)?],
            version: format!("isa-l_crypto {version}"),
            _library: library,
        })
    }

    fn cbc(&self, encrypt: bool, size: usize, key: &[u8]) -> Option<Box<dyn Work>> {
        let mut keys = Box::new([RoundKeys([0; 240]), RoundKeys([0; 240])]);
        let [to_encrypt, to_decrypt] = &mut *keys;
        let (first, second) = (to_encrypt.0.as_mut_ptr(), to_decrypt.0.as_mut_ptr());
        // SAFETY: reads a key of this length, and writes 15 round keys at most into each.
        let status = unsafe { (self.expand[size])(key.as_ptr(), first, second) };
        assert_eq!(status, 0, "isa-l_crypto expands a key");
        let cbc = if encrypt { self.cbc_encrypt[size] } else { self.cbc_decrypt[size] };
        plain(move |iv, in_out| {
            assert_eq!(in_out.len() % 16, 0, "bytes beyond the last whole block");
            // The kernels read a first block in any case.
            if in_out.is_empty() {
                return NOTHING;
            }
            let iv = Iv(*iv);
            let data = in_out.as_mut_ptr().cast::<c_void>();
            let keys = &raw const keys[usize::from(!encrypt)];
            let (iv, bytes) = ((&raw const iv).cast(), in_out.len() as u64);
            // SAFETY: works on the whole blocks of `in_out` in place; IV and keys are aligned.
            let status = unsafe { cbc(data.cast_const(), iv, keys.cast(), data, bytes) };
            assert_eq!(status, 0, "isa-l_crypto works on whole blocks");
            NOTHING
        })
    }
}

impl Peer for IsaL {
    fn name(&self) -> &'static str {
        "isa-l"
    }

    fn version(&self) -> String {
        self.version.clone()
    }

    fn operation(&self, operation: &Operation, key: &[u8]) -> Option<Box<dyn Work>> {
        let size = match key.len() {
            16 => 0,
            24 => 1,
            32 => 2,
            _ => return None,
        };
        match operation {
            Operation::AesGcmSeal => self.gcm[size]?.sealing(key),
            Operation::AesGcmOpen => self.gcm[size]?.opening(key),
            Operation::AesCbcEncrypt => self.cbc(true, size, key),
            Operation::AesCbcDecrypt => self.cbc(false, size, key),
            _ => None,
        }
    }
}

/// Looks a function up.
///
/// # Safety
/// The function must have the type `F`.
unsafe fn symbol<F: Copy>(library: &Library, name: &str) -> Result<F, libloading::Error> {
    // SAFETY: the caller says so; the library is never closed.
    Ok(*unsafe { library.get::<F>(name) }?)
}

/// 15 round keys, at an address that the library asks for.
#[repr(C, align(16))]
struct RoundKeys([u8; 240]);

/// An IV, at such an address.
#[repr(C, align(16))]
struct Iv([u8; 16]);

const VERSION: &str = "isal_crypto_get_version_str\0";
