//! Keys leave no copy of themselves: after each kind was made, used and dropped, the memory of the
//! whole process is read and searched, the dead stack above all, for the key and what was derived
//! from it. The search has to find what a test leaves on purpose.
//!
//! It looks for pieces of 8 bytes at multiples of 4. It does not see registers, round keys of
//! `aes-soft` in their bit-sliced form, or a word of a key by itself.
#![allow(clippy::unwrap_used, reason = "what fails here fails a test")]

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::hint::black_box;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, mpsc};
use std::thread;

use wattlock_crypto::gcm::{GcmKey, LateAad};
use wattlock_crypto::stitched::{Message, StitchedKernel, StitchedKeys};
use wattlock_crypto::{
    AeadAlgorithm, AeadKey, AesKernel, AesKey, CbcRecord, GcmKernel, HmacAlgorithm, HmacKey,
    HmacRecord, NONCE_LEN, Secret, ShaKernel, hkdf, hmac,
};

/// Where copies of pieces lie, and which.
#[derive(Default, PartialEq)]
struct Remains {
    /// Bytes below the frame that called the work, and the number of the secret.
    stack: Vec<(u64, usize)>,
    /// Numbers of the secrets.
    elsewhere: Vec<usize>,
}

impl fmt::Debug for Remains {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let secrets: BTreeSet<_> = self.stack.iter().map(|(_, secret)| secret).collect();
        let places: BTreeSet<_> = self.stack.iter().map(|(below, _)| below / 64 * 64).collect();
        write!(f, "{} pieces on the stack, of {secrets:?}, at {places:?}; ", self.stack.len())?;
        let secrets: BTreeSet<_> = self.elsewhere.iter().collect();
        write!(f, "{} elsewhere, of {secrets:?}", self.elsewhere.len())
    }
}

#[test]
fn the_search_finds_what_is_left() {
    let left = remains(
        32,
        |key| {
            let mut copy = [0; 32];
            copy.copy_from_slice(key);
            black_box(&mut copy);
        },
        |key| vec![key.to_vec()],
    );
    assert!(left.stack.len() >= 4, "{left:?}");
    let left = remains(
        32,
        |key| {
            let mut copy = vec![0; 512];
            copy[256..288].copy_from_slice(key);
            black_box(&mut copy);
        },
        |key| vec![key.to_vec()],
    );
    assert!(left.elsewhere.len() >= 4, "{left:?}");
    let left = remains(32, |key| _ = black_box(key), |key| vec![key.to_vec()]);
    assert_eq!(left, Remains::default(), "the search finds its own copies");
}

#[test]
fn keys_of_aes_are_wiped() {
    for kernel in AesKernel::all() {
        for len in [16, 24, 32] {
            let left = remains(len, |key| _ = black_box(AesKey::new(kernel, key)), schedules);
            assert_eq!(left, Remains::default(), "{}, {len} bytes, unused", kernel.name());
            let left = remains(len, |key| use_aes(kernel, key), schedules);
            assert_eq!(left, Remains::default(), "{}, {len} bytes", kernel.name());
        }
    }
}

#[test]
fn keys_of_hmac_are_wiped() {
    for kernel in ShaKernel::all() {
        for algorithm in HmacAlgorithm::ALL {
            for len in [20, 64, 200] {
                let pieces = |key: &[u8]| hmac_states(algorithm, key);
                let left = remains(len, |key| use_hmac(kernel, algorithm, key), pieces);
                assert_eq!(left, Remains::default(), "{}, {algorithm}, {len} bytes", kernel.name());
            }
        }
    }
}

#[test]
fn keys_of_one_loop_are_wiped() {
    for kernel in StitchedKernel::all() {
        for algorithm in [HmacAlgorithm::Sha1, HmacAlgorithm::Sha256] {
            let pieces = |key: &[u8]| {
                let (cipher, mac) = key.split_at(32);
                [schedules(cipher), hmac_states(algorithm, mac)].concat()
            };
            let left = remains(64, |key| use_both(kernel, algorithm, key), pieces);
            assert_eq!(left, Remains::default(), "{}, {algorithm}", kernel.name());
        }
    }
}

