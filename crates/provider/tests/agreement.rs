//! The same calls of EVP to this provider and to OpenSSL's own give the same answers.

mod support;

use support::evp::{Context, Evp};
use support::{Modules, Numbers};

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

#[test]
fn what_is_known_before_a_context_is_the_same() {
    let modules = Modules::new("");
    let Some(evp) = Evp::load(modules.path()) else { return };
    for name in CIPHERS {
        let mut pair = Pair::new(&evp, name);
        for fixed in [
            c"mode",
            c"keylen",
            c"ivlen",
            c"blocksize",
            c"aead",
            c"custom-iv",
            c"cts",
            c"tls-multi",
            c"has-randkey",
        ] {
            pair.same(&format!("{fixed:?}"), |context| context.fixed(fixed));
        }
    }
}

#[test]
fn messages_of_every_length_in_any_parts_are_the_same() {
    let modules = Modules::new("");
    let Some(evp) = Evp::load(modules.path()) else { return };
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
        written += out.map_or(0, |out| out.len());
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

#[test]
fn an_iv_that_is_not_given_again_is_treated_the_same() {
    let modules = Modules::new("");
    let Some(evp) = Evp::load(modules.path()) else { return };
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

#[test]
fn whole_blocks_at_once_are_the_same() {
    let modules = Modules::new("");
    let Some(evp) = Evp::load(modules.path()) else { return };
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

#[test]
fn buffers_may_lie_to_each_other_as_they_like() {
    let modules = Modules::new("");
    let Some(evp) = Evp::load(modules.path()) else { return };
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

#[test]
fn wrong_uses_are_errors_with_a_reason() {
    let modules = Modules::new("");
    let Some(evp) = Evp::load(modules.path()) else { return };
    for name in CIPHERS {
        let mut context = evp.cipher(name, "wattlock");
        assert!(context.init(true, None, None));
        assert!(context.update(b"0123456789abcdef").is_none());
        assert_eq!(evp.error().as_deref(), Some("no key is set"), "{name}");
        assert!(context.finish().is_none());
        assert_eq!(evp.error().as_deref(), Some("no key is set"), "{name}");
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
