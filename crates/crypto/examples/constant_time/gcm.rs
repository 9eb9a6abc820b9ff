//! AES-GCM: keys, whole messages and messages in parts.

use std::hint::black_box;

use wattlock_crypto::gcm::{GcmKey, GcmStream};
use wattlock_crypto::{AeadAlgorithm, AeadKey, GcmKernel, NONCE_LEN, TAG_LEN};

use crate::cases::AWS_LC;
use crate::methods::{Case, Kind, case};

/// Whose code seals and opens whole messages: ours is judged, AWS-LC's only shown.
fn whole_messages(kernel: GcmKernel) -> Kind {
    if kernel == GcmKernel::AwsLc { AWS_LC } else { Kind::Ours }
}

/// All cases.
pub fn all() -> Vec<Case> {
    [
        of::<16>(AeadAlgorithm::Aes128Gcm),
        of::<24>(AeadAlgorithm::Aes192Gcm),
        of::<32>(AeadAlgorithm::Aes256Gcm),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Bytes of messages: around blocks, what a kernel takes at once, and what is long.
const LENS: [usize; 15] = [0, 1, 15, 16, 64, 100, 192, 193, 256, 480, 481, 1000, 1100, 4096, 4200];

/// Bytes of all messages, and a tag behind each.
const MESSAGES: usize = {
    let (mut sum, mut i) = (0, 0);
    while i < LENS.len() {
        sum += LENS[i] + TAG_LEN;
        i += 1;
    }
    sum
};

/// The parts of a message, before which there may be one that is sealed at once.
const PARTS: [usize; 9] = [1, 15, 16, 100, 193, 0, 300, 481, 1100];

fn of<const KEY: usize>(algorithm: AeadAlgorithm) -> Vec<Case> {
    let kernels = GcmKernel::all().into_iter();
    kernels.flat_map(|kernel| whole::<KEY>(kernel, algorithm)).chain(in_parts::<KEY>()).collect()
}

/// Whole messages by one kernel.
fn whole<const KEY: usize>(kernel: GcmKernel, algorithm: AeadAlgorithm) -> [Case; 4] {
    let name = |what| format!("{}/{}/{what}", kernel.name(), 8 * KEY);
    let kind = whole_messages(kernel);
    let aead = move |key: &[u8]| {
        AeadKey::with_kernel_alone(kernel, algorithm, key).expect("a length of its keys")
    };
    let key = case(name("key"), kind, KEY, move |key| {
        let tag = aead(key).seal(NONCE, AAD, &mut []).expect("a short message");
        key[..TAG_LEN].copy_from_slice(&tag);
    });
    let seal = case(name("seal"), kind, KEY + MESSAGES, move |secrets| {
        let (key, messages) = secrets.split_at_mut(KEY);
        let key = aead(key);
        each_message(messages, |message, tag| {
            *tag = key.seal(NONCE, AAD, message).expect("a short message");
        });
    });
    let open = move |secrets: &mut [u8]| {
        let (key, messages) = secrets.split_at_mut(KEY);
        let key = aead(key);
        each_message(messages, |message, tag| {
            black_box(key.open(NONCE, AAD, message, tag).is_ok());
        });
    };
    let mut right = case(name("open"), kind, KEY + MESSAGES, open);
    (right.shape, right.answers) = (seal_all::<KEY>, LENS.len() as u64);
    // As they are, the tags are wrong.
    let mut wrong = case(name("open-wrong"), kind, KEY + MESSAGES, open);
    wrong.answers = LENS.len() as u64;
    [key, seal, right, wrong]
}

fn in_parts<const KEY: usize>() -> [Case; 4] {
    let name = |what| format!("aes-gcm/{}/{what}", 8 * KEY);
    let parts = |what, kind, encrypts, first: usize, iv: &'static [u8]| {
        let len = KEY + TAG_LEN + first + PARTS.iter().sum::<usize>();
        case(name(what), kind, len, move |secrets| {
            let (key, message) = secrets.split_at_mut(KEY);
            let key = GcmKey::new(key).expect("a length of its keys");
            let (tag, mut message) = message.split_at_mut(TAG_LEN);
            let mut stream = key.begin(iv).expect("an IV");
            stream.aad(&key, AAD).expect("short additional data");
            for len in [first].into_iter().chain(PARTS) {
                let part = message.split_off_mut(..len).expect("as many as there are");
                let run = if encrypts { GcmStream::encrypt } else { GcmStream::decrypt };
                run(&mut stream, &key, part).expect("a short message");
            }
            tag.copy_from_slice(stream.tag(&key));
        })
    };
    [
        parts("encrypt-parts", Kind::Ours, true, 0, &NONCE),
        // The first part is sealed at once, and then goes on.
        parts("encrypt-more", Kind::Ours, true, 1003, &NONCE),
        parts("decrypt-parts", Kind::Ours, false, 0, &NONCE),
        parts("decrypt-long-iv", LONG_IV, false, 1003, &[9; 16]),
    ]
}

/// Makes what opens.
fn seal_all<const KEY: usize>(secrets: &mut [u8]) {
    let (key, messages) = secrets.split_at_mut(KEY);
    let key = GcmKey::new(key).expect("a length of its keys");
    each_message(messages, |message, tag| {
        *tag = key.aead().seal(NONCE, AAD, message).expect("a short message");
    });
}

fn each_message(mut messages: &mut [u8], mut run: impl FnMut(&mut [u8], &mut [u8; TAG_LEN])) {
    for len in LENS {
        let message = messages.split_off_mut(..len).expect("as long as all messages");
        let tag = messages.split_off_mut(..TAG_LEN).expect("as long as all messages");
        run(message, tag.try_into().expect("bytes of a tag"));
    }
}

/// An IV of another length than 96 bits becomes a counter by the hash, and so by the key; counters are
/// public here.
const LONG_IV: Kind = Kind::Shown("not judged: the counter is public");

const NONCE: [u8; NONCE_LEN] = [9; NONCE_LEN];
const AAD: &[u8] = b"additional data";
