//! The multiblock protocol as libssl speaks it, and single records.

use std::ffi::c_void;

use super::evp::{Context, Evp};

pub const SET_IV_FIXED: i32 = 0x12;
const TLS_AAD: i32 = 0x16;
const SET_MAC_KEY: i32 = 0x17;
pub const MULTIBLOCK_AAD: i32 = 0x19;
pub const MULTIBLOCK_ENCRYPT: i32 = 0x1a;
const MULTIBLOCK_MAX_BUFFER: i32 = 0x1c;

/// `EVP_CTRL_TLS1_1_MULTIBLOCK_PARAM`.
#[repr(C)]
pub struct Write {
    pub out: *mut u8,
    pub input: *const u8,
    pub len: usize,
    pub interleave: u32,
}

/// What libssl does with one write; `None` where the provider refuses.
pub fn multiblock(
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

pub fn step(context: &mut Context<'_>, number: i32, write: &mut Write) -> Option<usize> {
    let argument = size_of::<Write>() as i32;
    let result = context.ctrl(number, argument, std::ptr::from_mut(write).cast::<c_void>());
    usize::try_from(result).ok().filter(|&bytes| bytes > 0)
}

pub fn aad(sequence: u64, len: usize) -> [u8; 13] {
    let mut aad = [0; 13];
    aad[..8].copy_from_slice(&sequence.to_be_bytes());
    aad[8..11].copy_from_slice(&[23, 3, 3]);
    aad[11..].copy_from_slice(&(len as u16).to_be_bytes());
    aad
}

/// One record, as libssl makes it: header, explicit IV, payload, tag.
pub fn record(context: &mut Context<'_>, sequence: u64, payload: &[u8]) -> Vec<u8> {
    let mut aad = aad(sequence, 8 + payload.len());
    assert_eq!(context.ctrl(TLS_AAD, 13, aad.as_mut_ptr().cast()), 16);
    let mut body = [&[0; 8][..], payload, &[0; 32]].concat();
    let (start, len) = (body.as_mut_ptr(), payload.len() + 24);
    // SAFETY: there is room for a block behind the record.
    assert_eq!(unsafe { context.update_at(start, start, len) }, Some(len));
    body.truncate(len);
    [&[23, 3, 3][..], &(len as u16).to_be_bytes(), &body].concat()
}

pub fn begin(context: &mut Context<'_>, key: &[u8], iv: &[u8]) {
    assert!(context.init(true, Some(key), None));
    let mut iv = iv.to_vec();
    assert_eq!(context.ctrl(SET_IV_FIXED, -1, iv.as_mut_ptr().cast()), 1);
}

/// A context of a composite, with the keys of the cipher and of the MAC.
pub fn keyed<'e>(
    evp: &'e Evp,
    name: &str,
    provider: &str,
    (key, mac_key): (&[u8], &[u8]),
    encrypt: bool,
) -> Context<'e> {
    let mut context = evp.cipher(name, provider);
    assert!(context.init(encrypt, Some(key), Some(&[0; 16])));
    let mut mac_key = mac_key.to_vec();
    let len = mac_key.len() as i32;
    assert!(context.ctrl(SET_MAC_KEY, len, mac_key.as_mut_ptr().cast()) > 0);
    assert!(context.set_number(c"tls-version", 0x0303));
    context
}

/// Opens the records of a composite, in which `payload` is in parts of `fragment` bytes.
pub fn opens_one_by_one(
    context: &mut Context<'_>,
    sequence: &mut u64,
    sealed: &[u8],
    payload: &[u8],
    fragment: usize,
) {
    let mut rest = sealed;
    for part in payload.chunks(fragment) {
        let (header, behind) = rest.split_at(5);
        assert_eq!(header[..3], [23, 3, 3]);
        let len = usize::from(u16::from_be_bytes([header[3], header[4]]));
        let (record, behind) = behind.split_at(len);
        rest = behind;
        let mut aad = aad(*sequence, len);
        assert!(context.ctrl(TLS_AAD, 13, aad.as_mut_ptr().cast()) > 0);
        let mut memory = [record, &[0; 32]].concat();
        let start = memory.as_mut_ptr();
        // SAFETY: there is room for a block behind the record.
        let opened = unsafe { context.update_at(start, start, len) };
        assert_eq!(opened, Some(part.len()), "record {sequence} of {fragment}");
        assert!(&memory[16..16 + part.len()] == part, "record {sequence} of {fragment}");
        *sequence += 1;
    }
    assert!(rest.is_empty());
}