#[test]
fn secrets_are_wiped() {
    let left = remains(
        32,
        |key| {
            let one = Secret::<32>::init_with(|bytes| bytes.copy_from_slice(key));
            let moved = Some(black_box(one));
            let other = Secret::<32>::init_with(|bytes| bytes.copy_from_slice(key));
            assert!(black_box(moved == Some(other)));
        },
        |key| vec![key.to_vec()],
    );
    assert_eq!(left, Remains::default());
}

/// What AWS-LC leaves is not ours to wipe: shown, and not judged.
#[test]
fn what_aws_lc_leaves_is_shown() {
    for (algorithm, len) in [
        (AeadAlgorithm::Aes128Gcm, 16),
        (AeadAlgorithm::Aes256Gcm, 32),
        (AeadAlgorithm::ChaCha20Poly1305, 32),
    ] {
        let pieces = |key: &[u8]| match algorithm {
            AeadAlgorithm::ChaCha20Poly1305 => vec![key.to_vec()],
            _ => schedules_and_hash_key(key),
        };
        for kernel in GcmKernel::all() {
            let make = |key: &[u8]| AeadKey::with_kernel_alone(kernel, algorithm, key).unwrap();
            let left = remains(len, |key| use_aead(&make(key)), pieces);
            println!("{}, {}: {left:?}", algorithm.name(), kernel.name());
            let ours = kernel != GcmKernel::AwsLc;
            if ours && algorithm != AeadAlgorithm::ChaCha20Poly1305 {
                assert_eq!(left, Remains::default(), "{}, {}", algorithm.name(), kernel.name());
            }
            // Long messages are AWS-LC's.
            let make = |key: &[u8]| AeadKey::with_kernel(kernel, algorithm, key).unwrap();
            let left = remains(len, |key| use_aead(&make(key)), pieces);
            println!("{}, {} and AWS-LC: {left:?}", algorithm.name(), kernel.name());
        }
    }
    let left = remains(32, use_gcm, schedules_and_hash_key);
    println!("gcm: {left:?}");
    if GcmKernel::best() != GcmKernel::AwsLc {
        assert_eq!(left, Remains::default(), "AES-GCM in parts");
    }
    let left = remains(
        32,
        |key| {
            let secret = hkdf::sha256::<32>(key, b"salt", b"info");
            black_box(hkdf::expand_sha512::<64>(&secret, &[b"info"]));
            let mac = hmac::sha256(&secret, b"message");
            hmac::verify_sha256(&secret, b"message", &mac).unwrap();
        },
        |key| {
            let secret = hkdf::sha256::<32>(key, b"salt", b"info");
            let longer = hkdf::expand_sha512::<64>(&secret, &[b"info"]);
            vec![key.to_vec(), secret.expose().to_vec(), longer.expose().to_vec()]
        },
    );
    println!("hkdf and hmac: {left:?}");
}

// Making and using keys

fn use_aes(kernel: AesKernel, key: &[u8]) {
    let key = black_box(AesKey::new(kernel, key).unwrap());
    // The longest one has the second table of CTR.
    for len in [16, 64, 1040, 8208, 32 << 10] {
        let mut data = vec![0x5a; len];
        key.ecb_encrypt(&mut data).unwrap();
        key.ecb_decrypt(&mut data).unwrap();
        key.cbc_encrypt(&[7; 16], &mut data).unwrap();
        key.cbc_decrypt(&[7; 16], &mut data).unwrap();
        key.ctr(&[0xf0; 16], 0, &mut data);
        key.ctr(&[0xf0; 16], 5, &mut data[..len - 3]);
        let mut records: Vec<_> =
            data.chunks_mut(32).map(|in_out| CbcRecord { iv: [7; 16], in_out }).collect();
        if len.is_multiple_of(16) {
            key.cbc_encrypt_records(&mut records).unwrap();
        }
    }
    black_box((key.encrypt_schedule(), key.decrypt_schedule()));
}

