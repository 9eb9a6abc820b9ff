//! Containers that are no files: sealed and opened by readers, writers, memory and ranges.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use wattlock_engine::Engine;
use wattlock_file::{
    Damage, Error, Format, Identities, Identity, Metadata, NativeIdentity, Opener, Passphrase,
    ReadAt, Recipient, Recipients, Sealer, UnusableKey, Wrapping,
};

/// Keys, and an engine of two threads.
struct Keys {
    engine: Engine,
    wrapping: Wrapping,
    identities: Identities,
}

impl Keys {
    fn new() -> Self {
        let identity = NativeIdentity::generate();
        let wrapping = Wrapping::new(Recipients::new(vec![identity.recipient()]).unwrap());
        let identities = Identities::new(vec![identity.into()]);
        Self { engine: Engine::new(2), wrapping, identities }
    }

    fn sealer(&self, format: Format) -> Sealer<'_, '_> {
        Sealer::new(&self.engine, &self.wrapping, format)
    }

    fn opener(&self) -> Opener<'_, '_> {
        Opener::new(&self.engine, &self.identities)
    }
}

fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| (n % 251) as u8).collect()
}

/// An object that is read over a network: it counts, and may fail.
struct Remote {
    bytes: Vec<u8>,
    read: AtomicU64,
    fails_at: Option<u64>,
}

impl Remote {
    fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, read: AtomicU64::new(0), fails_at: None }
    }
}

impl ReadAt for Remote {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes.len() as u64)
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        let end = offset + buffer.len() as u64;
        if self.fails_at.is_some_and(|at| (offset..end).contains(&at)) {
            return Err(io::Error::other("the connection was lost"));
        }
        self.read.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.bytes.read_exact_at(buffer, offset)
    }
}

#[test]
fn every_way_in_opens_by_every_way_out() {
    let keys = Keys::new();
    for format in Format::ALL {
        for len in [0, 1, 16_383, 16_384, 65_536, 65_537, 300_000] {
            let plaintext = pattern(len);
            let sealer = keys.sealer(format);
            let mut streamed = Vec::new();
            sealer.seal(&mut &plaintext[..], &mut streamed).unwrap();
            let mut from_remote = Vec::new();
            sealer.seal_at(&Remote::new(plaintext.clone()), &mut from_remote).unwrap();
            for container in [streamed, from_remote, sealer.seal_bytes(&plaintext).unwrap()] {
                let opener = keys.opener();
                let mut opened = Vec::new();
                opener.open(&mut &container[..], &mut opened).unwrap();
                assert!(opened == plaintext, "{format} {len}");
                let mut buffer = vec![1; len];
                opener.open_bytes(&container, &mut buffer).unwrap();
                assert!(buffer == plaintext, "{format} {len}");
                let view = opener.view(Remote::new(container)).unwrap();
                assert_eq!((view.plaintext.len(), view.format), (len as u64, format));
                for at in (0..len).step_by(16_384).flat_map(|at| [at.saturating_sub(3), at]) {
                    let end = (at + 7).min(len);
                    let mut part = vec![0; end - at];
                    view.plaintext.read(at as u64, &mut part).unwrap();
                    assert!(part == plaintext[at..end], "{format} {len} at {at}");
                }
            }
        }
    }
}

#[test]
fn a_range_reads_what_holds_it_and_little_more() {
    let keys = Keys::new();
    let plaintext = pattern(10 << 20);
    let sealed = keys.sealer(Format::WattlockV1).seal_bytes(&plaintext).unwrap();
    let remote = Remote::new(sealed);
    let view = keys.opener().view(&remote).unwrap();
    let mut part = [0; 1000];
    view.plaintext.read(5_000_000, &mut part).unwrap();
    assert!(part == plaintext[5_000_000..5_001_000]);
    let read = remote.read.load(Ordering::Relaxed);
    assert!(read < 64 * 1024, "{read} bytes were read for 1000");
}

