//! The server's side of TLS by this system's libssl, without a socket: bytes go in and out through
//! memory, so that a caller can time each step by itself.

use std::ffi::{CString, c_char, c_int, c_long, c_void};
use std::mem::ManuallyDrop;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use libloading::Library;

use crate::Absent;

/// Declares the table of functions and how it is filled.
macro_rules! functions {
    ($($name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        /// One pointer per function, under the function's own name.
        #[allow(non_snake_case)]
        struct Functions {
            $($name: unsafe extern "C" fn($($kind),*) $(-> $result)?,)*
        }

        impl Functions {
            fn of(libssl: &Library, libcrypto: &Library) -> Result<Self, libloading::Error> {
                Ok(Self {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        let library = if name.starts_with("BIO_") { libcrypto } else { libssl };
                        // SAFETY: the field has the type that the public headers of OpenSSL 3 and
                        // 4 declare for this name.
                        *unsafe { library.get(name) }?
                    },)*
                })
            }
        }
    };
}

functions! {
    TLS_server_method() -> *const c_void;
    SSL_CTX_new(method: *const c_void) -> *mut c_void;
    SSL_CTX_free(context: *mut c_void);
    SSL_CTX_ctrl(context: *mut c_void, command: c_int, number: c_long, data: *mut c_void) -> c_long;
    SSL_CTX_set_cipher_list(context: *mut c_void, list: *const c_char) -> c_int;
    SSL_CTX_use_certificate_chain_file(context: *mut c_void, file: *const c_char) -> c_int;
    SSL_CTX_use_PrivateKey_file(context: *mut c_void, file: *const c_char, kind: c_int) -> c_int;
    SSL_new(context: *mut c_void) -> *mut c_void;
    SSL_free(ssl: *mut c_void);
    SSL_set_bio(ssl: *mut c_void, incoming: *mut c_void, outgoing: *mut c_void);
    SSL_accept(ssl: *mut c_void) -> c_int;
    SSL_read(ssl: *mut c_void, data: *mut c_void, bytes: c_int) -> c_int;
    SSL_write(ssl: *mut c_void, data: *const c_void, bytes: c_int) -> c_int;
    SSL_shutdown(ssl: *mut c_void) -> c_int;
    SSL_get_error(ssl: *const c_void, result: c_int) -> c_int;
    BIO_s_mem() -> *const c_void;
    BIO_new(method: *const c_void) -> *mut c_void;
    BIO_read(bio: *mut c_void, data: *mut c_void, bytes: c_int) -> c_int;
    BIO_write(bio: *mut c_void, data: *const c_void, bytes: c_int) -> c_int;
}

/// A server with one certificate and one suite of TLS 1.2.
pub struct TlsServer {
    functions: Functions,
    context: *mut c_void,
    /// Never closed: both register handlers that run when a thread or the process ends.
    _libraries: ManuallyDrop<[Library; 2]>,
}

/// A client's connection to a [`TlsServer`].
pub struct TlsConnection<'a> {
    server: &'a TlsServer,
    ssl: *mut c_void,
    incoming: *mut c_void,
    outgoing: *mut c_void,
}

/// What came of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlsStep {
    /// It is done; of a read, with so many bytes.
    Done(usize),
    /// It needs more bytes of the client.
    NeedsMore,
    /// The connection is closed, or broken.
    Over,
}

impl TlsServer {
    /// A server with a certificate and a key from files in PEM, for clients that offer `suite`.
    ///
    /// # Errors
    /// That there is no libssl, or that it refuses one of them.
    pub fn new(certificate: &Path, key: &Path, suite: &str) -> Result<Self, Absent> {
        let absent = |why: String| Absent { name: "libssl", why };
        let opened = SYSTEM_NAMES.iter().find_map(|&(libssl, libcrypto)| {
            // SAFETY: loading runs the constructors of the libraries, which are made for it.
            let libcrypto = unsafe { Library::new(libcrypto) }.ok()?;
            // SAFETY: as above.
            let libssl = unsafe { Library::new(libssl) }.ok()?;
            Some([libssl, libcrypto])
        });
        let libraries = opened.ok_or_else(|| absent("this system has none".into()))?;
        let functions =
            Functions::of(&libraries[0], &libraries[1]).map_err(|why| absent(why.to_string()))?;
        // SAFETY: takes nothing and returns a static table.
        let method = unsafe { (functions.TLS_server_method)() };
        // SAFETY: the method is that of the same library; null when it fails.
        let context = unsafe { (functions.SSL_CTX_new)(method) };
        if context.is_null() {
            return Err(absent("SSL_CTX_new failed".into()));
        }
        let server = Self { functions, context, _libraries: ManuallyDrop::new(libraries) };
        server.set_up(certificate, key, suite).map_err(|call| absent(format!("{call} failed")))?;
        Ok(server)
    }

