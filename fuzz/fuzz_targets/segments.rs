//! A segment with any change releases whole messages of what was sealed, or nothing.
#![no_main]

use std::fs::{self, File};
use std::io;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, LazyLock, Mutex};
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use wattlock_record::SessionKey;
use wattlock_stream::frame::Framing;
use wattlock_stream::gateway::{
    Durability, EpochLimits, MessageOutput, Protocol, RecordingSettings, Recordings, Replay, Retry,
    Rotation, Split, Stop, TenantFolder, pump,
};
use wattlock_stream::segment::{Folder, KeyKind, KeyStore, NewKeys, Selection};
use wattlock_stream::{Live, Settings};

const KEY: [u8; 32] = [9; 32];
const SOURCE: &str = "a file";

/// Messages, and the segment that they were sealed to.
static SEALED: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    let messages: Vec<u8> = (0..400)
        .flat_map(|line| [&[b'x'; 500][..], format!("{line}\n").as_bytes()].concat())
        .collect();
    let input = folder.path().join("input");
    fs::write(&input, &messages).unwrap();
    let make = || Ok((SessionKey::new(&KEY), b"a key file".to_vec()));
    let settings = RecordingSettings {
        keys: NewKeys::new(KeyKind::Salt, Box::new(make)),
        protocol: Protocol::Plain(Framing::Lines),
        durability: Durability::AtEnd,
        peers: 0,
        limit: None,
        split: Split { framing: Framing::Lines, limit: 1 << 20, bare_last: true },
        rotation: Rotation { bytes: None, seconds: None },
        epochs: EpochLimits { age: Duration::from_secs(3600), bytes: 1 << 30, records: 1 << 30 },
    };
    let own = TenantFolder { folder: Folder::new(folder.path()), additional: Vec::new() };
    let retry = Retry::new(None, Arc::default(), |_| {});
    let recordings = Recordings::new(settings, [(String::new(), own)], &retry).unwrap();
    let settings = Settings::continuous(1 << 20, 1, 1e9).unwrap();
    let live = Live::start(settings, recordings.sink(&retry).unwrap()).unwrap();
    let (stop, mut input) = (Stop::new().unwrap(), File::open(input).unwrap());
    let mut inlet = recordings.inlet("", SOURCE.into()).unwrap();
    pump(&mut input, &mut *inlet, live.window(), &stop, recordings.counters()).unwrap();
    // Without its last records: a stream that is cut.
    assert!(live.finish(None).failure.is_none());
    let segment = fs::read(folder.path().join("000001.wls")).unwrap();
    (messages, segment)
});

struct Collected(Arc<Mutex<Vec<u8>>>);

impl MessageOutput for Collected {
    fn data(&mut self, _: u64, _: u64, messages: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(messages);
        Ok(())
    }
}

fuzz_target!(|data: &[u8]| {
    let (messages, segment) = &*SEALED;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("000001.wls");
    fs::create_dir(folder.path().join("keys")).unwrap();
    fs::write(folder.path().join("keys/000001.salt"), b"a key file").unwrap();
    let mut bytes = segment.clone();
    let mut edits = data;
    // An edit: what to do, where, with what.
    while let Some((edit, rest)) = edits.split_first_chunk::<5>() {
        edits = rest;
        let at = u32::from_le_bytes([edit[1], edit[2], edit[3], 0]) as usize % bytes.len().max(1);
        match edit[0] % 4 {
            0 if at < bytes.len() => bytes[at] ^= edit[4],
            1 => bytes.truncate(at),
            2 => bytes.insert(at.min(bytes.len()), edit[4]),
            _ if at < bytes.len() => drop(bytes.drain(at..(at + 64).min(bytes.len()))),
            _ => {}
        }
    }
    fs::write(&path, &bytes).unwrap();
    let released = Arc::new(Mutex::new(Vec::new()));
    let keys = KeyStore::new(folder.path(), KeyKind::Salt, Box::new(|_| Ok(SessionKey::new(&KEY))));
    let selection =
        Selection { source: data.first().map(|_| SOURCE.into()), ..Selection::default() };
    let output = Box::new(Collected(Arc::clone(&released)));
    let replay = Replay::new(keys, selection, output, Arc::default(), |_| {});
    replay.run(&[path], true, &AtomicBool::new(false)).unwrap();
    let released = released.lock().unwrap();
    assert!(messages.starts_with(&released), "what is released was sealed");
    assert!(released.is_empty() || released.ends_with(b"\n"), "messages are whole");
});
