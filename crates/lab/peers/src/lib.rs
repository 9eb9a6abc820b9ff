//! Foreign implementations behind one small interface, so that the bench can measure them in the
//! same run as the kernels of Wattlock.
//!
//! | peer               | what it is                                                        |
//! |--------------------|-------------------------------------------------------------------|
//! | `openssl`          | the system's libcrypto, opened at run time                        |
//! | `openssl-vendored` | the newest OpenSSL, built in (cargo feature of the same name)     |
//! | `aws-lc`           | AWS-LC through the crate aws-lc-rs                                |
//! | `rustcrypto`       | the crates aes, ctr, cbc, aes-gcm, sha3, k12, blowfish and rc4    |
//! | `ipsec-mb`         | Intel's library for multi-buffer jobs, opened at run time         |
//! | `isa-l`            | Intel's isa-l_crypto, opened at run time                          |
//! | `xkcp`             | the Keccak team's library, opened at run time                     |
//!
//! Every peer is used as a good user of it would: in place, the key schedule made once, the IV
//! set on every call. For measurements only: these entry points take any IV twice.

#![deny(unsafe_code)]

mod aws_lc;
#[expect(unsafe_code, reason = "talks to C")]
mod intel_gcm;
#[expect(unsafe_code, reason = "talks to C")]
mod ipsec_mb;
#[expect(unsafe_code, reason = "talks to C")]
mod isa_l;
#[expect(unsafe_code, reason = "talks to C")]
mod libcrypto;
#[expect(unsafe_code, reason = "talks to C as well")]
mod libssl;
mod openssl;
mod providers;
mod rustcrypto;
mod rustls;
mod symbols;
mod work;
#[expect(unsafe_code, reason = "talks to C")]
mod xkcp;

pub use providers::{Calls, Providers, Whose};

pub use self::rustls::{RustlsError, rustls_has, rustls_serve, rustls_version};

pub use libssl::{TlsConnection, TlsServer, TlsStep};

/// A peer that cannot take part here.
#[derive(Clone, Debug)]
pub struct Absent {
    /// The peer's name, as [`Peer::name`] would give it.
    pub name: &'static str,
    /// The reason, in words for the reader of a results table.
    pub why: String,
}

/// A foreign implementation.
pub trait Peer {
    /// A short name that is the same on every machine.
    fn name(&self) -> &'static str;

    /// What was measured: library and version, in the words of the library where it has some.
    fn version(&self) -> String;

    /// Makes the key schedule for `operation`. None where this peer does not offer the operation,
    /// or not for a key of this length. Hashes take no key and ignore it.
    fn operation(&self, operation: &Operation, key: &[u8]) -> Option<Box<dyn Work>>;
}

/// What a peer can be asked to do. The length of the key decides the size of AES.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// AES in counter mode (SP 800-38A), a big-endian counter of 128 bits.
    AesCtr,
    /// AES block by block, encryption. The length must be a multiple of 16 bytes.
    AesEcbEncrypt,
    /// AES block by block, decryption. The length must be a multiple of 16 bytes.
    AesEcbDecrypt,
    /// AES-CBC without padding, encryption. The length must be a multiple of 16 bytes.
    AesCbcEncrypt,
    /// AES-CBC without padding, decryption. The length must be a multiple of 16 bytes.
    AesCbcDecrypt,
    /// AES-GCM (SP 800-38D), nonce of 12 bytes, over [`AAD`]: encrypts, gives the tag.
    AesGcmSeal,
    /// AES-GCM: decrypts and checks the tag given to [`Work::expect_tag`]. The result is that tag
    /// when it was right, zeros when it was wrong; the buffer then holds nothing of use.
    AesGcmOpen,
    /// SHA3-256 (FIPS 202).
    Sha3_256,
    /// KT128 (RFC 9861), no customization string, 32 bytes of output.
    Kt128,
    /// ParallelHash256 (SP 800-185) with blocks of 8192 bytes, no customization string, 32 bytes of
    /// output.
    ParallelHash256,
    /// HMAC with SHA-1 (FIPS 198-1), under a key of at least a byte.
    HmacSha1,
    /// HMAC with SHA-256.
    HmacSha256,
    /// HMAC with SHA-384; the result is the first 32 bytes of its 48.
    HmacSha384,
    /// RC4. It has no IV: a run goes on in the key stream where the run before ended.
    Rc4,
    /// Blowfish block by block, encryption. The length must be a multiple of 8 bytes.
    BlowfishEcbEncrypt,
    /// Blowfish in counter mode, a big-endian counter of 64 bits that starts at the first 8 bytes
    /// of the IV.
    BlowfishCtr,
}

