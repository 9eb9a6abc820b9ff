//! Contenders that work on messages: ours and the peers' behind one interface, compared with each other
//! before they are timed.

use std::cell::Cell;
use std::rc::Rc;

use wattlock_peers::{Messages, Operation, Peer, Work};

use super::super::rates::{Buffer, Contender};
use super::IV;

/// A tool with a piece of work.
pub struct Rival {
    tool: String,
    kernel: Option<String>,
    work: Box<dyn Work>,
}

impl Rival {
    /// One of our kernels.
    pub fn ours(kernel: &str, work: impl Work + 'static) -> Self {
        let kernel = Some(kernel.to_owned());
        Self { tool: "wattlock".to_owned(), kernel, work: Box::new(work) }
    }

    /// A peer, if it offers the operation.
    pub fn peer(peer: &dyn Peer, operation: Operation, key: &[u8]) -> Option<Self> {
        let work = peer.operation(&operation, key)?;
        Some(Self { tool: peer.name().to_owned(), kernel: None, work })
    }

    /// The work of a tool that can replace its key.
    pub fn replacing_key(mut self, key: &[u8]) -> Option<Self> {
        self.work.set_key(key).then_some(self)
    }
}

/// How the messages of a case lie in the buffer.
#[derive(Clone, Copy)]
pub struct Shape {
    /// Bytes of a message.
    pub len: usize,
    /// Messages in the buffer.
    pub count: usize,
    /// Whether a contender gets them all at once, or one after the other.
    pub together: bool,
}

impl Shape {
    /// One message after the other, in several places: as far as the first-level cache holds them.
    pub fn one(len: usize) -> Self {
        Self { len, count: (FIRST_LEVEL / len.max(1)).clamp(1, MOST_SLOTS), together: false }
    }

    /// Many at once.
    pub fn many(len: usize, count: usize) -> Self {
        Self { len, count, together: true }
    }

    /// From one message to the next: one cache line further than a power of two, because messages at
    /// such a distance would all fall into the same sets of the first-level cache. In front of a record
    /// there is a header, which has the same effect.
    fn stride(self) -> usize {
        self.len.next_multiple_of(64) + 64
    }

    /// Bytes of the buffer, which ends with the last message.
    pub fn buffer(self) -> usize {
        (self.count - 1) * self.stride() + self.len
    }
}

/// The tags of messages that are opened in place, again and again: opening turns a message into
/// another one, with a tag of its own, and opening that one turns it back.
pub struct Tags {
    tags: Vec<[[u8; 16]; 2]>,
    /// How often the messages were opened, by all contenders.
    turn: Cell<usize>,
}

impl Tags {
    /// Those of a buffer as [`Buffer::new`] fills it.
    pub fn new(shape: Shape, seal: &mut dyn Work) -> Rc<Self> {
        let mut buffer = Buffer::new(shape.buffer());
        let slots = buffer.bytes().chunks_mut(shape.stride()).zip(0..);
        let tags = slots.map(|(slot, index)| {
            let mut tag =
                || *seal.run(&iv(index), &mut slot[..shape.len]).first_chunk().expect("32");
            let second = tag();
            [tag(), second]
        });
        Rc::new(Self { tags: tags.collect(), turn: Cell::new(0) })
    }
}

/// The contenders, all of which give what the first gives; the others are told in `wrong`.
pub fn compared(
    shape: Shape,
    tags: Option<&Rc<Tags>>,
    rivals: Vec<Rival>,
    wrong: &mut Vec<String>,
) -> Vec<Contender<'static>> {
    let mut expected = None;
    let mut contenders = Vec::new();
    for mut rival in rivals.into_iter().filter(|rival| rival.work.takes(shape.len)) {
        let seen = transcript(shape, tags, rival.work.as_mut());
        if *expected.get_or_insert_with(|| seen.clone()) == seen {
            contenders.push(rival.contender(shape, tags.cloned()));
        } else {
            let kernel = rival.kernel.map(|kernel| format!(" ({kernel})")).unwrap_or_default();
            wrong.push(format!("{}{kernel}", rival.tool));
        }
    }
    contenders
}

