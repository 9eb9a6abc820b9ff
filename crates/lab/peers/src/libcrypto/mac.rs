//! HMAC of libcrypto: the key is set once, and kept for every message.

use super::functions::{MacContext, Parameter};
use super::{Error, Libcrypto, checked, made};
use std::ffi::CStr;
use std::ptr::{NonNull, null, null_mut};
use std::rc::Rc;

/// HMAC under one key.
pub(crate) struct Hmac {
    libcrypto: Rc<Libcrypto>,
    context: NonNull<MacContext>,
}

impl Hmac {
    pub(super) fn new(libcrypto: &Rc<Libcrypto>, digest: &CStr, key: &[u8]) -> Result<Self, Error> {
        let functions = &libcrypto.functions;
        let library = libcrypto.context.as_ptr();
        // SAFETY: the library context is alive, the name ends in NUL, no properties.
        let method = unsafe { (functions.EVP_MAC_fetch)(library, c"HMAC".as_ptr(), null()) };
        let method = made(method, "EVP_MAC_fetch")?;
        // SAFETY: the method is alive; the context takes a reference of its own.
        let context = unsafe { (functions.EVP_MAC_CTX_new)(method.as_ptr()) };
        // SAFETY: fetched above, freed once.
        unsafe { (functions.EVP_MAC_free)(method.as_ptr()) };
        let context = made(context, "EVP_MAC_CTX_new")?;
        let mac = Self { libcrypto: Rc::clone(libcrypto), context };
        let parameters = [
            Parameter {
                key: c"digest".as_ptr(),
                data_type: UTF8_STRING,
                data: digest.as_ptr().cast_mut().cast(),
                data_size: digest.count_bytes(),
                return_size: 0,
            },
            Parameter { key: null(), data_type: 0, data: null_mut(), data_size: 0, return_size: 0 },
        ];
        let (bytes, parameters) = (key.as_ptr(), parameters.as_ptr());
        // SAFETY: reads the bytes of `key`, and the parameters up to the one without a name; a text
        // parameter that is set is only read.
        let status =
            unsafe { (functions.EVP_MAC_init)(context.as_ptr(), bytes, key.len(), parameters) };
        checked(status, "EVP_MAC_init")?;
        Ok(mac)
    }

    /// The first 32 bytes of the MAC of a message, with zeros behind a shorter one.
    ///
    /// # Panics
    /// When libcrypto reports a failure.
    pub(crate) fn of(&mut self, message: &[u8]) -> [u8; 32] {
        self.try_of(message).expect("libcrypto signs any message")
    }

    fn try_of(&mut self, message: &[u8]) -> Result<[u8; 32], Error> {
        let functions = &self.libcrypto.functions;
        let context = self.context.as_ptr();
        let mut mac = [0; LONGEST];
        let mut written = 0;
        // SAFETY: the context is alive, and without a key it starts anew with the one it has.
        let status = unsafe { (functions.EVP_MAC_init)(context, null(), 0, null()) };
        checked(status, "EVP_MAC_init")?;
        // SAFETY: reads exactly the bytes of `message`.
        let status =
            unsafe { (functions.EVP_MAC_update)(context, message.as_ptr(), message.len()) };
        checked(status, "EVP_MAC_update")?;
        let out = mac.as_mut_ptr();
        // SAFETY: the call gets the length of `mac` and writes at most that many bytes.
        let status = unsafe { (functions.EVP_MAC_final)(context, out, &raw mut written, LONGEST) };
        checked(status, "EVP_MAC_final")?;
        Ok(*mac.first_chunk().expect("the longest MAC has 64 bytes"))
    }
}

impl Drop for Hmac {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        unsafe { (self.libcrypto.functions.EVP_MAC_CTX_free)(self.context.as_ptr()) };
    }
}

/// OSSL_PARAM_UTF8_STRING in openssl/core.h.
const UTF8_STRING: u32 = 4;

/// Bytes of HMAC-SHA-512.
const LONGEST: usize = 64;
