//! Tests whether time depends on the error in a record of TLS under CBC, through libcrypto and the
//! provider: `record_timing [--strict] [CASE]…`.
//!
//! Classes of records of one length, which differ in what only the receiver may know: where
//! padding ends, whether and where it is wrong, and whether that or the MAC is. OpenSSL's own
//! provider is measured too, and two controls, whose difference is public, must be detected.
//! With `--strict` it exits with 1 if a case of ours, or a control, is not as expected;
//! `docs/constant-time.md` is about the method. `make constant-time` calls it.
#![allow(clippy::unwrap_used, reason = "a measurement that cannot go on has failed")]

use std::process::ExitCode;

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[path = "../tests/it/support/mod.rs"]
mod support;
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[allow(dead_code, reason = "the other example uses all of it")]
#[path = "../../crypto/examples/constant_time/methods/welch.rs"]
mod welch;

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
fn main() -> ExitCode {
    println!("skipped: the method is written for Linux on x86-64");
    ExitCode::SUCCESS
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
fn main() -> ExitCode {
    use support::installation::OpenSsl;

    let (options, wanted): (Vec<_>, Vec<_>) =
        std::env::args().skip(1).partition(|name| name.starts_with("--"));
    let mut wrong = 0;
    for (mode, settings) in [("", "multiblock = 1"), ("paper/", "paper_mode = 1")] {
        let modules = support::Modules::new(OpenSsl::System, settings);
        let Some(evp) = records::configured(&modules) else { return ExitCode::SUCCESS };
        for case in records::cases(mode) {
            let chosen = wanted.is_empty() || wanted.iter().any(|from| case.name.starts_with(from));
            if chosen && !records::judge(&evp, &case) {
                wrong += 1;
            }
        }
    }
    println!("records: {wrong} cases are not as they should be");
    let strict = options.iter().any(|option| option == "--strict");
    if wrong == 0 || !strict { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod records {
    use wattlock_crypto::hmac::{HmacAlgorithm, HmacKey};

    use crate::support::evp::{Context, Evp, Param};
    use crate::support::{Modules, Numbers};
    use crate::welch::Comparison;

    const TLS_AAD: i32 = 0x16;
    const SET_MAC_KEY: i32 = 0x17;
    const BLOCK: usize = 16;
    /// Payload, MAC and padding; less than the longest padding and a MAC.
    const INSIDE: usize = 256;
    /// Records of each class.
    const POOL: usize = 256;
    const KEY: [u8; 32] = [3; 32];
    const MAC_KEY: [u8; 48] = [5; 48];

    /// Two classes of records, and the cipher that opens them.
    pub struct Case {
        pub name: String,
        cipher: &'static str,
        provider: &'static str,
        algorithm: HmacAlgorithm,
        /// True if the provider checks the MAC, false if it hands it to libssl.
        composite: bool,
        classes: [Class; 2],
        kind: Kind,
    }

    #[derive(Clone, Copy, PartialEq)]
    enum Kind {
        Ours,
        Control,
        Stock,
    }

    /// A kind of record.
    #[derive(Clone, Copy)]
    enum Class {
        Right,
        /// Twice as long. One block more may take as many steps of wide registers.
        Longer,
        WrongMac,
        /// A wrong MAC, and padding as short as can be.
        ShortPadding,
        /// A wrong MAC, and padding as long as can be.
        LongPadding,
        /// The first byte of the padding is wrong, the last before its length.
        WrongStart,
        WrongEnd,
        /// The padding is longer than the record.
        TooLong,
    }

    /// What is compared: nothing of it may show.
    const PAIRS: [(&str, [Class; 2]); 4] = [
        ("wrong-mac/wrong-padding", [Class::WrongMac, Class::WrongEnd]),
        ("short-padding/long-padding", [Class::ShortPadding, Class::LongPadding]),
        ("wrong-start/wrong-end", [Class::WrongStart, Class::WrongEnd]),
        ("wrong-mac/too-long-padding", [Class::WrongMac, Class::TooLong]),
    ];

    pub fn configured(modules: &Modules) -> Option<Evp> {
        let mut evp = Evp::without_providers(modules)?;
        evp.configure(&modules.path().join("openssl.cnf"));
        for name in [c"default", c"wattlock"] {
            evp.provider(name).unwrap();
        }
        Some(evp)
    }

    /// All cases of a mode of the provider.
    pub fn cases(mode: &str) -> Vec<Case> {
        use HmacAlgorithm::{Sha1, Sha256, Sha384};
        let paper = !mode.is_empty();
        let suites: &[(&str, HmacAlgorithm, bool)] = if paper {
            &[("AES-256-CBC", Sha384, true)]
        } else {
            &[
                ("AES-256-CBC-HMAC-SHA256", Sha256, true),
                ("AES-256-CBC-HMAC-SHA1", Sha1, true),
                ("AES-256-CBC", Sha384, false),
            ]
        };
        let mut cases = Vec::new();
        for &(cipher, algorithm, composite) in suites {
            for provider in ["wattlock", "default"] {
                // OpenSSL has no composite for SHA-384.
                if paper && provider == "default" {
                    continue;
                }
                let kind = if provider == "default" { Kind::Stock } else { Kind::Ours };
                let case = |what: &str, classes, kind| Case {
                    name: format!("{mode}{cipher}/{provider}/{what}"),
                    cipher,
                    provider,
                    algorithm,
                    composite,
                    classes,
                    kind,
                };
                cases.extend(PAIRS.map(|(what, classes)| case(what, classes, kind)));
                if !composite {
                    cases.push(case("right/wrong-padding", [Class::Right, Class::WrongEnd], kind));
                }
                if provider == "wattlock" {
                    let longer = [Class::Right, Class::Longer];
                    cases.push(case("control/twice-as-long", longer, Kind::Control));
                }
            }
        }
        cases
    }

    /// Measures, prints a line; false if the case is not as it should be.
    pub fn judge(evp: &Evp, case: &Case) -> bool {
        let mut numbers = Numbers(99);
        let pools = case.classes.map(|class| {
            let record = |_| case.record(evp, class, &mut numbers);
            (0..POOL).map(record).collect::<Vec<_>>()
        });
        // Public lengths: those of the class, which are equal but in a control.
        let lens = pools.each_ref().map(|pool| pool[0].len());
        let mut state = State {
            context: case.context(evp),
            memory: vec![0; lens[0].max(lens[1]) + BLOCK],
            len: 0,
        };
        let prepare = |state: &mut State<'_>, class: usize, number: u64| {
            let at = (number >> 32) as usize % POOL;
            // The same work for both classes, into the same memory.
            let mask = 0_u8.wrapping_sub(class as u8);
            let both = pools[0][at].iter().zip(&pools[1][at]);
            for (byte, (one, other)) in state.memory.iter_mut().zip(both) {
                *byte = one ^ ((one ^ other) & mask);
            }
            state.len = lens[class];
            if case.composite {
                // Also forgets the error of the run before.
                evp.error();
                let mut aad = [0, 0, 0, 0, 0, 0, 0, 0, 23, 3, 3, 0, 0];
                aad[11..].copy_from_slice(&(state.len as u16).to_be_bytes());
                assert!(state.context.ctrl(TLS_AAD, 13, aad.as_mut_ptr().cast()) > 0);
            }
        };
        let both = Comparison::measure(&mut state, prepare, |state| {
            let start = state.memory.as_mut_ptr();
            // SAFETY: there is room for a block behind the record.
            let _ = unsafe { state.context.update_at(start, start, state.len) };
        });
        evp.error();
        let (right, verdict) = match (case.kind, both.differs()) {
            (Kind::Ours, false) => (true, "ok"),
            (Kind::Ours, true) => (false, "LEAKS"),
            (Kind::Control, true) => (true, "ok: a control, and found"),
            (Kind::Control, false) => (false, "CONTROL NOT FOUND"),
            (Kind::Stock, false) => (true, "ok"),
            (Kind::Stock, true) => (true, "not judged: OpenSSL's"),
        };
        println!("{:<66} {:<34} {verdict}", case.name, both.figure());
        right
    }

    struct State<'a> {
        context: Context<'a>,
        memory: Vec<u8>,
        len: usize,
    }

    impl Case {
        /// A context that opens records, as libssl sets it up.
        fn context<'a>(&self, evp: &'a Evp) -> Context<'a> {
            let mut context = evp.cipher(self.cipher, self.provider);
            assert!(context.init(false, Some(&KEY), Some(&[0; BLOCK])));
            let mac_len = self.algorithm.tag_len();
            if self.composite {
                let mut key = MAC_KEY;
                let len = mac_len as i32;
                assert!(context.ctrl(SET_MAC_KEY, len, key.as_mut_ptr().cast()) > 0);
            }
            let (mut version, mut size) = (0x0303, if self.composite { 0 } else { mac_len });
            assert!(context.set(&[
                Param::small(c"tls-version", &mut version),
                Param::number(c"tls-mac-size", &mut size),
                Param::end(),
            ]));
            context
        }

        /// A record of that class, sealed.
        fn record(&self, evp: &Evp, class: Class, numbers: &mut Numbers) -> Vec<u8> {
            let mac_len = self.algorithm.tag_len();
            let inside_len = if matches!(class, Class::Longer) { 2 * INSIDE } else { INSIDE };
            // The byte that says how much padding is in front of it.
            let most = INSIDE - mac_len - 1;
            let padding = match class {
                Class::Right | Class::Longer | Class::WrongMac => numbers.below(most),
                Class::ShortPadding => numbers.below(4),
                Class::LongPadding => most - numbers.below(4),
                Class::WrongStart | Class::WrongEnd => 2 + numbers.below(most - 2),
                Class::TooLong => 0,
            };
            let len = inside_len - mac_len - 1 - padding;
            let mut inside = numbers.bytes(len);
            let mut header = [0, 0, 0, 0, 0, 0, 0, 0, 23, 3, 3, 0, 0];
            header[11..].copy_from_slice(&(len as u16).to_be_bytes());
            let mut tag = vec![0; mac_len];
            let key = HmacKey::new(self.algorithm, &MAC_KEY[..mac_len]);
            key.sign(&[&header, &inside], &mut tag).unwrap();
            inside.extend(&tag);
            inside.resize(inside_len, padding as u8);
            match class {
                Class::Right | Class::Longer => {}
                Class::WrongMac | Class::ShortPadding | Class::LongPadding => inside[len] ^= 1,
                Class::WrongStart => inside[len + mac_len] ^= 1,
                Class::WrongEnd => inside[inside_len - 2] ^= 1,
                Class::TooLong => inside[inside_len - 1] = (most + 1 + numbers.below(4)) as u8,
            }
            let iv = numbers.bytes(BLOCK);
            let mut writer = evp.cipher("AES-256-CBC", "default");
            assert!(writer.init(true, Some(&KEY), Some(&iv)));
            assert!(writer.set_number(c"padding", 0));
            [iv, writer.update(&inside).unwrap()].concat()
        }
    }
}
