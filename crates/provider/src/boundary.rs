//! The functions that OpenSSL calls for a cipher.
//!
//! Each turns C's arguments into Rust's, catches panics, and raises errors. The types are those of
//! `openssl/core_dispatch.h`; what OpenSSL keeps to is in the manual page `provider-cipher(7)`.

use std::ffi::{CStr, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::{ptr, slice};

use crate::abi::{self, Dispatch, Param, name};
use crate::buffer::Buffers;
use crate::cipher::{Algorithm, Cipher, Direction, Traits};
use crate::error::Error;
use crate::host::Host;
use crate::instance::Provider;
use crate::offers::multiblock_is_sound;
use crate::params::Params;

/// What a context's pointer is to.
struct Context<C> {
    host: Host,
    cipher: C,
    /// True after a panic, when the state of the cipher is unknown.
    broken: bool,
}

/// The table of functions of an algorithm, for library contexts with these [offers](crate::offers::Offers): OpenSSL asks
/// for an algorithm's traits without saying which library context asks.
pub(crate) struct Functions<A, const MULTIBLOCK: bool, const PAPER: bool>(
    std::marker::PhantomData<A>,
);

impl<A: Algorithm, const MULTIBLOCK: bool, const PAPER: bool> Functions<A, MULTIBLOCK, PAPER> {
    pub(crate) const TABLE: &'static [Dispatch] = &[
        Dispatch::new(abi::cipher::NEWCTX, newctx::<A> as *const c_void),
        Dispatch::new(abi::cipher::FREECTX, freectx::<A> as *const c_void),
        Dispatch::new(abi::cipher::DUPCTX, dupctx::<A> as *const c_void),
        Dispatch::new(abi::cipher::ENCRYPT_INIT, encrypt_init::<A> as *const c_void),
        Dispatch::new(abi::cipher::DECRYPT_INIT, decrypt_init::<A> as *const c_void),
        Dispatch::new(abi::cipher::UPDATE, update::<A> as *const c_void),
        Dispatch::new(abi::cipher::FINAL, finish::<A> as *const c_void),
        Dispatch::new(abi::cipher::CIPHER, at_once::<A> as *const c_void),
        Dispatch::new(abi::cipher::GET_PARAMS, get_params::<A, MULTIBLOCK, PAPER> as *const c_void),
        Dispatch::new(abi::cipher::GET_CTX_PARAMS, get_ctx_params::<A> as *const c_void),
        Dispatch::new(abi::cipher::SET_CTX_PARAMS, set_ctx_params::<A> as *const c_void),
        Dispatch::new(abi::cipher::GETTABLE_PARAMS, gettable_params as *const c_void),
        Dispatch::new(abi::cipher::GETTABLE_CTX_PARAMS, gettable_ctx_params::<A> as *const c_void),
        Dispatch::new(abi::cipher::SETTABLE_CTX_PARAMS, settable_ctx_params::<A> as *const c_void),
        Dispatch::END,
    ];
}

static TRAITS: &[Param] = &[
    Param::unsigned::<u32>(name::MODE),
    Param::unsigned::<usize>(name::KEY_LEN),
    Param::unsigned::<usize>(name::IV_LEN),
    Param::unsigned::<usize>(name::BLOCK_SIZE),
    Param::int(name::AEAD),
    Param::int(name::CUSTOM_IV),
    Param::int(name::CTS),
    Param::int(name::MULTIBLOCK),
    Param::int(name::RANDOM_KEY),
    Param::END,
];

/// Runs `body` on the context behind `context`. An error or a panic is raised in OpenSSL's way,
/// but for [`Error::Unspecified`], and gives `None`.
///
/// # Safety
/// `context` must be null or from [`newctx`] or [`dupctx`] of that algorithm, not freed, and in no other call.
#[inline(always)]
unsafe fn within<A: Algorithm, T>(
    context: *mut c_void,
    function: &'static CStr,
    body: impl FnOnce(&mut A::Context) -> Result<T, Error>,
) -> Option<T> {
    // SAFETY: by the caller's word.
    let context = unsafe { context.cast::<Context<A::Context>>().as_mut() }?;
    let error = if context.broken {
        Error::Internal
    } else {
        match catch_unwind(AssertUnwindSafe(|| body(&mut context.cipher))) {
            Ok(Ok(value)) => return Some(value),
            Ok(Err(error)) => error,
            Err(_) => {
                context.broken = true;
                Error::Internal
            }
        }
    };
    raise(context.host, error, function);
    None
}

#[cold]
#[inline(never)]
fn raise(host: Host, error: Error, function: &'static CStr) {
    if error != Error::Unspecified {
        host.raise(error, function);
    }
}

