//! Containers that are made and opened in memory, at once and in parts.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use wattlock_engine::Engine;
use wattlock_file::{
    Error, Format, Identities, NativeIdentity, Opener, Progress, Recipients, Sealer, Wrapping,
};

struct Keys {
    engine: Engine,
    wrapping: Wrapping,
    identities: Identities,
}

fn keys() -> Keys {
    let identity = NativeIdentity::generate();
    let wrapping = Wrapping::new(Recipients::new(vec![identity.recipient()]).unwrap());
    let identities = Identities::new(vec![identity.into()]);
    Keys { engine: Engine::new(3), wrapping, identities }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|i| (i % 251) as u8).collect()
}

/// Lengths around the borders of chunks and of the pieces that a worker takes.
fn lengths(format: Format) -> Vec<usize> {
    let chunk_len = format.layout().chunk_len;
    let borders = [0, chunk_len, 2 * chunk_len, 16 * chunk_len, 33 * chunk_len];
    borders.iter().flat_map(|at| [at.saturating_sub(1), *at, at + 1]).collect()
}

impl Keys {
    fn opens_to(&self, container: &[u8], plaintext: &[u8]) {
        let opener = Opener::new(&self.engine, &self.identities);
        let mut streamed = Vec::new();
        opener.open(&mut &container[..], &mut streamed).unwrap();
        assert!(streamed == plaintext, "{} bytes", plaintext.len());
        let mut opened = vec![9; plaintext.len()];
        opener.open_bytes(container, &mut opened).unwrap();
        assert!(opened == plaintext, "{} bytes", plaintext.len());
    }
}

#[test]
fn a_container_in_memory_is_that_of_a_stream() {
    let keys = keys();
    for format in Format::ALL {
        for len in lengths(format) {
            let plaintext = pattern(len);
            let new = Sealer::new(&keys.engine, &keys.wrapping, format).begin().unwrap();
            let mut container = vec![0; new.sealed_len(len as u64) as usize];
            let progress = Progress::default();
            new.seal_into(&plaintext, &mut container, &progress).unwrap();
            assert_eq!(progress.done(), len as u64);
            keys.opens_to(&container, &plaintext);
        }
    }
}

#[test]
fn a_plaintext_in_parts_gives_one_container() {
    let keys = keys();
    for format in Format::ALL {
        let chunk_len = format.layout().chunk_len;
        for len in lengths(format) {
            for part_len in [7000, chunk_len - 1, chunk_len, chunk_len + 1, 5 * chunk_len + 3] {
                let plaintext = pattern(len);
                let sealer = Sealer::new(&keys.engine, &keys.wrapping, format);
                let mut parts = sealer.begin().unwrap().in_parts();
                let mut container = Vec::new();
                for part in plaintext.chunks(part_len) {
                    container.extend(parts.update(part).unwrap());
                }
                container.extend(parts.finish().unwrap());
                keys.opens_to(&container, &plaintext);
            }
        }
    }
}

#[test]
fn damage_clears_the_plaintext_and_names_the_first_chunk() {
    let keys = keys();
    for format in Format::ALL {
        let chunk_len = format.layout().chunk_len;
        let container = Sealer::new(&keys.engine, &keys.wrapping, format)
            .seal_bytes(&pattern(40 * chunk_len))
            .unwrap();
        let opener = Opener::new(&keys.engine, &keys.identities);
        let slot_len = chunk_len + 16;
        for chunk in [0, 17, 39] {
            let mut damaged = container.clone();
            let from_end = (39 - chunk) * slot_len + 100;
            for at in [damaged.len() - from_end, damaged.len() - 90] {
                damaged[at] ^= 1;
            }
            let mut plaintext = vec![9; 40 * chunk_len];
            let error = opener.open_bytes(&damaged, &mut plaintext).unwrap_err();
            let expected = format!("the payload is not authentic at chunk {chunk}");
            assert_eq!(error.to_string(), expected, "{format:?}");
            assert!(plaintext.iter().all(|byte| *byte == 0));
        }
    }
}

#[test]
fn a_buffer_of_another_length_is_refused() {
    let keys = keys();
    let sealer = Sealer::new(&keys.engine, &keys.wrapping, Format::WattlockV1);
    let new = sealer.begin().unwrap();
    let mut room = vec![0; new.sealed_len(100) as usize + 1];
    let refused = new.seal_into(&pattern(100), &mut room, &Progress::default());
    assert!(matches!(refused, Err(Error::Usage { .. })));
    let container = sealer.seal_bytes(&pattern(100)).unwrap();
    let opener = Opener::new(&keys.engine, &keys.identities);
    let refused = opener.open_bytes(&container, &mut [1; 99]);
    assert!(matches!(refused, Err(Error::Usage { .. })));
}

#[test]
fn a_stopped_run_gives_nothing() {
    let keys = keys();
    let plaintext = pattern(1 << 20);
    let progress = Progress::default();
    progress.stop();
    let sealer = Sealer::new(&keys.engine, &keys.wrapping, Format::WattlockV1);
    let new = sealer.begin().unwrap();
    let mut room = vec![0; new.sealed_len(1 << 20) as usize];
    assert!(matches!(new.seal_into(&plaintext, &mut room, &progress), Err(Error::Stopped)));

    let container = sealer.seal_bytes(&plaintext).unwrap();
    let view = Opener::new(&keys.engine, &keys.identities).view(&container[..]).unwrap();
    let mut opened = vec![9; 1 << 20];
    assert!(matches!(view.open_into(&mut opened, &progress), Err(Error::Stopped)));
    assert!(opened.iter().all(|byte| *byte == 0));
}

/// What a reader of ranges has to fetch is what the view reads.
#[test]
fn the_sealed_range_of_a_range_is_all_that_is_read() {
    let keys = keys();
    for format in Format::ALL {
        let chunk_len = format.layout().chunk_len as u64;
        let plaintext = pattern(3 * chunk_len as usize + 5);
        let sealer = Sealer::new(&keys.engine, &keys.wrapping, format);
        let container = sealer.seal_bytes(&plaintext).unwrap();
        let opener = Opener::new(&keys.engine, &keys.identities);
        let end = plaintext.len() as u64;
        for range in [0..0, 0..1, 5..chunk_len, chunk_len - 1..chunk_len + 1, 2 * chunk_len..end] {
            let sealed = opener.view(&container[..]).unwrap().plaintext.sealed_range(&range);
            let mut damaged = vec![0xaa; container.len()];
            let front = container.len() - (3 * (chunk_len as usize + 16) + 5 + 16);
            damaged[..front].copy_from_slice(&container[..front]);
            let bytes = sealed.start as usize..sealed.end as usize;
            damaged[bytes.clone()].copy_from_slice(&container[bytes]);
            let view = opener.view(&damaged[..]).unwrap();
            let mut part = vec![0; (range.end - range.start) as usize];
            view.plaintext.read(range.start, &mut part).unwrap();
            assert!(part == plaintext[range.start as usize..range.end as usize], "{range:?}");
        }
    }
}
