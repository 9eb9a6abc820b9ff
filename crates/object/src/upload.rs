//! A new object, sent in parts while it is written.
//!
//! What was sent once is never made again: a part keeps its bytes until the store has acknowledged them, and
//! a retry sends the same. It is long because it holds all of an upload, from its beginning to its end or abort.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use object_store::multipart::PartId;
use object_store::{ObjectStoreExt, PutMode, PutOptions, PutPayload};
use tokio::sync::OwnedSemaphorePermit;
use tokio::task::JoinHandle;
use wattlock_file::{ReadAt, RemoteObject, RemoteOutput};

use crate::address::Address;
use crate::error::{self, plain};
use crate::journal::Journal;
use crate::lock::lock;
use crate::network::Network;
use crate::object::Object;
use crate::store::{Parts, Store};

/// An object that is being written. Dropped before it is complete, it leaves nothing.
pub struct Upload {
    network: Arc<Network>,
    store: Arc<Store>,
    address: Address,
    name: PathBuf,
    overwrite: bool,
    /// True for a container, whose first bytes no other object has.
    is_sealed: bool,
    part_len: PartLen,
    /// The part that is being filled.
    buffer: BytesMut,
    room: Option<OwnedSemaphorePermit>,
    /// The first bytes of the object, by which it is known again.
    start: Vec<u8>,
    len: u64,
    /// Bytes that it will have, as far as that is known.
    expected: u64,
    /// The upload in parts, once there is more than one.
    begun: Option<Arc<Begun>>,
    /// The parts that the store has acknowledged, from the first on.
    parts: Vec<PartId>,
    /// Those that follow and are on their way.
    under_way: VecDeque<JoinHandle<Result<PartId, object_store::Error>>>,
    /// Memory of parts that were sent.
    sent: Arc<Mutex<Vec<BytesMut>>>,
    /// Where it is noted what was acknowledged, if the upload is to go on after a crash.
    journal: Option<Journal>,
}

/// An upload in parts that the store knows.
struct Begun {
    store: Arc<Store>,
    network: Weak<Network>,
    address: Address,
    id: String,
    /// How far it is.
    state: AtomicU8,
}

/// How long parts are.
#[derive(Clone, Copy)]
struct PartLen {
    /// Of an object of known length, all; else the first thousand, and twice as much for each thousand
    /// that follows.
    first: u64,
    is_fixed: bool,
}

impl PartLen {
    fn new(len: Option<u64>) -> Self {
        // A store takes 10,000 parts.
        let fitting = len.map_or(0, |len| (len + len / 512).div_ceil(9000).next_multiple_of(MIB));
        Self { first: fitting.max(SHORTEST), is_fixed: len.is_some() }
    }

    fn of(self, part: usize) -> u64 {
        if self.is_fixed { self.first } else { self.first << (part / 1000).min(8) }
    }
}

const MIB: u64 = 1 << 20;

/// S3 takes parts from 5 MiB on; longer ones take fewer requests.
const SHORTEST: u64 = 8 * MIB;

/// Parts of one object that are on their way at a time.
const MOST_PARTS: usize = 8;

/// As many first bytes tell one object from all others: a container starts with a random header.
pub(crate) const START: usize = 4096;

/// Uploads that a signal has to abort.
static BEGUN: Mutex<Vec<Weak<Begun>>> = Mutex::new(Vec::new());

/// Uploads whose beginning the store was asked for, and which are not among [`BEGUN`] yet.
static BEGINNING: Mutex<usize> = Mutex::new(0);

/// That [`BEGINNING`] became less.
static HAS_BEGUN: Condvar = Condvar::new();

/// Stands for one of [`BEGINNING`].
struct Beginning;

impl Beginning {
    /// None once the program ends: nothing begins any more.
    fn new() -> Option<Self> {
        *lock(&BEGINNING) += 1;
        let this = Self;
        (!IS_ENDING.load(Ordering::SeqCst)).then_some(this)
    }

