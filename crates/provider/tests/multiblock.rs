//! The multiblock protocol as libssl speaks it, with every number of records and short lengths: the
//! records are those that OpenSSL's own provider makes one by one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::ffi::c_void;

use support::evp::{Context, Evp};
use support::installation::{OpenSsl, on_every_openssl};
use support::{Modules, Numbers};

const SET_IV_FIXED: i32 = 0x12;
const TLS_AAD: i32 = 0x16;
const SET_MAC_KEY: i32 = 0x17;
const MULTIBLOCK_AAD: i32 = 0x19;
const MULTIBLOCK_ENCRYPT: i32 = 0x1a;
const MULTIBLOCK_MAX_BUFFER: i32 = 0x1c;

/// `EVP_CTRL_TLS1_1_MULTIBLOCK_PARAM`.
#[repr(C)]
struct Write {
    out: *mut u8,
    input: *const u8,
    len: usize,
    interleave: u32,
}

/// What libssl does with one write; `None` where the provider refuses.
fn multiblock(
    context: &mut Context<'_>,
    aad: &[u8; 13],
    payload: &[u8],
    records: usize,
) -> Option<Vec<u8>> {
    let fragment = payload.len().div_ceil(records).min(16_384);
    let most = context.ctrl(MULTIBLOCK_MAX_BUFFER, fragment as i32, std::ptr::null_mut());
    assert!(most > fragment as i32);
    // A copy on the heap, so that a read behind its 13 bytes would be seen by a sanitizer.
    let aad = aad.to_vec();
    let mut write = Write {
        out: std::ptr::null_mut(),
        input: aad.as_ptr(),
        len: payload.len(),
        interleave: records as u32,
    };
    let packed = step(context, MULTIBLOCK_AAD, &mut write)?;
    assert!(packed <= most as usize * records, "{packed} bytes are announced too late");
    assert_eq!(write.interleave as usize, records);
    let mut out = vec![0xee; packed + 64];
    write.out = out.as_mut_ptr();
    write.input = payload.as_ptr();
    let written = step(context, MULTIBLOCK_ENCRYPT, &mut write)?;
    assert_eq!(written, packed);
    assert!(out[packed..].iter().all(|&byte| byte == 0xee), "written beyond the records");
    out.truncate(packed);
    Some(out)
}

fn step(context: &mut Context<'_>, number: i32, write: &mut Write) -> Option<usize> {
    let argument = size_of::<Write>() as i32;
    let result = context.ctrl(number, argument, std::ptr::from_mut(write).cast::<c_void>());
    usize::try_from(result).ok().filter(|&bytes| bytes > 0)
}

fn aad(sequence: u64, len: usize) -> [u8; 13] {
    let mut aad = [0; 13];
    aad[..8].copy_from_slice(&sequence.to_be_bytes());
    aad[8..11].copy_from_slice(&[23, 3, 3]);
    aad[11..].copy_from_slice(&(len as u16).to_be_bytes());
    aad
}

/// One record, as libssl makes it: header, explicit IV, payload, tag.
fn record(context: &mut Context<'_>, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut aad = aad(sequence, 8 + payload.len());
    assert_eq!(context.ctrl(TLS_AAD, 13, aad.as_mut_ptr().cast()), 16);
    let mut body = [&[0; 8][..], payload, &[0; 32]].concat();
    let (start, len) = (body.as_mut_ptr(), payload.len() + 24);
    // SAFETY: there is room for a block behind the record.
    assert_eq!(unsafe { context.update_at(start, start, len) }, Some(len));
    body.truncate(len);
    [&[23, 3, 3][..], &(len as u16).to_be_bytes(), &body].concat()
}

fn begin(context: &mut Context<'_>, key: &[u8], iv: &[u8]) {
    assert!(context.init(true, Some(key), None));
    let mut iv = iv.to_vec();
    assert_eq!(context.ctrl(SET_IV_FIXED, -1, iv.as_mut_ptr().cast()), 1);
}

