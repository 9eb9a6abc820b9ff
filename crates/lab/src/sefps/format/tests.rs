//! SEFPS: the vectors that other programs made, the paper's attacks, and what its proof misses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs;
use std::path::{Path, PathBuf};

use wattlock_engine::crypto::KeccakKernel;
use wattlock_engine::crypto::sha3::sha3_256_many;
use wattlock_engine::{Direction, Engine};
use wattlock_file::{Damage, Error, Input, Kind, Progress, Target, Task};

use super::{Mode, Sefps, Variant, container_len, tasks};
use crate::study::aes::{Kernel, Key};

const WRAPPING_IV: [u8; 16] = {
    let mut iv = [0xff; 16];
    iv[15] = 0xfe;
    iv
};

const BOTH: [Mode; 2] = [Mode::Ecb, Mode::Ctr { iv: WRAPPING_IV }];

fn key(bits: usize) -> Key {
    let bytes: Vec<u8> = (0..bits / 8).map(|byte| byte as u8).collect();
    Key::new(Kernel::best(), &bytes).unwrap()
}

fn plain(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// What `direction` makes of `input`, from a file to a file.
fn run(
    direction: Direction,
    key: &Key,
    mode: Mode,
    variant: Variant,
    input: &[u8],
) -> Result<Vec<u8>, Error> {
    let place = tempfile::tempdir().unwrap();
    let (from, to) = (place.path().join("from"), place.path().join("to"));
    fs::write(&from, input).unwrap();
    let engine = Engine::new(3);
    let progress = Progress::default();
    let how = Sefps { engine: &engine, key, mode, variant, overwrite: false, progress: &progress };
    let made = how.run(direction, &Input::Path(from.clone()), Target::File(to.clone()));
    let Ok(made) = made else {
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1, "there is an output");
        return made.map(|_| Vec::new());
    };
    let output = fs::read(&to).unwrap();
    assert_eq!(made.done.bytes_in, input.len() as u64);
    assert_eq!(made.done.bytes_out, output.len() as u64);
    // To a stream, the same.
    let mut stream = Vec::new();
    how.run(direction, &Input::Path(from), Target::Stream(&mut stream)).unwrap();
    assert!(stream == output);
    Ok(output)
}

fn protect(key: &Key, mode: Mode, plain: &[u8]) -> Vec<u8> {
    run(Direction::Encrypt, key, mode, Variant::Overlapped, plain).unwrap()
}

fn unprotect(key: &Key, mode: Mode, container: &[u8]) -> Result<Vec<u8>, Error> {
    run(Direction::Decrypt, key, mode, Variant::Overlapped, container)
}

#[track_caller]
fn assert_detected(key: &Key, mode: Mode, container: &[u8], what: &str) {
    for variant in [Variant::Serial, Variant::Overlapped] {
        let error = run(Direction::Decrypt, key, mode, variant, container).expect_err(what);
        assert!(matches!(error, Error::Damaged(Damage::Altered)), "{what}: {error}");
        assert_eq!(error.kind(), Kind::Authentication);
        let papers = "The data may be altered or decrypted with wrong password";
        assert_eq!(error.to_string(), papers, "{what}");
    }
}

#[test]
fn vectors() {
    let mut count = 0;
    for path in wattlock_vectors::files("sefps") {
        let Some(name) = path.file_name().unwrap().to_str().unwrap().strip_suffix(".sefps") else {
            continue;
        };
        let parts: Vec<&str> = name.split('-').collect();
        let [_, bits, mode, len] = parts[..] else { panic!("{name}") };
        let key = key(bits.parse().unwrap());
        let mode = BOTH[usize::from(mode == "ctr")];
        let (container, plain) = (fs::read(&path).unwrap(), plain(len.parse().unwrap()));
        for variant in [Variant::Serial, Variant::Parallel, Variant::Overlapped] {
            let run = |direction, input| run(direction, &key, mode, variant, input).unwrap();
            assert!(run(Direction::Encrypt, &plain) == container, "{name}");
            assert!(run(Direction::Decrypt, &container) == plain, "{name}");
        }
        count += 1;
    }
    assert_eq!(count, 36);
}

