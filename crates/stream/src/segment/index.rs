//! The index of a segment: which source sent when, and where that is.

use std::collections::{BTreeMap, BTreeSet};

use super::payload::Recorded;
use super::varint;
use crate::frame::Framing;

/// The index of a segment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Index {
    /// The sources in the segment, by number.
    pub sources: BTreeMap<u64, Named>,
    /// Runs of batches with messages, in their order.
    pub blocks: Vec<Block>,
}

/// A source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub framing: Framing,
    pub name: String,
}

/// Batches that stand together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// Where the first begins in the segment.
    pub offset: u64,
    /// The number of its first record.
    pub first_record: u64,
    /// The earliest time of messages in it; above [`Block::latest_us`] if there are none.
    pub earliest_us: u64,
    /// The latest.
    pub latest_us: u64,
    /// The sources of its messages.
    pub sources: BTreeSet<u64>,
}

/// Makes an index while records are written.
#[derive(Debug, Default)]
pub(crate) struct IndexBuilder {
    index: Index,
}

impl IndexBuilder {
    /// A batch begins at this place, with this record.
    pub fn batch(&mut self, offset: u64, first_record: u64) {
        let is_near = |block: &Block| offset - block.offset < BLOCK_LEN;
        if !self.index.blocks.last().is_some_and(is_near) {
            self.index.blocks.push(Block::empty(offset, first_record));
        }
    }

    /// A record is in the batch.
    pub fn record(&mut self, recorded: Recorded) {
        match recorded {
            Recorded::Messages { source, time_us } => {
                let Some(block) = self.index.blocks.last_mut() else { return };
                block.note(source, time_us);
            }
            Recorded::Begin { source, framing, name } => {
                self.index.sources.insert(source, Named { framing, name });
            }
            Recorded::Other => {}
        }
    }

    /// The bytes of the index.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.index.to_bytes()
    }
}

/// Compares the index of a segment with the records in it, as they are read in order.
#[derive(Debug)]
pub(super) struct IndexCheck {
    index: Index,
    /// Blocks that have begun.
    begun: usize,
    /// What was found of the last of these.
    found: Block,
    is_wrong: bool,
}

impl IndexCheck {
    /// Compares with `index`, of a segment whose first batch begins at `start`.
    pub fn new(index: Index, start: u64) -> Self {
        let is_wrong = index.blocks.first().is_none_or(|first| first.offset != start);
        Self { index, begun: 0, found: Block::empty(0, 0), is_wrong }
    }

    /// A batch begins at this place, with this record.
    pub fn batch(&mut self, offset: u64, first_record: u64) {
        let next = self.index.blocks.get(self.begun);
        if next.is_some_and(|next| next.offset <= offset) {
            self.end_block();
            self.found = Block::empty(offset, first_record);
            self.begun += 1;
        }
    }

    /// The batch has messages.
    pub fn messages(&mut self, source: u64, time_us: u64) {
        self.found.note(source, time_us);
    }

    /// True if the index says what was found, now that all was read, with these sources.
    pub fn agrees_with(mut self, index: &Index, sources: &BTreeMap<u64, Named>) -> bool {
        self.end_block();
        let has_all = self.begun == self.index.blocks.len();
        has_all && !self.is_wrong && self.index == *index && self.index.sources == *sources
    }

    /// Compares the block that was read.
    fn end_block(&mut self) {
        let block = self.begun.checked_sub(1).and_then(|last| self.index.blocks.get(last));
        self.is_wrong |= block.is_some_and(|block| *block != self.found);
    }
}

impl Block {
    /// One without messages.
    fn empty(offset: u64, first_record: u64) -> Self {
        let (earliest_us, latest_us, sources) = (u64::MAX, 0, BTreeSet::new());
        Self { offset, first_record, earliest_us, latest_us, sources }
    }

    /// Takes note of messages in it.
    fn note(&mut self, source: u64, time_us: u64) {
        self.earliest_us = self.earliest_us.min(time_us);
        self.latest_us = self.latest_us.max(time_us);
        self.sources.insert(source);
    }
}

/// Bytes of a segment after which the next batch begins a block.
const BLOCK_LEN: u64 = 1 << 20;

impl Index {
    fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        varint::push(&mut bytes, self.sources.len() as u64);
        for (number, Named { framing, name }) in &self.sources {
            varint::push(&mut bytes, *number);
            bytes.push(framing.code());
            varint::push(&mut bytes, name.len() as u64);
            bytes.extend_from_slice(name.as_bytes());
        }
        varint::push(&mut bytes, self.blocks.len() as u64);
        for block in &self.blocks {
            varint::push(&mut bytes, block.offset);
            varint::push(&mut bytes, block.first_record);
            bytes.extend_from_slice(&block.earliest_us.to_be_bytes());
            bytes.extend_from_slice(&block.latest_us.to_be_bytes());
            varint::push(&mut bytes, block.sources.len() as u64);
            for source in &block.sources {
                varint::push(&mut bytes, *source);
            }
        }
        bytes
    }

    /// What `bytes` say; `None` if they have another form.
    pub fn from_bytes(mut bytes: &[u8]) -> Option<Self> {
        let rest = &mut bytes;
        let mut index = Self::default();
        for _ in 0..varint::take(rest)? {
            let number = varint::take(rest)?;
            let (&framing, behind) = rest.split_first()?;
            *rest = behind;
            let len = usize::try_from(varint::take(rest)?).ok()?;
            let (name, behind) = rest.split_at_checked(len)?;
            *rest = behind;
            let name = std::str::from_utf8(name).ok()?.to_owned();
            index.sources.insert(number, Named { framing: Framing::of(framing)?, name });
        }
        for _ in 0..varint::take(rest)? {
            let (offset, first_record) = (varint::take(rest)?, varint::take(rest)?);
            let (earliest_us, behind) = rest.split_first_chunk()?;
            let (latest_us, behind) = behind.split_first_chunk()?;
            *rest = behind;
            let mut block = Block {
                offset,
                first_record,
                earliest_us: u64::from_be_bytes(*earliest_us),
                latest_us: u64::from_be_bytes(*latest_us),
                sources: BTreeSet::new(),
            };
            for _ in 0..varint::take(rest)? {
                let source = varint::take(rest)?;
                if block.sources.last().is_some_and(|last| *last >= source) {
                    return None;
                }
                block.sources.insert(source);
            }
            index.blocks.push(block);
        }
        rest.is_empty().then_some(index)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_comes_back() {
        let mut builder = IndexBuilder::default();
        builder.batch(77, 0);
        let begin = |source, name: &str| Recorded::Begin {
            source,
            framing: Framing::Lines,
            name: name.into(),
        };
        builder.record(begin(0, "stdin"));
        builder.record(Recorded::Messages { source: 0, time_us: 9 });
        builder.batch(500, 2);
        builder.record(begin(400, ""));
        builder.record(Recorded::Messages { source: 400, time_us: 5 });
        builder.batch(BLOCK_LEN + 77, 4);
        builder.record(Recorded::Other);
        let bytes = builder.to_bytes();
        let index = Index::from_bytes(&bytes).unwrap();
        assert_eq!(index, builder.index);
        assert_eq!(index.blocks.len(), 2, "batches that are near each other are one block");
        assert_eq!((index.blocks[0].earliest_us, index.blocks[0].latest_us), (5, 9));
        for cut in 0..bytes.len() {
            assert_eq!(Index::from_bytes(&bytes[..cut]), None);
        }
        assert_eq!(Index::from_bytes(&[&bytes[..], b"\0"].concat()), None);
    }
}
