//! The queue of pieces: taken from both ends, handed back by devices that fail.

use std::sync::{Mutex, MutexGuard};

use zeroize::Zeroizing;

use crate::Error;
use crate::job::{Data, Job, Stores, Transfer};
use crate::outlet::{Finished, Outlet};

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
}

/// A part of the run that one worker takes.
pub struct Piece<'a> {
    first: u64,
    last: bool,
    slots: Slots<'a>,
}

/// The end of the queue to take from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// Where CPU workers take small pieces.
    Front,
    /// Where accelerators take large ones.
    Back,
}

enum Slots<'a> {
    Borrowed(&'a mut [u8]),
    Loaded { buffer: Zeroizing<Vec<u8>>, len: usize },
}

struct State<'a> {
    left: Left<'a>,
    handed_back: Vec<Piece<'a>>,
    failure: Option<(u64, Error)>,
}

/// The chunks that nobody has taken yet.
enum Left<'a> {
    Memory { first: u64, slots: Option<&'a mut [u8]>, with_last: bool },
    Known { first: u64, end: u64 },
    Unknown { first: u64, ended: bool },
}

impl<'j, 'd> Run<'j, 'd> {
    /// A run over memory, or over a transfer when `slots` is `None`.
    pub(crate) fn new(job: &'j Job<'d>, slots: Option<&'j mut [u8]>, piece_chunks: usize) -> Self {
        let left = match (slots, &job.data) {
            (Some(slots), _) => Left::Memory { first: 0, slots: Some(slots), with_last: true },
            (None, Data::Moved(transfer)) => match transfer.chunks() {
                Some(chunks) => Left::Known { first: chunks.start, end: chunks.end },
                None => Left::Unknown { first: 0, ended: false },
            },
            (None, Data::InPlace { .. }) => Left::Known { first: 0, end: 0 },
        };
        let state = Mutex::new(State { left, handed_back: Vec::new(), failure: None });
        let outlet = match &job.data {
            Data::InPlace { .. } => None,
            Data::Moved(transfer) => match transfer.stores() {
                Stores::Together => None,
                Stores::OneByOne => Some(Outlet::new(None)),
                Stores::InOrder => {
                    Some(Outlet::new(Some(transfer.chunks().map_or(0, |chunks| chunks.start))))
                }
            },
        };
        Self { job, piece_chunks, state, in_order: Mutex::new(()), outlet }
    }

    /// The job whose pieces these are.
    pub fn job(&self) -> &'j Job<'d> {
        self.job
    }

    /// The chunks that the plan holds right for one piece of a CPU worker.
    pub fn piece_chunks(&self) -> usize {
        self.piece_chunks
    }

    /// Chunks that nobody has taken yet, without those that were handed back; `None` if only the
    /// end of the input will tell.
    pub fn remaining(&self) -> Option<u64> {
        lock(&self.state).left.count(self.job.slot_len())
    }

