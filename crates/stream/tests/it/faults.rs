//! After any failure, nothing hangs, no loss goes unreported, and memory stays bounded.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, TAG_LEN};
use wattlock_stream::{
    Cipher, Done, Error, Live, Message, Nonce, Pace, Rung, Settings, SpeedControl, Velocity,
};

const WINDOW: u64 = 64 << 10;

fn settings() -> Settings {
    Settings::continuous(WINDOW, 2, 1e9).unwrap()
}

fn key() -> Arc<AeadKey> {
    Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap())
}

fn nonce(base: [u8; 12]) -> Nonce {
    Nonce { base, number: 0 }
}

/// A message of `len` bytes of one value.
fn message(user: u64, len: usize) -> Message {
    let cipher = Cipher::Seal { key: key(), nonce: nonce([user as u8; 12]), aad: 0..0 };
    let buffer = [vec![user as u8; len], vec![0; TAG_LEN]].concat().into();
    Message { user, cipher, buffer, payload: 0..len }
}

/// True if it is sealed as it should be.
fn is_right(message: &Message) -> bool {
    let mut sealed = message.buffer.to_vec();
    let (in_out, tag) = sealed.split_at_mut(message.payload.end);
    let nonce = [message.user as u8; 12];
    key().open(nonce, b"", in_out, (&*tag).try_into().unwrap()).is_ok()
        && in_out.iter().all(|byte| *byte == message.user as u8)
}

/// A sink that lets nothing through before its gate was opened.
fn gated() -> (Sender<()>, impl FnMut(&mut Done) -> io::Result<()> + Send) {
    let (gate, opened): (Sender<()>, Receiver<()>) = mpsc::channel();
    let opened = Mutex::new(opened);
    let mut is_open = false;
    let sink = move |_: &mut Done| {
        if !is_open {
            // The gate is opened by a word, or by its end.
            let _ = opened.lock().unwrap().recv();
            is_open = true;
        }
        Ok(())
    };
    (gate, sink)
}

#[test]
fn a_producer_that_is_faster_is_refused_and_memory_stays_bounded() {
    let (gate, sink) = gated();
    let live = Live::start(settings(), sink).unwrap();
    let mut refused = 0;
    for index in 0..20_000 {
        match live.try_put(message(index, 1000)) {
            Ok(()) => {}
            Err((Error::Full { .. }, _)) => refused += 1,
            Err((error, _)) => panic!("{error}"),
        }
        assert!(live.window().used() <= WINDOW);
    }
    assert!(refused >= 20_000 - WINDOW / 1000, "{refused}");
    assert_eq!(live.stats().refusals, refused);
    drop(gate);
    let summary = live.finish(None);
    assert!(summary.failure.is_none());
    assert_eq!(summary.stats.messages + refused, 20_000);
    assert_eq!(summary.undelivered, 0);
}

#[test]
fn a_sink_that_stands_still_fills_the_window_and_the_end_comes_in_time() {
    let (gate, sink) = gated();
    let live = Live::start(settings(), sink).unwrap();
    let accepted =
        (0..1000).filter(|user| live.try_put(message(*user, 1000)).is_ok()).count() as u64;
    assert_eq!(accepted, WINDOW / 1000);
    let summary = live.finish(Some(Instant::now() + Duration::from_millis(20)));
    assert!(matches!(summary.failure, Some(Error::Late)), "{:?}", summary.failure);
    assert_eq!(summary.undelivered, accepted);
    drop(gate);
}

#[test]
fn a_sink_that_goes_on_after_a_while_gets_everything() {
    let (gate, sink) = gated();
    let live = Live::start(settings(), sink).unwrap();
    thread::scope(|scope| {
        scope.spawn(|| {
            (0..1000).for_each(|user| live.put(message(user, 1000)).unwrap());
        });
        let patience = Instant::now() + Duration::from_secs(60);
        while live.window().used() < WINDOW - 1000 {
            assert!(Instant::now() < patience, "the window does not fill");
            thread::yield_now();
        }
        gate.send(()).unwrap();
    });
    let summary = live.finish(None);
    assert_eq!((summary.stats.messages, summary.undelivered), (1000, 0));
}

