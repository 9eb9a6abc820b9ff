//! A cipher of libcrypto: one context under one key, to which a run gives its IV and a buffer.

use super::functions::{CipherContext, CipherMethod};
use super::{Error, Libcrypto, checked, made};
use crate::AAD;
use std::ffi::{CStr, c_int, c_void};
use std::ptr::{NonNull, null, null_mut};
use std::rc::Rc;

/// Encryption or decryption, in the numbers of EVP_CipherInit_ex2.
#[derive(Clone, Copy)]
pub(crate) enum Direction {
    Decrypt = 0,
    Encrypt = 1,
}

/// A cipher with its key set and padding off.
pub(crate) struct Cipher {
    libcrypto: Rc<Libcrypto>,
    context: NonNull<CipherContext>,
    key_bytes: usize,
    iv_bytes: usize,
    block_bytes: usize,
}

impl Cipher {
    /// Fetches a cipher by OpenSSL's name and sets its key. Fails where no provider has it, or
    /// where it takes no key of this length, or no key at all is given.
    pub(crate) fn new(
        libcrypto: &Rc<Libcrypto>,
        name: &CStr,
        direction: Direction,
        key: &[u8],
    ) -> Result<Self, Error> {
        Self::of(libcrypto, name, None, direction, key)
    }

    /// The same, of a provider with those properties.
    pub(crate) fn of(
        libcrypto: &Rc<Libcrypto>,
        name: &CStr,
        properties: Option<&CStr>,
        direction: Direction,
        key: &[u8],
    ) -> Result<Self, Error> {
        // RC4 would read the first byte of a key that has none.
        if key.is_empty() {
            return Err(Error::KeyLength { bytes: key.len() });
        }
        let method = Method::fetch(libcrypto, name, properties)?;
        // SAFETY: takes nothing; null when it fails.
        let context = unsafe { (libcrypto.functions.EVP_CIPHER_CTX_new)() };
        let cipher = Self {
            libcrypto: Rc::clone(libcrypto),
            context: made(context, "EVP_CIPHER_CTX_new")?,
            key_bytes: key.len(),
            iv_bytes: method.iv_bytes()?,
            block_bytes: method.block_bytes()?,
        };
        cipher.init(method.pointer.as_ptr(), null(), null(), direction as c_int)?;
        cipher.set_key(key, method.key_bytes()?)?;
        if cipher.block_bytes > 1 {
            cipher.set_padding_off()?;
        }
        Ok(cipher)
    }

    /// Sets the IV for the next message; key schedule and direction stay.
    ///
    /// # Panics
    /// When the IV has not the length that the cipher takes.
    pub(crate) fn restart(&mut self, iv: &[u8]) {
        assert_eq!(iv.len(), self.iv_bytes, "length of the IV");
        self.init(null(), null(), iv.as_ptr(), UNCHANGED).expect("libcrypto takes an IV");
    }

    /// Sets another key of the same length; the next message begins with [`Self::restart`].
    ///
    /// # Panics
    /// When the length is another one, or libcrypto reports a failure.
    pub(crate) fn replace_key(&mut self, key: &[u8]) {
        assert_eq!(key.len(), self.key_bytes, "length of the key");
        self.init(null(), key.as_ptr(), null(), UNCHANGED).expect("libcrypto takes a key");
    }

    /// The data that the tag covers beside the message.
    ///
    /// # Panics
    /// When the cipher takes none.
    pub(crate) fn associate(&mut self, data: &[u8]) {
        let bytes = c_int::try_from(data.len()).expect("a few bytes");
        let mut written = 0;
        let context = self.context.as_ptr();
        // SAFETY: reads the bytes of `data`; without an output it writes none.
        let status = unsafe {
            (self.libcrypto.functions.EVP_CipherUpdate)(
                context,
                null_mut(),
                &raw mut written,
                data.as_ptr(),
                bytes,
            )
        };
        checked(status, "EVP_CipherUpdate").expect("libcrypto takes associated data");
    }

    /// Works on the next bytes of the message in place.
    ///
    /// # Panics
    /// When the length is no multiple of the cipher's block, or libcrypto reports a failure.
    pub(crate) fn update(&mut self, in_out: &mut [u8]) {
        assert_eq!(in_out.len() % self.block_bytes, 0, "bytes beyond the last whole block");
        for part in in_out.chunks_mut(LARGEST_UPDATE) {
            self.update_part(part).expect("libcrypto works on whole blocks");
        }
    }

