//! Any sealed input opens, whole and in any range.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wattlock_engine::Engine;
use wattlock_file::{
    Format, Identities, Input, NativeIdentity, Progress, Protect, Recipients, Target, Unprotect,
    UsedNames, Wrapping, protect, unprotect,
};

static KEYS: LazyLock<(Wrapping, Identities)> = LazyLock::new(|| {
    let identity = NativeIdentity::generate();
    let recipients = Recipients::new(vec![identity.recipient()]).unwrap();
    (Wrapping::new(recipients), Identities::new(vec![identity.into()]))
});

fuzz_target!(|data: &[u8]| {
    let Some((head, content)) = data.split_first_chunk::<10>() else { return };
    // Small inputs stand for large ones: the content is repeated up to many chunks.
    let len = u32::from_le_bytes([head[0], head[1], head[2] & 0x0f, 0]) as usize;
    let plain: Vec<u8> = content.iter().chain(&[7]).copied().cycle().take(len).collect();
    let format = Format::ALL[usize::from(head[3]) % 2];
    let engine = Engine::new(1 + usize::from(head[3] >> 6));
    let directory = tempfile::tempdir_in("/dev/shm").unwrap();
    let path = directory.path().join("plain");
    std::fs::write(&path, &plain).unwrap();
    let progress = Progress::default();
    let how = Protect {
        engine: &engine,
        wrapping: &KEYS.0,
        format,
        armor: false,
        signer: None,
        metadata: head[3] & 4 != 0,
        overwrite: false,
        replace: false,
        progress: &progress,
    };
    let sealed = directory.path().join("sealed");
    protect(&how, &Input::Path(path), Target::File(sealed.clone())).unwrap();
    let ends = [&head[4..7], &head[7..10]]
        .map(|b| u64::from(u32::from_le_bytes([b[0], b[1], b[2], 0])) % (len as u64 + 1));
    let part = ends[0].min(ends[1])..ends[0].max(ends[1]);
    for range in [None, Some(part)] {
        let mut opened = Vec::new();
        let how = Unprotect {
            engine: &engine,
            identities: &KEYS.1,
            range: range.clone(),
            sealed_name: None,
            used_names: &UsedNames::default(),
            overwrite: false,
            replace: false,
            progress: &progress,
        };
        unprotect(&how, &Input::Path(sealed.clone()), Target::Stream(&mut opened)).unwrap();
        let expected = range.map_or(&plain[..], |r| &plain[r.start as usize..r.end as usize]);
        assert!(opened == expected);
    }
});
