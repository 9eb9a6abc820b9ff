//! libcrypto's EVP interface, opened at run time, as far as the tests use it.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::path::Path;
use std::ptr;

use libloading::Library;

use super::Modules;

macro_rules! api {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        #[allow(non_snake_case)]
        struct Api {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Api {
            fn bind(library: &Library) -> Self {
                Self {
                    $($name: {
                        // SAFETY: the type is that of OpenSSL's manual.
                        let found = unsafe { library.get(stringify!($name).as_bytes()) };
                        *found.unwrap()
                    },)*
                }
            }
        }
    };
}

api! {
    OSSL_LIB_CTX_new() -> *mut c_void;
    OSSL_LIB_CTX_free(*mut c_void);
    OSSL_LIB_CTX_load_config(*mut c_void, *const c_char) -> c_int;
    OSSL_PROVIDER_set_default_search_path(*mut c_void, *const c_char) -> c_int;
    OSSL_PROVIDER_load(*mut c_void, *const c_char) -> *mut c_void;
    OSSL_PROVIDER_unload(*mut c_void) -> c_int;
    EVP_CIPHER_fetch(*mut c_void, *const c_char, *const c_char) -> *mut c_void;
    EVP_CIPHER_free(*mut c_void);
    EVP_CIPHER_do_all_provided(*mut c_void, unsafe extern "C" fn(*mut c_void, *mut c_void), *mut c_void);
    EVP_CIPHER_get0_name(*const c_void) -> *const c_char;
    EVP_CIPHER_get0_provider(*const c_void) -> *const c_void;
    OSSL_PROVIDER_get0_name(*const c_void) -> *const c_char;
    EVP_CIPHER_get_params(*mut c_void, *mut Param) -> c_int;
    EVP_CIPHER_CTX_new() -> *mut c_void;
    EVP_CIPHER_CTX_free(*mut c_void);
    EVP_CIPHER_CTX_copy(*mut c_void, *const c_void) -> c_int;
    EVP_CIPHER_CTX_ctrl(*mut c_void, c_int, c_int, *mut c_void) -> c_int;
    EVP_CIPHER_CTX_get_params(*mut c_void, *mut Param) -> c_int;
    EVP_CIPHER_CTX_set_params(*mut c_void, *const Param) -> c_int;
    EVP_CipherInit_ex2(
        *mut c_void, *const c_void, *const u8, *const u8, c_int, *const Param
    ) -> c_int;
    EVP_CipherUpdate(*mut c_void, *mut u8, *mut c_int, *const u8, c_int) -> c_int;
    EVP_CipherFinal_ex(*mut c_void, *mut u8, *mut c_int) -> c_int;
    EVP_Cipher(*mut c_void, *mut u8, *const u8, c_uint) -> c_int;
    ERR_get_error_all(
        *mut *const c_char, *mut c_int, *mut *const c_char, *mut *const c_char, *mut c_int
    ) -> c_ulong;
    ERR_clear_error();
    ERR_reason_error_string(c_ulong) -> *const c_char;
}

/// `OSSL_PARAM`.
#[repr(C)]
pub struct Param {
    pub key: *const c_char,
    pub data_type: c_uint,
    pub data: *mut c_void,
    pub data_size: usize,
    pub return_size: usize,
}

impl Param {
    pub const UNSIGNED: c_uint = 2;
    pub const OCTETS: c_uint = 5;
    pub const OCTET_PTR: c_uint = 7;

    pub fn end() -> Self {
        Self { key: ptr::null(), data_type: 0, data: ptr::null_mut(), data_size: 0, return_size: 0 }
    }

    pub fn number(key: &CStr, number: &mut usize) -> Self {
        Self::of(key, Self::UNSIGNED, ptr::from_mut(number).cast(), size_of::<usize>())
    }

    pub fn small(key: &CStr, number: &mut u32) -> Self {
        Self::of(key, Self::UNSIGNED, ptr::from_mut(number).cast(), size_of::<u32>())
    }

    pub fn bytes(key: &CStr, bytes: &mut [u8]) -> Self {
        Self::of(key, Self::OCTETS, bytes.as_mut_ptr().cast(), bytes.len())
    }

    pub fn of(key: &CStr, data_type: c_uint, data: *mut c_void, data_size: usize) -> Self {
        Self { key: key.as_ptr(), data_type, data, data_size, return_size: usize::MAX }
    }
}

/// libcrypto with both providers in a library context of its own.
pub struct Evp {
    api: Api,
    context: *mut c_void,
    providers: Vec<*mut c_void>,
    _library: Library,
}

