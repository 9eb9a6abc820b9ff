//! What waits until other machines have a copy.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::lock::lock;

/// What waits until each of some peers has stored a part of a segment.
pub struct Copies {
    peers: usize,
    waiting: Mutex<Vec<Waiting>>,
}

struct Waiting {
    segment: PathBuf,
    len: u64,
    /// The peers that do not have it yet.
    missing: Vec<usize>,
    /// Done once all have it; dropped before that, it knows.
    then: Box<dyn FnOnce() + Send>,
}

impl Copies {
    /// Waits for as many peers.
    pub(crate) fn new(peers: usize) -> Self {
        Self { peers, waiting: Mutex::default() }
    }

    /// Does `then` once all peers have the first `len` bytes of a segment. To be said before they can have them.
    pub(crate) fn wait(&self, segment: &Path, len: u64, then: impl FnOnce() + Send + 'static) {
        let (segment, missing) = (segment.to_owned(), (0..self.peers).collect());
        lock(&self.waiting).push(Waiting { segment, len, missing, then: Box::new(then) });
    }

    /// Notes that a peer has stored the first `len` bytes of a segment.
    pub(crate) fn peer_has(&self, peer: usize, segment: &Path, len: u64) {
        let mut waiting = lock(&self.waiting);
        let is_met = |waiting: &mut Waiting| {
            if waiting.segment == segment && waiting.len <= len {
                waiting.missing.retain(|missing| *missing != peer);
            }
            waiting.missing.is_empty()
        };
        let met: Vec<_> = waiting.extract_if(.., is_met).collect();
        drop(waiting);
        met.into_iter().for_each(|waiting| (waiting.then)());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    #[test]
    fn all_peers_have_to_have_it() {
        let copies = Copies::new(2);
        let done = Arc::new(AtomicU64::new(0));
        for len in [10, 20] {
            let done = Arc::clone(&done);
            copies.wait(Path::new("a"), len, move || {
                done.fetch_add(len, Ordering::SeqCst);
            });
        }
        let has = |peer, segment: &str, len| {
            copies.peer_has(peer, Path::new(segment), len);
            done.load(Ordering::SeqCst)
        };
        assert_eq!(has(0, "a", 15), 0);
        assert_eq!(has(0, "a", 15), 0, "the same peer");
        assert_eq!(has(1, "b", 99), 0, "another segment");
        assert_eq!(has(1, "a", 9), 0);
        assert_eq!(has(1, "a", 20), 10);
        assert_eq!(has(0, "a", 20), 30);
    }
}
