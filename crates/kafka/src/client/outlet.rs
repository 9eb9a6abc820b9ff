//! Writes records to the target topic: with the offsets in one transaction, or before them.

use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use rdkafka::consumer::ConsumerGroupMetadata;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::BorrowedMessage;
use rdkafka::producer::{BaseRecord, DeliveryResult, Producer, ProducerContext, ThreadedProducer};
use rdkafka::{ClientContext, Message, TopicPartitionList};

use super::cluster::{Complaints, PATIENCE};
use super::inlet::Inlet;
use super::settings::Settings;
use super::trouble::{Trouble, failed, judge, lasting};
use crate::error::{Error, Fault};

/// Writes to the target topic.
pub(super) struct Outlet {
    producer: ThreadedProducer<Deliveries>,
    topic: String,
    /// True if records and offsets are one transaction.
    is_exact: bool,
    /// True if records keep the numbers of their partitions.
    keeps_partitions: bool,
}

impl Outlet {
    /// Connects, and ends the transaction of a process before this one that had the same ID. `partitions` are those of
    /// the source.
    ///
    /// # Errors
    /// That the cluster cannot be reached, or has no such topic.
    pub fn connect(settings: &Settings, partitions: i32) -> Result<Self, Error> {
        let Settings { to, to_topic: topic, is_same_cluster: is_exact, .. } = settings;
        let mut config = to.config();
        config
            .set("enable.idempotence", "true")
            .set("acks", "all")
            // That of Kafka's own clients.
            .set("partitioner", "murmur2_random");
        match is_exact {
            true => config.set("transactional.id", format!("{}.{}", settings.group, settings.id)),
            false => config.set("message.timeout.ms", "0"),
        };
        let producer: ThreadedProducer<Deliveries> = config
            .create_with_context(Deliveries::default())
            .map_err(|error| failed("cannot write to Kafka", &error))?;
        let missing = || {
            let servers = to.servers();
            Error::Failed(format!("the topic {topic} does not exist at {servers}; create it"))
        };
        let count = to.partitions(topic)?.ok_or_else(missing)?;
        if *is_exact {
            init(&producer)?;
        }
        let keeps_partitions = count == partitions;
        Ok(Self { producer, topic: topic.clone(), is_exact: *is_exact, keeps_partitions })
    }

    /// Begins a transaction.
    pub fn begin(&self) -> Result<(), Trouble> {
        self.producer.context().failure();
        match self.is_exact {
            true => self
                .producer
                .begin_transaction()
                .map_err(|error| judge("cannot begin a transaction", &error)),
            false => Ok(()),
        }
    }

