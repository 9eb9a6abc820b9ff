//! Whole streams, and streams that were tampered with.

use proptest::prelude::*;
use wattlock_engine::crypto::Secret;

use super::*;

const LIMIT: usize = 1 << 20;

fn key(byte: u8) -> Secret<32> {
    Secret::init_with(|bytes| bytes.fill(byte))
}

fn buffer(messages: &[u8]) -> Zeroizing<Vec<u8>> {
    [&[0; Writer::ROOM][..], messages].concat().into()
}

/// The units of a stream of two connections with these messages, of which the second is cut.
fn units(ratchet: Ratchet, one: &[&[u8]], other: &[&[u8]]) -> Vec<Vec<u8>> {
    let (mut writer, header) = Writer::new(&key(1), b"for whom", ratchet).unwrap();
    let mut frames = Vec::new();
    let (first, frame) = writer.open(Framing::Lines, None).unwrap();
    frames.push(frame);
    let (second, frame) = writer.open(Framing::Length, None).unwrap();
    frames.push(frame);
    let longer = one.len().max(other.len());
    for index in 0..longer {
        for (number, messages) in [(first, one), (second, other)] {
            if let Some(message) = messages.get(index) {
                let (rekey, data) = writer.data(number, buffer(message));
                frames.extend(rekey);
                frames.push(data);
            }
        }
    }
    frames.push(writer.end(first, End::Complete).0);
    frames.push(writer.end(second, End::Cut).0);
    frames.push(writer.close());
    let mut units = vec![header];
    for mut frame in frames {
        frame.seal().unwrap();
        units.push(frame.bytes().to_vec());
    }
    units
}

/// What comes out of a stream, and how reading it ended.
fn read(bytes: &[u8], key: &Secret<32>) -> (Vec<(Event, Vec<u8>)>, Result<(), Error>) {
    let (mut reader, mut ledger) = (Reader::new(LIMIT).with_expanded_keys(1), Ledger::default());
    let mut events = Vec::new();
    let mut rest = bytes;
    let ended = loop {
        let needed = match reader.needed(rest) {
            Ok(needed) => needed,
            Err(error) => break Err(error),
        };
        if needed > rest.len() || needed == 0 {
            break reader.finish(rest.len());
        }
        let (unit, left) = rest.split_at(needed);
        rest = left;
        let event = match reader.take(unit.to_vec().into()) {
            Ok(Unit::Header { .. }) => match reader.unlock(key) {
                Ok(()) => continue,
                Err(error) => Err(error),
            },
            Ok(Unit::Frame(mut frame)) => frame
                .open()
                .and_then(|()| ledger.take(frame.bytes()))
                .map(|event| (event, frame.body().to_vec())),
            Err(error) => Err(error),
        };
        match event {
            Ok(event) => events.push(event),
            Err(error) => break Err(error),
        }
    };
    (events, ended)
}

fn data(events: &[(Event, Vec<u8>)], number: u64) -> Vec<&[u8]> {
    let of = |(event, body): &'_ (Event, Vec<u8>)| {
        (*event == Event::Data { connection: number }).then_some(body.len())
    };
    events.iter().filter(|event| of(event).is_some()).map(|(_, body)| &body[..]).collect()
}

const ONE: [&[u8]; 4] = [b"first\n", b"second\nthird\n", b"", b"the last"];
const OTHER: [&[u8]; 2] = [b"\0\0\0\x01x", b"\0\0\0\0"];

/// More connections than there are expanded keys, in turns and with keys that are replaced.
#[test]
fn connections_without_an_expanded_key_go_on_under_theirs() {
    const CONNECTIONS: u64 = 1100;
    const MESSAGES: u64 = 4;
    let ratchet = Ratchet { frames: 3, ..Ratchet::default() };
    let (mut writer, mut stream) = Writer::new(&key(1), b"for whom", ratchet).unwrap();
    let mut add = |mut frame: Frame| {
        frame.seal().unwrap();
        stream.extend_from_slice(frame.bytes());
    };
    for _ in 0..CONNECTIONS {
        add(writer.open(Framing::Lines, None).unwrap().1);
    }
    for message in 0..MESSAGES {
        for connection in 1..=CONNECTIONS {
            let text = format!("{message} of {connection}\n");
            let (rekey, data) = writer.data(connection, buffer(text.as_bytes()));
            rekey.into_iter().chain([data]).for_each(&mut add);
        }
    }
    for connection in 1..=CONNECTIONS {
        add(writer.end(connection, End::Complete).0);
    }
    add(writer.close());
    let (events, ended) = read(&stream, &key(1));
    ended.unwrap();
    let is_data = |event: &Event| matches!(event, Event::Data { .. });
    let data = events.into_iter().filter(|(event, _)| is_data(event));
    let mut messages = data.map(|(_, bytes)| bytes);
    for message in 0..MESSAGES {
        for connection in 1..=CONNECTIONS {
            let text = format!("{message} of {connection}\n");
            assert_eq!(messages.next().as_deref(), Some(text.as_bytes()));
        }
    }
    assert_eq!(messages.next(), None);
}