/// What work makes of the buffer, and its results.
fn transcript(
    shape: Shape,
    tags: Option<&Rc<Tags>>,
    work: &mut dyn Work,
) -> (Vec<u8>, Vec<[u8; 32]>) {
    let mut buffer = Buffer::new(shape.buffer());
    let mut results = vec![[0; 32]; shape.count];
    let tags = tags.map(|tags| (&tags.tags[..], 0));
    let keep = |seen: &_, result: &mut _| *result = *seen;
    pass(shape, tags, work, buffer.bytes(), &mut results, 0, keep);
    (buffer.bytes().to_vec(), results)
}

/// One pass over the messages, the first of which has the given number. What becomes of the results of
/// single messages is `keep`'s: a copy would wait for the tag that was just written, and cost as much
/// as a short message.
fn pass(
    shape: Shape,
    tags: Option<(&[[[u8; 16]; 2]], usize)>,
    work: &mut dyn Work,
    buffer: &mut [u8],
    results: &mut [[u8; 32]],
    first: u64,
    keep: fn(&[u8; 32], &mut [u8; 32]),
) {
    if shape.together {
        work.run_each(&iv(first), Messages::new(buffer, shape.len, shape.stride()), results);
        return;
    }
    let slots = buffer.chunks_mut(shape.stride()).zip(results).enumerate();
    for (index, (slot, result)) in slots {
        let number = match tags {
            Some((tags, turn)) => {
                work.expect_tag(tags[index][turn % 2]);
                index as u64
            }
            None => first + index as u64,
        };
        keep(&work.run(&iv(number), &mut slot[..shape.len]), result);
    }
}

impl Rival {
    fn contender(self, shape: Shape, tags: Option<Rc<Tags>>) -> Contender<'static> {
        let Self { tool, kernel, mut work } = self;
        let mut results = vec![[0; 32]; shape.count];
        let mut number = 0;
        let run = move |buffer: &mut [u8]| {
            let turn = tags.as_ref().map(|tags| (&tags.tags[..], tags.turn.get()));
            let keep = |seen: &_, _: &mut _| _ = std::hint::black_box(seen);
            pass(shape, turn, work.as_mut(), buffer, &mut results, number, keep);
            if let Some(tags) = &tags {
                tags.turn.set(tags.turn.get() + 1);
            }
            std::hint::black_box(&mut results);
            number += shape.count as u64;
            (shape.count * shape.len) as u64
        };
        let messages = Some(shape.count as u64);
        Contender { tool, kernel, threads: Some(1), messages, run: Box::new(run) }
    }

    /// Replaces its key, and seals a message of `len` bytes if there is one.
    pub fn key_contender(self, keys: [Vec<u8>; 2], len: usize) -> Contender<'static> {
        let Self { tool, kernel, mut work } = self;
        let mut number = 0;
        let run = move |buffer: &mut [u8]| {
            work.set_key(&keys[number as usize % 2]);
            if len > 0 {
                std::hint::black_box(work.run(&iv(number), &mut buffer[..len]));
            }
            number += 1;
            len as u64
        };
        Contender { tool, kernel, threads: Some(1), messages: Some(1), run: Box::new(run) }
    }
}

/// Another nonce for each message: the first eight bytes differ. The counter of CTR is behind them.
fn iv(number: u64) -> [u8; 16] {
    let mut iv = IV;
    iv[..8].copy_from_slice(&number.to_le_bytes());
    iv
}

/// Bytes of messages that lie in the first-level cache of every CPU.
const FIRST_LEVEL: usize = 24 << 10;

/// Places of messages at most.
const MOST_SLOTS: usize = 8;
