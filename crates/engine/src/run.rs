//! The queue of pieces: taken from both ends, handed back by devices that fail.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use zeroize::Zeroizing;

use crate::error::Error;
use crate::fit::Fit;
use crate::job::{Data, Job, Stores, Transfer};
use crate::lock::lock;
use crate::outlet::{Finished, Outlet};
use crate::policy::Terms;
use crate::tally::Tally;
use left::{Left, Quota};
use piece::Slots;
use redo_queue::{RedoQueue, Stored};

pub(crate) use here::{finish, run_moved};
pub use piece::Piece;

mod here;
mod left;
mod piece;
mod redo_queue;

/// One job on its way through the devices.
///
/// Two lifetimes: `'j` is the job, `'d` the memory it borrows.
pub struct Run<'j, 'd> {
    job: &'j Job<'d>,
    piece_chunks: usize,
    state: Mutex<State<'j>>,
    /// Held while loading from an input of unknown length, so that order is kept.
    in_order: Mutex<()>,
    /// `None` where pieces are stored by all workers at once.
    outlet: Option<Outlet>,
    until: Option<Instant>,
}

/// The end of the queue to take from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where CPU workers take small pieces.
    Front,
    /// Where accelerators take large ones.
    Back,
}

/// An accelerator that takes part in a run.
pub(crate) struct Seat {
    pub name: String,
    pub terms: Terms,
    /// Its workers that have not left.
    pub workers: usize,
    pub progress: Progress,
    /// What its profile says that it takes, if it has one.
    pub line: Option<Fit>,
}

/// How far an accelerator has come.
#[derive(Clone, Copy, Default)]
pub(crate) struct Progress {
    in_flight: u64,
    /// Bytes that were left when it declined them.
    declined: Option<u64>,
}

struct State<'a> {
    left: Left<'a>,
    quota: Quota,
    seats: Vec<Seat>,
    handed_back: BTreeMap<u64, Piece<'a>>,
    redo_queue: RedoQueue,
    failure: Option<(u64, Error)>,
}

/// A worker's end of the run, its device, and the most that it may take.
struct Taker {
    end: End,
    seat: Option<usize>,
    most: u64,
}

impl<'j, 'd> Run<'j, 'd> {
    /// A run over memory, or over a transfer when `slots` is `None`. The CPU gets `cpu_chunks`
    /// of it while the accelerators on the `seats` work.
    pub(crate) fn new(
        job: &'j Job<'d>,
        slots: Option<&'j mut [u8]>,
        piece_chunks: usize,
        cpu_chunks: Option<u64>,
        seats: Vec<Seat>,
    ) -> Self {
        let left = match (slots, &job.data) {
            (Some(slots), _) => Left::Memory { first: 0, slots: Some(slots), with_last: true },
            (None, Data::Moved(transfer)) => match transfer.chunks() {
                Some(chunks) => Left::Known { first: chunks.start, end: chunks.end },
                None => Left::Unknown { first: 0, ended: false },
            },
            (None, Data::InPlace { .. } | Data::Records(_)) => Left::Known { first: 0, end: 0 },
        };
        let quota = if seats.is_empty() {
            Quota::default()
        } else {
            Quota::new(cpu_chunks, left.count(job.slot_len()))
        };
        let (handed_back, redo_queue, failure) = (BTreeMap::new(), RedoQueue::default(), None);
        let state = Mutex::new(State { left, quota, seats, handed_back, redo_queue, failure });
        let outlet = outlet(&job.data);
        Self { job, piece_chunks, state, in_order: Mutex::new(()), outlet, until: None }
    }

    /// The same run with a deadline.
    pub(crate) fn with_deadline(self, until: Instant) -> Self {
        Self { until: Some(until), ..self }
    }

    /// When a device should hand back unfinished pieces, because the CPU goes on without it. `None`
    /// if there is no limit.
    pub fn deadline(&self) -> Option<Instant> {
        self.until
    }

