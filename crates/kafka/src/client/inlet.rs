//! Reads the records of the source topic, as a member of a consumer group.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::{
    BaseConsumer, CommitMode, Consumer, ConsumerContext, ConsumerGroupMetadata, Rebalance,
};
use rdkafka::error::KafkaError;
use rdkafka::message::BorrowedMessage;
use rdkafka::{ClientContext, Offset, TopicPartitionList};

use super::cluster::{Complaints, PATIENCE};
use super::settings::Settings;
use super::trouble::{Trouble, failed, judge, lasting};
use crate::error::Error;

/// Reads the source topic.
pub(super) struct Inlet {
    consumer: Member,
    topic: String,
    /// Partitions of the topic.
    pub partitions: i32,
    ends: Option<Ends>,
}

/// What `--until-end` waits for.
struct Ends {
    /// The first offset behind each partition when the program started.
    offsets: BTreeMap<i32, i64>,
    /// Partitions that were read to their end since.
    reached: BTreeSet<i32>,
    /// When the offsets of the group were last asked for.
    asked: Option<Instant>,
}

/// What a poll found.
pub(super) enum Found<'a> {
    Record(BorrowedMessage<'a>),
    /// A partition was read to its end.
    End(i32),
    Nothing,
    /// A complaint of the client, which tries again by itself.
    Complaint(String),
}

impl Inlet {
    /// Joins the group.
    ///
    /// # Errors
    /// That the cluster cannot be reached, or has no such topic.
    pub fn connect(settings: &Settings) -> Result<Self, Error> {
        let Settings { from, from_topic: topic, .. } = settings;
        let mut config = from.config();
        config
            .set("group.id", &settings.group)
            .set("group.instance.id", &settings.id)
            .set("partition.assignment.strategy", "cooperative-sticky")
            .set("isolation.level", "read_committed")
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "earliest")
            .set("enable.partition.eof", "true")
            // With its default of a second, small records come at a sixth of the speed.
            .set("fetch.queue.backoff.ms", "2");
        let consumer = config
            .create_with_context(Membership::default())
            .map_err(|error| failed("cannot read from Kafka", &error))?;
        let consumer = Member(Some(consumer));
        let missing = || {
            let servers = from.servers();
            Error::Failed(format!("the topic {topic} does not exist at {servers}"))
        };
        let partitions = from.partitions(topic)?.ok_or_else(missing)?;
        let ends = match settings.until_end {
            false => None,
            true => {
                let mut offsets = BTreeMap::new();
                for partition in 0..partitions {
                    let (first, end) = consumer
                        .fetch_watermarks(topic, partition, PATIENCE)
                        .map_err(|error| failed("cannot find the end of the topic", &error))?;
                    if end > first {
                        offsets.insert(partition, end);
                    }
                }
                Some(Ends { offsets, reached: BTreeSet::new(), asked: None })
            }
        };
        consumer
            .subscribe(&[topic])
            .map_err(|error| failed(&format!("cannot read the topic {topic}"), &error))?;
        Ok(Self { consumer, topic: topic.clone(), partitions, ends })
    }

    /// Waits for a record, and serves the group.
    pub fn poll(&self, wait: Duration) -> Result<Found<'_>, Trouble> {
        match self.consumer.poll(wait) {
            None => Ok(Found::Nothing),
            Some(Ok(record)) => Ok(Found::Record(record)),
            Some(Err(KafkaError::PartitionEOF(partition))) => Ok(Found::End(partition)),
            Some(Err(error)) => {
                let what = format!("cannot read the topic {}", self.topic);
                match judge(&what, &error) {
                    Trouble::Fatal(error) => Err(Trouble::Fatal(error)),
                    _ => {
                        let complaint = self.consumer.context().complaints.take();
                        Ok(Found::Complaint(complaint.unwrap_or_else(|| error.to_string())))
                    }
                }
            }
        }
    }

    /// Notes that a partition was read to its end.
    pub fn has_reached(&mut self, partition: i32) {
        if let Some(ends) = &mut self.ends {
            ends.reached.insert(partition);
        }
    }

    /// What the group knows of this member now. Offsets that are sent with it are refused after a rebalance.
    pub fn membership(&self) -> Result<Arc<ConsumerGroupMetadata>, Error> {
        let metadata = self.consumer.group_metadata().map(Arc::new);
        metadata.ok_or_else(|| Error::Failed("the consumer has no group".to_owned()))
    }

    /// Counts how often partitions were given or taken.
    pub fn rebalances(&self) -> u64 {
        self.consumer.context().rebalances.load(Ordering::Acquire)
    }

    /// Commits offsets by the group alone, without a transaction.
    pub fn commit(&self, offsets: &TopicPartitionList) -> Result<(), KafkaError> {
        self.consumer.commit(offsets, CommitMode::Sync)
    }

    /// Returns the offsets behind the last records of a transaction.
    pub fn list(&self, offsets: &BTreeMap<i32, i64>) -> Result<TopicPartitionList, Trouble> {
        let mut list = TopicPartitionList::with_capacity(offsets.len());
        for (partition, offset) in offsets {
            list.add_partition_offset(&self.topic, *partition, Offset::Offset(*offset))
                .map_err(|error| judge("cannot list offsets", &error))?;
        }
        Ok(list)
    }

    /// Goes back to the committed offset of each partition that this process has.
    ///
    /// # Errors
    /// [`Trouble::Retry`] if it is worth another try.
    pub fn rewind(&mut self) -> Result<(), Trouble> {
        let again = |error: &KafkaError| match error.rdkafka_error_code().and_then(lasting) {
            Some(why) => Trouble::Fatal(Error::Failed(why)),
            None => Trouble::Retry(error.to_string()),
        };
        if let Some(ends) = &mut self.ends {
            ends.reached.clear();
        }
        let assigned = self.consumer.assignment().map_err(|error| again(&error))?;
        if assigned.count() == 0 {
            return Ok(());
        }
        let mut offsets =
            self.consumer.committed_offsets(assigned, PATIENCE).map_err(|error| again(&error))?;
        for (place, offset) in offsets.to_topic_map() {
            let offset = if offset == Offset::Invalid { Offset::Beginning } else { offset };
            offsets
                .set_partition_offset(&place.0, place.1, offset)
                .map_err(|error| again(&error))?;
        }
        let wanted = offsets.clone();
        for attempt in 0.. {
            let sought = self.consumer.seek_partitions(wanted.clone(), PATIENCE);
            let failure = match &sought {
                Err(error) => Some(error.to_string()),
                Ok(sought) => sought
                    .elements()
                    .iter()
                    .find_map(|partition| partition.error().err())
                    .map(|error| error.to_string()),
            };
            match failure {
                None => break,
                // A partition that was just given is not read yet.
                Some(_) if attempt < SEEKS => thread::sleep(Duration::from_millis(50)),
                Some(why) => return Err(Trouble::Reconnect(why)),
            }
        }
        Ok(())
    }

    /// True if all that was in the topic when the program started has been done, by this process or others of the
    /// group.
    ///
    /// `committed` are the offsets that this process has committed.
    ///
    /// # Errors
    /// [`Trouble::Retry`] if the group does not answer.
    pub fn is_finished(&mut self, committed: &BTreeMap<i32, i64>) -> Result<bool, Trouble> {
        let Some(ends) = &mut self.ends else { return Ok(false) };
        for partition in self.consumer.context().take_revoked() {
            ends.reached.remove(&partition);
        }
        let is_behind = |partition: &i32, end: &i64| {
            committed.get(partition).is_none_or(|committed| committed < end)
        };
        let missing: BTreeMap<i32, i64> = ends
            .offsets
            .iter()
            .filter(|(partition, end)| {
                !ends.reached.contains(partition) && is_behind(partition, end)
            })
            .map(|(partition, end)| (*partition, *end))
            .collect();
        if missing.is_empty() {
            return Ok(true);
        }
        let assigned = self.consumer.assignment().map_err(|error| judge("assignment", &error))?;
        let mine: BTreeSet<i32> = assigned.elements().iter().map(|p| p.partition()).collect();
        if missing.keys().any(|partition| mine.contains(partition)) {
            return Ok(false);
        }
        if ends.asked.is_some_and(|asked| asked.elapsed() < BETWEEN_QUESTIONS) {
            return Ok(false);
        }
        ends.asked = Some(Instant::now());
        // Transactions of others leave marks at the end, behind which no offset was committed yet.
        let behind = ends.offsets.iter().filter(|(partition, end)| {
            mine.contains(partition)
                && ends.reached.contains(partition)
                && is_behind(partition, end)
        });
        let behind: BTreeMap<i32, i64> = behind.map(|(p, end)| (*p, *end)).collect();
        let mut others = TopicPartitionList::new();
        for partition in missing.keys() {
            others.add_partition(&self.topic, *partition);
        }
        if !behind.is_empty() {
            let behind = self.list(&behind)?;
            // It is tried again.
            let _ = self.commit(&behind);
        }
        let found = self.consumer.committed_offsets(others, PATIENCE);
        let Ok(found) = found else { return Ok(false) };
        Ok(found.to_topic_map().into_iter().all(|((_, partition), offset)| {
            matches!(offset, Offset::Offset(offset) if offset >= missing[&partition])
        }))
    }
}

