//! Reads segments: all of one, or what its index shows to be wanted. It is long because all that a reader checks is in one
//! place.

use std::collections::{BTreeMap, HashSet};
use std::fs::{File, TryLockError};
use std::io::Seek;
use std::os::unix::fs::FileExt;
use std::path::Path;

use wattlock_record::{self as record, HEAD_LEN, SessionKey};
use zeroize::Zeroizing;

use super::error::Error;
use super::header::{Header, is_unwritten};
use super::index::{Block, Index, IndexCheck, Named};
use super::payload::Payload;
use super::scan::{Batches, TAIL_LEN, Tail};
use super::varint;
use crate::frame::Framing;

/// A segment that is read.
pub struct Segment {
    file: File,
    len: u64,
    header: Header,
    tail: Tail,
    written_to: bool,
}

/// Which messages are wanted.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Those that came at this time or later, in microseconds since 1970.
    pub from_us: Option<u64>,
    /// Those that came before this time.
    pub until_us: Option<u64>,
    /// Those of sources of this name, or of this host with any port.
    pub source: Option<String>,
}

/// The records of a segment, in their order.
pub(crate) struct Records<'a> {
    segment: &'a Segment,
    reader: record::Reader,
    selection: Selection,
    /// Parts that are still to be read, the next one last.
    parts: Vec<Part>,
    batches: Batches<'a>,
    /// Bytes of the batch that were read.
    read: usize,
    /// The number that the next record has to have.
    expected: u64,
    sources: BTreeMap<u64, Named>,
    /// Those that have ended.
    ended: HashSet<u64>,
    payload: Zeroizing<Vec<u8>>,
    /// True behind the record that closes the segment.
    is_closed: bool,
    found_index: bool,
    /// True if it is read from its start, and not by its index.
    in_order: bool,
    /// What its index says, if all of it is read.
    check: Option<IndexCheck>,
    /// The first place that is damaged, of those that were passed over.
    damage: Option<u64>,
}

/// Where reading goes on in a segment that has grown.
#[derive(Clone)]
pub(crate) struct ReadSoFar {
    at: u64,
    count: u64,
    sources: BTreeMap<u64, Named>,
    ended: HashSet<u64>,
    is_closed: bool,
    found_index: bool,
}

/// A part of a segment.
struct Part {
    at: u64,
    end: u64,
    first_record: u64,
}

impl Segment {
    /// Opens the segment at `path`. `None` if its writer was killed before the first record.
    ///
    /// # Errors
    /// [`Error::NotASegment`], [`Error::Header`], [`Error::Io`].
    pub fn open(path: &Path) -> Result<Option<Self>, Error> {
        let failed = || Error::io(format!("read {}", path.display()));
        let mut file = File::open(path).map_err(Error::io(format!("open {}", path.display())))?;
        let written_to = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        // Others may lock it.
        let _ = file.unlock();
        // It may grow meanwhile: what was read of it is within its length only if that is asked for last.
        let mut is_second_look = false;
        let header = loop {
            match Header::read(&mut file) {
                Err(Error::HeaderCut) => return Ok(None),
                Err(error @ (Error::NotASegment | Error::Header)) => {
                    let len = file.metadata().map_err(failed())?.len();
                    let mut start = vec![0; len.min(100) as usize];
                    file.read_exact_at(&mut start, 0).map_err(failed())?;
                    if is_unwritten(&start) {
                        return Ok(None);
                    }
                    if std::mem::replace(&mut is_second_look, true) {
                        return Err(error);
                    }
                    // It may have been written since it was read.
                    file.rewind().map_err(failed())?;
                }
                header => break header?,
            }
        };
        let len = file.metadata().map_err(failed())?.len();
        if len < header.len() {
            // It was cut since.
            return Ok(None);
        }
        let tail = Tail::read(&file, len, header.len()).map_err(failed())?;
        Ok(Some(Self { file, len, header, tail, written_to }))
    }

    /// What it says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How it ends.
    pub fn tail(&self) -> Tail {
        self.tail
    }

    /// Its length.
    pub fn file_len(&self) -> u64 {
        self.len
    }

    /// True if another process was writing to it when it was opened.
    pub fn is_written_to(&self) -> bool {
        self.written_to
    }

