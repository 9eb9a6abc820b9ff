//! Segments back into messages.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{Counters, MessageOutput, Notice, Unended};
use crate::frame::End;
use crate::segment::{self, KeyStore, Payload, Records, Recovered, Segment, Selection, Tail};

/// Opens segments, one after the other, and hands on the messages that are wanted.
///
/// Each segment stands alone: one that is damaged is reported, and the next is opened.
pub struct Replay {
    keys: KeyStore,
    selection: Selection,
    output: Box<dyn MessageOutput>,
    counters: Arc<Counters>,
    notify: Box<dyn Fn(Notice) + Send>,
    /// Runs, by their identity.
    runs: HashMap<[u8; 16], Run>,
    /// What segments say of earlier ones, with the place of each among those that are opened.
    recovered: Vec<(usize, Recovered)>,
    /// The place of the segment that is open.
    place: usize,
    /// Segments without an end.
    unended: Vec<Cut>,
    cut: u64,
    headless: u64,
}

#[derive(Default)]
struct Run {
    number: u64,
    /// Its segments, with their paths.
    parts: BTreeMap<u64, PathBuf>,
    /// Sources that have begun and not ended.
    open: HashSet<u64>,
}

struct Cut {
    path: PathBuf,
    place: usize,
    /// Its run, and its number there.
    part: Option<([u8; 16], u64)>,
    found: Recovered,
    records: u64,
}

impl Replay {
    /// Opens with these keys, and hands the messages of a selection to `output`.
    pub fn new(
        keys: KeyStore,
        selection: Selection,
        output: Box<dyn MessageOutput>,
        counters: Arc<Counters>,
        notify: impl Fn(Notice) + Send + 'static,
    ) -> Self {
        Self {
            keys,
            selection,
            output,
            counters,
            notify: Box::new(notify),
            runs: HashMap::new(),
            recovered: Vec::new(),
            place: 0,
            unended: Vec::new(),
            cut: 0,
            headless: 0,
        }
    }

    /// Opens the segments at `paths`, in this order, until all are open or `stop` is set. What is wrong is notified;
    /// if `are_all` of a folder are given, segments that are missing between them are, too.
    ///
    /// # Errors
    /// That the output cannot be written.
    pub fn run(mut self, paths: &[PathBuf], are_all: bool, stop: &AtomicBool) -> io::Result<()> {
        for (place, path) in paths.iter().enumerate() {
            self.place = place;
            if stop.load(Ordering::SeqCst) {
                break;
            }
            match self.open(path, stop) {
                Ok(()) => {}
                Err(Failure::Output(error)) => return Err(error),
                Err(Failure::Segment(problem)) => self.report(path, problem),
            }
            self.output.flush()?;
        }
        if !stop.load(Ordering::SeqCst) {
            self.judge_ends();
            if are_all {
                self.judge_gaps();
            }
        }
        let unfinished = match self.selection.is_all() {
            true => self.runs.values().map(|run| run.open.len() as u64).sum(),
            // What is not wanted was not looked at.
            false => 0,
        };
        (self.notify)(Notice::Opened {
            who: "the segments".into(),
            cut: self.cut,
            headless: self.headless,
            unfinished,
            stopped: stop.load(Ordering::SeqCst),
            failure: None,
        });
        self.output.closed()?;
        self.output.finish(None)
    }

    fn open(&mut self, path: &Path, stop: &AtomicBool) -> Result<(), Failure> {
        let Some(segment) = Segment::open(path)? else {
            self.note_unended(path, 0, Unended::Empty);
            return Ok(());
        };
        Counters::add(&self.counters.bytes_in, segment.file_len());
        let key = self.keys.find(segment.header())?;
        let mut run = None;
        if !self.selection.is_all() {
            // What is wanted may not be where the segment starts.
            let mut records = segment.records(&key, &Selection::default())?;
            match records.advance() {
                Ok(true) => run = Some(self.start(path, &records)?),
                Ok(false) => {}
                // What follows may be whole.
                Err(segment::Error::Damaged(_) | segment::Error::DamagedWithin(_)) => {
                    run = Some(self.without_start(segment.header().writer));
                }
                Err(problem) => return Err(problem.into()),
            }
        }
        let mut records = segment.records(&key, &self.selection)?;
        while records.advance()? {
            match run {
                None => run = Some(self.start(path, &records)?),
                Some(run) => self.take(run, &records)?,
            }
            if stop.load(Ordering::Relaxed) {
                return Ok(());
            }
        }
        self.note_end(path, run, &segment, &records);
        Ok(())
    }

