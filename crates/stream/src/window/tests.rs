//! The window alone: who gets in, in which order, and what is in use.

use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use proptest::prelude::*;

use super::*;

fn window(size: u64) -> Arc<Window<u64>> {
    Window::new(size, 0.05).unwrap()
}

fn take_all(window: &Arc<Window<u64>>) -> Vec<Taken<u64>> {
    let mut batch = Vec::new();
    window.take(u64::MAX, &mut batch);
    batch
}

fn poll(reserve: &mut Reserve<u64>) -> Poll<Result<Room<u64>, Error>> {
    Pin::new(reserve).poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn a_window_filled_to_the_last_byte_is_full_and_not_empty() {
    let window = window(1000);
    window.put(1000, 1).unwrap();
    assert_eq!(window.in_use(), Use { buffered: 1000, in_flight: 0 });
    assert!(matches!(window.try_put(1, 2), Err((Error::Full { bytes: 1 }, 2))));
    assert_eq!(window.refusals(), 1);
}

#[test]
fn what_was_taken_is_in_use_until_it_was_handed_on() {
    let window = window(1000);
    window.put(600, 1).unwrap();
    let batch = take_all(&window);
    assert_eq!(window.in_use(), Use { buffered: 0, in_flight: 600 });
    assert!(window.try_put(600, 2).is_err());
    drop(batch);
    assert_eq!(window.used(), 0);
    window.try_put(600, 2).unwrap();
}

#[test]
fn a_message_longer_than_the_window_is_an_error_and_not_a_wait() {
    let window = window(1000);
    assert!(matches!(window.put(1001, 1), Err(Error::TooLong { bytes: 1001, size: 1000 })));
    assert!(matches!(window.try_put(1001, 1), Err((Error::TooLong { .. }, 1))));
    assert_eq!((window.accepted(), window.refusals()), (0, 0));
    assert!(matches!(Window::<u64>::new(63, 0.05), Err(Error::Window { size: 63, least: 64 })));
}

#[test]
fn a_flood_of_empty_messages_finds_the_window_full() {
    let window = window(640);
    let put = (0..1000).filter(|index| window.try_put(0, *index).is_ok()).count();
    assert_eq!(put, 10);
    assert_eq!(take_all(&window).len(), 10);
    assert_eq!(window.used(), 0);
}

#[test]
fn a_batch_has_so_many_bytes_at_most_but_one_message_at_least() {
    let window = window(10_000);
    for (index, bytes) in [400, 300, 300, 5000, 64].into_iter().enumerate() {
        window.put(bytes, index as u64).unwrap();
    }
    let mut batch = Vec::new();
    assert_eq!(window.take(1000, &mut batch), 3);
    assert_eq!(window.take(1000, &mut batch), 1);
    assert_eq!(window.take(0, &mut batch), 1);
    assert_eq!(window.take(1000, &mut batch), 0);
    let items: Vec<_> = batch.iter().map(|taken| (taken.item, taken.sequence)).collect();
    assert_eq!(items, [(0, 0), (1, 1), (2, 2), (3, 3), (4, 4)]);
}

#[test]
fn no_message_overtakes_a_long_one_that_waits() {
    let window = window(1000);
    window.put(900, 1).unwrap();
    let mut long = window.reserve(500);
    assert!(poll(&mut long).is_pending());
    // There would be room for this one.
    assert!(matches!(window.try_put(64, 2), Err((Error::Full { .. }, 2))));
    let mut short = window.reserve(64);
    assert!(poll(&mut short).is_pending());
    drop(take_all(&window));
    let Poll::Ready(Ok(room)) = poll(&mut long) else { panic!("there is room") };
    room.put(3);
    let Poll::Ready(Ok(room)) = poll(&mut short) else { panic!("there is room") };
    room.put(4);
    let items: Vec<_> = take_all(&window).iter().map(|taken| taken.item).collect();
    assert_eq!(items, [3, 4]);
}

#[test]
fn who_stops_waiting_leaves_the_line_and_what_was_reserved() {
    let window = window(1000);
    window.put(900, 1).unwrap();
    let (mut long, mut short) = (window.reserve(500), window.reserve(64));
    assert!(poll(&mut long).is_pending());
    assert!(poll(&mut short).is_pending());
    drop(long);
    assert!(matches!(poll(&mut short), Poll::Ready(Ok(_))));
    // Granted and never looked at.
    let mut long = window.reserve(500);
    assert!(poll(&mut long).is_pending());
    drop(take_all(&window));
    assert_eq!(window.used(), 500);
    drop(long);
    assert_eq!(window.used(), 0);
}

#[test]
fn a_closed_window_sends_those_away_who_wait_and_keeps_what_it_let_in() {
    let window = window(1000);
    let room = window.try_reserve(800).unwrap();
    let mut late = window.reserve(500);
    assert!(poll(&mut late).is_pending());
    window.close();
    assert!(matches!(poll(&mut late), Poll::Ready(Err(Error::Closed))));
    assert!(matches!(window.put(64, 1), Err(Error::Closed)));
    assert!(!window.is_exhausted(), "a message may still come");
    room.put(7);
    let batch = take_all(&window);
    assert_eq!(batch[0].item, 7);
    assert!(window.is_exhausted());
    assert!(!window.wait_drained(Some(Instant::now())));
    drop(batch);
    assert!(window.wait_drained(None));
}

#[test]
fn room_that_was_not_used_is_free_again() {
    let window = window(1000);
    drop(window.try_reserve(1000).unwrap());
    assert_eq!(window.in_use(), Use::default());
    let room = window.try_reserve(1000).unwrap();
    window.close();
    drop(room);
    assert!(window.is_exhausted() && window.wait_drained(None));
}

#[test]
fn a_thread_that_waits_is_woken_by_the_last_message_in_flight() {
    let window = window(1000);
    window.put(950, 1).unwrap();
    thread::scope(|scope| {
        let waiting = scope.spawn(|| window.put(1000, 2));
        let patience = Instant::now() + Duration::from_secs(60);
        while window.waiting.load(Ordering::SeqCst) == 0 {
            assert!(Instant::now() < patience, "no thread waits");
            thread::yield_now();
        }
        drop(take_all(&window));
        waiting.join().unwrap().unwrap();
    });
    assert_eq!(take_all(&window)[0].item, 2);
}

#[test]
fn many_producers_and_takers_lose_nothing_and_keep_the_order_of_each_producer() {
    const PRODUCERS: u64 = 6;
    const MESSAGES: u64 = 3000;
    let window = window(4096);
    let seen = Mutex::new(Vec::new());
    thread::scope(|scope| {
        let producers: Vec<_> = (0..PRODUCERS)
            .map(|producer| {
                let window = &window;
                scope.spawn(move || {
                    for index in 0..MESSAGES {
                        let bytes = (producer * 131 + index * 71) % 1500;
                        let mut item = producer << 32 | index;
                        if index % 3 == 0 {
                            // Half of those who wait give up once.
                            drop(poll(&mut window.reserve(bytes)));
                        }
                        if index % 2 == 0 {
                            window.put(bytes, item).unwrap();
                            continue;
                        }
                        while let Err((error, back)) = window.try_put(bytes, item) {
                            assert!(matches!(error, Error::Full { .. }));
                            item = back;
                            thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        for _ in 0..2 {
            scope.spawn(|| {
                let mut batch = Vec::new();
                loop {
                    let listener = window.arrivals.listen();
                    if window.take(1000, &mut batch) == 0 {
                        if window.is_exhausted() {
                            return;
                        }
                        listener.wait(None);
                    }
                    assert!(window.used() <= window.size());
                    let items = batch.drain(..).map(|taken| (taken.sequence, taken.item));
                    seen.lock().unwrap().extend(items);
                }
            });
        }
        producers.into_iter().for_each(|producer| producer.join().unwrap());
        window.close();
    });
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert!(seen.iter().map(|(sequence, _)| *sequence).eq(0..PRODUCERS * MESSAGES));
    for producer in 0..PRODUCERS {
        let own = seen.iter().filter(|(_, item)| item >> 32 == producer);
        assert!(own.map(|(_, item)| item & 0xffff_ffff).eq(0..MESSAGES));
    }
    assert_eq!((window.used(), window.accepted()), (0, PRODUCERS * MESSAGES));
}

#[derive(Clone, Debug)]
enum Step {
    Put(u64),
    Take(u64),
    HandOn(usize),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0u64..1200).prop_map(Step::Put),
        (0u64..1200).prop_map(Step::Take),
        (0usize..8).prop_map(Step::HandOn),
    ]
}

proptest! {
    /// Compares the window with a model that counts.
    #[test]
    fn it_lets_in_what_fits_and_nothing_else(
        size in 64u64..1000,
        steps in proptest::collection::vec(step(), 0..200),
    ) {
        let window = window(size);
        let (mut buffered, mut in_flight) = (VecDeque::new(), Vec::new());
        let charged = |bytes: u64| bytes.max(Window::<u64>::LEAST);
        for step in steps {
            let used: u64 = buffered.iter().sum::<u64>()
                + in_flight.iter().map(|taken: &Taken<u64>| charged(taken.item)).sum::<u64>();
            prop_assert_eq!(window.used(), used);
            match step {
                Step::Put(bytes) => {
                    let fits = bytes <= size && used + charged(bytes) <= size;
                    prop_assert_eq!(window.try_put(bytes, bytes).is_ok(), fits);
                    buffered.extend(fits.then_some(charged(bytes)));
                }
                Step::Take(bytes) => {
                    let count = window.take(bytes, &mut in_flight);
                    let taken: u64 = buffered.drain(..count).sum();
                    prop_assert!(taken <= bytes || count == 1);
                    let next = buffered.front().map_or(u64::MAX, |next| taken + next);
                    prop_assert!(count > 0 || buffered.is_empty());
                    prop_assert!(next > bytes);
                }
                // In any order.
                Step::HandOn(index) => {
                    if index < in_flight.len() {
                        in_flight.swap_remove(index);
                    }
                }
            }
        }
    }
}