    /// Its records behind those that were read, after all of these were. Its header was checked then.
    pub(crate) fn records_after(&self, key: &SessionKey, read: ReadSoFar) -> Records<'_> {
        let ReadSoFar { at, count, sources, ended, is_closed, found_index } = read;
        let end = self.end_of_records();
        let mut records = self.all_records(key);
        records.parts = vec![Part { at: at.min(end), end, first_record: count }];
        Records { expected: count, sources, ended, is_closed, found_index, ..records }
    }

    /// Where its records end.
    fn end_of_records(&self) -> u64 {
        match self.tail {
            Tail::Complete { .. } => self.len - TAIL_LEN,
            Tail::Recovered { valid } => {
                let start = self.header.len();
                valid.clamp(start, (self.len - TAIL_LEN).max(start))
            }
            Tail::Open => self.len,
        }
    }

    fn all_records(&self, key: &SessionKey) -> Records<'_> {
        let (start, end) = (self.header.len(), self.end_of_records());
        Records {
            segment: self,
            reader: record::Reader::new([(self.header.epoch, key.clone())]),
            selection: Selection::default(),
            parts: vec![Part { at: start, end, first_record: 0 }],
            batches: Batches::new(&self.file, &self.header, start, start),
            read: 0,
            expected: 0,
            sources: BTreeMap::new(),
            ended: HashSet::new(),
            payload: Zeroizing::default(),
            is_closed: false,
            found_index: false,
            in_order: true,
            check: None,
            damage: None,
        }
    }

    /// Where a segment without an end is damaged although whole batches follow; `None` if a crash tore its last batch at
    /// most. All of it is read.
    ///
    /// # Errors
    /// [`Error::Io`].
    pub(crate) fn damage(&self) -> Result<Option<u64>, Error> {
        let mut batches = Batches::new(&self.file, &self.header, self.header.len(), self.len);
        batches.scan()?;
        Ok(batches.find_behind(self.len)?.map(|_| batches.at))
    }

    /// Its records, as far as they are wanted.
    ///
    /// # Errors
    /// [`Error::OtherKey`]; those of the index.
    pub(crate) fn records(
        &self,
        key: &SessionKey,
        selection: &Selection,
    ) -> Result<Records<'_>, Error> {
        self.header.check(key)?;
        let mut records = Records { selection: selection.clone(), ..self.all_records(key) };
        let end = self.end_of_records();
        if let Tail::Complete { index } = self.tail {
            if !selection.is_all() {
                records.parts = records.wanted(index, end)?;
            } else if let Ok(found) = self.all_records(key).read_index(index, end) {
                // Where it cannot be read, reading on finds out why.
                records.check = Some(IndexCheck::new(found, self.header.len()));
            }
        }
        Ok(records)
    }
}

impl Selection {
    /// True if nothing is left out.
    pub(crate) fn is_all(&self) -> bool {
        self.from_us.is_none() && self.until_us.is_none() && self.source.is_none()
    }