#[test]
fn a_stream_opens_to_what_was_sealed() {
    let stream = units(Ratchet::default(), &ONE, &OTHER).concat();
    let (events, ended) = read(&stream, &key(1));
    ended.unwrap();
    assert_eq!(data(&events, 1), ONE);
    assert_eq!(data(&events, 2), OTHER);
    let opened = Event::Opened { connection: 2, framing: Framing::Length, headless: false };
    assert_eq!(events[1].0, opened);
    assert!(events.iter().any(|(e, _)| *e == Event::Ended { connection: 2, end: End::Cut }));
    assert_eq!(events.last().unwrap().0, Event::Closed);
}

#[test]
fn another_key_opens_nothing() {
    let stream = units(Ratchet::default(), &ONE, &OTHER).concat();
    let (events, ended) = read(&stream, &key(2));
    assert!(events.is_empty());
    assert!(matches!(ended, Err(Error::WrongKey)));
}

#[test]
fn no_two_frames_under_one_key_share_a_nonce() {
    let (mut writer, _) = Writer::new(&key(1), b"", Ratchet { frames: 5, bytes: 50 }).unwrap();
    let (number, open) = writer.open(Framing::Raw, None).unwrap();
    let mut seen = vec![(open.key().clone(), open.nonce())];
    for len in (0..30).chain([60]) {
        let (rekey, data) = writer.data(number, buffer(&vec![0; len]));
        for frame in rekey.iter().chain([&data]) {
            let same = |(key, nonce): &(Arc<AeadKey>, [u8; NONCE_LEN])| {
                Arc::ptr_eq(key, frame.key()) && *nonce == frame.nonce()
            };
            assert!(!seen.iter().any(same));
            seen.push((frame.key().clone(), frame.nonce()));
        }
    }
    for key in seen.iter().map(|(key, _)| key) {
        let under = seen.iter().filter(|(other, _)| Arc::ptr_eq(key, other)).count();
        assert!(under <= 5, "{under} frames under one key");
    }
}

#[test]
fn replacing_keys_within_a_stream_changes_no_message() {
    let messages: Vec<Vec<u8>> = (0..100u8).map(|byte| vec![byte; 10]).collect();
    let messages: Vec<&[u8]> = messages.iter().map(Vec::as_slice).collect();
    for ratchet in [Ratchet { frames: 3, bytes: 1 << 30 }, Ratchet { frames: 1 << 20, bytes: 25 }] {
        let units = units(ratchet, &messages, &OTHER);
        let rekeys = units.iter().skip(1).filter(|unit| unit[4] == Kind::Rekey.code()).count();
        assert!(rekeys >= 40, "{rekeys}");
        let (events, ended) = read(&units.concat(), &key(1));
        ended.unwrap();
        assert_eq!(data(&events, 1), messages);
    }
}

#[test]
fn every_change_of_frames_is_an_error_and_releases_only_what_was_sealed() {
    let whole = units(Ratchet { frames: 4, bytes: 1 << 30 }, &ONE, &OTHER);
    let refused = |what: &str, changed: &[Vec<u8>]| {
        let (events, ended) = read(&changed.concat(), &key(1));
        assert!(ended.is_err(), "{what}");
        assert!(ONE.starts_with(&data(&events, 1)), "{what}");
        assert!(OTHER.starts_with(&data(&events, 2)), "{what}");
    };
    let stranger = units(Ratchet { frames: 4, bytes: 1 << 30 }, &ONE, &OTHER);
    for at in 1..whole.len() {
        let mut changed = whole.clone();
        changed.remove(at);
        refused(&format!("{at} is missing"), &changed);
        let mut changed = whole.clone();
        changed.insert(at, whole[at].clone());
        refused(&format!("{at} is repeated"), &changed);
        let mut changed = whole.clone();
        changed[at] = stranger[at].clone();
        refused(&format!("{at} is of another stream"), &changed);
        refused(&format!("cut before {at}"), &whole[..at]);
        for other in at + 1..whole.len() {
            let mut changed = whole.clone();
            changed.swap(at, other);
            refused(&format!("{at} and {other} are swapped"), &changed);
        }
        // As if it were a frame of the other connection.
        let mut changed = whole.clone();
        changed[at][11] ^= 3;
        refused(&format!("{at} is said to be of another connection"), &changed);
    }
}

#[test]
fn a_stream_cut_at_any_byte_says_so() {
    let stream = units(Ratchet::default(), &ONE, &OTHER).concat();
    for len in 1..stream.len() {
        let (events, ended) = read(&stream[..len], &key(1));
        assert!(matches!(ended, Err(Error::Cut(_))), "{len} bytes: {ended:?}");
        assert!(ONE.starts_with(&data(&events, 1)));
    }
    assert!(matches!(read(b"", &key(1)).1, Err(Error::NotAStream)));
}

