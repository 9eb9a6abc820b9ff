//! A segment that was changed anywhere releases nothing but what was sealed, in its order, and says so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::{self, File};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use wattlock_record::SessionKey;
use wattlock_stream::frame::{End, Framing};
use wattlock_stream::gateway::{
    Durability, EpochLimits, MessageOutput, Notice, Protocol, RecordingSettings, Recordings,
    Replay, Retry, Rotation, Split, Stop, TenantFolder, pump,
};
use wattlock_stream::segment::{Folder, KeyKind, KeyStore, NewKeys, Selection};
use wattlock_stream::{Live, Settings};

/// Bytes of a header without additional data.
const HEADER_LEN: usize = 77;

const KEY: [u8; 32] = [9; 32];

/// Seals `bytes` into a segment in `folder`, as the program does.
fn record(folder: &Path, bytes: &[u8]) {
    let input = folder.join("input");
    fs::write(&input, bytes).unwrap();
    let make = || Ok((SessionKey::new(&KEY), b"a key file".to_vec()));
    let settings = RecordingSettings {
        keys: NewKeys::new(KeyKind::Salt, Box::new(make)),
        protocol: Protocol::Plain(Framing::Lines),
        durability: Durability::AtEnd,
        peers: 0,
        limit: None,
        split: Split { framing: Framing::Lines, limit: 1 << 20, bare_last: true },
        rotation: Rotation { bytes: Some(1 << 30), seconds: None },
        epochs: EpochLimits { age: Duration::from_secs(3600), bytes: 1 << 30, records: 1 << 30 },
    };
    let folder = TenantFolder { folder: Folder::new(folder), additional: Vec::new() };
    let retry = Retry::new(None, Arc::default(), |_| {});
    let recordings = Recordings::new(settings, [(String::new(), folder)], &retry).unwrap();
    let settings = Settings::continuous(1 << 20, 1, 1e9).unwrap();
    let live = Live::start(settings, recordings.sink(&retry).unwrap()).unwrap();
    let stop = Stop::new().unwrap();
    let mut inlet = recordings.inlet("", "a file".into()).unwrap();
    let mut input = File::open(input).unwrap();
    pump(&mut input, &mut *inlet, live.window(), &stop, recordings.counters()).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let room = runtime.block_on(live.reserve(64)).unwrap();
    recordings.all().next().unwrap().finish(room).unwrap();
    assert!(live.finish(None).failure.is_none());
}

/// What a folder releases, and what is wrong with it.
fn replay(folder: &Path) -> (Vec<u8>, Vec<String>) {
    let keys = KeyStore::new(folder, KeyKind::Salt, Box::new(|_| Ok(SessionKey::new(&KEY))));
    let (released, problems) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(Vec::new())));
    let noted = Arc::clone(&problems);
    let notify = move |notice| {
        if let Notice::Segment { problem, .. } = notice {
            noted.lock().unwrap().push(problem.to_string());
        }
    };
    let output = Box::new(Collected(Arc::clone(&released)));
    let replay = Replay::new(keys, Selection::default(), output, Arc::default(), notify);
    let paths: Vec<_> =
        Folder::new(folder).segments().unwrap().into_iter().map(|segment| segment.path).collect();
    replay.run(&paths, true, &AtomicBool::new(false)).unwrap();
    let released = released.lock().unwrap().clone();
    let problems = problems.lock().unwrap().clone();
    (released, problems)
}

struct Collected(Arc<Mutex<Vec<u8>>>);

impl MessageOutput for Collected {
    fn begin(&mut self, _: u64, _: u64, framing: Framing) -> io::Result<()> {
        assert_eq!(framing, Framing::Lines);
        Ok(())
    }

    fn data(&mut self, _: u64, _: u64, messages: &[u8]) -> io::Result<()> {
        self.0.lock().unwrap().extend_from_slice(messages);
        Ok(())
    }

    fn end(&mut self, _: u64, _: u64, end: End) -> io::Result<()> {
        assert_eq!(end, End::Complete);
        Ok(())
    }
}

#[test]
fn no_changed_byte_and_no_cut_goes_unnoticed() {
    let folder = tempfile::tempdir().unwrap();
    let sealed = b"one line\nand another\n".repeat(3);
    record(folder.path(), &sealed);
    let segment = Folder::new(folder.path()).segments().unwrap().remove(0).path;
    let whole = fs::read(&segment).unwrap();
    assert_eq!(replay(folder.path()), (sealed.clone(), Vec::new()));
    let is_noticed = |changed: &[u8], what: &str| {
        fs::write(&segment, changed).unwrap();
        let (released, problems) = replay(folder.path());
        assert!(released.is_empty() || released == sealed, "{what}");
        // The last bytes only say where the index is.
        let is_whole = released == sealed && changed.len() + 16 >= whole.len();
        // One that ends in its header, which has no additional data, is like one that was removed.
        let is_harmless = is_whole || (released.is_empty() && changed.len() < HEADER_LEN);
        assert!(!problems.is_empty() || is_harmless, "{what}");
    };
    for at in 0..whole.len() {
        let mut changed = whole.clone();
        changed[at] ^= 1 << (at % 8);
        is_noticed(&changed, &format!("byte {at} of {} was changed", whole.len()));
    }
    for len in 1..whole.len() {
        is_noticed(&whole[..len], &format!("cut to {len} of {} bytes", whole.len()));
    }
    for garbage in [&b"\0"[..], &[0xff; 40], &whole] {
        is_noticed(&[&whole[..], garbage].concat(), "something was appended");
    }
}
