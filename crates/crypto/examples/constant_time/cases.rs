//! What is checked: code that gets nothing but secrets, and public lengths, IVs and counters.

use std::hint::black_box;

use wattlock_crypto::tree_hash::{Hasher, TreeHash};
use wattlock_crypto::{
    AeadAlgorithm, AeadKey, AesKernel, AesKey, CbcRecord, HmacAlgorithm, HmacKey, HmacRecord,
    KeccakKernel, NONCE_LEN, Secret, ShaKernel, TAG_LEN, hmac, pkcs7, sha2, sha3,
};

use crate::methods::{Case, Kind, case};

/// The kernels that cannot run here, and why.
pub fn absent() -> Vec<(&'static str, String)> {
    let absent = AesKernel::absent().into_iter().chain(KeccakKernel::absent());
    absent.chain(ShaKernel::absent()).collect()
}

/// All cases.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for kernel in AesKernel::all() {
        for Mode { name: mode, len, run } in &MODES {
            for key_len in [16, 24, 32] {
                let name = format!("{}/{}/{mode}", kernel.name(), 8 * key_len);
                cases.push(case(name, Kind::Ours, key_len + len, move |secrets| {
                    let (key, data) = secrets.split_at_mut(key_len);
                    run(&AesKey::new(kernel, key).expect("a length of AES keys"), data);
                }));
            }
        }
    }
    for kernel in KeccakKernel::all() {
        let name = |hash| format!("{}/{hash}", kernel.name());
        cases.push(case(name("sha3-256"), Kind::Ours, 9 * 300, move |secrets| {
            // Of two lengths: a lane ends before the others.
            let messages: Vec<&[u8]> = secrets.chunks(310).collect();
            let digests = sha3::sha3_256_many(kernel, &messages);
            secrets[..9 * 32].copy_from_slice(digests.as_flattened());
        }));
        cases.push(case(name("kt128"), Kind::Ours, 3 * 8192 + 5, move |secrets| {
            let mut hasher = Hasher::new(TreeHash::Kt128, kernel, b"");
            hasher.update(secrets);
            hasher.finish(&mut secrets[..32]);
        }));
        cases.push(case(name("parallelhashxof256"), Kind::Ours, 8192 + 5, move |secrets| {
            let mut hasher = Hasher::new(TreeHash::PARALLEL_HASH_256, kernel, b"");
            hasher.update(secrets);
            let mut output = hasher.finish_xof();
            secrets[..300].chunks_mut(100).for_each(|part| output.read(part));
        }));
    }
    for kernel in ShaKernel::all() {
        let name = format!("{}/sha-256", kernel.name());
        cases.push(case(name, Kind::Ours, 19 * 150, move |secrets| {
            let messages: Vec<&[u8]> = secrets.chunks(155).collect();
            let digests = sha2::sha256_many(kernel, &messages);
            secrets[..19 * 32].copy_from_slice(digests.as_flattened());
        }));
        for algorithm in HmacAlgorithm::ALL {
            cases.push(hmac_records(kernel, algorithm));
        }
    }
    cases.extend(answering());
    cases.extend(crate::gcm::all());
    cases.extend(aws_lc());
    cases.extend(controls());
    cases
}

/// A mode of AES on `len` bytes of data.
struct Mode {
    name: &'static str,
    len: usize,
    run: fn(&AesKey, &mut [u8]),
}

const fn mode(name: &'static str, len: usize, run: fn(&AesKey, &mut [u8])) -> Mode {
    Mode { name, len, run }
}