unsafe extern "C" fn newctx<A: Algorithm>(provider: *mut c_void) -> *mut c_void {
    // SAFETY: OpenSSL gives what `OSSL_provider_init` returned.
    let Some(provider) = (unsafe { provider.cast::<Provider>().as_ref() }) else {
        return ptr::null_mut();
    };
    let made = catch_unwind(AssertUnwindSafe(|| {
        provider.begin();
        let cipher = A::context(provider.allocation(), provider.offers().paper_mode);
        Box::new(Context { host: provider.host(), cipher, broken: false })
    }));
    match made {
        Ok(context) => Box::into_raw(context).cast(),
        Err(_) => {
            provider.host().raise(Error::Internal, c"newctx");
            ptr::null_mut()
        }
    }
}

unsafe extern "C" fn freectx<A: Algorithm>(context: *mut c_void) {
    if context.is_null() {
        return;
    }
    // SAFETY: OpenSSL frees once what `newctx` or `dupctx` gave.
    let context = unsafe { Box::from_raw(context.cast::<Context<A::Context>>()) };
    // OpenSSL takes no error from a destructor.
    let _ = catch_unwind(AssertUnwindSafe(|| drop(context)));
}

unsafe extern "C" fn dupctx<A: Algorithm>(context: *mut c_void) -> *mut c_void {
    // SAFETY: OpenSSL gives a context of ours.
    let Some(original) = (unsafe { context.cast::<Context<A::Context>>().as_ref() }) else {
        return ptr::null_mut();
    };
    let host = original.host;
    // SAFETY: as above; the reference above is used no more.
    let copy = unsafe { within::<A, _>(context, c"dupctx", |cipher| Ok(cipher.clone())) };
    copy.map_or(ptr::null_mut(), |cipher| {
        Box::into_raw(Box::new(Context { host, cipher, broken: false })).cast()
    })
}

unsafe extern "C" fn encrypt_init<A: Algorithm>(
    context: *mut c_void,
    key: *const u8,
    key_len: usize,
    iv: *const u8,
    iv_len: usize,
    params: *mut Param,
) -> c_int {
    let key = Given(key, key_len);
    let iv = Given(iv, iv_len);
    // SAFETY: the arguments are OpenSSL's, as the manual says.
    unsafe { init::<A, true>(context, key, iv, params) }
}

unsafe extern "C" fn decrypt_init<A: Algorithm>(
    context: *mut c_void,
    key: *const u8,
    key_len: usize,
    iv: *const u8,
    iv_len: usize,
    params: *mut Param,
) -> c_int {
    let key = Given(key, key_len);
    let iv = Given(iv, iv_len);
    // SAFETY: the arguments are OpenSSL's, as the manual says.
    unsafe { init::<A, false>(context, key, iv, params) }
}

/// Bytes that may not be given.
#[derive(Clone, Copy)]
struct Given(*const u8, usize);

impl Given {
    /// # Safety
    /// The pointer is null, or valid for reads of the length during `'a`.
    unsafe fn bytes<'a>(&self) -> Result<Option<&'a [u8]>, Error> {
        if self.0.is_null() {
            return Ok(None);
        }
        // EVP's lengths are of type `int`: one below zero comes as one near the end of memory.
        if isize::try_from(self.1).is_err() {
            return Err(Error::Length);
        }
        // SAFETY: by the caller's word.
        Ok(Some(unsafe { slice::from_raw_parts(self.0, self.1) }))
    }
}

/// The direction is no argument, so that the compiler keeps either in one function.
///
/// # Safety
/// As [`within`], and the rest as OpenSSL's manual says.
#[inline(always)]
unsafe fn init<A: Algorithm, const ENCRYPT: bool>(
    context: *mut c_void,
    key: Given,
    iv: Given,
    params: *mut Param,
) -> c_int {
    // SAFETY: OpenSSL gives null or a buffer of the length.
    let key = unsafe { key.bytes() };
    // SAFETY: as above.
    let iv = unsafe { iv.bytes() };
    // SAFETY: OpenSSL gives null or an array that ends.
    let params = unsafe { Params::new(params) };
    let direction = if ENCRYPT { Direction::Encrypt } else { Direction::Decrypt };
    let body = |cipher: &mut A::Context| {
        cipher.init(direction, key?, iv?)?;
        if params.is_empty() { Ok(()) } else { cipher.set(&params) }
    };
    // SAFETY: by the caller's word.
    done(unsafe { within::<A, _>(context, c"init", body) })
}

/// Input and output of a step, as OpenSSL gives them.
struct Step {
    out: *mut u8,
    out_len: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
}