    /// Waits until none is left, or until `end`.
    fn wait_for_all(end: Instant) {
        let mut left = lock(&BEGINNING);
        while *left > 0 {
            let wait = end.saturating_duration_since(Instant::now());
            if wait.is_zero() {
                return;
            }
            let waited = HAS_BEGUN.wait_timeout(left, wait);
            left = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl Drop for Beginning {
    fn drop(&mut self) {
        *lock(&BEGINNING) -= 1;
        HAS_BEGUN.notify_all();
    }
}

/// True once all uploads are aborted, because the program ends.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Aborts the uploads in parts that are under way, so that nothing of them stays in their stores. Gives up
/// after five seconds. For a program that ends: threads that write to an upload do not go on.
pub fn abort_uploads() {
    IS_ENDING.store(true, Ordering::SeqCst);
    let end = Instant::now() + PATIENCE;
    // The store may know of an upload whose number has not come yet.
    Beginning::wait_for_all(end);
    let begun: Vec<_> = take(&mut *lock(&BEGUN)).iter().filter_map(Weak::upgrade).collect();
    let Some(network) = begun.iter().find_map(|upload| upload.network.upgrade()) else { return };
    let aborts: Vec<_> = begun
        .into_iter()
        .map(|upload| network.start(async move { upload.abort().await }))
        .collect();
    let aborts = futures_util::future::join_all(aborts);
    let left = end.saturating_duration_since(Instant::now());
    let _ = network.wait(async { tokio::time::timeout(left, aborts).await });
}

/// How long an upload that is given up is waited for.
const PATIENCE: Duration = Duration::from_secs(5);

/// How far an upload in parts is.
const OPEN: u8 = 0;
/// It is being completed, and may appear.
const COMPLETING: u8 = 1;
/// It has appeared, or was aborted.
const CLOSED: u8 = 2;

impl Begun {
    fn is_open(&self) -> bool {
        self.state.load(Ordering::SeqCst) == OPEN
    }

    /// Goes from one state to another; false if it is in a third.
    fn change(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    /// Aborts it, if it is still open; errors are dropped, as there is nothing else to be done.
    async fn abort(&self) {
        if self.change(OPEN, CLOSED) {
            let _ = self.parts().replacing.abort_multipart(&self.address.key, &self.id).await;
        }
    }

    fn parts(&self) -> &Parts {
        self.store.parts.as_ref().expect("an upload is made for a store that takes parts")
    }
}

impl Upload {
    pub(crate) fn new(
        network: Arc<Network>,
        store: Arc<Store>,
        address: Address,
        overwrite: bool,
        len: Option<u64>,
    ) -> Self {
        Self {
            name: address.to_path(),
            network,
            store,
            address,
            overwrite,
            is_sealed: false,
            part_len: PartLen::new(len),
            buffer: BytesMut::new(),
            room: None,
            start: Vec::new(),
            len: 0,
            // With tags and a header.
            expected: len.map_or(u64::MAX, |len| len + len / 512 + 4096),
            begun: None,
            parts: Vec::new(),
            under_way: VecDeque::new(),
            sent: Arc::default(),
            journal: None,
        }
    }

    /// The same of a container, which is known again after the answer of the store was lost.
    #[must_use]
    pub fn sealed(mut self) -> Self {
        self.is_sealed = true;
        self
    }

    /// The number of the part that is being filled.
    fn part(&self) -> usize {
        self.parts.len() + self.under_way.len()
    }

    /// Sends the buffer as the next part of an upload in parts.
    fn send_part(&mut self) -> io::Result<()> {
        while self.under_way.len() >= MOST_PARTS
            || self.under_way.front().is_some_and(JoinHandle::is_finished)
        {
            self.await_part()?;
        }
        let begun = self.begin()?;
        if !begun.is_open() {
            return Err(io::Error::other("the upload was aborted"));
        }
        let (index, room, payload) = (self.part(), self.room.take(), self.take_buffer());
        let sent = Arc::clone(&self.sent);
        self.under_way.push_back(self.network.start(async move {
            let bytes = PutPayload::from_bytes(payload.clone());
            let (parts, key) = (&begun.parts().replacing, &begun.address.key);
            let part = parts.put_part(key, &begun.id, index, bytes).await;
            // Its memory is warm, and takes another part.
            if let Ok(buffer) = payload.try_into_mut() {
                lock(&sent).push(buffer);
            }
            drop(room);
            part
        }));
        Ok(())
    }

    /// Waits until the store has acknowledged the oldest part.
    fn await_part(&mut self) -> io::Result<()> {
        let Some(part) = self.under_way.pop_front() else { return Ok(()) };
        let part = self.network.wait(part).map_err(io::Error::other)?;
        let part = part.map_err(|error| plain(&error))?;
        if let Some(journal) = &mut self.journal {
            journal.add(self.parts.len(), &part)?;
        }
        self.parts.push(part);
        Ok(())
    }

    /// The upload in parts, which the first part begins.
    fn begin(&mut self) -> io::Result<Arc<Begun>> {
        if let Some(begun) = &self.begun {
            return Ok(Arc::clone(begun));
        }
        if !self.overwrite {
            self.check_is_new()?;
        }
        let _beginning = Beginning::new()
            .ok_or_else(|| io::Error::other("the upload was not started: the program is ending"))?;
        let key = &self.address.key;
        let parts = self.store.parts.as_ref();
        let parts = parts.expect("an upload is made for a store that takes parts");
        let created = self.network.wait(parts.replacing.create_multipart(key));
        let id = created.map_err(|error| plain(&error))?;
        if let Some(journal) = &mut self.journal {
            journal.begin(&id, self.part_len.first)?;
        }
        Ok(self.begun_as(id))
    }

    fn begun_as(&mut self, id: String) -> Arc<Begun> {
        let begun = Arc::new(Begun {
            store: Arc::clone(&self.store),
            network: Arc::downgrade(&self.network),
            address: self.address.clone(),
            id,
            state: AtomicU8::new(OPEN),
        });
        self.begun = Some(Arc::clone(&begun));
        // One with a journal goes on when the program runs again.
        if self.journal.is_some() {
            return begun;
        }
        let mut all = lock(&BEGUN);
        all.retain(|upload| upload.upgrade().is_some_and(|upload| upload.is_open()));
        all.push(Arc::downgrade(&begun));
        begun
    }

    /// Goes on with the upload that `journal` records, of an object of `len` bytes that starts with `start`.
    /// Returns how many of its bytes need not be written.
    pub(crate) fn resume(&mut self, journal: Journal, len: u64, start: Vec<u8>) -> u64 {
        let begun = journal.begun.as_ref().map(|begun| (begun.id.clone(), begun.part_len.max(1)));
        let acknowledged = journal.parts.clone();
        self.journal = Some(journal);
        let Some((id, part_len)) = begun else { return 0 };
        self.part_len = PartLen { first: part_len, is_fixed: true };
        // The last part may be short, and is sent again.
        self.parts = acknowledged.into_iter().take((len / part_len) as usize).collect();
        self.begun_as(id);
        self.len = self.parts.len() as u64 * part_len;
        self.start = start;
        self.len
    }

    /// Fails early if there is an object already.
    fn check_is_new(&self) -> io::Result<()> {
        match self.network.wait(self.store.objects.head(&self.address.key)) {
            Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
            Err(object_store::Error::NotFound { .. }) => Ok(()),
            Err(error) => Err(plain(&error)),
        }
    }

    /// The buffer's bytes, and room in it for the next part.
    fn take_buffer(&mut self) -> Bytes {
        let next = lock(&self.sent).pop().unwrap_or_default();
        let full = std::mem::replace(&mut self.buffer, next);
        self.buffer.clear();
        full.freeze()
    }

    /// Sends an object that is no longer than a part.
    fn put_whole(&mut self) -> io::Result<()> {
        let payload = self.take_buffer();
        let mode = if self.overwrite { PutMode::Overwrite } else { PutMode::Create };
        for attempt in 0.. {
            let options = PutOptions { mode: mode.clone(), ..PutOptions::default() };
            let bytes = PutPayload::from_bytes(payload.clone());
            let put = self.store.objects.put_opts(&self.address.key, bytes, options);
            match self.network.wait(put) {
                Ok(_) => return Ok(()),
                // The answer to an attempt may have been lost.
                Err(object_store::Error::AlreadyExists { .. }) if self.is_there() => return Ok(()),
                Err(error) if attempt < MOST_ATTEMPTS && error::is_transport(&error) => {
                    if self.is_there() {
                        return Ok(());
                    }
                }
                Err(error) => return Err(plain(&error)),
            }
        }
        Ok(())
    }

    /// Completes the upload in parts.
    fn complete_parts(&mut self, begun: &Begun) -> io::Result<()> {
        while !self.under_way.is_empty() {
            self.await_part()?;
        }
        if !begun.change(OPEN, COMPLETING) {
            return Err(io::Error::other("the upload was aborted"));
        }
        let stores = begun.parts();
        let store = if self.overwrite { &stores.replacing } else { &*stores.creating };
        let parts = take(&mut self.parts);
        let completed =
            self.network.wait(store.complete_multipart(&self.address.key, &begun.id, parts));
        // The answer to an attempt may have been lost.
        if completed.is_ok() || self.is_there() {
            begun.change(COMPLETING, CLOSED);
            return Ok(());
        }
        begun.change(COMPLETING, OPEN);
        Err(match completed {
            Err(error) if error::is_precondition(&error) => io::ErrorKind::AlreadyExists.into(),
            Err(error) => plain(&error),
            Ok(_) => io::ErrorKind::Other.into(),
        })
    }

    /// True if the store has this very object; false if that is unknown, as of anything but a container.
    fn is_there(&self) -> bool {
        if !self.is_sealed {
            return false;
        }
        let there = self.object();
        let mut start = vec![0; self.start.len()];
        there.len().is_ok_and(|len| len == self.len)
            && there.read_exact_at(&mut start, 0).is_ok()
            && start == self.start
    }

    /// What is in the store now.
    fn object(&self) -> Object {
        let (network, store) = (Arc::clone(&self.network), Arc::clone(&self.store));
        Object::new(network, store, self.address.clone(), None)
    }
}

/// A request is repeated as often if its connection fails; what the store answers is repeated by the library.
const MOST_ATTEMPTS: usize = 5;

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        unless_ending(self.add(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns `result`. If it failed because the program ends, the thread waits for the end.
fn unless_ending<T>(result: io::Result<T>) -> io::Result<T> {
    while result.is_err() && IS_ENDING.load(Ordering::SeqCst) {
        std::thread::park();
    }
    result
}

impl Upload {
    /// Takes bytes, as far as they fit into the part.
    fn add(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() as u64 >= self.part_len.of(self.part()) {
            self.send_part()?;
        }
        let part_len = self.part_len.of(self.part());
        if self.buffer.is_empty() {
            if self.begun.is_some() {
                self.room = self.network.room_for_part(part_len);
            }
            self.buffer.reserve(part_len.min(self.expected - self.len.min(self.expected)) as usize);
        }
        let len = (part_len - self.buffer.len() as u64).min(bytes.len() as u64) as usize;
        self.buffer.extend_from_slice(&bytes[..len]);
        if self.start.len() < START {
            let more = (START - self.start.len()).min(len);
            self.start.extend_from_slice(&bytes[..more]);
        }
        self.len += len as u64;
        Ok(len)
    }

    /// Sends the rest, and lets the object appear.
    fn finish(&mut self) -> io::Result<()> {
        if self.begun.is_none() {
            return self.put_whole();
        }
        if !self.buffer.is_empty() {
            self.send_part()?;
        }
        let begun = self.begin()?;
        self.complete_parts(&begun)
    }
}

impl RemoteOutput for Upload {
    fn name(&self) -> &Path {
        &self.name
    }

    fn complete(&mut self) -> io::Result<Arc<dyn RemoteObject>> {
        unless_ending(self.finish())?;
        Ok(Arc::new(self.object()))
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.under_way.iter().for_each(JoinHandle::abort);
        if let Some(begun) = self.begun.as_ref().filter(|_| self.journal.is_none()) {
            let abort = async { tokio::time::timeout(PATIENCE, begun.abort()).await };
            let _ = self.network.wait(abort);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_as_many_as_a_store_takes() {
        for len in [0, 1, 1 << 30, 80 << 30, 1 << 40, 5 << 40] {
            let part_len = PartLen::new(Some(len));
            assert!((len + len / 1000).div_ceil(part_len.of(0)) <= 9000, "{len}");
            assert_eq!(part_len.of(0), part_len.of(9999));
        }
        let unknown = PartLen::new(None);
        let most: u64 = (0..10_000).map(|part| unknown.of(part)).sum();
        assert!(most > 3 << 40, "{most}");
    }
}
