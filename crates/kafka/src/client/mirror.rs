//! The loop: records in, records out, one transaction after the other.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::Message;
use rdkafka::message::BorrowedMessage;

use super::inlet::{Found, Inlet};
use super::outlet::Outlet;
use super::settings::Settings;
use super::trouble::Trouble;
use crate::error::{Error, Fault};

/// Makes new values of old ones.
pub trait Transform {
    /// Called before each transaction.
    fn prepare(&mut self);

    /// Writes the new value of the record with this `key` to `output`, and replaces what is there.
    ///
    /// # Errors
    /// That the record is not to be written: the mirror ends, and its transaction is aborted.
    fn apply(
        &mut self,
        key: Option<&[u8]>,
        value: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), Fault>;
}

/// What was done, as far as it was committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Records, tombstones among them.
    pub records: u64,
    /// Records without a value.
    pub tombstones: u64,
    /// Bytes of the values that were read.
    pub in_bytes: u64,
    /// Bytes of the values that were written.
    pub out_bytes: u64,
    /// Transactions; without them, batches.
    pub transactions: u64,
    /// Transactions that were aborted, and whose records were read again.
    pub aborted: u64,
}

impl Done {
    fn add(&mut self, other: &Self) {
        self.records += other.records;
        self.tombstones += other.tombstones;
        self.in_bytes += other.in_bytes;
        self.out_bytes += other.out_bytes;
        self.transactions += other.transactions;
        self.aborted += other.aborted;
    }
}

/// Mirrors a topic.
pub struct Mirror<'a> {
    /// From where to where.
    pub settings: &'a Settings,
    /// Set to end.
    pub stop: &'a AtomicBool,
    /// Takes what a person may want to know.
    pub note: &'a dyn Fn(&str),
}

impl Mirror<'_> {
    /// Runs until it is stopped, or reaches the end. `done` counts what was committed, also if it fails.
    ///
    /// # Errors
    /// All of [`Error`].
    pub fn run(&self, transform: &mut dyn Transform, done: &mut Done) -> Result<(), Error> {
        let mut was_connected = false;
        loop {
            let next = match Session::connect(self) {
                Ok(mut session) => {
                    was_connected = true;
                    session.serve(transform, done)?
                }
                Err(Error::Unreachable(why)) if was_connected => Next::Reconnect(why),
                Err(error) => return Err(error),
            };
            match next {
                Next::End => return Ok(()),
                Next::Reconnect(why) if self.is_stopped() => return Err(Error::Unreachable(why)),
                Next::Reconnect(why) => (self.note)(&format!("connecting anew: {why}")),
            }
            thread::sleep(BEFORE_CONNECTING);
        }
    }

    fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// The time between a session and the next.
const BEFORE_CONNECTING: Duration = Duration::from_millis(100);

/// How a session ended.
enum Next {
    End,
    Reconnect(String),
}

/// The two connections.
struct Session<'a> {
    mirror: &'a Mirror<'a>,
    inlet: Inlet,
    outlet: Outlet,
    /// The offsets behind the last records that were committed.
    committed: BTreeMap<i32, i64>,
    /// The new value of a record.
    output: Vec<u8>,
    /// True if it was said that a cluster does not answer.
    has_complained: bool,
}

/// The records of one transaction.
#[derive(Default)]
struct Batch {
    counts: Done,
    offsets: BTreeMap<i32, i64>,
    /// When its first record came.
    since: Option<Instant>,
}

impl Batch {
    /// The time that is left for more records.
    fn left(&self) -> Duration {
        self.since.map_or(IDLE, |since| LONGEST.saturating_sub(since.elapsed()))
    }

    fn is_full(&self) -> bool {
        self.counts.records >= MOST_RECORDS
            || self.counts.out_bytes >= MOST_BYTES
            || self.left().is_zero()
    }
}

/// Records of a transaction at most.
const MOST_RECORDS: u64 = 2_000;

/// Bytes of a transaction, about.
const MOST_BYTES: u64 = 64 << 20;

/// The longest time that a transaction waits for more records.
const LONGEST: Duration = Duration::from_millis(100);

/// How long a poll waits for the first record. A stop is seen after this time.
const IDLE: Duration = Duration::from_millis(100);

/// How long a stopped mirror goes on trying to commit.
const GRACE: Duration = Duration::from_secs(10);

impl<'a> Session<'a> {
    fn connect(mirror: &'a Mirror<'a>) -> Result<Self, Error> {
        let inlet = Inlet::connect(mirror.settings)?;
        let outlet = Outlet::connect(mirror.settings, inlet.partitions)?;
        let committed = BTreeMap::new();
        Ok(Self { mirror, inlet, outlet, committed, output: Vec::new(), has_complained: false })
    }