    /// How long the accelerator of that name was measured to take for `bytes`; `None` without a
    /// profile.
    pub fn expected(&self, name: &str, bytes: u64) -> Option<Duration> {
        let state = lock(&self.state);
        let seat = state.seats.iter().find(|seat| seat.name == name)?;
        seat.line.map(|line| line.time(bytes))
    }

    /// The job whose pieces these are.
    pub fn job(&self) -> &'j Job<'d> {
        self.job
    }

    /// The chunks that the plan holds right for one piece of a CPU worker. No piece that was handed
    /// back is larger.
    pub(crate) fn piece_chunks(&self) -> usize {
        self.piece_chunks
    }

    /// Chunks that no worker has taken yet, without those that were handed back; `None` if unknown
    /// until the end of the input.
    pub fn remaining(&self) -> Option<u64> {
        lock(&self.state).left.count(self.job.slot_len())
    }

    /// Takes at most `max_chunks` from `end`, or `None` when nothing is left for this end or the
    /// run failed.
    ///
    /// A moved piece is loaded into `buffer`, which comes back from [`Run::finish`]. Where order
    /// matters, all workers take from the front. Pieces that were handed back go to the front only:
    /// the CPU can do every piece that a device could not.
    ///
    /// # Errors
    /// [`Error::Load`].
    pub fn take(
        &self,
        end: End,
        max_chunks: usize,
        buffer: Zeroizing<Vec<u8>>,
    ) -> Result<Option<Piece<'j>>, Error> {
        self.take_by(&Taker { end, seat: None, most: max_chunks as u64 }, buffer)
    }

    /// As [`Run::take`] from the back, by the accelerator of that name, as large as the plan holds
    /// right for it now: less near the end, and nothing once the CPU would be sooner.
    ///
    /// # Errors
    /// [`Error::Load`].
    pub fn take_as(
        &self,
        name: &str,
        max_chunks: usize,
        buffer: Zeroizing<Vec<u8>>,
    ) -> Result<Option<Piece<'j>>, Error> {
        let seat = lock(&self.state).seats.iter().position(|seat| seat.name == name);
        let Some(seat) = seat else { return Ok(None) };
        let taker = Taker { end: End::Back, seat: Some(seat), most: max_chunks as u64 };
        self.take_by(&taker, buffer)
    }

    fn take_by(
        &self,
        taker: &Taker,
        buffer: Zeroizing<Vec<u8>>,
    ) -> Result<Option<Piece<'j>>, Error> {
        let slot_len = self.job.slot_len();
        let transfer = match &self.job.data {
            Data::Moved(transfer) => Some(*transfer),
            Data::InPlace { .. } | Data::Records(_) => None,
        };
        // An input of unknown length is read by one worker at a time.
        let unknown = transfer.is_some_and(|transfer| transfer.chunks().is_none());
        let _turn = unknown.then(|| lock(&self.in_order));
        let mut state = lock(&self.state);
        if state.failure.is_some() {
            return Ok(None);
        }
        if taker.end == End::Front {
            if let Some((_, piece)) = state.handed_back.pop_first() {
                return Ok(Some(piece));
            }
            let again = state.redo_queue.take(self.piece_chunks as u64);
            if let Some((wanted, transfer)) = again.zip(transfer) {
                drop(state);
                return self.load(transfer, wanted, None, buffer);
            }
        }
        let Some(granted) = state.granted(taker, slot_len) else { return Ok(None) };
        let seat = taker.seat.map(|seat| (seat, granted));
        let Some(transfer) = transfer else {
            let taken = state.left.take_memory(taker.end, granted, slot_len);
            return Ok(taken.map(|taken| {
                state.settle(taker, granted);
                let slots = Slots::Borrowed(taken.slots);
                Piece { first: taken.first, last: taken.last, slots, seat }
            }));
        };
        let end = if transfer.stores() == Stores::InOrder { End::Front } else { taker.end };
        let Some(wanted) = state.left.take_range(end, granted) else { return Ok(None) };
        state.settle(taker, granted);
        drop(state);
        self.load(transfer, wanted, seat, buffer)
    }

    /// Has a finished piece stored, now or later, and returns a buffer for the next. Where order
    /// matters this may wait for pieces that were taken before this one: a device that keeps
    /// several finishes them in the order in which it took them.
    ///
    /// # Errors
    /// [`Error::Store`], of this piece or of another that this worker stored.
    pub fn finish(&self, piece: Piece<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
        self.landed(piece.seat);
        match piece.slots {
            Slots::Borrowed(_) => Ok(Zeroizing::default()),
            Slots::Loaded { buffer, len } => {
                let end = piece.first + len.div_ceil(self.job.slot_len()) as u64;
                let seat = piece.seat.map(|(seat, _)| seat);
                let finished = Finished { first: piece.first, end, buffer, len, seat };
                match &self.outlet {
                    Some(outlet) => outlet.put(finished, |finished| self.store(finished)),
                    None => self.store(&finished).map(|()| finished.buffer),
                }
            }
        }
    }

    /// Gives back a piece whose input is untouched, for the CPU to finish. A device that does so
    /// leaves the run with a [`crate::Stop::Fault`] or [`crate::Stop::Wrong`].
    pub fn hand_back(&self, piece: Piece<'j>) {
        self.landed(piece.seat);
        let len = self.piece_chunks.max(1).saturating_mul(self.job.slot_len());
        let mut state = lock(&self.state);
        for piece in piece.cut(len, self.job.slot_len()) {
            state.handed_back.insert(piece.first, piece);
        }
    }

    /// Has all that the accelerator of that name has stored, and will store yet, done again by the
    /// CPU, as far as the transfer permits it: it was found to compute something wrong.
    pub(crate) fn distrust(&self, name: &str) {
        let mut state = lock(&self.state);
        let State { seats, redo_queue, .. } = &mut *state;
        let Some(seat) = seats.iter().position(|seat| seat.name == name) else { return };
        if let Data::Moved(transfer) = &self.job.data {
            redo_queue.distrust(seat, *transfer);
        }
    }

    /// The pieces and bytes of the accelerator of that name that the CPU has done again.
    pub(crate) fn redone(&self, name: &str) -> Tally {
        let state = lock(&self.state);
        let seat = state.seats.iter().position(|seat| seat.name == name);
        seat.map_or_else(Tally::default, |seat| state.redo_queue.redone(seat))
    }

    /// True while a piece waits for a taker.
    pub(crate) fn pending(&self) -> bool {
        let state = lock(&self.state);
        let more =
            !state.handed_back.is_empty() || state.redo_queue.any() || !state.left.is_empty();
        state.failure.is_none() && more
    }

    /// A worker of the accelerator of that name has left. When the last one has, all that is left
    /// is the CPU's. Returns the bytes that it declined.
    pub(crate) fn leave(&self, name: &str) -> Option<u64> {
        let mut state = lock(&self.state);
        let seat = state.seats.iter_mut().find(|seat| seat.name == name)?;
        seat.workers = seat.workers.saturating_sub(1);
        let declined = seat.progress.declined;
        if state.seats.iter().all(|seat| seat.workers == 0) {
            state.quota = Quota::default();
        }
        declined
    }

    /// Ends the run for all workers. Reports the failure with the smallest chunk, so that the same
    /// damage gives the same message in every run.
    pub(crate) fn fail(&self, error: Error) {
        let chunk = error.chunk();
        {
            let mut state = lock(&self.state);
            if state.failure.as_ref().is_none_or(|(earlier, _)| chunk < *earlier) {
                state.failure = Some((chunk, error));
            }
        }
        self.let_go();
    }

    /// Wakes the workers that wait for a piece that will never come.
    pub(crate) fn let_go(&self) {
        if let Some(outlet) = &self.outlet {
            outlet.close();
        }
    }

    pub(crate) fn into_failure(self) -> Option<Error> {
        let state = self.state.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        state.failure.map(|(_, error)| error)
    }

    fn store(&self, finished: &Finished) -> Result<(), Error> {
        let Data::Moved(transfer) = &self.job.data else { return Ok(()) };
        transfer
            .store(finished.first, &finished.buffer[..finished.len])
            .map_err(|source| Error::Store { chunk: finished.first, source })?;
        if let Some(seat) = finished.seat {
            let stored = Stored { chunks: finished.first..finished.end, len: finished.len };
            lock(&self.state).redo_queue.stored(seat, stored, *transfer);
        }
        Ok(())
    }

    fn load(
        &self,
        transfer: &dyn Transfer,
        wanted: Range<u64>,
        seat: Option<(usize, u64)>,
        mut buffer: Zeroizing<Vec<u8>>,
    ) -> Result<Option<Piece<'j>>, Error> {
        let first = wanted.start;
        let room = transfer.room(&wanted, self.job.slot_len());
        if buffer.len() < room {
            buffer.resize(room, 0);
        }
        let loaded = transfer
            .load(wanted, &mut buffer[..room])
            .map_err(|source| Error::Load { chunk: first, source })?;
        if loaded.last
            && let Left::Unknown { ended, .. } = &mut lock(&self.state).left
        {
            *ended = true;
        }
        if loaded.len == 0 {
            return Ok(None);
        }
        let slots = Slots::Loaded { buffer, len: loaded.len };
        Ok(Some(Piece { first, last: loaded.last, slots, seat }))
    }

    /// A piece is no longer in flight.
    fn landed(&self, seat: Option<(usize, u64)>) {
        if let Some((index, granted)) = seat {
            let progress = &mut lock(&self.state).seats[index].progress;
            progress.in_flight = progress.in_flight.saturating_sub(granted);
        }
    }
}

