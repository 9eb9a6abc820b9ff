//! The provider itself: its entry, its settings, and its parameters.

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;

use crate::abi::{self, Dispatch, Param, name};
use crate::allocation::Allocation;
use crate::error::Error;
use crate::host::Host;
use crate::instance::Provider;
use crate::offers::{Offers, gcm_is_faster};
use crate::params::Params;
use crate::register::ciphers;
use crate::statistics::{self, Multiblock};
use crate::{fork, load_check};

/// The entry that OpenSSL looks up in the module.
///
/// # Safety
/// As in OpenSSL's manual page `provider-base(7)`: `functions` is a dispatch table that ends, the
/// two last arguments are places for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn OSSL_provider_init(
    handle: *const c_void,
    functions: *const Dispatch,
    out: *mut *const Dispatch,
    context: *mut *mut c_void,
) -> c_int {
    // SAFETY: by the caller's word.
    let host = unsafe { Host::bind(handle, functions) };
    let started = catch_unwind(AssertUnwindSafe(|| start(host).map(Box::new)));
    let provider = match started.unwrap_or(Err(Error::Internal)) {
        Ok(provider) => provider,
        Err(error) => {
            host.raise(error, c"OSSL_provider_init");
            return 0;
        }
    };
    // SAFETY: by the caller's word.
    unsafe { context.write(Box::into_raw(provider).cast()) };
    // SAFETY: as above.
    unsafe { out.write(FUNCTIONS.as_ptr()) };
    1
}

/// No thread or device is started here: a server loads the provider before it forks. What needs a
/// system call is done here, and only here: see [`fork`].
fn start(host: Host) -> Result<Provider, Error> {
    fork::prepare()?;
    let is_on = |name| host.text(name).map(|text| text.trim() != "0");
    let paper_mode = is_on(c"paper_mode").unwrap_or(false);
    let allocation = Arc::new(Allocation::configured(|name| host.text(name), paper_mode)?);
    let fault = host.text(load_check::SETTING);
    let agreed = load_check::at_load(fault.as_deref().map(str::trim))?;
    // What was checked so far is nothing to count.
    statistics::set_up(host.text(c"statistics").unwrap_or_default().trim())?;
    let openssl = host.text(name::OPENSSL_VERSION).unwrap_or_default();
    let multiblock = match is_on(c"multiblock") {
        Some(false) => Multiblock::Off,
        None if !is_tested(&openssl) => Multiblock::Untested,
        _ if !agreed => Multiblock::Disagreed,
        _ => Multiblock::Offered,
    };
    statistics::note_multiblock(multiblock, &openssl);
    let multiblock = multiblock == Multiblock::Offered;
    let gcm = is_on(c"gcm").unwrap_or_else(gcm_is_faster);
    let offers = Offers { multiblock, paper_mode: paper_mode && agreed, gcm };
    Ok(Provider::new(host, allocation, offers))
}

/// Whether the provider takes these of its settings: `accelerator`, `threshold` and `migration`, as
/// texts of its section. For programs that write a configuration.
///
/// # Errors
/// What the provider would say.
pub fn check_settings(setting: impl Fn(&str) -> Option<String>) -> Result<(), Error> {
    let text = |name: &CStr| name.to_str().ok().and_then(&setting);
    Allocation::configured(text, false).map(drop)
}

/// Whether the tests run this version of OpenSSL: its multiblock hook is undocumented, and under
/// repair.
fn is_tested(version: &str) -> bool {
    let mut numbers = version.split('.').map_while(|number| number.parse::<u32>().ok());
    let release = [numbers.next(), numbers.next()];
    !version.contains('-') && TESTED.iter().any(|&tested| release == tested.map(Some))
}

/// The releases of OpenSSL that the tests run: Debian 12's, and those of `cargo xtask openssl`.
const TESTED: [[u32; 2]; 4] = [[3, 0], [3, 5], [3, 6], [4, 0]];

static FUNCTIONS: &[Dispatch] = &[
    Dispatch::new(abi::provider::TEARDOWN, teardown as *const c_void),
    Dispatch::new(abi::provider::GETTABLE_PARAMS, gettable_params as *const c_void),
    Dispatch::new(abi::provider::GET_PARAMS, get_params as *const c_void),
    Dispatch::new(abi::provider::QUERY_OPERATION, query_operation as *const c_void),
    Dispatch::END,
];

static GETTABLE: &[Param] = &[
    Param::utf8_ptr(name::NAME),
    Param::utf8_ptr(name::VERSION),
    Param::utf8_ptr(name::BUILD_INFO),
    Param::int(name::STATUS),
    Param::END,
];

const VERSION: &CStr =
    match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
        Ok(version) => version,
        Err(_) => panic!("a version has no zero inside"),
    };

unsafe extern "C" fn teardown(provider: *mut c_void) {
    if provider.is_null() {
        return;
    }
    // SAFETY: OpenSSL tears down once what the entry gave.
    drop(unsafe { Box::from_raw(provider.cast::<Provider>()) });
}

unsafe extern "C" fn gettable_params(_provider: *mut c_void) -> *const Param {
    GETTABLE.as_ptr()
}

unsafe extern "C" fn get_params(provider: *mut c_void, params: *mut Param) -> c_int {
    // SAFETY: OpenSSL gives what the entry gave.
    let Some(provider) = (unsafe { provider.cast::<Provider>().as_ref() }) else { return 0 };
    // SAFETY: OpenSSL gives null or an array that ends.
    let params = unsafe { Params::new(params) };
    let answered = catch_unwind(AssertUnwindSafe(|| {
        let texts =
            [(name::NAME, c"Wattlock"), (name::VERSION, VERSION), (name::BUILD_INFO, VERSION)];
        for (name, text) in texts {
            if let Some(value) = params.find(name) {
                value.set_text(text)?;
            }
        }
        params.answer(name::STATUS, 1)
    }));
    match answered.unwrap_or(Err(Error::Internal)) {
        Ok(()) => 1,
        Err(error) => {
            provider.host().raise(error, c"get_params");
            0
        }
    }
}

unsafe extern "C" fn query_operation(
    provider: *mut c_void,
    operation: c_int,
    no_cache: *mut c_int,
) -> *const abi::Algorithm {
    // SAFETY: OpenSSL gives null or a place for a number.
    if let Some(no_cache) = unsafe { no_cache.as_mut() } {
        *no_cache = 0;
    }
    // SAFETY: OpenSSL gives what the entry gave.
    let provider = unsafe { provider.cast::<Provider>().as_ref() };
    match (operation, provider) {
        (abi::provider::OPERATION_CIPHER, Some(provider)) => ciphers(provider.offers()).as_ptr(),
        _ => ptr::null(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_tested_versions_get_multiblock() {
        for version in ["3.0.19", "3.0.7", "3.0.8+quic", "3.5.4", "3.6.3", "4.0.3"] {
            assert!(is_tested(version), "{version}");
        }
        for version in ["1.1.1", "3.1.0", "3.4.1", "3.50.0", "4.0.0-dev", "4.1.0", "30.0", "", "x"]
        {
            assert!(!is_tested(version), "{version}");
        }
    }
}
