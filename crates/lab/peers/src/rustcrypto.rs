//! The peer `rustcrypto`: the pure Rust crates of the RustCrypto project.

use crate::work::{NOTHING, opening, plain, sealing};
use crate::{AAD, Operation, Peer, Work};
use aes::cipher::array::{Array, ArraySize};
use aes::cipher::consts::{U12, U16};
use aes::cipher::{
    Block, BlockCipherDecrypt, BlockCipherEncrypt, BlockModeDecrypt, BlockModeEncrypt,
    BlockSizeUser, InnerIvInit, KeyInit, StreamCipher,
};
use aes::{Aes128, Aes192, Aes256};
use aes_gcm::{AeadInOut, AesGcm};
use blowfish::Blowfish;
use ctr::{Ctr64BE, Ctr128BE, CtrCore};
use k12::{ExtendableOutput, Kt128, Update, XofReader};
use rc4::Rc4;
use sha3::{Digest, Sha3_256};

/// The crates of RustCrypto, as compiled into this program.
pub(crate) struct RustCrypto;

impl Peer for RustCrypto {
    fn name(&self) -> &'static str {
        "rustcrypto"
    }

    fn version(&self) -> String {
        VERSIONS.map(|(name, version)| format!("{name} {version}")).join(", ")
    }

    fn operation(&self, operation: &Operation, key: &[u8]) -> Option<Box<dyn Work>> {
        match operation {
            Operation::Sha3_256 => plain(|_, message| Sha3_256::digest(message).into()),
            Operation::Kt128 => plain(|_, message| kt128(message)),
            Operation::Rc4 => {
                let mut stream = Rc4::new_from_slice(key).ok()?;
                plain(move |_, in_out| {
                    stream.apply_keystream(in_out);
                    NOTHING
                })
            }
            Operation::BlowfishEcbEncrypt => ecb_encrypt(blowfish(key)?),
            Operation::BlowfishCtr => blowfish_ctr(blowfish(key)?),
            _ => match key.len() {
                16 => aes_modes(operation, Aes128::new_from_slice(key).ok()?),
                24 => aes_modes(operation, Aes192::new_from_slice(key).ok()?),
                32 => aes_modes(operation, Aes256::new_from_slice(key).ok()?),
                _ => None,
            },
        }
    }
}

/// The modes are begun over `&cipher`, so that a run copies no key schedule.
fn aes_modes<C>(operation: &Operation, cipher: C) -> Option<Box<dyn Work>>
where
    C: BlockCipherEncrypt + BlockCipherDecrypt + BlockSizeUser<BlockSize = U16> + KeyInit + 'static,
{
    match operation {
        Operation::AesCtr => plain(move |iv, in_out| {
            let core = CtrCore::inner_iv_init(&cipher, &(*iv).into());
            Ctr128BE::from_core(core).apply_keystream(in_out);
            NOTHING
        }),
        Operation::AesEcbEncrypt => ecb_encrypt(cipher),
        Operation::AesEcbDecrypt => plain(move |_, in_out| {
            cipher.decrypt_blocks(blocks::<C>(in_out));
            NOTHING
        }),
        Operation::AesCbcEncrypt => plain(move |iv, in_out| {
            cbc::Encryptor::inner_iv_init(&cipher, &(*iv).into())
                .encrypt_blocks(blocks::<C>(in_out));
            NOTHING
        }),
        Operation::AesCbcDecrypt => plain(move |iv, in_out| {
            cbc::Decryptor::inner_iv_init(&cipher, &(*iv).into())
                .decrypt_blocks(blocks::<C>(in_out));
            NOTHING
        }),
        Operation::AesGcmSeal => sealing(
            AesGcm::<C, U12>::from(cipher),
            |gcm, iv, in_out| {
                gcm.encrypt_inout_detached(&first(iv), &AAD, in_out.into())
                    .expect("aes-gcm seals any buffer")
                    .into()
            },
            |gcm, key| *gcm = AesGcm::new_from_slice(key).expect("a key of the same length"),
        ),
        Operation::AesGcmOpen => {
            let gcm = AesGcm::<C, U12>::from(cipher);
            opening(move |iv, in_out, tag| {
                gcm.decrypt_inout_detached(&first(iv), &AAD, in_out.into(), &(*tag).into()).is_ok()
            })
        }
        _ => None,
    }
}

fn ecb_encrypt<C: BlockCipherEncrypt + 'static>(cipher: C) -> Option<Box<dyn Work>> {
    plain(move |_, in_out| {
        cipher.encrypt_blocks(blocks::<C>(in_out));
        NOTHING
    })
}

fn blowfish_ctr(cipher: Blowfish) -> Option<Box<dyn Work>> {
    plain(move |iv, in_out| {
        Ctr64BE::from_core(CtrCore::inner_iv_init(&cipher, &first(iv))).apply_keystream(in_out);
        NOTHING
    })
}

fn blowfish(key: &[u8]) -> Option<Blowfish> {
    Blowfish::new_from_slice(key).ok()
}

fn kt128(message: &[u8]) -> [u8; 32] {
    let mut hash = Kt128::default();
    hash.update(message);
    let mut result = NOTHING;
    hash.finalize_xof().read(&mut result);
    result
}

/// The buffer as blocks of `C`.
fn blocks<C: BlockSizeUser>(in_out: &mut [u8]) -> &mut [Block<C>] {
    let (blocks, rest) = Array::slice_as_chunks_mut(in_out);
    assert!(rest.is_empty(), "{} bytes beyond the last whole block", rest.len());
    blocks
}

/// The first bytes of an IV.
fn first<N: ArraySize>(iv: &[u8; 16]) -> Array<u8, N> {
    Array::from_fn(|at| iv[at])
}

const VERSIONS: [(&str, &str); 8] = [
    ("aes", env!("VERSION_aes")),
    ("ctr", env!("VERSION_ctr")),
    ("cbc", env!("VERSION_cbc")),
    ("aes-gcm", env!("VERSION_aes_gcm")),
    ("sha3", env!("VERSION_sha3")),
    ("k12", env!("VERSION_k12")),
    ("blowfish", env!("VERSION_blowfish")),
    ("rc4", env!("VERSION_rc4")),
];