impl State<'_> {
    /// The chunks that `taker` may take now.
    fn granted(&mut self, taker: &Taker, slot_len: usize) -> Option<u64> {
        let quota = self.quota.of(taker.end);
        let left = match (self.left.count(slot_len), quota) {
            (Some(left), Some(quota)) => Some(left.min(quota)),
            (left, quota) => left.or(quota),
        };
        let wanted = match taker.seat {
            None => Some(u64::MAX),
            Some(index) => {
                let Seat { terms, progress, .. } = &mut self.seats[index];
                let wanted = terms.wanted(left, progress.in_flight);
                let declined = left.filter(|&left| left > 0 && wanted.is_none());
                progress.declined = declined.map(|chunks| chunks.saturating_mul(slot_len as u64));
                wanted
            }
        };
        let granted = wanted?.min(taker.most).min(quota.unwrap_or(u64::MAX));
        (granted > 0).then_some(granted)
    }

    fn settle(&mut self, taker: &Taker, granted: u64) {
        self.quota.spend(taker.end, granted);
        if let Some(index) = taker.seat {
            self.seats[index].progress.in_flight += granted;
        }
    }
}

fn outlet(data: &Data<'_>) -> Option<Outlet> {
    let Data::Moved(transfer) = data else { return None };
    match transfer.stores() {
        Stores::Together => None,
        Stores::OneByOne => Some(Outlet::new(None)),
        Stores::InOrder => {
            Some(Outlet::new(Some(transfer.chunks().map_or(0, |chunks| chunks.start))))
        }
    }
}

impl Error {
    /// The chunk at which the run failed.
    fn chunk(&self) -> u64 {
        match self {
            Self::Authentication { chunk }
            | Self::Load { chunk, .. }
            | Self::Store { chunk, .. }
            | Self::Cipher { chunk, .. } => *chunk,
            _ => 0,
        }
    }
}

#[cfg(test)]
mod tests;
