//! The functions of libcrypto that the peers need, as a table of pointers. The same list is filled
//! from a library opened at run time and from the archive that was linked in.

use super::Error;
use libloading::Library;
use std::ffi::{c_char, c_int, c_uint, c_void};

/// Types that only libcrypto looks into.
macro_rules! opaque {
    ($($name:ident),*) => { $(
        #[repr(C)]
        pub(super) struct $name {
            _private: [u8; 0],
        }
    )* };
}

opaque!(LibraryContext, Provider, CipherMethod, CipherContext);
opaque!(DigestMethod, DigestContext, MacMethod, MacContext);

/// `OSSL_PARAM` of openssl/core.h.
#[repr(C)]
pub(super) struct Parameter {
    pub(super) key: *const c_char,
    pub(super) data_type: c_uint,
    pub(super) data: *mut c_void,
    pub(super) data_size: usize,
    pub(super) return_size: usize,
}

/// Declares the table, both ways to fill it, and the extern symbols.
macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        /// One pointer per function, under the function's own name.
        #[allow(non_snake_case)]
        pub(super) struct Functions {
            $(pub(super) $name: unsafe extern "C" fn($($kind),*) $(-> $result)?,)*
        }

        impl Functions {
            /// Looks every function up in a library that was opened at run time. The pointers are
            /// good for as long as the library stays open.
            pub(super) fn of(library: &Library) -> Result<Self, Error> {
                Ok(Self {
                    $($name: {
                        let name = stringify!($name);
                        // SAFETY: the field has the type that the public headers of OpenSSL 3 and
                        // 4 declare for this name, and libcrypto keeps it within a soname.
                        let symbol = unsafe { library.get(concat!(stringify!($name), "\0")) };
                        *symbol.map_err(|source| Error::Symbol { name, source })?
                    },)*
                })
            }

            /// The functions of the libcrypto that is linked into this program.
            #[cfg(feature = "openssl-vendored")]
            pub(super) fn linked() -> Self {
                Self { $($name: linked::$name,)* }
            }
        }

        #[cfg(feature = "openssl-vendored")]
        mod linked {
            use super::*;

            unsafe extern "C" {
                $(pub(super) fn $name($($argument: $kind),*) $(-> $result)?;)*
            }
        }
    };
}

functions! {
    OpenSSL_version(what: c_int) -> *const c_char;

    OSSL_LIB_CTX_new() -> *mut LibraryContext;
    OSSL_LIB_CTX_free(context: *mut LibraryContext);
    OSSL_PROVIDER_load(context: *mut LibraryContext, name: *const c_char) -> *mut Provider;
    OSSL_PROVIDER_unload(provider: *mut Provider) -> c_int;

    EVP_CIPHER_fetch(
        context: *mut LibraryContext, name: *const c_char, properties: *const c_char
    ) -> *mut CipherMethod;
    EVP_CIPHER_free(method: *mut CipherMethod);
    EVP_CIPHER_get_key_length(method: *const CipherMethod) -> c_int;
    EVP_CIPHER_get_iv_length(method: *const CipherMethod) -> c_int;
    EVP_CIPHER_get_block_size(method: *const CipherMethod) -> c_int;
    EVP_CIPHER_CTX_new() -> *mut CipherContext;
    EVP_CIPHER_CTX_free(context: *mut CipherContext);
    EVP_CIPHER_CTX_set_key_length(context: *mut CipherContext, bytes: c_int) -> c_int;
    EVP_CIPHER_CTX_set_padding(context: *mut CipherContext, on: c_int) -> c_int;
    EVP_CIPHER_CTX_ctrl(
        context: *mut CipherContext, command: c_int, bytes: c_int, data: *mut c_void
    ) -> c_int;
    EVP_CipherInit_ex2(
        context: *mut CipherContext, method: *const CipherMethod, key: *const u8, iv: *const u8,
        encrypt: c_int, parameters: *const c_void
    ) -> c_int;
    EVP_CipherUpdate(
        context: *mut CipherContext, out: *mut u8, out_bytes: *mut c_int, input: *const u8,
        bytes: c_int
    ) -> c_int;
    EVP_CipherFinal_ex(
        context: *mut CipherContext, out: *mut u8, out_bytes: *mut c_int
    ) -> c_int;

    EVP_MD_fetch(
        context: *mut LibraryContext, name: *const c_char, properties: *const c_char
    ) -> *mut DigestMethod;
    EVP_MD_free(method: *mut DigestMethod);
    EVP_MD_get_size(method: *const DigestMethod) -> c_int;
    EVP_MD_CTX_new() -> *mut DigestContext;
    EVP_MD_CTX_free(context: *mut DigestContext);
    EVP_DigestInit_ex2(
        context: *mut DigestContext, method: *const DigestMethod, parameters: *const c_void
    ) -> c_int;
    EVP_DigestUpdate(context: *mut DigestContext, data: *const c_void, bytes: usize) -> c_int;
    EVP_DigestFinal_ex(
        context: *mut DigestContext, digest: *mut u8, bytes: *mut c_uint
    ) -> c_int;

    EVP_MAC_fetch(
        context: *mut LibraryContext, name: *const c_char, properties: *const c_char
    ) -> *mut MacMethod;
    EVP_MAC_free(method: *mut MacMethod);
    EVP_MAC_CTX_new(method: *mut MacMethod) -> *mut MacContext;
    EVP_MAC_CTX_free(context: *mut MacContext);
    EVP_MAC_init(
        context: *mut MacContext, key: *const u8, bytes: usize, parameters: *const Parameter
    ) -> c_int;
    EVP_MAC_update(context: *mut MacContext, data: *const u8, bytes: usize) -> c_int;
    EVP_MAC_final(
        context: *mut MacContext, mac: *mut u8, bytes: *mut usize, room: usize
    ) -> c_int;
}
