//! The part of OpenSSL's provider ABI that is used: three structs and a flat list of numbers.
//!
//! Both are frozen since OpenSSL 3.0: <https://docs.openssl.org/3.0/man7/provider-base/>,
//! `openssl/core.h` and `openssl/core_dispatch.h`.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

/// `OSSL_DISPATCH`: a function under its number. A table ends with number 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Dispatch {
    pub function_id: c_int,
    pub function: *const c_void,
}

impl Dispatch {
    pub const END: Self = Self { function_id: 0, function: ptr::null() };

    pub const fn new(function_id: c_int, function: *const c_void) -> Self {
        Self { function_id, function }
    }
}

// SAFETY: a table names functions, which are everyone's, and nothing writes to it.
unsafe impl Sync for Dispatch {}

/// `OSSL_ALGORITHM`: names, properties and functions of an algorithm. A table ends with no names.
#[repr(C)]
pub struct Algorithm {
    pub names: *const c_char,
    pub properties: *const c_char,
    pub implementation: *const Dispatch,
    pub description: *const c_char,
}

impl Algorithm {
    pub const END: Self = Self {
        names: ptr::null(),
        properties: ptr::null(),
        implementation: ptr::null(),
        description: ptr::null(),
    };
}

// SAFETY: all pointers are to constants.
unsafe impl Sync for Algorithm {}

/// `OSSL_PARAM`: a named value, or the place for one. An array ends with no key.
#[repr(C)]
pub struct Param {
    pub key: *const c_char,
    pub data_type: c_uint,
    pub data: *mut c_void,
    pub data_size: usize,
    pub return_size: usize,
}

// SAFETY: only the constant tables of what can be set and read are shared; they have no data.
unsafe impl Sync for Param {}

impl Param {
    pub const INTEGER: c_uint = 1;
    pub const UNSIGNED_INTEGER: c_uint = 2;
    pub const OCTET_STRING: c_uint = 5;
    pub const UTF8_PTR: c_uint = 6;
    pub const OCTET_PTR: c_uint = 7;

    /// `OSSL_PARAM_UNMODIFIED`.
    const UNMODIFIED: usize = usize::MAX;

    pub const END: Self = Self::described(ptr::null(), 0, 0);

    /// An entry of a table that says what can be set or read: an unsigned integer of that size.
    pub const fn unsigned<T>(key: &'static CStr) -> Self {
        Self::described(key.as_ptr(), Self::UNSIGNED_INTEGER, size_of::<T>())
    }

    /// An entry for an `int`.
    pub const fn int(key: &'static CStr) -> Self {
        Self::described(key.as_ptr(), Self::INTEGER, size_of::<c_int>())
    }

    /// An entry for bytes.
    pub const fn octets(key: &'static CStr) -> Self {
        Self::described(key.as_ptr(), Self::OCTET_STRING, 0)
    }

    /// An entry for a pointer to bytes.
    pub const fn octet_ptr(key: &'static CStr) -> Self {
        Self::described(key.as_ptr(), Self::OCTET_PTR, 0)
    }

    /// An entry for a pointer to text.
    pub const fn utf8_ptr(key: &'static CStr) -> Self {
        Self::described(key.as_ptr(), Self::UTF8_PTR, 0)
    }

    const fn described(key: *const c_char, data_type: c_uint, data_size: usize) -> Self {
        Self { key, data_type, data: ptr::null_mut(), data_size, return_size: Self::UNMODIFIED }
    }

    /// Bytes at `bytes`, declared as `size` bytes, which may not be their real number.
    pub fn octets_at(key: &'static CStr, bytes: *mut u8, size: usize) -> Self {
        Self { data: bytes.cast(), ..Self::described(key.as_ptr(), Self::OCTET_STRING, size) }
    }

    /// An unsigned integer there, or a place for one.
    pub fn number_at<T>(key: &'static CStr, place: &mut T) -> Self {
        Self { data: ptr::from_mut(place).cast(), ..Self::unsigned::<T>(key) }
    }

    /// A place into which the host is to put a pointer to text.
    pub fn text_wanted(key: &'static CStr, place: &mut *const c_char) -> Self {
        Self {
            data: ptr::from_mut(place).cast(),
            ..Self::described(key.as_ptr(), Self::UTF8_PTR, 0)
        }
    }
}

/// Numbers of the functions that the host offers (`OSSL_FUNC_CORE_…`).
pub mod host {
    use std::ffi::c_int;

    pub const GET_PARAMS: c_int = 2;
    pub const NEW_ERROR: c_int = 5;
    pub const SET_ERROR_DEBUG: c_int = 6;
    pub const VSET_ERROR: c_int = 7;
}

/// Numbers of the functions that a provider offers (`OSSL_FUNC_PROVIDER_…`).
pub mod provider {
    use std::ffi::c_int;

    pub const TEARDOWN: c_int = 1024;
    pub const GETTABLE_PARAMS: c_int = 1025;
    pub const GET_PARAMS: c_int = 1026;
    pub const QUERY_OPERATION: c_int = 1027;
    /// `OSSL_OP_CIPHER`.
    pub const OPERATION_CIPHER: c_int = 2;
}

/// Numbers of the functions of a cipher (`OSSL_FUNC_CIPHER_…`).
pub mod cipher {
    use std::ffi::c_int;

    pub const NEWCTX: c_int = 1;
    pub const ENCRYPT_INIT: c_int = 2;
    pub const DECRYPT_INIT: c_int = 3;
    pub const UPDATE: c_int = 4;
    pub const FINAL: c_int = 5;
    pub const CIPHER: c_int = 6;
    pub const FREECTX: c_int = 7;
    pub const DUPCTX: c_int = 8;
    pub const GET_PARAMS: c_int = 9;
    pub const GET_CTX_PARAMS: c_int = 10;
    pub const SET_CTX_PARAMS: c_int = 11;
    pub const GETTABLE_PARAMS: c_int = 12;
    pub const GETTABLE_CTX_PARAMS: c_int = 13;
    pub const SETTABLE_CTX_PARAMS: c_int = 14;
}