fn use_hmac(kernel: ShaKernel, algorithm: HmacAlgorithm, key: &[u8]) {
    let key = black_box(HmacKey::with_kernel(kernel, algorithm, key));
    let data = vec![0x5a; 700];
    let mut tag = [0; HmacAlgorithm::MOST_TAG_LEN];
    key.sign(&[&data[..100], &data], &mut tag[..algorithm.tag_len()]).unwrap();
    key.sign_secret_len(&[1; 13], &data, 300, 500, &mut tag).unwrap();
    let mut tags = vec![0; 19 * algorithm.tag_len()];
    let mut records: Vec<_> = tags
        .chunks_mut(algorithm.tag_len())
        .enumerate()
        .map(|(i, tag)| HmacRecord { header: [1; 13], data: &data[i * 7..], tag })
        .collect();
    key.sign_records(&mut records).unwrap();
}

fn use_both(kernel: StitchedKernel, algorithm: HmacAlgorithm, key: &[u8]) {
    let (cipher, mac) = key.split_at(32);
    let cipher = black_box(AesKey::new(AesKernel::best(), cipher).unwrap());
    let mac = black_box(HmacKey::new(algorithm, mac));
    let mut data = vec![[0x5a; 336]; 11];
    let mut messages: Vec<_> = data
        .iter_mut()
        .map(|in_out| Message { header: [1; 13], iv: [5; 16], payload: 16..290, in_out })
        .collect();
    let keys = StitchedKeys::new(kernel, &cipher, &mac).unwrap();
    keys.encrypt(&mut messages).unwrap();
}

fn use_aead(key: &AeadKey) {
    let key = black_box(key);
    for len in [0, 16, 100, 481, 5000] {
        let mut message = vec![0x5a; len];
        let tag = key.seal([9; NONCE_LEN], b"aad", &mut message).unwrap();
        key.open([9; NONCE_LEN], b"aad", &mut message, &tag).unwrap();
        let tag = key.seal([8; NONCE_LEN], b"aad", &mut message).unwrap();
        key.open([9; NONCE_LEN], b"aad", &mut message, &tag).unwrap_err();
    }
    black_box(LateAad::new(key, 1000));
}

fn use_gcm(key: &[u8]) {
    let key = black_box(GcmKey::new(key).unwrap());
    for first in [100, 1003] {
        let mut message = vec![0x5a; 2000];
        let mut stream = key.begin(&[9; 12]).unwrap();
        stream.aad(&key, b"aad").unwrap();
        let (one, other) = message.split_at_mut(first);
        stream.encrypt(&key, one).unwrap();
        stream.encrypt(&key, other).unwrap();
        black_box(stream.tag(&key));
    }
}

// What must not be left

/// The key, and its round keys in both directions.
fn schedules(key: &[u8]) -> Vec<Vec<u8>> {
    let cipher = AesKey::new(AesKernel::Soft, key).unwrap();
    let schedules = [cipher.encrypt_schedule(), cipher.decrypt_schedule()];
    let round_keys =
        schedules.iter().flat_map(|schedule| schedule.expose()).map(|key| key.to_vec());
    [key.to_vec()].into_iter().chain(round_keys).collect()
}

fn schedules_and_hash_key(key: &[u8]) -> Vec<Vec<u8>> {
    let mut hash_key = vec![0; 16];
    AesKey::new(AesKernel::Soft, key).unwrap().ecb_encrypt(&mut hash_key).unwrap();
    let reversed = hash_key.iter().rev().copied().collect();
    let mut pieces = schedules(key);
    pieces.extend([hash_key, reversed]);
    pieces
}

