//! The same calls of EVP to this provider and to OpenSSL's own give the same answers.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::evp::{Context, Evp, Raised};
use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::{Modules, Numbers};

const GCM: [&str; 3] = ["AES-128-GCM", "AES-192-GCM", "AES-256-GCM"];

const CIPHERS: [&str; 9] = [
    "AES-128-ECB",
    "AES-192-ECB",
    "AES-256-ECB",
    "AES-128-CBC",
    "AES-192-CBC",
    "AES-256-CBC",
    "AES-128-CTR",
    "AES-192-CTR",
    "AES-256-CTR",
];

/// Both providers' contexts of a cipher.
struct Pair<'a> {
    ours: Context<'a>,
    theirs: Context<'a>,
    name: &'a str,
}

impl<'a> Pair<'a> {
    fn new(evp: &'a Evp, name: &'a str) -> Self {
        Self { ours: evp.cipher(name, "wattlock"), theirs: evp.cipher(name, "default"), name }
    }

    /// The same call on both.
    #[track_caller]
    fn same<T: PartialEq + std::fmt::Debug>(
        &mut self,
        what: &str,
        mut call: impl FnMut(&mut Context<'a>) -> T,
    ) -> T {
        let (ours, theirs) = (call(&mut self.ours), call(&mut self.theirs));
        assert!(ours == theirs, "{}: {what}: {ours:?} instead of {theirs:?}", self.name);
        ours
    }

    #[track_caller]
    fn same_state(&mut self) {
        let iv_len = self.same("ivlen", |context| context.number(c"ivlen")).unwrap();
        for name in [c"keylen", c"padding", c"num"] {
            self.same(&format!("{name:?}"), |context| context.number(name));
        }
        for name in [c"iv", c"updated-iv"] {
            self.same(&format!("{name:?}"), |context| context.bytes(name, iv_len));
        }
    }
}

fn key_len(name: &str) -> usize {
    name[4..7].parse::<usize>().unwrap() / 8
}

fn what_is_known_before_a_context_is_the_same(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    for name in CIPHERS.into_iter().chain(GCM) {
        let mut pair = Pair::new(&evp, name);
        if !GCM.contains(&name) {
            pair.same("tls-multi", |context| context.fixed(c"tls-multi"));
        }
        for fixed in [
            c"mode",
            c"keylen",
            c"ivlen",
            c"blocksize",
            c"aead",
            c"custom-iv",
            c"cts",
            c"has-randkey",
        ] {
            pair.same(&format!("{fixed:?}"), |context| context.fixed(fixed));
        }
    }
}

fn messages_of_every_length_in_any_parts_are_the_same(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(1);
    for name in CIPHERS {
        let lens = (0..=100).chain([255, 256, 257, 1000, 4096, 16_384, 100_003]);
        for len in lens {
            let padding = len % 16 == 0 && numbers.below(2) == 0;
            let mut pair = Pair::new(&evp, name);
            let (key, iv) = (numbers.bytes(key_len(name)), numbers.bytes(16));
            let sealed = message(&mut pair, &mut numbers, true, padding, (&key, &iv), len);
            // The same contexts once more, the other way.
            message(&mut pair, &mut numbers, false, padding, (&key, &iv), sealed);
        }
    }
}

/// A message of `len` bytes in parts, to both; returns the bytes of output.
fn message(
    pair: &mut Pair<'_>,
    numbers: &mut Numbers,
    encrypt: bool,
    padding: bool,
    (key, iv): (&[u8], &[u8]),
    len: usize,
) -> usize {
    // Key and IV in one call, or one after the other.
    if numbers.below(2) == 0 {
        assert!(pair.same("init", |context| context.init(encrypt, Some(key), Some(iv))));
    } else {
        assert!(pair.same("init", |context| context.init(encrypt, None, None)));
        assert!(pair.same("init", |context| context.init(encrypt, Some(key), None)));
        assert!(pair.same("init", |context| context.init(encrypt, None, Some(iv))));
    }
    assert!(pair.same("padding", |context| context.set_number(c"padding", padding.into())));
    let text = numbers.bytes(len);
    let (mut rest, mut written) = (&text[..], 0);
    while !rest.is_empty() {
        let most = if numbers.below(3) == 0 { rest.len() } else { rest.len().min(70) };
        let (part, behind) = rest.split_at(numbers.below(most + 1));
        rest = behind;
        let out = pair.same("update", |context| context.update(part));
        written += out.expect("a part is taken").len();
        pair.same_state();
        if numbers.below(8) == 0 {
            pair.ours.become_a_copy();
            pair.theirs.become_a_copy();
        }
    }
    let out = pair.same("final", |context| context.finish());
    pair.same_state();
    written + out.map_or(0, |out| out.len())
}

fn an_iv_that_is_not_given_again_is_treated_the_same(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(2);
    for name in CIPHERS {
        let mut pair = Pair::new(&evp, name);
        let (key, iv) = (numbers.bytes(key_len(name)), numbers.bytes(16));
        pair.same("init", |context| context.init(true, Some(&key), Some(&iv)));
        for _ in 0..10 {
            let part = numbers.bytes(37);
            pair.same("update", |context| context.update(&part));
            pair.same("init again", |context| context.init(true, None, None));
            pair.same_state();
        }
    }
}

fn whole_blocks_at_once_are_the_same(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(3);
    for name in CIPHERS {
        for encrypt in [true, false] {
            let mut pair = Pair::new(&evp, name);
            let (key, iv) = (numbers.bytes(key_len(name)), numbers.bytes(16));
            pair.same("init", |context| context.init(encrypt, Some(&key), Some(&iv)));
            for blocks in [1, 2, 7, 64] {
                let text = numbers.bytes(16 * blocks);
                pair.same("cipher", |context| context.at_once(&text));
                pair.same_state();
            }
        }
    }
}

fn buffers_may_lie_to_each_other_as_they_like(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(4);
    for name in CIPHERS {
        for encrypt in [true, false] {
            let (key, iv) = (numbers.bytes(key_len(name)), numbers.bytes(16));
            for (from, to) in [(64, 64), (64, 63), (64, 65), (64, 32), (64, 96), (64, 600)] {
                let text = numbers.bytes(515);
                let mut apart = evp.cipher(name, "wattlock");
                assert!(apart.init(encrypt, Some(&key), Some(&iv)));
                let mut expected = apart.update(&text[..5]).unwrap();
                expected.extend(apart.update(&text[5..]).unwrap());

                let mut context = evp.cipher(name, "wattlock");
                assert!(context.init(encrypt, Some(&key), Some(&iv)));
                let mut found = context.update(&text[..5]).unwrap();
                let mut memory = vec![0; 1200];
                memory[from..from + 510].copy_from_slice(&text[5..]);
                let start = memory.as_mut_ptr();
                let (input, out) = (start.wrapping_add(from), start.wrapping_add(to));
                // SAFETY: both lie inside the memory, with room for a block behind the output.
                let len = unsafe { context.update_at(out, input, 510) }.unwrap();
                found.extend(&memory[to..to + len]);
                assert!(found == expected, "{name}: from {from} to {to}");
            }
        }
    }
}

fn wrong_uses_are_errors_with_a_reason(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    for name in CIPHERS {
        let mut context = evp.cipher(name, "wattlock");
        assert!(context.init(true, None, None));
        assert!(context.update(b"0123456789abcdef").is_none());
        assert_eq!(evp.error().as_deref(), Some("no key is set"), "{name}");
        assert!(context.finish().is_none());
        // OpenSSL's own GCM has no reason here: `error_queue` compares all of them.
        let reason = (!name.ends_with("GCM")).then_some("no key is set");
        assert_eq!(evp.error().as_deref(), reason, "{name}");
        assert!(!context.set_number(c"num", 16));
        assert_eq!(evp.error().as_deref(), Some("a parameter has a wrong type or size"));
    }
    let mut context = evp.cipher("AES-256-CBC", "wattlock");
    assert!(context.init(false, Some(&[1; 32]), Some(&[2; 16])));
    context.update(&[3; 33]).unwrap();
    assert!(context.finish().is_none());
    assert!(evp.error().unwrap().starts_with("wrong final block length"));
    assert!(context.init(false, Some(&[1; 32]), Some(&[2; 16])));
    context.update(&[3; 32]).unwrap();
    assert!(context.finish().is_none());
    assert_eq!(evp.error().as_deref(), Some("bad decrypt"));
}

/// The reason is OpenSSL's own, which every program can print, and the text says more.
fn an_error_has_openssls_reason_and_a_text(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut context = evp.cipher("AES-256-CBC", "wattlock");
    assert!(context.init(false, Some(&[1; 32]), Some(&[2; 16])));
    assert!(!context.set_number(c"num", 16));
    let raised = |reason: &str, text: &str| {
        Some(Raised { reason: Some(reason.into()), text: Some(text.into()) })
    };
    let said = raised("failed to get parameter", "a parameter has a wrong type or size");
    assert_eq!(evp.raised(), said);
    context.update(&[3; 33]).unwrap();
    assert!(context.finish().is_none());
    let text = "wrong final block length: the message is not whole blocks";
    assert_eq!(evp.raised(), raised("wrong final block length", text));
}

fn a_setting_that_cannot_be_kept_is_an_error_with_a_reason(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(mut evp) = Evp::without_providers(&modules) else { return };
    let config = modules.path().join("wrong.cnf");
    let text = "openssl_conf = init\n[init]\nproviders = list\n[list]\nwattlock = section\n\
                [section]\nstatistics = /proc/1/fd/999999\n";
    std::fs::write(&config, text).unwrap();
    evp.configure(&config);
    let error = evp.provider(c"wattlock").unwrap_err();
    assert!(error.starts_with("the setting statistics must be a service name"), "{error}");
}

const SET_IV_LEN: i32 = 0x9;
const GET_TAG: i32 = 0x10;
const SET_TAG: i32 = 0x11;
const SET_IV_FIXED: i32 = 0x12;
const IV_GENERATE: i32 = 0x13;
const TLS_AAD: i32 = 0x16;
const SET_IV_INVOCATION: i32 = 0x18;

/// A control whose argument is bytes that it may change.
fn ctrl(context: &mut Context<'_>, number: i32, bytes: &[u8]) -> (i32, Vec<u8>) {
    let mut bytes = bytes.to_vec();
    let result = context.ctrl(number, bytes.len() as i32, bytes.as_mut_ptr().cast());
    (result, bytes)
}

fn gcm_in_any_parts_with_any_iv_and_tag_is_the_same(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(5);
    for name in GCM {
        for len in (0..=70).chain([255, 256, 257, 511, 1000, 16_384, 16_401, 100_003]) {
            let mut pair = Pair::new(&evp, name);
            let key = numbers.bytes(key_len(name));
            let iv_len = [12, 12, 12, 1, 8, 16, 33, 128][numbers.below(8)];
            let (iv, aad_len) = (numbers.bytes(iv_len), numbers.below(60));
            let aad = numbers.bytes(aad_len);
            let text = numbers.bytes(len);
            let tag_len = [16, 12, 4, 1][numbers.below(4)];
            assert!(pair.same("init", |context| context.init(true, None, None)));
            pair.same("iv len", |context| {
                context.ctrl(SET_IV_LEN, iv_len as i32, std::ptr::null_mut())
            });
            assert!(pair.same("init", |context| context.init(true, Some(&key), Some(&iv))));
            pair.same("early tag", |context| ctrl(context, GET_TAG, &[0; 16]).0);
            let sealed = gcm_parts(&mut pair, &mut numbers, &aad, &text);
            pair.same("final", |context| context.finish());
            let (got, tag) = pair.same("tag", |context| ctrl(context, GET_TAG, &vec![0; tag_len]));
            assert_eq!(got, 1);
            // The IV is used up.
            let same = pair.same("update after final", |context| context.update(b"more"));
            assert_eq!(same, None);

            assert!(pair.same("init", |context| context.init(false, Some(&key), Some(&iv))));
            pair.same("set tag", |context| ctrl(context, SET_TAG, &tag).0);
            let opened = gcm_parts(&mut pair, &mut numbers, &aad, &sealed);
            assert_eq!(opened, text, "{name}, {len} bytes");
            assert!(pair.same("final", |context| context.finish()).is_some());

            let mut wrong = tag.clone();
            wrong[numbers.below(tag_len)] ^= 1 << numbers.below(8);
            assert!(pair.same("init", |context| context.init(false, None, Some(&iv))));
            pair.same("set tag", |context| ctrl(context, SET_TAG, &wrong).0);
            gcm_parts(&mut pair, &mut numbers, &aad, &sealed);
            assert_eq!(pair.same("final", |context| context.finish()), None);
        }
    }
}

fn gcm_parts(pair: &mut Pair<'_>, numbers: &mut Numbers, aad: &[u8], text: &[u8]) -> Vec<u8> {
    let (one, other) = aad.split_at(numbers.below(aad.len() + 1));
    pair.same("aad", |context| context.aad(one));
    pair.same("aad", |context| context.aad(other));
    let (mut rest, mut out) = (text, Vec::new());
    while !rest.is_empty() {
        let most = if numbers.below(2) == 0 { rest.len() } else { rest.len().min(600) };
        let (part, behind) = rest.split_at(numbers.below(most + 1));
        rest = behind;
        let same = pair.same("update", |context| context.update(part));
        out.extend(same.unwrap_or_else(|| panic!("neither took {} bytes", part.len())));
        if numbers.below(4) == 0 {
            pair.ours.become_a_copy();
            pair.theirs.become_a_copy();
        }
        pair.same_state();
    }
    out
}

fn records_of_tls_1_2_are_the_same(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(6);
    for name in GCM {
        let mut pair = Pair::new(&evp, name);
        let (key, iv) = (numbers.bytes(key_len(name)), numbers.bytes(12));
        assert!(pair.same("init", |context| context.init(true, Some(&key), None)));
        // -1: the whole IV, so that both begin with the same.
        let whole = |context: &mut Context<'_>| {
            context.ctrl(SET_IV_FIXED, -1, iv.clone().as_mut_ptr().cast())
        };
        assert_eq!(pair.same("whole iv", whole), 1);
        let mut records = Vec::new();
        for (sequence, len) in [0, 1, 15, 16, 17, 300, 16_384].into_iter().enumerate() {
            let aad = record_aad(sequence, 8 + len);
            let payload = numbers.bytes(len);
            assert_eq!(pair.same("aad", |context| ctrl(context, TLS_AAD, &aad).0), 16);
            let record = [&[0; 8][..], &payload, &[0; 16]].concat();
            let (written, record) = pair.same("record", |context| in_place(context, &record));
            assert_eq!(written, Some(record.len()));
            records.push((payload, record));
        }
        assert!(pair.same("init", |context| context.init(false, Some(&key), None)));
        pair.same("fixed iv", |context| ctrl(context, SET_IV_FIXED, &iv[..4]).0);
        for (sequence, (payload, record)) in records.iter().enumerate() {
            let aad = record_aad(sequence, record.len());
            assert_eq!(pair.same("aad", |context| ctrl(context, TLS_AAD, &aad).0), 16);
            let (written, opened) = pair.same("record", |context| in_place(context, record));
            assert_eq!(written, Some(payload.len()));
            assert_eq!(&opened[8..8 + payload.len()], &payload[..]);

            let mut changed = record.clone();
            let at = numbers.below(changed.len() - 8) + 8;
            changed[at] ^= 0x10;
            assert_eq!(pair.same("aad", |context| ctrl(context, TLS_AAD, &aad).0), 16);
            let (written, text) = in_place(&mut pair.ours, &changed);
            assert_eq!(written, None);
            assert!(text[8..8 + payload.len()].iter().all(|&byte| byte == 0), "plaintext is out");
            assert_eq!(evp.error().as_deref(), Some("authentication failed"));
            in_place(&mut pair.theirs, &changed);
            evp.error();
        }
        for short in [0, 8, 23] {
            let aad = record_aad(0, short);
            pair.same("short aad", |context| ctrl(context, TLS_AAD, &aad).0);
            evp.error();
        }
    }
}