#[test]
fn what_is_damaged_or_lost_leaves_no_plaintext() {
    let keys = Keys::new();
    let plaintext = pattern(200_000);
    for format in Format::ALL {
        let container = keys.sealer(format).seal_bytes(&plaintext).unwrap();
        let mut damaged = container.clone();
        damaged[container.len() - 1] ^= 1;
        let mut buffer = vec![1; plaintext.len()];
        let error = keys.opener().open_bytes(&damaged, &mut buffer).unwrap_err();
        assert!(matches!(error, Error::Damaged(Damage::Chunk { .. })), "{error:?}");
        assert!(buffer.iter().all(|&byte| byte == 0), "{format}");
        // A wrong key, and a buffer of another length.
        let mut buffer = vec![1; plaintext.len()];
        let error = Keys::new().opener().open_bytes(&container, &mut buffer).unwrap_err();
        assert!(matches!(error, Error::WrongKey { .. }), "{error:?}");
        assert!(buffer.iter().all(|&byte| byte == 0), "{format}");
        let mut long = vec![1; plaintext.len() + 1];
        let error = keys.opener().open_bytes(&container, &mut long).unwrap_err();
        assert!(matches!(error, Error::Usage { .. }), "{error:?}");
        assert!(long.iter().all(|&byte| byte == 0), "{format}");
        // A connection that is lost after the first chunks.
        let mut remote = Remote::new(container.clone());
        remote.fails_at = Some(180_000);
        let view = keys.opener().view(&remote).unwrap();
        let mut all = vec![1; plaintext.len()];
        let error = view.plaintext.read(0, &mut all).unwrap_err();
        assert!(error.to_string().contains("the connection was lost"), "{error}");
        assert!(all.iter().all(|&byte| byte == 0), "{format}");
        // What a stream was given before is authentic, and the error says how much that is.
        let (mut opened, mut cut) = (Vec::new(), &container[..container.len() - 20]);
        let error = keys.opener().open(&mut cut, &mut opened).unwrap_err();
        match error {
            Error::Incomplete { released, .. } => assert_eq!(released, opened.len() as u64),
            other => assert!(opened.is_empty(), "{other}"),
        }
        assert!(plaintext.starts_with(&opened));
    }
}

#[test]
fn a_source_that_fails_makes_no_container() {
    let keys = Keys::new();
    let mut remote = Remote::new(pattern(500_000));
    remote.fails_at = Some(400_000);
    let mut container = Vec::new();
    let error = keys.sealer(Format::WattlockV1).seal_at(&remote, &mut container).unwrap_err();
    assert!(error.to_string().contains("the connection was lost"), "{error}");
    let mut opened = Vec::new();
    assert!(keys.opener().open(&mut &container[..], &mut opened).is_err());
    /// A sink that is full after some bytes.
    struct Full(usize);
    impl io::Write for Full {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 = self.0.checked_sub(bytes.len()).ok_or(io::ErrorKind::StorageFull)?;
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let full = keys.sealer(Format::AgeV1).seal(&mut &pattern(500_000)[..], &mut Full(100_000));
    assert!(matches!(full.unwrap_err(), Error::Io { action: "write", .. }));
}

#[test]
fn metadata_armor_and_passphrases() {
    let keys = Keys::new();
    let metadata = Metadata { name: Some("report.pdf".into()), ..Metadata::default() };
    let sealer = keys.sealer(Format::WattlockV1).with_metadata(metadata.clone());
    let container = sealer.seal_bytes(b"text").unwrap();
    assert_eq!(keys.opener().view(&container[..]).unwrap().metadata, metadata);
    assert_eq!(keys.opener().open(&mut &container[..], &mut Vec::new()).unwrap(), metadata);

    let armored = keys.sealer(Format::AgeV1).armored().seal_bytes(&pattern(100_000)).unwrap();
    assert!(armored.is_ascii() && armored.ends_with(b"-----END AGE ENCRYPTED FILE-----\n"));
    let mut opened = Vec::new();
    keys.opener().open(&mut &armored[..], &mut opened).unwrap();
    assert!(opened == pattern(100_000));
    assert!(matches!(keys.opener().view(&armored[..]), Err(Error::Usage { .. })));
    let refused = keys.sealer(Format::WattlockV1).armored().seal_bytes(b"text");
    assert!(matches!(refused, Err(Error::Usage { .. })));
    // What a format does not hold is not left out in silence.
    let refused = keys.sealer(Format::AgeV1).with_metadata(metadata).seal_bytes(b"text");
    assert!(matches!(refused, Err(Error::Usage { .. })));
    let elsewhere = Metadata { name: Some("../report.pdf".into()), ..Metadata::default() };
    let refused = keys.sealer(Format::WattlockV1).with_metadata(elsewhere).seal_bytes(b"text");
    assert!(matches!(refused, Err(Error::Usage { .. })));

    let passphrase = Passphrase::generate();
    assert_eq!(passphrase.expose().split('-').count(), 10);
    assert!(!format!("{passphrase:?}").contains(passphrase.expose()));
    let recipient = |factor: u8| Recipient::passphrase(&passphrase, factor);
    assert!(recipient(0).is_err() && recipient(64).is_err());
    let wrapping = Wrapping::new(Recipients::new(vec![recipient(8).unwrap()]).unwrap());
    let sealed =
        Sealer::new(&keys.engine, &wrapping, Format::WattlockV1).seal_bytes(b"text").unwrap();
    let open = |limit: u8| {
        let identities = Identities::new(vec![Identity::passphrase(&passphrase, limit)]);
        Opener::new(&keys.engine, &identities).open_bytes(&sealed, &mut [0; 4])
    };
    open(8).unwrap();
    assert!(matches!(open(7), Err(Error::TooMuchWork(8))));
}

#[test]
fn lists_of_recipients_and_texts_of_keys() {
    let (one, two) = (NativeIdentity::generate(), NativeIdentity::generate_post_quantum().unwrap());
    for identity in [&one, &two] {
        let again: NativeIdentity = identity.to_text().parse().unwrap();
        assert_eq!(again.recipient().text(), identity.recipient().text());
        let recipient: Recipient = identity.recipient().text().unwrap().parse().unwrap();
        assert_eq!(recipient.text(), identity.recipient().text());
        let private: Result<Recipient, _> = identity.to_text().parse();
        let said = private.err().unwrap().to_string();
        assert!(said.contains("private key") && !said.contains(&**identity.to_text()), "{said}");
    }
    let (one, two) = (one.recipient(), two.recipient());
    let ecdsa = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBKg";
    let text = format!("# people\n\n  {}  \r\n{ecdsa}\n", one.text().unwrap());
    let list = Recipient::parse_list(&text).unwrap();
    assert_eq!(list.recipients.len(), 1);
    let what = "an SSH key of type ecdsa-sha2-nistp256, which is not supported".to_owned();
    assert_eq!(list.unusable, [UnusableKey { line: 4, what }]);
    let cut = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQ==".parse::<Recipient>().unwrap_err();
    assert!(cut.to_string().contains("a part is missing or mistyped"), "{cut}");
    let wrong = format!("{}\nnonsense\n", one.text().unwrap());
    let said = Recipient::parse_list(&wrong).err().unwrap().to_string();
    assert_eq!(said, "line 2: it is no public key");
    assert!(Recipient::parse_list("# nothing\n").is_err());
    // What may not stand together is found out before anything is sealed.
    let both = Wrapping::new(Recipients::new(vec![one, two]).unwrap());
    assert!(matches!(both.check(Format::WattlockV1), Err(Error::Usage { .. })));
}

/// A pipe that gives a byte at a time, and then may fail.
struct Slow<'a>(&'a [u8], Option<io::ErrorKind>);