/// One after the other, since the offer is the whole process's.
fn the_protocol_gives_records_until_it_is_broken(openssl: OpenSsl) {
    let modules = Modules::new(openssl, "");
    let Some(evp) = Evp::load(&modules) else { return };
    many_records_at_once_are_those_of_one_by_one(&evp);
    many_records_of_a_composite_open_one_by_one(&evp);
    what_does_not_fit_the_protocol_is_refused_and_the_offer_ends(&evp);
}

fn many_records_at_once_are_those_of_one_by_one(evp: &Evp) {
    let mut numbers = Numbers(11);
    for (name, key_len) in [("AES-128-GCM", 16), ("AES-192-GCM", 24), ("AES-256-GCM", 32)] {
        let (key, mut iv) = (numbers.bytes(key_len), numbers.bytes(12));
        // The counter of the nonces wraps among the first records.
        iv[4..].copy_from_slice(&(u64::MAX - 5).to_be_bytes());
        let mut ours = evp.cipher(name, "wattlock");
        let mut theirs = evp.cipher(name, "default");
        assert_eq!(ours.fixed(c"tls-multi"), Some(1));
        begin(&mut ours, &key, &iv);
        begin(&mut theirs, &key, &iv);
        let mut sequence = u64::from(u32::MAX) - 3;
        for records in 1..=32 {
            for fragment in [1, 15, 16, 17, 100, 4096, 15_872, 16_384] {
                let more = numbers.below(records);
                let payload = numbers.bytes(fragment * records + more);
                if payload.len() - fragment * (records - 1) > 16_384 {
                    continue;
                }
                let sealed = multiblock(&mut ours, &aad(sequence, 0), &payload, records);
                let mut expected = Vec::new();
                for index in 0..records {
                    let rest = &payload[index * fragment..];
                    let part = if index + 1 == records { rest } else { &rest[..fragment] };
                    expected.extend(record(&mut theirs, sequence, part));
                    sequence += 1;
                }
                assert!(sealed.unwrap() == expected, "{name}: {records} of {fragment}");
                // The next record goes on with the same counters.
                let next = numbers.bytes(33);
                let (one, other) =
                    (record(&mut ours, sequence, &next), record(&mut theirs, sequence, &next));
                assert!(one == other, "{name}: after {records} of {fragment}");
                sequence += 1;
            }
        }
    }
}

/// Their IVs are random, so that it is OpenSSL's own that has to open them.
fn many_records_of_a_composite_open_one_by_one(evp: &Evp) {
    let mut numbers = Numbers(12);
    for (name, key_len, mac_len) in [
        ("AES-128-CBC-HMAC-SHA1", 16, 20),
        ("AES-256-CBC-HMAC-SHA1", 32, 20),
        ("AES-128-CBC-HMAC-SHA256", 16, 32),
        ("AES-256-CBC-HMAC-SHA256", 32, 32),
    ] {
        let (key, mac_key) = (numbers.bytes(key_len), numbers.bytes(mac_len));
        let keyed = |provider, encrypt| {
            let mut context = evp.cipher(name, provider);
            assert!(context.init(encrypt, Some(&key), Some(&[0; 16])));
            let mut mac_key = mac_key.clone();
            let len = mac_key.len() as i32;
            assert!(context.ctrl(SET_MAC_KEY, len, mac_key.as_mut_ptr().cast()) > 0);
            assert!(context.set_number(c"tls-version", 0x0303));
            context
        };
        let (mut ours, mut theirs) = (keyed("wattlock", true), keyed("default", false));
        let mut sequence = u64::from(u32::MAX) - 3;
        for records in 1..=32 {
            for fragment in [1, 15, 16, 17, 100, 4096, 15_872, 16_384] {
                let payload = numbers.bytes(fragment * records);
                let sealed = multiblock(&mut ours, &aad(sequence, 0), &payload, records).unwrap();
                let mut rest = &sealed[..];
                for part in payload.chunks(fragment) {
                    let (header, behind) = rest.split_at(5);
                    assert_eq!(header[..3], [23, 3, 3]);
                    let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
                    let (record, behind) = behind.split_at(len);
                    rest = behind;
                    let mut aad = aad(sequence, len);
                    assert!(theirs.ctrl(TLS_AAD, 13, aad.as_mut_ptr().cast()) > 0);
                    let mut memory = [record, &[0; 32]].concat();
                    let start = memory.as_mut_ptr();
                    // SAFETY: there is room for a block behind the record.
                    let opened = unsafe { theirs.update_at(start, start, len) };
                    assert_eq!(opened, Some(part.len()), "{name}: {records} of {fragment}");
                    assert!(&memory[16..16 + part.len()] == part, "{name}");
                    sequence += 1;
                }
                assert!(rest.is_empty());
            }
        }
    }
}

