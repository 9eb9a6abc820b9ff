//! The topic of keys: one record for each writer, its key the writer's ID in hex, its value the session key, wrapped.

use std::collections::{HashMap, HashSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, ResourceSpecifier, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{Header, OwnedHeaders};
use rdkafka::producer::{BaseProducer, BaseRecord, DeliveryResult, Producer, ProducerContext};
use rdkafka::{ClientContext, Message, Offset, TopicPartitionList};

use super::cluster::{Cluster, Complaints, PATIENCE};
use super::trouble::{failed, lasting};
use crate::address::is_topic;
use crate::error::Error;

/// A topic of wrapped session keys.
#[derive(Clone)]
pub(super) struct KeysTopic {
    cluster: Cluster,
    topic: String,
}

/// What the topic says of a writer.
pub(super) enum KeyState {
    /// Its session key, wrapped.
    Wrapped(Vec<u8>),
    /// Its session key was removed.
    Shredded,
}

impl KeysTopic {
    /// # Errors
    /// [`Error::Settings`] if a topic cannot have this name.
    pub fn new(cluster: Cluster, topic: &str) -> Result<Self, Error> {
        if !is_topic(topic) {
            return Err(Error::Settings(format!("{topic:?} cannot be the name of a topic")));
        }
        Ok(Self { cluster, topic: topic.to_owned() })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.topic
    }

    /// Makes the topic if it is missing, and makes sure that the brokers keep every key.
    ///
    /// # Errors
    /// That it cannot be made, or that its records would be deleted after some time.
    pub fn ensure(&self) -> Result<(), Error> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| Error::Failed(format!("cannot start: {error}")))?;
        let admin: AdminClient<DefaultClientContext> =
            self.cluster.config().create().map_err(|error| self.failed("use", &error))?;
        let options =
            AdminOptions::new().operation_timeout(Some(PATIENCE)).request_timeout(Some(PATIENCE));
        if self.cluster.partitions(&self.topic)?.is_none() {
            let topic = NewTopic::new(&self.topic, 1, TopicReplication::Fixed(BROKERS_DEFAULT))
                .set("cleanup.policy", "compact");
            let made = runtime.block_on(admin.create_topics([&topic], &options));
            let made = made.map_err(|error| self.failed("create", &error))?;
            for topic in made {
                match topic {
                    Ok(_) => return Ok(()),
                    // Another process was first.
                    Err((_, RDKafkaErrorCode::TopicAlreadyExists)) => {}
                    Err((_, code)) => return Err(self.failed("create", &KafkaError::AdminOp(code))),
                }
            }
        }
        let started = Instant::now();
        let mut policy = None;
        // A broker may not have heard of a topic that was just made.
        while policy.is_none() && started.elapsed() < PATIENCE {
            let topic = ResourceSpecifier::Topic(&self.topic);
            let described = runtime.block_on(admin.describe_configs([&topic], &options));
            let described = described.map_err(|error| self.failed("look at", &error))?;
            for resource in described {
                match resource {
                    Ok(resource) => {
                        let entry = resource.get("cleanup.policy");
                        policy = entry.and_then(|entry| entry.value.clone());
                    }
                    Err(RDKafkaErrorCode::UnknownTopicOrPartition) => {}
                    Err(code) => return Err(self.failed("look at", &KafkaError::AdminOp(code))),
                }
            }
            if policy.is_none() {
                std::thread::sleep(Duration::from_millis(100));
            }
        }
        match policy.as_deref() {
            Some("compact") => Ok(()),
            other => Err(Error::Failed(format!(
                "the topic of keys {} has cleanup.policy={}, and keys that are deleted make records unreadable: \
                 set cleanup.policy=compact",
                self.topic,
                other.unwrap_or("(unknown)")
            ))),
        }
    }

    /// Writes the wrapped key of a writer, and waits until the brokers have it.
    ///
    /// # Errors
    /// That they do not confirm it.
    pub fn publish(
        &self,
        writer: &[u8; 16],
        wrapped: &[u8],
        tenant: Option<&str>,
    ) -> Result<(), Error> {
        let config = self
            .cluster
            .config()
            .set("enable.idempotence", "true")
            .set("acks", "all")
            .set("linger.ms", "0")
            .set("message.timeout.ms", PATIENCE.as_millis().to_string())
            .clone();
        let context = Confirmation::default();
        let producer: BaseProducer<Confirmation> =
            config.create_with_context(context).map_err(|error| self.failed("write to", &error))?;
        let outcome = Arc::new(Outcome::default());
        let id = hex(writer);
        let mut record =
            BaseRecord::with_opaque_to(&self.topic, Arc::clone(&outcome)).key(&id).payload(wrapped);
        if let Some(tenant) = tenant {
            let header = Header { key: "tenant", value: Some(tenant) };
            record = record.headers(OwnedHeaders::new().insert(header));
        }
        producer.send(record).map_err(|(error, _)| self.failed("write to", &error))?;
        // The message's own time limit ends it.
        while outcome.is_open() {
            producer.poll(Duration::from_millis(20));
        }
        match outcome.error() {
            None => Ok(()),
            Some(error) => {
                let code = error.rdkafka_error_code();
                let complaint = producer.context().complaints.take();
                match complaint.filter(|_| code.and_then(lasting).is_none()) {
                    Some(why) => Err(Error::Unreachable(format!(
                        "cannot write to the topic of keys {}: {why}",
                        self.topic
                    ))),
                    None => Err(self.failed("write to", &error)),
                }
            }
        }
    }

    /// Reads the topic to its end.
    ///
    /// # Errors
    /// That it is missing or cannot be read.
    pub fn read(&self) -> Result<HashMap<[u8; 16], KeyState>, Error> {
        let mut config = self.cluster.config();
        config
            .set("group.id", &self.topic)
            .set("enable.auto.commit", "false")
            .set("enable.auto.offset.store", "false")
            .set("auto.offset.reset", "error")
            .set("enable.partition.eof", "true")
            .set("fetch.queue.backoff.ms", "2");
        let consumer: BaseConsumer =
            config.create().map_err(|error| self.failed("read", &error))?;
        let count = self.cluster.partitions(&self.topic)?.ok_or_else(|| {
            Error::Failed(format!("the topic of keys {} does not exist", self.topic))
        })?;
        let mut partitions = TopicPartitionList::new();
        for partition in 0..count {
            partitions
                .add_partition_offset(&self.topic, partition, Offset::Beginning)
                .map_err(|error| self.failed("read", &error))?;
        }
        consumer.assign(&partitions).map_err(|error| self.failed("read", &error))?;
        let mut open: HashSet<i32> = (0..count).collect();
        let mut keys = HashMap::new();
        let mut last = Instant::now();
        while !open.is_empty() {
            match consumer.poll(Duration::from_millis(100)) {
                Some(Ok(record)) => {
                    last = Instant::now();
                    // What has no writer's ID as its key is none of ours.
                    let Some(writer) = record.key().and_then(from_hex) else { continue };
                    let state = match record.payload() {
                        Some(wrapped) => KeyState::Wrapped(wrapped.to_vec()),
                        None => KeyState::Shredded,
                    };
                    keys.insert(writer, state);
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => {
                    open.remove(&partition);
                }
                Some(Err(error)) if error.rdkafka_error_code().and_then(lasting).is_some() => {
                    return Err(self.failed("read", &error));
                }
                Some(Err(_)) | None if last.elapsed() > PATIENCE => {
                    return Err(Error::Unreachable(format!(
                        "cannot read the topic of keys {}: no answer from {}",
                        self.topic,
                        self.cluster.servers()
                    )));
                }
                Some(Err(_)) | None => {}
            }
        }
        Ok(keys)
    }

    fn failed(&self, action: &str, error: &KafkaError) -> Error {
        failed(&format!("cannot {action} the topic of keys {}", self.topic), error)
    }
}