/// Puts messages until the stream takes no more, and returns how many it took.
fn put_until_it_ends(live: &Live) -> u64 {
    let patience = Instant::now() + Duration::from_secs(60);
    let mut taken = 0;
    loop {
        match live.put(message(1, 1000)) {
            Ok(()) => assert!(Instant::now() < patience, "it does not end"),
            Err(error) => {
                assert!(matches!(error, Error::Closed), "{error}");
                return taken;
            }
        }
        taken += 1;
    }
}

#[test]
fn a_sink_that_fails_ends_the_stream_and_reports_undelivered_messages() {
    let mut left = 100;
    let sink = move |_: &mut Done| {
        left -= 1;
        if left < 0 { Err(io::Error::from(io::ErrorKind::BrokenPipe)) } else { Ok(()) }
    };
    let live = Live::start(settings(), sink).unwrap();
    let accepted = put_until_it_ends(&live);
    let summary = live.finish(None);
    let Some(Error::Sink(why)) = summary.failure else { panic!("{:?}", summary.failure) };
    assert_eq!(why.kind(), io::ErrorKind::BrokenPipe);
    assert_eq!((summary.stats.messages, summary.undelivered), (100, accepted - 100));
    assert_eq!(summary.stats.in_use.buffered + summary.stats.in_use.in_flight, 0);
}

#[test]
fn a_sink_that_panics_ends_the_stream_with_any_number_of_workers() {
    for workers in [1, 2] {
        let mut left = 10;
        let sink = move |_: &mut Done| {
            left -= 1;
            assert!(left > 0, "a test's own panic");
            Ok(())
        };
        let settings = Settings::continuous(WINDOW, workers, 1e9).unwrap();
        let live = Live::start(settings, sink).unwrap();
        put_until_it_ends(&live);
        let summary = live.finish(None);
        assert!(matches!(summary.failure, Some(Error::Panicked)), "{:?}", summary.failure);
        assert_eq!(summary.stats.messages, 9);
    }
}

#[test]
fn a_message_longer_than_the_window_is_refused_and_an_empty_one_goes_through() {
    let (sender, receiver) = mpsc::channel();
    let sink = move |done: &mut Done| {
        sender.send((done.outcome.is_ok(), done.message.buffer.to_vec())).unwrap();
        Ok(())
    };
    let live = Live::start(settings(), sink).unwrap();
    let long = message(1, WINDOW as usize + 1);
    assert!(matches!(live.put(long), Err(Error::TooLong { .. })));
    let key = Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap());
    let seal = Cipher::Seal { key: Arc::clone(&key), nonce: nonce([1; 12]), aad: 0..3 };
    let buffer = [b"aad".to_vec(), vec![0; TAG_LEN]].concat().into();
    live.put(Message { user: 1, cipher: seal, buffer, payload: 3..3 }).unwrap();
    live.put(message(1, 0)).unwrap();
    assert_eq!(live.finish(None).stats.messages, 2);
    let (sealed, mut buffer) = receiver.recv().unwrap();
    let (aad, tag) = buffer.split_at_mut(3);
    assert!(sealed);
    key.open([1; 12], aad, &mut [], (&*tag).try_into().unwrap()).unwrap();
    let (sealed, tag) = receiver.recv().unwrap();
    assert!(sealed && tag.len() == TAG_LEN);
}

