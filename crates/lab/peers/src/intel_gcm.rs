//! AES-GCM by kernels of Intel's two libraries, which share their form: one call for each message.

use std::ffi::c_void;

use crate::work::{opening, sealing};
use crate::{AAD, Work};

/// The kernels for keys of one length. `R` is what they return: a status, or nothing.
pub(crate) struct Gcm<R> {
    pub(crate) expand: unsafe extern "C" fn(*const c_void, *mut Key) -> R,
    pub(crate) seal: OneCall<R>,
    pub(crate) open: OneCall<R>,
}

impl<R> Clone for Gcm<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Gcm<R> {}

/// Key, context, output, input and its bytes, IV, associated data and its bytes, tag and its bytes.
pub(crate) type OneCall<R> = unsafe extern "C" fn(
    *const Key,
    *mut Context,
    *mut u8,
    *const u8,
    u64,
    *const u8,
    *const u8,
    u64,
    *mut u8,
    u64,
) -> R;

/// An expanded key: 1264 bytes at most in all versions that are opened.
#[repr(C, align(64))]
pub(crate) struct Key([u8; 2048]);

/// The context of a message: 88 bytes.
#[repr(C, align(64))]
pub(crate) struct Context([u8; 128]);

impl<R: 'static> Gcm<R> {
    /// Sealing under a key, whose length is that of the kernels.
    pub(crate) fn sealing(self, key: &[u8]) -> Option<Box<dyn Work>> {
        sealing(
            Keyed::new(self, key),
            |keyed, iv, in_out| keyed.call(keyed.kernels.seal, iv, in_out),
            Keyed::expand,
        )
    }

    /// Opening under a key. The kernels make the tag of what they decrypt; comparing is left to
    /// their user.
    pub(crate) fn opening(self, key: &[u8]) -> Option<Box<dyn Work>> {
        let mut keyed = Keyed::new(self, key);
        opening(move |iv, in_out, tag| keyed.call(keyed.kernels.open, iv, in_out) == *tag)
    }
}

struct Keyed<R> {
    kernels: Gcm<R>,
    key_bytes: usize,
    key: Box<Key>,
    context: Box<Context>,
}

impl<R> Keyed<R> {
    fn new(kernels: Gcm<R>, key: &[u8]) -> Self {
        let (expanded, context) = (Box::new(Key([0; 2048])), Box::new(Context([0; 128])));
        let mut keyed = Self { kernels, key_bytes: key.len(), key: expanded, context };
        keyed.expand(key);
        keyed
    }

    fn expand(&mut self, key: &[u8]) {
        assert_eq!(key.len(), self.key_bytes, "length of the key");
        // SAFETY: reads a key of the length that the kernels are for, and writes less than `Key`.
        unsafe { (self.kernels.expand)(key.as_ptr().cast(), &raw mut *self.key) };
    }

    fn call(&mut self, kernel: OneCall<R>, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 16] {
        let mut tag = [0; 16];
        let (data, bytes) = (in_out.as_mut_ptr(), in_out.len() as u64);
        // SAFETY: works on the bytes of `in_out` in place, which both libraries allow, reads 12
        // bytes of the IV and those of `AAD`, and writes the 16 bytes of `tag`.
        unsafe {
            kernel(
                &raw const *self.key,
                &raw mut *self.context,
                data,
                data.cast_const(),
                bytes,
                iv.as_ptr(),
                AAD.as_ptr(),
                AAD.len() as u64,
                tag.as_mut_ptr(),
                16,
            )
        };
        tag
    }
}