/// The key with both pads, and the states that they make (FIPS 198-1).
fn hmac_states(algorithm: HmacAlgorithm, key: &[u8]) -> Vec<Vec<u8>> {
    let block = if algorithm.lanes() == 16 { 64 } else { 128 };
    let mut pieces = vec![];
    if key.len() <= block {
        pieces.push(key.to_vec());
        for pad in [0x36, 0x5c] {
            let mut padded: Vec<u8> = key.iter().map(|byte| byte ^ pad).collect();
            pieces.push(padded.clone());
            padded.resize(block, pad);
            pieces.push(state(algorithm, &padded));
        }
    } else {
        pieces.extend(key.chunks(16).map(<[u8]>::to_vec));
    }
    pieces
}

/// The state of a hash after one block, as words in memory.
fn state(algorithm: HmacAlgorithm, block: &[u8]) -> Vec<u8> {
    match algorithm {
        HmacAlgorithm::Sha1 => {
            let mut state = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
            sha1::block_api::compress(&mut state, &[block.try_into().unwrap()]);
            state.iter().flat_map(|word| word.to_ne_bytes()).collect()
        }
        HmacAlgorithm::Sha256 => {
            let mut state = [
                0x6a09_e667,
                0xbb67_ae85,
                0x3c6e_f372,
                0xa54f_f53a,
                0x510e_527f,
                0x9b05_688c,
                0x1f83_d9ab,
                0x5be0_cd19,
            ];
            sha2::block_api::compress256(&mut state, &[block.try_into().unwrap()]);
            state.iter().flat_map(|word| word.to_ne_bytes()).collect()
        }
        HmacAlgorithm::Sha384 | HmacAlgorithm::Sha512 => {
            let mut state = if algorithm == HmacAlgorithm::Sha384 { SHA_384 } else { SHA_512 };
            sha2::block_api::compress512(&mut state, &[block.try_into().unwrap()]);
            state.iter().flat_map(|word| word.to_ne_bytes()).collect()
        }
        _ => panic!("{algorithm}: say how its states look"),
    }
}

/// FIPS 180-4, sections 5.3.4 and 5.3.5.
const SHA_384: [u64; 8] = [
    0xcbbb_9d5d_c105_9ed8,
    0x629a_292a_367c_d507,
    0x9159_015a_3070_dd17,
    0x152f_ecd8_f70e_5939,
    0x6733_2667_ffc0_0b31,
    0x8eb4_4a87_6858_1511,
    0xdb0c_2e0d_64f9_8fa7,
    0x47b5_481d_befa_4fa4,
];
const SHA_512: [u64; 8] = [
    0x6a09_e667_f3bc_c908,
    0xbb67_ae85_84ca_a73b,
    0x3c6e_f372_fe94_f82b,
    0xa54f_f53a_5f1d_36f1,
    0x510e_527f_ade6_82d1,
    0x9b05_688c_2b3e_6c1f,
    0x1f83_d9ab_fb41_bd6b,
    0x5be0_cd19_137e_2179,
];

// The search

