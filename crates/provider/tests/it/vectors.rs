//! OpenSSL's own test vectors of AES (`vectors/openssl`), by libcrypto through the provider, with what
//! its `evp_test` looks at: in one part, in place, in fragments, on copies of contexts; IVs before and
//! after, tags, and the errors that are expected.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::support::Modules;
use crate::support::evp::{Context, Evp, Param};
use crate::support::installation::{OpenSsl, on_every_openssl};
use wattlock_provider::statistics::SharedTable;

const SET_IV_LEN: i32 = 0x9;
const GET_TAG: i32 = 0x10;
const SET_TAG: i32 = 0x11;
const SET_MAC_KEY: i32 = 0x17;

/// One stanza: `NAME = value` lines up to an empty one.
#[derive(Default)]
struct Stanza {
    line: usize,
    fields: Vec<(String, String)>,
}

impl Stanza {
    fn all(text: &str) -> Vec<Self> {
        let mut stanzas = vec![Self::default()];
        for (line, text) in text.lines().enumerate() {
            let text = text.trim();
            if text.is_empty() {
                stanzas.push(Self::default());
            } else if !text.starts_with('#') {
                let (name, value) = text.split_once('=').unwrap();
                let stanza = stanzas.last_mut().unwrap();
                stanza.line = line + 1;
                stanza.fields.push((name.trim().into(), value.trim().into()));
            }
        }
        stanzas.retain(|stanza| stanza.field("Cipher").is_some());
        stanzas
    }

    fn field(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|(key, _)| key == name);
        field.map(|(_, value)| value.as_str())
    }

    fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        self.field(name).map(unhex)
    }

    /// Additional data may stand in several lines.
    fn aad(&self) -> Vec<Vec<u8>> {
        let lines = self.fields.iter().filter(|(name, _)| name == "AAD");
        lines.map(|(_, value)| unhex(value)).collect()
    }
}

fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks(2);
    digits.map(|two| u8::from_str_radix(std::str::from_utf8(two).unwrap(), 16).unwrap()).collect()
}

/// How the input is given.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Way {
    Whole,
    InPlace,
    Fragments,
}

fn openssl_s_own_vectors_come_out_right(openssl: OpenSsl) {
    let table = SharedTable::new().unwrap();
    let modules = Modules::new(openssl, &format!("statistics = {}", table.setting()));
    let Some(mut evp) = Evp::without_providers(&modules) else { return };
    evp.configure(&modules.path().join("openssl.cnf"));
    for name in [c"default", c"wattlock"] {
        evp.provider(name).unwrap();
    }
    come_out_right(&evp, &table);
}

fn come_out_right(evp: &Evp, statistics: &SharedTable) {
    let names = evp.ciphers_of("wattlock");
    let mut counts: BTreeMap<&str, usize> = names.iter().map(|name| (name.as_str(), 0)).collect();
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/openssl");
    for file in ["evpciph_aes_common.txt", "evpciph_aes_stitched.txt"] {
        for stanza in Stanza::all(&fs::read_to_string(vectors.join(file)).unwrap()) {
            let wanted = stanza.field("Cipher").unwrap();
            let Some(name) = names.iter().find(|name| name.eq_ignore_ascii_case(wanted)) else {
                continue;
            };
            let before = calls(statistics);
            run(evp, name, &stanza, file);
            // A message of no bytes has no update that counts.
            let counted = calls(statistics) > before || stanza.field("Plaintext") == Some("");
            assert!(counted, "{file}:{}: it ran elsewhere", stanza.line);
            *counts.get_mut(name.as_str()).unwrap() += 1;
        }
    }
    for (name, count) in counts {
        println!("{name}: {count} stanzas");
        assert!(count > 0, "{name} has no vector");
    }
}

/// Calls that the provider has counted in this process.
fn calls(statistics: &SharedTable) -> u64 {
    let all = statistics.read().unwrap();
    all.iter().map(|one| one.sum().calls).sum()
}

fn run(evp: &Evp, name: &str, stanza: &Stanza, file: &str) {
    for encrypt in [true, false] {
        let direction = if encrypt { "ENCRYPT" } else { "DECRYPT" };
        if stanza.field("Operation").is_some_and(|only| only != direction) {
            continue;
        }
        for way in [Way::Whole, Way::InPlace, Way::Fragments] {
            // A record is one part.
            if way == Way::Fragments && stanza.field("TLSAAD").is_some() {
                continue;
            }
            let what = format!("{file}:{}: {name}, {direction}, {way:?}", stanza.line);
            let result = one_way(evp, name, stanza, encrypt, way, &what);
            let expected = stanza.field("Result").map_or(Ok(()), Err);
            assert_eq!(result, expected, "{what}");
            evp.error();
        }
    }
}

