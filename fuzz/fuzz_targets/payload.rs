//! A container with any edits to its payload opens to what was sealed, or not at all.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wattlock_engine::Engine;
use wattlock_file::{
    Format, Identities, Input, NativeIdentity, Progress, Protect, Recipients, Target, Unprotect,
    UsedNames, Wrapping, protect, unprotect,
};

struct Sealed {
    identities: Identities,
    plain: Vec<u8>,
    /// One container for each format, and where its payload starts.
    containers: Vec<(Vec<u8>, usize)>,
}

static SEALED: LazyLock<Sealed> = LazyLock::new(|| {
    let identity = NativeIdentity::generate();
    let plain: Vec<u8> = (0..70_000u32).map(|i| (i % 251) as u8).collect();
    let containers = Format::ALL
        .map(|format| {
            let recipients = vec![identity.recipient()];
            let wrapping = Wrapping::new(Recipients::new(recipients).unwrap());
            let how = Protect {
                engine: &Engine::new(1),
                wrapping: &wrapping,
                format,
                armor: false,
                signer: None,
                metadata: true,
                overwrite: false,
                replace: false,
                progress: &Progress::default(),
            };
            let file = tempfile::NamedTempFile::new().unwrap();
            std::fs::write(file.path(), &plain).unwrap();
            let mut bytes = Vec::new();
            let input = Input::Path(file.path().to_owned());
            protect(&how, &input, Target::Stream(&mut bytes)).unwrap();
            let mac = bytes.windows(5).position(|window| window == b"\n--- ").unwrap();
            (bytes, mac + 5 + 43 + 1)
        })
        .into();
    Sealed { identities: Identities::new(vec![identity.into()]), plain, containers }
});

fuzz_target!(|data: &[u8]| {
    let Some((&kind, mut edits)) = data.split_first() else { return };
    let (container, payload) = &SEALED.containers[usize::from(kind) % SEALED.containers.len()];
    let mut bytes = container.clone();
    // An edit: what to do, where, with what.
    while let Some((edit, rest)) = edits.split_first_chunk::<5>() {
        edits = rest;
        let place = u32::from_le_bytes([edit[1], edit[2], edit[3], 0]) as usize;
        let at = payload + place % (bytes.len() - payload).max(1);
        match edit[0] % 5 {
            0 if at < bytes.len() => bytes[at] ^= edit[4],
            1 => bytes.truncate(at),
            2 => bytes.insert(at.min(bytes.len()), edit[4]),
            3 if bytes.len() < 1 << 20 => bytes.extend_from_within(at.min(bytes.len())..),
            _ if at < bytes.len() => drop(bytes.drain(at..(at + 16_400).min(bytes.len()))),
            _ => {}
        }
    }
    let file = tempfile::NamedTempFile::new_in("/dev/shm").unwrap();
    std::fs::write(file.path(), &bytes).unwrap();
    let mut opened = Vec::new();
    let how = Unprotect {
        engine: &Engine::new(1),
        identities: &SEALED.identities,
        range: None,
        sealed_name: None,
        used_names: &UsedNames::default(),
        overwrite: false,
        replace: false,
        progress: &Progress::default(),
    };
    let input = Input::Path(file.path().to_owned());
    let ended = unprotect(&how, &input, Target::Stream(&mut opened));
    assert!(SEALED.plain.starts_with(&opened), "what comes out is authentic");
    match ended {
        Ok(_) => assert!(bytes == *container && opened == SEALED.plain),
        Err(_) => assert!(bytes != *container),
    }
});
