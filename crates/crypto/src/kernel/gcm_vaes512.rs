//! AES-GCM with VAES and VPCLMULQDQ on 512-bit registers: a key, and which code works on a message of which
//! length.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU32;

use super::cpu::GcmVaes512;
use super::gcm::{Key, MOST_SHORT, PartWorks, Proof, WORKS, Work, Works};
use super::gcm_vaes512_long::long;
use super::gcm_vaes512_parts::{block, go_back, hash, inverse, long_part, tag};
use super::gcm_vaes512_short::short;
use super::gcm_vaes512_short_parts::short_part;
use super::round_keys::rounds_of;
use super::{BLOCK_LEN, gcm_key};

/// Expands a key of 16, 24 or 32 bytes. `None` for any other length.
pub(crate) fn key(proof: GcmVaes512, key: &[u8]) -> Option<Key> {
    let rounds = rounds_of(key)?;
    // SAFETY: `proof` says that the CPU has what this needs.
    let tables = unsafe { gcm_key::tables(key) };
    Some(Key::new(tables, rounds, works(rounds), Proof::Vaes512(proof)))
}

/// Expands a key of the same length in place of one, which takes half as long. False for any other.
pub(crate) fn replace(old: &mut Key, key: &[u8]) -> bool {
    if rounds_of(key) != Some(old.rounds) || !matches!(old._proof, Proof::Vaes512(_)) {
        return false;
    }
    // SAFETY: the proof says that the CPU has what this needs.
    unsafe { gcm_key::refill(&mut old.tables, key) };
    (old.terms, old.long) = (OnceLock::new(), AtomicU32::new(0));
    true
}

/// The works for a number of rounds.
fn works(rounds: usize) -> &'static Works {
    match rounds {
        10 => const { &Works::of::<11>() },
        12 => const { &Works::of::<13>() },
        _ => const { &Works::of::<15>() },
    }
}

impl Works {
    const fn of<const KEYS: usize>() -> Self {
        Self {
            seal: by_length::<KEYS, true>(),
            open: by_length::<KEYS, false>(),
            parts: Some(PartWorks {
                seal_short: short_part::<KEYS, true>,
                open_short: short_part::<KEYS, false>,
                seal_long: long_part::<KEYS, true>,
                open_long: long_part::<KEYS, false>,
                tag: tag::<KEYS>,
                go_back: go_back::<KEYS>,
                inverse,
                block: block::<KEYS>,
                hash,
            }),
        }
    }
}

const fn by_length<const KEYS: usize, const SEAL: bool>() -> [Work; WORKS] {
    // By the number of blocks; from 240 bytes on there is one for all.
    let mut works: [Work; WORKS] = [long::<KEYS, SEAL>; _];
    let by_registers: [Work; 4] = [
        short::<KEYS, SEAL, 1, false>,
        short::<KEYS, SEAL, 2, false>,
        short::<KEYS, SEAL, 3, false>,
        short::<KEYS, SEAL, 4, false>,
    ];
    let mut blocks = 0;
    while blocks <= MOST_SHORT / BLOCK_LEN {
        works[blocks] = by_registers[blocks / 4];
        blocks += 1;
    }
    works[4] = short::<KEYS, SEAL, 1, true>;
    works[8] = short::<KEYS, SEAL, 2, true>;
    works[12] = short::<KEYS, SEAL, 3, true>;
    works
}