/// Tries to go back, each 50 ms after the last.
const SEEKS: u32 = 200;

/// How often the group is asked for the offsets of its other members.
const BETWEEN_QUESTIONS: Duration = Duration::from_millis(500);

/// A consumer that has a limited time to close: if it gets or loses partitions in that moment, librdkafka can wait for an
/// answer from a thread that has ended. Its group has it under its name after a restart, closed or not.
struct Member(Option<BaseConsumer<Membership>>);

impl Deref for Member {
    type Target = BaseConsumer<Membership>;

    fn deref(&self) -> &Self::Target {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        let (sender, receiver) = mpsc::sync_channel(1);
        let consumer = self.0.take();
        thread::spawn(move || {
            drop(consumer);
            // The one who asked may have given up.
            let _ = sender.send(());
        });
        // What takes longer is left behind.
        let _ = receiver.recv_timeout(CLOSING);
    }
}

/// How long a consumer may take to close.
const CLOSING: Duration = Duration::from_secs(10);

/// What happens in the group.
#[derive(Default)]
struct Membership {
    complaints: Complaints,
    rebalances: AtomicU64,
    revoked: Mutex<Vec<i32>>,
}

impl Membership {
    fn take_revoked(&self) -> Vec<i32> {
        std::mem::take(&mut *self.revoked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl ClientContext for Membership {
    fn error(&self, error: KafkaError, reason: &str) {
        self.complaints.error(error, reason);
    }
}

impl ConsumerContext for Membership {
    fn pre_rebalance(&self, _: &BaseConsumer<Self>, rebalance: &Rebalance<'_>) {
        self.rebalances.fetch_add(1, Ordering::AcqRel);
        if let Rebalance::Revoke(partitions) = rebalance {
            let partitions =
                partitions.elements().iter().map(|p| p.partition()).collect::<Vec<_>>();
            self.revoked.lock().unwrap_or_else(PoisonError::into_inner).extend(partitions);
        }
    }
}
