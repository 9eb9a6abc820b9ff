//! libcrypto of OpenSSL 3 and 4 with a safe face: opening it, and the ciphers, digests and MACs in it.

mod cipher;
mod digest;
mod functions;
mod mac;

pub(crate) use cipher::{Cipher, Direction};
pub(crate) use digest::Digest;
pub(crate) use mac::Hmac;

use functions::{Functions, LibraryContext, Provider};
use libloading::Library;
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use std::path::Path;
use std::ptr::NonNull;
use std::rc::Rc;

/// Why libcrypto, or something in it, cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// None of the names could be opened; the message is that of the first.
    #[error("no libcrypto: {source}")]
    Library { source: libloading::Error },
    /// Older than OpenSSL 3, or another library under the same name.
    #[error("libcrypto lacks {name}: {source}")]
    Symbol { name: &'static str, source: libloading::Error },
    /// A call reported a failure.
    #[error("{call} failed")]
    Call { call: &'static str },
    /// No cipher takes a key of this length.
    #[error("a key of {bytes} bytes")]
    KeyLength { bytes: usize },
    /// The program was built without it.
    #[cfg(not(feature = "openssl-vendored"))]
    #[error("this build lacks the feature openssl-vendored")]
    NotBuilt,
}

/// A libcrypto with a library context of its own, so that what is loaded here leaves the default
/// context of the process alone, and a configuration file of the system leaves this one alone.
pub(crate) struct Libcrypto {
    functions: Functions,
    context: NonNull<LibraryContext>,
    providers: Vec<NonNull<Provider>>,
    /// Never closed: libcrypto registers handlers that run when a thread or the process ends.
    _library: Option<ManuallyDrop<Library>>,
}

impl Libcrypto {
    /// Opens this system's libcrypto: OpenSSL 3 first, then 4, then any other.
    pub(crate) fn system() -> Result<Self, Error> {
        let library = open_first(&SYSTEM_NAMES)?;
        let functions = Functions::of(&library)?;
        Self::with(functions, Some(library))
    }

    /// Opens the libcrypto in that file.
    pub(crate) fn at(file: &Path) -> Result<Self, Error> {
        // SAFETY: as in `open_first`.
        let library = unsafe { Library::new(file) };
        let library = ManuallyDrop::new(library.map_err(|source| Error::Library { source })?);
        let functions = Functions::of(&library)?;
        Self::with(functions, Some(library))
    }

    /// The libcrypto that was linked into this program.
    #[cfg(feature = "openssl-vendored")]
    pub(crate) fn vendored() -> Result<Self, Error> {
        Self::with(Functions::linked(), None)
    }

    /// The libcrypto that was not linked into this program.
    #[cfg(not(feature = "openssl-vendored"))]
    pub(crate) fn vendored() -> Result<Self, Error> {
        Err(Error::NotBuilt)
    }

    /// What the library calls itself, for example "OpenSSL 3.0.19 27 Jan 2026".
    pub(crate) fn version(&self) -> String {
        // SAFETY: any number is allowed; unknown ones give the text "not available".
        let text = unsafe { (self.functions.OpenSSL_version)(WHOLE_VERSION) };
        // SAFETY: the function returns a static text that ends in NUL, never null.
        let text = unsafe { CStr::from_ptr(text) };
        text.to_string_lossy().into_owned()
    }

    /// A digest of 32 bytes.
    pub(crate) fn digest(self: &Rc<Self>, name: &CStr) -> Result<Digest, Error> {
        Digest::new(self, name)
    }

    /// HMAC with a digest, under a key.
    pub(crate) fn hmac(self: &Rc<Self>, digest: &CStr, key: &[u8]) -> Result<Hmac, Error> {
        Hmac::new(self, digest, key)
    }

    fn with(functions: Functions, library: Option<ManuallyDrop<Library>>) -> Result<Self, Error> {
        // SAFETY: takes nothing; null when it fails.
        let context = unsafe { (functions.OSSL_LIB_CTX_new)() };
        let context = made(context, "OSSL_LIB_CTX_new")?;
        let mut made = Self { functions, context, providers: Vec::new(), _library: library };
        made.load(c"default")?;
        // Holds RC4 and Blowfish. Where it is missing, those are not offered.
        let _ = made.load(c"legacy");
        Ok(made)
    }

    /// Loads a provider, by its name or the path of its file.
    pub(crate) fn load(&mut self, name: &CStr) -> Result<(), Error> {
        // SAFETY: the context is alive until `drop`, the name ends in NUL.
        let provider =
            unsafe { (self.functions.OSSL_PROVIDER_load)(self.context.as_ptr(), name.as_ptr()) };
        self.providers.push(made(provider, "OSSL_PROVIDER_load")?);
        Ok(())
    }
}

impl Drop for Libcrypto {
    fn drop(&mut self) {
        for provider in self.providers.drain(..).rev() {
            // SAFETY: it was loaded by `load` and is unloaded once; a failure leaves it loaded.
            unsafe { (self.functions.OSSL_PROVIDER_unload)(provider.as_ptr()) };
        }
        // SAFETY: ciphers, digests and MACs hold this struct in an Rc, so that none is left.
        unsafe { (self.functions.OSSL_LIB_CTX_free)(self.context.as_ptr()) };
    }
}

fn open_first(names: &[&str]) -> Result<ManuallyDrop<Library>, Error> {
    let mut first = None;
    for &name in names {
        // SAFETY: loading runs the constructors of libcrypto, which are made to be run this way.
        // The flags are RTLD_LAZY | RTLD_LOCAL: its symbols stay out of the way of another copy.
        match unsafe { Library::new(name) } {
            Ok(library) => return Ok(ManuallyDrop::new(library)),
            Err(source) => first = first.or(Some(source)),
        }
    }
    let source = first.expect("at least one name to try");
    Err(Error::Library { source })
}

/// A pointer that `call` has just returned; null means that the call failed.
fn made<T>(pointer: *mut T, call: &'static str) -> Result<NonNull<T>, Error> {
    NonNull::new(pointer).ok_or(Error::Call { call })
}

/// The status that `call` has just returned; only 1 is success.
fn checked(status: i32, call: &'static str) -> Result<(), Error> {
    if status == 1 { Ok(()) } else { Err(Error::Call { call }) }
}

const SYSTEM_NAMES: [&str; 3] = ["libcrypto.so.3", "libcrypto.so.4", "libcrypto.so"];

/// OPENSSL_VERSION in openssl/crypto.h.
const WHOLE_VERSION: i32 = 0;

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_missing_library_is_an_error() {
        let opened = open_first(&["libcrypto.so.none", "libcrypto.so.neither"]);
        assert!(matches!(opened, Err(Error::Library { .. })));
    }

    #[test]
    fn another_library_is_an_error() {
        let Ok(library) = open_first(&["libm.so.6"]) else {
            wattlock_testing::skip("libm", "no libm.so.6");
            return;
        };
        let found = Functions::of(&library);
        assert!(matches!(found, Err(Error::Symbol { name: "OpenSSL_version", .. })));
    }

    #[test]
    fn unknown_ciphers_and_keys_of_the_wrong_length_are_errors() {
        for opened in [Libcrypto::system(), Libcrypto::vendored()] {
            let libcrypto = match opened {
                Ok(libcrypto) => Rc::new(libcrypto),
                Err(why) => {
                    wattlock_testing::skip("openssl-vendored", why);
                    continue;
                }
            };
            let cipher = |name, key| Cipher::new(&libcrypto, name, Direction::Encrypt, key);
            assert!(cipher(c"AES-256-CTR", &[1; 32]).is_ok());
            assert!(cipher(c"AES-256-CTR", &[1; 31]).is_err());
            assert!(cipher(c"AES-256-CTR", &[]).is_err());
            assert!(cipher(c"AES-257-CTR", &[1; 32]).is_err());
            assert!(libcrypto.digest(c"SHA3-256").is_ok());
            assert!(libcrypto.digest(c"SHA3-512").is_err());
            assert!(libcrypto.digest(c"SHA3-257").is_err());
            assert!(libcrypto.hmac(c"SHA2-384", &[1; 48]).is_ok());
            assert!(libcrypto.hmac(c"SHA2-385", &[1; 48]).is_err());
        }
    }
}