    fn has_name(&self, name: &str) -> bool {
        self.source.as_ref().is_none_or(|wanted| {
            name.strip_prefix(wanted.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        })
    }

    fn has_time(&self, earliest_us: u64, latest_us: u64) -> bool {
        self.from_us.is_none_or(|from| latest_us >= from)
            && self.until_us.is_none_or(|until| earliest_us < until)
    }
}

impl Records<'_> {
    /// Goes to the next record that is wanted. False if there is none. Of one with messages, all of them came at the
    /// same time.
    ///
    /// Where not all is wanted, damaged batches are passed over, and what is wrong with the first is returned once nothing
    /// follows.
    ///
    /// # Errors
    /// [`Error::Record`], [`Error::Form`], [`Error::Damaged`] and [`Error::DamagedWithin`]; [`Error::Io`]. Nothing follows
    /// after one.
    pub fn advance(&mut self) -> Result<bool, Error> {
        while self.open_next()? {
            if self.is_wanted()? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// What the record says that was gone to last; `None` before the first.
    pub fn payload(&self) -> Option<Payload<'_>> {
        Payload::from_bytes(&self.payload)
    }

    /// True for a source that has begun in this segment and not ended.
    fn is_open(&self, source: u64) -> bool {
        self.sources.contains_key(&source) && !self.ended.contains(&source)
    }

    /// Takes note of what the record says. False if it is not wanted.
    fn is_wanted(&mut self) -> Result<bool, Error> {
        let number = self.expected - 1;
        let payload = Payload::from_bytes(&self.payload).ok_or(Error::Form(number))?;
        if self.is_closed && !matches!(payload, Payload::Index(_) | Payload::Other) {
            return Err(Error::Order(number));
        }
        match payload {
            Payload::Messages { source, time_us, .. } => {
                if self.in_order && !self.is_open(source) {
                    return Err(Error::Order(number));
                }
                if let Some(check) = &mut self.check {
                    check.messages(source, time_us);
                }
                let is_its_source = || {
                    let source = self.sources.get(&source);
                    source.is_some_and(|source| self.selection.has_name(&source.name))
                };
                return Ok(self.selection.has_time(time_us, time_us)
                    && (self.selection.source.is_none() || is_its_source()));
            }
            Payload::Begin { source, framing, name, .. } => {
                let before = self.sources.insert(source, Named { framing, name: name.to_owned() });
                if self.in_order && before.is_some() {
                    return Err(Error::Order(number));
                }
            }
            Payload::End { source, .. } if self.in_order => {
                if !self.is_open(source) {
                    return Err(Error::Order(number));
                }
                self.ended.insert(source);
            }
            Payload::Close { .. } => self.is_closed = true,
            Payload::Index(index) => {
                let index = Index::from_bytes(index).ok_or(Error::Form(number))?;
                self.found_index = true;
                let check = self.check.take();
                if check.is_some_and(|check| !check.agrees_with(&index, &self.sources)) {
                    return Err(Error::Index);
                }
            }
            _ => {}
        }
        Ok(true)
    }

    /// How the input of a source was split into messages.
    pub fn framing(&self, source: u64) -> Framing {
        self.sources.get(&source).map_or(Framing::Raw, |source| source.framing)
    }

    /// Bytes of the segment up to the end of what was read.
    pub fn whole_len(&self) -> u64 {
        self.batches.at
    }

    /// Where reading goes on once the segment has grown, now that all was read that is there.
    pub fn so_far(self) -> ReadSoFar {
        ReadSoFar {
            at: self.batches.at,
            count: self.expected,
            sources: self.sources,
            ended: self.ended,
            is_closed: self.is_closed,
            found_index: self.found_index,
        }
    }

    /// The number of records up to the end of what was read.
    pub fn count(&self) -> u64 {
        self.expected
    }

    /// True if the segment was read to its index.
    pub fn is_complete(&self) -> bool {
        self.found_index
    }

    /// Opens the next record into `self.payload`. False if there is none.
    fn open_next(&mut self) -> Result<bool, Error> {
        let may_be_torn = !matches!(self.segment.tail, Tail::Complete { .. });
        if self.found_index && may_be_torn {
            // What follows is what a crash left.
            return self.damage.map_or(Ok(false), |at| Err(Error::Damaged(at)));
        }
        while self.read == self.batches.records.len() {
            if !self.next_batch()? {
                return Ok(false);
            }
        }
        let wrong = Error::Record(self.expected);
        if self.found_index {
            return Err(wrong);
        }
        let mut rest = &self.batches.records[self.read..];
        let before = rest.len();
        let len = varint::take(&mut rest).and_then(|len| usize::try_from(len).ok());
        let record = len.and_then(|len| rest.get(..len));
        let Some(record) = record else { return Err(wrong) };
        let header = &self.segment.header;
        let Some((head, _)) = record.split_first_chunk::<HEAD_LEN>() else { return Err(wrong) };
        let counter = u64::from_be_bytes(head[21..].try_into().expect("8 bytes"));
        let is_its_place = head[1..5] == header.epoch.to_be_bytes()
            && head[5..21] == header.writer
            && counter == self.expected;
        let Ok(len) = record::Reader::message_len(record) else { return Err(wrong) };
        if !is_its_place {
            return Err(wrong);
        }
        self.payload.resize(len, 0);
        let opened = self.reader.open_into(record, &header.additional, &mut self.payload);
        opened.map_err(|_| wrong)?;
        self.read += before - rest.len() + record.len();
        self.expected += 1;
        Ok(true)
    }

    /// Reads the next batch. False if there is none.
    fn next_batch(&mut self) -> Result<bool, Error> {
        loop {
            self.read = 0;
            let at = self.batches.at;
            if self.batches.next()? {
                if let Some(check) = &mut self.check {
                    check.batch(at, self.expected);
                }
                return Ok(true);
            }
            if let Some(problem) = self.problem_behind()? {
                // It may have been written since it was read.
                if self.segment.tail == Tail::Open && self.batches.next()? {
                    return Ok(true);
                }
                if self.selection.is_all() {
                    return Err(problem);
                }
                let at = *self.damage.get_or_insert(self.batches.at);
                if self.pass_over()? {
                    return Ok(true);
                }
                if self.parts.is_empty() {
                    return Err(Error::Damaged(at));
                }
            }
            let Some(part) = self.parts.pop() else {
                return self.damage.map_or(Ok(false), |at| Err(Error::Damaged(at)));
            };
            let Segment { file, header, .. } = self.segment;
            self.batches = Batches::new(file, header, part.at, part.end);
            self.expected = part.first_record;
        }
    }

    /// What is wrong with the place where the batches end.
    fn problem_behind(&self) -> Result<Option<Error>, Error> {
        let (at, is_last) = (self.batches.at, self.parts.is_empty());
        let is_right = match self.segment.tail {
            Tail::Open => true,
            Tail::Recovered { valid } => !is_last || at == valid,
            Tail::Complete { .. } => {
                self.batches.is_at_end() && (!is_last || !self.in_order || self.found_index)
            }
        };
        let end = match self.segment.tail {
            Tail::Open if is_last => self.segment.len,
            Tail::Recovered { .. } if is_last => self.segment.len - TAIL_LEN,
            _ => self.batches.end(),
        };
        Ok(match self.batches.find_behind(end)? {
            Some(_) => Some(Error::DamagedWithin(at)),
            None => (!is_right).then_some(Error::Damaged(at)),
        })
    }

    /// Goes to the next whole batch of this part behind what is damaged, and reads it. False if there is none.
    fn pass_over(&mut self) -> Result<bool, Error> {
        let Segment { file, header, tail, len, .. } = self.segment;
        let end = match tail {
            Tail::Recovered { .. } => len - TAIL_LEN,
            _ => self.batches.end(),
        };
        let Some(at) = self.batches.find_behind(end)? else { return Ok(false) };
        self.batches = Batches::new(file, header, at, end);
        let Some(counter) = self.batches.next()?.then(|| self.batches.first_counter()).flatten()
        else {
            return Ok(false);
        };
        if counter < self.expected {
            return Err(Error::Record(counter));
        }
        // Sources may have begun and ended in what was passed over.
        (self.expected, self.in_order) = (counter, false);
        Ok(true)
    }

    /// What the index of a complete segment says, which is at this place.
    fn read_index(&mut self, index: u64, end: u64) -> Result<Index, Error> {
        let damaged = || Error::Damaged(index);
        let Segment { file, header, .. } = self.segment;
        self.batches = Batches::new(file, header, index, end);
        if !self.batches.next()? {
            return Err(damaged());
        }
        // Its number is that of the last record: the tag proves it, and what it says proves that it is the index.
        self.expected = self.batches.first_counter().ok_or_else(damaged)?;
        self.open_next()?;
        let Some(Payload::Index(bytes)) = Payload::from_bytes(&self.payload) else {
            return Err(damaged());
        };
        Index::from_bytes(bytes).ok_or_else(damaged)
    }

    /// What is to be read of a complete segment: its index says it.
    fn wanted(&mut self, index: u64, end: u64) -> Result<Vec<Part>, Error> {
        let damaged = || Error::Damaged(index);
        let Segment { file, header, .. } = self.segment;
        let Index { sources, blocks } = self.read_index(index, end)?;
        self.sources = sources;
        self.in_order = false;
        let ends = blocks.iter().skip(1).map(|block| block.offset).chain([index]);
        let is_wanted = |block: &Block| {
            self.selection.has_time(block.earliest_us, block.latest_us)
                && block.sources.iter().any(|source| {
                    self.sources
                        .get(source)
                        .is_some_and(|source| self.selection.has_name(&source.name))
                })
        };
        let parts = blocks.iter().zip(ends).filter(|(block, _)| is_wanted(block));
        let parts = parts.map(|(block, end)| Part {
            at: block.offset,
            end,
            first_record: block.first_record,
        });
        let mut parts: Vec<Part> = parts.collect();
        if parts.iter().any(|part| part.at < self.segment.header.len() || part.end < part.at) {
            return Err(damaged());
        }
        parts.reverse();
        (self.batches, self.read) = (Batches::new(file, header, index, index), 0);
        Ok(parts)
    }
}