fn what_does_not_fit_the_protocol_is_refused_and_the_offer_ends(evp: &Evp) {
    let reason = "unknown use of tls multiblock: set multiblock = 0 in the provider's section";
    let payload = vec![7; 4 * 4096];
    let fresh = |encrypt: bool| {
        let mut context = evp.cipher("AES-256-GCM", "wattlock");
        assert!(context.init(encrypt, Some(&[1; 32]), None));
        let mut iv = [2; 12];
        assert_eq!(context.ctrl(SET_IV_FIXED, -1, iv.as_mut_ptr().cast()), 1);
        context
    };
    let refused = |context: &mut Context<'_>, aad: [u8; 13], records, payload: &[u8]| {
        assert_eq!(multiblock(context, &aad, payload, records), None);
        assert_eq!(evp.error().as_deref(), Some(reason));
    };
    // The handshake's type, another version, a length, no record, a record that is too long.
    let mut other = aad(1, 0);
    other[8] = 22;
    refused(&mut fresh(true), other, 4, &payload);
    let mut other = aad(1, 0);
    other[10] = 1;
    refused(&mut fresh(true), other, 4, &payload);
    refused(&mut fresh(true), aad(1, 16), 4, &payload);
    refused(&mut fresh(true), aad(1, 0), 65, &payload);
    refused(&mut fresh(true), aad(1, 0), 4, &vec![7; 4 * 16_384 + 1]);
    refused(&mut fresh(false), aad(1, 0), 4, &payload);

    // Records without a plan, or with another length than planned.
    let mut out = vec![0; 70_000];
    let mut write =
        Write { out: out.as_mut_ptr(), input: payload.as_ptr(), len: payload.len(), interleave: 4 };
    let mut context = fresh(true);
    assert_eq!(step(&mut context, MULTIBLOCK_ENCRYPT, &mut write), None);
    assert_eq!(evp.error().as_deref(), Some(reason));
    let additional = aad(1, 0);
    let mut plan = Write {
        out: std::ptr::null_mut(),
        input: additional.as_ptr(),
        len: payload.len(),
        interleave: 4,
    };
    assert!(step(&mut context, MULTIBLOCK_AAD, &mut plan).is_some());
    write.len -= 4;
    assert_eq!(step(&mut context, MULTIBLOCK_ENCRYPT, &mut write), None);
    assert_eq!(evp.error().as_deref(), Some(reason));
    // The output over the input.
    assert!(step(&mut context, MULTIBLOCK_AAD, &mut plan).is_some());
    write.len += 4;
    out[..payload.len()].copy_from_slice(&payload);
    write.out = out.as_mut_ptr();
    write.input = out.as_ptr().wrapping_add(100);
    assert_eq!(step(&mut context, MULTIBLOCK_ENCRYPT, &mut write), None);
    assert_eq!(evp.error().as_deref(), Some(reason));

    assert_eq!(evp.cipher("AES-256-GCM", "wattlock").fixed(c"tls-multi"), Some(0));
}

on_every_openssl!(the_protocol_gives_records_until_it_is_broken,);