/// 69 blocks are a batch of the widest kernel, a group of a narrower one, and a part of a group.
const MODES: [Mode; 7] = [
    mode("ecb-encrypt", 69 * 16, |key, data| key.ecb_encrypt(data).expect("whole blocks")),
    mode("ecb-decrypt", 69 * 16, |key, data| key.ecb_decrypt(data).expect("whole blocks")),
    // At an odd place, and short; the counter wraps in its low 64 bits.
    mode("ctr-short", 103, |key, data| key.ctr(&COUNTER, 5, data)),
    // Long enough for the table of the first round in `aes-vaes512`.
    mode("ctr-long", 4096 + 69 * 16 + 3, |key, data| key.ctr(&[0xf0; 16], 21, data)),
    mode("cbc-encrypt", 5 * 16, |key, data| key.cbc_encrypt(&[7; 16], data).expect("whole blocks")),
    mode("cbc-decrypt", 69 * 16, |key, data| {
        key.cbc_decrypt(&[7; 16], data).expect("whole blocks");
    }),
    mode("cbc-records", RECORDS * 5 * 16, |key, data| {
        // Unequal lengths, 1 to 9 blocks.
        let mut rest = data;
        let mut records = Vec::new();
        for i in 0..RECORDS {
            let in_out = rest.split_off_mut(..(1 + i % 9) * 16).expect("as many as there are");
            records.push(CbcRecord { iv: [i as u8; 16], in_out });
        }
        key.cbc_encrypt_records(&mut records).expect("whole blocks");
    }),
];

const COUNTER: [u8; 16] = [1, 2, 3, 4, 5, 6, 7, 8, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfc];

/// Records of CBC: more than `aes-ni` and `aes-vaes512` have lanes. Of 5 blocks in the mean.
const RECORDS: usize = 45;

/// Records of HMAC of unequal lengths, more than there are lanes, and the last ones too few for them.
fn hmac_records(kernel: ShaKernel, algorithm: HmacAlgorithm) -> Case {
    let name = format!("{}/{algorithm}", kernel.name());
    case(name, Kind::Ours, 32 + 19 * 150, move |secrets| {
        let (key, data) = secrets.split_at(32);
        let mut tags = [0; 19 * HmacAlgorithm::MOST_TAG_LEN];
        let mut records: Vec<_> = data
            .chunks(150)
            .zip(tags.chunks_mut(algorithm.tag_len()))
            .enumerate()
            .map(|(i, (data, tag))| HmacRecord { header: [i as u8; 13], data: &data[i * 7..], tag })
            .collect();
        HmacKey::with_kernel(kernel, algorithm, key)
            .sign_records(&mut records)
            .expect("room for each tag");
        let len = 19 * algorithm.tag_len();
        secrets[..len].copy_from_slice(&tags[..len]);
    })
}

/// Code that answers yes or no. Which of them is public; on what it depends is not.
fn answering() -> Vec<Case> {
    let unpad = |block: &mut [u8]| {
        black_box(pkcs7::unpadded_len(block).is_ok());
    };
    let mut same = case("secret/equal".into(), Kind::Ours, 64, |secrets| {
        let (one, other) = secrets.split_at(32);
        let one = Secret::<32>::init_with(|bytes| bytes.copy_from_slice(one));
        let other = Secret::<32>::init_with(|bytes| bytes.copy_from_slice(other));
        black_box(one == other);
    });
    (same.shape, same.answers) = (differ_somewhere, 1);
    let mut right = case("pkcs7/right".into(), Kind::Ours, 16, unpad);
    (right.shape, right.answers) = (|block: &mut [u8]| block[12..].fill(4), 1);
    let mut wrong = case("pkcs7/wrong".into(), Kind::Ours, 16, unpad);
    wrong.answers = 1;
    wrong.shape = |block| {
        // The seed 0 fails at the far end of the block, the others anywhere.
        if block.iter().all(|byte| *byte == 0) {
            block[1..].fill(16);
        } else if block[15] == 1 {
            block[15] = 0;
        } else {
            block[14] = !block[15];
        }
    };
    vec![same, right, wrong]
}