    fn serve(&mut self, transform: &mut dyn Transform, done: &mut Done) -> Result<Next, Error> {
        let mut failures = 0_u32;
        while !self.mirror.is_stopped() {
            match self.step(transform, done) {
                Ok(true) => return Ok(Next::End),
                Ok(false) => failures = 0,
                Err(Trouble::Abort(why) | Trouble::Retry(why)) => {
                    done.aborted += 1;
                    failures += 1;
                    // A rebalance aborts one; more than a few have another cause.
                    if failures == TELLING_FAILURES {
                        (self.mirror.note)(&format!(
                            "a transaction was aborted and is retried: {why}"
                        ));
                    }
                    thread::sleep(Duration::from_millis(100) * failures.min(20).saturating_sub(1));
                    match self.start_over() {
                        Ok(()) => {}
                        Err(Trouble::Fatal(error)) => return Err(error),
                        Err(
                            Trouble::Abort(why) | Trouble::Retry(why) | Trouble::Reconnect(why),
                        ) => {
                            return Ok(Next::Reconnect(why));
                        }
                    }
                }
                Err(Trouble::Reconnect(why)) => {
                    done.aborted += 1;
                    return Ok(Next::Reconnect(why));
                }
                Err(Trouble::Fatal(error)) => {
                    // A transaction that stays open is ended by its time limit.
                    let _ = self.outlet.abort();
                    return Err(error);
                }
            }
        }
        Ok(Next::End)
    }

    /// Does one transaction; true if all is done.
    fn step(&mut self, transform: &mut dyn Transform, done: &mut Done) -> Result<bool, Trouble> {
        if self.inlet.is_finished(&self.committed)? {
            return Ok(true);
        }
        transform.prepare();
        let seen = self.inlet.rebalances();
        let member = self.inlet.membership()?;
        let batch = self.collect(transform)?;
        if batch.since.is_none() {
            return Ok(false);
        }
        // Partitions may be another's by now.
        if self.inlet.rebalances() != seen {
            return Err(Trouble::Abort("the group gave partitions to other members".to_owned()));
        }
        let offsets = self.inlet.list(&batch.offsets)?;
        let mut are_sent = false;
        self.persist(|session| {
            session.outlet.commit(&session.inlet, &offsets, &member, &mut are_sent)
        })?;
        self.committed.extend(batch.offsets);
        done.add(&batch.counts);
        Ok(false)
    }

    /// Writes the records of one transaction; none if none came for a while.
    fn collect(&mut self, transform: &mut dyn Transform) -> Result<Batch, Trouble> {
        let mut batch = Batch::default();
        while !batch.is_full() && !self.mirror.is_stopped() {
            match self.inlet.poll(batch.left())? {
                Found::Record(record) => {
                    if batch.since.is_none() {
                        self.outlet.begin()?;
                        batch.since = Some(Instant::now());
                        self.has_complained = false;
                    }
                    let len =
                        write(&self.outlet, self.mirror, transform, &record, &mut self.output)?;
                    batch.counts.records += 1;
                    batch.counts.tombstones += u64::from(len.is_none());
                    batch.counts.in_bytes += record.payload().map_or(0, <[u8]>::len) as u64;
                    batch.counts.out_bytes += len.unwrap_or(0) as u64;
                    batch.offsets.insert(record.partition(), record.offset() + 1);
                }
                Found::End(partition) => self.inlet.has_reached(partition),
                Found::Nothing => {}
                Found::Complaint(why) => {
                    if !std::mem::replace(&mut self.has_complained, true) {
                        (self.mirror.note)(&format!("{why}; retrying"));
                    }
                }
            }
            if batch.since.is_none() {
                break;
            }
        }
        batch.counts.transactions = u64::from(batch.since.is_some());
        Ok(batch)
    }

    /// Aborts the transaction, and goes back to the committed offsets.
    fn start_over(&mut self) -> Result<(), Trouble> {
        self.persist(|session| session.outlet.abort())?;
        self.persist(|session| session.inlet.rewind())
    }

    /// Makes a call again until it succeeds or has another error than [`Trouble::Retry`].
    fn persist(
        &mut self,
        mut call: impl FnMut(&mut Self) -> Result<(), Trouble>,
    ) -> Result<(), Trouble> {
        let mut stopped = None;
        loop {
            let why = match call(self) {
                Err(Trouble::Retry(why)) => why,
                other => return other,
            };
            if self.mirror.is_stopped() {
                let stopped: &mut Instant = stopped.get_or_insert_with(Instant::now);
                if stopped.elapsed() >= GRACE {
                    return Err(Trouble::Fatal(Error::Unreachable(why)));
                }
            }
            if !std::mem::replace(&mut self.has_complained, true) {
                (self.mirror.note)(&format!("{why}; retrying"));
            }
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// Aborted transactions in a row after which it is said why.
const TELLING_FAILURES: u32 = 3;

/// Writes the record with its new value, whose length it returns.
fn write(
    outlet: &Outlet,
    mirror: &Mirror<'_>,
    transform: &mut dyn Transform,
    record: &BorrowedMessage<'_>,
    output: &mut Vec<u8>,
) -> Result<Option<usize>, Trouble> {
    let value = match record.payload() {
        None => None,
        Some(value) => {
            transform.apply(record.key(), value, output).map_err(|fault| match fault {
                Fault::Failed(Error::Unreachable(why)) => Trouble::Abort(why),
                fault => {
                    Trouble::Fatal(fault.at(record.topic(), record.partition(), record.offset()))
                }
            })?;
            Some(output.as_slice())
        }
    };
    loop {
        match outlet.send(record, value) {
            Ok(()) => return Ok(value.map(<[u8]>::len)),
            Err(Trouble::Retry(why)) if mirror.is_stopped() => return Err(Trouble::Abort(why)),
            Err(Trouble::Retry(_)) => outlet.wait_for_room(),
            Err(other) => return Err(other),
        }
    }
}