/// Names of parameters (`openssl/core_names.h`).
pub mod name {
    use std::ffi::CStr;

    pub const NAME: &CStr = c"name";
    pub const VERSION: &CStr = c"version";
    pub const BUILD_INFO: &CStr = c"buildinfo";
    pub const STATUS: &CStr = c"status";
    pub const OPENSSL_VERSION: &CStr = c"openssl-version";

    pub const MODE: &CStr = c"mode";
    pub const KEY_LEN: &CStr = c"keylen";
    pub const IV_LEN: &CStr = c"ivlen";
    pub const BLOCK_SIZE: &CStr = c"blocksize";
    pub const AEAD: &CStr = c"aead";
    pub const CUSTOM_IV: &CStr = c"custom-iv";
    pub const CTS: &CStr = c"cts";
    pub const MULTIBLOCK: &CStr = c"tls-multi";
    pub const RANDOM_KEY: &CStr = c"has-randkey";

    pub const PADDING: &CStr = c"padding";
    pub const NUM: &CStr = c"num";
    pub const IV: &CStr = c"iv";
    pub const UPDATED_IV: &CStr = c"updated-iv";
    pub const TAG: &CStr = c"tag";
    pub const TAG_LEN: &CStr = c"taglen";

    pub const TLS_VERSION: &CStr = c"tls-version";
    pub const TLS_MAC: &CStr = c"tls-mac";
    pub const TLS_MAC_SIZE: &CStr = c"tls-mac-size";
    pub const TLS_AAD: &CStr = c"tlsaad";
    pub const TLS_AAD_PAD: &CStr = c"tlsaadpad";
    pub const TLS_IV_FIXED: &CStr = c"tlsivfixed";
    pub const TLS_IV_GENERATE: &CStr = c"tlsivgen";
    pub const TLS_IV_INVOCATION: &CStr = c"tlsivinv";
    pub const MAC_KEY: &CStr = c"mackey";

    pub const MULTI_MAX_FRAGMENT: &CStr = c"tls1multi_maxsndfrag";
    pub const MULTI_MAX_BUFFER: &CStr = c"tls1multi_maxbufsz";
    pub const MULTI_INTERLEAVE: &CStr = c"tls1multi_interleave";
    pub const MULTI_AAD: &CStr = c"tls1multi_aad";
    pub const MULTI_PACKED: &CStr = c"tls1multi_aadpacklen";
    pub const MULTI_OUT: &CStr = c"tls1multi_enc";
    pub const MULTI_IN: &CStr = c"tls1multi_encin";
    pub const MULTI_OUT_LEN: &CStr = c"tls1multi_enclen";
}

/// Reasons of errors, of which every OpenSSL has the texts: those of its own providers (`openssl/proverr.h`), and those of
/// all its libraries (`openssl/err.h`). Packed as by `ERR_PACK`: a number without a library would be
/// taken for one of this provider's own reasons.
pub mod reason {
    use std::ffi::c_uint;

    pub const BAD_DECRYPT: c_uint = of_providers(100);
    pub const CIPHER_OPERATION_FAILED: c_uint = of_providers(102);
    pub const FAILED_TO_GET_PARAMETER: c_uint = of_providers(103);
    pub const FAILED_TO_SET_PARAMETER: c_uint = of_providers(104);
    pub const INVALID_KEY_LENGTH: c_uint = of_providers(105);
    pub const OUTPUT_BUFFER_TOO_SMALL: c_uint = of_providers(106);
    pub const WRONG_FINAL_BLOCK_LENGTH: c_uint = of_providers(107);
    pub const INVALID_AAD: c_uint = of_providers(108);
    pub const INVALID_IV_LENGTH: c_uint = of_providers(109);
    pub const INVALID_TAG: c_uint = of_providers(110);
    pub const NO_KEY_SET: c_uint = of_providers(114);
    pub const INVALID_DATA: c_uint = of_providers(115);
    pub const TAG_NOT_SET: c_uint = of_providers(119);
    pub const TOO_MANY_RECORDS: c_uint = of_providers(126);
    pub const INVALID_CONFIG_DATA: c_uint = of_providers(211);
    pub const INVALID_INPUT_LENGTH: c_uint = of_providers(230);

    /// `ERR_R_RAND_LIB`.
    pub const RANDOM_LIBRARY: c_uint = of_providers(36 | COMMON);
    /// `ERR_R_INTERNAL_ERROR`.
    pub const INTERNAL_ERROR: c_uint = of_providers(259 | COMMON | FATAL);
    /// `ERR_R_PASSED_INVALID_ARGUMENT`.
    pub const PASSED_INVALID_ARGUMENT: c_uint = of_providers(262 | COMMON);

    /// `ERR_RFLAG_FATAL`.
    const FATAL: c_uint = 1 << 18;
    /// `ERR_RFLAG_COMMON`.
    const COMMON: c_uint = 2 << 18;

    /// Packs a reason with `ERR_LIB_PROV`, the library of OpenSSL's providers.
    const fn of_providers(reason: c_uint) -> c_uint {
        (57 << 23) | reason
    }
}

/// Values of the parameter `mode` (`EVP_CIPH_…_MODE`).
pub mod mode {
    use std::ffi::c_uint;

    pub const ECB: c_uint = 1;
    pub const CBC: c_uint = 2;
    pub const CTR: c_uint = 5;
    pub const GCM: c_uint = 6;
}