// SAFETY: a library context and what is fetched from it may be used by any thread (OpenSSL's manual
// page `openssl-threads(7)`), and errors are the thread's own.
unsafe impl Sync for Evp {}

impl Evp {
    /// `None`, and a line that says so, where there is no such libcrypto.
    pub fn load(modules: &Modules) -> Option<Self> {
        let mut evp = Self::without_providers(modules)?;
        evp.configure(&modules.path().join("openssl.cnf"));
        for name in [c"default", c"wattlock"] {
            if let Err(error) = evp.provider(name) {
                panic!("{name:?} was not loaded: {error}");
            }
        }
        Some(evp)
    }

    /// Loads a provider, or says why it did not want to.
    pub fn provider(&mut self, name: &CStr) -> Result<(), String> {
        // SAFETY: the context is live, the name ends.
        let provider = unsafe { (self.api.OSSL_PROVIDER_load)(self.context, name.as_ptr()) };
        if provider.is_null() {
            return Err(last_error(&self.api).and_then(Raised::said).unwrap_or_default());
        }
        self.providers.push(provider);
        Ok(())
    }

    /// Reads a configuration.
    pub fn configure(&self, file: &Path) {
        let file = CString::new(file.to_str().unwrap()).unwrap();
        // SAFETY: the context is live, the path ends.
        let read = unsafe { (self.api.OSSL_LIB_CTX_load_config)(self.context, file.as_ptr()) };
        assert_eq!(read, 1);
    }

    /// The same before anything is loaded.
    pub fn without_providers(modules: &Modules) -> Option<Self> {
        let libcrypto = modules.openssl().libcrypto()?;
        // SAFETY: libcrypto's initialisers may run in any program.
        let library = match unsafe { Library::new(libcrypto) } {
            Ok(library) => library,
            Err(error) => {
                wattlock_testing::skip("openssl", error);
                return None;
            }
        };
        let api = Api::bind(&library);
        // SAFETY: it may be called at any time.
        let context = unsafe { (api.OSSL_LIB_CTX_new)() };
        let modules = CString::new(modules.path().to_str().unwrap()).unwrap();
        // SAFETY: the context is live, the path ends.
        let set = unsafe { (api.OSSL_PROVIDER_set_default_search_path)(context, modules.as_ptr()) };
        assert_eq!(set, 1);
        Some(Self { api, context, providers: Vec::new(), _library: library })
    }

    /// The names of a provider's ciphers, as OpenSSL gives them.
    pub fn ciphers_of(&self, provider: &str) -> Vec<String> {
        let mut ciphers: Vec<*mut c_void> = Vec::new();
        let place = ptr::from_mut(&mut ciphers).cast();
        // SAFETY: the context is live, and `collect` gets the place of a list.
        unsafe { (self.api.EVP_CIPHER_do_all_provided)(self.context, collect, place) };
        let mut names = Vec::new();
        for cipher in ciphers {
            // SAFETY: the library context keeps the cipher.
            let of = unsafe { (self.api.EVP_CIPHER_get0_provider)(cipher) };
            // SAFETY: a cipher has a provider.
            let of = unsafe { (self.api.OSSL_PROVIDER_get0_name)(of) };
            // SAFETY: names end, and live as long as what has them.
            let of = unsafe { CStr::from_ptr(of) };
            // SAFETY: as above.
            let name = unsafe { (self.api.EVP_CIPHER_get0_name)(cipher) };
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(name) };
            if of.to_str() == Ok(provider) {
                names.push(name.to_string_lossy().into_owned());
            }
        }
        names.sort();
        names
    }

    /// A context for `name` of that provider.
    pub fn cipher(&self, name: &str, provider: &str) -> Context<'_> {
        let shown = format!("{name} of {provider}");
        let name = CString::new(name).unwrap();
        let properties = CString::new(format!("provider={provider}")).unwrap();
        // SAFETY: the library context is live, the texts end.
        let cipher = unsafe {
            (self.api.EVP_CIPHER_fetch)(self.context, name.as_ptr(), properties.as_ptr())
        };
        assert!(!cipher.is_null(), "{shown} was not found");
        // SAFETY: it may be called at any time.
        let context = unsafe { (self.api.EVP_CIPHER_CTX_new)() };
        Context { evp: self, cipher, context, begun: false }
    }

    /// The text of the oldest error of this thread, or else its reason; all errors are forgotten.
    pub fn error(&self) -> Option<String> {
        last_error(&self.api)?.said()
    }

    /// The same with reason and text apart.
    pub fn raised(&self) -> Option<Raised> {
        last_error(&self.api)
    }
}