fn records_of_tls_1_3_are_the_same_and_leave_nothing_when_changed(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(9);
    for name in GCM {
        let (key, iv) = (numbers.bytes(key_len(name)), numbers.bytes(12));
        let (mut writer, mut reader) = (Pair::new(&evp, name), Pair::new(&evp, name));
        assert!(writer.same("init", |context| context.init(true, Some(&key), None)));
        assert!(reader.same("init", |context| context.init(false, Some(&key), None)));
        for len in [1, 16, 17, 255, 256, 1000, 16_385] {
            let mut header = vec![23, 3, 3];
            header.extend(((len + 16) as u16).to_be_bytes());
            let text = numbers.bytes(len);
            writer.same("init", |context| context.init(true, None, Some(&iv)));
            writer.same("header", |context| context.aad(&header));
            let sealed = writer.same("update", |context| context.update(&text)).unwrap();
            writer.same("final", |context| context.finish());
            let (_, tag) = writer.same("tag", |context| ctrl(context, GET_TAG, &[0; 16]));

            reader.same("init", |context| context.init(false, None, Some(&iv)));
            reader.same("set tag", |context| ctrl(context, SET_TAG, &tag).0);
            reader.same("header", |context| context.aad(&header));
            let opened = reader.same("update", |context| context.update(&sealed));
            assert_eq!(opened, Some(text));
            assert!(reader.same("final", |context| context.finish()).is_some());

            let mut changed = sealed.clone();
            changed[numbers.below(len)] ^= 1;
            let ours = &mut reader.ours;
            assert!(ours.init(false, None, Some(&iv)));
            assert_eq!(ctrl(ours, SET_TAG, &tag).0, 1);
            assert!(ours.aad(&header));
            let (written, left) = in_place(ours, &changed);
            assert_eq!(written, None);
            assert!(left.iter().all(|&byte| byte == 0), "{name}: plaintext is out");
            // As after OpenSSL's own check of the tag.
            assert_eq!(evp.error(), None);
        }
    }
}