impl Step {
    /// Runs it, and writes the number of bytes to `out_len`.
    ///
    /// # Safety
    /// As [`within`]; the buffers are null or as long as given, and `out_len` is null or valid
    /// for a write.
    #[inline(always)]
    unsafe fn run<A: Algorithm>(
        self,
        context: *mut c_void,
        function: &'static CStr,
        act: impl FnOnce(&mut A::Context, Buffers<'_>) -> Result<usize, Error>,
    ) -> c_int {
        // SAFETY: by the caller's word.
        let buffers = unsafe { Buffers::new(self.out, self.room, self.input, self.len) };
        // SAFETY: as above.
        let written = unsafe { within::<A, _>(context, function, |cipher| act(cipher, buffers?)) };
        // SAFETY: as above.
        if let Some(out_len) = unsafe { self.out_len.as_mut() } {
            *out_len = written.unwrap_or(0);
        }
        done(written.map(drop))
    }
}

unsafe extern "C" fn update<A: Algorithm>(
    context: *mut c_void,
    out: *mut u8,
    out_len: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
) -> c_int {
    let step = Step { out, out_len, room, input, len };
    // SAFETY: OpenSSL gives a context of ours, buffers of these lengths and a place for a length.
    unsafe { step.run::<A>(context, c"update", |cipher, buffers| cipher.update(buffers)) }
}

unsafe extern "C" fn finish<A: Algorithm>(
    context: *mut c_void,
    out: *mut u8,
    out_len: *mut usize,
    room: usize,
) -> c_int {
    let step = Step { out, out_len, room, input: ptr::null(), len: 0 };
    // SAFETY: as in `update`.
    unsafe { step.run::<A>(context, c"final", |cipher, buffers| cipher.finish(buffers)) }
}

unsafe extern "C" fn at_once<A: Algorithm>(
    context: *mut c_void,
    out: *mut u8,
    out_len: *mut usize,
    room: usize,
    input: *const u8,
    len: usize,
) -> c_int {
    let step = Step { out, out_len, room, input, len };
    // SAFETY: as in `update`.
    unsafe { step.run::<A>(context, c"cipher", |cipher, buffers| cipher.at_once(buffers)) }
}

unsafe extern "C" fn get_params<A: Algorithm, const MULTIBLOCK: bool, const PAPER: bool>(
    params: *mut Param,
) -> c_int {
    // SAFETY: OpenSSL gives null or an array that ends.
    let params = unsafe { Params::new(params) };
    // Without a context, no error can be raised.
    let answered =
        catch_unwind(AssertUnwindSafe(|| answer_traits(&A::TRAITS, MULTIBLOCK, PAPER, &params)));
    c_int::from(matches!(answered, Ok(Ok(()))))
}

fn answer_traits(
    traits: &Traits,
    multiblock: bool,
    paper_mode: bool,
    params: &Params<'_>,
) -> Result<(), Error> {
    let paper = traits.paper && paper_mode;
    let multiblock = (traits.multiblock || paper) && multiblock && multiblock_is_sound();
    params.answer(name::MODE, traits.mode as usize)?;
    params.answer(name::KEY_LEN, traits.key_len)?;
    params.answer(name::IV_LEN, traits.iv_len)?;
    params.answer(name::BLOCK_SIZE, traits.block_size)?;
    params.answer(name::AEAD, usize::from(traits.aead || paper))?;
    params.answer(name::CUSTOM_IV, usize::from(traits.custom_iv))?;
    params.answer(name::MULTIBLOCK, usize::from(multiblock))?;
    params.answer(name::CTS, 0)?;
    params.answer(name::RANDOM_KEY, 0)
}

unsafe extern "C" fn get_ctx_params<A: Algorithm>(
    context: *mut c_void,
    params: *mut Param,
) -> c_int {
    // SAFETY: OpenSSL gives null or an array that ends.
    let params = unsafe { Params::new(params) };
    // SAFETY: OpenSSL gives a context of ours.
    done(unsafe { within::<A, _>(context, c"get_ctx_params", |cipher| cipher.get(&params)) })
}

unsafe extern "C" fn set_ctx_params<A: Algorithm>(
    context: *mut c_void,
    params: *mut Param,
) -> c_int {
    // SAFETY: OpenSSL gives null or an array that ends.
    let params = unsafe { Params::new(params) };
    // SAFETY: OpenSSL gives a context of ours.
    done(unsafe { within::<A, _>(context, c"set_ctx_params", |cipher| cipher.set(&params)) })
}

unsafe extern "C" fn gettable_params(_provider: *mut c_void) -> *const Param {
    TRAITS.as_ptr()
}

unsafe extern "C" fn gettable_ctx_params<A: Algorithm>(
    _context: *mut c_void,
    _provider: *mut c_void,
) -> *const Param {
    A::GETTABLE.as_ptr()
}

unsafe extern "C" fn settable_ctx_params<A: Algorithm>(
    _context: *mut c_void,
    _provider: *mut c_void,
) -> *const Param {
    A::SETTABLE.as_ptr()
}

fn done(result: Option<()>) -> c_int {
    c_int::from(result.is_some())
}