impl io::Read for Slow<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match (self.0.split_first(), self.1) {
            (Some((&byte, rest)), _) if !buffer.is_empty() => {
                (buffer[0], self.0) = (byte, rest);
                Ok(1)
            }
            (None, Some(kind)) => Err(io::Error::new(kind, "it is broken")),
            _ => Ok(0),
        }
    }
}

#[test]
fn slow_and_broken_pipes() {
    let keys = Keys::new();
    for container in [
        keys.sealer(Format::AgeV1).armored().seal_bytes(b"text").unwrap(),
        keys.sealer(Format::AgeV1).seal_bytes(b"text").unwrap(),
        keys.sealer(Format::WattlockV1).seal_bytes(b"text").unwrap(),
    ] {
        let spaced = [b" \r\n\n", &container[..]].concat();
        let is_armored = container.starts_with(b"-----");
        for bytes in [&container, &spaced][..1 + usize::from(is_armored)].iter() {
            let mut opened = Vec::new();
            keys.opener().open(&mut Slow(bytes, None), &mut opened).unwrap();
            assert_eq!(opened, b"text");
        }
        // The reader's own error is told as it is, whatever its kind.
        for len in [0, 10, 100, container.len() - 1] {
            for kind in [io::ErrorKind::InvalidData, io::ErrorKind::ConnectionReset] {
                let mut broken = Slow(&container[..len], Some(kind));
                let error = keys.opener().open(&mut broken, &mut Vec::new()).unwrap_err();
                // What the age crate reads within an armor, it may call malformed.
                let told = error.to_string().contains("it is broken");
                assert!(told || is_armored && kind == io::ErrorKind::InvalidData, "{error}");
            }
        }
    }
    let mut broken = Slow(b"text", Some(io::ErrorKind::InvalidData));
    let error = keys.sealer(Format::AgeV1).seal(&mut broken, &mut Vec::new()).unwrap_err();
    assert!(error.to_string().contains("it is broken"), "{error}");
}

#[test]
fn what_threads_may_have() {
    fn shared<T: Send + Sync>() {}
    fn sent<T: Send>() {}
    shared::<Wrapping>();
    shared::<Identities>();
    shared::<Identity>();
    shared::<NativeIdentity>();
    shared::<Passphrase>();
    sent::<Recipient>();
    sent::<Recipients>();
}

/// Reads of a view come from several threads at once.
#[test]
fn a_view_is_shared_by_threads() {
    let keys = Keys::new();
    let plaintext = pattern(2_000_000);
    let sealed = keys.sealer(Format::AgeV1).seal_bytes(&plaintext).unwrap();
    let view = keys.opener().view(&sealed[..]).unwrap();
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for start in (0..2_000_000).step_by(250_000) {
            let (view, plaintext, wrong) = (&view, &plaintext, &wrong);
            scope.spawn(move || {
                let mut part = vec![0; 100_000];
                let read = view.plaintext.read(start as u64, &mut part);
                if read.is_err() || part != plaintext[start..start + 100_000] {
                    wrong.lock().unwrap().push(start);
                }
            });
        }
    });
    assert!(wrong.into_inner().unwrap().is_empty());
}