/// # Safety
/// `list` must be the place of a list of ciphers.
unsafe extern "C" fn collect(cipher: *mut c_void, list: *mut c_void) {
    // SAFETY: by the caller's word.
    unsafe { (*list.cast::<Vec<*mut c_void>>()).push(cipher) };
}

/// An error in OpenSSL's queue.
#[derive(Debug, PartialEq, Eq)]
pub struct Raised {
    /// What `ERR_reason_error_string` says, if it knows the error.
    pub reason: Option<String>,
    /// What was said besides.
    pub text: Option<String>,
}

impl Raised {
    fn said(self) -> Option<String> {
        self.text.or(self.reason)
    }
}

fn last_error(api: &Api) -> Option<Raised> {
    let mut data = ptr::null();
    let (mut file, mut line, mut function, mut flags) = (ptr::null(), 0, ptr::null(), 0);
    let get = api.ERR_get_error_all;
    // SAFETY: all places are there.
    let code = unsafe { get(&mut file, &mut line, &mut function, &mut data, &mut flags) };
    // SAFETY: the data is null or a text that ends, for as long as the error is in the queue.
    let text = unsafe { owned(data) }.filter(|text| !text.is_empty());
    // SAFETY: it may be called at any time.
    unsafe { (api.ERR_clear_error)() };
    if code == 0 {
        return None;
    }
    // SAFETY: it may be called with any code.
    let reason = unsafe { (api.ERR_reason_error_string)(code) };
    // SAFETY: OpenSSL gives null or a text that ends.
    let reason = unsafe { owned(reason) };
    Some(Raised { reason, text })
}

/// # Safety
/// `text` must be null or a text that ends.
unsafe fn owned(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: by the caller's word.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

impl Drop for Evp {
    fn drop(&mut self) {
        for &provider in &self.providers {
            // SAFETY: it was loaded and not unloaded.
            unsafe { (self.api.OSSL_PROVIDER_unload)(provider) };
        }
        // SAFETY: it was made and not freed.
        unsafe { (self.api.OSSL_LIB_CTX_free)(self.context) };
    }
}

/// `EVP_CIPHER_CTX`.
pub struct Context<'a> {
    evp: &'a Evp,
    cipher: *mut c_void,
    context: *mut c_void,
    /// True once the context has its cipher: given again, it would begin anew.
    begun: bool,
}