/// Leaks, one of each sort, which have to be found.
fn controls() -> Vec<Case> {
    // Few bytes: many would touch every line of the table, and then only the addresses would
    // differ, not the time.
    let look_up = case("control/look-up".into(), Kind::Control, 16, |secrets| {
        for byte in secrets {
            *byte ^= black_box(&TABLE)[usize::from(*byte)][0];
        }
    });
    let mut early = case("control/early-exit".into(), Kind::Control, 64, |secrets| {
        let (one, other) = secrets.split_at(32);
        black_box(one.iter().zip(other).all(|(a, b)| black_box(a == b)));
    });
    (early.shape, early.answers) = (differ_somewhere, 1);
    // One value of one byte of a key, which the secrets that are tried do not have.
    let mut value = case("control/one-value".into(), Kind::Control, 32, |secrets| {
        if black_box(secrets[5]) == 77 {
            black_box(&mut *secrets).reverse();
        }
    });
    value.unseen_by = &["timing"];
    // The same in vectors and masks, which the C library uses here.
    let mut mask = case("control/one-value-in-mask".into(), Kind::Control, 64, |secrets| {
        black_box(black_box(&*secrets) == [77; 64]);
    });
    mask.unseen_by = &["timing"];
    // Secret flags decide, and every secret goes the same way.
    let mut same_way = case("control/same-way".into(), Kind::Control, 32, |secrets| {
        for byte in &mut *secrets {
            if u16::from(black_box(*byte)) > black_box(300) {
                *byte = black_box(0);
            }
        }
    });
    same_way.unseen_by = &["timing"];
    // Valgrind knows nothing of the time that an instruction takes; on many CPUs it is one time.
    let mut divide = case("control/divide".into(), Kind::Control, 32, |secrets| {
        for byte in secrets {
            *byte = (black_box(0xff_ffff_u32) / (1 | u32::from(black_box(*byte)))) as u8;
        }
    });
    divide.unseen_by = &["memcheck", "timing"];
    vec![look_up, early, value, mask, same_way, divide]
}

/// AWS-LC makes its own promises.
pub const AWS_LC: Kind = Kind::Shown("not judged: AWS-LC's");

/// As tables of ciphers are, but with a line of the cache for each entry.
static TABLE: [[u8; 64]; 256] = [[0x5a; 64]; 256];

/// Two halves that differ in one byte: the first for the seed 0, a later one for others.
fn differ_somewhere(halves: &mut [u8]) {
    let (one, other) = halves.split_at_mut(halves.len() / 2);
    let place = if other[0] == 0 { 0 } else { 1 + usize::from(other[0]) % (one.len() - 1) };
    other.copy_from_slice(one);
    other[place] ^= 1;
}

/// What AWS-LC does for us: how much of it these methods see is its affair.
fn aws_lc() -> Vec<Case> {
    let chacha = |key: &[u8]| {
        AeadKey::new(AeadAlgorithm::ChaCha20Poly1305, key).expect("a length of its keys")
    };
    let seal = case("aws-lc/chacha20-poly1305/seal".into(), AWS_LC, 32 + 1003, move |secrets| {
        let (key, data) = secrets.split_at_mut(32);
        let tag = chacha(key).seal([9; NONCE_LEN], b"aad", data).expect("a short message");
        data[..TAG_LEN].copy_from_slice(&tag);
    });
    let name = "aws-lc/chacha20-poly1305/open-wrong".into();
    let mut open = case(name, AWS_LC, 32 + 1003, move |secrets| {
        let (key, data) = secrets.split_at_mut(32);
        black_box(chacha(key).open([9; NONCE_LEN], b"aad", data, &[0; TAG_LEN]).is_ok());
    });
    open.answers = 1;
    let mut verify = case("aws-lc/hmac/verify-wrong".into(), AWS_LC, 32, |secrets| {
        let key = Secret::init_with(|bytes: &mut [u8; 32]| bytes.copy_from_slice(secrets));
        black_box(hmac::verify_sha256(&key, b"header", &[0; hmac::MAC_LEN]).is_ok());
    });
    verify.answers = 1;
    vec![seal, open, verify]
}