    /// Takes at most `max_chunks` from `end`, or `None` when nothing is left or the run failed.
    ///
    /// A moved piece is loaded into `buffer`, which comes back from [`Run::finish`]. Where order
    /// matters, everybody takes from the front.
    ///
    /// # Errors
    /// [`Error::Load`].
    pub fn take(
        &self,
        end: End,
        max_chunks: usize,
        buffer: Zeroizing<Vec<u8>>,
    ) -> Result<Option<Piece<'j>>, Error> {
        let transfer = match &self.job.data {
            Data::Moved(transfer) => *transfer,
            Data::InPlace { .. } => return Ok(self.take_memory(end, max_chunks)),
        };
        let in_order = transfer.stores() == Stores::InOrder;
        let end = if in_order { End::Front } else { end };
        // An input of unknown length is read by one worker at a time.
        let _turn = transfer.chunks().is_none().then(|| lock(&self.in_order));
        let wanted = {
            let mut state = lock(&self.state);
            if state.failure.is_some() {
                return Ok(None);
            }
            if let Some(piece) = state.handed_back.pop() {
                return Ok(Some(piece));
            }
            match state.left.take_range(end, max_chunks as u64) {
                Some(wanted) => wanted,
                None => return Ok(None),
            }
        };
        self.load(transfer, wanted, buffer)
    }

    /// Has a finished piece stored, now or later, and returns a buffer for the next.
    ///
    /// # Errors
    /// [`Error::Store`], of this piece or of another that this worker stored.
    pub fn finish(&self, piece: Piece<'_>) -> Result<Zeroizing<Vec<u8>>, Error> {
        match piece.slots {
            Slots::Borrowed(_) => Ok(Zeroizing::default()),
            Slots::Loaded { buffer, len } => {
                let end = piece.first + len.div_ceil(self.job.slot_len()) as u64;
                let finished = Finished { first: piece.first, end, buffer, len };
                match &self.outlet {
                    Some(outlet) => outlet.put(finished, |finished| self.store(finished)),
                    None => self.store(&finished).map(|()| finished.buffer),
                }
            }
        }
    }

    /// Gives back a piece whose input is untouched, for another device to finish.
    pub fn hand_back(&self, piece: Piece<'j>) {
        lock(&self.state).handed_back.push(piece);
    }

    /// True while a piece waits for a taker.
    pub(crate) fn pending(&self) -> bool {
        let state = lock(&self.state);
        state.failure.is_none() && (!state.handed_back.is_empty() || !state.left.is_empty())
    }

    /// Ends the run for everybody. The failure with the smallest chunk is the one reported, so
    /// that the same damage gives the same message however the workers raced.
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

    /// Lets nobody wait for a piece that will never come.
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
            .map_err(|source| Error::Store { chunk: finished.first, source })
    }

    fn take_memory(&self, end: End, max_chunks: usize) -> Option<Piece<'j>> {
        let mut state = lock(&self.state);
        if state.failure.is_some() {
            return None;
        }
        state
            .handed_back
            .pop()
            .or_else(|| state.left.take_memory(end, max_chunks, self.job.slot_len()))
    }

    fn load(
        &self,
        transfer: &dyn Transfer,
        wanted: std::ops::Range<u64>,
        mut buffer: Zeroizing<Vec<u8>>,
    ) -> Result<Option<Piece<'j>>, Error> {
        let first = wanted.start;
        let room = (wanted.end - wanted.start) as usize * self.job.slot_len();
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
        Ok(Some(Piece { first, last: loaded.last, slots }))
    }
}

impl Piece<'_> {
    /// Index of the first chunk.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// True if the last chunk of the run is the last of this piece.
    pub fn is_last(&self) -> bool {
        self.last
    }

    /// The slots, to be worked on in place.
    pub fn slots(&mut self) -> &mut [u8] {
        match &mut self.slots {
            Slots::Borrowed(slots) => slots,
            Slots::Loaded { buffer, len } => &mut buffer[..*len],
        }
    }
}

impl<'a> Left<'a> {
    fn is_empty(&self) -> bool {
        match self {
            Self::Memory { slots, .. } => slots.is_none(),
            Self::Known { first, end } => first == end,
            Self::Unknown { ended, .. } => *ended,
        }
    }

    fn count(&self, slot_len: usize) -> Option<u64> {
        match self {
            Self::Memory { slots, .. } => {
                Some(slots.as_ref().map_or(0, |slots| slots.len().div_ceil(slot_len) as u64))
            }
            Self::Known { first, end } => Some(end - first),
            Self::Unknown { .. } => None,
        }
    }

    fn take_range(&mut self, from: End, max: u64) -> Option<std::ops::Range<u64>> {
        if self.is_empty() {
            return None;
        }
        match (self, from) {
            (Self::Known { first, end }, End::Front) => {
                let start = *first;
                *first = start.saturating_add(max).min(*end);
                Some(start..*first)
            }
            (Self::Known { first, end }, End::Back) => {
                let stop = *end;
                *end = stop.saturating_sub(max).max(*first);
                Some(*end..stop)
            }
            (Self::Unknown { first, .. }, _) => {
                let start = *first;
                *first += max;
                Some(start..*first)
            }
            (Self::Memory { .. }, _) => None,
        }
    }

    fn take_memory(&mut self, from: End, max_chunks: usize, slot_len: usize) -> Option<Piece<'a>> {
        let Self::Memory { first, slots, with_last } = self else { return None };
        let all = slots.take()?;
        let count = all.len().div_ceil(slot_len);
        let taken = max_chunks.min(count);
        if taken == count {
            return Some(Piece { first: *first, last: *with_last, slots: Slots::Borrowed(all) });
        }
        match from {
            End::Front => {
                let (front, rest) = all.split_at_mut(taken * slot_len);
                *slots = Some(rest);
                let piece = Piece { first: *first, last: false, slots: Slots::Borrowed(front) };
                *first += taken as u64;
                Some(piece)
            }
            End::Back => {
                let (rest, back) = all.split_at_mut((count - taken) * slot_len);
                *slots = Some(rest);
                let start = *first + (count - taken) as u64;
                let last = std::mem::replace(with_last, false);
                Some(Piece { first: start, last, slots: Slots::Borrowed(back) })
            }
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

/// A worker that panicked left nothing half-changed under these locks.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