/// The error's name in `evp_test` if a call fails.
fn one_way(
    evp: &Evp,
    name: &str,
    stanza: &Stanza,
    encrypt: bool,
    way: Way,
    what: &str,
) -> Result<(), &'static str> {
    let (input, output) = (stanza.bytes("Plaintext").unwrap(), stanza.bytes("Ciphertext").unwrap());
    let (input, output) = if encrypt { (input, output) } else { (output, input) };
    let mut context = keyed(evp, name, stanza, encrypt, what);
    for aad in stanza.aad() {
        let cut = if way == Way::Fragments { aad.len().min(1) } else { 0 };
        let (one, other) = aad.split_at(cut);
        assert!(context.aad(one) && context.aad(other), "{what}");
    }
    assert!(context.set_number(c"padding", 0), "{what}");
    let mut found = given(&mut context, &input, way).ok_or("CIPHERUPDATE_ERROR")?;
    let tail = context.finish().ok_or("CIPHERFINAL_ERROR")?;
    found.extend(tail);
    let mut expected = &output[..];
    if !encrypt && stanza.field("TLSAAD").is_some() {
        // The payload, behind the explicit IV where there is one; no MAC and no padding.
        assert!(found.len() < expected.len(), "{what}");
        expected = &expected[..found.len()];
    }
    assert!(found == expected, "{what}: {found:02x?} instead of {expected:02x?}");
    if let Some(next) = stanza.bytes("NextIV") {
        assert_eq!(context.bytes(c"updated-iv", next.len()), Some(next), "{what}");
    }
    if let (Some(tag), true) = (stanza.bytes("Tag"), encrypt) {
        let mut made = vec![0; tag.len()];
        let got = context.ctrl(GET_TAG, made.len() as i32, made.as_mut_ptr().cast());
        assert_eq!((got, &made), (1, &tag), "{what}");
    }
    Ok(())
}

/// A context with all that a stanza says of it.
fn keyed<'a>(evp: &'a Evp, name: &str, stanza: &Stanza, encrypt: bool, what: &str) -> Context<'a> {
    let (key, iv) = (stanza.bytes("Key").unwrap(), stanza.bytes("IV"));
    let mut context = evp.cipher(name, "wattlock");
    assert!(context.init(encrypt, None, None), "{what}");
    assert_eq!(context.number(c"keylen"), Some(key.len()), "{what}");
    let tag = stanza.bytes("Tag");
    if let (Some(iv), true) = (&iv, tag.is_some()) {
        let set = context.ctrl(SET_IV_LEN, iv.len() as i32, std::ptr::null_mut());
        assert_eq!(set, 1, "{what}");
    }
    if let (Some(mut tag), false) = (tag, encrypt) {
        let set = context.ctrl(SET_TAG, tag.len() as i32, tag.as_mut_ptr().cast());
        assert_eq!(set, 1, "{what}");
    }
    assert!(context.init(encrypt, Some(&key), iv.as_deref()), "{what}");
    if let Some(iv) = iv {
        assert_eq!(context.number(c"ivlen"), Some(iv.len()), "{what}");
        assert_eq!(context.bytes(c"updated-iv", iv.len()), Some(iv), "{what}");
    }
    context.become_a_copy();
    if let Some(mut key) = stanza.bytes("MACKey") {
        let set = context.ctrl(SET_MAC_KEY, key.len() as i32, key.as_mut_ptr().cast());
        assert!(set > 0, "{what}");
    }
    if let Some(version) = stanza.field("TLSVersion") {
        let version = u32::from_str_radix(version.trim_start_matches("0x"), 16).unwrap();
        assert!(context.set_number(c"tls-version", version), "{what}");
    }
    if let Some(mut aad) = stanza.bytes("TLSAAD") {
        assert!(context.set(&[Param::bytes(c"tlsaad", &mut aad), Param::end()]), "{what}");
    }
    context
}

fn given(context: &mut Context<'_>, input: &[u8], way: Way) -> Option<Vec<u8>> {
    match way {
        Way::Whole => {
            // A record's payload is shorter than the output, which `update` would refuse.
            let mut out = vec![0; input.len() + 32];
            // SAFETY: there is room for the input and a block.
            let len = unsafe { context.update_at(out.as_mut_ptr(), input.as_ptr(), input.len()) }?;
            out.truncate(len);
            Some(out)
        }
        Way::InPlace => {
            let mut memory = [input, &[0; 32]].concat();
            let start = memory.as_mut_ptr();
            // SAFETY: there is room for the input and a block.
            let len = unsafe { context.update_at(start, start, input.len()) }?;
            memory.truncate(len);
            Some(memory)
        }
        Way::Fragments => {
            let (first, rest) = input.split_at(input.len().min(1));
            let (middle, last) = rest.split_at(rest.len().saturating_sub(1));
            let mut found = context.update(first)?;
            found.extend(context.update(middle)?);
            found.extend(context.update(last)?);
            Some(found)
        }
    }
}

on_every_openssl!(openssl_s_own_vectors_come_out_right,);
