//! What is ours, behind the interface of the peers: every contender is called in the same way.

use wattlock_engine::crypto::sha3::{Sha3_256, sha3_256_many};
use wattlock_engine::crypto::tree_hash::{Hasher, TreeHash};
use wattlock_engine::crypto::{
    AeadAlgorithm, AeadKey, CbcRecord, GcmKernel, HmacAlgorithm, HmacKey, HmacRecord, KeccakKernel,
    ShaKernel,
};
use wattlock_peers::{AAD, Messages, Work};

use crate::study::aes;

/// A function of IV and message.
pub struct Each<F>(pub F);

impl<F: FnMut(&[u8; 16], &mut [u8]) -> [u8; 32]> Work for Each<F> {
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32] {
        (self.0)(iv, in_out)
    }
}

/// A mode of AES.
pub fn mode(
    kernel: aes::Kernel,
    key: &[u8],
    run: fn(&aes::Key, &[u8; 16], &mut [u8]),
) -> impl Work + 'static {
    let key = aes::Key::new(kernel, key).expect("a key of the right length");
    Each(move |iv: &[u8; 16], in_out: &mut [u8]| {
        run(&key, iv, in_out);
        [0; 32]
    })
}

/// AES-CBC encryption of many messages at once.
pub struct CbcRecords(pub aes::Key);

impl Work for CbcRecords {
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32] {
        self.0.cbc_encrypt(iv, in_out).expect("whole blocks");
        [0; 32]
    }

    fn run_each(&mut self, iv: &[u8; 16], mut messages: Messages<'_>, _: &mut [[u8; 32]]) {
        let records = messages.iter_mut().map(|in_out| CbcRecord { iv: *iv, in_out });
        self.0.cbc_encrypt_records(&mut records.collect::<Vec<_>>()).expect("whole blocks");
    }
}

/// HMAC of one message, or of many at once.
pub struct Hmac {
    key: HmacKey,
    tags: Vec<u8>,
}

impl Hmac {
    pub fn new(kernel: ShaKernel, algorithm: HmacAlgorithm, key: &[u8]) -> Self {
        Self { key: HmacKey::with_kernel(kernel, algorithm, key), tags: Vec::new() }
    }
}

impl Work for Hmac {
    fn run(&mut self, _: &[u8; 16], message: &mut [u8]) -> [u8; 32] {
        let mut tag = [0; 64];
        let len = self.key.algorithm().tag_len();
        self.key.sign(&[message], &mut tag[..len]).expect("room for a tag");
        *tag.first_chunk().expect("64 bytes")
    }

    fn run_each(&mut self, _: &[u8; 16], mut messages: Messages<'_>, results: &mut [[u8; 32]]) {
        let len = self.key.algorithm().tag_len();
        self.tags.resize(results.len() * len, 0);
        let mut records: Vec<_> = messages
            .iter_mut()
            .zip(self.tags.chunks_mut(len))
            .map(|(data, tag)| HmacRecord { header: [], data, tag })
            .collect();
        self.key.sign_records(&mut records).expect("room for each tag");
        for (result, tag) in results.iter_mut().zip(self.tags.chunks(len)) {
            let len = len.min(32);
            result[..len].copy_from_slice(&tag[..len]);
        }
    }
}

/// Sealing by AES-GCM.
pub struct Seal {
    kernel: GcmKernel,
    algorithm: AeadAlgorithm,
    key: AeadKey,
}

impl Seal {
    pub fn new(kernel: GcmKernel, algorithm: AeadAlgorithm, key: &[u8]) -> Self {
        Self { kernel, algorithm, key: aead_key(kernel, algorithm, key) }
    }
}

impl Work for Seal {
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32] {
        let nonce = *iv.first_chunk().expect("an IV is longer than a nonce");
        let tag = self.key.seal(nonce, &AAD, in_out).expect("a short message");
        let mut result = [0; 32];
        result[..16].copy_from_slice(&tag);
        result
    }

    fn set_key(&mut self, key: &[u8]) -> bool {
        self.key = aead_key(self.kernel, self.algorithm, key);
        true
    }
}

/// Opening by AES-GCM.
pub struct Open {
    key: AeadKey,
    tag: [u8; 16],
}

impl Open {
    pub fn new(kernel: GcmKernel, algorithm: AeadAlgorithm, key: &[u8]) -> Self {
        Self { key: aead_key(kernel, algorithm, key), tag: [0; 16] }
    }
}

impl Work for Open {
    fn run(&mut self, iv: &[u8; 16], in_out: &mut [u8]) -> [u8; 32] {
        let nonce = *iv.first_chunk().expect("an IV is longer than a nonce");
        let mut result = [0; 32];
        if self.key.open(nonce, &AAD, in_out, &self.tag).is_ok() {
            result[..16].copy_from_slice(&self.tag);
        }
        result
    }

    fn expect_tag(&mut self, tag: [u8; 16]) {
        self.tag = tag;
    }
}

/// A key for one kernel, whatever the length of a message.
fn aead_key(kernel: GcmKernel, algorithm: AeadAlgorithm, key: &[u8]) -> AeadKey {
    AeadKey::with_kernel_alone(kernel, algorithm, key).expect("a key of the right length")
}

/// SHA3-256 of one message, or of many at once on the lanes of a kernel.
pub struct Sha3(pub KeccakKernel);

impl Work for Sha3 {
    fn run(&mut self, _: &[u8; 16], message: &mut [u8]) -> [u8; 32] {
        let mut hasher = Sha3_256::new();
        hasher.update(message);
        hasher.finish()
    }

    fn run_each(&mut self, _: &[u8; 16], mut messages: Messages<'_>, results: &mut [[u8; 32]]) {
        let messages: Vec<&[u8]> = messages.iter_mut().map(|message| &*message).collect();
        results.copy_from_slice(&sha3_256_many(self.0, &messages));
    }
}

/// A tree hash of one message.
pub fn tree_hash(hash: TreeHash, kernel: KeccakKernel) -> impl Work + 'static {
    Each(move |_: &[u8; 16], message: &mut [u8]| {
        let mut hasher = Hasher::new(hash, kernel, b"");
        hasher.update(message);
        let mut digest = [0; 32];
        hasher.finish(&mut digest);
        digest
    })
}
