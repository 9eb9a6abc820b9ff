//! Code that is generic over the traits of RustCrypto, with this crate's types below it.
//!
//! Seals a message with each AEAD, and prints the ciphertexts, the same under CTR, and digests.

use aead::{AeadInOut, KeyInit};
use cipher::{KeyIvInit, StreamCipher};
use digest::{Digest, ExtendableOutput};
use wattlock_crypto::traits::{
    Aes128Ctr, Aes128Gcm, Aes192Ctr, Aes192Gcm, Aes256Ctr, Aes256Gcm, ChaCha20Poly1305, Kt128,
    ParallelHashXof256,
};
use wattlock_crypto::{sha2, sha3};

const MESSAGE: &[u8] = b"a message of no secrets";

fn main() -> aead::Result<()> {
    sealed::<Aes128Gcm>("aes-128-gcm")?;
    sealed::<Aes192Gcm>("aes-192-gcm")?;
    sealed::<Aes256Gcm>("aes-256-gcm")?;
    sealed::<ChaCha20Poly1305>("chacha20-poly1305")?;
    streamed::<Aes128Ctr>("aes-128-ctr");
    streamed::<Aes192Ctr>("aes-192-ctr");
    streamed::<Aes256Ctr>("aes-256-ctr");
    digest::<sha2::Sha256>("sha-256");
    digest::<sha3::Sha3_256>("sha3-256");
    output::<Kt128>("kt128");
    output::<ParallelHashXof256>("parallelhashxof256");
    Ok(())
}

/// Keys and nonces of zeros are for an example alone.
fn sealed<A: AeadInOut + KeyInit>(name: &str) -> aead::Result<()> {
    let cipher = A::new(&Default::default());
    let mut message = MESSAGE.to_vec();
    cipher.encrypt_in_place(&Default::default(), b"header", &mut message)?;
    println!("{name} {}", hex(&message));
    cipher.decrypt_in_place(&Default::default(), b"header", &mut message)
}

fn streamed<S: StreamCipher + KeyIvInit>(name: &str) {
    let mut message = MESSAGE.to_vec();
    S::new(&Default::default(), &Default::default()).apply_keystream(&mut message);
    println!("{name} {}", hex(&message));
}

fn digest<D: Digest>(name: &str) {
    println!("{name} {}", hex(&D::digest(MESSAGE)));
}

fn output<X: ExtendableOutput + Default>(name: &str) {
    let mut digest = [0; 32];
    X::digest_xof(MESSAGE, &mut digest);
    println!("{name} {}", hex(&digest));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