    /// Takes the first record of a segment, and returns the run that wrote it.
    fn start(&mut self, path: &Path, records: &Records<'_>) -> Result<[u8; 16], segment::Error> {
        let Some(Payload::Start { run: id, part, recovered }) = records.payload() else {
            return Err(segment::Error::Record(0));
        };
        let place = self.place;
        self.recovered.extend(recovered.into_iter().map(|recovered| (place, recovered)));
        let number = self.runs.len() as u64;
        let run = self.runs.entry(id).or_insert_with(|| Run { number, ..Run::default() });
        match run.parts.insert(part, path.to_owned()) {
            None => Ok(id),
            Some(_) => Err(segment::Error::Copy),
        }
    }

    /// A run of its own for a segment that does not say of which run it is.
    fn without_start(&mut self, writer: [u8; 16]) -> [u8; 16] {
        let number = self.runs.len() as u64;
        self.runs.entry(writer).or_insert_with(|| Run { number, ..Run::default() });
        writer
    }

    /// Takes another record of a segment.
    fn take(&mut self, run: [u8; 16], records: &Records<'_>) -> Result<(), Failure> {
        let Some(run) = self.runs.get_mut(&run) else { return Ok(()) };
        let number = run.number;
        match records.payload() {
            Some(Payload::Begin { source, framing, continued, .. }) if run.open.insert(source) => {
                self.headless += u64::from(continued && self.selection.is_all());
                self.output.begin(number, source, framing).map_err(Failure::Output)?;
            }
            Some(Payload::Messages { source, messages, .. }) => {
                if run.open.insert(source) {
                    let framing = records.framing(source);
                    self.output.begin(number, source, framing).map_err(Failure::Output)?;
                }
                Counters::add(&self.counters.messages, 1);
                Counters::add(&self.counters.bytes_out, messages.len() as u64);
                self.output.data(number, source, messages).map_err(Failure::Output)?;
            }
            Some(Payload::End { source, end }) => {
                self.cut += u64::from(end == End::Cut);
                if run.open.remove(&source) {
                    self.output.end(number, source, end).map_err(Failure::Output)?;
                }
            }
            // Only the first record of a segment starts it.
            Some(Payload::Start { .. }) if self.selection.is_all() => {
                return Err(segment::Error::Record(records.count() - 1).into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Notes how a segment ended.
    fn note_end(
        &mut self,
        path: &Path,
        run: Option<[u8; 16]>,
        segment: &Segment,
        records: &Records<'_>,
    ) {
        let is_complete = matches!(segment.tail(), Tail::Complete { .. });
        if is_complete || records.is_complete() {
            return;
        }
        if segment.is_written_to() {
            return self.note_unended(path, records.count(), Unended::Written);
        }
        let found = Recovered { writer: segment.header().writer, len: records.whole_len() };
        let part = run.and_then(|run| {
            let parts = &self.runs.get(&run)?.parts;
            parts.iter().find(|(_, own)| *own == path).map(|(part, _)| (run, *part))
        });
        let (path, place, records) = (path.to_owned(), self.place, records.count());
        self.unended.push(Cut { path, place, part, found, records });
    }

    /// Reports segments without an end: those for which a later one accounts, and those that were cut.
    fn judge_ends(&mut self) {
        for Cut { path, place, part, found, records } in std::mem::take(&mut self.unended) {
            // A writer that was killed in a segment made none after it.
            let is_last = part.is_none_or(|(run, part)| {
                self.runs.get(&run).is_none_or(|run| run.parts.range(part + 1..).next().is_none())
            });
            let mut later = self.recovered.iter().filter(|(at, _)| *at > place);
            if is_last && later.any(|(_, recovered)| *recovered == found) {
                self.note_unended(&path, records, Unended::Killed);
            } else {
                self.report(&path, segment::Error::Cut(records));
            }
        }
    }

    /// Reports segments that are missing between others of their run.
    fn judge_gaps(&mut self) {
        let mut gaps = Vec::new();
        for run in self.runs.values() {
            let mut before: Option<u64> = None;
            for (part, path) in &run.parts {
                let missing = before.map_or(0, |before| part - before - 1);
                if missing > 0 {
                    let plural = if missing == 1 { " is" } else { "s are" };
                    gaps.push((path.clone(), format!("{missing} segment{plural}")));
                }
                before = Some(*part);
            }
        }
        gaps.sort();
        for (path, missing) in gaps {
            self.report(&path, segment::Error::Missing(missing));
        }
    }

    fn note_unended(&self, path: &Path, records: u64, why: Unended) {
        (self.notify)(Notice::Unended { path: path.display().to_string(), records, why });
    }

    fn report(&self, path: &Path, problem: segment::Error) {
        (self.notify)(Notice::Segment { path: path.display().to_string(), problem });
    }
}

/// Why a segment is not opened to its end.
pub(super) enum Failure {
    /// What is wrong with it.
    Segment(segment::Error),
    /// The output cannot be written.
    Output(io::Error),
}

impl From<segment::Error> for Failure {
    fn from(error: segment::Error) -> Self {
        Self::Segment(error)
    }
}