fn ivs_that_the_cipher_counts_are_the_same(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(8);
    for name in GCM {
        let mut pair = Pair::new(&evp, name);
        let (key, iv) = (numbers.bytes(key_len(name)), numbers.bytes(12));
        pair.same("init", |context| context.init(true, Some(&key), None));
        pair.same("whole iv", |context| {
            context.ctrl(SET_IV_FIXED, -1, iv.clone().as_mut_ptr().cast())
        });
        for len in [8, 12, 4] {
            pair.same("generate", |context| ctrl(context, IV_GENERATE, &vec![0; len]));
            pair.same("update", |context| context.update(b"a message"));
            pair.same("final", |context| context.finish());
            pair.same("tag", |context| ctrl(context, GET_TAG, &[0; 16]));
        }
        pair.same("init", |context| context.init(false, None, None));
        pair.same("invocation", |context| ctrl(context, SET_IV_INVOCATION, &[7; 8]));
        pair.same("update", |context| context.update(b"a message"));
    }
}

/// Additional data of a record of application data in TLS 1.2.
fn record_aad(sequence: usize, len: usize) -> Vec<u8> {
    let mut aad = (sequence as u64).to_be_bytes().to_vec();
    aad.extend([23, 3, 3]);
    aad.extend((len as u16).to_be_bytes());
    aad
}

/// Updates in place, and returns the buffer's content.
fn in_place(context: &mut Context<'_>, record: &[u8]) -> (Option<usize>, Vec<u8>) {
    let mut memory = record.to_vec();
    memory.resize(record.len() + 16, 0);
    let start = memory.as_mut_ptr();
    // SAFETY: there is room for a block behind the record.
    let written = unsafe { context.update_at(start, start, record.len()) };
    memory.truncate(record.len());
    (written, memory)
}

on_every_openssl!(
    what_is_known_before_a_context_is_the_same,
    messages_of_every_length_in_any_parts_are_the_same,
    an_iv_that_is_not_given_again_is_treated_the_same,
    whole_blocks_at_once_are_the_same,
    buffers_may_lie_to_each_other_as_they_like,
    wrong_uses_are_errors_with_a_reason,
    an_error_has_openssls_reason_and_a_text,
    a_setting_that_cannot_be_kept_is_an_error_with_a_reason,
    gcm_in_any_parts_with_any_iv_and_tag_is_the_same,
    records_of_tls_1_2_are_the_same,
    records_of_tls_1_3_are_the_same_and_leave_nothing_when_changed,
    ivs_that_the_cipher_counts_are_the_same,
);