    /// Writes `record` with another value. [`Trouble::Retry`] if the queue is full.
    pub fn send(&self, record: &BorrowedMessage<'_>, value: Option<&[u8]>) -> Result<(), Trouble> {
        let mut new = BaseRecord::to(&self.topic);
        new.key = record.key();
        new.payload = value;
        new.timestamp = record.timestamp().to_millis().filter(|time| *time > 0);
        new.headers = record.headers().map(|headers| headers.detach());
        new.partition = self.keeps_partitions.then(|| record.partition());
        match self.producer.send(new) {
            Ok(()) => Ok(()),
            Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), _)) => {
                Err(Trouble::Retry("the queue is full".to_owned()))
            }
            Err((error, _)) => match error.rdkafka_error_code().and_then(lasting) {
                Some(why) if !self.is_fatal() => {
                    let fault = Fault::Unwritable(why);
                    Err(Trouble::Fatal(fault.at(
                        record.topic(),
                        record.partition(),
                        record.offset(),
                    )))
                }
                _ => Err(self.judge("cannot write", &error)),
            },
        }
    }

    /// Ends the transaction; without one, waits until the records are written, and commits the offsets.
    ///
    /// [`Trouble::Retry`] if the same call has to be made again.
    pub fn commit(
        &self,
        inlet: &Inlet,
        offsets: &TopicPartitionList,
        member: &Arc<ConsumerGroupMetadata>,
        are_offsets_sent: &mut bool,
    ) -> Result<(), Trouble> {
        self.drain()?;
        if !self.is_exact {
            if let Some(error) = self.producer.context().failure() {
                return Err(judge("the brokers took not all records", &error));
            }
            return inlet
                .commit(offsets)
                .map_err(|error| judge("cannot commit the offsets", &error));
        }
        if !*are_offsets_sent {
            self.send_offsets(offsets, member)?;
            *are_offsets_sent = true;
        }
        self.producer
            .commit_transaction(CALL)
            .map_err(|error| self.judge("cannot commit the transaction", &error))
    }

    /// Sends the offsets from a thread of its own: when the broker that keeps the group's offsets goes away, librdkafka can
    /// forget the time limit of this call (its issues 5456 and 5511). The client that hangs is left behind then.
    fn send_offsets(
        &self,
        offsets: &TopicPartitionList,
        member: &Arc<ConsumerGroupMetadata>,
    ) -> Result<(), Trouble> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let (producer, offsets, member) =
            (self.producer.clone(), offsets.clone(), Arc::clone(member));
        thread::spawn(move || {
            let sent = producer.send_offsets_to_transaction(&offsets, &member, CALL);
            // Before the answer, so that the last one to have the client is the mirror.
            drop(producer);
            // The one who asked may have given up.
            let _ = sender.send(sent);
        });
        match receiver.recv_timeout(2 * CALL) {
            Ok(sent) => sent.map_err(|error| self.judge("cannot commit the offsets", &error)),
            Err(_) => Err(Trouble::Reconnect("the offsets are not confirmed".to_owned())),
        }
    }

    /// Aborts the transaction; without one, waits until the records are written.
    ///
    /// [`Trouble::Retry`] if the same call has to be made again.
    pub fn abort(&self) -> Result<(), Trouble> {
        match self.is_exact {
            true => self.producer.abort_transaction(CALL).map_err(|error| {
                match self.judge("cannot abort the transaction", &error) {
                    Trouble::Abort(why) => Trouble::Reconnect(why),
                    other => other,
                }
            }),
            false => self.drain(),
        }
    }

    /// Waits until no record is on its way. The client's own call for that sleeps 100 ms at a time.
    fn drain(&self) -> Result<(), Trouble> {
        let started = Instant::now();
        while let Err(error) = self.producer.flush(Duration::ZERO) {
            if started.elapsed() >= CALL {
                return Err(judge("the brokers confirm no records", &error));
            }
            thread::sleep(BETWEEN_LOOKS);
        }
        Ok(())
    }

    /// Waits for room in the queue.
    pub fn wait_for_room(&self) {
        thread::sleep(Duration::from_millis(1));
    }

    fn is_fatal(&self) -> bool {
        self.producer.client().fatal_error().is_some()
    }

    /// Judges an error by what is behind it: that of a message, or what the client cannot recover from.
    fn judge(&self, what: &str, error: &KafkaError) -> Trouble {
        if let Some((code, text)) = self.producer.client().fatal_error() {
            return match lasting(code).filter(|_| code != RDKafkaErrorCode::Fatal) {
                Some(why) => Trouble::Fatal(Error::Failed(format!("{what}: {why}"))),
                // A coordinator that was killed may know less of the transaction than this client. A new client ends it,
                // as after a restart.
                None => Trouble::Reconnect(format!("{what}: {text}")),
            };
        }
        if let Some(failure) = self.producer.context().failure()
            && let trouble @ Trouble::Fatal(_) = judge(what, &failure)
        {
            return trouble;
        }
        judge(what, error)
    }
}

/// Ends what an earlier process of the same ID has left open.
fn init(producer: &ThreadedProducer<Deliveries>) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        match producer.init_transactions(CALL) {
            Err(KafkaError::Transaction(error))
                if error.is_retriable() && started.elapsed() < PATIENCE =>
            {
                thread::sleep(Duration::from_millis(100));
            }
            other => return other.map_err(|error| failed("cannot begin transactions", &error)),
        }
    }
}

/// Time between two looks whether records are confirmed.
const BETWEEN_LOOKS: Duration = Duration::from_micros(500);

/// How long a call may take before a signal is looked for.
const CALL: Duration = Duration::from_secs(5);

/// Keeps the first failure among the deliveries of records.
#[derive(Default)]
struct Deliveries {
    complaints: Complaints,
    first: Mutex<Option<KafkaError>>,
}

impl Deliveries {
    /// Takes the first failure.
    fn failure(&self) -> Option<KafkaError> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

impl ClientContext for Deliveries {
    fn error(&self, error: KafkaError, reason: &str) {
        self.complaints.error(error, reason);
    }
}

impl ProducerContext for Deliveries {
    type DeliveryOpaque = ();

    fn delivery(&self, result: &DeliveryResult<'_>, (): ()) {
        if let Err((error, _)) = result {
            let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
            first.get_or_insert_with(|| error.clone());
        }
    }
}
