//! Records of TLS under CBC with HMAC: the same as OpenSSL's composites make and take.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use crate::support::evp::{Context, Evp, Param};
use crate::support::installation::{OpenSsl, on_every_openssl};
use crate::support::{Modules, Numbers};

const TLS_AAD: i32 = 0x16;
const SET_MAC_KEY: i32 = 0x17;

/// Name, bytes of the key, bytes of the MAC.
const CIPHERS: [(&str, usize, usize); 4] = [
    ("AES-128-CBC-HMAC-SHA1", 16, 20),
    ("AES-256-CBC-HMAC-SHA1", 32, 20),
    ("AES-128-CBC-HMAC-SHA256", 16, 32),
    ("AES-256-CBC-HMAC-SHA256", 32, 32),
];

/// A context with its keys, as libssl sets it up.
fn context<'a>(
    evp: &'a Evp,
    (name, provider): (&str, &str),
    encrypt: bool,
    key: &[u8],
    mac_key: &[u8],
    version: u32,
) -> Context<'a> {
    let mut context = evp.cipher(name, provider);
    assert!(context.init(encrypt, Some(key), Some(&[9; 16])));
    let mut mac_key = mac_key.to_vec();
    let len = mac_key.len() as i32;
    assert!(context.ctrl(SET_MAC_KEY, len, mac_key.as_mut_ptr().cast()) > 0);
    let (mut version, mut none) = (version, 0);
    assert!(context.set(&[
        Param::small(c"tls-version", &mut version),
        Param::number(c"tls-mac-size", &mut none),
        Param::end(),
    ]));
    context
}

/// Additional data of a record of `len` bytes, the explicit IV among them.
fn aad(sequence: u64, version: u32, len: usize) -> Vec<u8> {
    let mut aad = sequence.to_be_bytes().to_vec();
    aad.extend([23, 3, version as u8]);
    aad.extend((len as u16).to_be_bytes());
    aad
}

/// One record as libssl does it: additional data, and the buffer in place.
fn record(context: &mut Context<'_>, mut aad: Vec<u8>, bytes: &[u8]) -> (i32, Option<Vec<u8>>) {
    let pad = context.ctrl(TLS_AAD, 13, aad.as_mut_ptr().cast());
    let mut memory = bytes.to_vec();
    memory.resize(bytes.len() + 400, 0);
    let start = memory.as_mut_ptr();
    // When decrypting the length is that of the record.
    let len = bytes.len();
    // SAFETY: there is room for a block behind the record.
    let written = unsafe { context.update_at(start, start, len) };
    (pad, written.map(|written| memory[..len.max(written)].to_vec()))
}

fn sealed(context: &mut Context<'_>, mut aad: Vec<u8>, bytes: &[u8]) -> Vec<u8> {
    let pad = context.ctrl(TLS_AAD, 13, aad.as_mut_ptr().cast());
    assert!(pad > 0);
    let mut memory = bytes.to_vec();
    memory.resize(bytes.len() + pad as usize + 16, 0);
    let (start, len) = (memory.as_mut_ptr(), bytes.len() + pad as usize);
    // SAFETY: there is room for a block behind the record.
    let written = unsafe { context.update_at(start, start, len) };
    assert_eq!(written, Some(len));
    memory.truncate(len);
    memory
}

fn records_are_the_same_and_open_on_either_side(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(21);
    for (name, key_len, mac_len) in CIPHERS {
        for version in [0x0301_u32, 0x0302, 0x0303] {
            let iv_len = if version == 0x0301 { 0 } else { 16 };
            let (key, mac_key) = (numbers.bytes(key_len), numbers.bytes(mac_len));
            let make = |provider, encrypt| {
                context(&evp, (name, provider), encrypt, &key, &mac_key, version)
            };
            let (mut ours, mut theirs) = (make("wattlock", true), make("default", true));
            let (mut our_reader, mut their_reader) =
                (make("wattlock", false), make("default", false));
            let lens = (0..=80).chain([255, 256, 1000, 4096, 16_384]);
            for (sequence, len) in lens.enumerate() {
                let bytes = numbers.bytes(iv_len + len);
                let aad = aad(sequence as u64, version, iv_len + len);
                let (one, other) =
                    (sealed(&mut ours, aad.clone(), &bytes), sealed(&mut theirs, aad, &bytes));
                assert!(one == other, "{name}, {version:#x}, {len} bytes");
                let what = format!("{name}, {version:#x}, {len} bytes");
                for reader in [&mut our_reader, &mut their_reader] {
                    let aad = self::aad(sequence as u64, version, one.len());
                    let (pad, opened) = record(reader, aad, &one);
                    assert_eq!(pad as usize, mac_len, "{what}");
                    let opened = opened.unwrap_or_else(|| panic!("{what} did not open"));
                    assert!(opened[iv_len..][..len] == bytes[iv_len..], "{what}");
                }
            }
        }
    }
}

fn a_changed_record_is_refused_and_leaves_nothing(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    let mut numbers = Numbers(22);
    for (name, key_len, mac_len) in CIPHERS {
        let (key, mac_key) = (numbers.bytes(key_len), numbers.bytes(mac_len));
        let make =
            |provider, encrypt| context(&evp, (name, provider), encrypt, &key, &mac_key, 0x0303);
        let mut writer = make("default", true);
        for len in [0, 1, 100, 1000] {
            let bytes = numbers.bytes(16 + len);
            let record_bytes = sealed(&mut writer, aad(5, 0x0303, 16 + len), &bytes);
            for _ in 0..30 {
                let mut changed = record_bytes.clone();
                let at = 16 + numbers.below(changed.len() - 16);
                changed[at] ^= 1 << numbers.below(8);
                let mut reader = make("wattlock", false);
                let (_, opened) = record(&mut reader, aad(5, 0x0303, changed.len()), &changed);
                assert_eq!(opened, None, "{name}: byte {at} of {}", changed.len());
                assert_eq!(evp.error().as_deref(), Some("authentication failed"));
            }
            let mut reader = make("wattlock", false);
            let (_, opened) =
                record(&mut reader, aad(6, 0x0303, record_bytes.len()), &record_bytes);
            assert_eq!(opened, None, "{name}: another sequence number");
            evp.error();
        }
        let mut reader = make("wattlock", false);
        for short in [16, 32] {
            let (_, opened) = record(&mut reader, aad(0, 0x0303, short), &vec![1; short]);
            assert_eq!(opened, None, "{name}: {short} bytes");
            evp.error();
        }
    }
}

on_every_openssl!(
    records_are_the_same_and_open_on_either_side,
    a_changed_record_is_refused_and_leaves_nothing,
);
