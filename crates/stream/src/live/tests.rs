//! Many producers and one sink; what fails is in `tests/it/faults.rs`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use wattlock_engine::Policy;
use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, TAG_LEN};
use wattlock_engine::fake::Fake;

use super::*;
use crate::message::{Cipher, Nonce};

fn key() -> Arc<AeadKey> {
    Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap())
}

/// A message of `len` bytes of one value, for a user, with a nonce of its own.
fn message(pool: &Pool, key: &Arc<AeadKey>, user: u64, index: u64, len: usize) -> Message {
    let mut buffer = pool.take(len + TAG_LEN);
    buffer[..len].fill(index as u8);
    let mut base = [0; 12];
    base[..4].copy_from_slice(&(user as u32).to_be_bytes());
    let nonce = Nonce { base, number: index };
    let cipher = Cipher::Seal { key: Arc::clone(key), nonce, aad: 0..0 };
    Message { user, cipher, buffer, payload: 0..len }
}

#[test]
fn messages_of_many_producers_leave_sealed_and_in_order_for_each() {
    const PRODUCERS: u64 = 4;
    const MESSAGES: u64 = 500;
    let (sender, receiver) = mpsc::channel();
    let opening = key();
    let mut next = [0; PRODUCERS as usize];
    let sink = move |done: &mut Done| {
        let Message { user, cipher, buffer, payload } = &mut done.message;
        let Cipher::Seal { nonce, .. } = cipher else { unreachable!() };
        let index = nonce.number;
        assert_eq!(index, next[*user as usize], "order of user {user}");
        next[*user as usize] += 1;
        let (in_out, tag) = buffer[payload.start..].split_at_mut(payload.len());
        opening.open(nonce.bytes(), b"", in_out, tag.first_chunk().unwrap()).unwrap();
        assert!(in_out.iter().all(|byte| *byte == index as u8));
        sender.send(*user).unwrap();
        Ok(())
    };
    let live = Live::start(Settings::continuous(64 << 10, 3, 1e6).unwrap(), sink).unwrap();
    thread::scope(|scope| {
        for user in 0..PRODUCERS {
            let (live, key) = (&live, key());
            scope.spawn(move || {
                for index in 0..MESSAGES {
                    let len = (index * 37 + user * 11) as usize % 5000;
                    live.put(message(live.pool(), &key, user, index, len)).unwrap();
                    assert!(live.window().used() <= live.window().size());
                }
            });
        }
    });
    let summary = live.finish(None);
    assert!(summary.failure.is_none(), "{:?}", summary.failure);
    assert_eq!(summary.stats.messages, PRODUCERS * MESSAGES);
    assert_eq!(summary.stats.delays.count(), PRODUCERS * MESSAGES);
    assert_eq!((summary.undelivered, summary.stats.in_use), (0, crate::window::Use::default()));
    assert_eq!(receiver.iter().count() as u64, PRODUCERS * MESSAGES);
}

/// What comes out of a stream of messages of these lengths. All of them are in the window before any
/// is taken: the only worker waits in the sink with a message that was put before them.
fn sealed(device: Option<Fake>, lens: &[usize]) -> Vec<Vec<u8>> {
    let (sender, receiver) = mpsc::channel();
    let (reached, at_gate) = mpsc::channel();
    let (open, gate) = mpsc::channel::<()>();
    let sink = move |done: &mut Done| {
        assert!(done.outcome.is_ok());
        if done.message.user == 0 {
            reached.send(()).unwrap();
            gate.recv().unwrap();
        } else {
            sender.send(done.message.buffer.to_vec()).unwrap();
        }
        Ok(())
    };
    let faults = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&faults);
    let breaks = device.as_ref().is_some_and(|fake| fake.pieces_before_fault.is_some());
    let device = device.map(|fake| OnDevice {
        engine: Engine::new(1).with_policy(Policy::Gpu).with_device(Box::new(fake)),
        on_fault: Box::new(move |_| _ = counted.fetch_add(1, Ordering::Relaxed)),
    });
    let settings = Settings::continuous(1 << 20, 1, 1e9).unwrap();
    let velocity = Velocity::Fixed(0);
    let live = Live::start(Settings { device, velocity, ..settings }, sink).unwrap();
    let key = key();
    live.put(message(live.pool(), &key, 0, 0, 64)).unwrap();
    // A worker that starts late would take it together with some of the others, and cut a run in two.
    at_gate.recv().unwrap();
    for (index, len) in lens.iter().enumerate() {
        live.put(message(live.pool(), &key, 1, index as u64, *len)).unwrap();
    }
    open.send(()).unwrap();
    assert!(live.finish(None).failure.is_none());
    assert_eq!(faults.load(Ordering::Relaxed) > 0, breaks);
    receiver.iter().collect()
}

