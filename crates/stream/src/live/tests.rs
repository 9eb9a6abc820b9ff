//! Many producers and one sink; what fails is in `tests/it/faults.rs`.

use std::sync::mpsc;

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, TAG_LEN};

use super::*;
use crate::message::Cipher;

fn key() -> Arc<AeadKey> {
    Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap())
}

/// A message of `len` bytes of one value, for a user, with a nonce of its own.
fn message(pool: &Pool, key: &Arc<AeadKey>, user: u64, index: u64, len: usize) -> Message {
    let mut buffer = pool.take(len + TAG_LEN);
    buffer[..len].fill(index as u8);
    let mut nonce = [0; 12];
    nonce[..8].copy_from_slice(&index.to_be_bytes());
    nonce[8..].copy_from_slice(&(user as u32).to_be_bytes());
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
        let index = u64::from_be_bytes(nonce[..8].try_into().unwrap());
        assert_eq!(index, next[*user as usize], "order of user {user}");
        next[*user as usize] += 1;
        let (in_out, tag) = buffer[payload.start..].split_at_mut(payload.len());
        opening.open(*nonce, b"", in_out, tag.first_chunk().unwrap()).unwrap();
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
