//! A digest of libcrypto: fetched once, started anew for every message.

use super::functions::{DigestContext, DigestMethod};
use super::{Error, Libcrypto, checked, made};
use std::ffi::CStr;
use std::ptr::{NonNull, null};
use std::rc::Rc;

/// A digest of 32 bytes.
pub(crate) struct Digest {
    libcrypto: Rc<Libcrypto>,
    method: NonNull<DigestMethod>,
    context: NonNull<DigestContext>,
}

impl Digest {
    pub(super) fn new(libcrypto: &Rc<Libcrypto>, name: &CStr) -> Result<Self, Error> {
        let functions = &libcrypto.functions;
        // SAFETY: takes nothing; null when it fails.
        let context = unsafe { (functions.EVP_MD_CTX_new)() };
        let context = made(context, "EVP_MD_CTX_new")?;
        let library = libcrypto.context.as_ptr();
        // SAFETY: the library context is alive, the name ends in NUL, no properties.
        let method = unsafe { (functions.EVP_MD_fetch)(library, name.as_ptr(), null()) };
        let method = made(method, "EVP_MD_fetch").inspect_err(|_| {
            // SAFETY: made above, not used since.
            unsafe { (functions.EVP_MD_CTX_free)(context.as_ptr()) };
        })?;
        let digest = Self { libcrypto: Rc::clone(libcrypto), method, context };
        // SAFETY: the method is alive, `digest` owns it.
        let bytes = unsafe { (functions.EVP_MD_get_size)(method.as_ptr()) };
        if bytes == 32 { Ok(digest) } else { Err(Error::Call { call: "EVP_MD_get_size" }) }
    }

    /// The digest of a message.
    ///
    /// # Panics
    /// When libcrypto reports a failure.
    pub(crate) fn of(&mut self, message: &[u8]) -> [u8; 32] {
        self.try_of(message).expect("libcrypto digests any message")
    }

    fn try_of(&mut self, message: &[u8]) -> Result<[u8; 32], Error> {
        let functions = &self.libcrypto.functions;
        let (context, method) = (self.context.as_ptr(), self.method.as_ptr());
        let mut result = [0; 32];
        let mut written = 0;
        // SAFETY: context and method are alive, no parameters.
        let status = unsafe { (functions.EVP_DigestInit_ex2)(context, method, null()) };
        checked(status, "EVP_DigestInit_ex2")?;
        let data = message.as_ptr().cast();
        // SAFETY: reads exactly the bytes of `message`.
        let status = unsafe { (functions.EVP_DigestUpdate)(context, data, message.len()) };
        checked(status, "EVP_DigestUpdate")?;
        let out = result.as_mut_ptr();
        // SAFETY: writes the 32 bytes that `new` has made sure of.
        let status = unsafe { (functions.EVP_DigestFinal_ex)(context, out, &raw mut written) };
        checked(status, "EVP_DigestFinal_ex")?;
        Ok(result)
    }
}

impl Drop for Digest {
    fn drop(&mut self) {
        let functions = &self.libcrypto.functions;
        // SAFETY: made by `new`, freed once.
        unsafe { (functions.EVP_MD_CTX_free)(self.context.as_ptr()) };
        // SAFETY: fetched by `new`, freed once.
        unsafe { (functions.EVP_MD_free)(self.method.as_ptr()) };
    }
}