#[test]
fn where_windows_end_does_not_show() {
    let key = key(128);
    const MIB: usize = 1 << 20;
    // A window is 1 MiB for each worker, and the tests have one or three.
    for len in [MIB - 17, MIB - 16, MIB, MIB + 1, 3 * MIB - 64, 3 * MIB, 3 * MIB + 15, 20 * MIB + 5]
    {
        let plain = plain(len);
        let mode = Mode::Ctr { iv: WRAPPING_IV };
        let expected = run(Direction::Encrypt, &key, mode, Variant::Serial, &plain).unwrap();
        assert_eq!(expected.len() as u64, container_len(len as u64));
        for variant in [Variant::Parallel, Variant::Overlapped] {
            let run = |direction, input| run(direction, &key, mode, variant, input).unwrap();
            assert!(run(Direction::Encrypt, &plain) == expected, "{len} {variant:?}");
            assert!(run(Direction::Decrypt, &expected) == plain, "{len} {variant:?}");
        }
    }
}

#[test]
fn every_kernel_makes_the_same() {
    for bits in [128, 192, 256] {
        let secret: Vec<u8> = (0..bits / 8).map(|byte| byte as u8).collect();
        let plain = plain(100_003);
        for mode in BOTH {
            let expected = protect(&key(bits), mode, &plain);
            for kernel in Kernel::all() {
                let key = Key::new(kernel, &secret).unwrap();
                assert!(protect(&key, mode, &plain) == expected, "{bits} {}", kernel.name());
                assert!(unprotect(&key, mode, &expected).unwrap() == plain);
            }
        }
    }
}

/// The attacks of the paper's section 4.1, in a small container and in one of many windows.
#[test]
fn altering_deleting_and_adding_are_detected_in_data_digest_and_both() {
    let key = key(256);
    for (mode, len) in BOTH.into_iter().flat_map(|mode| [(mode, 100), (mode, (5 << 20) + 3)]) {
        let sealed = protect(&key, mode, &plain(len));
        let digest = sealed.len() - 32;
        let data = if len > 1000 { 1 << 20 } else { 16 };
        let places =
            [("data", vec![data]), ("digest", vec![digest + 16]), ("both", vec![data, digest])];
        for (what, places) in places {
            let (mut altered, mut cut, mut grown) =
                (sealed.clone(), sealed.clone(), sealed.clone());
            let (mut cut_byte, mut grown_byte) = (sealed.clone(), sealed.clone());
            for &at in places.iter().rev() {
                altered[at] ^= 1;
                cut.drain(at..at + 16);
                grown.splice(at..at, [0x5a; 16]);
                cut_byte.remove(at);
                grown_byte.insert(at, 0);
            }
            for (attack, container) in [
                ("altering", altered),
                ("deleting a block of", cut),
                ("adding a block to", grown),
                ("deleting a byte of", cut_byte),
                ("adding a byte to", grown_byte),
            ] {
                assert_detected(
                    &key,
                    mode,
                    &container,
                    &format!("{attack} {what}, {mode:?} {len}"),
                );
            }
        }
    }
}

#[test]
fn every_cut_of_a_small_container_is_detected() {
    let key = key(128);
    for mode in BOTH {
        let sealed = protect(&key, mode, &plain(20));
        for len in 0..sealed.len() {
            assert_detected(&key, mode, &sealed[..len], &format!("cut to {len}"));
        }
        assert_detected(&key, mode, &[&sealed[..], &[0]].concat(), "a byte more");
    }
}

#[test]
fn another_key_mode_or_iv_looks_like_damage() {
    let (right, mode) = (key(128), BOTH[1]);
    let sealed = protect(&right, mode, &plain(1000));
    assert_detected(&key(256), mode, &sealed, "key");
    assert_detected(&right, Mode::Ecb, &sealed, "mode");
    assert_detected(&right, Mode::Ctr { iv: [0; 16] }, &sealed, "iv");
}

/// The paper proves that changing data and digest together requires the key. Under CTR, the
/// plaintext is enough: the key stream is the container XOR the plaintext.
#[test]
fn forgery_under_ctr_with_known_plaintext_is_not_detected() {
    let (key, mode) = (key(256), BOTH[1]);
    let known = b"Pay 100 EUR to Alice. Thank you.";
    let wanted = b"Pay 999 EUR to Mallory! Goodbye.";
    let sealed = protect(&key, mode, known);

    // What the forger has: `sealed` and `known`. No key, no IV.
    let trailed = |data: &[u8]| {
        let padded = [data, &[0; 16], &[16; 16]].concat();
        let digest = sha3_256_many(KeccakKernel::best(), &[&padded])[0];
        [&padded[..], &digest].concat()
    };
    let flips = trailed(known).into_iter().zip(trailed(wanted)).map(|(old, new)| old ^ new);
    let forged: Vec<u8> = sealed.iter().zip(flips).map(|(byte, flip)| byte ^ flip).collect();

    assert_eq!(unprotect(&key, mode, &forged).unwrap(), wanted);
}

