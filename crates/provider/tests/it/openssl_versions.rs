//! Which versions of OpenSSL are offered many records at once. Versions that cannot be installed here
//! are a libcrypto that the test plays: it loads the module and says another version.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use libloading::Library;
use wattlock_provider::statistics::{Loaded, Multiblock, SharedTable};

use crate::support::evp::Param;
use crate::support::installation::alone;
use crate::support::module;

#[repr(C)]
struct Dispatch {
    number: c_int,
    function: *const c_void,
}

/// `OSSL_ALGORITHM`.
#[repr(C)]
struct Algorithm {
    names: *const c_char,
    _properties: *const c_char,
    functions: *const Dispatch,
    _description: *const c_char,
}

const CORE_GET_PARAMS: c_int = 2;
const PROVIDER_QUERY_OPERATION: c_int = 1027;
const CIPHERS: c_int = 2;
const CIPHER_GET_PARAMS: c_int = 9;

/// What the section of the configuration has, and the version.
struct Core {
    texts: Vec<(&'static CStr, CString)>,
}

unsafe extern "C" fn core_get_params(core: *const c_void, params: *mut Param) -> c_int {
    // SAFETY: the handle is the one that was given to the provider.
    let core = unsafe { &*core.cast::<Core>() };
    let mut at = params;
    loop {
        // SAFETY: the array ends.
        let param = unsafe { &mut *at };
        if param.key.is_null() {
            return 1;
        }
        // SAFETY: keys end.
        let key = unsafe { CStr::from_ptr(param.key) };
        if let Some((_, text)) = core.texts.iter().find(|(name, _)| *name == key) {
            // SAFETY: the provider asks for texts only, with a place for a pointer.
            unsafe { param.data.cast::<*const c_char>().write(text.as_ptr()) };
            param.return_size = text.count_bytes();
        }
        at = at.wrapping_add(1);
    }
}

/// Loads the module as that version does; what AES-256-GCM says of many records.
fn offered(library: &Library, version: &str, settings: &[(&'static CStr, &str)]) -> c_int {
    type Init = unsafe extern "C" fn(
        *const c_void,
        *const Dispatch,
        *mut *const Dispatch,
        *mut *mut c_void,
    ) -> c_int;
    let mut texts = vec![(c"openssl-version", CString::new(version).unwrap())];
    // On every CPU.
    texts.push((c"gcm", CString::new("1").unwrap()));
    texts.extend(settings.iter().map(|(name, text)| (*name, CString::new(*text).unwrap())));
    let core = Core { texts };
    let functions = [
        Dispatch { number: CORE_GET_PARAMS, function: core_get_params as *const c_void },
        Dispatch { number: 0, function: ptr::null() },
    ];
    // SAFETY: the type is that of OpenSSL's manual.
    let init = unsafe { library.get::<Init>(b"OSSL_provider_init") }.unwrap();
    let (mut out, mut context) = (ptr::null(), ptr::null_mut());
    let handle = ptr::from_ref(&core).cast();
    // SAFETY: both tables end; the handle is the core's.
    let loaded = unsafe { init(handle, functions.as_ptr(), &mut out, &mut context) };
    assert_eq!(loaded, 1, "{version}");
    type Query = unsafe extern "C" fn(*mut c_void, c_int, *mut c_int) -> *const Algorithm;
    // SAFETY: under this number is a function of this type.
    let query: Query = unsafe { std::mem::transmute(function(out, PROVIDER_QUERY_OPERATION)) };
    // SAFETY: the context is the provider's.
    let mut algorithm = unsafe { query(context, CIPHERS, &mut 0) };
    loop {
        // SAFETY: the table ends with an entry without names.
        let entry = unsafe { &*algorithm };
        assert!(!entry.names.is_null(), "there is no AES-256-GCM");
        // SAFETY: names end.
        if unsafe { CStr::from_ptr(entry.names) }.to_bytes().starts_with(b"AES-256-GCM") {
            type GetParams = unsafe extern "C" fn(*mut Param) -> c_int;
            // SAFETY: under this number is a function of this type.
            let get: GetParams =
                unsafe { std::mem::transmute(function(entry.functions, CIPHER_GET_PARAMS)) };
            let mut offer = usize::MAX;
            let mut params = [Param::number(c"tls-multi", &mut offer), Param::end()];
            // SAFETY: the array ends.
            assert_eq!(unsafe { get(params.as_mut_ptr()) }, 1);
            return offer as c_int;
        }
        algorithm = algorithm.wrapping_add(1);
    }
}

fn function(table: *const Dispatch, number: c_int) -> *const c_void {
    let mut at = table;
    loop {
        // SAFETY: the table ends with number 0.
        let entry = unsafe { &*at };
        assert_ne!(entry.number, 0, "there is no function {number}");
        if entry.number == number {
            return entry.function;
        }
        at = at.wrapping_add(1);
    }
}

#[test]
fn many_records_are_offered_to_tested_versions_only() {
    alone(module_path!(), "many_records_are_offered_to_tested_versions_only", || {
        // SAFETY: its initialisers may run in any program.
        let library = unsafe { Library::new(module()) }.unwrap();
        let table = SharedTable::new().unwrap();
        let statistics = table.setting();
        for (version, multiblock, offer, noted) in [
            ("3.0.19", None, 1, Multiblock::Offered),
            ("3.4.1", None, 0, Multiblock::Untested),
            ("3.5.4", None, 1, Multiblock::Offered),
            ("4.0.3", None, 1, Multiblock::Offered),
            ("4.1.0", None, 0, Multiblock::Untested),
            ("4.0.0-beta1", None, 0, Multiblock::Untested),
            ("3.4.1", Some("1"), 1, Multiblock::Offered),
            ("3.0.19", Some("0"), 0, Multiblock::Off),
        ] {
            let mut settings = vec![(c"statistics", statistics.as_str())];
            settings.extend(multiblock.map(|text| (c"multiblock", text)));
            assert_eq!(offered(&library, version, &settings), offer, "{version}, {multiblock:?}");
            let last = Loaded { openssl: version.to_owned(), multiblock: Some(noted) };
            assert_eq!(table.loaded().unwrap()[0], last);
        }
    });
}

/// A program may have two OpenSSLs, which share the module and its table.
#[test]
fn a_table_names_both_openssls_of_a_process() {
    alone(module_path!(), "a_table_names_both_openssls_of_a_process", || {
        // SAFETY: its initialisers may run in any program.
        let library = unsafe { Library::new(module()) }.unwrap();
        let table = SharedTable::new().unwrap();
        let statistics = table.setting();
        let loaded = |version: &str| {
            offered(&library, version, &[(c"statistics", statistics.as_str())]);
            let versions = table.loaded().unwrap().into_iter();
            versions.map(|one| (one.openssl, one.multiblock.unwrap())).collect::<Vec<_>>()
        };
        let [old, new] = [("3.0.19", Multiblock::Offered), ("4.1.0", Multiblock::Untested)]
            .map(|(version, multiblock)| (version.to_owned(), multiblock));
        assert_eq!(loaded("3.0.19"), std::slice::from_ref(&old));
        assert_eq!(loaded("3.0.19"), std::slice::from_ref(&old));
        assert_eq!(loaded("4.1.0"), [new.clone(), old.clone()]);
        assert_eq!(loaded("4.1.0"), [new, old]);
    });
}
