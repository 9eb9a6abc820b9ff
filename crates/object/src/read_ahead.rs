//! Blocks of an object that are fetched before they are read, several at a time.

use std::collections::VecDeque;
use std::io;
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;

use crate::lock::lock;
use crate::origin::{Origin, Version};

/// Fetches a range that was announced.
pub(crate) struct ReadAhead {
    origin: Arc<Origin>,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    arrived: Condvar,
}

#[derive(Default)]
struct State {
    /// What is not asked for yet.
    left: Range<u64>,
    blocks: VecDeque<Block>,
    /// Counts the plans; a block of an older one is not waited for.
    plan: u64,
}

/// A part of the range.
struct Block {
    range: Range<u64>,
    content: Content,
    /// Bytes of it that were read.
    taken: u64,
    _room: Option<OwnedSemaphorePermit>,
}

enum Content {
    Awaited,
    Here(Arc<[Bytes]>),
    Failed(io::Error),
}

/// Bytes of a block.
const BLOCK: u64 = 8 << 20;

/// Blocks that are asked for or not read at a time.
const MOST_BLOCKS: usize = 8;

impl ReadAhead {
    pub fn new(origin: Arc<Origin>) -> Self {
        Self { origin, shared: Arc::default() }
    }

    /// Fetches `range` from now on, in place of what was planned before.
    pub fn plan(&self, version: &Arc<Version>, range: Range<u64>) {
        let mut state = lock(&self.shared.state);
        state.plan += 1;
        state.blocks.clear();
        state.left = range;
        self.fill(&mut state, version);
        self.shared.arrived.notify_all();
    }

    /// Keeps what was read too much, from `taken` bytes after the start of `range` on; where a range is
    /// planned, that is not needed.
    pub fn keep(&self, range: Range<u64>, taken: u64, frames: Vec<Bytes>) {
        let mut state = lock(&self.shared.state);
        if state.left.is_empty() && taken < range.end - range.start && state.blocks.len() < 2 {
            let content = Content::Here(frames.into());
            state.blocks.clear();
            state.blocks.push_back(Block { range, content, taken, _room: None });
        }
    }

    /// Fills the front of `buffer` with the bytes from `offset` on, once they have arrived. Returns how many;
    /// 0 if they are not planned.
    ///
    /// # Errors
    /// Those of fetching them.
    pub fn take(
        &self,
        version: &Arc<Version>,
        buffer: &mut [u8],
        offset: u64,
    ) -> io::Result<usize> {
        let mut state = lock(&self.shared.state);
        let distance = offset.saturating_sub(state.left.start);
        if state.left.contains(&offset) && distance < BLOCK * MOST_BLOCKS as u64 {
            // It is waited for, whether there is room or not.
            while state.left.contains(&offset) {
                self.ask(&mut state, version, None);
            }
        }
        loop {
            let found = state.blocks.iter().position(|block| block.range.contains(&offset));
            let Some(index) = found else { return Ok(0) };
            let block = &mut state.blocks[index];
            match &mut block.content {
                Content::Awaited => {
                    let arrived = self.shared.arrived.wait(state);
                    state = arrived.unwrap_or_else(PoisonError::into_inner);
                }
                Content::Failed(error) => return Err(copy(error)),
                Content::Here(frames) => {
                    let len = (block.range.end - offset).min(buffer.len() as u64) as usize;
                    let (frames, skip) = (Arc::clone(frames), offset - block.range.start);
                    block.taken += len as u64;
                    if block.taken >= block.range.end - block.range.start {
                        state.blocks.remove(index);
                        self.fill(&mut state, version);
                    }
                    drop(state);
                    copy_out(&frames, skip as usize, &mut buffer[..len]);
                    return Ok(len);
                }
            }
        }
    }

    /// Asks for blocks while there is room; one is always on its way.
    fn fill(&self, state: &mut State, version: &Arc<Version>) {
        while !state.left.is_empty() && state.blocks.len() < MOST_BLOCKS {
            let room = self.origin.network.try_room_for_block(BLOCK);
            if room.is_none() && !state.blocks.is_empty() {
                return;
            }
            self.ask(state, version, room);
        }
    }

    /// Asks for the next block.
    fn ask(&self, state: &mut State, version: &Arc<Version>, room: Option<OwnedSemaphorePermit>) {
        let start = state.left.start;
        let range = start..(start + BLOCK).min(state.left.end);
        state.left.start = range.end;
        let plan = state.plan;
        state.blocks.push_back(Block {
            range: range.clone(),
            content: Content::Awaited,
            taken: 0,
            _room: room,
        });
        let (origin, version) = (Arc::clone(&self.origin), Arc::clone(version));
        let shared = Arc::downgrade(&self.shared);
        self.origin.network.start(async move {
            let content = match origin.range(&version, range.clone()).await {
                Ok(frames) => Content::Here(frames.into()),
                Err(error) => Content::Failed(error),
            };
            // It is not awaited once the object is dropped.
            let Some(shared) = shared.upgrade() else { return };
            let mut state = lock(&shared.state);
            if state.plan == plan
                && let Some(block) = state.blocks.iter_mut().find(|block| block.range == range)
            {
                block.content = content;
            }
            shared.arrived.notify_all();
        });
    }
}

/// Copies what is at `skip` in the frames.
fn copy_out(frames: &[Bytes], mut skip: usize, mut buffer: &mut [u8]) {
    for frame in frames {
        if skip >= frame.len() {
            skip -= frame.len();
            continue;
        }
        let len = (frame.len() - skip).min(buffer.len());
        buffer[..len].copy_from_slice(&frame[skip..skip + len]);
        buffer = &mut buffer[len..];
        skip = 0;
        if buffer.is_empty() {
            return;
        }
    }
}

/// The same error again, for the next who needs the block.
fn copy(error: &io::Error) -> io::Error {
    use crate::error::{Changed, Removed};
    let inner = error.get_ref();
    if inner.is_some_and(|inner| inner.is::<Changed>()) {
        io::Error::other(Changed)
    } else if inner.is_some_and(|inner| inner.is::<Removed>()) {
        io::Error::other(Removed)
    } else {
        io::Error::new(error.kind(), error.to_string())
    }
}