    /// Seals or opens a message in the way that takes a program least: IV, additional data, parts of `part` bytes, in
    /// place or from `input`, and the tag. The tag is checked where the context decrypts, and otherwise made.
    ///
    /// # Panics
    /// When the cipher is no AEAD, the places are not as long, or libcrypto reports a failure.
    pub(crate) fn message(
        &mut self,
        nonce: &[u8; 12],
        input: Option<&[u8]>,
        output: &mut [u8],
        part: usize,
        tag: &mut [u8; 16],
        direction: Direction,
    ) {
        let (context, functions) = (self.context.as_ptr(), &self.libcrypto.functions);
        let (mut written, mut rest, len) = (0, [0_u8; 16], output.len());
        assert!(input.is_none_or(|input| input.len() == len), "places of one length");
        let (output, tag) = (output.as_mut_ptr(), tag.as_mut_ptr().cast::<c_void>());
        let input = input.map_or(output.cast_const(), <[u8]>::as_ptr);
        // SAFETY: the context has its cipher and key, and takes an IV of 12 bytes.
        let mut status = unsafe {
            let init = functions.EVP_CipherInit_ex2;
            init(context, null(), null(), nonce.as_ptr(), UNCHANGED, null())
        };
        // SAFETY: reads the bytes of the data; without an output it writes none.
        status &= unsafe {
            let (data, bytes) = (AAD.as_ptr(), AAD.len() as c_int);
            (functions.EVP_CipherUpdate)(context, null_mut(), &raw mut written, data, bytes)
        };
        let mut done = 0;
        while done < len {
            let now = part.min(len - done);
            let (from, to) = (input.wrapping_add(done), output.wrapping_add(done));
            // SAFETY: both places have as many bytes.
            status &= unsafe {
                (functions.EVP_CipherUpdate)(context, to, &raw mut written, from, now as c_int)
            };
            done += now;
        }
        let is_opened = matches!(direction, Direction::Decrypt);
        if is_opened {
            // SAFETY: the tag has 16 bytes.
            status &= unsafe { (functions.EVP_CIPHER_CTX_ctrl)(context, SET_TAG, 16, tag) };
        }
        // SAFETY: an AEAD writes nothing at the end.
        status &=
            unsafe { (functions.EVP_CipherFinal_ex)(context, rest.as_mut_ptr(), &raw mut written) };
        if !is_opened {
            // SAFETY: the tag has 16 bytes.
            status &= unsafe { (functions.EVP_CIPHER_CTX_ctrl)(context, GET_TAG, 16, tag) };
        }
        assert_eq!(status, 1, "libcrypto seals and opens");
    }

    /// Bytes of an IV.
    pub(crate) fn iv_len(&self) -> usize {
        self.iv_bytes
    }

    /// Ends a message. False when the tag was wrong.
    pub(crate) fn finish(&mut self) -> bool {
        let mut rest = [0; 32];
        let mut written = 0;
        let (context, out) = (self.context.as_ptr(), rest.as_mut_ptr());
        // SAFETY: writes one block at most, and no block of libcrypto is larger than 32 bytes.
        let status = unsafe {
            (self.libcrypto.functions.EVP_CipherFinal_ex)(context, out, &raw mut written)
        };
        status == 1
    }

    /// The tag of the message that was just encrypted and finished.
    ///
    /// # Panics
    /// When the cipher has no tag.
    pub(crate) fn tag(&mut self) -> [u8; 16] {
        let mut tag = [0; 16];
        self.control(GET_TAG, &mut tag).expect("libcrypto made a tag");
        tag
    }

    /// The tag that [`Self::finish`] is to check.
    ///
    /// # Panics
    /// When the cipher takes no tag.
    pub(crate) fn expect_tag(&mut self, tag: &[u8; 16]) {
        self.control(SET_TAG, &mut tag.clone()).expect("libcrypto takes a tag");
    }

    fn set_key(&self, key: &[u8], usual_bytes: usize) -> Result<(), Error> {
        let bytes =
            c_int::try_from(key.len()).map_err(|_| Error::KeyLength { bytes: key.len() })?;
        if key.len() != usual_bytes {
            let context = self.context.as_ptr();
            // SAFETY: the context is alive; a length that the cipher does not take is refused.
            let status =
                unsafe { (self.libcrypto.functions.EVP_CIPHER_CTX_set_key_length)(context, bytes) };
            checked(status, "EVP_CIPHER_CTX_set_key_length")?;
        }
        self.init(null(), key.as_ptr(), null(), UNCHANGED)
    }

    fn set_padding_off(&self) -> Result<(), Error> {
        let context = self.context.as_ptr();
        // SAFETY: the context is alive and has its cipher.
        let status = unsafe { (self.libcrypto.functions.EVP_CIPHER_CTX_set_padding)(context, 0) };
        checked(status, "EVP_CIPHER_CTX_set_padding")
    }