impl Operation {
    /// Every operation, in the order of a results table.
    pub const ALL: [Self; 16] = [
        Self::AesCtr,
        Self::AesEcbEncrypt,
        Self::AesEcbDecrypt,
        Self::AesCbcEncrypt,
        Self::AesCbcDecrypt,
        Self::AesGcmSeal,
        Self::AesGcmOpen,
        Self::Sha3_256,
        Self::Kt128,
        Self::ParallelHash256,
        Self::HmacSha1,
        Self::HmacSha256,
        Self::HmacSha384,
        Self::Rc4,
        Self::BlowfishEcbEncrypt,
        Self::BlowfishCtr,
    ];
}

/// One operation under one key, ready to be run many times.
pub trait Work {
    /// Works on `in_out` in place; hashes read it and leave it alone. `iv` is set anew by every
    /// call: 16 bytes, of which GCM takes the first 12 and [`Operation::BlowfishCtr`] the first
    /// 8, ignored where an operation has none. The result is the tag (16 bytes, then zeros) or
    /// the digest or MAC, zeros otherwise.
    ///
    /// # Panics
    /// When the length does not suit the operation, or when the library reports a failure.
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32];

    /// The tag that the next runs of [`Operation::AesGcmOpen`] check; zeros until it is set.
    fn expect_tag(&mut self, _tag: [u8; 16]) {}

    /// Works on each of the messages, all under the same IV, and puts what [`Work::run`] would
    /// return into `results`. One after the other, where the library offers nothing better.
    ///
    /// # Panics
    /// As [`Work::run`], and when there are fewer results than messages.
    fn run_each(&mut self, iv: &[u8; 16], mut messages: Messages<'_>, results: &mut [[u8; 32]]) {
        for (message, result) in messages.iter_mut().zip(results) {
            *result = self.run(iv, message);
        }
    }

    /// False where the library refuses messages of that many bytes which the operation itself allows.
    fn takes(&self, _bytes: usize) -> bool {
        true
    }

    /// Sets another key of the same length in place of the one before, as cheaply as the library
    /// can. False, and nothing has changed, where this is not offered.
    fn set_key(&mut self, _key: &[u8]) -> bool {
        false
    }
}

/// Messages of one length at one distance from each other, in one buffer.
pub struct Messages<'a> {
    buffer: &'a mut [u8],
    len: usize,
    stride: usize,
}

impl<'a> Messages<'a> {
    /// Messages of `len` bytes, one every `stride` bytes of the buffer.
    ///
    /// # Panics
    /// When they would overlap, or the buffer ends within one.
    pub fn new(buffer: &'a mut [u8], len: usize, stride: usize) -> Self {
        assert!(0 < stride && len <= stride, "messages do not overlap");
        let last = buffer.len() % stride;
        assert!(last == 0 || last >= len, "the last message is whole");
        Self { buffer, len, stride }
    }

    /// Each message.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut [u8]> {
        self.buffer.chunks_mut(self.stride).map(|slot| &mut slot[..self.len])
    }
}

/// The associated data of AES-GCM here: 13 bytes, as a record of TLS 1.2 has (RFC 5288).
pub const AAD: [u8; 13] = *b"wattlock-aad!";

/// All peers that can take part here, and those that cannot with the reason.
pub fn all() -> (Vec<Box<dyn Peer>>, Vec<Absent>) {
    let mut absent = Vec::new();
    let mut peers: Vec<Box<dyn Peer>> = Vec::new();
    for found in [openssl::OpenSsl::system(), openssl::OpenSsl::vendored()] {
        match found {
            Ok(peer) => peers.push(Box::new(peer)),
            Err(why) => absent.push(why),
        }
    }
    peers.push(Box::new(aws_lc::AwsLc));
    peers.push(Box::new(rustcrypto::RustCrypto));
    let mut add = |found: Result<Box<dyn Peer>, Absent>| match found {
        Ok(peer) => peers.push(peer),
        Err(why) => absent.push(why),
    };
    add(ipsec_mb::IpsecMb::system().map(|peer| Box::new(peer) as _));
    add(isa_l::IsaL::system().map(|peer| Box::new(peer) as _));
    add(xkcp::Xkcp::system().map(|peer| Box::new(peer) as _));
    (peers, absent)
}