#[test]
fn forgeries_are_reported_in_order_and_their_payloads_are_cleared() {
    let key = Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap());
    let verdicts = Arc::new(Mutex::new(Vec::new()));
    let sink = {
        let verdicts = Arc::clone(&verdicts);
        move |done: &mut Done| {
            let Message { user, buffer, payload, .. } = &done.message;
            let forged = matches!(done.outcome, Err(Error::Authentication));
            let expected = if forged { 0 } else { *user as u8 };
            assert!(buffer[payload.clone()].iter().all(|byte| *byte == expected));
            verdicts.lock().unwrap().push((*user, forged));
            Ok(())
        }
    };
    let live = Live::start(settings(), sink).unwrap();
    for user in 1..100_u64 {
        let mut buffer = vec![user as u8; 500 + TAG_LEN];
        buffer[..10].copy_from_slice(b"additional");
        let (aad, rest) = buffer.split_at_mut(10);
        let (in_out, tag) = rest.split_at_mut(490);
        tag.copy_from_slice(&key.seal([user as u8; 12], aad, in_out).unwrap());
        if user % 7 == 0 {
            // In the data, the payload or the tag.
            buffer[user as usize * 5] ^= 1;
        }
        let cipher =
            Cipher::Open { key: Arc::clone(&key), nonce: nonce([user as u8; 12]), aad: 0..10 };
        live.put(Message { user, cipher, buffer: buffer.into(), payload: 10..500 }).unwrap();
    }
    let summary = live.finish(None);
    assert_eq!(summary.stats.failures, 14);
    assert!(verdicts.lock().unwrap().iter().copied().eq((1..100).map(|u| (u, u % 7 == 0))));
}

#[test]
fn a_payload_outside_of_its_buffer_is_an_outcome_and_no_panic() {
    let sink = |done: &mut Done| {
        assert!(matches!(done.outcome, Err(Error::Layout { start: 5, end: 50, len: 20 })));
        Ok(())
    };
    let live = Live::start(settings(), sink).unwrap();
    let mut outside = message(1, 4);
    outside.payload = 5..50;
    live.put(outside).unwrap();
    assert_eq!(live.finish(None).stats.failures, 1);
}

/// A clock that cannot be written.
struct Refuses;

impl SpeedControl for Refuses {
    fn set(&mut self, _: usize, rung: &Rung) -> Result<(), Box<dyn std::error::Error>> {
        Err(format!("{} was refused", rung.name).into())
    }
}

#[test]
fn a_clock_that_is_refused_is_counted_and_the_stream_goes_on() {
    let pace = Pace::Clocks(Box::new(Refuses));
    let right = |done: &mut Done| {
        assert!(is_right(&done.message));
        Ok(())
    };
    let live =
        Live::start(Settings { pace, velocity: Velocity::Fixed(1), ..settings() }, right).unwrap();
    (0..100).for_each(|user| live.put(message(user, 1000)).unwrap());
    let patience = Instant::now() + Duration::from_secs(60);
    while live.stats().clocks_refused == 0 {
        assert!(Instant::now() < patience, "no clock was asked for");
        thread::yield_now();
    }
    let summary = live.finish(None);
    assert_eq!((summary.stats.messages, summary.stats.clocks_set), (100, 0));
    assert_eq!(summary.stats.clock_refusal.as_deref(), Some("2 workers was refused"));
}

#[test]
fn every_policy_gives_the_same() {
    for velocity in [
        Velocity::LecpaesLiteral,
        Velocity::Lecpaes,
        Velocity::RaceToIdle,
        Velocity::Paced { deadline: 0.05 },
    ] {
        let mut next = 0;
        let sink = move |done: &mut Done| {
            assert_eq!(done.message.user, next);
            next += 1;
            assert!(is_right(&done.message));
            Ok(())
        };
        let live = Live::start(Settings { velocity, ..settings() }, sink).unwrap();
        for user in 0..200 {
            live.put(message(user, (user as usize * 97) % 3000)).unwrap();
        }
        let summary = live.finish(None);
        assert!(summary.failure.is_none(), "{velocity:?}");
        assert_eq!(summary.stats.messages, 200);
    }
}