#[test]
fn a_flipped_bit_anywhere_is_an_error() {
    let stream = units(Ratchet::default(), &ONE, &OTHER).concat();
    for bit in 0..stream.len() * 8 {
        let mut flipped = stream.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        let (events, ended) = read(&flipped, &key(1));
        assert!(ended.is_err(), "bit {bit}");
        assert!(ONE.starts_with(&data(&events, 1)), "bit {bit}");
    }
}

#[test]
fn a_frame_above_the_limit_is_refused_before_it_is_there() {
    let units = units(Ratchet::default(), &[&vec![0; LIMIT + 1]], &[]);
    let stream = units.concat();
    let start = units[0].len() + units[1].len() + units[2].len();
    let (_, ended) = read(&stream[..start + HEADER_LEN], &key(1));
    assert!(matches!(ended, Err(Error::TooLong { .. })), "{ended:?}");
}

#[test]
fn a_connection_goes_on_in_the_next_stream_and_no_part_may_be_missing() {
    let mut streams = Vec::new();
    let mut previous = None;
    for part in 0..3u8 {
        let (mut writer, mut stream) = Writer::new(&key(1), b"", Ratchet::default()).unwrap();
        let (number, open) = writer.open(Framing::Raw, previous).unwrap();
        let (_, data) = writer.data(number, buffer(&[part]));
        let (end, ended) =
            writer.end(number, if part == 2 { End::Complete } else { End::Continued });
        previous = Some(ended);
        for mut frame in [open, data, end, writer.close()] {
            frame.seal().unwrap();
            stream.extend_from_slice(frame.bytes());
        }
        streams.push(stream);
    }
    let (events, ended) = read(&streams.concat(), &key(1));
    ended.unwrap();
    assert_eq!(data(&events, 1), [[0], [1], [2]]);
    // By itself each opens, and says that it is not the first.
    let (events, ended) = read(&streams[1], &key(1));
    ended.unwrap();
    assert!(matches!(events[0].0, Event::Opened { headless: true, .. }));
    // In an input from the beginning none may be missing, moved or repeated.
    for order in [&[0, 2][..], &[0, 0], &[0, 1, 0], &[2, 1], &[1, 0]] {
        let input: Vec<u8> = order.iter().flat_map(|index| streams[*index].clone()).collect();
        let (events, ended) = read(&input, &key(1));
        assert!(matches!(ended, Err(Error::Malformed(_))), "{order:?}: {ended:?}");
        assert!(data(&events, 1).len() < 3, "{order:?}");
    }
}

proptest! {
    #[test]
    fn garbage_ends_without_a_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes, &key(1));
        let start = units(Ratchet::default(), &[], &[]).remove(0);
        let (events, ended) = read(&[start, bytes].concat(), &key(1));
        prop_assert!(events.is_empty() && ended.is_err());
    }
}

/// The bytes of hexadecimal digits.
fn unhex(text: &str) -> Vec<u8> {
    let digits = text.as_bytes().chunks_exact(2).map(|pair| std::str::from_utf8(pair).unwrap());
    digits.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect()
}

#[test]
fn streams_that_an_independent_writer_made_end_as_they_must() {
    let mut seen = 0;
    for vector in wattlock_vectors::containers("stream") {
        if vector.name == "make.py" {
            continue;
        }
        let stream_key = unhex(vector.one("key").unwrap());
        let stream_key = Secret::init_with(|bytes| bytes.copy_from_slice(&stream_key));
        let (events, ended) = read(&vector.body, &stream_key);
        let is_data =
            |(event, body): (Event, Vec<u8>)| matches!(event, Event::Data { .. }).then_some(body);
        let released: Vec<u8> = events.into_iter().filter_map(is_data).flatten().collect();
        assert_eq!(released, unhex(vector.one("released").unwrap_or("")), "{}", vector.name);
        let as_expected = match vector.expect() {
            "success" => ended.is_ok(),
            "wrong key" => matches!(ended, Err(Error::WrongKey)),
            "not a stream" => matches!(ended, Err(Error::NotAStream | Error::Trailing)),
            "unknown version" => matches!(ended, Err(Error::UnknownVersion)),
            "cut" => matches!(ended, Err(Error::Cut(_))),
            "damaged" => matches!(
                ended,
                Err(Error::Malformed(_) | Error::Authentication { .. } | Error::TooLong { .. })
            ),
            other => panic!("{}: {other:?} is not known", vector.name),
        };
        assert!(as_expected, "{}: {ended:?}", vector.name);
        seen += 1;
    }
    assert!(seen > 20, "{seen} vectors");
}
