//! A steady stream allocates nothing, messages of a kilobyte, from the sender to the sink, but for the
//! blocks of the queue.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};

use wattlock_engine::crypto::{AeadAlgorithm, AeadKey, TAG_LEN};
use wattlock_stream::{Cipher, Done, Live, Message, Nonce, Settings};

/// The system's allocator, and how often the threads of this test have asked it.
struct Counting;

thread_local! {
    static IS_COUNTED: Cell<bool> = const { Cell::new(false) };
}

static ASKED: AtomicU64 = AtomicU64::new(0);

// SAFETY: every call goes to the system's allocator as it came; counting touches an atomic and a
// constant-initialised thread-local without a destructor, which allocate nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTED.get() {
            ASKED.fetch_add(1, Ordering::Relaxed);
        }
        // SAFETY: the caller keeps the contract of `GlobalAlloc::alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: `memory` came from `System` with this layout, by `alloc` above.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn a_message_of_a_kilobyte_allocates_nothing_of_its_own() {
    let arrived = Arc::new((Mutex::new(0_u64), Condvar::new()));
    let counted = Arc::clone(&arrived);
    let sink = move |done: &mut Done| -> io::Result<()> {
        assert!(done.outcome.is_ok());
        // The thread that seals is the one that hands on.
        IS_COUNTED.set(true);
        *counted.0.lock().unwrap() += 1;
        counted.1.notify_all();
        Ok(())
    };
    let live = Live::start(Settings::continuous(1 << 20, 1, 1e9).unwrap(), sink).unwrap();
    let key = Arc::new(AeadKey::new(AeadAlgorithm::Aes256Gcm, &[7; 32]).unwrap());
    let mut number = 0_u64;
    let mut send = |messages: u64| {
        for _ in 0..messages {
            let nonce = Nonce { base: [0; 12], number };
            let buffer = live.pool().take(1024 + TAG_LEN);
            let cipher = Cipher::Seal { key: Arc::clone(&key), nonce, aad: 0..0 };
            live.put(Message { user: 1, cipher, buffer, payload: 0..1024 }).unwrap();
            number += 1;
            // One after the other, so that no queue has to grow.
            let mut arrived_now = arrived.0.lock().unwrap();
            while *arrived_now < number {
                arrived_now = arrived.1.wait(arrived_now).unwrap();
            }
        }
    };
    // The first few are for what is made once.
    send(100);
    ASKED.store(0, Ordering::Relaxed);
    IS_COUNTED.set(true);
    drop(std::hint::black_box(vec![1_u8; 100]));
    assert_eq!(ASKED.swap(0, Ordering::Relaxed), 1, "the counter counts");
    send(1000);
    IS_COUNTED.set(false);
    // The queue is without locks and without bounds, and takes memory for 31 messages at a time.
    let asked = ASKED.load(Ordering::Relaxed);
    assert!(asked <= 1000 / 31 + 1, "{asked} times");
    let summary = live.finish(None);
    assert_eq!((summary.stats.messages, summary.failure.is_none()), (1100, true));
}
