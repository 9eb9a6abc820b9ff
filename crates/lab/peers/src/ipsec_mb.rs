//! The peer `ipsec-mb`: Intel's multi-buffer library, opened at run time. AES-GCM is one call for a
//! message; CTR, CBC and HMAC are bursts of jobs, and a burst of one for a single message.

mod manager;

use std::rc::Rc;

use crate::intel_gcm::{Gcm, OneCall};
use crate::work::NOTHING;
use crate::{Absent, Messages, Operation, Peer, Work};
use manager::{Algorithm, Cipher, Hash, Manager};

/// A libIPSec_MB of one of the versions that are known here.
pub(crate) struct IpsecMb(Rc<Manager>);

impl IpsecMb {
    /// The one that this system has: 2 first, then 1.
    pub(crate) fn system() -> Result<Self, Absent> {
        Manager::system().map(|manager| Self(Rc::new(manager)))
    }

    /// The kernels for a key of this length.
    fn gcm(&self, key: &[u8]) -> Option<Gcm<()>> {
        let of = match key.len() {
            16 => 0,
            24 => 8,
            32 => 16,
            _ => return None,
        };
        Some(Gcm {
            // SAFETY: in `struct IMB_MGR` of these versions, the three sizes follow each other and
            // have these types.
            expand: unsafe { self.0.function(manager::GCM_PRE + of) }?,
            // SAFETY: as above.
            seal: unsafe { self.0.function::<OneCall<()>>(manager::GCM_ENC + of) }?,
            // SAFETY: as above.
            open: unsafe { self.0.function::<OneCall<()>>(manager::GCM_DEC + of) }?,
        })
    }

    fn cipher(&self, cipher: Cipher, key: &[u8]) -> Option<Box<dyn Work>> {
        let keys = self.0.expand(key)?;
        self.jobs(Algorithm::Cipher(cipher, keys))
    }

    fn hmac(&self, hash: Hash, key: &[u8]) -> Option<Box<dyn Work>> {
        let pads = self.0.pads(hash, key)?;
        self.jobs(Algorithm::Hmac(hash, pads))
    }

    fn jobs(&self, algorithm: Algorithm) -> Option<Box<dyn Work>> {
        let burst = self.0.burst(algorithm)?;
        Some(Box::new(Jobs(burst)))
    }
}

impl Peer for IpsecMb {
    fn name(&self) -> &'static str {
        "ipsec-mb"
    }

    fn version(&self) -> String {
        format!("intel-ipsec-mb {}", self.0.version())
    }

    /// ECB is left out: it is no job in all versions. The hashes of SHA-3 are not in them at all.
    fn operation(&self, operation: &Operation, key: &[u8]) -> Option<Box<dyn Work>> {
        match operation {
            Operation::AesGcmSeal => self.gcm(key)?.sealing(key),
            Operation::AesGcmOpen => self.gcm(key)?.opening(key),
            Operation::AesCtr => self.cipher(Cipher::Ctr, key),
            Operation::AesCbcEncrypt => self.cipher(Cipher::CbcEncrypt, key),
            Operation::AesCbcDecrypt => self.cipher(Cipher::CbcDecrypt, key),
            Operation::HmacSha1 => self.hmac(Hash::Sha1, key),
            Operation::HmacSha256 => self.hmac(Hash::Sha256, key),
            Operation::HmacSha384 => self.hmac(Hash::Sha384, key),
            _ => None,
        }
    }
}

struct Jobs(manager::Burst);

impl Work for Jobs {
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32] {
        let mut result = NOTHING;
        assert!(self.takes(in_out.len()), "a length that ipsec-mb takes");
        let len = in_out.len();
        if len > 0 {
            self.0.run(iv, in_out, len, len, std::slice::from_mut(&mut result));
        }
        result
    }

    fn takes(&self, bytes: usize) -> bool {
        self.0.takes(bytes)
    }

    fn run_each(&mut self, iv: &[u8; 16], messages: Messages<'_>, results: &mut [[u8; 32]]) {
        let Messages { buffer, len, stride } = messages;
        assert!(self.takes(len), "a length that ipsec-mb takes");
        if len > 0 {
            self.0.run(iv, buffer, len, stride, results);
        }
    }
}