impl Context<'_> {
    /// `EVP_CipherInit_ex2`; false if it failed.
    pub fn init(&mut self, encrypt: bool, key: Option<&[u8]>, iv: Option<&[u8]>) -> bool {
        let key = key.map_or(ptr::null(), <[u8]>::as_ptr);
        let iv = iv.map_or(ptr::null(), <[u8]>::as_ptr);
        let init = self.evp.api.EVP_CipherInit_ex2;
        let cipher = if self.begun { ptr::null() } else { self.cipher.cast_const() };
        self.begun = true;
        // SAFETY: the tests give keys and IVs of the lengths that the context has.
        let result = unsafe { init(self.context, cipher, key, iv, encrypt.into(), ptr::null()) };
        result == 1
    }

    /// `EVP_CipherUpdate` from one buffer to another; `None` if it failed.
    pub fn update(&mut self, input: &[u8]) -> Option<Vec<u8>> {
        let mut out = vec![0xee; input.len() + 32];
        // SAFETY: the output has room for the input and a block.
        let len = unsafe { self.update_at(out.as_mut_ptr(), input.as_ptr(), input.len()) }?;
        assert!(out[len..].iter().all(|&byte| byte == 0xee), "written beyond the output");
        out.truncate(len);
        Some(out)
    }

    /// `EVP_CipherUpdate` with additional data.
    pub fn aad(&mut self, aad: &[u8]) -> bool {
        // SAFETY: there is no output.
        unsafe { self.update_at(ptr::null_mut(), aad.as_ptr(), aad.len()) }.is_some()
    }

    /// `EVP_CipherUpdate`; the bytes written.
    ///
    /// # Safety
    /// As OpenSSL says: room for the input and a block less a byte.
    pub unsafe fn update_at(
        &mut self,
        out: *mut u8,
        input: *const u8,
        len: usize,
    ) -> Option<usize> {
        let mut written = -1;
        let update = self.evp.api.EVP_CipherUpdate;
        // SAFETY: by the caller's word.
        let result = unsafe { update(self.context, out, &mut written, input, len as c_int) };
        (result == 1).then_some(written as usize)
    }

    /// `EVP_CipherFinal_ex`; `None` if it failed.
    pub fn finish(&mut self) -> Option<Vec<u8>> {
        let mut out = vec![0; 64];
        let mut written = -1;
        let finish = self.evp.api.EVP_CipherFinal_ex;
        // SAFETY: there is room for a block.
        let result = unsafe { finish(self.context, out.as_mut_ptr(), &mut written) };
        out.truncate(written.max(0) as usize);
        (result == 1).then_some(out)
    }

    /// `EVP_Cipher`; what it returns, and the output.
    pub fn at_once(&mut self, input: &[u8]) -> (c_int, Vec<u8>) {
        let mut out = vec![0; input.len() + 16];
        let cipher = self.evp.api.EVP_Cipher;
        // SAFETY: there is room for the input.
        let result = unsafe {
            cipher(self.context, out.as_mut_ptr(), input.as_ptr(), input.len() as c_uint)
        };
        out.truncate(input.len());
        (result, out)
    }

    /// `EVP_Cipher` on a record in place; false if it failed.
    pub fn at_once_in_place(&mut self, record: &[u8]) -> bool {
        let mut memory = [record, &[0; 32]].concat();
        let start = memory.as_mut_ptr();
        let cipher = self.evp.api.EVP_Cipher;
        // SAFETY: there is room for a block behind the record.
        unsafe { cipher(self.context, start, start, record.len() as c_uint) > 0 }
    }

    /// `EVP_CIPHER_CTX_ctrl`.
    pub fn ctrl(&mut self, number: c_int, argument: c_int, pointer: *mut c_void) -> c_int {
        let ctrl = self.evp.api.EVP_CIPHER_CTX_ctrl;
        // SAFETY: the tests give what the control takes.
        unsafe { ctrl(self.context, number, argument, pointer) }
    }

    /// `EVP_CIPHER_CTX_set_params`.
    pub fn set(&mut self, params: &[Param]) -> bool {
        let set = self.evp.api.EVP_CIPHER_CTX_set_params;
        // SAFETY: the tests end their arrays.
        unsafe { set(self.context, params.as_ptr()) == 1 }
    }

    /// `EVP_CIPHER_CTX_get_params`.
    pub fn get(&mut self, params: &mut [Param]) -> bool {
        let get = self.evp.api.EVP_CIPHER_CTX_get_params;
        // SAFETY: the tests end their arrays.
        unsafe { get(self.context, params.as_mut_ptr()) == 1 }
    }

    /// `EVP_CIPHER_get_params` for one number.
    pub fn fixed(&self, name: &CStr) -> Option<usize> {
        let mut number = 0;
        let mut params = [Param::number(name, &mut number), Param::end()];
        let get = self.evp.api.EVP_CIPHER_get_params;
        // SAFETY: the array ends.
        let result = unsafe { get(self.cipher, params.as_mut_ptr()) };
        (result == 1 && params[0].return_size != usize::MAX).then_some(number)
    }

    /// A number of the context.
    pub fn number(&mut self, name: &CStr) -> Option<usize> {
        let mut number = 0;
        let mut params = [Param::number(name, &mut number), Param::end()];
        let result = self.get(&mut params);
        (result && params[0].return_size != usize::MAX).then_some(number)
    }

    /// Bytes of the context.
    pub fn bytes(&mut self, name: &CStr, len: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; len];
        let mut params = [Param::bytes(name, &mut bytes), Param::end()];
        let result = self.get(&mut params);
        (result && params[0].return_size == len).then_some(bytes)
    }

    pub fn set_number(&mut self, name: &CStr, mut number: u32) -> bool {
        self.set(&[Param::small(name, &mut number), Param::end()])
    }

    /// Puts a copy in its own place (`EVP_CIPHER_CTX_copy`), and frees the original.
    pub fn become_a_copy(&mut self) {
        let api = &self.evp.api;
        // SAFETY: it may be called at any time.
        let copy = unsafe { (api.EVP_CIPHER_CTX_new)() };
        // SAFETY: both contexts are live.
        assert_eq!(unsafe { (api.EVP_CIPHER_CTX_copy)(copy, self.context) }, 1);
        let original = std::mem::replace(&mut self.context, copy);
        // SAFETY: it was made and not freed.
        unsafe { (api.EVP_CIPHER_CTX_free)(original) };
    }
}

impl Drop for Context<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made and not freed.
        unsafe { (self.evp.api.EVP_CIPHER_CTX_free)(self.context) };
        // SAFETY: as above; null is permitted.
        unsafe { (self.evp.api.EVP_CIPHER_free)(self.cipher) };
    }
}