#[test]
fn a_device_gets_runs_of_equal_messages_and_the_worker_does_the_others() {
    // A run, a shorter message, a run that is too short for a device, and another run.
    let lens: Vec<usize> =
        [4096; 20].into_iter().chain([100]).chain([2048; 3]).chain([4096; 9]).collect();
    let expected = sealed(None, &lens);
    assert_eq!(sealed(Some(Fake { piece_chunks: 4, ..Fake::default() }), &lens), expected);
    // One that breaks in the middle of a run: the CPU goes on.
    let breaks = Fake { piece_chunks: 4, pieces_before_fault: Some(2), ..Fake::default() };
    assert_eq!(sealed(Some(breaks), &lens), expected);
    // What a device does wrong shows which messages it had.
    let wrong = sealed(Some(Fake { wrong: true, ..Fake::default() }), &lens);
    let differs: Vec<bool> = wrong.iter().zip(&expected).map(|(one, other)| one != other).collect();
    // A bit in each job.
    assert!(differs[..20].contains(&true) && differs[24..].contains(&true), "{differs:?}");
    assert!(!differs[20..24].contains(&true), "{differs:?}");
}

/// A sink that would often have to wait.
struct Often {
    calls: usize,
    out: mpsc::Sender<(u64, u64)>,
    breaks_at: Option<u64>,
}

impl Often {
    fn would_wait(&mut self) -> bool {
        self.calls += 1;
        self.calls.is_multiple_of(3)
    }
}

impl Sink for Often {
    fn deliver(&mut self, done: &mut Done) -> io::Result<()> {
        let Cipher::Seal { nonce, .. } = &done.message.cipher else { unreachable!() };
        assert!(done.outcome.is_ok() && self.breaks_at != Some(nonce.number));
        self.out.send((done.message.user, nonce.number)).unwrap();
        Ok(())
    }

    fn at_once(&mut self) -> Option<&mut dyn AtOnce> {
        Some(self)
    }
}

impl AtOnce for Often {
    fn has_room(&mut self, _: u64) -> bool {
        !self.would_wait()
    }

    fn deliver_now(&mut self, done: &mut Done) -> io::Result<()> {
        self.deliver(done)
    }

    fn rest_now(&mut self) -> io::Result<bool> {
        Ok(!self.would_wait())
    }
}

#[test]
fn on_the_short_way_workers_do_what_has_to_wait_and_the_order_stays() {
    const PRODUCERS: u64 = 3;
    const MESSAGES: u64 = 400;
    let (out, delivered) = mpsc::channel();
    let settings = Settings { shortcut: true, ..Settings::continuous(64 << 10, 2, 1e6).unwrap() };
    let live = Live::start(settings, Often { calls: 0, out, breaks_at: None }).unwrap();
    let shortcut = live.shortcut().unwrap();
    thread::scope(|scope| {
        for user in 0..PRODUCERS {
            let (live, shortcut, key) = (&live, &shortcut, key());
            scope.spawn(move || {
                for index in 0..MESSAGES {
                    // The last producer knows no short way.
                    let room = live.window().reserve_blocking(700).unwrap();
                    let _way = (user + 1 < PRODUCERS).then(|| shortcut.enter());
                    room.put(message(live.pool(), &key, user, index, 700));
                }
            });
        }
    });
    let summary = live.finish(None);
    assert!(summary.failure.is_none(), "{:?}", summary.failure);
    assert_eq!((summary.stats.messages, summary.undelivered), (PRODUCERS * MESSAGES, 0));
    let mut next = [0; PRODUCERS as usize];
    for (user, index) in delivered {
        assert_eq!(index, next[user as usize]);
        next[user as usize] += 1;
    }
    assert_eq!(next, [MESSAGES; PRODUCERS as usize]);
}

#[test]
fn a_panic_on_the_short_way_ends_the_stream_and_not_the_thread() {
    let (out, _delivered) = mpsc::channel();
    let settings = Settings { shortcut: true, ..Settings::continuous(64 << 10, 1, 1e6).unwrap() };
    let live = Live::start(settings, Often { calls: 0, out, breaks_at: Some(1) }).unwrap();
    let shortcut = live.shortcut().unwrap();
    let key = key();
    for index in 0..3 {
        let Ok(room) = live.window().reserve_blocking(100) else { break };
        let _way = shortcut.enter();
        room.put(message(live.pool(), &key, 0, index, 100));
    }
    assert!(matches!(live.finish(None).failure, Some(Error::Panicked)));
}
