//! A sealed stream with any change opens to a prefix of what was sealed.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use wattlock_engine::crypto::Secret;
use wattlock_stream::frame::{End, Event, Framing, Ledger, Ratchet, Reader, Unit, Writer};

fn key() -> Secret<32> {
    Secret::init_with(|bytes| bytes.fill(7))
}

/// A stream of two connections, where its units start, and the messages of each connection.
static SEALED: LazyLock<(Vec<u8>, [Vec<u8>; 2])> = LazyLock::new(|| {
    let ratchet = Ratchet { frames: 5, bytes: 1 << 20 };
    let (mut writer, mut stream) = Writer::new(&key(), b"", ratchet).unwrap();
    let mut messages = [Vec::new(), Vec::new()];
    let mut add = |mut frame: wattlock_stream::frame::Frame| {
        frame.seal().unwrap();
        stream.extend_from_slice(frame.bytes());
    };
    let numbers = [0, 1].map(|_| {
        let (number, open) = writer.open(Framing::Raw, None).unwrap();
        add(open);
        number
    });
    for round in 0..40usize {
        let which = usize::from(round % 3 == 0);
        let body: Vec<u8> = (0..round * 7).map(|i| (i % 251) as u8).collect();
        messages[which].extend_from_slice(&body);
        let mut buffer = vec![0; Writer::ROOM];
        buffer.extend(body);
        let (rekey, data) = writer.data(numbers[which], buffer.into());
        rekey.into_iter().chain([data]).for_each(&mut add);
    }
    for number in numbers {
        add(writer.end(number, End::Complete).0);
    }
    add(writer.close());
    (stream, messages)
});

fn read(bytes: &[u8]) -> ([Vec<u8>; 2], bool) {
    let (mut reader, mut ledger) = (Reader::new(1 << 16), Ledger::default());
    let mut released = [Vec::new(), Vec::new()];
    let mut rest = bytes;
    loop {
        let Ok(needed) = reader.needed(rest) else { return (released, false) };
        if needed > rest.len() {
            return (released, reader.finish(rest.len()).is_ok());
        }
        let (unit, left) = rest.split_at(needed);
        rest = left;
        let event = match reader.take(unit.to_vec().into()) {
            Ok(Unit::Header { .. }) if reader.unlock(&key()).is_ok() => continue,
            Ok(Unit::Frame(mut frame)) => {
                if frame.open().is_err() {
                    return (released, false);
                }
                ledger.take(frame.bytes()).map(|event| (event, frame.body().to_vec()))
            }
            _ => return (released, false),
        };
        match event {
            Ok((Event::Data { connection: connection @ 1..=2 }, body)) => {
                released[connection as usize - 1].extend(body);
            }
            Ok(_) => {}
            Err(_) => return (released, false),
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let (stream, messages) = &*SEALED;
    // As it is: most of that ends at the first byte.
    let _ = read(data);
    let mut bytes = stream.clone();
    let mut edits = data;
    // An edit: what to do, where, with what.
    while let Some((edit, rest)) = edits.split_first_chunk::<4>() {
        edits = rest;
        let at = usize::from(u16::from_le_bytes([edit[1], edit[2]])) % bytes.len().max(1);
        match edit[0] % 5 {
            0 if at < bytes.len() => bytes[at] ^= edit[3],
            1 => bytes.truncate(at),
            2 => bytes.insert(at.min(bytes.len()), edit[3]),
            3 if bytes.len() < 1 << 18 => bytes.extend_from_within(at.min(bytes.len())..),
            _ if at < bytes.len() => drop(bytes.drain(at..(at + 64).min(bytes.len()))),
            _ => {}
        }
    }
    let (released, whole) = read(&bytes);
    for (released, sealed) in released.iter().zip(messages) {
        assert!(sealed.starts_with(released) || bytes.starts_with(stream));
    }
    assert!(whole || bytes != *stream, "what was sealed opens");
    assert!(!whole || bytes.starts_with(stream), "nothing else does");
});