    /// Callers pass null, or a pointer to as many bytes as the cipher takes.
    fn init(
        &self,
        method: *const CipherMethod,
        key: *const u8,
        iv: *const u8,
        direction: c_int,
    ) -> Result<(), Error> {
        let context = self.context.as_ptr();
        // SAFETY: `method` is null or fetched; `key` is null or has the length that `set_key` has
        // made sure of; `iv` is null or has the length that `restart` has made sure of.
        let status = unsafe {
            (self.libcrypto.functions.EVP_CipherInit_ex2)(
                context,
                method,
                key,
                iv,
                direction,
                null(),
            )
        };
        checked(status, "EVP_CipherInit_ex2")
    }

    fn update_part(&mut self, part: &mut [u8]) -> Result<(), Error> {
        let bytes = c_int::try_from(part.len()).expect("a part fits into a C int");
        let mut written = 0;
        let (context, out) = (self.context.as_ptr(), part.as_mut_ptr());
        // SAFETY: whole blocks without padding give as many bytes as they take, so that it reads
        // and writes `part` only; input and output may be the same buffer, though not overlap.
        let status = unsafe {
            (self.libcrypto.functions.EVP_CipherUpdate)(
                context,
                out,
                &raw mut written,
                out.cast_const(),
                bytes,
            )
        };
        checked(status, "EVP_CipherUpdate")?;
        assert_eq!(written, bytes, "libcrypto holds nothing back");
        Ok(())
    }

    fn control(&mut self, command: c_int, tag: &mut [u8; 16]) -> Result<(), Error> {
        let (context, data) = (self.context.as_ptr(), tag.as_mut_ptr().cast::<c_void>());
        // SAFETY: both commands read or write exactly the 16 bytes of `tag`.
        let status =
            unsafe { (self.libcrypto.functions.EVP_CIPHER_CTX_ctrl)(context, command, 16, data) };
        checked(status, "EVP_CIPHER_CTX_ctrl")
    }
}

impl Drop for Cipher {
    fn drop(&mut self) {
        // SAFETY: made by `new`, freed once.
        unsafe { (self.libcrypto.functions.EVP_CIPHER_CTX_free)(self.context.as_ptr()) };
    }
}

/// A fetched cipher, for as long as a context is made from it; the context keeps its own share.
struct Method<'library> {
    libcrypto: &'library Libcrypto,
    pointer: NonNull<CipherMethod>,
}

impl<'library> Method<'library> {
    fn fetch(
        libcrypto: &'library Libcrypto,
        name: &CStr,
        properties: Option<&CStr>,
    ) -> Result<Self, Error> {
        let library = libcrypto.context.as_ptr();
        let properties = properties.map_or(null(), CStr::as_ptr);
        // SAFETY: the library context is alive, the name ends in NUL, so do properties.
        let method =
            unsafe { (libcrypto.functions.EVP_CIPHER_fetch)(library, name.as_ptr(), properties) };
        Ok(Self { libcrypto, pointer: made(method, "EVP_CIPHER_fetch")? })
    }

    fn key_bytes(&self) -> Result<usize, Error> {
        // SAFETY: the method is alive until `drop`.
        let bytes =
            unsafe { (self.libcrypto.functions.EVP_CIPHER_get_key_length)(self.pointer.as_ptr()) };
        usize::try_from(bytes).map_err(|_| Error::Call { call: "EVP_CIPHER_get_key_length" })
    }

    fn iv_bytes(&self) -> Result<usize, Error> {
        // SAFETY: the method is alive until `drop`.
        let bytes =
            unsafe { (self.libcrypto.functions.EVP_CIPHER_get_iv_length)(self.pointer.as_ptr()) };
        usize::try_from(bytes).map_err(|_| Error::Call { call: "EVP_CIPHER_get_iv_length" })
    }

    /// At least 1, which is what stream modes say.
    fn block_bytes(&self) -> Result<usize, Error> {
        // SAFETY: the method is alive until `drop`.
        let bytes =
            unsafe { (self.libcrypto.functions.EVP_CIPHER_get_block_size)(self.pointer.as_ptr()) };
        usize::try_from(bytes)
            .ok()
            .filter(|bytes| *bytes > 0)
            .ok_or(Error::Call { call: "EVP_CIPHER_get_block_size" })
    }
}

impl Drop for Method<'_> {
    fn drop(&mut self) {
        // SAFETY: fetched by `fetch`, freed once.
        unsafe { (self.libcrypto.functions.EVP_CIPHER_free)(self.pointer.as_ptr()) };
    }
}

/// The length of a buffer is a C int: longer messages go in parts of 1 GiB, whole blocks each.
const LARGEST_UPDATE: usize = 1 << 30;

/// A direction that leaves the one that is set.
const UNCHANGED: c_int = -1;

/// EVP_CTRL_AEAD_GET_TAG in openssl/evp.h.
const GET_TAG: c_int = 0x10;

/// EVP_CTRL_AEAD_SET_TAG in openssl/evp.h.
const SET_TAG: c_int = 0x11;