/// The replication factor that the brokers are set to.
const BROKERS_DEFAULT: i32 = -1;

/// Whether the brokers have taken a message.
#[derive(Default)]
struct Outcome(std::sync::OnceLock<Option<KafkaError>>);

impl Outcome {
    fn is_open(&self) -> bool {
        self.0.get().is_none()
    }

    fn error(&self) -> Option<KafkaError> {
        self.0.get().cloned().flatten()
    }
}

/// Passes on how each message ended.
#[derive(Default)]
struct Confirmation {
    complaints: Complaints,
}

impl ClientContext for Confirmation {
    fn error(&self, error: KafkaError, reason: &str) {
        self.complaints.error(error, reason);
    }
}

impl ProducerContext for Confirmation {
    type DeliveryOpaque = Arc<Outcome>;

    fn delivery(&self, result: &DeliveryResult<'_>, outcome: Arc<Outcome>) {
        let error = result.as_ref().err().map(|(error, _)| error.clone());
        // It ends once.
        let _ = outcome.0.set(error);
    }
}

/// Returns the ID of a writer as the key of its record.
pub(super) fn hex(writer: &[u8; 16]) -> String {
    let mut text = String::with_capacity(32);
    for byte in writer {
        write!(text, "{byte:02x}").expect("a string grows");
    }
    text
}

/// Reads 32 lower-case hexadecimal digits.
fn from_hex(text: &[u8]) -> Option<[u8; 16]> {
    let text = std::str::from_utf8(text).ok().filter(|text| text.len() == 32)?;
    if !text.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte)) {
        return None;
    }
    u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writers_are_named_in_hex() {
        let writer = [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 255];
        assert_eq!(hex(&writer), "000102030405060708090a0b0c0d0eff");
        assert_eq!(from_hex(hex(&writer).as_bytes()), Some(writer));
        for wrong in ["", "000102030405060708090A0B0C0D0EFF", "+00102030405060708090a0b0c0d0eff"] {
            assert_eq!(from_hex(wrong.as_bytes()), None);
        }
    }
}