/// Deleting, too, goes unnoticed where the forger had a say in the data, in either mode: data that
/// hold a whole container, cut to it.
#[test]
fn forgery_by_deleting_with_chosen_plaintext_is_not_detected() {
    let inner = [b"Pay Mallory.", &[0; 4][..], &[4; 16]].concat();
    let digest = sha3_256_many(KeccakKernel::best(), &[&inner])[0];
    let chosen = [&inner[..], &digest, b" and this is the rest of the letter"].concat();
    for mode in BOTH {
        let sealed = protect(&key(192), mode, &chosen);
        let cut = &sealed[..inner.len() + 32];
        assert_eq!(unprotect(&key(192), mode, cut).unwrap(), b"Pay Mallory.");
    }
}

#[test]
fn ecb_shows_which_blocks_are_equal() {
    let sealed = protect(&key(256), Mode::Ecb, &[7; 48]);
    assert!(sealed[..16] == sealed[16..32] && sealed[16..32] == sealed[32..48]);
    let sealed = protect(&key(256), BOTH[1], &[7; 48]);
    assert!(sealed[..16] != sealed[16..32] && sealed[16..32] != sealed[32..48]);
}

#[test]
fn eight_files_at_a_time_make_what_one_makes() {
    let place = tempfile::tempdir().unwrap();
    let lens = [0, 1, 15, 16, 139_263, 139_264, 139_265, 500_000, 139_264 - 64, 139_264 + 64];
    let paths: Vec<PathBuf> = (0..25)
        .map(|index| {
            let path = place.path().join(format!("{index}"));
            fs::write(&path, &plain(lens[index % lens.len()])[..]).unwrap();
            path
        })
        .collect();
    let (key, progress) = (key(256), Progress::default());
    for threads in [1, 3] {
        let engine = Engine::new(threads);
        let how = Sefps {
            engine: &engine,
            key: &key,
            mode: Mode::Ecb,
            variant: Variant::Overlapped,
            overwrite: false,
            progress: &progress,
        };
        let sealed = place.path().join(format!("sealed/{threads}"));
        let there = tasks(Direction::Encrypt, &paths, Some(&sealed)).unwrap();
        how.run_many(Direction::Encrypt, &there, |_, ended| drop(ended.unwrap())).unwrap();
        for (index, task) in there.iter().enumerate() {
            let expected = protect(&key, Mode::Ecb, &plain(lens[index % lens.len()]));
            assert!(fs::read(&task.output).unwrap() == expected, "{index}");
        }
        back_but_for_two(&how, &there, &place.path().join(format!("opened/{threads}")), &lens);
    }
}

/// One container is damaged, one is gone, and the others come back.
fn back_but_for_two(how: &Sefps<'_>, there: &[Task], opened: &Path, lens: &[usize]) {
    let (damaged, gone) = (&there[7].output, &there[9].output);
    let mut bytes = fs::read(damaged).unwrap();
    bytes[100_000] ^= 1;
    fs::write(damaged, bytes).unwrap();
    let containers: Vec<PathBuf> = there.iter().map(|task| task.output.clone()).collect();
    let back = tasks(Direction::Decrypt, &containers, Some(opened)).unwrap();
    fs::remove_file(gone).unwrap();
    how.run_many(Direction::Decrypt, &back, |task, ended| {
        let failed = [damaged, gone].contains(&&task.input);
        assert_eq!(ended.is_err(), failed, "{ended:?}");
    })
    .unwrap();
    for (index, task) in back.iter().enumerate() {
        let expected = (![7, 9].contains(&index)).then(|| plain(lens[index % lens.len()]));
        assert!(fs::read(&task.output).ok() == expected, "{index}");
    }
}

#[test]
fn several_files_under_one_iv_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| place.path().join(name));
    paths.iter().for_each(|path| fs::write(path, b"x").unwrap());
    let (key, engine, progress) = (key(128), Engine::new(1), Progress::default());
    let mode = Mode::Ctr { iv: [0; 16] };
    let variant = Variant::Serial;
    let how =
        Sefps { engine: &engine, key: &key, mode, variant, overwrite: false, progress: &progress };
    let there = tasks(Direction::Encrypt, &paths, None).unwrap();
    let refused = how.run_many(Direction::Encrypt, &there, |_, _| panic!("it was done"));
    assert_eq!(refused.unwrap_err().kind(), Kind::Usage);
    assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
}
