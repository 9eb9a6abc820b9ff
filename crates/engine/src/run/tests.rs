//! Which side may take which pieces, without any thread.

use std::time::Duration;

use super::*;
use crate::crypto::{AesKernel, AesKey};
use crate::job::Cipher;
use crate::policy::ChunkTimes;

const CHUNK: usize = 16;

fn seat(terms: Terms) -> Seat {
    Seat { name: "gpu".into(), terms, workers: 2, progress: Progress::default(), line: None }
}

fn terms(full: u64, may_decline: bool) -> Terms {
    Terms { full, least: 2, slots: 2, may_decline, times: None }
}

/// Lets `work` take from a run over `chunks` chunks, whose CPU takes three at a time.
fn with_run(chunks: usize, cpu_chunks: Option<u64>, terms: Terms, work: impl FnOnce(&Run<'_, '_>)) {
    let key = AesKey::new(AesKernel::Soft, &[0; 16]).unwrap();
    let cipher = Cipher::EcbEncrypt(&key);
    let job =
        Job { cipher, chunk_len: CHUNK, data: Data::InPlace { slots: &mut [] }, deadline: None };
    let mut memory = vec![0; chunks * CHUNK];
    work(&Run::new(&job, Some(&mut memory), 3, cpu_chunks, vec![seat(terms)]));
}

/// First chunk and number of chunks.
fn take<'j>(run: &Run<'j, '_>, end: Option<End>) -> Option<(u64, usize, Piece<'j>)> {
    let buffer = Zeroizing::default();
    let piece = match end {
        Some(end) => run.take(end, 3, buffer),
        None => run.take_as("gpu", usize::MAX, buffer),
    };
    let mut piece = piece.unwrap()?;
    Some((piece.first(), piece.slots().len() / CHUNK, piece))
}

#[test]
fn pieces_shrink_towards_the_middle() {
    with_run(100, None, terms(20, true), |run| {
        let mut taken = Vec::new();
        while let Some((first, chunks, _)) = take(run, None) {
            assert_eq!(run.remaining(), Some(first));
            taken.push(chunks);
        }
        assert_eq!(taken, [20, 20, 15, 11, 8, 6, 5, 3, 3, 2, 2, 2, 2]);
        assert_eq!(run.leave("gpu"), Some(CHUNK as u64), "one chunk was declined");
        assert_eq!(
            take(run, Some(End::Front)).map(|(first, chunks, _)| (first, chunks)),
            Some((0, 1))
        );
        assert!(!run.pending());
    });
}

#[test]
fn who_is_not_asked_gets_nothing() {
    with_run(10, None, terms(20, false), |run| {
        assert!(run.take_as("another", 3, Zeroizing::default()).unwrap().is_none());
    });
}

#[test]
fn each_side_keeps_to_its_share_until_the_other_leaves() {
    with_run(20, Some(4), terms(64, false), |run| {
        let front = |run| take(run, Some(End::Front)).map(|(first, chunks, _)| (first, chunks));
        assert_eq!((front(run), front(run), front(run)), (Some((0, 3)), Some((3, 1)), None));
        let (first, chunks, piece) = take(run, None).unwrap();
        assert_eq!((first, chunks), (16, 4));
        run.hand_back(piece);
        assert_eq!(front(run), Some((16, 3)), "a piece that was handed back is in no share");
        assert_eq!(front(run), Some((19, 1)));
        assert_eq!(front(run), None);
        assert_eq!(run.leave("gpu"), None);
        assert_eq!(front(run), None, "its other worker is still there");
        assert_eq!(run.leave("gpu"), None);
        assert_eq!(front(run), Some((4, 3)));
        assert_eq!(run.remaining(), Some(9));
    });
}

#[test]
fn what_is_in_flight_counts_against_an_accelerator() {
    let times = ChunkTimes { startup: Duration::ZERO, accelerator_s: 1.0, cpu_s: 0.1 };
    with_run(100, None, Terms { times: Some(times), ..terms(20, true) }, |run| {
        let (_, chunks, first) = take(run, None).unwrap();
        assert_eq!(chunks, 9, "as many as it does while the CPU does ninety");
        assert!(take(run, None).is_none(), "the CPU does the others sooner");
        run.finish(first).unwrap();
        let (_, chunks, second) = take(run, None).unwrap();
        assert_eq!(chunks, 8);
        run.hand_back(second);
        assert_eq!(take(run, None).map(|(_, chunks, _)| chunks), Some(7));
    });
}

#[test]
fn only_the_last_part_of_the_last_piece_is_the_last() {
    with_run(7, Some(0), terms(64, false), |run| {
        let piece = run.take(End::Back, 7, Zeroizing::default()).unwrap().unwrap();
        assert!(piece.is_last());
        run.hand_back(piece);
        let mut seen = Vec::new();
        while let Some((first, chunks, piece)) = take(run, Some(End::Front)) {
            seen.push((first, chunks, piece.is_last()));
        }
        assert_eq!(seen, [(0, 3, false), (3, 3, false), (6, 1, true)]);
    });
}
