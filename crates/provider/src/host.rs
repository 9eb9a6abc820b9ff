//! The host: the libcrypto that loaded this provider, as far as it is called back.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::ptr;

use crate::abi::{self, Dispatch, Param};
use crate::error::Error;

/// The host's handle for this provider, and its functions.
///
/// A copy is in every context, so that an error is raised where it happens. It is of use as long
/// as the provider is loaded, and OpenSSL unloads none that has contexts.
#[derive(Clone, Copy)]
pub(crate) struct Host {
    handle: *const c_void,
    get_params: Option<unsafe extern "C" fn(*const c_void, *mut Param) -> c_int>,
    new_error: Option<unsafe extern "C" fn(*const c_void)>,
    set_error_debug:
        Option<unsafe extern "C" fn(*const c_void, *const c_char, c_int, *const c_char)>,
    vset_error: Option<unsafe extern "C" fn(*const c_void, c_uint, *const c_char, *mut c_void)>,
}

// SAFETY: OpenSSL's functions may be called from any thread; its errors are the thread's own.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Host {
    /// Binds what `functions` lists.
    ///
    /// # Safety
    /// `functions` must be a dispatch table that ends, of functions with OpenSSL's types, and
    /// `handle` what came with it.
    #[allow(clippy::missing_transmute_annotations, reason = "the types are the fields'")]
    pub(crate) unsafe fn bind(handle: *const c_void, functions: *const Dispatch) -> Self {
        let mut host = Self {
            handle,
            get_params: None,
            new_error: None,
            set_error_debug: None,
            vset_error: None,
        };
        let mut entry = functions;
        loop {
            // SAFETY: the caller's table goes on until an entry of number 0.
            let Dispatch { function_id, function } = unsafe { entry.read() };
            match function_id {
                0 => return host,
                abi::host::GET_PARAMS => {
                    // SAFETY: under this number is a function of this type, or null.
                    host.get_params = unsafe { std::mem::transmute(function) };
                }
                abi::host::NEW_ERROR => {
                    // SAFETY: as above.
                    host.new_error = unsafe { std::mem::transmute(function) };
                }
                abi::host::SET_ERROR_DEBUG => {
                    // SAFETY: as above.
                    host.set_error_debug = unsafe { std::mem::transmute(function) };
                }
                abi::host::VSET_ERROR => {
                    // SAFETY: as above.
                    host.vset_error = unsafe { std::mem::transmute(function) };
                }
                _ => {}
            }
            entry = entry.wrapping_add(1);
        }
    }

    /// Puts `error` into the thread's queue of errors, as raised in `function`: its reason and its text.
    pub(crate) fn raise(&self, error: Error, function: &CStr) {
        let (Some(new_error), Some(vset_error)) = (self.new_error, self.vset_error) else {
            return;
        };
        // SAFETY: the handle is the one that came with the function.
        unsafe { new_error(self.handle) };
        if let Some(set_debug) = self.set_error_debug {
            // SAFETY: as above; the texts are constants.
            unsafe { set_debug(self.handle, c"wattlock".as_ptr(), 0, function.as_ptr()) };
        }
        // No format has a place for arguments, so nothing reads them. They are a pointer to a
        // `va_list` on every ABI of 64 bits but Apple's and Windows', where they are a pointer.
        let mut no_arguments = [0_u64; 8];
        let arguments = ptr::from_mut(&mut no_arguments).cast();
        // SAFETY: as above; the formats are constants without `%`.
        unsafe { vset_error(self.handle, error.reason(), error.c_text().as_ptr(), arguments) };
    }

    /// A text of the host's own (`openssl-version`), or of the provider's section in its
    /// configuration.
    pub(crate) fn text(&self, key: &'static CStr) -> Option<String> {
        let get_params = self.get_params?;
        let mut text: *const c_char = ptr::null();
        let mut wanted = [Param::text_wanted(key, &mut text), Param::END];
        // SAFETY: the handle is the one that came with the function; the array ends.
        let known = unsafe { get_params(self.handle, wanted.as_mut_ptr()) };
        if known != 1 || text.is_null() {
            return None;
        }
        // SAFETY: the host put a text there that ends, which lives as long as the configuration.
        let text = unsafe { CStr::from_ptr(text) };
        Some(text.to_string_lossy().into_owned())
    }
}