    fn set_up(&self, certificate: &Path, key: &Path, suite: &str) -> Result<(), &'static str> {
        let text = |bytes: &[u8]| CString::new(bytes).map_err(|_| "a name with a NUL");
        let [certificate, key] = [certificate, key].map(|path| text(path.as_os_str().as_bytes()));
        let (certificate, key, suite) = (certificate?, key?, text(suite.as_bytes())?);
        let (functions, context) = (&self.functions, self.context);
        let done = |status: c_int, call| if status == 1 { Ok(()) } else { Err(call) };
        // SAFETY: the context is alive; the command takes a number and no data.
        let status = unsafe {
            (functions.SSL_CTX_ctrl)(context, SET_MAX_VERSION, TLS_1_2, std::ptr::null_mut())
        };
        done(status as c_int, "SSL_CTX_set_max_proto_version")?;
        // SAFETY: the context is alive, the text ends in NUL.
        let status = unsafe { (functions.SSL_CTX_set_cipher_list)(context, suite.as_ptr()) };
        done(status, "SSL_CTX_set_cipher_list")?;
        // SAFETY: as above.
        let status = unsafe {
            (functions.SSL_CTX_use_certificate_chain_file)(context, certificate.as_ptr())
        };
        done(status, "SSL_CTX_use_certificate_chain_file")?;
        // SAFETY: as above.
        let status = unsafe { (functions.SSL_CTX_use_PrivateKey_file)(context, key.as_ptr(), PEM) };
        done(status, "SSL_CTX_use_PrivateKey_file")
    }

    /// A connection on which nothing came yet; `None` without memory.
    pub fn connection(&self) -> Option<TlsConnection<'_>> {
        let functions = &self.functions;
        // SAFETY: the context is alive; null when it fails.
        let ssl = unsafe { (functions.SSL_new)(self.context) };
        if ssl.is_null() {
            return None;
        }
        let memory = || {
            // SAFETY: takes nothing and returns a static table.
            let method = unsafe { (functions.BIO_s_mem)() };
            // SAFETY: the method is that of the same library; null when it fails.
            unsafe { (functions.BIO_new)(method) }
        };
        let (incoming, outgoing) = (memory(), memory());
        // SAFETY: all are alive or null; the connection owns both from here on.
        unsafe { (functions.SSL_set_bio)(ssl, incoming, outgoing) };
        let connection = TlsConnection { server: self, ssl, incoming, outgoing };
        (!incoming.is_null() && !outgoing.is_null()).then_some(connection)
    }
}

impl Drop for TlsServer {
    fn drop(&mut self) {
        // SAFETY: it was made by `new`; connections borrow this, so that none is left.
        unsafe { (self.functions.SSL_CTX_free)(self.context) };
    }
}

impl TlsConnection<'_> {
    /// Takes what came from the client.
    pub fn take(&mut self, bytes: &[u8]) {
        let (data, len) = (bytes.as_ptr().cast(), length(bytes.len()));
        // SAFETY: the memory is alive and takes all bytes; `data` has `len` of them.
        unsafe { (self.server.functions.BIO_write)(self.incoming, data, len) };
    }

    /// Moves what waits for the client to the end of `out`.
    pub fn give(&mut self, out: &mut Vec<u8>) {
        loop {
            let old = out.len();
            out.resize(old + STEP, 0);
            let data = out[old..].as_mut_ptr().cast();
            // SAFETY: the memory is alive, and `data` has room for that many bytes.
            let read =
                unsafe { (self.server.functions.BIO_read)(self.outgoing, data, length(STEP)) };
            let read = usize::try_from(read).unwrap_or(0);
            out.truncate(old + read);
            if read < STEP {
                return;
            }
        }
    }

    /// Goes on with the handshake.
    pub fn accept(&mut self) -> TlsStep {
        // SAFETY: the connection is alive.
        let status = unsafe { (self.server.functions.SSL_accept)(self.ssl) };
        self.step(status)
    }

    /// Decrypts what came into `buffer`.
    pub fn read(&mut self, buffer: &mut [u8]) -> TlsStep {
        let (data, len) = (buffer.as_mut_ptr().cast(), length(buffer.len()));
        // SAFETY: the connection is alive, and `data` has room for `len` bytes.
        let status = unsafe { (self.server.functions.SSL_read)(self.ssl, data, len) };
        self.step(status)
    }

    /// Encrypts bytes for the client.
    pub fn write(&mut self, bytes: &[u8]) -> TlsStep {
        let (data, len) = (bytes.as_ptr().cast(), length(bytes.len()));
        // SAFETY: the connection is alive, and `data` has `len` bytes.
        let status = unsafe { (self.server.functions.SSL_write)(self.ssl, data, len) };
        self.step(status)
    }

    /// Says to the client that nothing more comes.
    pub fn close(&mut self) {
        // SAFETY: the connection is alive.
        unsafe { (self.server.functions.SSL_shutdown)(self.ssl) };
    }

    fn step(&self, status: c_int) -> TlsStep {
        if status > 0 {
            return TlsStep::Done(status as usize);
        }
        // SAFETY: the connection is alive, and the status is of the last call on it.
        let why = unsafe { (self.server.functions.SSL_get_error)(self.ssl, status) };
        if why == WANT_READ { TlsStep::NeedsMore } else { TlsStep::Over }
    }
}

impl Drop for TlsConnection<'_> {
    fn drop(&mut self) {
        // SAFETY: it was made by `connection` and is freed once, with both memories.
        unsafe { (self.server.functions.SSL_free)(self.ssl) };
    }
}

/// At most what a call takes.
fn length(bytes: usize) -> c_int {
    c_int::try_from(bytes).unwrap_or(c_int::MAX)
}

const SYSTEM_NAMES: [(&str, &str); 2] =
    [("libssl.so.3", "libcrypto.so.3"), ("libssl.so.4", "libcrypto.so.4")];

/// Bytes that are taken out at once.
const STEP: usize = 32 << 10;

/// `SSL_CTRL_SET_MAX_PROTO_VERSION`, `TLS1_2_VERSION`, `SSL_FILETYPE_PEM` and `SSL_ERROR_WANT_READ` of
/// the headers of OpenSSL 3 and 4.
const SET_MAX_VERSION: c_int = 124;
const TLS_1_2: c_long = 0x0303;
const PEM: c_int = 1;
const WANT_READ: c_int = 2;