/// Has `work` make, use and drop a key on a thread of its own, and searches this process's memory
/// for what `pieces` says of the key.
fn remains(
    len: usize,
    work: impl Fn(&[u8]) + Send + Sync,
    pieces: impl Fn(&[u8]) -> Vec<Vec<u8>>,
) -> Remains {
    // Byte by byte, so that no register ever holds a piece.
    let mut key = vec![0_u8; len].into_boxed_slice();
    // Another one each time: the search itself leaves copies of the one before.
    static KEYS: AtomicU32 = AtomicU32::new(1);
    let mut state = KEYS.fetch_add(1, Ordering::Relaxed).wrapping_mul(0x9e37_79b9);
    for byte in &mut key {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        *byte = black_box((state >> 24) as u8);
    }
    let mut memory = vec![0_u8; MOST_MEMORY];
    let (key, work, searching) = (&key, &work, &Mutex::new(()));
    let (frame, regions) = thread::scope(|scope| {
        // Each side waits for the other one, or for its fall. What they wait with is made before the work: what
        // the worker allocates later could lie on what the search is to find.
        let (done, is_done) = mpsc::sync_channel(1);
        let search = searching.lock().unwrap();
        scope.spawn(move || {
            done.send(on_the_stack(key, work)).expect("the search waits");
            drop(searching.lock());
        });
        let frame = is_done.recv().expect("the work ends");
        let regions = read_memory(&mut memory, key.as_ptr_range());
        drop(search);
        (frame, regions)
    });
    let mut wanted: Vec<(u64, usize)> = Vec::new();
    for (i, piece) in pieces(key).iter().enumerate() {
        // In memory as words of the other byte order, too.
        let swapped = piece.as_chunks::<4>().0.iter().flat_map(|word| word.iter().rev());
        for piece in [piece.clone(), swapped.copied().collect()] {
            wanted.extend(piece.windows(8).step_by(4).map(|piece| (number(piece), i)));
        }
    }
    wanted.retain(|(piece, _)| *piece != 0);
    wanted.sort_unstable();
    let mut remains = Remains::default();
    for (start, range) in regions {
        let is_stack = (start..start + range.len() as u64).contains(&frame);
        for (i, bytes) in memory[range].windows(8).step_by(4).enumerate() {
            let number = number(bytes);
            let place = wanted.binary_search_by_key(&number, |(piece, _)| *piece);
            match place {
                Ok(at) if is_stack => {
                    remains.stack.push((frame.wrapping_sub(start + 4 * i as u64), wanted[at].1));
                }
                Ok(at) => remains.elsewhere.push(wanted[at].1),
                Err(_) => {}
            }
        }
    }
    remains
}

/// Never inlined, so that all of the work is in stack frames that are dead afterwards, and so far down
/// that waiting does not overwrite them; returns a place above them.
#[inline(never)]
fn on_the_stack(key: &[u8], work: &impl Fn(&[u8])) -> u64 {
    /// In this frame the work would lie above the distance on some CPUs, which is where ARM's compiler
    /// puts small variables.
    #[inline(never)]
    fn below(key: &[u8], work: &impl Fn(&[u8])) {
        work(key);
    }
    let distance = black_box([0_u8; 16 * 1024]);
    below(key, work);
    (&raw const *black_box(&distance)) as u64
}

fn number(bytes: &[u8]) -> u64 {
    u64::from_ne_bytes(bytes.try_into().expect("eight bytes"))
}

/// Copies what can be written into `memory`, but for itself and the caller's key; says what begins
/// where.
fn read_memory(memory: &mut [u8], key: Range<*const u8>) -> Vec<(u64, Range<usize>)> {
    let own = memory.as_ptr_range();
    let own = own.start as u64..own.end as u64;
    let key = key.start as u64..key.end as u64;
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let process = File::open("/proc/self/mem").unwrap();
    let mut regions = Vec::new();
    let mut filled = 0;
    for line in maps.lines().filter(|line| line.contains(" rw-p ")) {
        let (range, _) = line.split_once(' ').unwrap();
        let (start, end) = range.split_once('-').unwrap();
        let [start, end] = [start, end].map(|place| u64::from_str_radix(place, 16).unwrap());
        for part in [start..end.min(own.start), start.max(own.end)..end] {
            let len = part.end.saturating_sub(part.start) as usize;
            if len == 0 {
                continue;
            }
            let room = memory.get_mut(filled..filled + len).expect("room for all memory");
            process.read_exact_at(room, part.start).unwrap();
            let holds = key.start.max(part.start)..key.end.min(part.end);
            if !holds.is_empty() {
                room[(holds.start - part.start) as usize..(holds.end - part.start) as usize]
                    .fill(0);
            }
            regions.push((part.start, filled..filled + len));
            filled += len;
        }
    }
    regions
}

/// More than this process has.
const MOST_MEMORY: usize = 64 << 20;
